"""Every public name with a call that is right: what the attack begins with.

A name that is public and not here fails `test_every_public_name_is_attacked`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from reference import algorithm_1, algorithm_2, constant_steps, normal_posterior

import headstart as hs

from .world import Call, World

Maker = Callable[[World], Call]
REGISTRY: dict[str, tuple[Maker, float]] = {}  # by name: the call, and how often it is made


def attack(name: str, often: float = 1.0) -> Callable[[Maker], Maker]:
    """Register the call of a public name."""

    def register(make: Maker) -> Maker:
        REGISTRY[name] = make, often
        return make

    return register


ONE = {"X": "table", "y": "vector", "bias": "vector", "reg": "number", "loss": "choice"}
VISIT = {"order": "choice", "random_state": "seed"}
MANY = {"tasks": "tasks", "reg": "number", "loss": "choice", "inner": "choice", "n_jobs": "jobs"}


def loss_parameter(name: str) -> float:
    return hs.get_loss(name).parameters[0]


@attack("biased_sgd", 3.0)
def _(w: World) -> Call:
    loss = w.loss
    arguments = {"X": w.X, "y": w.y, "bias": w.bias, "reg": w.reg, "loss": loss}

    def naive() -> Any:
        p = algorithm_1(w.X, w.y, w.bias, w.reg, loss, loss_parameter(loss))
        return p.average, p.last, p.dual

    # a hinge may be met exactly at its kink, or beside it by rounding
    return Call(hs.biased_sgd, arguments, ONE | VISIT, None if w.integer or w.binary else naive)


@attack("biased_erm", 2.0)
def _(w: World) -> Call:
    arguments = {"X": w.X, "y": w.y, "bias": w.bias, "reg": w.reg, "loss": w.any_loss}
    roles = ONE | {
        "solver": "choice",
        "tol": "number",
        "max_iter": "number",
        "smoothness": "choice",
    }
    return Call(hs.biased_erm, arguments, roles)


@attack("sgd_batch", 2.0)
def _(w: World) -> Call:
    reg, loss = float(np.float16(w.reg)), w.loss  # rounded, another reg may take another side
    regs = [reg, 2.0 * reg]
    arguments = {
        "X": w.X,
        "y": w.y,
        "biases": np.stack([w.bias, -w.bias]),
        "regs": regs,
        "loss": loss,
    }
    roles = ONE | {"biases": "table", "regs": "vector"}
    return Call(hs.sgd_batch, arguments, {k: v for k, v in roles.items() if k in arguments})


@attack("weights_from_dual")
def _(w: World) -> Call:
    dual = w.rng.integers(-8, 9, w.n) / 8.0
    arguments = {"X": w.X, "bias": w.bias, "reg": w.reg, "dual": dual, "predictor": "last"}
    roles = {
        "X": "table",
        "bias": "vector",
        "reg": "number",
        "dual": "vector",
        "predictor": "choice",
    }
    return Call(
        hs.weights_from_dual, arguments, roles, lambda: w.bias - w.X.T @ dual / (w.n * w.reg)
    )


@attack("SGDState.start")
def _(w: World) -> Call:
    arguments = {"bias": w.bias, "reg": w.reg, "loss": w.loss}
    return Call(hs.SGDState.start, arguments, {k: ONE[k] for k in arguments})


@attack("SGDState.update")
def _(w: World) -> Call:
    loss = w.loss
    state = hs.SGDState.start(w.bias, w.reg, loss)

    def update(X: Any, y: Any) -> Any:
        new = state.update(X, y)
        return new.average, new.last

    def naive() -> Any:
        p = algorithm_1(w.X, w.y, w.bias, w.reg, loss, loss_parameter(loss))
        return p.average, p.last

    oracle = None if w.integer or w.binary else naive
    return Call(update, {"X": w.X, "y": w.y}, {"X": "table", "y": "vector"}, oracle)


@attack("task_weights", 2.0)
def _(w: World) -> Call:
    loss, inner = w.loss, w.pick(["sgd", "constant", "erm"])
    arguments = {
        "tasks": w.some_tasks(),
        "bias": w.bias,
        "reg": w.reg,
        "loss": loss,
        "inner": inner,
    }
    roles = MANY | VISIT | {"bias": "vector", "predictor": "choice"}

    def naive() -> Any:
        run = constant_steps if inner == "constant" else algorithm_1
        c = loss_parameter(loss)
        return np.array([run(X, y, w.bias, w.reg, loss, c).average for X, y in w.pairs])

    return Call(
        hs.task_weights,
        arguments,
        roles,
        None if w.integer or w.binary or inner == "erm" else naive,
    )


@attack("evaluate_bias", 2.0)
def _(w: World) -> Call:
    shots, queries = w.shots_and_queries()
    arguments = {
        "shots": shots, "queries": queries, "bias": w.bias, "reg": w.reg, "loss": w.loss,
        "inner": w.pick(["sgd", "constant", "erm"]),
    }  # fmt: skip
    roles = MANY | VISIT | {"bias": "vector", "predictor": "choice", "shots": "tasks"}
    return Call(hs.evaluate_bias, arguments, roles | {"queries": "tasks"})


@attack("learn_bias", 2.0)
def _(w: World) -> Call:
    loss, inner = w.loss, w.pick(["sgd", "constant", "erm"])
    arguments = {
        "tasks": w.some_tasks(), "reg": w.reg, "step": w.step, "loss": loss, "inner": inner,
        "initial": w.bias, "keep_path": True,
    }  # fmt: skip
    roles = MANY | VISIT | {"step": "number", "initial": "vector", "batch_size": "number"}

    def naive() -> Any:
        path = algorithm_2(w.pairs, w.reg, w.step, loss, loss_parameter(loss), w.bias)
        return path.mean(axis=0), path[-1], path

    oracle = naive if inner == "sgd" and not w.integer and not w.binary else None
    return Call(hs.learn_bias, arguments, roles, oracle)


@attack("learn_kernel_bias")
def _(w: World) -> Call:
    arguments = {
        "tasks": w.some_tasks(), "kernel": w.pick(["rbf", "linear"]), "reg": w.reg,
        "step": w.step, "loss": w.loss,
    }  # fmt: skip
    roles = MANY | {"step": "number", "kernel": "choice"}
    return Call(hs.learn_kernel_bias, arguments, {k: v for k, v in roles.items() if k in arguments})


@attack("KernelBias.predict")
def _(w: World) -> Call:
    loss = w.loss
    bias = hs.learn_kernel_bias(w.pairs, "linear", w.reg, w.step, loss)

    def linear() -> Any:
        return w.X @ hs.learn_bias(w.pairs, w.reg, w.step, loss).bias

    oracle = None if w.integer else linear  # rounding can flip a subgradient at a kink
    return Call(bias.predict, {"X": w.X}, {"X": "table"}, oracle)


@attack("KernelBias.adapt")
def _(w: World) -> Call:
    bias = hs.learn_kernel_bias(w.pairs, "rbf", w.reg, w.step, w.loss)
    return Call(bias.adapt, {"X": w.X, "y": w.y}, {"X": "table", "y": "vector"})


@attack("start_bias")
def _(w: World) -> Call:
    arguments = {"n_features": w.d, "initial": w.bias}
    return Call(hs.start_bias, arguments, {"n_features": "number", "initial": "vector"})


@attack("continue_bias")
def _(w: World) -> Call:
    arguments = {
        "state": hs.start_bias(w.d), "tasks": w.some_tasks(), "reg": w.reg, "step": w.step,
        "loss": w.loss,
    }  # fmt: skip
    roles = MANY | VISIT | {"step": "number", "state": "object", "batch_size": "number"}
    return Call(hs.continue_bias, arguments, roles)


def a_pair(w: World) -> Any:
    return w.shots_and_queries()


@attack("select_online", 0.2)
def _(w: World) -> Call:
    arguments = {
        "train": w.tasks, "valid": a_pair(w), "test": a_pair(w), "regs": np.array([0.5, 2.0]),
        "steps": np.array([0.25, 1.0]), "loss": w.loss, "inner": w.pick(["sgd", "erm"]),
        "evaluate_with": w.pick(["sgd", "constant"]),
    }  # fmt: skip
    roles = {
        "train": "tasks", "valid": "pair", "test": "pair", "regs": "vector", "steps": "vector",
        "loss": "choice", "inner": "choice", "evaluate_with": "choice", "every": "number",
        "n_jobs": "jobs", **VISIT,
    }  # fmt: skip
    return Call(hs.select_online, arguments, roles)


@attack("select_reg", 0.7)
def _(w: World) -> Call:
    arguments = {
        "valid": a_pair(w), "test": a_pair(w), "bias": w.bias, "regs": np.array([0.5, 2.0]),
        "loss": w.loss, "evaluate_with": w.pick(["sgd", "constant", "erm"]),
    }  # fmt: skip
    roles = {
        "valid": "pair", "test": "pair", "bias": "vector", "regs": "vector", "loss": "choice",
        "evaluate_with": "choice", "n_jobs": "jobs", **VISIT,
    }  # fmt: skip
    return Call(hs.select_reg, arguments, roles)


PRIOR_OPTIONS = {
    "metric": "choice", "tol": "number", "max_iter": "passes", "n_jobs": "jobs",
    "fit_intercept": "number", "shrink": "number", "max_tasks": "number", "side": "table",
    "sample_weight": "vector",
}  # fmt: skip


@attack("learn_prior", 0.3)
def _(w: World) -> Call:
    loss = "logistic" if w.binary else w.pick(["squared", "squared", "huber"])
    arguments = {
        "tasks": w.some_tasks(), "loss": loss, "metric": w.pick(["full", "diagonal", "isotropic"]),
        "max_iter": 10, "fit_intercept": bool(w.rng.random() < 0.5),
        "sample_weight": w.rng.integers(1, 3, w.n).astype(float),
    }  # fmt: skip
    return Call(hs.learn_prior, arguments, {"tasks": "tasks", "loss": "choice"} | PRIOR_OPTIONS)


@attack("start_prior")
def _(w: World) -> Call:
    arguments = {"loss": w.any_loss, "metric": "auto", "fit_intercept": False}
    roles = {"loss": "choice", "metric": "choice", "fit_intercept": "number"}
    return Call(hs.start_prior, arguments, roles)


@attack("continue_prior", 0.02)
def _(w: World) -> Call:
    state = hs.start_prior("logistic" if w.binary else "squared")
    pairs = w.pairs * int(w.pick([1, 12, 40]))

    def two_steps(state: Any, tasks: Any) -> Any:
        after = hs.continue_prior(hs.continue_prior(state, tasks), tasks)
        return after.prior

    roles = {"state": "object", "tasks": "tasks"}
    return Call(two_steps, {"state": state, "tasks": pairs}, roles)


@attack("Prior")
def _(w: World) -> Call:
    arguments = {"bias": w.bias, "covariance": w.covariance(), "noise": 0.5, "loss": "squared"}
    roles = {
        "bias": "vector", "covariance": "table", "noise": "number", "loss": "choice",
        "metric": "choice", "intercept": "number", "side_effects": "table", "columns": "object",
    }  # fmt: skip
    return Call(hs.Prior, arguments, roles)


@attack("Prior.posterior", 2.0)
def _(w: World) -> Call:
    prior = w.prior()
    arguments = {"X": w.X, "y": w.y}
    roles = {"X": "table", "y": "vector", "side": "vector", "sample_weight": "vector"}

    def naive() -> Any:
        found = normal_posterior(w.X, w.y, prior.bias, prior.covariance, np.full(w.n, prior.noise))
        return found.mean, found.covariance

    def posterior(**arguments: Any) -> Any:
        known = prior.posterior(**arguments)
        return known.weights, known.covariance

    oracle = naive if prior.loss == hs.Squared() else None
    return Call(posterior, arguments, roles, oracle)


@attack("Prior.posteriors")
def _(w: World) -> Call:
    arguments = {"tasks": w.some_tasks(), "covariance": bool(w.rng.random() < 0.5)}
    roles = {"tasks": "tasks", "side": "table", "covariance": "number", "n_jobs": "jobs"}
    return Call(w.prior().posteriors, arguments, roles)


@attack("Prior.sparse_posterior", 0.5)
def _(w: World) -> Call:
    diagonal = hs.Prior(w.bias, np.ones(w.d), noise=0.5)

    def posterior(**arguments: Any) -> Any:
        known = diagonal.sparse_posterior(**arguments)
        return known.weights, known.predict(w.X), known.variance(w.X)

    y = w.y
    roles = {"X": "table", "y": "vector", "sample_weight": "vector"}

    def dense() -> Any:
        known = diagonal.posterior(w.X, y)
        return known.weights, known.predict(w.X), known.variance(w.X)

    return Call(posterior, {"X": w.X, "y": y}, roles, dense)


@attack("Prior.log_likelihood")
def _(w: World) -> Call:
    prior = w.prior()

    def naive() -> Any:
        noise = prior.noise
        return sum(
            normal_posterior(X, y, prior.bias, prior.covariance, np.full(len(y), noise))[2]
            for X, y in w.pairs
        )

    roles = {"tasks": "tasks", "side": "table"}
    oracle = naive if prior.loss == hs.Squared() else None
    return Call(prior.log_likelihood, {"tasks": w.some_tasks()}, roles, oracle)


@attack("Prior.predict")
def _(w: World) -> Call:
    roles = {"X": "table", "side": "table"}
    return Call(w.prior().predict, {"X": w.X}, roles, lambda: w.X @ w.bias)


@attack("Prior.start")
def _(w: World) -> Call:
    prior = hs.Prior(w.bias, 1.0, side_effects=np.ones((w.d, 1)))
    return Call(prior.start, {"side": [2.0]}, {"side": "vector"}, lambda: w.bias + 2.0)


@attack("Prior.at")
def _(w: World) -> Call:
    prior = hs.Prior(w.bias, 1.0, side_effects=np.ones((w.d, 1)))
    return Call(prior.at, {"side": [2.0]}, {"side": "vector"})


@attack("Prior.known")
def _(w: World) -> Call:
    prior = hs.Prior(w.bias, 1.0, side_effects=np.ones((w.d, 1)))
    return Call(prior.known, {"side": [[2.0]], "count": 1}, {"side": "table"})


def a_posterior(w: World) -> hs.Posterior:
    return w.prior().posterior(w.X, w.y)


@attack("Posterior.predict")
def _(w: World) -> Call:
    known = a_posterior(w)
    return Call(known.predict, {"X": w.X}, {"X": "table"}, lambda: w.X @ known.weights)


@attack("Posterior.variance")
def _(w: World) -> Call:
    known = a_posterior(w)
    return Call(known.variance, {"X": w.X}, {"X": "table"})


@attack("Posterior.interval")
def _(w: World) -> Call:
    w.binary, w.y = False, np.abs(w.y)
    roles = {"X": "table", "coverage": "number"}
    return Call(a_posterior(w).interval, {"X": w.X, "coverage": 0.5}, roles)


@attack("Posterior.probability")
def _(w: World) -> Call:
    w.binary, w.y = True, np.where(w.y > 0.0, 1.0, -1.0)
    return Call(a_posterior(w).probability, {"X": w.X}, {"X": "table"})


@attack("Posterior.update")
def _(w: World) -> Call:
    prior = w.prior()

    def update(**arguments: Any) -> Any:
        known = prior.posterior().update(**arguments)
        return known.weights, known.covariance

    def at_once() -> Any:
        known = prior.posterior(w.X, w.y)
        return known.weights, known.covariance

    roles = {"X": "table", "y": "vector", "sample_weight": "vector"}
    oracle = at_once if prior.loss == hs.Squared() else None
    return Call(update, {"X": w.X, "y": w.y}, roles, oracle)
