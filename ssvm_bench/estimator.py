"""Structural SVMs as estimators of scikit-learn: trained on what a Python program has.

.. code-block:: python

    from ssvm_bench import StructuredSVM

    tagger = StructuredSVM("chain", lam="200/n").fit(sentences, labels)
    tagger.predict(others)
    tagger.history_.plot("time", ["primal", "dual"])

What X and y are, by structure, :mod:`ssvm_bench.datasets.given` says. Examples become a `Dataset`,
and from there on everything is what a run of the command line does, files aside: the same options,
oracles, solvers and trace. But for the clock: ``work``, so that the same ``random_state`` gives the
same model however busy the machine is. Other clocks measure, and solvers with approximate passes
decide by what they measure.

A fit is all or nothing: it is made on a copy, which takes the place of the estimator at its end.
"""

from __future__ import annotations

import copy
import functools
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction import DictVectorizer
from sklearn.metrics import accuracy_score
from sklearn.utils import check_array, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.config import overrides, registry
from ssvm_bench.config.compose import Composer
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.config.validation import Table, convert
from ssvm_bench.datasets import given as examples
from ssvm_bench.datasets.arrays import LARGEST
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.given import Parts
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.runs import prediction, runner
from ssvm_bench.runs.terminal import make_display

_STRUCTURES = MULTICLASS, _, GRAPH = "multiclass", "chain", "graph"

_NUMBER = Real, "a number of usual size"
_KINDS: dict[str, tuple[Any, str]] = {
    "structure": (str, "a name"),
    "bias": _NUMBER,
    "potts": _NUMBER,
    "class_weight": ((str, Mapping, NoneType), "'balanced', a dict or None"),
    "oracle": ((str, Callable, NoneType), "a name, a callable or None"),
    "options": ((Mapping, NoneType), "a dict or None"),
    "verbose": ((bool, np.bool_, Integral), "true or false"),
}
"""Parameter → what it must be, if it is no option of a run, which is checked as such."""

_ELSEWHERE = {
    "solver": "the parameter solver",
    "lam": "the parameter lam",
    "seed": "the parameter random_state",
    "quiet": "the parameter verbose",
    "oracle": "the parameter oracle",
    "oracle.class_weight": "the parameter class_weight",
    "oracle.potts": "the parameter potts",
    "budget": "the parameters gap_tol, max_iterations and max_seconds",
    "dataset": "X and y",
    **dict.fromkeys(("results_dir", "force", "checkpoint"), "for files: a fit writes none"),
}
"""Options of a run that are none of a fit → what is in their place."""

_MOST_SEEDS = 2**31 - 1
_LIMITS = ("max_iterations", "max_seconds")
_composing = threading.Lock()  # Hydra's state is that of the process


