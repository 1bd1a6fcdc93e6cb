"""Compiled oracles over labels of parts: everything but the maximisation.

A compiled oracle is a ``NamedTuple`` whose first field is ``features``; it implements the generic
operation :func:`maximise`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.interrupts import checkpoint
from ssvm_bench.base.jit import abstract, allocating_kernel, implements, kernel
from ssvm_bench.oracles import checks, joint_features
from ssvm_bench.oracles.base import Plane
from ssvm_bench.oracles.parts import PartsOracle
from ssvm_bench.oracles.scoring import (
    add_difference,
    hamming_loss,
    labeling_loss,
    labeling_score,
    labeling_size,
    longest,
    unary_scores,
)

# mypy: disable-error-code="no-untyped-def"


@abstract
def maximise(oracle, w, i, theta, loss, y):
    """Write the labeling that maximises loss · Δ(y_i,y) + ⟨w, ϕ(x_i,y)⟩ into ``y[:L]``.

    ``theta`` holds the unary scores of example i, ``loss`` is 1.0 or, for prediction, 0.0. Of
    several maximisers: the lowest label first.
    """


@abstract
def expect(oracle, L, unary, moves, mu, nu, work):
    """Compute the marginals of p(y) ∝ exp( Σ_l unary[l, y_l] + Σ_l moves[y_l, y_{l−1}] ).

    The ``Config`` of an oracle that implements this says ``has_expectations = True``.

    Parameters
    ----------
    L : int
        Number of parts.
    unary : ndarray, shape (≥ L, stride)
    moves : ndarray, shape (K · stride,)
        From a to b at b · stride + a, as in w; empty without transitions.
    mu, nu : ndarrays like unary and moves
        Of each part, the probabilities of its labels; the expected number of each transition.
    work : ndarray, shape (2, ≥ L + K, stride)
        Scratch.

    Returns
    -------
    float
        log Σ_y exp( … ), of all K^L labelings.
    """


@kernel
def judged(features, exact, w, i, theta, loss, y):
    """Check what `maximise` has found.

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
    share = labeling_loss(features, i, y)
    score = labeling_score(features, w, i, theta, y)
    score -= labeling_score(features, w, i, theta, truth)
    if exact and loss * share + score < 0.0:
        size = loss + labeling_size(features, w, i, theta, y)
        size += labeling_size(features, w, i, theta, truth)
        if loss * share + score < -checks.ROUNDING * size:
            return share, score, checks.BELOW_TRUTH
    return share, score, checks.NONE


class Answered(NamedTuple):
    """A compiled oracle that has been asked before, and now only says what was answered.

    Attributes
    ----------
    features : NamedTuple
        Those of the oracle that was asked.
    labels : ndarray, shape (parts,)
        The labelings of the terms that it was asked for.
    """

    features: Any
    labels: np.ndarray


@implements(maximise, Answered)
def _answer(oracle, w, i, theta, loss, y):
    first = oracle.features.offsets[i]
    for l in range(oracle.features.offsets[i + 1] - first):
        y[l] = oracle.labels[first + l]


