"""The contract of a call: the right answer or a clear error, never NaN, never another exception."""

from __future__ import annotations

import dataclasses
import linecache
import re
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

import headstart as hs
from headstart._core.answers import RangeError
from headstart.datasets import DataUnavailableError

PACKAGE = str(Path(hs.__file__).parent)
KINDS = (ValueError, TypeError, KeyError, AttributeError, NotFittedError, ImportError,
         DataUnavailableError, RangeError,)  # fmt: skip
NAMES_SOMETHING = re.compile(r"^['\"]?[\w .,'()\[\]-]{1,60}: \S")
INFINITE = {"validation_loss"}  # of a candidate that grew beyond all numbers


class Outcome(NamedTuple):
    """What came of a call: an answer, a refusal, or what is wrong with either."""

    answer: Any = None
    refused: str = ""
    fault: str = ""


def attempt(
    function: Callable[..., Any],
    arguments: dict[str, Any],
    allowed: tuple[type[Exception], ...] = (),
) -> Outcome:
    """Call, and hold what comes of it against the contract."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            answer = function(**arguments)
        except Exception as error:  # what may come is looked at here
            fault = fault_of(error, allowed)
            return Outcome(refused=f"{type(error).__name__}: {error}", fault=fault)
        try:
            fault = first_bad_number(answer)
        except Exception as error:
            fault = f"its answer raises {type(error).__name__}: {error}"
    if any(said.category.__name__ == "UndefinedMetricWarning" for said in heard):
        fault = ""  # scikit-learn's scores of one row are NaN, and it says so
    for said in heard:
        if not issubclass(said.category, UserWarning):
            fault = fault or f"warns {said.category.__name__}: {said.message}"
    return Outcome(answer, fault=fault)


def fault_of(error: Exception, allowed: tuple[type[Exception], ...]) -> str:
    """What is wrong with an exception as an answer to a user; nothing if it is clear."""
    said = f"{type(error).__name__}: {error}"
    theirs = type(error).__name__ == "InvalidParameterError"  # scikit-learn's, of a metric
    if type(error) not in KINDS + allowed and not theirs:
        return f"raises {said} {_where(error)}"
    *_, (last, number) = traceback.walk_tb(error.__traceback__)
    file = last.f_code.co_filename
    ours = file.startswith(PACKAGE)
    if not ours and "/sklearn/" not in file:
        return f"lets {said} through {_where(error)}"
    line = linecache.getline(file, number).strip()
    if not line.startswith("raise"):
        return f"lets {said} through {_where(error)}"
    named = NAMES_SOMETHING.match(str(error)) or "binary classification" in str(error)
    if ours and type(error) in (ValueError, TypeError, RangeError) and not named:
        return f"names no argument: {said} {_where(error)}"
    return ""


def _where(error: Exception) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if PACKAGE in f.filename]
    if not frames:
        return "(not in the package)"
    return f"({Path(frames[-1].filename).relative_to(PACKAGE)}:{frames[-1].lineno})"


def first_bad_number(answer: Any) -> str:
    """Where an answer is NaN or infinite."""
    for path, array in numbers(answer):
        if path.rpartition(".")[2] in INFINITE:
            array = array[array != np.inf]
        if not np.isfinite(array).all():
            return f"gives {array[~np.isfinite(array)].flat[0]} in answer{path}"
    return ""


def numbers(answer: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All floats of an answer, with where they are."""
    if isinstance(answer, np.ndarray):
        if answer.dtype.kind == "f":
            yield path, answer
    elif isinstance(answer, float | np.floating):
        yield path, np.asarray(answer, np.float64)[None]
    elif hasattr(answer, "toarray"):  # a sparse matrix
        yield path, answer.toarray()
    elif isinstance(answer, BaseEstimator):
        for name in ("coef_", "intercept_", "bias_"):
            if hasattr(answer, name):
                yield from numbers(getattr(answer, name), f"{path}.{name}")
    elif isinstance(answer, hs.TaskSet):
        yield from numbers((answer.inputs, answer.y), path)
    elif isinstance(answer, hs.SGDState):
        yield from numbers((answer.average, answer.last), path)
    elif isinstance(answer, hs.Prior | hs.Posterior):
        yield from numbers(
            [getattr(answer, n, 0.0) for n in ("bias", "covariance", "weights")], path
        )
    elif isinstance(answer, tuple) and hasattr(answer, "_fields"):
        for name in answer._fields:
            yield from numbers(getattr(answer, name), f"{path}.{name}")
    elif isinstance(answer, tuple | list):
        for i, part in enumerate(answer):
            yield from numbers(part, f"{path}[{i}]")
    elif isinstance(answer, Mapping):
        for name, part in answer.items():
            yield from numbers(part, f"{path}[{name!r}]")
    elif hasattr(answer, "to_numpy") and hasattr(answer, "columns"):
        yield from numbers(answer.to_numpy(), path)
    elif dataclasses.is_dataclass(answer) and not isinstance(answer, type):
        for field in dataclasses.fields(answer):
            if field.name == "ids":  # which are as they were given
                continue
            yield from numbers(getattr(answer, field.name), f"{path}.{field.name}")


def differ(one: Any, other: Any, tolerance: float) -> str:
    """Where two answers differ by more than rounding."""
    ours, theirs = [a for _, a in numbers(one)], [a for _, a in numbers(other)]
    if len(ours) != len(theirs):
        return f"has {len(ours)} parts, expected {len(theirs)}"
    for (path, a), b in zip(numbers(one), theirs, strict=True):
        if a.shape != b.shape:
            return f"has shape {a.shape} in answer{path}, expected {b.shape}"
        scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0.0)))
        same = np.isclose(np.asarray(a, float), np.asarray(b, float), rtol=tolerance,
                          atol=tolerance * scale,
            equal_nan=True,
        )  # fmt: skip
        if not same.all():
            at = int(np.argmin(same.ravel()))
            return f"gives {a.ravel()[at]!r} in answer{path}, expected {b.ravel()[at]!r}"
    return ""
