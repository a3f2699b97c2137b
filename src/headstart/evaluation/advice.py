"""What to do next after a diagnosis, with commands and code to paste."""

from __future__ import annotations

import shlex
from pathlib import PurePath
from typing import NamedTuple

from headstart.evaluation.findings import Diagnosis
from headstart.evaluation.verdict import surely_better

READERS = {".csv": "read_csv", ".arrow": "read_feather", ".feather": "read_feather"}


class Source(NamedTuple):
    """Where rows came from: the file, its columns of ids, of labels, and of features if named.

    `categorical` are columns of text, of which each value becomes a column; `base` is the model of
    all rows that headstart was also tried on.
    """

    data: str
    group: str
    target: str
    features: list[str] | None = None
    categorical: list[str] | None = None
    classify: bool = False
    base: str | None = None


def next_steps(found: Diagnosis, source: Source) -> list[tuple[str, str]]:
    """Sentences, each with a command or code to paste, or with nothing."""
    if found.verdict in ("share", "share a little") or _below(found, source):
        return _share(found, source)
    if found.verdict == "pool instead":
        name = "LogisticRegression" if found.classify else "LinearRegression"
        trees = f"HistGradientBoosting{'Classifier' if found.classify else 'Regressor'}"
        return [
            (
                "Fit one model to all rows and leave the ids out. Such a model need not be linear: "
                f"try {trees} too.",
                f"from sklearn.linear_model import {name}\n{_table(source)}"
                f"model = {name}().fit(X, y)",
            )
        ]
    if found.verdict == "do not share":
        name = "LogisticRegressionCV" if found.classify else "RidgeCV"
        return [
            (
                "Fit a model to each by itself.",
                f"from sklearn.linear_model import {name}\n{_table(source)}"
                f"models = {{i: {name}().fit(X.loc[rows], y.loc[rows])\n"
                f"          for i, rows in X.groupby(table[{source.group!r}]).groups.items()}}",
            )
        ]
    fewer = max(1, found.headstart.shots[-1] // 2)
    return [
        (
            "Collect more of them and ask again. Until then headstart is a safe choice: it learns "
            "from the data how much to share.",
            "",
        ),
        (
            "With fewer rows to learn from, more of them have rows left to be judged by:",
            f"{_command('diagnose', source)} --shots {fewer} --out page.html",
        ),
    ]


def _share(found: Diagnosis, source: Source) -> list[tuple[str, str]]:
    meta = "MetaClassifier" if found.classify else "MetaRegressor"
    below = _below(found, source)
    steps = [
        (
            f"Learn the start{below and ' on top of that model'}, then predict:",
            f"{_command('fit', source)}{below} --out model\n"
            "headstart predict model new_rows.parquet --out predictions.parquet"
            f"{below and ' --trust'}",
        ),
        (
            "The same in Python:",
            f"from headstart import {meta}\n{_table(source)}"
            f"model = {meta}().fit(X, y, groups=table[{source.group!r}])\n"
            "print(model.summary())  # what is shared, and what differs",
        ),
    ]
    if found.levels_suffice and not below:
        steps.insert(
            0,
            (
                "Levels differ and slopes hardly do. headstart finds that by itself; a mixed model "
                "with a random intercept would do as well.",
                "",
            ),
        )
    return steps


def _below(found: Diagnosis, source: Source) -> str:
    """The option that asks for the base, if headstart on it surely beats either by itself."""
    ours, theirs = (found.curves.get(f"{on}{source.base}") for on in ("headstart on ", ""))
    if ours is None or theirs is None:
        return ""
    better = surely_better(ours, found.headstart) and surely_better(ours, theirs)
    return f" --base {source.base}" if better else ""


def _command(name: str, source: Source) -> str:
    words = ["headstart", name, source.data, "--group", source.group, "--target", source.target]
    if source.features:
        words += ["--features", ",".join(source.features)]
    if source.categorical:
        words += ["--categorical", ",".join(source.categorical)]
    return shlex.join([*words, *(["--classify"] if source.classify else [])])


def _table(source: Source) -> str:
    """Code that reads the rows."""
    reader = READERS.get(PurePath(source.data).suffix.lower(), "read_parquet")
    columns = f"table.drop(columns=[{source.group!r}, {source.target!r}])"
    if source.features:
        columns = f"table[{source.features!r}]"
    if source.categorical:
        columns = f"pd.get_dummies({columns}, columns={source.categorical!r}, dtype=float)"
    return (
        f"import pandas as pd\n\ntable = pd.{reader}({source.data!r})\n"
        f"X, y = {columns}, table[{source.target!r}]\n"
    )
