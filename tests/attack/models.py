"""Damaged and forged models: each is refused with a clear error, or answers with finite numbers.

Half of the forgeries have right checksums, as a stranger would make them. They are tried in a
process of its own with little memory; one that dies or does not answer is a failure too.
``PYTHONPATH=tests python -m attack.models forge SEED FIRST COUNT`` repeats some.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from attack.watch import numbers, place, say_harm, say_try, watched
from headstart import Huber, MetaClassifier, MetaRegressor, load_model
from headstart.store import StoreError
from headstart.store.arrays import write_array
from headstart.store.version import PAGE, page_checksum

Model = MetaRegressor | MetaClassifier
Rng = np.random.Generator
Change = bytes | Callable[[Path], object] | None  # new content, what makes something else, nothing

MEMORY = 1 << 30  # bytes more than there are when all models are made
AT_ONCE = 20_000  # forgeries in one process, which takes as long to start as 1,500 of them
KEPT = ("sums", "log_", "sparse_", "view", "rows", "side", "nameless", "own_", "open_", "bias_c")
OUTSIDE = "index is out of bounds"  # what kernels say that look at every index
USE = re.compile(r"^\w+(, \w+)*: ")  # errors that speak of arguments


# The models that are forged.


def rows(width: int, kind: type = np.float64) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    X: Any = rng.normal(size=(40, width)).astype(kind)
    y: Any = (X @ np.arange(1.0, width + 1.0) + rng.normal(size=40)).astype(kind)
    return X, y


def makers() -> list[Callable[[], Model]]:
    """All kinds of models: losses, ids, rows, and what is kept of them."""
    X, y = rows(2)
    sparse = csr_array(np.where(np.abs(X) > 0.4, X, 0.0))
    sign = np.where(y > 0.0, "yes", "no")
    few, some = np.arange(40) % 6, np.arange(40) // 10
    mixed: list[Any] = ["a", 7, 2.5, (1, "b"), b"c", 2**70]
    texts = [None if i % 9 == 8 else f"user {i % 6}" for i in range(40)]

    def with_side() -> Model:
        wide, labels = rows(3, np.float32)
        wide[:, 2] = few
        groups = [mixed[i] for i in few]
        return MetaRegressor(side=[2]).fit(wide, labels, groups)

    def named() -> Model:
        import pandas as pd

        frame = pd.DataFrame(X, columns=["age", "price"])
        return MetaClassifier(fit_intercept=False).fit(frame, sign, few)

    def in_progress(**settings: Any) -> Model:
        return MetaRegressor(**settings).partial_fit(X, y, few)

    return [
        lambda: MetaRegressor().fit(X, y, few),
        lambda: in_progress(metric="diagonal", random_state=3),
        lambda: MetaRegressor(loss=Huber(0.5), metric="isotropic").fit(X, y, texts),
        with_side,
        lambda: MetaRegressor(group=None).fit(X, y, [str(i) for i in few]).drop_summaries(),
        lambda: in_progress(reg=1.0, task_size=4),
        lambda: in_progress(reg=0.5, step=0.1, inner="constant", predictor="last"),
        lambda: MetaRegressor(reg=1.0, inner="erm", loss="squared").fit(X, y, some),
        named,
        lambda: MetaClassifier(reg=0.5, step=0.1).partial_fit(X, y > 0.0, few, classes=[0, 1]),
        lambda: MetaRegressor().fit(sparse, y, texts),
        lambda: MetaClassifier().fit(sparse, sign, few),
    ]


def answers(folder: Path, again: Path, started: list[str]) -> list[Any]:
    """All that a model is asked: loaded, used, taught, saved, and loaded again."""
    model = load_model(folder)
    started.append("used")
    width = 2 if model.side is None else 3
    X = np.random.default_rng(2).normal(size=(4, width))
    if model.side is not None:
        X[:, 2] = [0.0, 1.0, 2.0, 3.0]
        X = X.astype(np.float32)
    known = list(model.ids_[:2])
    groups = [*known, "nobody", None][-4:] + [None] * (2 - len(known))
    found = [model.predict(X, groups), *asked(model, X, groups)]
    if not (model.reg != "auto" and model.inner == "erm"):
        y = model.classes_[[0]] if isinstance(model, MetaClassifier) else np.ones(1)
        try:
            model.partial_fit(X[:1], y, [known[0] if known else "new"])
        except ValueError as error:
            if "summaries: they were dropped" not in str(error):
                raise
        else:
            model.finish()
            found += [model.predict(X, groups), *asked(model, X, groups)]
    model.save(again)
    return [*found, load_model(again).predict(X, groups)]


def asked(model: Model, X: Any, groups: Any) -> list[Any]:
    """What else can be asked of a model with a prior."""
    if model.reg != "auto" and isinstance(model, MetaRegressor):
        return [model.bias_, model.intercept_]
    try:
        if isinstance(model, MetaRegressor):
            return [*model.predict(X, groups, return_std=True), model.prior_.covariance]
        if model.reg == "auto" and hasattr(model, "predict_proba"):  # a forged loss has none
            return [model.predict_proba(X, groups)]
        return [model.bias_]
    except ValueError as error:
        if "summaries: they were dropped" not in str(error):
            raise
        return []


# What is done to them.


class Forged(NamedTuple):
    """New content of some files, and whether checksums are right in spite of it."""

    what: str
    files: dict[str, Change]
    signed: bool


class Original(NamedTuple):
    """A saved model: its folder, its files, its page without the checksum, and its answers."""

    folder: Path
    files: dict[str, bytes]
    page: dict[str, Any]
    answers: list[Any]

    @property
    def names(self) -> list[str]:
        return sorted(self.page["arrays"])

    @property
    def kept(self) -> list[str]:
        """The arrays that kernels are led by: what is kept of entities, and numbers of places."""
        return [name for name in self.names if name.startswith(KEPT)] or self.names

    def file(self, name: str) -> str:
        return f"{self.page['place']}/{name}.npy"

    def array(self, name: str) -> NDArray[Any]:
        loaded: NDArray[Any] = np.load(self.folder / self.file(name))
        return loaded


def some(rng: Rng, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def damage(rng: Rng, model: Original) -> Forged:
    """What disks, networks and people do to files."""
    target = PAGE if rng.random() < 0.2 else model.file(some(rng, model.names))
    content = bytearray(model.files[target])
    what = some(rng, ["flip", "cut", "longer", "gone", "other", "zeros", "link", "pipe", "folder"])
    change: Change = None
    if what == "flip":
        for _ in range(int(rng.integers(1, 4))):
            content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        change = bytes(content)
    elif what == "cut":
        change = bytes(content[: rng.integers(len(content))])
    elif what == "longer":
        change = bytes(content) + bytes(int(rng.integers(1, 100)))
    elif what == "other":
        change = model.files[model.file(some(rng, model.names))]
    elif what == "zeros":
        begin = int(rng.integers(len(content)))
        change = bytes(content[:begin]) + bytes(len(content) - begin)
    elif what == "link":
        change = _link
    elif what == "pipe":
        change = os.mkfifo
    elif what == "folder":
        change = Path.mkdir
    return Forged(f"{what} {target}", {target: change}, signed=False)


def _link(path: Path) -> None:
    path.symlink_to("/dev/zero")


HOSTILE: list[Any] = [
    None, True, False, 0, -1, 1, 2, 7, 64, 10**9, 2**31, 2**63 - 1, 2**63, 10**30, -(10**30), 0.5,
    1e308, 5e-324, float("nan"), float("inf"), "", "auto", "full", "hinge", "squared", "erm", "..",
    "../x", "/etc/passwd", "a\0b", "\ud800", "<f4", "<f8", "<i8", "|O", "<U7", "<M8[ns]", "f8,f8",
    "(1000000000,)f8", "|V9999999999", "AAAA", "x" * 5000, [], {}, [[]], [0, 0], [1e9], ["a", "b"],
    [10**18, 0], [1, 2, 3, 4], {"loss": 1}, {"loss": {}}, {"loss": {"name": "huber", "delta": -1}},
    {"tuple": [{"tuple": []}]}, {"fraction": "1e999999999"}, {"decimal": "1e999999999"},
    {"datetime64": [10**30, "ns"]}, {"datetime64": ["x"]}, {"bytes": "zz"}, {"uuid": 1}, {"a": "b"},
]  # fmt: skip


def nodes(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where everything in a tree of JSON is."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in inside:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from nodes(value, (*path, key))


def signed_page(page: dict[str, Any]) -> bytes:
    return json.dumps({**page, "checksum": page_checksum(page)}).encode()


def edit_page(rng: Rng, model: Original) -> Forged:
    """Another page, with the right checksum."""
    page = json.loads(json.dumps(model.page))
    part = some(rng, ["page", "about", "about", "parameters", "arrays"])
    root = {"page": page, "about": page["about"], "arrays": page["arrays"]}.get(
        part, page["about"]["parameters"]
    )
    *way, last = some(rng, list(nodes(root)))
    parent = root
    for key in way:
        parent = parent[key]
    what = some(rng, ["value", "value", "value", "gone", "rename", "deep", "swap"])
    if what == "gone":
        del parent[last]
    elif what == "rename" and isinstance(parent, dict):
        parent[some(rng, ["", "../x", "kind", "own_weights", "é"])] = parent.pop(last)
    elif what == "swap" and isinstance(parent, dict):
        other = some(rng, sorted(parent))
        parent[last], parent[other] = parent[other], parent[last]
    elif what == "deep":
        parent[last] = "DEEP"
    else:
        parent[last] = some(rng, HOSTILE)
    text = signed_page(page)
    if what == "deep":
        depth = int(rng.choice([50, 900, 100_000]))
        text = text.replace(b'"DEEP"', b"[" * depth + b"]" * depth)
    return Forged(f"{what} {part} {way} {last}", {PAGE: text}, signed=True)


VALUES: list[Any] = [
    np.nan, np.inf, -np.inf, 1e308, -1e308, 1e160, 1e30, 5e-324, 0.0, -1.0, 1.0, 2.0, 3.0, -2.0,
    -3.0, 1e9, 6.0, 40.0, 2.0**53, 2.0**62, -(2.0**62), 2.0**31,
]  # fmt: skip


def other_values(rng: Rng, a: NDArray[Any]) -> NDArray[Any]:
    """The array with some entries changed; of integers also to one past the last."""
    b = a.copy()
    if a.size == 0:
        return np.resize(np.asarray(some(rng, VALUES)).astype(_like(a)), (1, *a.shape[1:]))
    flat, places = b.reshape(-1), rng.integers(a.size, size=int(rng.integers(1, 4)))
    if a.dtype.kind == "U":
        flat.view(np.uint32)[rng.integers(a.nbytes // 4)] = some(rng, [0, 65, 0xD800, 2**21, 2**31])
    elif a.dtype == np.uint8:
        flat[places] = rng.choice(np.frombuffer(b'[]{}":,0129eNI.-n', np.uint8), places.size)
    else:
        with np.errstate(all="ignore"):
            past = a.dtype.kind == "i" and rng.random() < 0.3
            value = np.asarray(a.max() + 1.0 if past else some(rng, VALUES))
            flat[places if rng.random() < 0.8 else slice(None)] = value.astype(_like(a))
    return b


def _like(a: NDArray[Any]) -> Any:
    return a.dtype if a.dtype.kind in "fi" else np.float64


def other_shape(rng: Rng, a: NDArray[Any]) -> NDArray[Any]:
    """The array with other lengths."""
    more = np.resize(a, (len(a) + int(rng.integers(1, 9)), *a.shape[1:])) if a.size else a
    return np.asarray(
        some(
            rng,
            [
                a[:-1], a[1:], a[:1], a[:0], more, a.T, a.reshape(-1), a[None], a[..., None],
                a[..., :-1], np.resize(a, (2, 3)), np.resize(a, ()), np.concatenate([a, a]),
                np.resize(a, (*a.shape[:-1], a.shape[-1] + 1)), np.zeros((0, 3), a.dtype),
                np.resize(a, (3, 1000)),
            ],
        )
    )  # fmt: skip


def other_order(rng: Rng, a: NDArray[Any]) -> NDArray[Any]:
    """The array with its rows in another order."""
    picked = rng.integers(max(len(a), 1), size=len(a))
    return np.asarray(some(rng, [a[::-1], rng.permutation(a), np.sort(a, 0), a[picked]]))


def other_kind(rng: Rng, a: NDArray[Any]) -> NDArray[Any]:
    """The array with entries of another type."""
    kind = some(rng, ["<f4", "<f8", ">f8", "<i4", "<i8", ">i8", "|u1", "<U3", "<U9", ">U4"])
    with np.errstate(all="ignore"):
        try:
            return a.astype(kind)
        except ValueError:  # text that is no number
            return np.zeros(a.shape, kind)


def edit_arrays(rng: Rng, model: Original) -> Forged:
    """Other arrays, with the right checksums."""
    page = json.loads(json.dumps(model.page))
    page["arrays"] = dict(page["arrays"])
    files: dict[str, Change] = {}
    names = model.kept if rng.random() < 0.75 else model.names
    names = [some(rng, names) for _ in range(int(rng.choice([1, 1, 1, 2, 3])))]
    done = []
    for name in dict.fromkeys(names):
        edit = some(rng, [other_values] * 4 + [other_shape, other_order, other_kind, _swap])
        done.append(f"{edit.__name__} {name}")
        if edit is _swap:
            other = some(rng, model.names)
            done[-1] += f" {other}"
            page["arrays"][name] = model.page["arrays"][other]
            files[model.file(name)] = model.files[model.file(other)]
            continue
        files[model.file(name)], page["arrays"][name] = described(edit(rng, model.array(name)))
    return Forged(" and ".join(done), {**files, PAGE: signed_page(page)}, signed=True)


def _swap() -> None: ...


def described(array: NDArray[Any]) -> tuple[bytes, dict[str, object]]:
    """The content of an array's file, and what the page says of it."""
    path = Path(tempfile.mkdtemp(dir=place())) / "a.npy"
    said = write_array(path, array)
    content = path.read_bytes()
    path.unlink()
    path.parent.rmdir()
    return content, said


