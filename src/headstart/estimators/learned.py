"""What a fitted `MetaRegressor` or `MetaClassifier` knows, tells of it, and saves."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from headstart._core.answers import check_answer, quietly
from headstart._core.checks import FloatArray, check_count
from headstart._core.places import AnyPath, as_place
from headstart.estimators import state
from headstart.estimators.base import Estimator, only_priors
from headstart.estimators.base_model import check_base, from_bytes, to_bytes
from headstart.estimators.inputs import Labels
from headstart.estimators.parameters import check_parameters, check_unchanged, learns_prior
from headstart.estimators.run import FitRun
from headstart.meta.prior import Prior
from headstart.online import (
    AnyStream,
    BiasStream,
    PriorSettings,
    PriorStream,
    Settings,
    SparseStream,
)
from headstart.store import StoreError, damaged
from headstart.tasks.ids import canonical

STARTING = threading.RLock()  # held while a model's first rows come, or it is read from disk


class Learned(Estimator):
    """The start of new entities, the own weights of known ones, and what a prior says of both."""

    metric: str
    step: float | str
    group: str | int | None
    side: Sequence[str | int] | None
    task_size: int | None
    base: Any
    base_: Any = None
    run_: FitRun | None = None
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _known: AnyStream | state.Stored

    def _has_prior(self) -> bool:
        return learns_prior(self.reg)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_known")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)
        return f"{text} <{self.n_tasks_} tasks>" if self.__sklearn_is_fitted__() else text

    @property
    def bias_(self) -> FloatArray:
        """The learned starting point, one number for each feature; that of the base comes last."""
        return self._start()[:-1]

    @property
    def intercept_(self) -> float:
        """The learned starting point of the intercept; 0 without one."""
        return float(self._start()[-1])

    @property
    def prior_(self) -> Prior:
        """The learned prior: `bias`, `covariance` and `noise`, in the units of the data."""
        check_is_fitted(self)
        if not self._has_prior():
            raise AttributeError("prior_: a number for reg learns the bias alone; see bias_")
        known = self._known
        if isinstance(known, BiasStream) or known.prior is None:
            raise AttributeError("prior_: reg is 'auto' now, and was a number in fit; fit again")
        return known.prior

    @property
    def step_(self) -> float:
        """The meta step size in use: `step`, or the newest one if it is chosen."""
        check_is_fitted(self)
        if self._has_prior():
            raise AttributeError("step_: a learned prior takes no steps; see prior_")
        return self._bias_stream().step

    @property
    def n_tasks_(self) -> int:
        """Number of tasks that were learned from."""
        check_is_fitted(self)
        return self._known.n_tasks

    @property
    def ids_(self) -> list[Hashable]:
        """The ids of all entities with own weights."""
        check_is_fitted(self)
        return self._known.ids.keys

    def bias_by_feature(self) -> dict[str, float]:
        """The bias by feature name: as in the data frame of `fit`, or x0, x1, ..."""
        return dict(zip(self._names(), self.bias_.tolist(), strict=True))

    def weights_of(self, id: Hashable) -> FloatArray:  # noqa: A002
        """The own weights of an entity, one for each feature; KeyError if it is not known."""
        return self._own(id)[:-1]

    def intercept_of(self, id: Hashable) -> float:  # noqa: A002
        """The own intercept of an entity."""
        return float(self._own(id)[-1])

    @only_priors
    def summary(self) -> Any:
        r"""What is shared and what differs, feature by feature, in the units of the data.

        Returns
        -------
        data frame (pandas; a pyarrow table where that is not installed) with the columns

        feature : its name; "(intercept)" is what is predicted where all features are 0
        effect : the shared effect, where a new entity starts
        differs : the standard deviation of the entities' own effects around it
        per ... : what one more of each column of `side` adds to the shared effect
        rows : about how many rows of an entity weigh as much as the shared effect does: where
            many, entities are alike in it; 0.1 means that a first row already decides
        """
        prior, side = self.prior_, getattr(self.stream().settings, "side", ())  # as it was in fit
        G = prior.side_effects
        names = [*self._names(), "(intercept)"]
        table: dict[str, Any] = {
            "feature": names[: prior.bias.size],
            "effect": prior.bias,
            "differs": np.sqrt(prior.variances),
            "rows": prior.worth,
        }
        for name, effects in zip(side, (G if G is not None else np.empty((0, 0))).T,
                                 strict=False):  # fmt: skip
            table[f"per {name}"] = effects
        try:
            import pandas as pd
        except ImportError:
            return pa.table(table)
        return pd.DataFrame(table).set_index("feature")

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(self.n_features_in_)]
        return [*map(str, names), *(["(base)"] if self.base_ is not None else [])]

    def _own(self, key: Hashable) -> FloatArray:
        check_is_fitted(self)
        (position,) = self._known.ids.find([canonical(key)])
        if position < 0:
            raise KeyError(f"{key!r} is no known id; unknown ones start from bias_, see adapt")
        weights, (place,) = self._known.weights(np.array([position]))
        own: FloatArray = weights[place].copy()
        return check_answer(own, "X, y, reg")

    def _start(self) -> FloatArray:
        check_is_fitted(self)
        with quietly():
            return check_answer(self._known.start.astype(self._known.dtype), "X, y, reg")

    def _prior_stream(self) -> PriorStream:
        stream = self.stream()
        if isinstance(stream, SparseStream):
            raise ValueError("X: a model of sparse rows keeps all rows, and has no summaries")
        if not isinstance(stream, PriorStream):
            raise ValueError("reg: expected the number it was in fit, found 'auto'; fit again")
        return stream

    def _bias_stream(self) -> BiasStream:
        stream = self.stream()
        if not isinstance(stream, BiasStream):
            raise ValueError("reg: expected 'auto' as in fit, found a number; fit again")
        return stream

    def settings(self) -> PriorSettings | Settings:
        """The parameters, checked, as a stream takes them; of many single rows checked once."""
        side = tuple(self.side) if isinstance(self.side, list) else self.side
        now = (
            self.loss, self.metric, self.reg, self.step, self.inner, self.predictor, side,
            self.task_size, self.fit_intercept, self.base,
        )  # fmt: skip
        before, settings = getattr(self, "_checked", (None, None))
        if settings is None or not _same(before, now):
            self._check_choices()
            settings = check_parameters(self, self._loss())
            if self.base is not None:
                check_base(self.base, binary=isinstance(self, ClassifierMixin))
            self._checked = now, settings
        return settings

    def stream(self) -> AnyStream:
        """What a fitted model knows, in memory, where it can go on."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # raises; by itself it would take too long for single rows
        if isinstance(self._known, state.Stored):
            with STARTING:
                if isinstance(self._known, state.Stored):
                    self._known = self._known.live()
        return self._known

    def know(
        self,
        stream: AnyStream,
        features: Sequence[str],
        classes: Labels | None = None,
    ) -> None:
        """Be fitted: know what a stream has learned, with these features and classes."""
        self._describe(len(features), list(features), classes)
        self._known = stream

    def know_columns(self, stream: AnyStream, width: int, classes: Labels | None = None) -> None:
        """Be fitted: know what a stream has learned of so many columns without names."""
        self._describe(width, None, classes)
        self._known = stream

    def _describe(self, width: int, names: list[str] | None, classes: Labels | None) -> None:
        self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        if classes is not None:
            setattr(self, "classes_", classes)  # noqa: B010 - only classifiers have it

    def __getstate__(self) -> dict[str, Any]:
        if self.__sklearn_is_fitted__():
            self.stream()
        return super().__getstate__()

    def save(self, path: AnyPath, keep: int = 1) -> None:
        """Write the model into the folder `path`, in the place of an older model there.

        Plain arrays and JSON, no pickle. What was there stays whole until the new model is, and
        a model that was loaded from there goes on with what it had. Several processes may save to
        one folder, one after the other, and load from it meanwhile.

        Parameters
        ----------
        path : str or Path
            A folder, or an address such as ``"s3://bucket/model"``, where the last of several
            who save at once is the newest.
        keep : int
            How many of the newest versions there are afterwards, this one included: those before
            it are for `load`.
        """
        check_count("keep", keep)
        stream = self.stream()
        check_unchanged(stream.settings, self.settings())
        names = getattr(self, "feature_names_in_", None)
        description = state.Description(
            type(self).__name__,
            {**self.get_params(deep=False), "base": None},
            self.n_features_in_,
            None if names is None else list(names),
            getattr(self, "classes_", None),
            self.run_,
        )
        base = None if self.base_ is None else to_bytes(self.base_)
        state.write(as_place(path), description, stream, keep, base)

    @classmethod
    def load(cls, path: AnyPath, version: int = 0, trusted: bool = False) -> Self:
        """The model in the folder `path`, as it was when it was saved.

        Weights are read from disk as they are needed; files that are not whole are refused.

        Parameters
        ----------
        path : str or Path
            A folder, or an address such as ``"s3://bucket/model"``: all arrays are fetched then.
        version : int
            0 for the newest, 1 for the one saved before it, and so on, as far as `save` keeps
            them. Saving such a one again makes it the newest.
        trusted : bool
            Whether the author of the model is trusted. Only a model with a `base` asks for it.
        """
        return cls.from_saved(state.read(as_place(path), version), trusted=trusted)

    @classmethod
    def from_saved(cls, saved: state.Saved, *, trusted: bool = False) -> Self:
        """The model that was read from a folder, which must be of this class."""
        kind, parameters, width, names, classes, run, has_base = saved.description
        if kind != cls.__name__:
            raise StoreError(f"{saved.folder} holds a {kind}; load it with {kind}.load")
        with damaged(saved.folder):
            model = cls(**parameters)
            if (classes is None) == isinstance(model, ClassifierMixin):
                raise ValueError(f"classes: expected those of a {kind}, found {classes}")
            model._describe(width, names, classes)
            model.run_ = run
            settings = model.settings()
            if has_base:
                if not isinstance(settings, PriorSettings):
                    raise ValueError("base: expected none with a number for reg, found one")
                settings = replace(settings, base=True)
            model._known = saved.stream(settings)
        if has_base:
            binary, folder = isinstance(model, ClassifierMixin), saved.folder
            model.base_ = from_bytes(saved.base(), folder, binary=binary, trusted=trusted)
            model.base = clone(model.base_)
        return model


def _same(before: Any, now: Any) -> bool:
    """Whether parameters are the same; what cannot be compared is not."""
    try:
        return bool(before == now)
    except (TypeError, ValueError):  # an array, say
        return False
