r"""The exact within-task solution by its dual, certified by the duality gap.

.. math:: w_h = \arg\min_w \Phi_h(w), \qquad
          \Phi_h(w) = \frac1n\sum_i \ell_i(\langle x_i, w\rangle) + \frac\lambda2\|w-h\|^2
"""

from headstart.inner.erm.batch import solve_batch
from headstart.inner.erm.dual import workspace
from headstart.inner.erm.many import erm_weights, solve_one
from headstart.inner.erm.solve import MAX_ITER, TOLERANCE, ERMResult, biased_erm, solve_task
from headstart.inner.erm.unsolved import Unsolved, warn_of_gaps

__all__ = [
    "MAX_ITER",
    "TOLERANCE",
    "ERMResult",
    "Unsolved",
    "biased_erm",
    "erm_weights",
    "solve_batch",
    "solve_one",
    "solve_task",
    "warn_of_gaps",
    "workspace",
]
