"""Scores, losses and differences of labelings, whatever the joint features are.

.. code-block:: text

    ϕ(x_i, y) = Σ_l e(y_l) ⊗ ψ(x_i^l)  +  transitions

How a label c of a part enters, by its vector e(c), is what the types of features differ in:

=================================================  =============================================
:mod:`~ssvm_bench.oracles.joint_features`          every label has weights of its own
:mod:`~ssvm_bench.oracles.signed_features`         e(c) is a number
:mod:`~ssvm_bench.oracles.latent`                  a label is a window of a canvas
:mod:`~ssvm_bench.oracles.landmarks`               a label is a position, or a displacement
:mod:`~ssvm_bench.oracles.kernel_features`         as the first, ψ known by inner products alone
=================================================  =============================================

Each of them implements what is `abstract` here, and of the rest what it can do faster.

``features`` is the examples; ``w`` and ``v`` are in their inner layout; ``theta``, shape
(≥ L, stride), holds the unary scores θ[l, c] = ⟨w, e(c) ⊗ ψ(x^l)⟩ of one example.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.base.jit import abstract, allocating_kernel, generic, kernel, prefetch_range

# mypy: disable-error-code="no-untyped-def"

# ---- what types of features differ in -----------------------------------------------------------


@abstract
def unary_scores(features, w, i, theta):
    """Compute θ of example i into ``theta[:L]``."""


@abstract
def label_score(features, w, part, label):
    """Return θ[part, label]; signed features have all at once, by `label_scores`."""


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
    """Do `add_labels` to v with one scale and to another vector with another."""
    add_labels(features, part, labels, count, scale, delta, v)
    add_labels(features, part, labels, count, other_scale, delta, other)


@abstract
def add_marginals(features, part, scale, delta, v):
    """Do `add_labels` for all labels; only joint and signed features have expectations."""


@generic
def label_size(features, part):
    """Return how many of a label's features may be non-zero, at least."""
    return features.indptr[part + 1] - features.indptr[part]


@generic
def label_index(features, part, k, label):
    """Return the index in v of the k-th of these; some may be there twice."""
    return np.int64(features.indices[features.indptr[part] + k])


@generic
def look_ahead(features, begin, end):
    """Prefetch what is read of the features from one place to another, of several parts."""
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

    All c with row[c] ≠ 0 are among the first ``count`` labels, of which none is there twice.
    """
    return row[one] - row[other]


@abstract
def marginal_change_product(features, a, a_before, b, b_before):
    """Return ⟨Σ_c (a − a_before)[c] e(c), Σ_c (b − b_before)[c] e(c)⟩; as `add_marginals`."""


@kernel
def loss_of_part(features, part):
    """Return by what the loss of a label of a part is multiplied."""
    return features.scale[part] if features.scale.size > 0 else 1.0


@generic
def label_loss(features, part, c):
    """Return what label c adds to L times the loss of its labeling; 0 of the ground truth."""
    if features.losses.size > 0:
        return loss_of_part(features, part) * features.losses[features.truth[part], c]
    return loss_of_part(features, part) if c != features.truth[part] else 0.0


@generic
def waits(features):
    """Tell whether vectors have to be completed before scores are computed (kernels)."""
    return False


@generic
def expected_label_loss(features, part, mu):
    """Return Σ_c mu[c] `label_loss`(c), the mu adding up to 1."""
    total = 0.0
    for c in range(features.n_labels):
        total += mu[c] * label_loss(features, part, c)
    return total


# ---- what follows from that ---------------------------------------------------------------------


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
    """Return n φ∘ of a labeling y of example i, but for what is no matter of labels alone."""
    first, L = parts(features, i)
    total = 0.0
    for l in range(L):
        total += label_loss(features, first + l, y[l])
    return total / L


@allocating_kernel
def joint_feature(features, i, y, size):
    """Return ϕ(x_i, y) in the inner layout, of that size."""
    v = np.zeros(size)
    first, L = parts(features, i)
    for l in range(L):
        add_label(features, first + l, y[l], 1.0, v)
        if l > 0 and features.transitions:
            v[move_index(features, y[l - 1], y[l])] += 1.0
    return v


@allocating_kernel
def scratch(features, most):
    """Return room for θ, a labeling, two labels and a time, of terms of at most so many parts."""
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
    """Return the sum of the magnitudes of what `labeling_score` adds up."""
    total = 0.0
    for l in range(parts(features, i)[1]):
        total += abs(theta[l, y[l]])
        if l > 0 and features.transitions:
            total += abs(w[move_index(features, y[l - 1], y[l])])
    return total


@kernel
def add_difference(features, i, y, labels, signs, v):
    """Add s (ϕ(x_i, y) − ϕ(x_i, y_i)) to v; where they agree costs nothing.

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
        As of `add_difference`, the signs being 1 and −1.
    dense : ndarray of float64, shape (D,)
        Scratch: all 0 between calls.
    indices, values : ndarrays of int64 and float64, shape (D,)
        The row; no index is there twice.
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
