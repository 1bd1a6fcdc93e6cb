"""Scores, losses and differences of labelings, whatever the joint features are.

.. code-block:: text

    ϕ(x_i, y) = Σ_l e(y_l) ⊗ ψ(x_i^l)  +  transitions

The types of features differ in how a label c of a part enters, that is in its vector e(c):

=================================================  =============================================
:mod:`~ssvm_bench.oracles.joint_features`          every label has weights of its own
:mod:`~ssvm_bench.oracles.signed_features`         e(c) is a number
:mod:`~ssvm_bench.oracles.latent`                  a label is a window of a canvas
:mod:`~ssvm_bench.oracles.landmarks`               a label is a position, or a displacement
:mod:`~ssvm_bench.oracles.kernel_features`         as the first; only inner products of ψ known
=================================================  =============================================

Each type implements the `abstract` operations below, and those of the rest that it can do faster.

``features`` holds the examples; ``w`` and ``v`` are in their inner layout; ``theta``, shape
(≥ L, stride), holds the unary scores θ[l, c] = ⟨w, e(c) ⊗ ψ(x^l)⟩ of one example.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.base.jit import abstract, allocating_kernel, generic, kernel, prefetch_range

# mypy: disable-error-code="no-untyped-def"

# ---- what types of features differ in -----------------------------------------------------------


@generic
def unary_scores(features, w, i, theta):
    """Write θ of example i into ``theta[:L]``."""
    first, L = parts(features, i)
    for l in range(L):
        theta[l] = 0.0
        for c in range(features.n_labels):
            theta[l, c] = label_score(features, w, first + l, c)


@abstract
def label_score(features, w, part, label):
    """Return θ[part, label]; signed features implement `label_scores` instead."""


@generic
def label_scores(features, w, part, labels, count, theta):
    """Compute ``theta[k]`` = θ[part, labels[k]] for the first ``count`` of a few labels."""
    for k in range(count):
        theta[k] = label_score(features, w, part, np.int64(labels[k]))


@abstract
def add_label(features, part, label, scale, v):
    """Add scale · e(label) ⊗ ψ(x^part) to v."""


@generic
def add_labels(features, part, labels, count, scale, delta, v):
    """Add scale · Σ_k delta[k] e(labels[k]) ⊗ ψ(x^part) to v, over the first ``count`` labels."""
    for k in range(count):
        if delta[k] != 0.0:
            add_label(features, part, np.int64(labels[k]), scale * delta[k], v)


@generic
def add_labels_twice(features, part, labels, count, delta, scale, v, other_scale, other):
    """Do `add_labels` to v with ``scale``, and to ``other`` with ``other_scale``."""
    add_labels(features, part, labels, count, scale, delta, v)
    add_labels(features, part, labels, count, other_scale, delta, other)


@abstract
def add_marginals(features, part, scale, delta, v):
    """Do `add_labels` for all labels; only joint and signed features implement it."""


@generic
def label_size(features, part):
    """Return how many indices `label_index` has, which include all non-zeros of a label."""
    return features.indptr[part + 1] - features.indptr[part]


@generic
def label_index(features, part, k, label):
    """Return the k-th of these indices in v, which may repeat."""
    return np.int64(features.indices[features.indptr[part] + k])


@generic
def look_ahead(features, begin, end):
    """Prefetch the non-zeros from ``begin`` to ``end`` of the features, of several parts."""
    prefetch_range(features.indices, begin, end)
    prefetch_range(features.values, begin, end)


@generic
def squared_label_norm(features, part, labels, count, delta):
    """Return ‖Σ_k delta[k] e(labels[k])‖² over the first ``count`` labels of a part."""
    total = 0.0
    for k in range(count):
        total += delta[k] * delta[k]
    return total


@generic
def label_difference_product(features, part, row, labels, count, one, other):
    """Return ⟨Σ_c row[c] e(c), e(one) − e(other)⟩ of labels of a part.

    All c with row[c] ≠ 0 are among the first ``count`` labels, which do not repeat.
    """
    return row[one] - row[other]


@abstract
def marginal_change_product(features, a, a_before, b, b_before):
    """Return ⟨Σ_c (a − a_before)[c] e(c), Σ_c (b − b_before)[c] e(c)⟩; see `add_marginals`."""


@kernel
def loss_of_part(features, part):
    """Return the factor by which the losses of a part's labels are multiplied."""
    return features.scale[part] if features.scale.size > 0 else 1.0


@generic
def label_loss(features, part, c):
    """Return what label c adds to L times the loss of a labeling; 0 for the true label."""
    if features.losses.size > 0:
        return loss_of_part(features, part) * features.losses[features.truth[part], c]
    return loss_of_part(features, part) if c != features.truth[part] else 0.0


@generic
def waits(features):
    """Return whether vectors must be completed before scores are computed (kernel features)."""
    return False


