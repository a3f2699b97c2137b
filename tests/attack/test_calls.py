"""Every public name is attacked, a short attack finds nothing, and a planted fault is found."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headstart
from headstart import datasets, environments, theory
from headstart.estimators.learned import Learned

from . import calls
from .contract import attempt, differ, first_bad_number
from .registry import REGISTRY

SHORT = 1000

# What has no attack of its own, and why.
ELSEWHERE = {
    "load_model": "models on disk have an attack of their own",
    "save": "models on disk have an attack of their own",
    "load": "models on disk have an attack of their own",
    "LOSSES": "a dict",
    "theory": "a module, whose functions are attacked",
    "__version__": "a text",
    "Loss": "its methods are attacked by way of the losses",
    "Diagnosis": "what diagnose gives",
    "FewShotCurve": "what few_shot_curve gives",
    "SGDResult": "what biased_sgd gives",
    "ERMResult": "what biased_erm gives",
    "BiasResult": "what learn_bias gives",
    "BiasState": "what start_bias gives",
    "KernelBias": "what learn_kernel_bias gives",
    "Selection": "what select_online gives",
    "RegSelection": "what select_reg gives",
    "PriorState": "what start_prior gives",
    "SGDState": "what SGDState.start gives",
    "Posterior": "what Prior.posterior gives",
    "MetaRegressor": "parameters are checked in fit, as scikit-learn wants it",
    "MetaClassifier": "parameters are checked in fit, as scikit-learn wants it",
    "TaskRegressor": "parameters are checked in fit, as scikit-learn wants it",
    "TaskClassifier": "parameters are checked in fit, as scikit-learn wants it",
    "Environment": "its two kinds are attacked",
    "Draw": "what draw gives",
    "Prescription": "what theory gives",
    "GradientError": "what gradient_error gives",
    "MetaRegret": "what meta_regret gives",
    "MixtureDraw": "what Mixture.draw gives",
    "load_exam": "takes nothing",
    "DataUnavailableError": "an exception",
    "lenk_tables": "takes nothing",
}
# Methods that are public for other parts of the package, which hand over what was checked.
INSIDE = {
    "Prior.learned", "Prior.posterior_of", "Posterior.of", "TaskSet.of",
    "Summaries.take", "Summaries.take_one", "Summaries.number", "Summaries.numbers",
    "Summaries.hashes", "Summaries.arrays", "Summaries.from_arrays", "Summaries.shown",
    "Summaries.pull", "Summaries.predict_one", "Summaries.evidence", "Summaries.sample",
    "Loss.regularised", "Loss.check_inner", "Loss.check_labels", "Loss.fit_noise",
    "Loss.mean_loss", "Loss.normal_loss", "Loss.log_normaliser", "Loss.noise_variance",
}  # fmt: skip
INSIDE |= {f"Meta{kind}.{name}" for kind in ("Regressor", "Classifier")
           for name in ("settings", "stream", "know", "know_columns", "from_saved",
                        "with_base")}  # fmt: skip
INSIDE |= {f"Task{kind}.beside" for kind in ("Regressor", "Classifier")}
CLASSES = ("TaskSet", "Prior", "Posterior", "Summaries", "SGDState", "Loss", "MetaRegressor",
           "MetaClassifier", "TaskRegressor", "TaskClassifier")  # fmt: skip


def public_names() -> Iterator[str]:
    """All that users can call: functions, classes, and methods that are ours."""
    yield from headstart.__all__
    for module in (theory, environments, datasets):
        short = module.__name__.rpartition(".")[2]
        for name, value in vars(module).items():
            ours = getattr(value, "__module__", "").startswith(module.__name__)
            if not name.startswith("_") and ours and name not in ELSEWHERE:
                yield f"{short}.{name}"
    for kind in CLASSES:
        for name in dir(getattr(headstart, kind)):
            static = inspect.getattr_static(getattr(headstart, kind), name)
            method = getattr(static, "__func__", getattr(static, "fn", static))
            if name.startswith("_") or not inspect.isroutine(method) or name in ELSEWHERE:
                continue
            if getattr(method, "__module__", "").startswith("headstart"):
                yield f"{kind}.{name}"


def test_every_public_name_is_attacked() -> None:
    names = set(public_names())
    assert len(names) > 100
    assert sorted(names - set(REGISTRY) - set(ELSEWHERE) - INSIDE) == []
    assert sorted((set(ELSEWHERE) | INSIDE) & set(REGISTRY)) == []
    assert sorted(INSIDE - names) == []


def test_a_short_attack_finds_nothing() -> None:
    assert calls.run(SHORT, seed=20_261_117) == []


def test_a_call_that_ends_its_process_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADSTART_ATTACK_ENDS_AT", "3")
    (said,) = calls.run(6, seed=1)
    assert said.startswith("1 3: ended its process with code 70")


def nan_from(function: Any) -> Any:
    def planted(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        return found._replace(last=np.full_like(found.last, np.nan))

    return planted


def little_wrong(function: Any) -> Any:
    def planted(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        return found._replace(average=found.average * (1.0 + 1e-5) + 1e-5)

    return planted


def no_check(function: Any) -> Any:
    def planted(X: Any, *args: Any, **options: Any) -> Any:
        return function(np.array(X, float), *args, **options)  # numpy's own words

    return planted


@pytest.mark.parametrize(
    ("plant", "said"),
    [(nan_from, "gives nan"), (little_wrong, "expected"), (no_check, "through")],
)
def test_a_planted_fault_is_found(plant: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headstart, "biased_sgd", plant(headstart.biased_sgd))
    make, _ = REGISTRY["biased_sgd"]
    monkeypatch.setattr(calls, "REGISTRY", {"biased_sgd": (make, 1.0)})
    monkeypatch.setattr(calls, "NAMES", ["biased_sgd"])
    monkeypatch.setattr(calls, "CUTS", np.ones(1))
    monkeypatch.setattr(calls, "SEQUENCES", 0.0)
    found = [fault for number in range(300) if (fault := calls.one(5, number))]
    assert found
    assert any(said in fault for fault in found)


def test_the_contract() -> None:
    def whisper() -> float:
        return float(np.exp(np.float64(1e4)))

    def deep() -> None:
        np.linalg.inv(np.zeros((2, 2)))

    assert (
        "warns RuntimeWarning" in attempt(whisper, {}).fault or "inf" in attempt(whisper, {}).fault
    )
    assert "raises LinAlgError" in attempt(deep, {}).fault
    assert "lets TypeError" in attempt(lambda: len(3), {}).fault  # type: ignore[arg-type]
    assert attempt(lambda: headstart.get_loss("l2"), {}).fault == ""
    assert "gives nan in answer.last" in first_bad_number(
        headstart.SGDResult(np.zeros(1), np.array([np.nan]), np.zeros(1))
    )
    assert differ(np.ones(2), np.ones(2) + 1e-9, 1e-7) == ""
    assert "expected" in differ(np.ones(2), np.array([1.0, 1.1]), 1e-7)
    assert issubclass(headstart.MetaRegressor, Learned)  # whose methods are among the names
