"""Oracles over labels of parts: everything except the maximisation.

They share the layout of the examples, truth, features and loss: normalised Hamming (0/1 for
examples of one part), unless the features define another one. A subclass of `PartsOracle` adds the
maximisation, and the sum of the maximising planes over some terms. `LabelingOracle` gets both from
a compiled oracle, a ``NamedTuple`` with first field ``features`` that implements `maximise`.
"""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.interrupts import interruptible
from ssvm_bench.base.jit import (
    abstract,
    allocating_kernel,
    implements,
    kernel,
    nanoseconds,
    shared_kernel,
    unrolled_kernel,
)
from ssvm_bench.base.nonzeros import Nonzeros
from ssvm_bench.oracles import checks, joint_features, scoring
from ssvm_bench.oracles.base import Oracle, Plane, Risk
from ssvm_bench.oracles.joint_features import Packed

# mypy: disable-error-code="no-untyped-def"

C = TypeVar("C")


@abstract
def maximise(oracle, w, i, theta, loss, y):
    """Write the labeling that maximises loss · Δ(y_i,y) + ⟨w, ϕ(x_i,y)⟩ into ``y[:L]``.

    ``theta`` holds the unary scores of example i; ``loss`` is 0.0 for predictions. Of several
    maximisers, y is the lexicographically lowest. Implemented beside each compiled oracle, in the
    modules multiclass, viterbi, segments and landmarks.
    """


@abstract
def write_plane(oracle, w, i, indices, values):
    """Write φ⋆ of the labeling that the oracle returns at w, as a sparse row, scaled by 1/n.

    Implemented beside oracles whose planes solvers keep as rows (`Oracle.writing`), in the modules
    mincut and alpha_expansion.

    Parameters
    ----------
    w : ndarray of float64, shape (d,)
        In the outer layout.
    indices, values : ndarrays of int64 and float64, shape (d,)
        Results; indices rise.

    Returns
    -------
    size : int
        Number of entries written.
    offset : float
        φ∘, scaled by 1/n.
    made : bool
        If not, `best_plane` has to be called instead: something is wrong, and it says what; or it
        is a call that no kernel makes.
    """


@abstract
def expect(oracle, L, unary, moves, mu, nu, work):
    """Compute the marginals of p(y) ∝ exp( Σ_l unary[l, y_l] + Σ_l moves[y_l, y_{l−1}] ).

    Implemented in the modules multiclass, viterbi and segments. An oracle that implements it has
    ``has_expectations = True`` in its ``Config``.

    Parameters
    ----------
    L : int
        Number of parts.
    unary : ndarray, shape (≥ L, stride)
    moves : ndarray, shape (K · stride,)
        From a to b at b · stride + a, as in w; empty without transitions.
    mu, nu : ndarrays like unary and moves
        Results: the probabilities of each part's labels; the expected number of each transition.
    work : ndarray, shape (2, ≥ L + K, stride)
        Scratch.

    Returns
    -------
    float
        log Σ_y exp( … ) over all labelings.
    """


@kernel
def judged(features, exact, w, i, theta, loss, y):
    """Check the labeling that `maximise` has found.

    Returns
    -------
    loss : float
        `labeling_loss` of y.
    score : float
        ⟨w, ϕ(x_i,y) − ϕ(x_i,y_i)⟩.
    fault : int
        One of :mod:`ssvm_bench.oracles.checks`.
    """
    truth = features.truth[features.offsets[i] : features.offsets[i + 1]]
    if not checks.labels_exist(y, truth.size, features.n_labels):
        return 0.0, 0.0, checks.LABEL
    share = scoring.labeling_loss(features, i, y)
    score = scoring.labeling_score(features, w, i, theta, y)
    score -= scoring.labeling_score(features, w, i, theta, truth)
    if exact and loss * share + score < 0.0:
        size = loss * max(share, 1.0) + scoring.labeling_size(features, w, i, theta, y)
        size += scoring.labeling_size(features, w, i, theta, truth)
        if loss * share + score < -checks.ROUNDING * size:
            return share, score, checks.BELOW_TRUTH
    return share, score, checks.NONE


