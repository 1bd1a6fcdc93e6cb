"""Predictions of a fitted estimator, and its weights.

.. code-block:: text

    multiclass   s(x, c)  = ⟨w_c, x⟩                                   score of a label
    chain        s(x, y)  = Σ_l ⟨w_{y_l}, x^l⟩ + Σ_l T[y_l, y_{l+1}]   score of a labeling
    graph        s(x, y)  = Σ_l ⟨w_{y_l}, x^l⟩ − Σ_{k∼l} ⟨potts, x_{kl}⟩ [y_k ≠ y_l]
    marginals    p(y | x) ∝ exp(s(x, y) / temperature)

x includes the constant feature, and edges without features have x_{kl} = 1. With a kernel, ⟨w_c, x⟩
is Σ_j β[j, c] k(x_j, x) over the support. Training maximises a margin, not a likelihood: marginals
only rank labels by certainty, and the temperature has to be chosen on held-out examples.
"""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction import DictVectorizer
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.base.nonzeros import Nonzeros, compact
from ssvm_bench.base.threads import available
from ssvm_bench.config import registry
from ssvm_bench.datasets import given as examples
from ssvm_bench.datasets import named
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import gibbs
from ssvm_bench.oracles.kernels import LINEAR
from ssvm_bench.runs import prediction

STRUCTURES = MULTICLASS, CHAIN, GRAPH = "multiclass", "chain", "graph"

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])

Answer = TypeVar("Answer")
"""What predictions are: an array for multiclass problems, else a list of an array per example."""

_LABELS = {
    MULTICLASS: ("multiclass", "binary"),
    CHAIN: ("viterbi",),
    GRAPH: ("alpha_expansion", "mincut"),
}
"""Structure → the oracles for which the meaning of w is known."""


def _has_weights(*structures: str, or_kernel: bool = False) -> Any:
    """Return a test whether a model has weights by label and feature, and a given structure."""

    def has(model: Any) -> bool:
        trained = {"structure": model.structure} | getattr(model, "_trained", {})
        about = getattr(model, "_oracle", {"kind": model.oracle, "kernel": model.kernel})
        structure = trained["structure"]
        known = structure in structures and about["kind"] in (None, *_LABELS[structure])
        return known and (or_kernel or about.get("kernel", LINEAR) == LINEAR)

    return has


def _available_with_weights(
    *structures: str, or_kernel: bool = False
) -> Callable[[Method], Method]:
    """Return a decorator: the model has the method only if `_has_weights` says so."""
    found: Callable[[Method], Method] = available_if(_has_weights(*structures, or_kernel=or_kernel))
    return found


@dataclass(repr=False)
class _Prepared:
    """What predictions need besides w and the examples; the first one after a fit makes it.

    Threads that predict at once may each make it: both are the same.

    Attributes
    ----------
    oracle : object
        The options of the oracle.
    weights : object
        w, packed by the oracle (`Oracle.packed`).
    """

    oracle: Any = None
    weights: Any = None


