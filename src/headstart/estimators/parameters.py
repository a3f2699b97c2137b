"""The parameters of an estimator of many tasks, checked, as the stream that learns takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headstart._core.checks import check_choice, check_count, check_number
from headstart.losses import Loss
from headstart.meta.prior import METRICS
from headstart.online import PriorSettings, Settings

MOST_ROWS = 2**62  # of a task


class MetaParameters(Protocol):
    """An estimator of many tasks; its parameters are attributes, as scikit-learn wants them."""

    metric: str
    reg: float | str
    step: float | str
    inner: str
    predictor: str
    side: Sequence[str | int] | None
    base: object
    task_size: int | None
    fit_intercept: bool


def learns_prior(reg: float | str) -> bool:
    """Whether a prior is learned; a number for `reg` is the paper's method instead."""
    return isinstance(reg, str) and reg == "auto"


def check_parameters(model: MetaParameters, loss: Loss) -> PriorSettings | Settings:
    """What a stream needs of the parameters; those that do not apply are checked too."""
    check_choice("metric", model.metric, ["auto", *METRICS])
    size = None
    if model.task_size is not None:
        size = check_count("task_size", model.task_size, at_most=MOST_ROWS)
    automatic = isinstance(model.step, str) and model.step == "auto"
    step = None if automatic else _number("step", model.step, at_least=0.0)
    side = _columns("side", model.side)
    intercept = bool(model.fit_intercept)
    if learns_prior(model.reg):
        loss.check_inner("posterior")
        return PriorSettings(loss, model.metric, intercept, side, model.base is not None)
    if side:
        raise ValueError("side: expected None with a number for reg; reg='auto' learns from it")
    if model.base is not None:
        raise ValueError("base: expected None with a number for reg; reg='auto' learns from it")
    reg = _number("reg", model.reg, above=0.0)
    loss.regularised(reg, model.inner)
    return Settings(loss, reg, step, model.inner, model.predictor, size, intercept)


def check_unchanged(begun: PriorSettings | Settings, now: PriorSettings | Settings) -> None:
    """Raise if a stream was begun with other parameters."""
    if begun == now:
        return
    names = (
        ["reg"]
        if type(begun) is not type(now)
        else [name for name in vars(begun) if getattr(begun, name) != getattr(now, name)]
    )
    raise ValueError(
        f"{names[0]}: expected the value this stream was begun with; fit anew to change it"
    )


def _columns(name: str, columns: Sequence[str | int] | None) -> tuple[str | int, ...]:
    if columns is None:
        return ()
    if not isinstance(columns, list | tuple) or not all(isinstance(c, str | int) for c in columns):
        raise TypeError(f"{name}: expected a list of column names or numbers, found {columns!r}")
    if len(set(columns)) != len(columns) or not columns:
        raise ValueError(f"{name}: expected different columns, found {columns!r}")
    return tuple(columns)


def _number(name: str, value: float | str, **limits: float) -> float:
    if isinstance(value, str):
        (limit,) = limits.values()
        sign = ">" if "above" in limits else ">="
        raise ValueError(f"{name}: expected a number {sign} {limit:g} or 'auto', found {value!r}")
    return check_number(name, value, **limits)
