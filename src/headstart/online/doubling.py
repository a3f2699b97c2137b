"""Streams that learn again whenever the number of their rows is a power of two, and at the end.

Rows are refused for what they are, never for what came before them. So where all rows together
cannot be learned from, the stream goes on with the start it has, and the end of it says why.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from headstart._core.answers import RangeError
from headstart.meta.prior import Prior
from headstart.online.stream import Chunk, Positions, Stream


def doublings(seen: int, more: int) -> Iterator[tuple[slice, bool]]:
    """Cut more rows after those seen where their number is a power of two, which is said of each.

    Examples
    --------
    >>> list(doublings(3, 3))
    [(slice(0, 1, None), True), (slice(1, 3, None), False)]
    """
    first = 0
    while first < more:
        doubled = 1 << seen.bit_length()
        last = min(more, first + doubled - seen)
        seen += last - first
        yield slice(first, last), seen == doubled
        first = last


class Doubling(Stream):
    """A stream that adds rows to what it keeps, and learns from all of them now and then."""

    n_jobs: int
    _prior: Prior | None

    @abstractmethod
    def _add(self, chunk: Chunk, entity: Positions, rows: slice) -> None:
        """Keep these rows of a chunk."""

    @abstractmethod
    def _learn(self, *, warns: bool) -> None:
        """Learn from all rows that are kept."""

    def _take(self, chunk: Chunk, entity: Positions) -> None:
        for rows, learns in doublings(self.n_rows, len(chunk.y)):
            self._add(chunk, entity, rows)
            if learns:
                self._learn_midway()

    def _learn_midway(self) -> None:
        """Learn, if these rows can be learned from; the first must be."""
        try:
            self._learn(warns=False)
        except RangeError:
            if self._prior is None:
                raise

    def _fit(
        self,
        chunk: Chunk,
        entity: Positions,
        n_jobs: int,
        rng: np.random.Generator | None,  # noqa: ARG002 - the order of tasks is of no meaning
    ) -> None:
        self.n_jobs = n_jobs
        self._add(chunk, entity, slice(0, len(entity)))
        self._finish()
