"""The learned prior: where tasks start, how far and in which directions they go, together."""

from headstart.prior.learn import learn_prior
from headstart.prior.posterior import Posterior
from headstart.prior.prior import METRICS, Posteriors, Prior
from headstart.prior.stream import PriorState, continue_prior, start_prior
from headstart.prior.summaries import Summaries

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
