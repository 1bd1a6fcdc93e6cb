"""Compiled oracles over labels of parts: everything but the maximisation.

A compiled oracle is a ``NamedTuple`` whose first field is ``features``; it implements the generic
operation :func:`maximise`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ssvm_bench.jit import allocating_kernel, generic, kernel
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


@generic
def maximise(oracle, w, i, theta, loss, y):
    """Write the labeling that maximises loss · Δ(y_i,y) + ⟨w, ϕ(x_i,y)⟩ into ``y[:L]``.

    ``theta`` holds the unary scores of example i, ``loss`` is 1.0 or, for prediction, 0.0. Of
    several maximisers: the lowest label first.
    """


@generic
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

    def labeling(self, w: np.ndarray, i: int, augmented: bool) -> np.ndarray:
        """Return the maximiser."""
        oracle = self.compiled if augmented else self.predicting
        return _labeling(oracle, self._pack(w), i, float(augmented))

    def best_plane(self, w: np.ndarray, i: int) -> tuple[Plane, float]:
        """Return the plane of the maximiser, and its value, by one compiled call."""
        value, star, offset = self.risk(w, begin=i, end=i + 1)
        indices = np.flatnonzero(star)
        return Plane(indices, star[indices], offset), value

    def add_planes(
        self, w: np.ndarray, with_plane: bool, begin: int, end: int, star: np.ndarray
    ) -> tuple[float, float]:
        """Add up by one compiled pass over the terms."""
        value, offset, i, fault = _risk(
            self.compiled, self.exact, self._pack(w), with_plane, begin, end, star
        )
        checks.check_fault(self, i, fault)
        return value, offset

    def radius(self) -> float:
        """Return a bound of R; NaN without the Gram matrices that it takes."""
        if not self.features.gram.size:
            return math.nan
        return math.sqrt(joint_features.largest_radius2(self.features))

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean loss of the predictions by one compiled pass over all terms."""
        return float(_total_loss(self.compiled, self._pack(w))) / self.n

    def _pack(self, w: np.ndarray) -> np.ndarray:
        return joint_features.pack(self.features, np.asarray(w, dtype=np.float64))


@allocating_kernel
def _labeling(oracle, w, i, loss):
    features = oracle.features
    L = features.offsets[i + 1] - features.offsets[i]
    theta = np.zeros((L, features.stride))
    y = np.zeros(L, np.uint8)
    unary_scores(features, w, i, theta)
    maximise(oracle, w, i, theta, loss, y)
    return y


@allocating_kernel
def _risk(oracle, exact, w, with_plane, begin, end, star):
    """Return n H(w) and n φ̂∘ over some terms, the last term and its fault; add n φ̂⋆ to ``star``."""
    features = oracle.features
    most = 0
    for i in range(begin, end):
        most = max(most, features.offsets[i + 1] - features.offsets[i])
    theta = np.zeros((most, features.stride))
    y = np.zeros(most, np.uint8)
    labels = np.zeros(2, np.uint8)
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
def _total_loss(oracle, w):
    """Return the sum of the losses of the predictions."""
    features = oracle.features
    most = longest(features)
    theta = np.zeros((most, features.stride))
    y = np.zeros(most, np.uint8)
    total = 0.0
    for i in range(features.offsets.size - 1):
        unary_scores(features, w, i, theta)
        maximise(oracle, w, i, theta, 0.0, y)
        total += hamming_loss(features, i, y)
    return total