def forge(rng: Rng, model: Original) -> Forged:
    way = rng.random()
    how = damage if way < 0.5 else edit_page if way < 0.6 else edit_arrays
    return how(rng, model)


# One forgery after another.


def put(folder: Path, name: str, change: Change) -> None:
    path = folder / name
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    if isinstance(change, bytes):
        path.write_bytes(change)
    elif change is not None:
        change(path)


def attack(model: Original, again: Path, forged: Forged) -> str | None:
    """What harm a forgery does; None if it is refused, or answers as it may."""
    started: list[str] = []
    try:
        for name, change in forged.files.items():
            put(model.folder, name, change)
        found = answers(model.folder, again, started)
    except (StoreError, FileNotFoundError) as error:
        if OUTSIDE in str(error):
            return f"a kernel met it before a check did: {error}"
        return None if str(model.folder) in str(error) else f"no path in {error!r}"
    except (ValueError, TypeError, AttributeError) as error:
        told = bool(started) and forged.signed and USE.match(str(error))
        return None if told else f"{type(error).__name__}: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        for name in forged.files:
            put(model.folder, name, model.files[name])
    if forged.signed:
        wrong = [a for a in found if not is_finite(a)]
        return f"answers {wrong[0]}" if wrong else None
    same = len(found) == len(model.answers) and all(map(np.array_equal, found, model.answers))
    return None if same else "answers as no right model does"