class Predictor(ClassifierMixin, BaseEstimator, Generic[Answer]):
    """The methods and properties of a fitted estimator.

    Its copies share what is prepared for predictions, which a pickle does not have: a pickle has
    the weights that are not 0, the names of features once, compressed, and the columns of the
    trace. So skops can write it, too, which knows arrays and no data frames.
    """

    structure: str
    oracle: Any
    kernel: str
    bias: float
    classes_: np.ndarray
    support_: np.ndarray
    support_vectors_: Any
    n_iter_: int
    history_: pd.DataFrame
    stop_reason_: str
    vectorizer_: DictVectorizer | None
    n_features_in_: int
    feature_names_in_: np.ndarray
    n_edge_features_in_: int = 0
    _folders: tuple[Path, ...]
    _oracle: dict[str, Any]
    _weights: np.ndarray | Nonzeros
    _prepared: _Prepared

    def __copy__(self) -> Self:
        """Return a copy that shares what is prepared for predictions."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Return what to pickle."""
        state = {**super().__getstate__()}
        state.pop("_prepared", None)
        w = state.get("_weights")
        if isinstance(w, Nonzeros):
            state["_weights"] = w.size, w.places.astype(np.min_scalar_type(w.size)), w.values
        if "history_" in state:
            state["history_"] = {name: of.to_numpy() for name, of in state["history_"].items()}
        names = getattr(state.get("vectorizer_"), "feature_names_", ())
        if names and all(isinstance(name, str) for name in names):  # keys of a mapping may be none
            text = json.dumps(names, ensure_ascii=False).encode(errors="surrogatepass")
            state["vectorizer_"] = zlib.compress(text, level=1)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore what was pickled, also by version 1.0."""
        state = dict(state)
        w, names = state.pop("weights_", state.pop("_weights", None)), state.get("vectorizer_")
        if isinstance(names, bytes):
            names = json.loads(zlib.decompress(names).decode(errors="surrogatepass"))
            state["vectorizer_"] = vectorizer(names)
        if "history_" in state:  # a frame, if version 1.0 has pickled it
            state["history_"] = pd.DataFrame(state["history_"])
        super().__setstate__(state)
        if isinstance(w, tuple):
            size, places, values = w
            w = Nonzeros(size, places.astype(np.int64), values)
        if w is not None:
            self._take(w)

    @property
    def weights_(self) -> np.ndarray:
        """w; see the class. The array is read-only: assign another one, of as many numbers.

        Raises
        ------
        ValueError
            What is assigned is no vector of finite real numbers, or has another length.
        """
        if not hasattr(self, "_weights"):
            raise AttributeError("weights_ are those of a fitted model: call fit first")
        w = np.asarray(self._weights).view()
        w.flags.writeable = False
        return w

    @weights_.setter
    def weights_(self, w: Any) -> None:
        d = getattr(self, "_weights", np.asarray(w)).size
        w = column_or_1d(check_array(w, dtype=np.float64, ensure_2d=False, input_name="weights_"))
        if w.size != d:
            raise ValueError(f"weights_ must have {d} numbers, as training has found, got {w.size}")
        self._take(w)

    def _take(self, w: np.ndarray | Nonzeros) -> None:
        """Have other weights, for which nothing is prepared yet."""
        self._weights, self._prepared = compact(w), _Prepared()

    def predict(self, X: Any) -> Answer:
        """Return the labels: for multiclass problems an array, else an array for each example.

        If the oracle's labelings are not labels of parts, return a list of labelings. An example
        without parts has an empty array.

        Raises
        ------
        ValueError, TypeError
            X does not have the form of examples, or its features differ from those of training.
        """
        fitted = self._fitted()
        oracle, parts, labels = fitted._predicted(X)
        if labels is None:
            terms, nothing = iter(range(oracle.n)), fitted.classes_[:0]
            w, sizes = fitted._prepared.weights, parts.sizes.tolist()
            found: Any = [oracle.predict(w, next(terms)) if size else nothing for size in sizes]
            return found
        return fitted._by_example(labels, parts)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of correct labels; if labelings are not labels, 1 − their mean loss.

        An example of weight 2 counts as two. This is what a search maximises without ``scoring``.
        The metrics of scikit-learn, as ``scoring="accuracy"``, refuse the lists of chains and
        graphs: name ``make_scorer(flat_accuracy_score)``, of `ssvm_bench.estimator.metrics`.

        Raises
        ------
        ValueError, TypeError
            As `predict`; or there are no parts; or there are weights, but labelings are not labels
            of parts.
        """
        fitted = self._fitted()
        if fitted._is_multiclass:
            from sklearn.metrics import accuracy_score  # which a fit does without

            examples.check_labels(None, column_or_1d(y))
            found: Any = fitted.predict(X)
            _check_some(len(found))
            return float(accuracy_score(y, found, sample_weight=sample_weight))
        oracle, parts, labels = fitted._predicted(X, y)
        if labels is None:
            if sample_weight is not None:
                raise ValueError("sample_weight is for labels of parts, which these are not")
            return 1.0 - float(oracle.mean_loss(fitted._prepared.weights))
        weights = examples.weights_of(sample_weight, parts.sizes.size)
        right = examples.are_equal(labels, examples.labels_of(y, parts.offsets))
        _check_some(int(parts.sizes @ (weights > 0)))
        return float(np.average(right, weights=np.repeat(weights, parts.sizes)))

    def mean_loss(self, X: Any, y: Any) -> float:
        """Return the mean over the examples of the loss used in training.

        That is ``loss``, without the weights of classes and examples; if ``loss`` is None, it is
        the share of wrong labels in an example. ``score`` only counts correct and wrong labels.
        Examples without parts are left out.

        Raises
        ------
        ValueError, TypeError
            As `predict`; or there are no parts, or y has a label that training has not seen.
        """
        fitted = self._fitted()
        parts, _ = fitted._parts(X)
        _check_some(int(parts.offsets[-1]))
        labels = examples.labels_of(y, parts.offsets, fitted._is_multiclass)
        codes = examples.codes_of(labels, fitted.classes_)
        known = examples.are_equal(labels, fitted.classes_[codes])
        if not known.all():
            unknown = shown(repr(labels[np.argmin(known)].item()))
            raise ValueError(f"y has the label {unknown}, which training has not seen")
        return float(fitted._asked(lambda oracle, w: oracle.mean_loss(w), parts, codes))

    @_available_with_weights(*_LABELS, or_kernel=True)
    def decision_function(self, X: Any) -> Answer:
        """Return the scores ⟨w_c, x⟩ of the labels, in the order of ``classes_``.

        Returns
        -------
        ndarray or list of ndarray
            Multiclass: shape (n, K); with two labels, shape (n,), positive where the second label
            is predicted. Chains and graphs: for each example an array of shape (L, K), the scores
            of its parts alone, without ``transitions_`` of chains and the Potts term of graphs
            (see the module's docstring).

        Raises
        ------
        ValueError, TypeError
            As `predict`.
        """
        fitted = self._fitted()
        parts, _ = fitted._parts(X)
        scores: Any
        if fitted._has_kernel:
            scores = np.zeros((0, fitted.classes_.size))
            if parts.offsets[-1]:
                scores = fitted._asked(lambda oracle, w: oracle.part_scores(w), parts)
            if fitted._is_multiclass and fitted.classes_.size == 2:
                scores = scores[:, 1:] - scores[:, :1]
        else:
            coef, intercept = fitted._by_features()
            scores = np.asarray(parts.features @ coef.T) + intercept
        if fitted._is_multiclass and scores.shape[1] == 1:
            return scores.ravel()
        return fitted._by_example(scores, parts)

    @_available_with_weights(MULTICLASS, CHAIN, or_kernel=True)
    def predict_marginals(self, X: Any, temperature: float = 1.0) -> Answer:
        """Return the probabilities of labels under p(y | x) ∝ exp(⟨w, ϕ(x, y)⟩ / temperature).

        Parameters
        ----------
        X : examples
            As of `predict`.
        temperature : float
            Above 0. The higher it is, the closer to uniform are the probabilities.

        Returns
        -------
        ndarray or list of ndarray
            Multiclass: shape (n, K). Chains: for each example an array of shape (L, K), the
            probabilities that a part has a label, summed over all labelings of the other parts by
            the forward–backward recursion.

        Raises
        ------
        ValueError, TypeError
            As `predict`; or the temperature is not a number above 0.
        RunFailedError
            The scores are too large.
        """
        if not (np.isreal(temperature) and 0 < temperature < np.inf):
            raise ValueError(f"temperature must be a number above 0, got {temperature!r}")
        fitted = self._fitted()
        parts, _ = fitted._parts(X)
        marginals = np.zeros((0, fitted.classes_.size))
        if parts.offsets[-1]:
            of_all = (float(temperature),)
            marginals = fitted._asked(lambda of, w: gibbs.marginals(of, w, *of_all), parts)
        return fitted._by_example(marginals, parts)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the labels, shape (K, f); if multiclass with K = 2, second − first, (1, f)."""
        return self._fitted()._by_features()[0]

    @property
    def intercept_(self) -> np.ndarray:
        """Contribution of the constant feature, shape (K,) or (1,); 0 without one."""
        return self._fitted()._by_features()[1]

    @property
    def transitions_(self) -> np.ndarray:
        """For chains: at [a, b], the weight of label b after label a, shape (K, K)."""
        fitted = self._fitted()
        if not _has_weights(CHAIN, or_kernel=True)(fitted):
            raise AttributeError("transitions_ are those of structure='chain'")
        K = fitted.classes_.size
        return fitted.weights_[-K * K :].reshape(K, K).copy()

    @_available_with_weights(*_LABELS)
    def top_features(self, k: int = 10) -> pd.DataFrame:
        """Return the largest weights of each label.

        Features have the names that they have in X, else ``x0``, ``x1``, …

        Parameters
        ----------
        k : int
            Number of weights of each label, the largest by magnitude.

        Returns
        -------
        DataFrame
            With the columns ``label``, ``feature`` and ``weight``, label by label. For a multiclass
            problem with two labels, only the second label: positive weights favour it.
        """
        fitted = self._fitted()
        coef, _ = fitted._by_features()
        labels = fitted.classes_[-1:] if len(coef) == 1 else fitted.classes_
        names = fitted._feature_names()
        largest = [np.argsort(-np.abs(row), kind="stable")[:k] for row in coef]
        tables = [
            pd.DataFrame({"label": label, "feature": names[order], "weight": row[order]})
            for label, row, order in zip(labels, coef, largest, strict=True)
        ]
        return pd.concat(tables, ignore_index=True)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, for which lists of labels are not classes."""
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
    def _has_kernel(self) -> bool:
        return bool(self._oracle.get("kernel", LINEAR) != LINEAR)

    @property
    def _structure(self) -> str:
        """The structure of the `Dataset`."""
        return "independent" if self._is_multiclass else self.structure

    def _fitted(self) -> Self:
        """Return a copy with the parameters of training, as they may be changed, or fit again."""
        fitted = copy.copy(self)
        fitted.__dict__.update(getattr(fitted, "_trained", {}))
        check_is_fitted(fitted)
        return fitted

    def _by_features(self) -> tuple[np.ndarray, np.ndarray]:
        """Return weights by label and feature, shape (K, f), and intercepts, shape (K,).

        For a multiclass problem with two labels, these are the second label's minus the first's.
        """
        if self._has_kernel:
            raise AttributeError("with a kernel, features have no weights")
        if not _has_weights(*_LABELS)(self):
            raise AttributeError("with this oracle, what the weights are for is not known")
        f = self.n_features_in_
        width = f + (self.bias != 0)
        K = 1 if self._oracle["kind"] == "binary" else self.classes_.size
        rows = self.weights_[: K * width].reshape(K, width)
        if self._is_multiclass and K == 2:
            rows = rows[1:] - rows[:1]
        bias = rows[:, f] * self.bias if self.bias else np.zeros(len(rows))
        return rows[:, :f].copy(), bias

    def _feature_names(self) -> np.ndarray:
        """Return the names of the features of a part, shape (f,)."""
        if self.vectorizer_ is not None:
            return np.asarray(self.vectorizer_.get_feature_names_out())
        names = getattr(self, "feature_names_in_", None)
        return np.array([f"x{j}" for j in range(self.n_features_in_)] if names is None else names)

    def _by_example(self, rows: np.ndarray, parts: examples.Parts) -> Any:
        """Return rows of parts as they are if examples are single parts, else split by example."""
        if self._is_multiclass:
            return rows
        return [rows[begin:end] for begin, end in pairwise(parts.offsets)]

    def _parts(self, X: Any, y: Any = None, fits: bool = False) -> tuple[examples.Parts, Any]:
        """Return the parts of all examples, with a matrix of numbers as features, and labels."""
        X, single, labels = examples.looked_at(X), self._is_multiclass, None
        if single:
            examples.check_single(X, y)
        else:
            X = self._with_columns(examples.listed(X, "X"), fits)
        were_named = not fits and self.vectorizer_ is not None
        parts = examples.parts_of(X, self._structure, were_named)
        if fits:
            self.vectorizer_ = None
            if not single:
                examples.check_filled(parts)
        elif parts.edges is None or parts.edges.size == 0:
            edge_x = np.zeros((0, self.n_edge_features_in_))
            parts = parts._replace(edge_x=edge_x if self.n_edge_features_in_ else None)
        empty = not fits and parts.offsets[-1] == 0
        if empty and (were_named or np.shape(parts.features)[-1] == 0):  # columns are not said
            x = np.zeros((0, self.n_features_in_))
            parts = parts._replace(features=x, named=False)
        elif parts.named != were_named and not (fits or empty):
            have, had = ("names", "none") if parts.named else ("no names", "some")
            raise ValueError(f"the features of X have {have}, and those of training had {had}")
        elif parts.named:
            known = None if self.vectorizer_ is None else self.vectorizer_.vocabulary_
            numbers, columns = named.numbered(parts.features, parts.place, known)
            parts = parts._replace(features=numbers, named=False)
            if fits:
                self.vectorizer_ = vectorizer([*columns], whole=False)
        elif single:
            x, labels = self._validated(parts.features, y, fits)
            parts = examples.parts_of(x, self._structure)
        f, k = parts.features.shape[1], parts.n_edge_features
        if fits:
            self.n_features_in_, self.n_edge_features_in_ = f, k
            labels = examples.labels_of(y, parts.offsets, single) if labels is None else labels
        elif f != self.n_features_in_:
            had = f"{self.n_features_in_} were trained with"
            raise ValueError(f"X has {f} features a part, and {had}")
        elif k != self.n_edge_features_in_:
            had = f"{self.n_edge_features_in_} were trained with"
            raise ValueError(f"X has {k} features an edge, and {had}")
        return examples.with_numbers(parts, lambda j: self._feature_names()[j]), labels

    def _validated(self, X: Any, y: Any, fits: bool) -> tuple[Any, Any]:
        """Return a matrix with one row per example, and labels, as scikit-learn checks them."""
        how = {"accept_sparse": "csr", "ensure_all_finite": False}
        X = with_names(self, X, fits)
        if not fits:
            return validate_data(self, X, reset=False, ensure_min_samples=0, **how), None
        if getattr(getattr(y, "dtype", None), "kind", "O") == "O":  # NA has no truth value
            for i, label in enumerate(np.ravel(np.asarray(y, dtype=object))):
                if label is pd.NA:
                    raise ValueError(f"y[{i}] is missing (NA)")
        x, labels = validate_data(self, X, y, **how)
        examples.check_labels(y, labels)
        check_classification_targets(labels)
        return x, labels

    def _with_columns(self, X: list[Any], fits: bool) -> list[Any]:
        """Return examples whose data frames are arrays, with columns in the order of training."""
        if self.structure != GRAPH:
            return in_order(self, X, "X[{}]", fits)
        if fits:
            self._edges = EdgeFeatures()
        edges = getattr(self, "_edges", EdgeFeatures())  # models of version 1.0 have none
        X = [[*each] if isinstance(each, list | tuple) else each for each in X]
        for place, of, name in ((0, self, "X[{}]"), (2, edges, "the edges of X[{}]")):
            some = [each for each in X if isinstance(each, list) and len(each) > place]
            arrays = in_order(of, [each[place] for each in some], name, fits)
            for each, array in zip(some, arrays, strict=True):
                each[place] = array
        return X

    def _dataset(self, parts: examples.Parts, codes: np.ndarray | None = None) -> Dataset:
        return examples.dataset(parts, self._structure, self.classes_, codes, float(self.bias))

    def _predicted(self, X: Any, y: Any = None) -> tuple[Any, examples.Parts, np.ndarray | None]:
        """Return the oracle of examples, their parts, and the predicted labels of all parts.

        The labels are None if labelings are not labels of parts, the oracle if there are no parts.
        """
        parts, _ = self._parts(X)
        truth = None
        if y is not None:
            truth = examples.codes_of(examples.labels_of(y, parts.offsets), self.classes_)
            _check_some(int(parts.offsets[-1]))
        if parts.offsets[-1] == 0:
            return None, parts, self.classes_[:0]
        oracle, found = self._asked(lambda of, w: (of, of.predictions(w)), parts, truth)
        codes = np.asarray(found)
        return oracle, parts, self.classes_[codes] if codes.shape == (parts.offsets[-1],) else None

    def _asked(
        self, ask: Callable[[Any, Any], T], parts: examples.Parts, truth: np.ndarray | None = None
    ) -> T:
        """Return the answer to a question to the oracle of those examples that have parts.

        The question has the oracle and the packed weights.
        """
        registry.use(self._folders)  # another process may not know them yet
        prepared, dataset = self._prepared, self._dataset(parts, truth)
        if prepared.oracle is None:
            prepared.oracle = registry.config("oracle", self._oracle)

        def answer() -> T:
            oracle: Any = prediction.predictor(prepared.oracle, dataset)
            if self._has_kernel:
                oracle = oracle.over(self.support_vectors_)
            if prepared.weights is None:
                prepared.weights = oracle.packed(self._weights)
            return ask(oracle, prepared.weights)

        jobs = jobs_of(self)
        threads = None if jobs is None else min(jobs, available())
        return prediction.compiled(answer, dataset, threads)


