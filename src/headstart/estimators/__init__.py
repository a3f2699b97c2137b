"""scikit-learn faces: estimators of one task, and of many."""

from headstart.estimators.classifier import MetaClassifier
from headstart.estimators.loading import load_model
from headstart.estimators.meta import Progress
from headstart.estimators.regressor import MetaRegressor
from headstart.estimators.task_classifier import TaskClassifier
from headstart.estimators.task_regressor import TaskRegressor

__all__ = [
    "MetaClassifier",
    "MetaRegressor",
    "Progress",
    "TaskClassifier",
    "TaskRegressor",
    "load_model",
]
