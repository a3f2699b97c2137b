"""Calls of task sets, summaries, losses, theory, environments and evaluation."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from reference import loss_subgradient, loss_value

import headstart as hs
from headstart import theory
from headstart.datasets import load_lenk
from headstart.environments import ClassificationEnvironment, Mixture, RegressionEnvironment

from .registry import attack, loss_parameter
from .world import BINARY, IDS, LABELS, REGRESSION, TRAIN, Call, World


@attack("TaskSet")
def _(w: World) -> Call:
    offsets = np.append(0, np.cumsum(w.sizes)).astype(np.int64)
    arguments = {"inputs": w.X, "y": w.y, "offsets": offsets, "ids": np.arange(w.n_tasks)}
    roles = {"inputs": "table", "y": "vector", "offsets": "vector", "ids": "vector"}
    return Call(hs.TaskSet, arguments, roles)


@attack("TaskSet.from_arrays", 2.0)
def _(w: World) -> Call:
    arguments = {"X": w.X, "y": w.y, "groups": w.owner}
    return Call(
        hs.TaskSet.from_arrays, arguments, {"X": "table", "y": "vector", "groups": "ids"},
        lambda: (np.concatenate([X for X, _ in w.pairs]), np.concatenate([y for _, y in w.pairs])),
    )  # fmt: skip


@attack("TaskSet.from_list")
def _(w: World) -> Call:
    roles = {"tasks": "tasks", "ids": "ids"}
    return Call(hs.TaskSet.from_list, {"tasks": w.pairs, "ids": np.arange(w.n_tasks)}, roles)


@attack("TaskSet.subset")
def _(w: World) -> Call:
    return Call(w.tasks.subset, {"indices": [0]}, {"indices": "vector"}, None, (IndexError,))


@attack("TaskSet.split_rows")
def _(w: World) -> Call:
    tasks = hs.TaskSet.from_list([(X.repeat(2, axis=0), y.repeat(2)) for X, y in w.pairs])
    return Call(tasks.split_rows, {"n_train": 1}, {"n_train": "number"})


@attack("TaskSet.astype")
def _(w: World) -> Call:
    return Call(w.tasks.astype, {"dtype": np.float32}, {"dtype": "dtype"})


@attack("TaskSet.rows")
def _(w: World) -> Call:
    roles = {"order": "choice", "random_state": "seed"}
    return Call(w.tasks.rows, {"order": "resample", "random_state": 0}, roles)


@attack("TaskSet.resampled")
def _(w: World) -> Call:
    return Call(w.tasks.resampled, {"random_state": 0}, {"random_state": "seed"})


@attack("TaskSet.place")
def _(w: World) -> Call:
    return Call(w.tasks.place, {"row": 0}, {})


@attack("TaskSet.__getitem__")
def _(w: World) -> Call:
    def item(t: Any) -> Any:
        return w.tasks[t]

    return Call(item, {"t": 0}, {"t": "number"}, None, (IndexError,))


SUMMARY = {"X": "table", "y": "vector", "ids": "ids", "sample_weight": "vector"}


@attack("Summaries")
def _(w: World) -> Call:
    roles = {"loss": "choice", "fit_intercept": "number", "keep": "number"}
    return Call(hs.Summaries, {"loss": w.any_loss, "fit_intercept": True, "keep": 2}, roles)


@attack("Summaries.add", 2.0)
def _(w: World) -> Call:
    prior = w.prior()

    def add(**arguments: Any) -> Any:
        kept = hs.Summaries(prior.loss)
        kept.add(**arguments)
        return [kept.posterior(prior, i).weights for i in kept.ids]

    def batch() -> Any:
        return list(prior.posteriors(w.tasks).weights)

    return Call(add, {"X": w.X, "y": w.y, "ids": w.owner}, SUMMARY, batch)


def summaries(w: World) -> tuple[hs.Summaries, hs.Prior]:
    prior = w.prior()
    kept = hs.Summaries(prior.loss)
    kept.add(w.X, w.y, w.owner)
    return kept, prior


@attack("Summaries.posterior")
def _(w: World) -> Call:
    kept, prior = summaries(w)
    roles = {"prior": "object", "entity": "key", "side": "vector"}
    return Call(kept.posterior, {"prior": prior, "entity": 0}, roles)


@attack("Summaries.settle")
def _(w: World) -> Call:
    kept, prior = summaries(w)
    return Call(kept.settle, {"prior": prior}, {"prior": "object"})


@attack("Summaries.forget")
def _(w: World) -> Call:
    kept, _ = summaries(w)
    return Call(kept.forget, {"entity": 0}, {"entity": "key"})


@attack("Summaries.merge")
def _(w: World) -> Call:
    kept, _ = summaries(w)
    other = hs.Summaries(kept.loss)
    other.add(w.X, w.y, w.owner + 1)
    return Call(kept.merge, {"other": other}, {"other": "object"})


def some_loss(w: World) -> str:
    return str(w.pick(BINARY if w.binary else [*REGRESSION, "squared"]))


@attack("Loss.value")
def _(w: World) -> Call:
    name, z = some_loss(w), w.rng.integers(-16, 17, w.n) / 8.0
    c = loss_parameter(name)
    return Call(
        hs.get_loss(name).value, {"prediction": z, "target": w.y},
        {"prediction": "vector", "target": "vector"},
        lambda: np.array([loss_value(name, c, a, b) for a, b in zip(z, w.y, strict=True)]),
    )  # fmt: skip


@attack("Loss.subgradient")
def _(w: World) -> Call:
    name, z = some_loss(w), w.rng.integers(-16, 17, w.n) / 8.0
    c = loss_parameter(name)
    return Call(
        hs.get_loss(name).subgradient, {"prediction": z, "target": w.y},
        {"prediction": "vector", "target": "vector"},
        lambda: np.array([loss_subgradient(name, c, a, b) for a, b in zip(z, w.y, strict=True)]),
    )  # fmt: skip


@attack("Loss.conjugate", 0.5)
def _(w: World) -> Call:
    arguments = {"dual": -0.25 * np.where(w.y > 0.0, 1.0, -1.0), "target": w.y}

    def conjugate(dual: Any, target: Any) -> Any:
        found = hs.get_loss("hinge" if w.binary else "absolute").conjugate(dual, target)
        return np.where(np.isposinf(found), 0.0, found)  # outside the domain it is infinite

    return Call(conjugate, arguments, {"dual": "vector", "target": "vector"})


@attack("Loss.prox_conjugate", 0.5)
def _(w: World) -> Call:
    arguments = {"point": 0.25 * w.y, "target": w.y, "eta": 0.5}
    roles = {"point": "vector", "target": "vector", "eta": "number"}
    return Call(hs.get_loss(some_loss(w)).prox_conjugate, arguments, roles)


@attack("Loss.quadratic_form", 0.5)
def _(w: World) -> Call:
    arguments = {"mean": w.y + 0.5, "variance": np.ones(w.n), "target": w.y}
    return Call(
        hs.get_loss(some_loss(w)).quadratic_form, arguments, dict.fromkeys(arguments, "vector")
    )


@attack("get_loss")
def _(w: World) -> Call:
    return Call(hs.get_loss, {"loss": some_loss(w)}, {"loss": "choice"})


@attack("register_loss", 0.3)
def _(w: World) -> Call:
    return Call(hs.register_loss, {"loss": hs.LOSSES[some_loss(w)]}, {"loss": "object"})


PARAMETERS = {
    "EpsilonInsensitive": "epsilon",
    "Pinball": "tau",
    "Huber": "delta",
    "SmoothedHinge": "delta",
}

for _name in ("Squared", "Absolute", "Hinge", "Logistic", *PARAMETERS):

    @attack(_name, 0.3)
    def _(w: World, name: str = _name) -> Call:  # noqa: ARG001
        parameter = PARAMETERS.get(name)
        given = {} if parameter is None else {parameter: 0.5}

        def used(**arguments: Any) -> Any:
            return getattr(hs, name)(**arguments).value([0.5, -2.0], [1.0, -1.0])

        return Call(used, given, dict.fromkeys(given, "number"))


THEORY: dict[str, dict[str, Any]] = {
    "sgd_regret": {"n": 5, "reg": 0.5, "predictor": "suffix"},
    "erm_generalisation": {"n": 5, "reg": 0.5},
    "erm_stability": {"n": 5, "reg": 0.5, "radius": 1.0, "lipschitz": 1.0},
    "fixed_bias_bound": {"reg": 0.5, "n": 5, "var_h": 1.0, "inner": "sgd"},
    "fixed_bias": {"n": 5, "var_h": 0.5, "inner": "erm", "radius": 1.0, "lipschitz": 1.0},
    "meta_rate": {"n": 5, "n_tasks": 4, "distance": 1.0, "step": 0.5, "sharp": True},
    "learned_bias": {"n": 5, "n_tasks": 4, "var_m": 0.5, "distance": 1.0},
    "conditional_bias": {"n": 5, "n_tasks": 4, "var_tau": 0.5, "size": 1.0, "side_radius": 2.0},
    "last_distance": {"epsilon": 0.5, "reg": 4.0},
}

for _name, _given in THEORY.items():

    @attack(f"theory.{_name}", 0.3)
    def _(w: World, name: str = _name, given: dict[str, Any] = _given) -> Call:  # noqa: ARG001
        return Call(getattr(theory, name), given, dict.fromkeys(given, "number"))


@attack("theory.var_h", 0.5)
def _(w: World) -> Call:
    roles = {"weights": "table", "bias": "vector"}
    return Call(theory.var_h, {"weights": w.X, "bias": w.bias}, roles)


@attack("theory.primal_value", 0.5)
def _(w: World) -> Call:
    arguments = {
        "X": w.X,
        "y": w.y,
        "weights": -w.bias,
        "bias": w.bias,
        "reg": w.reg,
        "loss": w.loss,
    }
    roles = {
        "X": "table", "y": "vector", "weights": "vector", "bias": "vector", "reg": "number",
        "loss": "choice",
    }  # fmt: skip
    return Call(theory.primal_value, arguments, roles)


@attack("theory.dual_value", 0.5)
def _(w: World) -> Call:
    dual = -0.25 * np.where(w.y > 0.0, 1.0, -1.0) / w.n
    arguments = {"X": w.X, "y": w.y, "dual": dual, "bias": w.bias, "reg": w.reg}
    arguments["loss"] = "hinge" if w.binary else "absolute"
    roles = {"X": "table", "y": "vector", "bias": "vector", "reg": "number", "loss": "choice"}

    def value(**arguments: Any) -> float:
        found = theory.dual_value(**arguments)
        return 0.0 if found == np.inf else found  # outside the domain

    return Call(value, arguments, roles | {"dual": "vector"})


@attack("theory.certificate", 0.5)
def _(w: World) -> Call:
    loss = w.loss
    dual = hs.biased_sgd(w.X, w.y, w.bias, w.reg, loss).dual
    arguments = {"X": w.X, "y": w.y, "dual": dual, "bias": w.bias, "reg": w.reg, "loss": loss}
    roles = {"X": "table", "y": "vector", "bias": "vector", "reg": "number", "weights": "vector"}
    return Call(theory.certificate, arguments, roles)


ACROSS = {
    "tasks": "tasks", "bias": "vector", "reg": "number", "loss": "choice", "inner": "choice",
}  # fmt: skip


@attack("theory.meta_objective", 0.3)
def _(w: World) -> Call:
    arguments = {"tasks": w.some_tasks(), "bias": w.bias, "reg": w.reg, "loss": w.any_loss}
    return Call(theory.meta_objective, arguments, {name: ACROSS[name] for name in arguments})


@attack("theory.meta_gradient", 0.3)
def _(w: World) -> Call:
    arguments = {"tasks": w.some_tasks(), "bias": w.bias, "reg": w.reg, "loss": w.loss}
    return Call(theory.meta_gradient, arguments | {"inner": w.pick(["sgd", "erm"])}, ACROSS)


@attack("theory.gradient_error", 0.3)
def _(w: World) -> Call:
    arguments = {"X": w.X, "y": w.y, "bias": w.bias, "reg": w.reg, "loss": w.loss}
    roles = {"X": "table", "y": "vector", "bias": "vector", "reg": "number", "loss": "choice"}
    return Call(theory.gradient_error, arguments, roles)


@attack("theory.meta_regret", 0.2)
def _(w: World) -> Call:
    arguments = {
        "tasks": w.some_tasks(), "comparator": w.bias, "reg": w.reg, "step": w.step,
        "loss": w.loss, "inner": w.pick(["sgd", "erm"]), "initial": -w.bias,
    }  # fmt: skip
    roles = ACROSS | {"comparator": "vector", "step": "number", "initial": "vector"}
    return Call(theory.meta_regret, arguments, {name: roles[name] for name in arguments})


ENVIRONMENTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "RegressionEnvironment": (RegressionEnvironment, {"snr": 5.0}),
    "ClassificationEnvironment": (
        ClassificationEnvironment,
        {"margin": 0.25, "label_model": "steep", "oracle_scale": 1.0},
    ),
}

for _name, (_kind, _more) in ENVIRONMENTS.items():

    @attack(f"environments.{_name}", 0.3)
    def _(w: World, kind: Any = _kind, more: dict[str, Any] = _more) -> Call:
        arguments = {"n_features": w.d, "center": 4.0, "task_std": 0.5, **more}
        return Call(kind, arguments, dict.fromkeys(arguments, "number"))

    @attack(f"environments.{_name}.draw", 0.3)
    def _(w: World, kind: Any = _kind) -> Call:
        arguments = {"n_tasks": 2, "n_rows": 3, "random_state": 0}
        roles = {"n_tasks": "few", "n_rows": "few", "random_state": "seed"}
        return Call(kind(n_features=w.d).draw, arguments, roles)


@attack("environments.Environment.tasks", 0.3)
def _(w: World) -> Call:
    arguments = {"weights": w.X, "n_rows": 3, "random_state": 0}
    roles = {"weights": "table", "n_rows": "few", "random_state": "seed"}
    return Call(RegressionEnvironment(n_features=w.d).tasks, arguments, roles)


@attack("environments.Mixture", 0.3)
def _(w: World) -> Call:
    parts = tuple(RegressionEnvironment(w.d, center=c) for c in (0.0, tuple(w.bias)))
    roles = {"parts": "object", "sequence": "choice"}
    return Call(Mixture, {"parts": parts, "sequence": "drift"}, roles)


@attack("environments.Mixture.draw", 0.3)
def _(w: World) -> Call:
    parts = tuple(RegressionEnvironment(w.d, center=c) for c in (0.0, 1.0))
    arguments = {"n_tasks": 2, "n_rows": 3, "random_state": 0}
    roles = {"n_tasks": "few", "n_rows": "few", "random_state": "seed"}
    return Call(Mixture(parts, w.pick(["random", "alternate", "drift"])).draw, arguments, roles)


@attack("environments.Environment.var_h", 0.3)
def _(w: World) -> Call:
    return Call(RegressionEnvironment(n_features=w.d).var_h, {"bias": w.bias}, {"bias": "vector"})


@attack("datasets.load_lenk", 0.01)
def _(w: World) -> Call:  # noqa: ARG001
    os.environ.setdefault("HEADSTART_DATA", "/nowhere")  # rather than downloading it
    return Call(load_lenk, {"threshold": 5.0}, {"threshold": "number"})


FEW = {
    "X": "table", "y": "vector", "groups": "ids", "shots": "number", "error": "choice",
    "group": "number", "folds": "few", "repeats": "few", "random_state": "seed", "how": "choice",
}  # fmt: skip


@attack("few_shot_score", 0.03)
def _(w: World) -> Call:
    arguments = {
        "estimator": hs.MetaRegressor(reg=1.0), "X": TRAIN, "y": LABELS, "groups": IDS,
        "shots": int(w.rng.integers(0, 3)), "folds": 2,
    }  # fmt: skip
    return Call(hs.few_shot_score, arguments, FEW | {"estimator": "object"})


@attack("few_shot_curve", 0.03)
def _(w: World) -> Call:
    arguments = {
        "estimator": hs.MetaRegressor(reg=1.0), "X": TRAIN, "y": LABELS, "groups": IDS,
        "shots": [0, int(w.rng.integers(1, 4))], "folds": 2,
    }  # fmt: skip

    def curve(**arguments: Any) -> hs.FewShotCurve:
        found = hs.few_shot_curve(**arguments)
        if arguments.get("how") == "independent" and found.shots[0] == 0:
            found.errors[:, 0] = 0.0  # nothing can be fitted to no rows
        return found

    return Call(curve, arguments, FEW | {"shots": "vector"})


@attack("diagnose", 0.003)
def _(w: World) -> Call:  # noqa: ARG001
    arguments = {"X": TRAIN, "y": LABELS, "groups": IDS, "shots": 2, "folds": 2}
    roles = {k: FEW[k] for k in arguments} | {"classify": "number", "random_state": "seed"}
    return Call(hs.diagnose, arguments, roles)