def is_finite(answer: Any) -> bool:
    array = np.asarray(answer)
    return array.dtype.kind in "UObiu" or bool(np.isfinite(array).all())


def originals(folder: Path) -> list[Original]:
    found = []
    for number, make in enumerate(makers()):
        path = folder / f"model-{number}"
        make().save(path)
        page = json.loads((path / PAGE).read_text())
        del page["checksum"]
        files = {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}
        right = answers(path, folder / "again", [])
        found.append(Original(path, files, page, right))
    return found


def forgeries(seed: int, first: int, count: int) -> None:
    """Try some, and say before and after each how it goes."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory(dir=place()) as folder:
        models = originals(Path(folder))
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        for number, own in numbers(seed, first, count):
            rng = np.random.default_rng(own)
            kind = int(rng.integers(len(models)))
            forged = forge(rng, models[kind])
            say_try(f"number {number}, model {kind}, {forged.what}")
            say_harm(attack(models[kind], Path(folder) / "again", forged))


def run(count: int, seed: int) -> list[str]:
    """Forge so many models; a line for each that did harm."""
    return watched("attack.models", "forge", seed, count, AT_ONCE)


def run_bounds(count: int, seed: int) -> list[str]:
    """The same with kernels that look at every index: what else is read or written is seen too."""
    folder = Path(tempfile.gettempdir()) / f"headstart-bounds-{os.getuid()}"
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder)}
    return watched("attack.models", "forge", seed, count, AT_ONCE, settings)


if __name__ == "__main__":
    forgeries(*map(int, sys.argv[2:]))
