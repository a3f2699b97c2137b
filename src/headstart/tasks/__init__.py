"""Tasks: many small data sets, their ids, their rows as kernels see them, and their units."""

from headstart.tasks.accept import Tasks, TaskStream, as_task_set, check_same_tasks
from headstart.tasks.rows import Inputs, Rows, longest
from headstart.tasks.task_set import ORDERS, TaskSet

__all__ = [
    "ORDERS",
    "Inputs",
    "Rows",
    "TaskSet",
    "TaskStream",
    "Tasks",
    "as_task_set",
    "check_same_tasks",
    "longest",
]
