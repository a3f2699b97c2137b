"""The diagnosis: like is compared with like, and the verdict is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from headstart import FewShotCurve, MetaRegressor, TaskSet, diagnose, few_shot_curve, learn_prior
from headstart.environments import ClassificationEnvironment, RegressionEnvironment
from headstart.evaluation import diagnosis, priors
from headstart.evaluation.findings import Diagnosis
from headstart.evaluation.verdict import VERDICTS, decide
from headstart.losses import get_loss
from headstart.meta.prior.em import Learning, as_sums
from headstart.meta.prior.guess import first_guess
from headstart.meta.prior.shown import task_evidence

Array = NDArray[np.float64]
Draw = Callable[[int], TaskSet]


def of(tasks: TaskSet, **options: Any) -> Diagnosis:
    return diagnose(tasks.X, tasks.y, np.repeat(tasks.ids, tasks.sizes), **options)


def own(level: float, slope: float, T: int = 60, n: int = 16) -> Draw:
    """Tasks with own levels and slopes, the noise being 1."""

    def draw(seed: int) -> TaskSet:
        rng = np.random.default_rng(seed)
        ids, X = np.repeat(np.arange(T), n), rng.normal(size=(T * n, 5))
        w = np.array([2.0, -1.0, 1.5, 1.0, -2.0]) + slope * rng.normal(size=(T, 5))
        y = 5.0 + level * rng.normal(size=T)[ids] + np.sum(X * w[ids], axis=1)
        return TaskSet.from_arrays(X, y + rng.normal(size=T * n), ids)

    return draw


def drawn(world: RegressionEnvironment | ClassificationEnvironment, T: int = 60) -> Draw:
    return lambda seed: world.draw(T, 16, np.random.default_rng(seed)).tasks


@pytest.mark.parametrize(
    ("draw", "right"),
    [
        (drawn(RegressionEnvironment(5, center=0.0, task_std=2.0)), {"do not share"}),
        (drawn(RegressionEnvironment(5, task_std=0.0)), {"pool instead"}),
        (own(1.0, 0.0), {"share"}),
        (own(0.0, 0.5), {"share"}),
        (own(1.0, 0.5), {"share"}),
        (drawn(RegressionEnvironment(5)), {"share", "share a little"}),
        (drawn(ClassificationEnvironment(5, center=0.0, task_std=2.0)), {"do not share"}),
        (drawn(ClassificationEnvironment(5, task_std=0.0), 40), {"pool instead"}),
    ],
    ids=["unrelated", "identical", "levels", "slopes", "both", "related",
         "unrelated-labels", "identical-labels"],
)  # fmt: skip
def test_verdicts(draw: Draw, right: set[str]) -> None:
    found = Counter(of(draw(seed)).verdict for seed in range(4))
    assert sum(found[verdict] for verdict in right) >= 3, found


def test_few_tasks_tell_nothing() -> None:
    nine = own(1.0, 0.7)(0).subset(range(9))
    assert of(nine).verdict == "cannot tell"
    unsure = Counter(of(own(0.5, 0.3, T=15, n=10)(seed)).verdict for seed in range(4))
    assert unsure["cannot tell"] >= 3, unsure


def test_own_levels_are_as_good_as_a_random_intercept() -> None:
    """The textbook case: own levels, common slopes."""
    tasks = own(3.0, 0.0)(1)
    found = of(tasks)
    assert found.headstart.mean[-1] < 1.02 * found.levels.mean[-1]
    assert found.headstart.mean[-1] < 0.5 * found.pooled.mean[-1]
    assert found.verdict == "share"
    assert found.levels_suffice
    assert any(note.startswith("Own levels are enough") for note in found.notes)
    assert not of(own(1.0, 0.7)(1)).levels_suffice


def labels_of(tasks: TaskSet, seed: int = 0) -> TaskSet:
    noise = np.random.default_rng(seed).logistic(size=len(tasks.y))
    y = np.where(tasks.y - np.median(tasks.y) + noise > 0.0, 1.0, -1.0)
    return TaskSet(tasks.X, y, tasks.offsets, tasks.ids)


@pytest.fixture
def unpulled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts that nothing pulls to 0, as in other libraries."""
    monkeypatch.setattr(priors, "Learning", partial(Learning, pulled=False))