class StructuredSVM(ClassifierMixin, BaseEstimator):
    """A structural SVM.

    Parameters
    ----------
    structure : str
        ``"multiclass"``, ``"chain"`` or ``"graph"`` (attractive Potts); or a name of which an
        oracle of yours knows what it is.
    solver : str
        As on the command line.
    lam : float, str or None
        λ > 0, or ``"K/n"``; None: 1/n.
    gap_tol : float
        Relative duality gap at which training ends.
    max_iterations : int or None
    max_seconds : float or None
        Limits of training, of which the first that is reached ends it, too. With ``max_seconds``,
        the clock is that on the wall.
    bias : float
        A constant feature of this value, the last one; 0: none.
    potts : float
        Of graphs, without an oracle made by a callable: what it costs that neighbours have
        different labels.
    class_weight : None, "balanced" or dict
        What the classes count: by label, 1 of labels that are not named.
    oracle : str, callable or None
        Another oracle: its name, or what makes one of a `Dataset`, as a class derived from
        `ssvm_bench.oracles.base.Oracle`. None: that of the structure.
    options : mapping, optional
        Further options of the command line: ``{"solver.T": 10, "clock": "wall"}``.
    config_dirs : list of path
        Folders with components in files, as of ``--config-dir``.
    random_state : int, RandomState or None
        The seed. An integer fixes the model, unless ``max_seconds`` or a ``clock`` is given.
    verbose : bool
        Show how training goes, on stderr.

    Attributes
    ----------
    classes_ : ndarray, shape (K,)
        The labels.
    weights_ : ndarray of float64, shape (d,)
        w.
    n_iter_ : int
        Iterations of the solver.
    history_ : DataFrame
        The trace: a row for each evaluated iteration (docs/files.md has the columns).
    stop_reason_ : str
        Why training ended.
    vectorizer_ : DictVectorizer or None
        Numbers the features, if they have names.
    n_features_in_ : int
        Number of features of a part, the constant one not counted.
    """

    def __init__(
        self,
        structure: str = MULTICLASS,
        *,
        solver: str = "mpbcfw_fast",
        lam: float | str | None = None,
        gap_tol: float = 0.01,
        max_iterations: int | None = 1000,
        max_seconds: float | None = None,
        bias: float = 1.0,
        potts: float = 1.0,
        class_weight: str | Mapping[Any, float] | None = None,
        oracle: str | Callable[[Dataset], Oracle] | None = None,
        options: Mapping[str, Any] | None = None,
        config_dirs: Sequence[str | Path] = (),
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.structure = structure
        self.solver = solver
        self.lam = lam
        self.gap_tol = gap_tol
        self.max_iterations = max_iterations
        self.max_seconds = max_seconds
        self.bias = bias
        self.potts = potts
        self.class_weight = class_weight
        self.oracle = oracle
        self.options = options
        self.config_dirs = config_dirs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> StructuredSVM:
        """Train on examples and their labels.

        Raises
        ------
        ValueError, TypeError
            X and y are no such examples.
        ConfigError
            A mistake in the parameters.
        RunFailedError
            Training fails.
        """
        for name, (kind, words) in _KINDS.items():
            _check(name, getattr(self, name), kind, words)
        if self.oracle is None and self.structure not in _STRUCTURES:
            known = f"{', '.join(_STRUCTURES)} (or give an oracle)"
            raise ConfigError(f"structure={shown(repr(self.structure))} is unknown: {known}")
        fitted = copy.copy(self)
        folders = convert(tuple[Path, ...], self.config_dirs, "config_dirs")
        fitted._folders = tuple(folder.resolve() for folder in folders)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(fitted, name)
        fitted._fit(X, y)
        self.__dict__ = fitted.__dict__
        return self

    def predict(self, X: Any) -> Any:
        """Return the labels: of a multiclass problem an array, else an array for each example.

        Of an oracle whose labelings are not labels of parts: a list of its labelings.

        Raises
        ------
        ValueError, TypeError
            X is no such examples, or has other features than those of training.
        """
        fitted = self._fitted()
        oracle, parts, labels = fitted._predicted(X)
        if labels is None:
            return [oracle.predict(fitted.weights_, i) for i in range(oracle.n)]
        return labels if fitted._is_multiclass else np.split(labels, parts.offsets[1:-1])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right labels; of other labelings, 1 − their mean loss.

        Raises
        ------
        ValueError, TypeError
            As `predict`; or there are weights of examples that have several labels each.
        """
        fitted = self._fitted()
        if fitted._is_multiclass:
            examples.check_labels(None, column_or_1d(y))
            return float(accuracy_score(y, fitted.predict(X), sample_weight=sample_weight))
        if sample_weight is not None:
            raise ValueError("sample_weight is for examples of one label each: leave it None")
        oracle, parts, labels = fitted._predicted(X, y)
        if labels is None:
            return 1.0 - float(oracle.mean_loss(fitted.weights_))
        return float(np.mean(examples.are_equal(labels, examples.labels_of(y, parts.offsets))))

    def __sklearn_tags__(self) -> Any:
        """Return what it takes: lists of labels are no classes for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        if not self._is_multiclass:
            tags.estimator_type = None
            tags.input_tags.two_d_array = False
        return tags

    @property
    def _is_multiclass(self) -> bool:
        return self.structure == MULTICLASS

    @property
    def _structure(self) -> str:
        """The structure of the `Dataset`."""
        return "independent" if self._is_multiclass else self.structure

    def _fit(self, X: Any, y: Any) -> None:
        parts, labels = self._parts(X, y, fits=True)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(f"y has one class only, {self.classes_[0]}: there is nothing to learn")
        dataset = self._dataset(parts, codes)
        config = self._config(dataset)
        with make_display(quiet=not self.verbose) as display:
            found, self.stop_reason_ = runner.train(config, dataset, display)
        self._trained = {"structure": self.structure, "bias": self.bias}
        self._oracle = {
            each.name: getattr(config.oracle, each.name) for each in fields(config.oracle)
        }
        self.weights_, self.history_ = found.w, pd.DataFrame(found.rows)
        self.n_iter_ = int(self.history_["iteration"].iloc[-1])
        primal, gap = self.history_[["primal", "gap"]].iloc[-1]
        if self.stop_reason_ in _LIMITS and gap > self.gap_tol * primal:
            warnings.warn(
                f"Training ended by {self.stop_reason_} at a relative gap of {gap / primal:.2g}; "
                f"gap_tol is {self.gap_tol:g}.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _fitted(self) -> StructuredSVM:
        """Return a copy with the parameters of training: others may be set, or fitted meanwhile."""
        fitted = copy.copy(self)
        fitted.__dict__.update(getattr(fitted, "_trained", {}))
        check_is_fitted(fitted)
        return fitted

    def _parts(self, X: Any, y: Any = None, fits: bool = False) -> tuple[Parts, Any]:
        """Return the parts of all examples, with a matrix of numbers as features, and labels."""
        single, labels = self._is_multiclass, None
        X = examples.looked_at(X)
        parts = None if single else examples.parts_of(X, self.structure)
        named = examples.are_named(X if parts is None else parts.features)
        if fits:
            self.vectorizer_ = DictVectorizer(sort=False) if named else None
        elif named != (self.vectorizer_ is not None):
            have, had = ("names", "none") if named else ("no names", "some")
            raise ValueError(f"the features of X have {have}, and those of training had {had}")
        if single and not named:
            if fits:
                X, labels = validate_data(self, X, y, accept_sparse="csr")
                examples.check_labels(y, labels)
                check_classification_targets(labels)
            else:
                X = validate_data(self, X, reset=False, accept_sparse="csr")
            return examples.parts_of(X, self._structure), labels
        parts = parts or examples.parts_of(X, self._structure)
        x = parts.features
        if named:
            x = examples.numbered(x, self.vectorizer_, fits)
        x = check_array(x, accept_sparse="csr")
        if fits:
            self.n_features_in_ = x.shape[1]
            labels = examples.labels_of(y, parts.offsets, single)
        elif x.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {x.shape[1]} features a part, and {self.n_features_in_} were trained with"
            )
        return parts._replace(features=x), labels

    def _dataset(self, parts: Parts, codes: np.ndarray | None = None) -> Dataset:
        return examples.dataset(parts, self._structure, self.classes_, codes, float(self.bias))

    def _predicted(self, X: Any, y: Any = None) -> tuple[Oracle, Parts, np.ndarray | None]:
        """Return the oracle of examples, their parts, and the predicted labels of all parts.

        The labels are None where labelings are no labels of parts.
        """
        parts, _ = self._parts(X)
        truth = None
        if y is not None:
            truth = examples.codes_of(examples.labels_of(y, parts.offsets), self.classes_)
        registry.use(self._folders)  # of which another process does not know yet
        config = registry.config("oracle", self._oracle)
        oracle = prediction.predictor(config, self._dataset(parts, truth))
        codes = np.asarray(oracle.predictions(self.weights_))
        return oracle, parts, self.classes_[codes] if codes.shape == (parts.offsets[-1],) else None

    def _config(self, dataset: Dataset) -> RunConfig:
        """Return the options of the run."""
        assert dataset.vocabulary is not None
        own = dataset.vocabulary.oracle if self.oracle is None else self.oracle
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(_MOST_SEEDS)
        options = {
            "solver": self.solver,
            "lam": self.lam,
            "budget.gap_tol": self.gap_tol,
            "budget.max_iterations": self.max_iterations,
            "budget.max_seconds": self.max_seconds,
            "seed": seed,
            "clock": "work" if self.max_seconds is None else "wall",
            **({} if callable(own) else {"oracle": own}),
        }
        words, further = overrides.words(options), overrides.words(self.options or {})
        of_callable = {}
        with _composing:
            for word, setting in zip(further, overrides.read(further), strict=True):
                section, _, option = setting.key.partition(".")
                of_component = option and section in ("solver", "oracle")
                there = _ELSEWHERE.get(setting.key if of_component else section)
                if there is not None:
                    raise ConfigError(f"options: {shown(setting.key)} is {there}.")
                if callable(own) and section == "oracle":
                    of_callable[option] = setting.value
                else:
                    words.append(word)
            (config,) = _composer(self._folders).runs(words)
        oracle = config.oracle
        if callable(own):
            about = {"name": "given", "kind": "given", "make": own}
            oracle = registry.config("oracle", {**of_callable, **about})
        elif self.structure == GRAPH and hasattr(oracle, "potts"):
            oracle = replace(oracle, potts=float(self.potts))
        if self.class_weight is not None:
            if not hasattr(oracle, "class_weight"):
                raise ConfigError(f"oracle={oracle.name} has no class_weight. Leave it None.")
            weights = self.class_weight
            if isinstance(weights, Mapping):
                for label, weight in weights.items():
                    _check(f"class_weight of {shown(repr(label))}", weight, *_NUMBER)
                weights = Table((str(label), float(weight)) for label, weight in weights.items())
            oracle = replace(oracle, class_weight=weights)
        mine = examples.Config(name=dataset.name, kind="given", dataset=dataset)
        return replace(config, dataset=mine, oracle=oracle)


def _check(name: str, value: Any, kind: Any, words: str) -> None:
    """Raise ``ConfigError`` unless a value is of this kind."""
    if not isinstance(value, kind) or (kind is Real and not abs(value) < float(LARGEST)):
        raise ConfigError(f"{name} must be {words}, got {shown(repr(value))}.")


@functools.lru_cache(maxsize=8)
def _composer(config_dirs: tuple[Path, ...]) -> Composer:
    """Return what composes options; it reads each file once."""
    return Composer(config_dirs)
