"""The learned prior: where tasks start, how far and in which directions they go, together."""

from headstart.meta.prior.learn import learn_prior
from headstart.meta.prior.posterior import Posterior, Posteriors
from headstart.meta.prior.prior import Prior
from headstart.meta.prior.stream import PriorState, continue_prior, start_prior
from headstart.meta.prior.summaries import Summaries
from headstart.meta.prior.units import METRICS

__all__ = [
    "METRICS",
    "Posterior",
    "Posteriors",
    "Prior",
    "PriorState",
    "Summaries",
    "continue_prior",
    "learn_prior",
    "start_prior",
]
