r"""Algorithms 1 and 2 in the Hilbert space of a kernel, exactly: for few tasks.

A bias is a combination of mapped rows, and so is every iterate, so that the map :math:`\varphi`
is met only in products :math:`k(x, x') = \langle\varphi(x), \varphi(x')\rangle`. With the
subgradients :math:`u_{s,i}` of Algorithm 1 on task s,

.. math:: h_t = -\gamma\sum_{s<t}\sum_i\frac{u_{s,i}}{n_s}\varphi(x_{s,i}), \qquad
          \bar h = -\gamma\sum_{s\le T}\frac{T + 1 - s}{T + 1}\sum_i
          \frac{u_{s,i}}{n_s}\varphi(x_{s,i}),

the mean of :math:`h_1, \dots, h_{T+1}`. Learning from N rows takes :math:`N^2 / 2` products, and
a prediction N of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import (
    Vector,
    as_floats,
    check_choice,
    check_number,
    check_task,
)
from headstart.inner.sgd.batch import gram_pass
from headstart.inner.sgd.one_pass import AVERAGE, averaging
from headstart.losses import Loss, get_loss
from headstart.tasks import Tasks, as_task_set

Matrix = NDArray[np.float64]
Kernel = str | Callable[[Matrix, Matrix], Matrix]


@dataclass(frozen=True)
class KernelBias:
    r"""A vector of the kernel's space, :math:`\sum_i c_i\varphi(x_i)`: a bias, or a task's weights.

    Attributes
    ----------
    rows : the :math:`x_i`, shape (N, d)
    coefficients : the :math:`c_i`
    kernel : a name, or a function of two tables
    reg, loss : with which tasks are learned
    """

    rows: Matrix
    coefficients: Vector
    kernel: Kernel
    reg: float
    loss: Loss

    def predict(self, X: ArrayLike) -> Vector:
        """The scores of rows: of a new task whose rows are not known yet, or of an adapted one."""
        return check_answer(self._scores(self._inputs(X)), "X")

    def adapt(self, X: ArrayLike, y: ArrayLike) -> KernelBias:
        """The weights of a task after its rows: those of Algorithm 1 from here, averaged."""
        labels = check_task(X, y)[1].astype(np.float64)
        inputs = self._inputs(X)
        self.loss.check_labels(labels)
        shares = averaging(AVERAGE, False, len(labels)) / self.reg
        with quietly():
            moved = -shares * self._subgradients(inputs, labels)
        return replace(
            self,
            rows=np.vstack([self.rows, inputs]),
            coefficients=check_answer(np.append(self.coefficients, moved), "X, y"),
        )

    def _subgradients(self, X: Matrix, y: Vector) -> Vector:
        """Those of Algorithm 1 on a task that starts here."""
        K, lams, U = self._products(X, X), np.array([self.reg]), np.empty((len(y), 1))
        gram_pass(K, self._scores(X)[:, None], y, lams, self.loss.form, False, U)
        return np.asarray(U[:, 0])

    def _inputs(self, X: ArrayLike) -> Matrix:
        inputs = as_floats("X", X, 2).astype(np.float64)
        if inputs.shape[1] != self.rows.shape[1]:
            raise ValueError(
                f"X: expected {self.rows.shape[1]} columns as in the tasks learned from, "
                f"found {inputs.shape[1]}"
            )
        return inputs

    def _scores(self, X: Matrix) -> Vector:
        with quietly():
            return np.asarray(self._products(X, self.rows) @ self.coefficients)

    def _products(self, A: Matrix, B: Matrix) -> Matrix:
        """The kernel of every row of A with every row of B."""
        if not len(B):
            return np.empty((len(A), 0))
        with quietly():
            if isinstance(self.kernel, str):
                found = pairwise_kernels(A, B, self.kernel)
            else:
                try:
                    found = self.kernel(A, B)
                except TypeError as error:
                    raise TypeError(f"kernel: as a function of two tables, {error}") from error
        products = as_floats("kernel", found, 2).astype(np.float64, order="C")
        if products.shape != (len(A), len(B)):
            raise ValueError(
                f"kernel: expected an array of shape {(len(A), len(B))} for tables of {len(A)} "
                f"and {len(B)} rows, found {products.shape}"
            )
        return products


def learn_kernel_bias(
    tasks: Tasks, kernel: Kernel, reg: float, step: float, loss: str | Loss = "absolute"
) -> KernelBias:
    r"""Learn a bias in a kernel's space from tasks, taken once and in order.

    With ``kernel="linear"`` it is `learn_bias`, to rounding. Use it where tasks are few: for many,
    learn a bias of random features (scikit-learn's ``RBFSampler`` or ``Nystroem``), which
    approaches this one as they grow in number.

    Parameters
    ----------
    tasks : TaskSet, or list of pairs (X, y)
    kernel : str or callable
        A name in scikit-learn's ``pairwise_kernels``, such as "rbf" or "polynomial", with
        its default parameters; or a function that gives the products of the rows of two tables.
    reg : float > 0
    step : float >= 0
        As in `learn_bias`.
    loss : str or Loss

    Returns
    -------
    KernelBias
        ``predict`` scores rows of a task of which nothing is known; ``adapt(X, y)`` gives the
        weights of one after its rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3.0, 3.0, (100, 10, 1))
    >>> level = rng.normal(size=(100, 1))
    >>> tasks = list(zip(X, np.sin(X[:, :, 0]) + level))      # one curve, at many levels
    >>> bias = learn_kernel_bias(tasks, "rbf", reg=0.3, step=1.0)
    >>> here = np.array([[-1.5], [0.0], [1.5]])
    >>> print(bias.predict(here).round(1), np.sin(here[:, 0]).round(1))
    [-1.  -0.1  0.7] [-1.  0.  1.]
    """
    task_set, chosen = as_task_set(tasks), get_loss(loss)
    lam, gamma = chosen.regularised(reg).lam, check_number("step", step, at_least=0.0)
    if not callable(kernel):
        check_choice("kernel", kernel, sorted(PAIRWISE_KERNEL_FUNCTIONS), "or a function")
    if task_set.sparse:
        raise ValueError("tasks: a kernel needs dense rows, found sparse ones")
    chosen.check_labels(task_set.y, task_set.place)
    X, y = np.asarray(task_set.X, np.float64), np.asarray(task_set.y, np.float64)
    offsets, T = task_set.offsets, len(task_set)
    coefficients = np.zeros(len(y))
    for t in range(T):
        begin, end = offsets[t], offsets[t + 1]
        bias = KernelBias(X[:begin], coefficients[:begin], kernel, lam, chosen)
        u = bias._subgradients(X[begin:end], y[begin:end])
        with quietly():
            coefficients[begin:end] = -gamma / (end - begin) * u
    # a task's rows are in the iterates after it: T - t of all T + 1, counting from 0
    coefficients *= np.repeat((T - np.arange(T)) / (T + 1), np.diff(offsets))
    return KernelBias(X, check_answer(coefficients, "tasks, reg, step"), kernel, lam, chosen)
