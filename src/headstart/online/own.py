"""Own weights of entities under the newest prior, found when they are asked for."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from threading import RLock

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from headstart._core.answers import quietly
from headstart._core.checks import FloatArray, Vector, warn_user
from headstart.inner.posterior import packed, posteriors
from headstart.inner.posterior.evidence import Evidence
from headstart.inner.posterior.passes import quadratic_forms
from headstart.losses import Loss
from headstart.meta.prior import Prior, Summaries
from headstart.meta.prior.one import Pull
from headstart.online.doubling import Doubling
from headstart.online.stream import Positions
from headstart.tasks import TaskSet
from headstart.tasks.columns import Array, with_intercept

Matrix = NDArray[np.float64]

AT_ONCE = 1 << 14  # entities whose posteriors are found together


@dataclass(frozen=True)
class PriorSettings:
    """What is learned and in which shape.

    `side` names the columns known of an entity; with `base` the last feature is what a model of
    all rows predicts.
    """

    loss: Loss
    metric: str
    fit_intercept: bool
    side: tuple[str | int, ...] = ()
    base: bool = False


class OwnWeights(Doubling):
    """A prior, what is kept of every entity, and its own weights."""

    settings: PriorSettings

    def __init__(self, settings: PriorSettings, n_features: int, dtype: DTypeLike) -> None:
        summaries = Summaries(settings.loss, fit_intercept=settings.fit_intercept)
        super().__init__(summaries.index)
        self.settings, self.n_jobs = settings, 1
        self.summaries: Summaries | None = summaries
        self._prior: Prior | None = None
        self._pull: tuple[Prior, Pull] | None = None  # the same, as one entity needs it
        self._own = np.zeros((0, n_features + 1), dtype)
        self._fresh = np.zeros(0, np.bool_)  # whether own weights are of all that is known
        self._side = np.zeros((0, len(settings.side)))

    @property
    def _reading(self) -> RLock:
        """The lock of who reads or writes what is known of entities."""
        return self.lock if self.summaries is None else self.summaries.lock

    @property
    def prior(self) -> Prior:
        """The newest prior."""
        if self._prior is None:
            raise ValueError("prior: expected rows first, found none")
        return self._prior

    @property
    def kept(self) -> Summaries:
        """What is kept of entities beside their weights."""
        if self.summaries is None:
            raise ValueError(
                "summaries: they were dropped, so that nothing can be learned, and no variance is "
                "known of known ids; fit again"
            )
        return self.summaries

    @property
    def start(self) -> Vector:
        """Where a task starts of which nothing is known: d + 1 numbers."""
        return self._padded(self.prior.bias)

    def _padded(self, weights: Array) -> Array:
        """Weights with an intercept, which is 0 if there is none."""
        if self.settings.fit_intercept:
            return weights
        return with_intercept(weights, False)

    def _make_room(self) -> None:
        room, more = len(self._fresh), self.ids.room
        if more > room:
            more = max(64, more, room + room // 2)
            own = np.zeros((more, self._own.shape[1]), self._own.dtype)
            fresh, side = np.zeros(more, np.bool_), np.zeros((more, self._side.shape[1]))
            own[:room], fresh[:room], side[:room] = self._own, self._fresh, self._side
            self._own, self._fresh, self._side = own, fresh, side

    def _refresh(self, numbers: Positions) -> None:
        """Find the own weights of those of these entities that have shown more, or all anew."""
        if self.summaries is None:
            return
        stale = numbers[~self._fresh[numbers]]
        for first in range(0, len(stale), AT_ONCE):
            block = stale[first : first + AT_ONCE]
            with self.kept.lock:
                prior = self.prior
                e = self._shown(block, prior)
                W, _, _ = posteriors(e, prior.standard, prior.loss, n_jobs=self.n_jobs)
                self._own[block] = self._padded(prior.columns.weights(W))
                self._fresh[block] = True

    def _shown(self, numbers: Positions, prior: Prior) -> Evidence:
        e = self.kept.shown(numbers, prior.columns)
        side = self._side[numbers] if self._side.shape[1] else None
        return e._replace(side=prior.known(side, len(numbers)))

    def weights(self, positions: Positions) -> tuple[FloatArray, Positions]:
        """Own weights as rows of d + 1, and for each position the row among them.

        These are copies, which no one who learns will write to.
        """
        room = len(self._fresh)
        if positions.max(initial=-1) >= room:  # another thread is adding them
            positions = np.where(positions < room, positions, -1)
        numbers, place = _different(positions, room)
        self._refresh(numbers)
        with self._reading:
            return self._own[numbers], place

    @property
    def dtype(self) -> DTypeLike:
        """The float type of the inputs."""
        return self._own.dtype

    def predict_one(self, x: FloatArray, key: Hashable) -> float:
        """The prediction for one row, by an entity's own weights if it is known.

        By `vdot`, which is quicker than ``@`` and leaves overflow to be reported by the caller.
        """
        (number,) = self.ids.find((key,))
        if not 0 <= number < len(self._fresh):
            start = self.start
            return float(np.vdot(start[:-1], x)) + float(start[-1])
        with self._reading:
            if not self._fresh[number]:
                if self.settings.loss.is_squared:
                    return self._predict_stale(x, number)
                with quietly():
                    self._refresh(np.array([number]))
            own = self._own[number]
            return float(np.vdot(own[:-1], x)) + float(own[-1])

    def _predict_stale(self, x: FloatArray, number: int) -> float:
        """The prediction of an entity that has shown more than its own weights know."""
        if self._pull is None or self._pull[0] is not self._prior:
            self._pull = self.prior, self.kept.pull(self.prior)
        return self.kept.predict_one(x, self._pull[1], number)

    def variance(self, X: FloatArray, positions: Positions) -> Vector:
        """The variance of the predictions of rows, given all that is known."""
        prior = self.prior
        inputs, out = prior.columns.rows(X), np.empty(len(X))
        nobody = positions < 0
        start, unknown = prior.standard, np.flatnonzero(nobody)
        whole = start.covariance if start.covariance.size else np.diag(start.variances)
        none = np.zeros(len(unknown), np.int64)
        out[unknown] = quadratic_forms(inputs[unknown], packed(whole)[None], none)
        order = np.argsort(positions, kind="stable")[np.count_nonzero(nobody) :]
        numbers, begin = np.unique(positions[order], return_index=True)
        ends = np.append(begin[1:], len(order))
        for first in range(0, len(numbers), AT_ONCE):
            block = slice(first, first + AT_ONCE)
            with self.kept.lock:
                e = self._shown(numbers[block], prior)
            _, V, _ = posteriors(e, prior.standard, prior.loss, covariance=True, n_jobs=self.n_jobs)
            rows = order[begin[first] : ends[block][-1]]
            place = np.repeat(np.arange(len(V)), (ends - begin)[block])
            out[rows] = quadratic_forms(inputs[rows], V, place)
        return out

    def adapted(
        self, X: FloatArray, y: FloatArray, offsets: Positions, side: Matrix | None = None
    ) -> FloatArray:
        """Weights of new tasks, shape (tasks, d + 1)."""
        tasks = TaskSet.of(X, y, offsets, np.arange(len(offsets) - 1))
        return self._padded(self.prior.posteriors(tasks, side).weights)


def warn_unsettled(prior: Prior) -> None:
    """Warn if a prior was still changing when learning ended."""
    if prior.converged:
        return
    hint = "; a simpler metric, such as 'diagonal', settles sooner"
    warn_user(
        f"the prior still changes after {prior.n_iter} passes"
        + (hint if prior.metric == "full" else ""),
        ConvergenceWarning,
    )


def _different(positions: Positions, room: int) -> tuple[Positions, Positions]:
    """The different positions that are not -1, and the place of each position among them."""
    if 8 * len(positions) < room:
        different, place = np.unique(positions, return_inverse=True)
        unknown = int(np.searchsorted(different, 0))  # how many of them are -1: none or one
        return different[unknown:], place - unknown
    there = np.zeros(room + 1, np.bool_)
    there[positions] = True  # -1 is the last
    there[-1] = False
    place = np.where(there, np.cumsum(there) - 1, -1)
    return np.flatnonzero(there), place[positions]
