"""Methods of one estimator in any order: each keeps its contract, and a refusal changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

import headstart as hs

from .contract import attempt, differ
from .odd import DAMAGES, SCALARS
from .world import CLASSES, LABELS, TRAIN, World, rows_for

PARAMETERS: list[dict[str, Any]] = [
    {}, {"reg": 0.5}, {"reg": 0.5, "inner": "erm"}, {"reg": 2.0, "step": 0.5, "task_size": 2},
    {"loss": "nonsense"}, {"reg": -1.0}, {"fit_intercept": False}, {"metric": "isotropic"},
    {"reg": 1.0, "predictor": "last", "inner": "constant"},
]  # fmt: skip
CHANGES: list[dict[str, Any]] = [
    {"reg": 0.5}, {"reg": "auto"}, {"reg": np.array([1.0, 2.0])}, {"loss": "huber"},
    {"loss": "logistic"}, {"metric": "diagonal"}, {"inner": "erm"}, {"fit_intercept": False},
    {"group": 0}, {"group": 99}, {"group": "a"}, {"side": [0]}, {"side": 3}, {"task_size": 2**63},
    {"task_size": 0}, {"step": np.array([0.1, 0.2])}, {"step": "much"}, {"n_jobs": 0},
    {"random_state": "x"}, {"predictor": "suffix"}, {"step": np.array(0.5)}, {"side": np.arange(2)},
]  # fmt: skip


def sequence(w: World) -> str:
    """Three to seven steps; what is wrong with one of them, or nothing."""
    classifier = bool(w.rng.random() < 0.4)
    kind = hs.MetaClassifier if classifier else hs.MetaRegressor
    model, other = kind(**w.pick(PARAMETERS)), None
    done: list[str] = []
    for _ in range(int(w.rng.integers(3, 8))):
        name, call = _step(w, model, classifier, other)
        done.append(name)
        before = _state(model)
        outcome = attempt(call, {})
        if outcome.fault:
            return f"{kind.__name__} {' > '.join(done)}: {outcome.fault}"
        if outcome.refused and before is not None and name != "change":
            after = _state(model)
            changed = "no answers any more" if after is None else differ(after, before, 1e-12)
            if changed:
                return (
                    f"{kind.__name__} {' > '.join(done)}: was refused ({outcome.refused}), but "
                    f"left its mark: {changed}"
                )
        if name == "copy":
            other = outcome.answer
    return ""


def _state(model: Any) -> Any:
    """What a model answers, if it does."""
    found = attempt(lambda: (model.bias_, model.intercept_, len(model.ids_), model.n_tasks_), {})
    return (
        None if found.refused or found.fault else (*found.answer[:2], *map(float, found.answer[2:]))
    )


def _step(w: World, model: Any, classifier: bool, other: Any) -> tuple[str, Any]:
    """A method with right or odd arguments."""
    n = int(w.rng.integers(1, 7))
    X, ids = rows_for("prior", n, w.rng)
    y: Any = (CLASSES if classifier else LABELS)[w.rng.integers(0, len(TRAIN), n)]
    odd = ""
    if w.rng.random() < 0.3:
        odd = w.pick([*DAMAGES])
        if w.rng.random() < 0.6:
            X = DAMAGES[odd](X)
        elif not classifier:
            y = DAMAGES[odd](y)
    key = w.pick([0, 1, 5, 99, "u0", None, float("nan"), *SCALARS])
    x, label = (X[0] if isinstance(X, np.ndarray) and X.ndim == 2 and len(X) else X), y
    if isinstance(y, np.ndarray) and y.ndim == 1 and len(y):
        label = y[0]
    steps: dict[str, Any] = {
        "fit": lambda: model.fit(X, y, groups=ids) and None,
        "partial_fit": lambda: model.partial_fit(X, y, groups=ids) and None,
        "predict": lambda: model.predict(X, groups=ids),
        "predict without ids": lambda: model.predict(X),
        "score": lambda: model.score(X, y, groups=ids) and None,
        "finish": lambda: model.finish() and None,
        "adapt": lambda: model.adapt(X, y),
        "learn_one": lambda: model.learn_one(x, label, key),
        "predict_one": lambda: model.predict_one(x, key),
        "forget": lambda: model.forget(key) and None,
        "weights_of": lambda: model.weights_of(key),
        "merge with itself": lambda: model.merge(model) and None,
        "merge": lambda: model.merge(other) and None,
        "drop_summaries": lambda: model.drop_summaries() and None,
        "summary": lambda: model.summary(),
        "prior_": lambda: model.prior_,
        "step_": lambda: model.step_,
        "repr": lambda: repr(model),
        "change": lambda: model.set_params(**w.pick(CHANGES)) and None,
        "copy": lambda: __import__("copy").deepcopy(model),
        "pickle": lambda: __import__("pickle").loads(__import__("pickle").dumps(model)) and None,
    }
    if classifier:
        steps["predict_proba"] = lambda: model.predict_proba(X, groups=ids)
        steps["decision_function"] = lambda: model.decision_function(X, groups=ids)
    else:
        steps["predict_interval"] = lambda: model.predict_interval(X, groups=ids)
        steps["return_std"] = lambda: model.predict(X, groups=ids, return_std=True)
    # most sequences should get somewhere
    name = w.pick(["partial_fit", "fit", *steps]) if w.rng.random() < 0.7 else w.pick([*steps])
    return (f"{name} of {odd}" if odd else name), steps[name]