class LabelingOracle(PartsOracle):
    """A max-oracle with a compiled maximisation.

    Attributes
    ----------
    compiled : NamedTuple
        What kernels call `maximise` with.
    predicting : NamedTuple
        The same for predictions, which may be over more labelings than are trained with.
    any_label : bool
        Whether an example of one part may have any label, and each has a plane.
    """

    any_label: bool = True

    def __init__(self, compiled: Any) -> None:
        super().__init__(compiled.features)
        self.compiled = self.predicting = compiled

    def answering(self, w: np.ndarray, terms: np.ndarray, loss: float = 1.0) -> Any:
        """Return what kernels call `maximise` with, for some terms at one w.

        That is the compiled oracle, unless others make the calls: then they are made here.

        Parameters
        ----------
        w : ndarray of float64, shape (inner_d,)
        terms : ndarray of int64
        loss : float
            Weight of Δ.
        """
        if self.caller is None:
            return self.compiled
        offsets, labels = self.features.offsets, np.zeros_like(self.features.truth)
        for i, y in zip(terms.tolist(), self.caller.labelings(self, w, terms, loss), strict=True):
            labels[offsets[i] : offsets[i + 1]] = self._checked(y, i)
        return Answered(self.features, labels)

    def found(self, w: np.ndarray, terms: np.ndarray, loss: float) -> list[np.ndarray]:
        """Return the labelings of some terms, by one compiled pass over them."""
        labels, i, fault = _labelings(self.compiled, self.exact, w, terms, loss)
        checks.check_fault(self, i, fault)
        return np.split(labels, np.cumsum([self._parts[i] for i in terms.tolist()])[:-1])

    @property
    def inner_d(self) -> int:
        """Length of w in the layout of kernels."""
        return int(joint_features.inner_dimension(self.features))

    def labeling(self, w: np.ndarray, i: int, augmented: bool) -> np.ndarray:
        """Return the maximiser."""
        oracle = self.compiled if augmented else self.predicting
        return _labeling(oracle, self._pack(w), i, float(augmented))

    def best_plane(self, w: np.ndarray, i: int) -> tuple[Plane, float]:
        """Return the plane of the maximiser, and its value, by one compiled call."""
        value, star, offset = self.risk(w, begin=i, end=i + 1)
        indices = np.flatnonzero(star)
        return Plane(indices, star[indices], offset), value

    def best_planes(self, w: np.ndarray, terms: Sequence[int]) -> Iterator[tuple[Plane, float]]:
        """Yield the `best_plane` of each of some terms, by the caller's calls."""
        oracle = self
        if self.caller is not None:
            oracle = copy.copy(self)
            oracle.compiled = self.answering(self._pack(w), np.asarray(terms, np.int64))
            oracle.caller = None
        for i in terms:
            checkpoint()
            yield oracle.best_plane(w, i)

    def add_planes(
        self, w: np.ndarray, with_plane: bool, begin: int, end: int, star: np.ndarray
    ) -> tuple[float, float]:
        """Add up by one compiled pass over the terms."""
        packed = self._pack(w)
        oracle = self.answering(packed, np.arange(begin, end))
        value, offset, i, fault = _risk(oracle, self.exact, packed, with_plane, begin, end, star)
        checks.check_fault(self, i, fault)
        return value, offset

    def radius(self) -> float:
        """Return a bound of R; NaN without the Gram matrices that it takes."""
        if not self.features.gram.size:
            return math.nan
        return math.sqrt(joint_features.largest_radius2(self.features))

    def predictions(self, w: np.ndarray) -> np.ndarray:
        """Return the predictions by one compiled pass over all terms."""
        y, _ = _predictions(self.predicting, self._pack(w))
        checks.check_labels(self, y, self.features.n_labels)
        return y

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean share of wrong labels by one compiled pass over all terms."""
        return float(_predictions(self.compiled, self._pack(w))[1]) / self.n

    def _pack(self, w: np.ndarray) -> np.ndarray:
        return joint_features.pack(self.features, np.asarray(w, dtype=np.float64))


@allocating_kernel
def _labeling(oracle, w, i, loss):
    features = oracle.features
    L = features.offsets[i + 1] - features.offsets[i]
    theta = np.zeros((L, features.stride))
    y = np.zeros(L, features.truth.dtype)
    unary_scores(features, w, i, theta)
    maximise(oracle, w, i, theta, loss, y)
    return y


@allocating_kernel
def _labelings(oracle, exact, w, terms, loss):
    """Return the labelings of some terms, one after the other; the last term and its fault."""
    features = oracle.features
    size, most = 0, 0
    for i in terms:
        L = features.offsets[i + 1] - features.offsets[i]
        size, most = size + L, max(most, L)
    labels = np.zeros(size, features.truth.dtype)
    theta = np.zeros((most, features.stride))
    at, i = 0, 0
    for i in terms:
        y = labels[at:]
        unary_scores(features, w, i, theta)
        maximise(oracle, w, i, theta, loss, y)
        _, _, fault = judged(features, exact, w, i, theta, loss, y)
        if fault != checks.NONE:
            return labels, i, fault
        at += features.offsets[i + 1] - features.offsets[i]
    return labels, i, checks.NONE


@allocating_kernel
def _risk(oracle, exact, w, with_plane, begin, end, star):
    """Return n H(w) and n φ̂∘ over some terms, the last term and its fault; add n φ̂⋆ to ``star``."""
    features = oracle.features
    most = 0
    for i in range(begin, end):
        most = max(most, features.offsets[i + 1] - features.offsets[i])
    theta = np.zeros((most, features.stride))
    y = np.zeros(most, features.truth.dtype)
    labels = np.zeros(2, features.truth.dtype)
    signs = np.array([1.0, -1.0])
    value = 0.0
    offset = 0.0
    for i in range(begin, end):
        unary_scores(features, w, i, theta)
        maximise(oracle, w, i, theta, 1.0, y)
        loss, score, fault = judged(features, exact, w, i, theta, 1.0, y)
        if fault != checks.NONE:
            return value, offset, i, fault
        value += loss + score
        offset += loss
        if with_plane:
            add_difference(features, i, y, labels, signs, star)
    return value, offset, end, checks.NONE


@allocating_kernel
def _predictions(oracle, w):
    """Return the predictions, shape (parts,), and the sum of their shares of wrong labels."""
    features = oracle.features
    theta = np.zeros((longest(features), features.stride))
    all_labels = np.zeros(features.truth.size, features.truth.dtype)
    total = 0.0
    for i in range(features.offsets.size - 1):
        y = all_labels[features.offsets[i] :]
        unary_scores(features, w, i, theta)
        maximise(oracle, w, i, theta, 0.0, y)
        total += hamming_loss(features, i, y)
    return all_labels, total
