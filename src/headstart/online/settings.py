"""The parameters of the paper's algorithms over a stream, and what kernels see of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headstart.inner import Compiled, get_inner
from headstart.inner.sgd.one_pass import AVERAGE, LAST, POLY
from headstart.losses import Loss, Objective
from headstart.tasks.columns import given_metric

PREDICTORS = {"average": AVERAGE, "last": LAST, "poly": POLY}


class Rules(NamedTuple):
    """What kernels see of the settings.

    Attributes
    ----------
    objective : reg and the loss
    constant : whether steps within tasks are of length 1 / reg, else 1 / (k reg)
    predictor : what of the iterates own weights are
    step : meta step size
    auto : whether the meta step size is DoG's, and `step` of no meaning
    task_size : number of rows after which a task closes; 0 for any number
    moving_on : whether a task closes when the stream moves on to another entity
    metric : the square of the constant column's value; 0 for no intercept, and `FOLLOW` to
        take the mean square of the inputs so far
    """

    objective: Objective
    constant: bool
    predictor: int
    step: float
    auto: bool
    task_size: int
    moving_on: bool
    metric: float


@dataclass(frozen=True)
class Settings:
    """Parameters of Algorithms 1 and 2, already checked.

    Attributes
    ----------
    loss : any loss that the inner algorithm takes
    reg : within-task regularisation, > 0
    step : meta step size, >= 0; None for DoG's
    inner : "sgd"; "constant" for steps of length 1 / reg, which is the paper's reg / n in a task
        of n rows; or "erm"
    predictor : "average", "last" or "poly" of the iterates; of no meaning for "erm"
    task_size : number of rows after which a task closes; None for any number
    fit_intercept : whether there is an intercept
    scaling : value of the constant column, whose weight the intercept is; None for the root
        mean square of the inputs
    """

    loss: Loss
    reg: float
    step: float | None = None
    inner: str = "sgd"
    predictor: str = "average"
    task_size: int | None = None
    fit_intercept: bool = True
    scaling: float | None = None

    @property
    def algorithm(self) -> Compiled:
        """The within-task algorithm."""
        return get_inner(self.inner)

    @property
    def exact(self) -> bool:
        """Whether tasks are solved exactly, all rows of one at once."""
        return self.algorithm.exact

    def rules(self) -> Rules:
        """What kernels see: tasks close when the stream moves on, if it is not by their size."""
        self.algorithm.check_everywhere()
        return Rules(
            self.loss.regularised(self.reg, self.inner),
            self.algorithm.constant,
            PREDICTORS[self.predictor],
            0.0 if self.step is None else self.step,
            self.step is None,
            self.task_size or 0,
            self.task_size is None,
            given_metric(self.fit_intercept, self.scaling),
        )
