"""Oracles over joint features of labels of parts: everything but the maximisation.

A compiled oracle is a ``NamedTuple`` whose first field is ``features``; it implements the generic
operation :func:`maximise`. Loss: normalised Hamming, 0/1 for examples of one part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.errors import ConfigError
from ssvm_bench.jit import allocating_kernel, generic
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.base import Oracle, Risk
from ssvm_bench.oracles.joint_features import (
    add_difference,
    hamming_loss,
    labeling_score,
    longest,
    unary_scores,
)


@generic
def maximise(oracle, w, i, theta, loss, y):  # type: ignore[no-untyped-def]
    """Write the labeling that maximises loss · Δ(y_i,y) + ⟨w, ϕ(x_i,y)⟩ into ``y[:L]``.

    ``theta`` holds the unary scores of example i, ``loss`` is 1.0 or, for prediction, 0.0. Of
    several maximisers: the lowest label first.
    """


@generic
def expect(oracle, L, unary, moves, mu, nu, work):  # type: ignore[no-untyped-def]
    """Compute the marginals of p(y) ∝ exp( Σ_l unary[l, y_l] + Σ_l moves[y_l, y_{l−1}] ).

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
    """


class LabelingOracle(Oracle):
    """A max-oracle with a compiled maximisation.

    Attributes
    ----------
    compiled : NamedTuple
        What kernels call `maximise` with.
    features : JointFeatures
        The examples.
    """

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.features: joint_features.JointFeatures = compiled.features
        self.n = self.features.offsets.size - 1
        self.d = joint_features.dimension(self.features)

    def truth(self, i: int) -> np.ndarray:
        """Return y_i."""
        return self.features.truth[self.features.offsets[i] : self.features.offsets[i + 1]]

    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the loss-augmented maximiser."""
        return _labeling(self.compiled, self._pack(w), i, 1.0)

    def predict(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the maximiser of the score alone."""
        return _labeling(self.compiled, self._pack(w), i, 0.0)

    def loss(self, i: int, y: np.ndarray) -> float:
        """Return the share of wrong labels."""
        return float(hamming_loss(self.features, i, y))

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the non-zeros of ϕ(x_i,y) in the outer layout."""
        return joint_features.joint_feature(self.features, i, y)

    def risk(
        self, w: np.ndarray, with_plane: bool = True, begin: int = 0, end: int | None = None
    ) -> Risk:
        """Return H(w) and its maximising plane by one compiled pass over the terms."""
        star = np.zeros(joint_features.inner_dimension(self.features))
        last = self.n if end is None else end
        value, offset = _risk(self.compiled, self._pack(w), with_plane, begin, last, star)
        return Risk(
            value / self.n, joint_features.unpack(self.features, star) / self.n, offset / self.n
        )

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean loss of the predictions by one compiled pass over all terms."""
        return float(_total_loss(self.compiled, self._pack(w))) / self.n

    def _pack(self, w: np.ndarray) -> np.ndarray:
        return joint_features.pack(self.features, np.asarray(w, dtype=np.float64))


def check_structure(oracle: str, dataset: Any, structures: tuple[str, ...]) -> None:
    """Raise ``ConfigError`` unless the dataset's labels depend on each other in a known way."""
    if dataset.structure not in structures:
        raise ConfigError(
            f"oracle={oracle} does not fit dataset={dataset.name}: it handles "
            f"{' and '.join(structures)} labels, and those of {dataset.name} are "
            f"{dataset.structure}. Leave the oracle option out to get the dataset's own."
        )


@allocating_kernel
def _labeling(oracle, w, i, loss):  # type: ignore[no-untyped-def]
    features = oracle.features
    L = features.offsets[i + 1] - features.offsets[i]
    theta = np.zeros((L, features.stride))
    y = np.zeros(L, np.uint8)
    unary_scores(features, w, i, theta)
    maximise(oracle, w, i, theta, loss, y)
    return y


@allocating_kernel
def _risk(oracle, w, with_plane, begin, end, star):  # type: ignore[no-untyped-def]
    """Return n H(w) and n φ̂∘ over some terms, and add n φ̂⋆ to ``star``."""
    features = oracle.features
    most = longest(features)
    theta = np.zeros((most, features.stride))
    y = np.zeros(most, np.uint8)
    labels = np.zeros(2, np.uint8)
    signs = np.array([1.0, -1.0])
    value = 0.0
    offset = 0.0
    for i in range(begin, end):
        truth = features.truth[features.offsets[i] : features.offsets[i + 1]]
        unary_scores(features, w, i, theta)
        maximise(oracle, w, i, theta, 1.0, y)
        loss = hamming_loss(features, i, y)
        score = labeling_score(features, w, i, theta, y)
        value += loss + (score - labeling_score(features, w, i, theta, truth))
        offset += loss
        if with_plane and loss > 0.0:
            add_difference(features, i, y, labels, signs, star)
    return value, offset


@allocating_kernel
def _total_loss(oracle, w):  # type: ignore[no-untyped-def]
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
