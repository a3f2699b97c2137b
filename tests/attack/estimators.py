"""Calls of the estimators: methods one by one, and several in an order no one expects."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

import headstart as hs

from .registry import attack
from .world import CLASSES, IDS, KINDS, LABELS, TRAIN, Call, World, fitted, rows_for, shared

ROWS = {"X": "rows", "y": "vector", "groups": "ids", "sample_weight": "vector"}
META = {
    "loss": "choice", "metric": "choice", "reg": "number", "step": "number", "inner": "choice",
    "predictor": "choice", "group": "number", "side": "number", "task_size": "number",
    "fit_intercept": "number", "n_jobs": "jobs", "random_state": "seed",
}  # fmt: skip
TASK = {
    "bias": "vector", "intercept": "number", "reg": "number", "loss": "choice", "inner": "choice",
    "predictor": "choice", "fit_intercept": "number", "intercept_scaling": "number",
    "prior": "object",
}  # fmt: skip


def what_it_knows(model: Any, X: Any = None) -> Any:
    """The numbers of a fitted estimator, and its predictions."""
    weights = (model.coef_, model.intercept_) if hasattr(model, "coef_") else (model.bias_,)
    answers = [] if X is None else [model.predict(X)]
    return *weights, *answers


def labels_for(w: World, classifier: bool) -> Any:
    """Classes; or numbers that no prediction is, where slopes would be a matter of rounding."""
    if classifier:
        return np.where(w.y > 0.0, "yes", "no")
    return w.y + 1.0 / 128.0 if w.binary or w.integer else w.y


def two_classes(w: World) -> None:
    """Make labels show both classes, for those who need them."""
    if len(np.unique(w.y > 0.0)) < 2:
        w.X, w.y = np.concatenate([w.X, w.X]), np.concatenate([np.abs(w.y) + 1, -np.abs(w.y) - 1])
        w.owner = np.concatenate([w.owner, w.owner])


for _kind in ("MetaRegressor", "MetaClassifier"):

    @attack(f"{_kind}.fit", 0.4)
    def _(w: World, name: str = _kind) -> Call:
        classifier = name == "MetaClassifier"
        if classifier:
            two_classes(w)
        own = w.pick([{}, {"reg": 0.5}, {"reg": 0.5}, {"reg": 2.0, "inner": "erm"},
                      {"reg": 1.0, "step": 0.5, "fit_intercept": False},
                      {"fit_intercept": False, "metric": "isotropic"}])  # fmt: skip

        def fit(X: Any, y: Any, groups: Any, sample_weight: Any = None, **parameters: Any) -> Any:
            model = getattr(hs, name)(**parameters).fit(X, y, groups, sample_weight)
            return what_it_knows(model)

        arguments = {"X": w.X, "y": labels_for(w, classifier), "groups": w.owner, **own}
        return Call(fit, arguments, ROWS | META)

    @attack(f"{_kind}.partial_fit", 0.4)
    def _(w: World, name: str = _kind) -> Call:
        classifier = name == "MetaClassifier"
        if classifier:
            two_classes(w)
        own = w.pick([{}, {"reg": 0.5}, {"reg": 0.5}, {"reg": 0.5, "task_size": 2}])

        def stream(
            X: Any, y: Any, groups: Any, sample_weight: Any = None, **parameters: Any
        ) -> Any:
            model = getattr(hs, name)(**parameters)
            model.partial_fit(X, y, groups, sample_weight=sample_weight)
            return what_it_knows(model.finish())

        arguments = {"X": w.X, "y": labels_for(w, classifier), "groups": w.owner, **own}
        return Call(stream, arguments, ROWS | META)


def beside_kinks(bias: Any) -> Any:
    """A bias from which no margin is 1, where rounding to float32 would decide the slope."""
    return bias + np.pi / 100.0


for _kind in ("TaskRegressor", "TaskClassifier"):

    @attack(f"{_kind}.fit", 1.0)
    def _(w: World, name: str = _kind) -> Call:
        classifier = name == "TaskClassifier"
        if classifier:
            two_classes(w)
        own = w.pick([{}, {"reg": 0.5}, {"reg": 2.0, "inner": "erm"}, {"inner": "constant"},
                      {"fit_intercept": False, "predictor": "last"}])  # fmt: skip

        def fit(X: Any, y: Any, sample_weight: Any = None, **parameters: Any) -> Any:
            model = getattr(hs, name)(**parameters).fit(X, y, sample_weight)
            return what_it_knows(model, X)

        bias = beside_kinks(w.bias) if classifier else w.bias
        arguments = {"X": w.X, "y": labels_for(w, classifier), "bias": bias, **own}
        roles = ROWS | TASK | ({"classes": "vector"} if classifier else {})
        return Call(fit, arguments, {k: v for k, v in roles.items() if k != "groups"})

    @attack(f"{_kind}.partial_fit", 0.6)
    def _(w: World, name: str = _kind) -> Call:
        classifier = name == "TaskClassifier"
        if classifier:
            two_classes(w)

        def stream(X: Any, y: Any, sample_weight: Any = None, **parameters: Any) -> Any:
            model = getattr(hs, name)(**parameters).partial_fit(X, y, sample_weight=sample_weight)
            return what_it_knows(model, X)

        bias = beside_kinks(w.bias) if classifier else w.bias
        arguments = {"X": w.X, "y": labels_for(w, classifier), "bias": bias}
        return Call(stream, arguments, {k: v for k, v in (ROWS | TASK).items() if k != "groups"})

    for _method in ("predict", "score", "predict_interval", "decision_function", "predict_proba"):
        if not hasattr(getattr(hs, _kind)(prior=hs.Prior([0.0, 0.0], 1.0, loss="logistic" if
                       _kind == "TaskClassifier" else "squared")), _method):  # fmt: skip
            continue

        @attack(f"{_kind}.{_method}", 0.5)
        def _(w: World, name: str = _kind, method: str = _method) -> Call:
            classifier = name == "TaskClassifier"
            kind = w.pick(["prior", "prior, no intercept", "paper", "exact"])
            if method in ("predict_interval", "predict_proba"):
                kind = "prior"
            model = shared(kind, classifier).adapt(
                TRAIN[:3], (CLASSES if classifier else LABELS)[:3]
            )
            X, _ = rows_for("prior", w.n, w.rng)
            arguments: dict[str, Any] = {"X": X}
            roles = {"X": "table"}
            if method == "score":
                arguments["y"], roles["y"] = (CLASSES if classifier else LABELS)[: w.n], "vector"
                roles["sample_weight"] = "vector"
            elif method == "predict" and not classifier:
                roles["return_std"] = "number"
            elif method == "predict_interval":
                roles["coverage"] = "number"
            return Call(getattr(model, method), arguments, roles)


def query(w: World, method: str, classifier: bool) -> tuple[Any, dict[str, Any], dict[str, str]]:
    kinds = [k for k in KINDS if k not in ("paper", "paper, auto step", "exact", "constant")]
    needs_prior = method in ("predict_interval", "predict_proba")
    kind = w.pick(kinds if needs_prior else KINDS)
    X, ids = rows_for(kind, w.n, w.rng)
    arguments = {"X": X} if ids is None else {"X": X, "groups": ids}
    return shared(kind, classifier), arguments, {"X": "table", "groups": "known ids"}


for _kind in ("MetaRegressor", "MetaClassifier"):
    for _method in ("predict", "score", "predict_interval", "decision_function", "predict_proba"):
        if not hasattr(getattr(hs, _kind)(), _method):
            continue

        @attack(f"{_kind}.{_method}", 0.6)
        def _(w: World, name: str = _kind, method: str = _method) -> Call:
            classifier = name == "MetaClassifier"
            model, arguments, roles = query(w, method, classifier)
            if method == "score":
                n = arguments["X"].shape[0]
                arguments["y"] = (CLASSES if classifier else LABELS)[:n]
                roles |= {"y": "vector", "sample_weight": "vector"}
            elif method == "predict_interval":
                roles["coverage"] = "number"
            elif method == "predict" and not classifier:
                roles["return_std"] = "number"
            return Call(getattr(model, method), arguments, roles)

    @attack(f"{_kind}.adapt", 0.6)
    def _(w: World, name: str = _kind) -> Call:
        classifier = name == "MetaClassifier"
        kind = w.pick([k for k in KINDS if k not in ("column", "side", "sparse")])
        model, (X, _) = shared(kind, classifier), rows_for(kind, w.n, w.rng)
        y = (
            np.array(["yes", "no"])[w.rng.integers(0, 2, w.n)]
            if classifier
            else w.rng.normal(size=w.n)
        )

        def adapt(X: Any, y: Any, sample_weight: Any = None) -> Any:
            return what_it_knows(model.adapt(X, y, sample_weight), TRAIN)

        return Call(adapt, {"X": X, "y": y}, {k: v for k, v in ROWS.items() if k != "groups"})

    @attack(f"{_kind}.adapt_tasks", 0.3)
    def _(w: World, name: str = _kind) -> Call:
        classifier = name == "MetaClassifier"
        model = shared(w.pick(["prior", "paper", "exact"]), classifier)
        y = np.where(LABELS > 0.0, 1.0, -1.0) if classifier else LABELS
        tasks = hs.TaskSet.from_arrays(TRAIN, y, IDS)
        return Call(model.adapt_tasks, {"tasks": tasks}, {"tasks": "tasks", "side": "table"})

    @attack(f"{_kind}.learn", 0.1)
    def _(w: World, name: str = _kind) -> Call:  # noqa: ARG001
        classifier = name == "MetaClassifier"
        y = CLASSES if classifier else LABELS

        def learn(X: Any, y: Any, groups: Any) -> Any:
            model = getattr(hs, name)(reg=0.5)
            return what_it_knows(model.learn([(X, y, groups), (X, y, groups)]))

        arguments = {"X": TRAIN, "y": y, "groups": IDS}
        return Call(learn, arguments, {k: v for k, v in ROWS.items() if k in arguments})

    @attack(f"{_kind}.learn_one", 0.6)
    def _(w: World, name: str = _kind) -> Call:
        classifier = name == "MetaClassifier"
        model = shared(w.pick(["prior", "paper", "prior, no intercept"]), classifier)
        X, (i, *_) = rows_for("prior", 1, w.rng)

        def learn_one(x: Any, y: Any, id: Any) -> Any:  # noqa: A002
            mine = deepcopy(model)
            mine.learn_one(x, y, id)
            return mine.predict(TRAIN[:2], groups=IDS[:2])

        arguments = {"x": X[0], "y": "yes" if classifier else 1.5, "id": int(i)}
        return Call(learn_one, arguments, {"x": "vector", "y": "number", "id": "key"})

    @attack(f"{_kind}.predict_one", 1.0)
    def _(w: World, name: str = _kind) -> Call:
        kind = w.pick([k for k in KINDS if k not in ("column", "side", "sparse")])
        model, (X, (i, *_)) = shared(kind, name == "MetaClassifier"), rows_for(kind, 1, w.rng)
        return Call(
            model.predict_one, {"x": X[0], "id": int(i)}, {"x": "vector", "id": "key"},
            lambda: model.predict(X, groups=[int(i)])[0],
        )  # fmt: skip

    for _method in ("weights_of", "intercept_of", "forget"):

        @attack(f"{_kind}.{_method}", 0.3)
        def _(w: World, name: str = _kind, method: str = _method) -> Call:
            classifier = name == "MetaClassifier"
            model = (
                fitted("prior", classifier) if method == "forget" else shared("paper", classifier)
            )
            return Call(getattr(model, method), {"id": int(w.rng.integers(6))}, {"id": "key"})

    for _method in ("finish", "drop_summaries", "summary", "bias_by_feature"):

        @attack(f"{_kind}.{_method}", 0.05)
        def _(w: World, name: str = _kind, method: str = _method) -> Call:
            kinds = KINDS if method in ("finish", "bias_by_feature") else ["prior", "column"]
            return Call(getattr(fitted(w.pick(kinds), name == "MetaClassifier"), method), {}, {})

    @attack(f"{_kind}.merge", 0.1)
    def _(w: World, name: str = _kind) -> Call:  # noqa: ARG001
        classifier = name == "MetaClassifier"
        model, other = fitted("prior", classifier), fitted("prior", classifier)
        for key in range(3):
            other.forget(key)
        return Call(model.merge, {"other": other}, {"other": "object"})
