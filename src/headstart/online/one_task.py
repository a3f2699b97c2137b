"""One task that starts from a given bias."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import DTypeLike

from headstart._core.checks import FloatArray, Vector
from headstart.online.bias_stream import BiasStream
from headstart.online.settings import Settings
from headstart.online.stream import Chunk
from headstart.tasks.ids import read_ids


class OneTask:
    """The weights of one task after its rows: a stream of one entity whose bias never moves.

    Parameters
    ----------
    settings : Settings
        Its `step` and `task_size` are of no meaning.
    start : the bias, d + 1 numbers
    dtype : of the weights, float32 or float64 as the inputs

    Examples
    --------
    >>> from headstart.losses import get_loss
    >>> settings = Settings(get_loss("absolute"), reg=1.0, predictor="last", fit_intercept=False)
    >>> task = OneTask(settings, start=np.array([4.0, 2.0, 0.0]))
    >>> task.fit(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([4.5, 7.0]))
    array([4.5, 2. , 0. ])
    """

    def __init__(self, settings: Settings, start: Vector, dtype: DTypeLike = np.float64) -> None:
        fixed = replace(settings, step=0.0, task_size=None)
        self._stream = BiasStream(fixed, start.size - 1, dtype, start)

    def fit(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """The weights after all rows of the task, d + 1 numbers; these must be the first rows.

        The constant column has the root mean square of all of them, if its value is not given.
        """
        self._stream.fit(_chunk(X, y))
        return self._weights()

    def take(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """The weights after these rows too; any cutting of the same rows gives the same bits."""
        self._stream.take(_chunk(X, y))
        return self._weights()

    def _weights(self) -> FloatArray:
        own, (row,) = self._stream.weights(np.zeros(1, np.int64))
        weights: FloatArray = own[row].copy()
        return weights


def _chunk(X: FloatArray, y: FloatArray) -> Chunk:
    return Chunk(X, y, read_ids("groups", np.zeros(len(y), np.int64)))
