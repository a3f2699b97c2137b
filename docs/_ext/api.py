"""The reference: every public name, on a page of its own, found from what modules export.

Names are grouped by subject below. A new name needs no line here: it stands under "Further names"
until somebody gives it a place.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

import headstart

GROUPS = {
    "Estimators": [
        "MetaRegressor",
        "MetaClassifier",
        "TaskRegressor",
        "TaskClassifier",
        "load_model",
    ],
    "Judging": ["diagnose", "Diagnosis", "few_shot_score", "few_shot_curve", "FewShotCurve"],
    "Tasks": ["TaskSet"],
    "Within a task": [
        "biased_sgd",
        "SGDResult",
        "sgd_batch",
        "SGDState",
        "weights_from_dual",
        "biased_erm",
        "ERMResult",
        "task_weights",
        "evaluate_bias",
    ],
    "Learning the bias": [
        "learn_bias",
        "BiasResult",
        "start_bias",
        "continue_bias",
        "BiasState",
        "learn_kernel_bias",
        "KernelBias",
        "select_online",
        "Selection",
        "select_reg",
        "RegSelection",
    ],
    "Learning the prior": [
        "learn_prior",
        "Prior",
        "Posterior",
        "Summaries",
        "start_prior",
        "continue_prior",
        "PriorState",
    ],
    "Losses": [
        "Loss",
        "get_loss",
        "register_loss",
        "LOSSES",
        "Squared",
        "Absolute",
        "EpsilonInsensitive",
        "Pinball",
        "Huber",
        "Hinge",
        "SmoothedHinge",
        "Logistic",
    ],
}
MODULES = {
    "theory": "bounds, prescribed parameters and certificates",
    "environments": "tasks that are drawn",
    "datasets": "tasks that are read",
    "experiments": "the paper's experiments, and one's own",
    "losses": "the losses and what kernels see of them",
    "plot": "pictures",
    "parquet": "datasets larger than memory",
    "jobs": "all tasks of a dataset",
    "training": "meta-training in rounds",
    "distributed": "on a cluster",
}
NO_PAGE = {"theory", "__version__"}  # a module, which has its list, and a text


def exported(module: ModuleType) -> list[str]:
    """The public names of a module: what it says, or what it defines without an underscore."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if name not in NO_PAGE]
    ours = (
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    )
    return [name for name in ours if callable(getattr(module, name))]


def modules() -> Iterator[ModuleType]:
    """The public modules."""
    for name in MODULES:
        yield import_module(f"headstart.{name}")


def top(name: str) -> object | None:
    """What the package itself exports under this name."""
    return getattr(headstart, name) if name in headstart.__all__ else None


def home(module: ModuleType, name: str) -> str:
    """Where a name is documented: with the package if that exports it too, else here."""
    same = top(name) is not None and top(name) is getattr(module, name)
    return f"headstart.{name}" if same else f"{module.__name__}.{name}"


def _titled(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n"


def _table(names: list[str]) -> str:
    lines = "\n".join(f"   {name}" for name in names)
    return f".. autosummary::\n   :toctree: names\n   :nosignatures:\n\n{lines}\n\n"


def _module_page(module: ModuleType, about: str) -> str:
    homes = [home(module, name) for name in exported(module)]
    own = [place.rpartition(".")[2] for place in homes if place.startswith(module.__name__)]
    elsewhere = (place for place in homes if not place.startswith(module.__name__))
    also = ", ".join(f":py:obj:`~{place}`" for place in elsewhere)
    parts = [_titled(f"{module.__name__}: {about}"), f".. automodule:: {module.__name__}\n\n"]
    parts += [_table(own)] if own else []
    parts += [f"Also: {also}.\n"] if also else []
    return "".join(parts)


def pages() -> dict[str, str]:
    """The lists of all names by the name of their page, in reStructuredText."""
    placed = [name for names in GROUPS.values() for name in names]
    if missing := [name for name in placed if name not in headstart.__all__]:
        raise ValueError(f"GROUPS in docs/_ext/api.py: not exported by headstart: {missing}")
    groups = dict(GROUPS)
    if rest := [name for name in exported(headstart) if name not in placed]:
        groups["Further names"] = rest
    found = {}
    for title, names in groups.items():
        table = ".. currentmodule:: headstart\n\n" + _table(names)
        found[title.lower().replace(" ", "-")] = _titled(title) + table
    for module in modules():
        short = module.__name__.rpartition(".")[2]
        found[f"module-{short}"] = _module_page(module, MODULES[short])
    entries = "\n".join(f"   {name}" for name in found)
    tree = f".. toctree::\n   :maxdepth: 2\n\n{entries}\n   ../command-line\n"
    return {"index": _titled("Reference") + "Every public name, by subject.\n\n" + tree, **found}


def write_pages(app: Sphinx, config: Config) -> None:
    """Write them before pages are looked for, and tell autosummary of them."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    texts = pages()
    for old in folder.glob("*.rst"):
        if old.stem not in texts:
            old.unlink()
    for name, text in texts.items():
        place = folder / f"{name}.rst"
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")
    config["autosummary_generate"] = [f"api/{name}.rst" for name in texts]


def skip(
    app: Sphinx, kind: str, name: str, obj: object, skipped: bool, options: object
) -> bool | None:
    """Leave out of a class what comes from another package, and the places of a tuple."""
    del app, kind, name, skipped, options
    function = inspect.unwrap(getattr(obj, "fget", None) or getattr(obj, "__func__", obj))  # type: ignore[arg-type]
    module = getattr(function, "__module__", None) or ""
    return None if module.startswith("headstart") else True


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, shown: nodes.TextElement
) -> nodes.reference | None:
    """A name in backticks that the package exports, wherever the docstring stands."""
    del app
    name = str(node.get("reftarget", "")).removesuffix("()")
    if node.get("refdomain") != "py" or name.partition(".")[0] not in headstart.__all__:
        return None
    domain = env.domains["py"]
    here, builder = node.get("refdoc", ""), env.app.builder
    found = domain.resolve_xref(env, here, builder, "obj", f"headstart.{name}", node, shown)
    return found if isinstance(found, nodes.reference) else None


def setup(app: Sphinx) -> ExtensionMetadata:
    """Write the list, choose members, and resolve short names."""
    app.connect("config-inited", write_pages)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
