"""Structural SVMs as estimators of scikit-learn: trained on what a Python program has.

.. code-block:: python

    from ssvm_bench import StructuredSVM

    tagger = StructuredSVM("chain", lam="200/n").fit(sentences, labels)
    tagger.predict(others)
    tagger.history_.plot("time", ["primal", "dual"])

What X and y are, by structure, :mod:`ssvm_bench.datasets.given` says. Examples become a `Dataset`,
and from there on everything is what a run of the command line does, files aside: the same options,
oracles, solvers and trace.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction import DictVectorizer
from sklearn.metrics import accuracy_score
from sklearn.utils import check_array, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config import overrides
from ssvm_bench.config.compose import Composer
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.config.validation import Table
from ssvm_bench.datasets import given as examples
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.given import Parts
from ssvm_bench.oracles import given
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.runs import in_memory, prediction
from ssvm_bench.runs.terminal import make_display

MULTICLASS, GRAPH = "multiclass", "graph"

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
        Limits of training, of which the first that is reached ends it, too.
    bias : float
        A constant feature of this value, the last one; 0: none.
    potts : float
        Of graphs: what it costs that neighbours have different labels.
    class_weight : None, "balanced" or dict
        What the classes count: by label, 1 of labels that are not named.
    oracle : str, callable or None
        Another oracle: its name, or what makes one of a `Dataset`, as a class derived from
        `ssvm_bench.oracles.base.Oracle`. None: that of the structure.
    options : mapping, optional
        Further options of the command line: ``{"solver.T": 10, "clock": "cpu"}``.
    config_dirs : iterable of path
        Folders with components in files, as of ``--config-dir``.
    random_state : int, RandomState or None
        The seed.
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
        config_dirs: Iterable[str | Path] = (),
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
        ValueError
            X and y are no such examples.
        ConfigError
            A mistake in the parameters.
        RunFailedError
            Training fails.
        """
        parts, y = self._parts(X, y, fits=True)
        labels = y if self._is_multiclass else examples.labels_of(y, parts.offsets)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(f"y has one class only, {self.classes_[0]}: there is nothing to learn")
        dataset = self._dataset(parts, codes)
        config = self._config(dataset)
        with make_display(quiet=not self.verbose) as display:
            found = in_memory.train(config, dataset, display)
        self._oracle_config = config.oracle
        self.weights_, self.stop_reason_ = found.w, found.stop_reason
        self.history_ = pd.DataFrame(found.rows)
        self.n_iter_ = int(self.history_["iteration"].iloc[-1])
        primal, gap = self.history_[["primal", "gap"]].iloc[-1]
        if found.stop_reason in _LIMITS and gap > self.gap_tol * primal:
            warnings.warn(
                f"Training ended by {found.stop_reason} at a relative gap of {gap / primal:.2g}; "
                f"gap_tol is {self.gap_tol:g}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> Any:
        """Return the labels: of a multiclass problem an array, else an array for each example.

        Of an oracle whose labelings are not labels of parts: a list of its labelings.
        """
        oracle, parts, labels = self._predicted(X)
        if labels is None:
            return [oracle.predict(self.weights_, i) for i in range(oracle.n)]
        return labels if self._is_multiclass else np.split(labels, parts.offsets[1:-1])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of right labels; of other labelings, 1 − their mean loss."""
        if self._is_multiclass:
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        oracle, parts, labels = self._predicted(X, y)
        if labels is None:
            return 1.0 - float(oracle.mean_loss(self.weights_))
        return float(np.mean(labels == examples.labels_of(y, parts.offsets)))

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

    def _parts(self, X: Any, y: Any = None, fits: bool = False) -> tuple[Parts, Any]:
        """Return the parts of all examples, with a matrix of numbers as features, and checked y."""
        checks: dict[str, Any] = {"accept_sparse": "csr"}
        if self._is_multiclass and not examples.are_named(X):
            if fits:
                X, y = validate_data(self, X, y, **checks)
                check_classification_targets(y)
            else:
                X = validate_data(self, X, reset=False, **checks)
            self.vectorizer_ = None
            return examples.parts_of(X, self._structure), y
        parts = examples.parts_of(X, self._structure)
        if examples.are_named(parts.features):
            named = examples.mappings(parts.features)
            if fits:
                self.vectorizer_ = DictVectorizer(sort=False)
            reader: Any = self.vectorizer_
            x = reader.fit_transform(named) if fits else reader.transform(named)
        else:
            x = check_array(parts.features, **checks)
            if fits:
                self.vectorizer_ = None
        if fits:
            self.n_features_in_ = x.shape[1]
        elif x.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {x.shape[1]} features a part, and {self.n_features_in_} were trained with"
            )
        return parts._replace(features=x), y

    def _dataset(self, parts: Parts, codes: np.ndarray | None = None) -> Dataset:
        return examples.dataset(parts, self._structure, self.classes_, codes, self.bias)

    def _predicted(self, X: Any, y: Any = None) -> tuple[Oracle, Parts, np.ndarray | None]:
        """Return the oracle of examples, their parts, and the predicted labels of all parts.

        The labels are None where labelings are no labels of parts.
        """
        check_is_fitted(self)
        parts, _ = self._parts(X)
        truth = None
        if y is not None:
            found = np.searchsorted(self.classes_, examples.labels_of(y, parts.offsets))
            truth = found.clip(max=self.classes_.size - 1)
        oracle = prediction.predictor(self._oracle_config, self._dataset(parts, truth))
        codes = np.asarray(oracle.predictions(self.weights_))
        return oracle, parts, self.classes_[codes] if codes.shape == (parts.offsets[-1],) else None

    def _config(self, dataset: Dataset) -> RunConfig:
        """Return the options of the run."""
        assert dataset.vocabulary is not None
        own = self.oracle if isinstance(self.oracle, str) else dataset.vocabulary.oracle
        if own is None and self.oracle is None:
            raise ConfigError(
                f"structure={self.structure!r} is none of {MULTICLASS!r}, 'chain' and {GRAPH!r}: "
                "say which oracle is for it."
            )
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
            **({"oracle": own} if own else {}),
            **({"oracle.potts": self.potts} if self.structure == GRAPH and not self.oracle else {}),
            **(self.options or {}),
        }
        with _composing:
            (config,) = _composer(tuple(map(Path, self.config_dirs))).runs(overrides.words(options))
        oracle = config.oracle
        if callable(self.oracle):
            oracle = given.Config(name="given", kind="given", make=self.oracle)
        if self.class_weight is not None:
            oracle = self._weighted(oracle)
        mine = examples.Config(name=dataset.name, kind="given", dataset=dataset)
        return replace(config, dataset=mine, oracle=oracle)

    def _weighted(self, oracle: Any) -> Any:
        """Return the options of an oracle, with weights of classes."""
        if not hasattr(oracle, "class_weight"):
            raise ConfigError(f"oracle={oracle.name} has no class_weight. Leave it None.")
        weights = self.class_weight
        if isinstance(weights, Mapping):
            weights = Table((str(label), float(weight)) for label, weight in weights.items())
        return replace(oracle, class_weight=weights)


@functools.lru_cache(maxsize=8)
def _composer(config_dirs: tuple[Path, ...]) -> Composer:
    """Return what composes options; it reads each file once."""
    return Composer(config_dirs)
