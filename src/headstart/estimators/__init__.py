"""scikit-learn faces: estimators of one task, and of many."""

from headstart.estimators.many import Progress
from headstart.estimators.meta import MetaClassifier, MetaRegressor, load_model
from headstart.estimators.task import TaskClassifier, TaskRegressor

__all__ = [
    "MetaClassifier",
    "MetaRegressor",
    "Progress",
    "TaskClassifier",
    "TaskRegressor",
    "load_model",
]