def jobs_of(model: Any) -> int | None:
    """Return the number of workers or threads that ``n_jobs`` asks for, None if it does not.

    Raises
    ------
    ConfigError
        If it is no number of them.
    """
    jobs = getattr(model, "n_jobs", None)
    if jobs is None:
        return None
    if not isinstance(jobs, Integral) or jobs == 0:
        raise ConfigError(
            f"n_jobs must be a number of threads, −1 for one a core, or None, got {jobs!r}."
        )
    return int(effective_n_jobs(jobs))


class EdgeFeatures(BaseEstimator):
    """Holds the names of the columns of edges, as an estimator of scikit-learn does of parts."""


def in_order(of: Any, X: list[Any], name: str, fits: bool) -> list[Any]:
    """Return the features of examples; data frames become arrays with columns in one order.

    Parameters
    ----------
    of : BaseEstimator
        Has the names of the columns, in the order of training.
    X : list of features
    name : str
        Format of the name of an example in messages.
    fits : bool
        Whether the first example has the names and the order.

    Raises
    ------
    ValueError
        The names are others, in scikit-learn's words; or, in training, some examples have none.
    """
    frames = {i: x for i, x in enumerate(X) if hasattr(x, "columns") or hasattr(x, "__dataframe__")}
    for learns in (True, False) if fits else (False,):  # the first frame has the names
        for i in [*frames][:1] if learns else frames:
            with _naming(name.format(i)):
                frames[i] = with_names(of, frames[i], learns)
    X = [frames.get(i, x) for i, x in enumerate(X)]
    names = {i: _column_names(x, name.format(i)) for i, x in frames.items()}
    named = [i for i, columns in names.items() if columns is not None]
    others = [i for i, x in enumerate(X) if names.get(i) is None and examples.count(x)]
    if fits and named:
        if others:
            raise ValueError(
                f"{name.format(others[0])} has no names of columns, and {name.format(named[0])} "
                "has: give data frames for all examples or for none"
            )
        validate_data(of, X[named[0]], skip_check_array=True)
    known = getattr(of, "feature_names_in_", None)
    if known is not None and others:  # which scikit-learn warns of
        validate_data(of, np.zeros((1, known.size)), reset=False, skip_check_array=True)
    how: dict[str, Any] = {"dtype": None, "accept_sparse": "csr", "ensure_all_finite": False}
    how |= {"ensure_min_samples": 0, "ensure_min_features": 0}
    found = list(X)
    for i, x in frames.items():
        columns = names[i]
        order: Any = slice(None)
        with _naming(name.format(i)):
            if columns is not None and known is not None and sorted(columns) == sorted({*known}):
                place = {column: j for j, column in enumerate(columns)}
                order = [place[column] for column in known]
            elif columns is not None:  # scikit-learn refuses these, or warns of any names
                validate_data(of, x, reset=False, skip_check_array=True)
            found[i] = check_array(x, **how)[:, order] if any(x.shape) else []
    return found


