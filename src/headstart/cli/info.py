"""``headstart info``: what a model has learned."""

from __future__ import annotations

import numpy as np
from rich.table import Table

from headstart.cli.console import console, mistakes, print_line, shown
from headstart.cli.dataset import AnyMeta
from headstart.cli.options import ModelFolder, Trust
from headstart.estimators import load_model


def info(model: ModelFolder, trust: Trust = False) -> None:
    """What a model has learned."""
    with mistakes():
        describe(load_model(model, trusted=trust))


def describe(model: AnyMeta) -> None:
    """Print a model, what is shared by feature, and how many entities have own weights."""
    print_line(repr(model))
    names = [*model.bias_by_feature(), "(intercept)"]
    columns = {"shared effect": np.append(model.bias_, model.intercept_)}
    if model.reg == "auto":
        prior = model.prior_
        columns["differs by"] = np.sqrt(prior.variances)
        columns["worth rows"] = prior.worth
        if prior.side_effects is not None:
            more = zip(model.side or (), prior.side_effects.T, strict=True)
            columns |= {f"per {name}": effects for name, effects in more}
    table = Table("feature", *columns)
    # not strict: a prior without an intercept has no entry for it
    for name, *values in zip(names, *columns.values(), strict=False):
        table.add_row(shown(name), *(f"{value:.4g}" for value in values))
    console.print(table)
    hint = "" if model.ids_ else "; headstart adapt writes those of a dataset"
    line = f"{len(model.ids_)} entities with own weights{hint}"
    print_line(line)
