r"""What is known of a task's weights after its rows, when they were spread as :math:`N(h,\Sigma)`.

A row costs :math:`\ell(\langle x, w\rangle, y)/b`. Under each loss's quadratic form,
:math:`\ell(z) \le \frac\omega2(z-\tau)^2 + c`, the posterior is normal, and a task enters only by

.. math:: A = \sum \omega x x^\top, \quad c = \sum \omega\tau x, \quad q = \sum (\omega\tau^2 + 2c),

.. math:: V = (\Sigma^{-1} + A/b)^{-1}, \qquad w = h + V(c - Ah)/b .

For the squared loss this is exact. For the others :math:`\omega, \tau` belong to the moments of
:math:`z` under the posterior itself, and passes over all rows repeat until both agree: every pass
raises a lower bound of the likelihood.

`dense` works with V for many tasks at once; `low_rank` with matrices of the size of a task's rows,
for tasks of few rows and many columns.
"""

from headstart.inner.posterior.evidence import Evidence, packed, packed_size, unpacked
from headstart.inner.posterior.passes import Totals, posteriors, take_pass
from headstart.inner.posterior.state import Moments

__all__ = [
    "Evidence",
    "Moments",
    "Totals",
    "packed",
    "packed_size",
    "posteriors",
    "take_pass",
    "unpacked",
]