def with_names(of: Any, frame: Any, fits: bool) -> Any:
    """Return a data frame whose columns have texts as names: scikit-learn passes over all others.

    The columns 0, 1, … in this order have no names, as those of an array. After training with
    such a frame, they are found by their numbers. What has texts as names remains as it is.

    Raises
    ------
    ValueError
        Training had the columns 0, 1, …, and these have others, in scikit-learn's words.
    """
    numbers = None if fits else getattr(of, "_numbers", None)
    if fits:
        of._numbers = None
    labels = frame.columns.tolist() if isinstance(frame, pd.DataFrame) else []
    if not labels or any(isinstance(label, str) for label in labels):
        return frame
    names, places = [*map(repr, labels)], [*map(repr, range(len(labels)))]
    named = frame.set_axis(names, axis=1)
    if fits:
        if names != places:
            validate_data(of, named, skip_check_array=True)
            return named
        of._numbers = places
        return frame
    known = sorted(getattr(of, "feature_names_in_", ()))
    if numbers is not None:
        if sorted(names) == sorted(numbers):
            return frame.iloc[:, [names.index(number) for number in numbers]]
        probe = EdgeFeatures()
        probe.feature_names_in_ = np.array(numbers, object)
        validate_data(probe, named, reset=False, skip_check_array=True)
    return frame if names == places and known != sorted(places) else named


def _column_names(frame: Any, name: str) -> Any:
    """Return the names of a data frame's columns; None if they are no names."""
    probe = EdgeFeatures()
    with _naming(name):
        validate_data(probe, frame, skip_check_array=True)
    return getattr(probe, "feature_names_in_", None)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Let the errors of the block begin with a name."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def vectorizer(names: list[Any], whole: bool = True) -> DictVectorizer:
    """Return the vectorizer of columns with these names, in order.

    Unless ``whole``, it has no map from names to columns, which takes more memory than their list.
    """
    made = DictVectorizer(sort=False)
    made.feature_names_ = names
    if whole:
        made.vocabulary_ = {name: column for column, name in enumerate(names)}
    return made


def _check_some(parts: int) -> None:
    """Raise ``ValueError`` if there are no parts."""
    if parts == 0:
        raise ValueError("X has no parts: there is nothing to score")