@pytest.mark.usefixtures("unpulled")
def test_own_levels_are_the_most_likely_random_intercept() -> None:
    tasks = own(2.0, 0.0)(0)
    prior = priors.own_levels(tasks, "squared")
    ids = np.repeat(tasks.ids, tasks.sizes)
    theirs = sm.MixedLM(tasks.y, sm.add_constant(tasks.X), ids).fit(reml=False)
    np.testing.assert_allclose(prior.bias, np.roll(theirs.params[:6], -1), rtol=1e-4)
    assert prior.noise == pytest.approx(theirs.scale, rel=1e-3)
    assert prior.variances[-1] == pytest.approx(float(theirs.cov_re[0, 0]), rel=1e-2)
    assert np.all(prior.variances[:-1] < 1e-6)  # slopes stay where they are


def test_pooled_starts_are_pulled_as_by_a_ridge() -> None:
    tasks, loss = own(1.0, 0.5)(0), get_loss("squared")
    prior = priors.pooled(tasks, "squared")
    e, columns, _, _ = task_evidence(tasks, loss, intercept=True)
    spread = first_guess(as_sums(e, 1), loss, level=True).spread
    Z = columns.rows(tasks.X)[:, :-1]
    ridge = Ridge(prior.noise / spread).fit(Z, tasks.y)
    np.testing.assert_allclose(prior.predict(tasks.X), ridge.predict(Z), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("unpulled")
def test_pooled_are_least_squares_and_logistic_regression() -> None:
    tasks = own(1.0, 0.5)(0)
    prior, linear = priors.pooled(tasks, "squared"), LinearRegression().fit(tasks.X, tasks.y)
    np.testing.assert_allclose(prior.predict(tasks.X), linear.predict(tasks.X), rtol=1e-6)
    after = priors.known_after(prior, tasks.split_rows(8)[0], tasks)
    np.testing.assert_allclose(after.mean, linear.predict(tasks.X), rtol=1e-4, atol=1e-4)
    labels = labels_of(tasks)
    prior = priors.pooled(labels, "logistic")
    scaled = make_pipeline(StandardScaler(), LogisticRegression(C=100.0, tol=1e-8))
    scores = scaled.fit(labels.X, labels.y).decision_function(labels.X)
    np.testing.assert_allclose(prior.predict(labels.X), scores, rtol=0.02, atol=0.02)


def test_alone_starts_at_nothing_and_learns_how_strongly_to_pull() -> None:
    tasks = own(1.0, 1.0)(0)
    prior = priors.alone(tasks, "squared")
    mean = np.mean(tasks.y)
    np.testing.assert_allclose(prior.predict(tasks.X), mean, atol=1e-8)
    squares = learn_prior(tasks, fit_intercept=True).bias[:-1] ** 2 + 1.0
    np.testing.assert_allclose(prior.variances[:-1], squares, rtol=0.3)  # E w^2, about 0
    X, y = tasks[0]
    w = prior.posterior(X[:5], y[:5]).weights
    Z = np.column_stack([X, np.ones(len(X))])
    precision = np.linalg.inv(prior.covariance)
    start = np.append(np.zeros(5), mean)
    naive = np.linalg.solve(
        Z[:5].T @ Z[:5] / prior.noise + precision, Z[:5].T @ y[:5] / prior.noise + precision @ start
    )
    np.testing.assert_allclose(w, naive, rtol=1e-6)
    np.testing.assert_allclose(
        priors.alone(labels_of(tasks), "logistic").predict(tasks.X), 0.0, atol=1e-8
    )


def test_headstart_is_what_fit_learns() -> None:
    tasks = own(1.0, 0.5)(2)
    ids = np.repeat(tasks.ids, tasks.sizes)
    found = of(tasks, shots=4, folds=3, random_state=5)
    rng = np.random.default_rng(5)
    rng.permutation(len(tasks))  # which tasks are looked at: all
    for way, metric in ((found.headstart, "auto"), (found.isotropic, "isotropic")):
        options: dict[str, Any] = {"shots": [0, 1, 2, 4], "folds": 3, "random_state": None}
        options["random_state"] = np.random.default_rng(5)
        options["random_state"].permutation(len(tasks))
        theirs = few_shot_curve(MetaRegressor(metric=metric), tasks.X, tasks.y, ids, **options)
        np.testing.assert_allclose(way.errors, theirs.errors, rtol=1e-9)


def test_other_units_change_nothing() -> None:
    tasks = own(1.0, 0.7)(3)
    there = TaskSet(
        tasks.X * [1e3, 0.01, 1.0, 1.0, 1.0] + [5.0, 1.0, 2e3, 0.0, 0.0],
        60.0 * tasks.y,
        tasks.offsets,
        tasks.ids,
    )
    one, other = of(tasks), of(there)
    assert one.verdict == other.verdict
    for way, curve in one.curves.items():
        np.testing.assert_allclose(60.0 * curve.errors, other.curves[way].errors, rtol=1e-3)


def test_estimators_are_fitted_inside_the_folds() -> None:
    tasks = own(1.0, 0.5)(0)
    frame = pd.DataFrame(tasks.X, columns=list("abcde"))
    frame["id"] = np.repeat(tasks.ids, tasks.sizes)
    curved = make_pipeline(SplineTransformer(n_knots=3, degree=2), LinearRegression())
    adapts = make_pipeline(StandardScaler(), MetaRegressor())
    found = diagnose(frame, tasks.y, group="id", shots=4,
                     estimators={"curved": curved, "adapts": adapts})  # fmt: skip
    rng = np.random.default_rng(0)
    rng.permutation(len(tasks))
    rows = (frame[list("abcde")], tasks.y, frame["id"])
    alone = few_shot_curve(curved, *rows, how="pooled", shots=[0, 1, 2, 4], random_state=rng)
    np.testing.assert_allclose(found.curves["curved"].errors, alone.errors)
    np.testing.assert_allclose(found.curves["adapts"].errors, found.headstart.errors, rtol=1e-4)
    assert list(found.curves)[-2:] == ["curved", "adapts"]
    assert "curved" not in found.scores
    (said,) = (note for note in found.notes if note.startswith("curved"))
    assert "not surely better than it" in said
    with pytest.raises(ValueError, match="estimators: the name 'headstart' is taken"):
        of(tasks, estimators={"headstart": curved})


def test_it_takes_as_few_fits_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    count = Counter[str]()
    begin = Learning.__init__

    def counted(self: Learning, *args: Any, **options: Any) -> None:
        count["fits"] += 1
        begin(self, *args, **options)

    monkeypatch.setattr(Learning, "__init__", counted)
    of(own(1.0, 0.5)(0))
    assert count["fits"] == 26  # five ways in five folds, and the model of the pictures


def test_a_sample_is_said_and_keeps_whole_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = own(1.0, 0.7)(0)
    found = of(tasks, max_tasks=40)
    assert (found.n_tasks, found.n_rows, found.n_used) == (60, 960, 40)
    assert len(found.headstart.errors) == 40
    assert "a sample: 40 of 60 tasks" in str(found)
    assert "a sample" not in str(of(tasks))
    rng = np.random.default_rng(0)
    monkeypatch.setattr(diagnosis, "MAX_ROWS", 160)
    monkeypatch.setattr(diagnosis, "LEAST_SAMPLE", 5)
    some = diagnosis._sample(tasks, 1000, 4, rng)
    assert len(some) == 10
    assert np.all(some.sizes == 16)
    monkeypatch.setattr(diagnosis, "ROWS_OF_A_TASK", 10)
    short = diagnosis._sample(tasks, 3, 4, rng)
    assert np.all(short.sizes == 10)
    X, _ = tasks[int(short.ids[1])]
    np.testing.assert_array_equal(short[1][0], X[:10])  # the first ones, in their order


def test_progress_grows_to_one() -> None:
    done: list[float] = []
    of(own(1.0, 0.0, T=20)(0), callback=done.append, folds=2)
    np.testing.assert_allclose(done, np.arange(1, 12) / 11)


def test_findings_in_words() -> None:
    found = of(own(1.0, 0.7)(0))
    assert found.headstart.shots == (0, 1, 2, 4, 8)
    first, headline, *_ = found.lines
    assert first.startswith(f"verdict: {found.verdict}.")
    assert found.verdict in VERDICTS
    text = repr(found)
    assert "60 tasks, 960 rows" in text
    for way, curve in found.curves.items():
        (line,) = (line for line in found.lines if line.startswith(f"  {way}  "))
        assert f"{curve.mean[-1]:.4g}" in line
        gap = found.headstart.minus(curve)
        gain = found.gains(curve)[-1]
        assert gain.high - gain.mean == pytest.approx(gap.half_width[-1])
        if way != "headstart":
            assert f"{gap.mean[-1]:+.3g} ({gain.low:+.3g} to {gain.high:+.3g})" in line
    least = min(found.pooled.mean[-1], found.independent.mean[-1])
    assert f"{100 * (1 - found.headstart.mean[-1] / least):.1f} % less error" in headline
    ax = found.plot()
    assert ax.get_title() == f"verdict: {found.verdict}"
    assert len(ax.get_lines()) == 5


def test_classes_are_judged_by_their_probabilities() -> None:
    tasks = labels_of(own(2.0, 0.0)(0))
    names = np.where(tasks.y > 0, "yes", "no")
    found = diagnose(tasks.X, names, np.repeat(tasks.ids, tasks.sizes), shots=4)
    assert found.classify
    counts = found.headstart.errors * 12  # of twelve rows each
    np.testing.assert_allclose(counts, counts.round(), atol=1e-9)
    seen, probability, _ = found.forecasts
    assert set(seen) == {-1.0, 1.0}
    loss = -np.log(np.where(seen > 0, probability, 1.0 - probability)).mean()
    assert found.scores["headstart"].mean[-1] == pytest.approx(loss)
    assert "% of labels wrong" in str(found)
    assert found.verdict == "share"


def test_forecasts_hold_as_many_labels_as_they_say() -> None:
    found = of(own(1.0, 0.7, T=100)(0))
    seen, mean, std = found.forecasts
    assert np.mean(np.abs(seen - mean) <= 1.645 * std) == pytest.approx(0.9, abs=0.04)
    assert np.mean(np.abs(seen - mean)) == pytest.approx(found.headstart.mean[-1])


def test_errors_of_nothing_decide_nothing() -> None:
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(20), 12), rng.normal(size=(240, 2))
    found = diagnose(X, X @ [1.0, 2.0], ids)
    assert found.verdict == "pool instead"
    assert "nan" not in str(found)
    zero, same = curve(0.0), curve(0.0)
    assert decide(zero, same, curve(1.0), same) == "pool instead"
    assert decide(curve(1e-14), same, curve(1.0), curve(1e-13)) == "pool instead"
    assert decide(zero, same, same, curve(1.0)) == "do not share"


