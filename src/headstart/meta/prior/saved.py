"""A prior as named arrays, and back with the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headstart.inner.posterior.state import Start
from headstart.losses import Loss
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.units import METRICS
from headstart.tasks.columns import Columns

Arrays = dict[str, NDArray[Any]]  # of any kind: numbers by name

START = ("effects", "variances", "covariance", "precision")


def prior_arrays(prior: Prior) -> Arrays:
    """All there is to a prior but its loss."""
    start, columns = prior.standard, prior.columns
    settings = [METRICS.index(prior.metric), prior.n_iter, prior.converged, prior.intercept]
    return {
        **{f"prior_{name}": getattr(start, name) for name in START},
        "prior_scalars": np.array([start.log_det, start.noise, columns.level]),
        "prior_centre": columns.centre,
        "prior_scale": columns.scale,
        "prior_settings": np.array(settings, np.int64),
    }


def prior_from(arrays: Arrays, loss: Loss) -> Prior:
    """The prior whose `prior_arrays` these are."""
    log_det, noise, level = arrays["prior_scalars"].tolist()
    metric, n_iter, converged, intercept = arrays["prior_settings"].tolist()
    effects, variances, covariance, precision = (arrays[f"prior_{name}"] for name in START)
    start = Start(effects, variances, covariance, precision, log_det, noise)
    columns = Columns(arrays["prior_centre"], arrays["prior_scale"], level, bool(intercept))
    return Prior.learned(start, columns, loss, METRICS[metric], n_iter, bool(converged))
