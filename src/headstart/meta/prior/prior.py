"""A prior over tasks, and what is known of one task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headstart._core.answers import LARGEST, check_answer, quietly
from headstart._core.checks import FloatArray, Vector, check_choice, check_flag, check_jobs
from headstart.inner.posterior import Evidence, posteriors, take_pass, unpacked
from headstart.inner.posterior.gather import any_evidence, evidence_of
from headstart.inner.posterior.passes import AnyEvidence, first_moments, plan, settle
from headstart.inner.posterior.sparse_evidence import SparseEvidence
from headstart.inner.start import Start
from headstart.losses import Loss, get_loss
from headstart.meta.prior.posterior import Posterior, Posteriors, Rows, row_weights
from headstart.meta.prior.sparse_posterior import SparsePosterior, checked_rows, sparse_weights
from headstart.meta.prior.units import (
    METRICS,
    as_columns,
    as_covariance,
    as_effects,
    as_start,
    check_noise,
    covariance_of,
    known_rows,
    standard_start,
)
from headstart.tasks import Tasks, as_task_set
from headstart.tasks.columns import Columns
from headstart.tasks.sparse import is_sparse

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, init=False)
class Prior:
    r"""Where tasks start, how far and in which directions they go, and how noisy a row is.

    Weights of tasks are spread as :math:`N(h, \Sigma)` and a row costs
    :math:`\ell(\langle x, w\rangle, y)/b`. The most probable weights of a task are then the
    paper's biased regularised solution in the metric :math:`\Sigma`,

    .. math:: \arg\min_w \sum_i \ell_i(\langle x_i, w\rangle)/b
              + \tfrac12 (w-h)^\top\Sigma^{-1}(w-h),

    which for :math:`\Sigma = \sigma^2 I` has :math:`\lambda = b/(n\sigma^2)`. `learn_prior`
    learns all three from tasks.

    Parameters
    ----------
    bias : array-like of shape (k,)
        h. With an `intercept` its last entry is that of the column of ones.
    covariance : array-like of shape (k, k), or (k,) for a diagonal, or a number
        Sigma, positive definite; kept as a matrix, which is one of SciPy's sparse ones where
        many columns were learned to be independent.
    noise : float > 0
        b: the mean square of residuals for the squared loss, their mean absolute value for
        the absolute one; 1 for labels -1 and +1, where Sigma carries the scale.
    loss : str or Loss
    metric : {"full", "diagonal", "isotropic"}
        The shape the covariance was learned in, in standard units of the columns.
    intercept : bool
        Whether there is a column of ones beside those of X, which is added by itself.
    side_effects : array-like of shape (k, p), optional
        A task of which s is known starts from ``bias + side_effects @ s``.
    columns : Columns, optional
        The units in which sums are taken, so that few digits are lost.

    Attributes
    ----------
    n_iter, converged : passes it took to learn this, and whether the likelihood had settled
    standard : this prior in the units of `columns`, as kernels see it

    Examples
    --------
    >>> prior = Prior(bias=[1.0], covariance=1.0, noise=0.5)
    >>> posterior = prior.posterior([[1.0], [1.0]], [3.0, 3.0])
    >>> print(posterior.weights, posterior.covariance)  # (1 + 2 * 3 / 0.5) / (1 + 2 / 0.5)
    [2.6] [[0.2]]
    >>> print(posterior.predict([[2.0]]), posterior.variance([[2.0]]).round(2))
    [5.2] [1.3]
    """

    bias: Vector
    covariance: Matrix
    noise: float
    loss: Loss
    metric: str
    intercept: bool
    side_effects: Matrix | None
    n_iter: int
    converged: bool
    columns: Columns = field(repr=False)
    standard: Start = field(repr=False)

    @quietly()
    def __init__(
        self,
        bias: ArrayLike,
        covariance: ArrayLike,
        noise: float = 1.0,
        loss: str | Loss = "squared",
        metric: str = "full",
        intercept: bool = False,
        side_effects: ArrayLike | None = None,
        columns: Columns | None = None,
    ) -> None:
        h, chosen = as_start(bias, intercept), get_loss(loss)
        chosen.check_inner("posterior")
        b = check_noise(noise, chosen)
        sigma, G = as_covariance(covariance, h.size), as_effects(side_effects, h.size)
        columns = as_columns(columns, sigma, intercept)
        self._put(
            bias=h, covariance=sigma, noise=b, loss=chosen,
            metric=check_choice("metric", metric, METRICS), intercept=intercept, side_effects=G,
            n_iter=0, converged=True, columns=columns,
        )  # fmt: skip
        self._put(standard=standard_start(h, G, sigma, b, columns))
        check_answer(tuple(self.standard), "bias, covariance, noise, side_effects")

    def _put(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    @quietly()
    def learned(
        cls, start: Start, columns: Columns, loss: Loss, metric: str, n_iter: int, converged: bool
    ) -> Prior:
        """The prior that was found in these units."""
        h, G = start.effects[:, 0], start.effects[:, 1:]
        prior, found = cls.__new__(cls), (columns.weights(h), covariance_of(start, columns))
        side = columns.matrix @ G if G.size else None
        check_answer((*found, start.noise, side), "tasks, side")
        prior._put(
            bias=found[0], covariance=found[1], noise=start.noise, loss=loss, metric=metric,
            intercept=columns.intercept, side_effects=side, n_iter=n_iter, converged=converged,
            columns=columns, standard=start,
        )  # fmt: skip
        return prior

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.bias.size - self.intercept)

    @property
    def n_side(self) -> int:
        """How many numbers are known of a task."""
        return 0 if self.side_effects is None else int(self.side_effects.shape[1])

    @property
    def variances(self) -> Vector:
        """The diagonal of the covariance."""
        return np.asarray(self.covariance.diagonal())

    @property
    @quietly()
    def worth(self) -> Vector:
        r"""About how many rows of a task weigh as much as the start does, for each weight.

        A row of standard units carries :math:`\omega/b` about a weight, :math:`\omega` being the
        mean curvature of the loss, and the prior :math:`1/\Sigma_{jj}`: these are
        :math:`b/(\omega\Sigma_{jj})` rows.
        """
        loss, b, variances = self.loss, self.noise, self.standard.variances
        variance = float(variances.sum()) if loss.binary else loss.noise_variance(b)
        if not variance <= LARGEST:
            raise ValueError(f"noise: expected one that can be squared, found {b:g}")
        omega, _, _ = loss.quadratic_form(0.0, variance, 1.0 if loss.binary else 0.0)
        return np.asarray(b / (float(omega) * variances))

    @quietly()
    def start(self, side: ArrayLike | None = None) -> Vector:
        """The weights a task starts from; `side` is what is known of it."""
        known = self.known(side, 1)
        return check_answer(self.columns.weights(self.standard.of(known)[0]), "side")

    @quietly()
    def predict(self, X: ArrayLike, side: ArrayLike | None = None) -> Vector:
        """Predictions for rows of tasks that have shown nothing; `side` has a row for each."""
        inputs = self._rows.inputs(X)
        starts = self.standard.of(self.known(side, len(inputs)))
        found = np.einsum("ij,ij->i", inputs, starts) + self.columns.level
        return check_answer(np.asarray(found), "X, side")

    @quietly()
    def at(self, side: ArrayLike | None) -> Prior:
        """The prior of a task of which `side` is known: it starts where that says."""
        start = self.standard._replace(effects=self.standard.of(self.known(side, 1)).T)
        how = self.columns, self.loss, self.metric, self.n_iter, self.converged
        return Prior.learned(start, *how)

    @quietly()
    def posterior(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        side: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Posterior:
        """What is known of a task after its rows, or, without rows, before any.

        Exact for the squared loss; for the others the quadratic forms are those of the posterior
        itself. The order of rows does not matter.
        """
        if (X is None) != (y is None):
            raise ValueError(f"{'X' if X is None else 'y'}: expected both X and y, or neither")
        known, start, rows = self.known(side, 1), self.standard, self._rows
        if X is None or y is None:
            whole = start.covariance
            sigma = np.diag(start.variances) if len(whole) == 0 else whole
            return Posterior.of(rows, start.of(known)[0], sigma)
        if is_sparse(X):
            raise ValueError("X: expected dense rows; sparse_posterior takes sparse ones")
        inputs, labels = rows.check(X, y)
        weight = row_weights(sample_weight, len(labels))
        used = weight > 0.0
        inputs, labels, weight = inputs[used], labels[used], weight[used]
        cut = np.array([0, len(labels)])
        e = evidence_of(inputs, labels, cut, self.columns, self.loss, known[:, 1:], weight)
        return self.posterior_of(e, inputs)

    @quietly()
    def posterior_of(self, e: Evidence, like: FloatArray | None = None) -> Posterior:
        """What is known of one task after what it has shown."""
        W, V, _ = posteriors(e, self.standard, self.loss, covariance=True)
        return Posterior.of(self._rows, W[0], unpacked(V[0]), like)

    def sparse_posterior(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> SparsePosterior:
        """As `posterior`, of sparse rows, for a prior that was learned from such."""
        start, rows = self._sparse(), self._rows
        return SparsePosterior.of(rows, start, *checked_rows(rows, X, y, sample_weight))

    def _sparse(self) -> Start:
        """This prior as sparse rows need it."""
        if len(self.standard.covariance) or self.columns.centre.any() or self.n_side:
            raise ValueError(
                "X: this prior was learned from dense rows; X.toarray() is dense, and learning "
                "from sparse rows gives a prior for sparse rows"
            )
        return self.standard

    @property
    def _rows(self) -> Rows:
        return Rows(self.columns, self.loss, self.noise)

    def posteriors(
        self,
        tasks: Tasks,
        side: ArrayLike | None = None,
        *,
        covariance: bool = False,
        n_jobs: int | None = None,
    ) -> Posteriors:
        """What is known of many tasks, as `posterior` has it of one.

        Examples
        --------
        >>> prior = Prior(bias=[1.0], covariance=1.0, noise=0.5)
        >>> prior.posteriors([([[1.0], [1.0]], [3.0, 3.0]), ([[1.0]], [1.0])]).weights
        array([[2.6],
               [1. ]])
        """
        check_flag("covariance", covariance)
        e, dtype = self._evidence(tasks, side)
        jobs, columns = check_jobs(n_jobs), self.columns
        start, loss = self.standard, self.loss
        found: FloatArray | None = None
        if isinstance(e, SparseEvidence):
            if covariance:
                raise ValueError("covariance: expected False with sparse rows; see posterior")
            W = sparse_weights(e, start, loss, jobs)
        else:
            W, V, _ = posteriors(e, start, loss, covariance=covariance, n_jobs=jobs)
        with quietly():
            if covariance:
                found = columns.covariance(unpacked(V)).astype(dtype)
            known = Posteriors(columns.weights(W).astype(dtype), found)
        return check_answer(known, "tasks, prior")

    def log_likelihood(self, tasks: Tasks, side: ArrayLike | None = None) -> float:
        r"""Logarithm of the density of all labels; for losses other than the squared, a bound.

        For the squared loss it is
        :math:`-\frac12\sum_t [\log\det 2\pi K_t + r_t^\top K_t^{-1} r_t]` with
        :math:`K_t = X_t\Sigma X_t^\top + bI` and :math:`r_t = y_t - X_t h`.

        Examples
        --------
        >>> prior = Prior(bias=[0.0], covariance=1.0)
        >>> print(round(prior.log_likelihood([([[1.0]], [1.0])]), 4))  # of N(0, 2) at 1
        -1.5155
        """
        e, _ = self._evidence(tasks, side)
        start, loss, way = self.standard, self.loss, plan(e)
        with quietly():
            moments = first_moments(e, start, loss)
            settle(e, way, start, loss, moments)
            sums = take_pass(e, way, start, loss, moments)
            return check_answer(sums.log_likelihood(start, loss, e.n_rows), "tasks, prior")

    @quietly()
    def _evidence(self, tasks: Tasks, side: ArrayLike | None) -> tuple[AnyEvidence, type]:
        task_set = as_task_set(tasks)
        if task_set.n_features != self.n_features:
            raise ValueError(
                f"tasks: expected {self.n_features} columns, found {task_set.n_features}"
            )
        self.loss.check_labels(task_set.y, task_set.place)
        if task_set.sparse:
            self._sparse()
        X, y, cuts, known = task_set.inputs, task_set.y, task_set.offsets, None
        if self.n_side or side is not None:
            known = self.known(side, len(task_set))[:, 1:]
        e = any_evidence(X, y, cuts, self.columns, self.loss, known)
        return e, task_set.dtype.type

    def known(self, side: ArrayLike | None, count: int) -> Matrix:
        """``(1, s)`` as rows."""
        return known_rows(side, count, self.n_side)