@shared_kernel
def ask(oracle, exact, w, i, theta, loss, y, timespec):
    """Write the oracle's labeling into y; return what `judged` does, and the call's nanoseconds."""
    begin = nanoseconds(timespec)
    scoring.unary_scores(oracle.features, w, i, theta)
    maximise(oracle, w, i, theta, loss, y)
    took = nanoseconds(timespec) - begin
    share, score, fault = judged(oracle.features, exact, w, i, theta, loss, y)
    return share, score, fault, took


def threaded(*scratch: str) -> Callable[[type[C]], type[C]]:
    """Mark the type of compiled oracles that several threads may call at a time.

    Parameters
    ----------
    scratch
        The fields that a call writes to: each thread has arrays of its own.
    """

    def mark(kind: type[C]) -> type[C]:
        setattr(kind, "SCRATCH", scratch)  # noqa: B010 - a NamedTuple has only fields
        return kind

    return mark


def apart(compiled: Any) -> Any:
    """Return a compiled oracle of a `threaded` type for another thread."""
    return compiled._replace(**{name: getattr(compiled, name).copy() for name in compiled.SCRATCH})


@threaded()
class Answered(NamedTuple):
    """A compiled oracle that only returns labelings that a caller has computed before.

    Attributes
    ----------
    features : NamedTuple
        The features of the oracle that was called.
    labels : ndarray, shape (parts,)
        Its labelings, at the parts of the terms for which it was called.
    """

    features: Any
    labels: np.ndarray


@implements(maximise, Answered)
def _answer(oracle, w, i, theta, loss, y):
    first = oracle.features.offsets[i]
    for l in range(oracle.features.offsets[i + 1] - first):
        y[l] = oracle.labels[first + l]


