"""Joint features of labels that share the weights of one vector: binary problems and regression.

.. code-block:: text

    ϕ(x_i, y) = s(y) ψ(x_i),   s(y) ∈ R        φ^{iy} = 1/n [ (s(y) − s(y_i)) ψ(x_i),  b_i(y) ]

with b_i(y) = Δ(y_i,y) + Θ_i(y) − Θ_i(y_i): d is the number of features, whatever the number of
labels. All planes of a term, and so all mixtures of them, lie along one line. Examples have one
part. The layout of w is the same inside and outside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.base.linalg import dot_at
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import scoring
from ssvm_bench.oracles.gram import gram_matrices
from ssvm_bench.oracles.joint_features import padded, placed, weighted
from ssvm_bench.oracles.scoring import label_loss

# mypy: disable-error-code="no-untyped-def"


class SignedFeatures(NamedTuple):
    """The examples of a problem as kernels see them.

    Attributes
    ----------
    offsets, truth, indptr, places, values, gram_start, gram, n_features, n_labels, stride
        As in :class:`ssvm_bench.oracles.joint_features.JointFeatures`; the places are the columns,
        values float64, and G of an example is ‖ψ(x_i)‖².
    transitions : bool
        There are none.
    signs : ndarray of float64, shape (K,)
        s of every label.
    losses : ndarray of float64, shape (n, K)
        b_i of every label; 0 of the ground truth.
    """

    offsets: np.ndarray
    truth: np.ndarray
    indptr: np.ndarray
    places: np.ndarray
    values: np.ndarray
    gram_start: np.ndarray
    gram: np.ndarray
    n_features: int
    n_labels: int
    stride: int
    transitions: bool
    signs: np.ndarray
    losses: np.ndarray

    @property
    def columns(self) -> tuple[int, int]:
        """Weights of a feature, and places for them in the inner layout."""
        return 1, 1

    @property
    def last_place(self) -> int:
        """Largest place that there can be."""
        return self.n_features - 1

    @property
    def label_radius2(self) -> float:
        """Largest (s(y) − s(y_i))²."""
        return float(np.square(self.signs - self.signs[self.truth][:, None]).max())

    def label_entries(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return where in the weights of a feature each label enters, and how."""
        return np.zeros_like(labels), self.signs[labels]


def build(
    dataset: Dataset,
    truth: np.ndarray,
    signs: np.ndarray,
    losses: np.ndarray,
    costs: np.ndarray | None,
) -> SignedFeatures:
    """Arrange a dataset's examples.

    Parameters
    ----------
    dataset : Dataset
        Of which the features are taken.
    truth : ndarray of uint8, shape (n,)
        y_i.
    signs : ndarray of float64, shape (K,)
        s.
    losses : ndarray of float64, shape (n, K)
        b_i.
    costs : ndarray of float64, shape (n,), optional
        C_i > 0, by which features and losses are multiplied.
    """
    rows = csr_array(dataset.x)
    indptr, starts = rows.indptr.astype(np.int64), np.arange(dataset.n + 1)
    places = placed(rows, 1)
    values = weighted(rows, costs).astype(np.float64)  # one type: kernels are compiled once
    return SignedFeatures(
        offsets=starts,
        truth=truth,
        indptr=indptr,
        places=places,
        values=values,
        gram_start=starts,
        gram=gram_matrices(starts, indptr, places, values, starts, dataset.n_features, 1),
        n_features=dataset.n_features,
        n_labels=signs.size,
        stride=padded(signs.size),
        transitions=False,
        signs=signs,
        losses=losses if costs is None else losses * costs[:, None],
    )


@kernel
def _sum(features, delta):
    """Return Σ_c delta[c] s(c)."""
    total = 0.0
    for c in range(features.n_labels):
        total += delta[c] * features.signs[c]
    return total


@kernel
def _sum_of_some(features, labels, count, delta):
    """Return Σ_k delta[k] s(labels[k])."""
    total = 0.0
    for k in range(count):
        total += delta[k] * features.signs[labels[k]]
    return total


@kernel
def _score(features, w, i):
    """Return ⟨w, ψ(x_i)⟩."""
    begin, end = features.indptr[i], features.indptr[i + 1]
    return dot_at(features.values[begin:end], features.places[begin:end], w)


@kernel
def _add(features, i, scale, v):
    """Add scale · ψ(x_i) to v."""
    for k in range(features.indptr[i], features.indptr[i + 1]):
        v[features.places[k]] += scale * features.values[k]


@implements(scoring.unary_scores, SignedFeatures)
def _unary_scores(features, w, i, theta):
    score = _score(features, w, i)
    for c in range(features.n_labels):
        theta[0, c] = features.signs[c] * score


@implements(scoring.label_scores, SignedFeatures)
def _label_scores(features, w, part, labels, count, theta):
    score = _score(features, w, part)
    for k in range(count):
        theta[k] = features.signs[labels[k]] * score


@implements(scoring.add_labels, SignedFeatures)
def _add_labels(features, part, labels, count, scale, delta, v):
    _add(features, part, scale * _sum_of_some(features, labels, count, delta), v)


@implements(scoring.label_size, SignedFeatures)
def _label_size(features, part):
    return features.indptr[part + 1] - features.indptr[part]


@implements(scoring.label_place, SignedFeatures)
def _label_place(features, part, k, label):
    return np.int64(features.places[features.indptr[part] + k])


@implements(scoring.add_labels_twice, SignedFeatures)
def _add_labels_twice(features, part, labels, count, delta, scale, v, other_scale, other):
    total = _sum_of_some(features, labels, count, delta)
    _add(features, part, scale * total, v)
    _add(features, part, other_scale * total, other)


@implements(scoring.add_marginals, SignedFeatures)
def _add_marginals(features, part, scale, delta, v):
    _add(features, part, scale * _sum(features, delta), v)


@implements(scoring.squared_label_norm, SignedFeatures)
def _squared_label_norm(features, part, labels, count, delta):
    return _sum_of_some(features, labels, count, delta) ** 2


@implements(scoring.label_difference_product, SignedFeatures)
def _label_difference_product(features, part, row, labels, count, one, other):
    return _sum(features, row) * (features.signs[one] - features.signs[other])


@implements(scoring.marginal_change_product, SignedFeatures)
def _marginal_change_product(features, a, a_before, b, b_before):
    of_a = _sum(features, a) - _sum(features, a_before)
    return of_a * (_sum(features, b) - _sum(features, b_before))


@implements(scoring.label_loss, SignedFeatures)
def _label_loss(features, part, c):
    return features.losses[part, c]


@implements(scoring.expected_label_loss, SignedFeatures)
def _expected_label_loss(features, part, mu):
    total = 0.0
    for c in range(features.n_labels):
        total += mu[c] * features.losses[part, c]
    return total


@implements(scoring.labeling_loss, SignedFeatures)
def _labeling_loss(features, i, y):
    return label_loss(features, i, y[0])