@generic
def expected_label_loss(features, part, mu):
    """Return Σ_c mu[c] `label_loss`(c), where Σ_c mu[c] = 1."""
    total = 0.0
    for c in range(features.n_labels):
        total += mu[c] * label_loss(features, part, c)
    return total


# ---- operations made of these -------------------------------------------------------------------


@kernel
def parts(features, i):
    """Return the first part of example i, and their number L."""
    return features.offsets[i], features.offsets[i + 1] - features.offsets[i]


@kernel
def move_index(features, before, after):
    """Return the index in w of a transition from one label to the next."""
    return (features.n_features + after) * features.stride + before


@kernel
def labeling_loss(features, i, y):
    """Return n φ∘ of a labeling y of example i, as far as it is a sum over parts."""
    first, L = parts(features, i)
    total = 0.0
    for l in range(L):
        total += label_loss(features, first + l, y[l])
    return total / L


@allocating_kernel
def joint_feature(features, i, y, size):
    """Return ϕ(x_i, y) in the inner layout, whose length is ``size``."""
    v = np.zeros(size)
    first, L = parts(features, i)
    for l in range(L):
        add_label(features, first + l, y[l], 1.0, v)
        if l > 0 and features.transitions:
            v[move_index(features, y[l - 1], y[l])] += 1.0
    return v


@allocating_kernel
def scratch(features, most):
    """Return scratch for θ, a labeling, two labels and a time; terms have up to ``most`` parts."""
    kind, theta = features.truth.dtype, np.zeros((most, features.stride))
    return theta, np.zeros(most, kind), np.zeros(2, kind), np.zeros(2, np.int64)


def longest(features: Any) -> int:
    """Return the largest number of parts of an example."""
    return int(np.diff(features.offsets).max(initial=0))


@kernel
def add_losses(features, i, scale, theta):
    """Add scale · `labeling_loss` to the unary scores of example i."""
    first, L = parts(features, i)
    for l in range(L):
        for c in range(features.n_labels):
            theta[l, c] += scale * label_loss(features, first + l, c) / L


@kernel
def labeling_score(features, w, i, theta, y):
    """Return ⟨w, ϕ(x_i, y)⟩ from the scores θ of example i."""
    total = 0.0
    for l in range(parts(features, i)[1]):
        total += theta[l, y[l]]
        if l > 0 and features.transitions:
            total += w[move_index(features, y[l - 1], y[l])]
    return total


@kernel
def labeling_size(features, w, i, theta, y):
    """Return the sum of the magnitudes of the numbers that `labeling_score` adds."""
    total = 0.0
    for l in range(parts(features, i)[1]):
        total += abs(theta[l, y[l]])
        if l > 0 and features.transitions:
            total += abs(w[move_index(features, y[l - 1], y[l])])
    return total


@kernel
def add_difference(features, i, y, labels, signs, v):
    """Add s (ϕ(x_i, y) − ϕ(x_i, y_i)) to v; parts with the true label cost nothing.

    ``signs`` is [s, −s] and ``labels`` scratch for two labels.
    """
    first, L = parts(features, i)
    for l in range(L):
        labels[0], labels[1] = y[l], features.truth[first + l]
        if labels[0] != labels[1]:
            add_labels(features, first + l, labels, 2, 1.0, signs, v)
        if l > 0 and features.transitions:
            v[move_index(features, y[l - 1], y[l])] += signs[0]
            v[move_index(features, features.truth[first + l - 1], labels[1])] += signs[1]


@kernel
def difference_row(features, i, y, labels, signs, dense, indices, values):
    """Write n φ⋆ = ϕ(x_i, y) − ϕ(x_i, y_i) as a sparse row, and return its number of non-zeros.

    Parameters
    ----------
    labels, signs
        As in `add_difference`, with s = 1.
    dense : ndarray of float64, shape (D,)
        Scratch: all 0 between calls.
    indices, values : ndarrays of int64 and float64, shape (D,)
        The row; indices do not repeat.
    """
    add_difference(features, i, y, labels, signs, dense)
    first, L = parts(features, i)
    count = 0
    for l in range(L):
        labels[0], labels[1] = y[l], features.truth[first + l]
        if labels[0] != labels[1]:
            for k in range(label_size(features, first + l)):
                for s in range(2):
                    index = label_index(features, first + l, k, labels[s])
                    count = _take(dense, index, indices, values, count)
        if l > 0 and features.transitions:
            move = move_index(features, y[l - 1], y[l])
            count = _take(dense, move, indices, values, count)
            move = move_index(features, features.truth[first + l - 1], labels[1])
            count = _take(dense, move, indices, values, count)
    return count


@kernel
def _take(dense, index, indices, values, count):
    """Move an entry of a dense vector to a sparse row, unless it is 0."""
    if dense[index] != 0.0:
        indices[count] = index
        values[count] = dense[index]
        dense[index] = 0.0
        count += 1
    return count
