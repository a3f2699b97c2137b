from . import theory
from .estimators import (
    MetaClassifier,
    MetaRegressor,
    TaskClassifier,
    TaskRegressor,
    load_model,
)
from .evaluation import FewShotCurve, few_shot_curve, few_shot_score
from .evaluation.diagnosis import diagnose
from .evaluation.findings import Diagnosis
from .inner.adapt import evaluate_bias, task_weights
from .inner.erm import ERMResult, biased_erm
from .inner.sgd import SGDResult, SGDState, biased_sgd, sgd_batch, weights_from_dual
from .losses import (
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
from .meta import (
    BiasResult,
    BiasState,
    continue_bias,
    learn_bias,
    start_bias,
)
from .meta.kernel import KernelBias, learn_kernel_bias
from .meta.prior import (
    Posterior,
    Prior,
    PriorState,
    Summaries,
    continue_prior,
    learn_prior,
    start_prior,
)
from .selection import RegSelection, Selection, select_online, select_reg
from .tasks import TaskSet

__version__: str

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
    "learn_kernel_bias",
    "KernelBias",
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