def curve(level: float, noise: float = 0.0, T: int = 40) -> FewShotCurve:
    """Errors of tasks around a level, after no rows and after eight."""
    last = level + noise * np.tile([1.0, -1.0], T // 2)
    return FewShotCurve((0, 8), np.column_stack([np.full(T, 9.0), last]), np.arange(T))


@pytest.mark.parametrize(
    ("head", "levels", "alone", "pooled", "verdict"),
    [
        (curve(0.89), curve(0.95), curve(1.0), curve(1.2), "share"),
        (curve(0.91), curve(0.95), curve(1.0), curve(1.2), "share a little"),  # than alone
        (curve(0.91), curve(0.95), curve(1.2), curve(1.0), "share a little"),  # than pooled
        (curve(0.995), curve(1.0), curve(1.2), curve(1.0), "pool instead"),  # not worth it
        (curve(1.05), curve(0.8), curve(1.2), curve(1.0), "share"),  # levels alone surely help
        (curve(1.0), curve(1.0), curve(1.2), curve(1.0), "pool instead"),
        (curve(1.0), curve(1.0), curve(1.0), curve(1.2), "do not share"),
        (curve(0.97, noise=0.1), curve(1.0), curve(1.2), curve(1.0), "pool instead"),
        (curve(0.97, noise=0.1), curve(1.0), curve(1.0), curve(1.2), "do not share"),
        (curve(0.95, noise=0.5), curve(1.0), curve(1.2), curve(1.0), "cannot tell"),
        (curve(1.0), curve(1.0), curve(1.2), curve(1.0, T=8), "cannot tell"),
        (curve(0.5), curve(0.9), curve(1.0), curve(1.2, T=10), "share"),  # ten are enough
    ],
)
def test_the_verdict_follows_from_the_errors(
    head: FewShotCurve,
    levels: FewShotCurve,
    alone: FewShotCurve,
    pooled: FewShotCurve,
    verdict: str,
) -> None:
    n = min(len(c.errors) for c in (head, levels, alone, pooled))
    same = [FewShotCurve(c.shots, c.errors[:n], c.ids[:n]) for c in (head, levels, alone, pooled)]
    assert decide(*same) == verdict


def test_too_little_data_is_said() -> None:
    X, y = np.ones((4, 1)), np.arange(4.0)
    with pytest.raises(ValueError, match="shots: 0 tasks have more than 8 rows"):
        diagnose(X, y, [0, 0, 1, 1])
    with pytest.raises(ValueError, match="groups: expected an id for every row"):
        diagnose(X, y)
    with pytest.raises(ValueError, match=r"y: expected one label per row of X \(4\), found 3"):
        diagnose(X, y[:3], [0, 0, 1])
    with pytest.raises(ValueError, match="old"):
        diagnose(pd.DataFrame({"age": ["old", "1", "2", "3"]}), y, [0, 0, 1, 1], shots=1, folds=2)
    with pytest.raises(ValueError, match=r"X: expected at most 500 columns .*, found 10000"):
        diagnose(np.ones((4, 10_000)), y, [0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"X: expected dense rows .*, found a sparse matrix"):
        diagnose(csr_array(X), y, [0, 0, 1, 1], shots=1, folds=2)