class PartsOracle(Oracle):
    """A max-oracle over labelings of the parts of examples.

    Attributes
    ----------
    features : NamedTuple
        The examples, in a type that implements :mod:`ssvm_bench.oracles.scoring`.
    loss_matrix : ndarray of float64, shape (K, K), optional
        Δ of a true label (row) and a predicted one, for `mean_loss`; None: 1 for a wrong label.

    Raises
    ------
    RunFailedError
        If the arrays of the features contradict each other, as those from `build` never do.
    """

    def __init__(self, features: Any, loss_matrix: np.ndarray | None = None) -> None:
        if not joint_features.is_consistent(features):
            raise RunFailedError(
                f"The oracle {type(self).__name__} cannot be used: the arrays do not fit together "
                f"in its {type(features).__name__}. Let the build of its module make them."
            )
        self.features, self.loss_matrix = features, loss_matrix
        self.n = features.offsets.size - 1
        self._offsets: list[int] = features.offsets.tolist()  # quick to look up
        self._parts: list[int] = np.diff(features.offsets).tolist()
        self.d = joint_features.dimension(features)

    @abstractmethod
    def labeling(self, w: np.ndarray, i: int, augmented: bool) -> np.ndarray:
        """Return the labeling with the highest score, or one close to it if not exact.

        Parameters
        ----------
        w : ndarray of float64, shape (d,)
        i : int
            The example.
        augmented : bool
            Whether the score includes the loss. If not, the labeling is a prediction, and the
            ground truth must not be read.
        """

    @abstractmethod
    def _sum(self, w: np.ndarray, terms: range, with_plane: bool) -> Risk:
        """Return n times the `risk` over some terms; φ̂⋆ = 0 without ``with_plane``."""

    def truth(self, i: int) -> np.ndarray:
        """Return y_i."""
        return self.features.truth[self.features.offsets[i] : self.features.offsets[i + 1]]

    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the loss-augmented labeling."""
        return self._checked(self.labeling(w, i, augmented=True), i)

    def argmaxes(self, w: np.ndarray, terms: Sequence[int]) -> Iterator[np.ndarray]:
        """Yield the `argmax` of each given term; a caller's labelings are checked here, too."""
        found = super().argmaxes(w, terms)
        if self.caller is None:
            yield from found
        else:
            yield from (self._checked(y, i) for i, y in zip(terms, found, strict=True))

    def predict(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the labeling with the highest score, without the loss."""
        return self._checked(self.labeling(w, i, augmented=False), i)

    def _checked(self, y: np.ndarray, i: int) -> np.ndarray:
        checks.check_labeling(self, i, y, self._parts[i], self.features.n_labels)
        return y

    def loss(self, i: int, y: np.ndarray) -> float:
        """Return the loss that is trained with."""
        return float(scoring.labeling_loss(self.features, i, y))

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean loss of the predictions, without costs, margins and weights.

        Without a loss matrix, it is the mean share of wrong labels in an example.
        """
        of_parts = self.losses_of_parts(w)
        kind = np.int64 if self.loss_matrix is None else np.float64
        shares = np.add.reduceat(of_parts, self.features.offsets[:-1], dtype=kind) / self._parts
        return float(np.cumsum(shares)[-1]) / self.n  # adds in the order of the examples

    def losses_of_parts(self, w: np.ndarray) -> np.ndarray:
        """Return Δ of the true and the predicted label of every part: numbers, or booleans."""
        return self._lost(self.features.truth, self.predictions(w))

    def _lost(self, truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        matrix = self.loss_matrix
        return predicted != truth if matrix is None else matrix[truth, predicted]

    def outer(self, inner: np.ndarray) -> np.ndarray:
        """Convert weights of features from the layout of kernels to the outer one."""
        return joint_features.unpack(self.features, inner)

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-zeros of ϕ(x_i,y) in the outer layout."""
        size = joint_features.inner_dimension(self.features)
        dense = self.outer(scoring.joint_feature(self.features, i, np.asarray(y, np.int64), size))
        indices = np.flatnonzero(dense)
        return indices, dense[indices]

    def risk(self, w: np.ndarray, with_plane: bool = True, terms: range | None = None) -> Risk:
        """Return H(w) and its maximising plane by one pass over the terms."""
        value, star, offset = self._sum(w, range(self.n) if terms is None else terms, with_plane)
        if with_plane:
            star /= self.n
        return Risk(value / self.n, star, offset / self.n)


class Asked(NamedTuple):
    """What a compiled oracle has returned for some terms.

    Attributes
    ----------
    labels : ndarray, shape (parts,)
        The labelings, at the parts of these terms.
    value, offset : float
        n H(w), with the given weight of Δ, and n φ̂∘.
    seconds : float
        Time that the calls took, summed over the threads.
    """

    labels: np.ndarray
    value: float
    offset: float
    seconds: float


_NO_STAR = np.zeros(0)
"""In place of φ̂⋆: it is not summed."""


class LabelingOracle(PartsOracle):
    """A max-oracle with a compiled maximisation.

    Attributes
    ----------
    compiled : NamedTuple
        The compiled oracle, with which kernels call `maximise`.
    predicting : NamedTuple
        The compiled oracle for predictions, which may have more labelings than training.
    any_label : bool
        Whether an example of one part may have any label, and each has a plane.
    has_kernel : bool
        Whether it is a `kernel_features.KernelOracle`.
    """

    any_label: bool = True
    has_kernel: ClassVar[bool] = False

    def __init__(self, compiled: Any, loss_matrix: np.ndarray | None = None) -> None:
        super().__init__(compiled.features, loss_matrix)
        self.compiled = self.predicting = compiled

    def answering(self, w: np.ndarray, terms: np.ndarray, loss: float = 1.0) -> Any:
        """Return the compiled oracle with which kernels call `maximise` for some terms at one w.

        If there is a caller, it makes the calls here, and the result holds its labelings.

        Parameters
        ----------
        w : ndarray of float64, shape (inner_d,)
        terms : ndarray of int64
        loss : float
            Weight of Δ.
        """
        caller = self.caller
        if caller is None:
            return self.compiled
        if caller.calls_here:
            return Answered(self.features, self._called(self.compiled, w, terms, loss).labels)
        offsets, labels = self.features.offsets, np.zeros_like(self.features.truth)
        for i, y in zip(terms.tolist(), caller.labelings(self, w, terms, loss), strict=True):
            labels[offsets[i] : offsets[i + 1]] = self._checked(y, i)
        return Answered(self.features, labels)

    def own_labelings(self, w: np.ndarray, terms: np.ndarray, loss: float) -> list[np.ndarray]:
        """Return the labelings of some terms, by one compiled pass over them."""
        labels, offsets = self._ask(self.compiled, self.exact, w, terms, loss).labels, self._offsets
        return [labels[offsets[i] : offsets[i + 1]] for i in terms.tolist()]

    def apart(self) -> LabelingOracle:
        """See `Oracle`."""
        made = copy.copy(self)
        made.compiled, made.predicting = apart(self.compiled), apart(self.predicting)
        return made

    @property
    def takes_threads(self) -> bool:
        """See `Oracle`: whether the compiled oracle is `threaded`."""
        return hasattr(self.compiled, "SCRATCH")

    @property
    def calls_by_term(self) -> bool:
        """See `Oracle`."""
        return False

    def _ask(
        self,
        oracle: Any,
        exact: bool,
        w: np.ndarray,
        terms: np.ndarray,
        loss: float,
        star: np.ndarray = _NO_STAR,
    ) -> Asked:
        """Call a compiled oracle for some terms, in the threads of the team.

        Parameters
        ----------
        oracle : NamedTuple
        exact : bool
            Whether a labeling that scores less than the ground truth is a fault.
        w : ndarray of float64, shape (inner_d,)
        terms : ndarray of int64
        loss : float
            Weight of Δ.
        star : ndarray of float64, shape (inner_d,) or (0,)
            n φ̂⋆ is added to it, unless it is empty.
        """
        if w.shape != (joint_features.inner_dimension(oracle.features),):  # kernels check no index
            raise ValueError(f"w has the shape {w.shape}; in this layout it is ({self.inner_d},)")
        labels, shares = np.zeros_like(oracle.features.truth), np.zeros(terms.size)
        climbs, team = np.zeros(terms.size), self.team
        added_here = star if team.size == 1 else _NO_STAR  # while the features are in the cache
        oracles = [oracle, *(apart(oracle) for _ in range(1, team.size))]

        def call(number: int, begin: int, end: int) -> None:
            part = slice(begin, end)
            about = oracles[number], exact, w, terms[part], loss, added_here
            i, fault = _ask_terms(*about, labels, shares[part], climbs[part])
            checks.check_fault(self, i, fault)

        def add(begin: int, end: int) -> None:
            _add_terms(oracle.features, terms[begin:end], labels, star)

        adds = star.size > 0 and team.size > 1
        seconds = team.share(terms.size, call, add if adds else None)
        return Asked(labels, in_order(loss * shares + climbs), in_order(shares), seconds)

    def _called(
        self,
        oracle: Any,
        w: np.ndarray,
        terms: np.ndarray,
        loss: float = 1.0,
        star: np.ndarray = _NO_STAR,
    ) -> Asked:
        """Do `_ask`, and let the caller, if any, count the time."""
        if self.caller is None:
            return self._ask(oracle, self.exact, w, terms, loss, star)
        with self.caller.waits():
            asked = self._ask(oracle, self.exact, w, terms, loss, star)
        self.caller.seconds += asked.seconds
        return asked

    @property
    def inner_d(self) -> int:
        """See `Oracle`."""
        return joint_features.inner_dimension(self.features)

    def labeling(self, w: np.ndarray, i: int, augmented: bool) -> np.ndarray:
        """Return the maximiser."""
        oracle = self.compiled if augmented else self.predicting
        labels = self._ask_at(oracle, w, np.array([i]), float(augmented)).labels
        return labels[self._offsets[i] : self._offsets[i + 1]].copy()

    def best_plane(self, w: np.ndarray, i: int) -> tuple[Plane, float]:
        """Return the plane of the maximiser, and its value, by one compiled call."""
        value, star, offset = self.risk(w, terms=range(i, i + 1))
        indices = np.flatnonzero(star)
        return Plane(indices, star[indices], offset), value

    def best_planes(self, w: np.ndarray, terms: Sequence[int]) -> Iterator[tuple[Plane, float]]:
        """Yield the `best_plane` of each given term; the caller, if any, makes the calls."""
        oracle = self
        if self.caller is not None:
            oracle = copy.copy(self)
            oracle.compiled = self.answering(self.pack(w), np.asarray(terms, np.int64))
            oracle.caller = None
        yield from (oracle.best_plane(w, i) for i in interruptible(terms))

    def _sum(self, w: np.ndarray, terms: range, with_plane: bool) -> Risk:
        """See `PartsOracle`; this is one compiled pass over the terms."""
        numbers = np.arange(terms.start, terms.stop)
        star = np.zeros(self.inner_d if with_plane else 0)
        oracle = self.compiled
        if with_plane or self.caller is not None:
            packed = self.pack(w)
        else:
            oracle, packed = self.at(oracle, w)
        if self.caller is None or self.caller.calls_here:
            asked = self._called(oracle, packed, numbers, star=star)
        else:
            oracle = self.answering(packed, numbers)
            asked = self._ask(oracle, self.exact, packed, numbers, 1.0, star)
        outer = self.outer(star) if with_plane else np.zeros(self.d)
        return Risk(asked.value, outer, asked.offset)

    def radius(self) -> float:
        """Return a bound of R."""
        return math.sqrt(self.features.squared_radius)

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return the predictions by one compiled pass over all terms."""
        return self.predicted(w)[0]

    def predicted(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the predictions, and the sum of their losses, as these are in training."""
        asked = self._ask_at(self.predicting, w, np.arange(self.n), 0.0)
        return asked.labels, asked.offset

    def _ask_at(self, oracle: Any, w: np.ndarray, terms: np.ndarray, loss: float) -> Asked:
        """Do `_ask` at w in the outer layout; labelings may score less than the ground truth."""
        oracle, packed = self.at(oracle, w)
        return self._ask(oracle, False, packed, terms, loss)

    def packed(self, w: np.ndarray | Nonzeros) -> Any:
        """See `Oracle`."""
        return joint_features.packed(self.features, w)

    def at(self, oracle: Any, w: np.ndarray | Nonzeros | Packed) -> tuple[Any, np.ndarray]:
        """Return a compiled oracle and w in its layout; `WideFeatures` have rows for w ≠ 0."""
        weights = w if isinstance(w, Packed) else joint_features.packed(self.features, w)
        features = joint_features.at_packed(oracle.features, weights)
        if features is oracle.features:
            return oracle, weights.inner
        return oracle._replace(features=features), weights.inner

    def pack(self, w: np.ndarray) -> np.ndarray:
        """See `Oracle`."""
        return joint_features.pack(self.features, np.asarray(w, dtype=np.float64))

    def unpack(self, w: np.ndarray) -> np.ndarray:
        """See `Oracle`."""
        return self.outer(w)


@unrolled_kernel
def _ask_terms(oracle, exact, w, terms, loss, star, labels, shares, climbs):
    """Call the oracle for some terms, and check the labelings.

    Parameters
    ----------
    exact : bool
        Whether a labeling that scores less than the ground truth is a fault.
    star : ndarray of float64, shape (inner_d,) or (0,)
        n φ̂⋆ is added to it, unless it is empty.
    labels : ndarray, shape (parts,)
        The labelings, at the parts of the terms.
    shares, climbs : ndarrays of float64, shape (terms,)
        Of each labeling, what `judged` returns.

    Returns
    -------
    i, fault : int
        The last term, and its fault.
    """
    features = oracle.features
    most = 0
    for i in terms:
        most = max(most, scoring.parts(features, i)[1])
    theta, _, two, _ = scoring.scratch(features, most)
    signs = np.array([1.0, -1.0])
    i = 0
    for k in range(terms.size):
        i = terms[k]
        y = labels[features.offsets[i] :]
        scoring.unary_scores(features, w, i, theta)  # not by `ask`, whose call USPS would notice
        maximise(oracle, w, i, theta, loss, y)
        share, score, fault = judged(features, exact, w, i, theta, loss, y)
        if fault != checks.NONE:
            return i, fault
        shares[k], climbs[k] = share, score
        if star.size > 0:
            scoring.add_difference(features, i, y, two, signs, star)
    return i, checks.NONE


@allocating_kernel
def _add_terms(features, terms, labels, star):
    """Add n φ⋆ of known labelings of some terms to ``star``."""
    two, signs = np.zeros(2, features.truth.dtype), np.array([1.0, -1.0])
    for i in terms:
        scoring.add_difference(features, i, labels[features.offsets[i] :], two, signs, star)


def in_order(numbers: np.ndarray) -> float:
    """Return a sum that adds one number after the other, to 0."""
    return 0.0 + float(np.cumsum(numbers)[-1]) if numbers.size else 0.0
