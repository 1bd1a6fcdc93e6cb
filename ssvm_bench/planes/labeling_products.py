"""Inner products of planes that are labelings, and steps along mixtures of them.

A plane's φ⋆ is the indicator of its labeling minus that of the ground truth. φ^i⋆ is the same with
marginals in place of the first indicator. Let D be one of them in dense form, D[m, c] over parts
and labels, and D[t] over transitions. Its inner product with the plane of a labeling y is

.. code-block:: text

    Σ_{l: y_l ≠ y_i^l} Σ_m G[l, m] (D[m, y_l] − D[m, y_i^l]) + Σ_{t of y} D[t] − Σ_{t of y_i} D[t]
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.oracles.scoring import label_difference_product, parts
from ssvm_bench.planes import operations
from ssvm_bench.planes.labeling_operations import moves, spread, true_move
from ssvm_bench.planes.labelings import Labelings

# mypy: disable-error-code="no-untyped-def"


@implements(operations.present_value, Labelings)
def _present_value(blocks, i):
    first, L = parts(blocks.features, i)
    total = blocks.term_offset[i]
    for l in range(L):
        mu = blocks.mu[first + l]
        for k in range(blocks.seen_count[first + l]):
            total += mu[k] * blocks.theta[l, k]
    begin, count = moves(blocks, i)
    for k in range(count):
        total += blocks.nu[begin + k] * blocks.move_theta[k]
    return total


@implements(operations.set_direction_of_mixture, Labelings)
def _set_direction_of_mixture(blocks, i, own, change):
    features = blocks.features
    first, L = parts(features, i)
    base = blocks.plane_start[i]
    begin, count = moves(blocks, i)
    for k in range(count):
        blocks.move_delta[k] = own * blocks.nu[begin + k]
    moved = 0
    varied = False  # whether planes differ in the previous part
    for l in range(L):
        varied_before = varied
        varied = blocks.seen_count[first + l] > 1
        if varied:
            mu = blocks.mu[first + l]
            delta = blocks.delta[l]
            for k in range(blocks.seen_count[first + l]):
                delta[k] = own * mu[k]
            only = -1  # the label of all planes in this part, −2 if there are several
            for p in range(blocks.n_planes[i]):
                if change[p] != 0.0:
                    label = np.int64(blocks.labels[base + p * L + l])
                    delta[label] += change[p]
                    only = label if only == -1 or only == label else -2
            if only == -2 or (own != 0.0 and mu[max(only, 0)] != 1.0):
                blocks.moved[moved] = l
                moved += 1
        if count > 0 and l > 0:
            if varied or varied_before:
                for p in range(blocks.n_planes[i]):
                    if change[p] != 0.0:
                        blocks.move_delta[blocks.links[base + p * L + l]] += change[p]
            else:  # the same transition in all planes
                blocks.move_delta[blocks.links[base + l]] -= own
    blocks.moved[blocks.moved.size - 1] = moved


@implements(operations.inner_products, Labelings)
def _inner_products(blocks, i, p, row):
    features = blocks.features
    first, L = parts(features, i)
    base = blocks.plane_start[i] + p * L
    moved = 0
    for l in range(L):
        here = blocks.labels[base + l]
        if here != 0:
            blocks.moved[moved] = l
            moved += 1
            blocks.dense[l] = 0.0
            blocks.dense[l, blocks.seen[first + l, here]] = 1.0
            blocks.dense[l, features.truth[first + l]] = -1.0
    blocks.moved[blocks.moved.size - 1] = moved
    if features.transitions:
        for k in range(blocks.moves_count[i]):
            blocks.move_delta[k] = 0.0
        for l in range(1, L):
            blocks.move_delta[blocks.links[base + l]] += 1.0
            blocks.move_delta[true_move(blocks, i, l)] -= 1.0
    of_truth = _of_truth(blocks, i)
    for q in range(p + 1):
        row[q] = _against(blocks, i, q, of_truth)


@implements(operations.product_with_term, Labelings)
def _product_with_term(blocks, i, p):
    operations.set_direction_from_truth(blocks, i)
    for l in range(parts(blocks.features, i)[1]):
        spread(blocks, i, l)
    return _against(blocks, i, p, _of_truth(blocks, i))


@kernel
def _against(blocks, i, q, of_truth):
    """Return the inner product of ``dense``, ``moved`` and ``move_delta`` with plane q."""
    features = blocks.features
    first, L = parts(features, i)
    base = blocks.plane_start[i] + q * L
    total = 0.0
    for l in range(L):
        label = blocks.labels[base + l]
        if label != 0:
            here = blocks.seen[first + l, label]
            truth = features.truth[first + l]
            gram = features.gram[features.gram_start[i] + l * L :]
            for s in range(blocks.moved[blocks.moved.size - 1]):
                m = blocks.moved[s]
                if gram[m] != 0.0:
                    row, labels = blocks.dense[m], blocks.seen[first + m]
                    count = blocks.seen_count[first + m]
                    total += gram[m] * label_difference_product(
                        features, first + l, row, labels, count, here, truth
                    )
    if features.transitions:
        for l in range(1, L):
            total += blocks.move_delta[blocks.links[base + l]]
        total -= of_truth
    return total


@kernel
def _of_truth(blocks, i):
    """Return the sum of ``move_delta`` over the transitions of the ground truth."""
    total = 0.0
    for l in range(1, parts(blocks.features, i)[1] if blocks.features.transitions else 0):
        total += blocks.move_delta[true_move(blocks, i, l)]
    return total
