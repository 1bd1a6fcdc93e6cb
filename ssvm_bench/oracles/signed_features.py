"""Joint features of labels that share the weights of one vector: binary problems and regression.

.. code-block:: text

    ϕ(x_i, y) = s(y) ψ(x_i),   s(y) ∈ R        φ^{iy} = 1/n [ (s(y) − s(y_i)) ψ(x_i),  b_i(y) ]

with b_i(y) = Δ(y_i,y) + Θ_i(y) − Θ_i(y_i). d is the number of features, for any number of labels.
All planes of a term, and so all mixtures of them, have φ⋆ on one line; solvers that work on a fixed
finite set of planes can have all of them at once. Examples have one part. The layout of w is the
same inside and outside.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.base.linalg import dot_at
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import scoring
from ssvm_bench.oracles.base import Constraints, of_wrong_labels
from ssvm_bench.oracles.joint_features import (
    features_with,
    gram_matrices,
    padded,
    placed,
    radius2,
    weighted,
)
from ssvm_bench.oracles.labeling import LabelingOracle

# mypy: disable-error-code="no-untyped-def"


class SignedFeatures(features_with("signs", "losses")):  # type: ignore[misc]
    """The examples of a problem as kernels see them.

    Attributes
    ----------
    offsets, truth, indptr, indices, values, gram_start, gram, n_features, n_labels, stride
        As in :class:`ssvm_bench.oracles.joint_features.JointFeatures`; the indices are the columns,
        the values are float64, and G of an example is ‖ψ(x_i)‖².
    transitions : bool
        False.
    signs : ndarray of float64, shape (K,)
        s of every label.
    losses : ndarray of float64, shape (n, K)
        b_i of every label; 0 for the true label.
    """

    @property
    def squared_radius(self) -> float:
        """A bound of R², the largest (s(y) − s(y_i))² ‖ψ(x_i)‖²."""
        r2 = np.square(self.signs - self.signs[self.truth][:, None]).max()
        return radius2(self, float(r2))


class SignedOracle(LabelingOracle):
    """An oracle over signed features."""

    def constraints(self) -> Constraints:
        """Return all planes."""
        features = self.features
        n, wrong = self.n, features.n_labels - 1
        term, label = of_wrong_labels(features.truth, features.n_labels)
        factor = features.signs[label] - features.signs[features.truth[term]]
        narrow = np.int32 if features.values.size < 1 << 31 else np.int64  # half the memory
        bounds = features.indptr.astype(narrow)
        psi = csr_array((features.values, features.indices, bounds), (n, self.d))
        star = psi if wrong == 1 else psi[term]
        return Constraints(
            term_start=np.arange(n + 1) * wrong,
            indptr=star.indptr,
            indices=star.indices,
            values=np.repeat(factor, np.diff(star.indptr)) * star.data / n,
            offset=features.losses[term, label] / n,
        )


def signed_features(
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
        The dataset of the features.
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
    indices = placed(rows, 1)
    values = weighted(rows, costs).astype(np.float64)  # one type: kernels are compiled once
    return SignedFeatures(
        offsets=starts,
        truth=truth,
        indptr=indptr,
        indices=indices,
        values=values,
        gram_start=starts,
        gram=gram_matrices(starts, indptr, indices, values, starts, dataset.n_features, 1),
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
    return dot_at(features.values[begin:end], features.indices[begin:end], w)


@kernel
def _add(features, i, scale, v):
    """Add scale · ψ(x_i) to v."""
    for k in range(features.indptr[i], features.indptr[i + 1]):
        v[features.indices[k]] += scale * features.values[k]


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


@implements(scoring.add_label, SignedFeatures)
def _add_label(features, part, label, scale, v):
    _add(features, part, scale * features.signs[label], v)


@implements(scoring.add_labels, SignedFeatures)
def _add_labels(features, part, labels, count, scale, delta, v):
    _add(features, part, scale * _sum_of_some(features, labels, count, delta), v)


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
