"""What is written of a block of whole tasks: weights by id, and predictions by row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headstart._core.checks import FloatArray
from headstart.estimators.start import Knowledge, StartingModel, Wanted
from headstart.parquet import Block, Inputs, ParquetError, ParquetRows, wrong_name
from headstart.parquet.columns import Array, is_numeric, to_float64

EXTRA = ["intercept", "rows"]  # columns of the weights beside the features
COVARIANCE = "covariance"  # and that of what is not known of them
PREDICTION, STD, LOW, HIGH = "prediction", "std", "low", "high"  # columns of the predictions


class Asked(NamedTuple):
    """What is to be written; see `adapt_all`."""

    weights: bool
    covariance: bool
    predictions: bool
    std: bool
    interval: float | None
    keep: tuple[str, ...]

    @property
    def folders(self) -> list[str]:
        """Where it goes."""
        return [name for name in ("weights", "predictions") if getattr(self, name)]

    @property
    def unsure(self) -> bool:
        """Whether it is asked how sure predictions are."""
        return self.predictions and (self.std or self.interval is not None)

    def check_weights_alone(self) -> None:
        """Raise unless weights are asked for and nothing else, as of tasks in memory."""
        wanted = Asked(True, False, False, False, None, ())
        for name, value, expected in zip(self._fields, self, wanted, strict=True):
            if value != expected:
                raise ValueError(
                    f"{name}: expected {expected!r} with a TaskSet, of which weights alone are "
                    f"written, found {value!r}; a dataset on disk has all"
                )

    def check(self, rows: ParquetRows, start: StartingModel) -> None:
        """Raise unless it can be written: columns are there, and have one name each."""
        taken = [*EXTRA, *([COVARIANCE] if self.covariance else [])]
        twice = [name for name in [rows.group, *(rows.features or ())] if name in taken]
        if twice and self.weights:
            raise ParquetError(
                f"{rows.known_as}: the weights have a column {twice[0]!r} of their own"
            )
        for option, names in (("keep", self.keep), ("side", start.side)):
            for name in names:
                known = rows.schema.names
                if known.count(name) != 1:
                    raise ParquetError(f"{rows.known_as}: {option}: {wrong_name(name, known)}")
        for name in start.side:
            kind = rows.schema.field(name).type
            if not is_numeric(kind):
                raise ParquetError(
                    f"{rows.known_as}: column {name!r}: expected numbers that describe entities, "
                    f"found {kind}"
                )
        own = [PREDICTION, *self._names(start)] if self.predictions else []
        twice = [name for name in (rows.group, *self.keep) if name in own]
        if twice:
            raise ParquetError(
                f"{rows.known_as}: the predictions are a column {twice[0]!r} themselves"
                if twice[0] == PREDICTION
                else f"{rows.known_as}: the predictions have a column {twice[0]!r} of their own"
            )
        for option, given in (("covariance", self.covariance), ("std", self.unsure)):
            if given:
                start.check_prior(option)

    def _names(self, start: StartingModel) -> list[str]:
        """Columns beside that of the predictions."""
        if start.classes is not None:
            return [_probability(label) for label in start.classes.tolist()] if self.unsure else []
        ends = [] if self.interval is None else [LOW, HIGH]
        return [*([STD] if self.std else []), *ends]


def block_tables(
    start: StartingModel, asked: Asked, rows: ParquetRows, block: Block, table: pa.Table
) -> dict[str, pa.Table]:
    """Weights of the tasks of a block, and predictions of its rows, as they are asked for."""
    wanted = Wanted(asked.predictions, asked.unsure, asked.covariance and asked.weights)
    known = start.after(block, Inputs(rows, table), _side(rows, start, block, table), wanted)
    found = {}
    if asked.weights:
        found["weights"] = _weights_table(rows, asked, block, known)
    if asked.predictions:
        names = list(dict.fromkeys([rows.group, *asked.keep]))
        found["predictions"] = _predictions(start, asked, known, table.select(names))
    return found


def _side(
    rows: ParquetRows, start: StartingModel, block: Block, table: pa.Table
) -> NDArray[np.float64] | None:
    """What describes each task, which its rows must agree on."""
    if not start.side:
        return None
    columns = []
    for name in start.side:
        column = table.column(name)
        values = np.asarray(to_float64(column).to_numpy(), np.float64)
        first = values[block.starts]
        wrong = column.null_count or not np.isfinite(values).all()
        if wrong or not np.array_equal(block.by_row(first), values):
            what = "a number in every row" if wrong else "one value for each entity"
            raise ParquetError(
                f"{rows.known_as}: column {name!r}: expected {what}, because it describes entities"
            )
        columns.append(first)
    return np.column_stack(columns)


def _weights_table(rows: ParquetRows, asked: Asked, block: Block, known: Knowledge) -> pa.Table:
    """Weights by id."""
    ids, W, sizes, V = block.ids, known.weights, known.sizes, known.covariance
    if block.missing.any():
        named = ~block.missing
        ids, W, sizes = ids.filter(pa.array(named)), W[named], sizes[named]
        V = V[named] if asked.covariance else V
    columns = [ids, *map(pa.array, np.ascontiguousarray(W.T)), pa.array(sizes)]
    names = [rows.group, *(rows.features or ()), *EXTRA]
    if asked.covariance:
        flat = pa.array(np.ascontiguousarray(V).reshape(-1))
        columns.append(pa.FixedSizeListArray.from_arrays(flat, V.shape[1]))
        names.append(COVARIANCE)
    fields = [_there(name, column) for name, column in zip(names, columns, strict=True)]
    return pa.table(columns, schema=pa.schema(fields))


def _there(name: str, column: Array) -> Array:
    """The field of a column without nulls, and marked so: it is quicker to write."""
    return pa.field(name, column.type, nullable=False)


def _predictions(
    start: StartingModel, asked: Asked, known: Knowledge, beside: pa.Table
) -> pa.Table:
    """Predictions of rows, and how sure they are."""
    scores, variance = known.scores, known.variance
    found: dict[str, FloatArray | NDArray[np.generic]] = {PREDICTION: start.labels(scores)}
    if asked.unsure:
        if start.classes is not None:
            share = start.probability(scores, variance)
            for label, value in zip(start.classes.tolist(), (1.0 - share, share), strict=True):
                found[_probability(label)] = value
        else:
            std = start.std(variance).astype(scores.dtype, copy=False)
            found |= {STD: std} if asked.std else {}
            if asked.interval is not None:
                found[LOW], found[HIGH] = start.interval(scores, std, asked.interval).T
    for name, values in found.items():
        column = pa.array(np.ascontiguousarray(values))
        beside = beside.append_column(_there(name, column), column)
    return beside


def _probability(label: object) -> str:
    """The column of the probability of a class, as `headstart predict` calls it."""
    return f"probability of {label}"
