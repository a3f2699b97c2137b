"""scikit-learn faces: estimators of one task, and of many."""

from headstart.estimators.many import Progress
from headstart.estimators.meta import MetaClassifier, MetaRegressor
from headstart.estimators.task import TaskClassifier, TaskRegressor

__all__ = ["MetaClassifier", "MetaRegressor", "Progress", "TaskClassifier", "TaskRegressor"]
