"""Learn one starting point from many small related tasks, and give every new task that head start.

The system of "Learning-to-Learn Stochastic Gradient Descent with Biased Regularization"
(Denevi, Ciliberto, Grazzi, Pontil, ICML 2019).

>>> import headstart
>>> tasks = headstart.TaskSet.from_list([([[1.0, 0.0], [0.0, 1.0]], [4.0, 2.0])] * 100)
>>> headstart.learn_bias(tasks, reg=0.1, step=1.0).last
array([4., 2.])
"""

from headstart import theory
from headstart.estimators import (
    MetaClassifier,
    MetaRegressor,
    TaskClassifier,
    TaskRegressor,
    load_model,
)
from headstart.evaluation import FewShotCurve, few_shot_curve, few_shot_score
from headstart.evaluation.diagnosis import diagnose
from headstart.evaluation.findings import Diagnosis
from headstart.inner.adapt import evaluate_bias, task_weights
from headstart.inner.erm import ERMResult, biased_erm
from headstart.inner.sgd import SGDResult, SGDState, biased_sgd, sgd_batch, weights_from_dual
from headstart.losses import (
    LOSSES,
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Pinball,
    SmoothedHinge,
    Squared,
    get_loss,
    register_loss,
)
from headstart.meta import (
    BiasResult,
    BiasState,
    continue_bias,
    learn_bias,
    start_bias,
)
from headstart.meta.prior import (
    Posterior,
    Prior,
    PriorState,
    Summaries,
    continue_prior,
    learn_prior,
    start_prior,
)
from headstart.selection import RegSelection, Selection, select_online, select_reg
from headstart.tasks import TaskSet

__version__ = "0.1.0"

__all__ = [
    "MetaRegressor",
    "MetaClassifier",
    "TaskRegressor",
    "TaskClassifier",
    "load_model",
    "few_shot_score",
    "few_shot_curve",
    "FewShotCurve",
    "diagnose",
    "Diagnosis",
    "TaskSet",
    "biased_sgd",
    "biased_erm",
    "learn_bias",
    "learn_prior",
    "Prior",
    "Posterior",
    "Summaries",
    "PriorState",
    "start_prior",
    "continue_prior",
    "evaluate_bias",
    "select_online",
    "select_reg",
    "task_weights",
    "start_bias",
    "continue_bias",
    "sgd_batch",
    "weights_from_dual",
    "SGDState",
    "SGDResult",
    "ERMResult",
    "BiasResult",
    "BiasState",
    "Selection",
    "RegSelection",
    "theory",
    "get_loss",
    "register_loss",
    "LOSSES",
    "Loss",
    "Squared",
    "Absolute",
    "EpsilonInsensitive",
    "Pinball",
    "Huber",
    "Hinge",
    "SmoothedHinge",
    "Logistic",
    "__version__",
]
