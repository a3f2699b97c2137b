"""Learning across tasks: where a new task should start."""

from headstart.meta.bias import BiasResult, BiasState, continue_bias, learn_bias, start_bias

__all__ = ["BiasResult", "BiasState", "continue_bias", "learn_bias", "start_bias"]
