"""What the paper proves, and what follows: parameters, bounds, certificates and both sides of them.

Where the printed paper is wrong, the docstring gives the corrected statement and says so.
"""

from headstart.theory.learned import conditional_bias, learned_bias, meta_rate
from headstart.theory.meta import (
    GradientError,
    MetaRegret,
    gradient_error,
    meta_gradient,
    meta_objective,
    meta_regret,
)
from headstart.theory.values import certificate, dual_value, last_distance, primal_value
from headstart.theory.within import (
    Prescription,
    erm_generalisation,
    erm_stability,
    fixed_bias,
    fixed_bias_bound,
    sgd_regret,
    var_h,
)

__all__ = [
    "GradientError",
    "MetaRegret",
    "Prescription",
    "certificate",
    "conditional_bias",
    "dual_value",
    "erm_generalisation",
    "erm_stability",
    "fixed_bias",
    "fixed_bias_bound",
    "gradient_error",
    "last_distance",
    "learned_bias",
    "meta_gradient",
    "meta_objective",
    "meta_rate",
    "meta_regret",
    "primal_value",
    "sgd_regret",
    "var_h",
]
