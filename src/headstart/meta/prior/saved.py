"""A prior as named arrays, and back with the same bits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from headstart._core.saved import MANY, Arrays, checked
from headstart.inner.posterior import unpacked
from headstart.inner.posterior.evidence import packed_size
from headstart.inner.start import Start
from headstart.losses import Loss
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.units import METRICS
from headstart.tasks.columns import Columns

Matrix = NDArray[np.float64]

ROUNDING = 1e-9  # of a covariance's entries and eigenvalues, as a share of the largest
START = ("effects", "variances", "covariance", "precision")


def prior_arrays(prior: Prior) -> dict[str, NDArray[np.generic]]:
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


def prior_from(
    arrays: Arrays,
    loss: Loss,
    *,
    n_features: int,
    intercept: bool,
    n_side: int = 0,
    sparse: bool = False,
) -> Prior:
    """The prior whose `prior_arrays` these are, if they are those of such a prior.

    Parameters
    ----------
    arrays, loss
    n_features : number of columns of X
    intercept : whether there is a column of ones beside them
    n_side : how many numbers are known of a task
    sparse : whether rows are sparse: then no column is centred
    """
    d, k = n_features, n_features + intercept
    effects = checked(arrays, "prior_effects", (k, 1 + n_side), np.float64)
    variances = checked(arrays, "prior_variances", (k,), np.float64, above=0.0)
    whole = k if np.size(arrays.get("prior_covariance", ())) and not sparse else 0
    precision = np.empty(0)  # which models of another version have where the variances say it
    if whole:
        precision = checked(arrays, "prior_precision", (packed_size(k),), np.float64)
    covariance = checked(arrays, "prior_covariance", (whole, whole), np.float64)
    _, noise, level = checked(arrays, "prior_scalars", (3,), np.float64).tolist()
    centre = checked(arrays, "prior_centre", (d,), np.float64)
    scale = checked(arrays, "prior_scale", (d,), np.float64, above=0.0)
    settings = checked(arrays, "prior_settings", (4,), np.int64, at_least=0, below=MANY)
    metric, n_iter, converged, ones = settings.tolist()
    if metric >= len(METRICS) or converged > 1 or ones != intercept:
        raise ValueError(f"prior_settings: expected those of a prior, found {settings.tolist()}")
    if not noise > 0.0 or 1.0 / noise == math.inf or (loss.binary and noise != 1.0):
        raise ValueError(f"prior_scalars: expected a noise of such a loss, found {noise:g}")
    if (sparse or not intercept) and (centre.any() or (level and not intercept)):
        raise ValueError("prior_centre: expected 0 where columns are not centred")
    if whole:
        _check_definite("prior_covariance", covariance)
        if not np.array_equal(np.diag(covariance), variances):
            raise ValueError("prior_variances: expected the diagonal of the covariance")
        _check_definite("prior_precision", unpacked(precision))
    log_det = float(arrays["prior_scalars"][0])
    start = Start(effects, variances, covariance, precision, log_det, noise)
    columns = Columns(centre, scale, level, bool(intercept))
    with np.errstate(over="ignore", invalid="ignore"):
        prior = Prior.learned(start, columns, loss, METRICS[metric], n_iter, bool(converged))
    for part in (prior.bias, prior.variances, prior.side_effects):
        if part is not None and not np.isfinite(part).all():
            raise ValueError("prior_scale: expected one that gives finite weights")
    return prior


def _check_definite(name: str, matrix: Matrix) -> None:
    """Raise if a matrix is, by more than rounding, not symmetric or has no root."""
    most = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > ROUNDING * most:
        raise ValueError(f"{name}: expected a symmetric matrix")
    if not np.linalg.eigvalsh(matrix / most)[0] > -ROUNDING:
        raise ValueError(f"{name}: expected a positive definite matrix")
