"""The operations of a block step on planes that are labelings.

Let θ be the scores and G the Gram matrix of :mod:`ssvm_bench.oracles.joint_features`, and δ the
difference of two marginals: δ_l over the labels of part l, and δ_t for each transition t. Then

.. code-block:: text

    ⟨δ, [w 1]⟩ = Σ_l ⟨δ_l, θ[l]⟩ + Σ_t δ_t w_t + δ∘
    ‖δ⋆‖²      = Σ_{l,m} G[l,m] ⟨δ_l, δ_m⟩ + Σ_t δ_t²

A part where φ^i has all its weight on the plane's label has δ_l = 0 and costs nothing.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.jit import implements, kernel, prefetch, prefetch_range
from ssvm_bench.oracles import scoring
from ssvm_bench.planes import operations
from ssvm_bench.planes.labelings import Labelings

# mypy: disable-error-code="no-untyped-def"


@kernel
def gather_from(storage, w, i, theta):
    """Do what ``gather`` does, given the unary scores ``theta`` of term i, shape (≥ L, stride)."""
    first, L = scoring.parts(storage.features, i)
    for l in range(L):
        for k in range(storage.seen_count[first + l]):
            storage.theta[l, k] = theta[l, storage.seen[first + l, k]]
    _load_moves(storage, w, i)


@kernel
def moves(blocks, i):
    """Return where the transitions of term i begin, and how many there are."""
    if not blocks.features.transitions:
        return 0, 0
    return blocks.moves_start[i], blocks.moves_count[i]


@kernel
def _load_moves(storage, w, i):
    base = storage.features.n_features * storage.features.stride
    begin, count = moves(storage, i)
    for k in range(count):
        storage.move_theta[k] = w[base + storage.moves[begin + k]]


@implements(operations.look_ahead, Labelings)
def _look_ahead(blocks, order, k):
    features = blocks.features
    last = order.size - 1
    later = order[k + 2 if k + 2 < last else last]  # those of k + 1 were prefetched before
    for numbers in (features.offsets, features.gram_start, blocks.start, blocks.plane_start):
        prefetch(numbers, later)
    for numbers in (blocks.n_planes, blocks.moves_start, blocks.moves_count):
        prefetch(numbers, later)
    prefetch(blocks.term_offset, later)
    i = order[k + 1 if k + 1 < last else last]
    first, L = scoring.parts(features, i)
    slot = blocks.start[i]
    prefetch_range(blocks.offset, slot, slot + blocks.n_planes[i])
    prefetch_range(blocks.active, slot, slot + blocks.n_planes[i])
    scoring.look_ahead(features, features.indptr[first], features.indptr[first + L])
    prefetch_range(features.gram, features.gram_start[i], features.gram_start[i] + L * L)
    width = blocks.mu.shape[1]
    prefetch_range(blocks.mu[first], 0, L * width)  # all rows of the term
    prefetch_range(blocks.seen[first], 0, L * width)
    prefetch_range(blocks.seen_count, first, first + L)
    first_label = blocks.plane_start[i]
    prefetch_range(blocks.labels, first_label, first_label + blocks.n_planes[i] * L)
    prefetch_range(blocks.links, first_label, first_label + blocks.n_planes[i] * L)
    begin, count = moves(blocks, i)
    prefetch_range(blocks.moves, begin, begin + count)
    prefetch_range(blocks.nu, begin, begin + count)


@implements(operations.gather, Labelings)
def _gather(blocks, w, i):
    features = blocks.features
    first, L = scoring.parts(features, i)
    for l in range(L):
        q = first + l
        if blocks.seen_count[q] == 1:
            blocks.theta[l, 0] = 0.0  # all planes agree here: any value will do
        else:
            scoring.label_scores(
                features, w, q, blocks.seen[q], blocks.seen_count[q], blocks.theta[l]
            )
    _load_moves(blocks, w, i)


@implements(operations.plane_value, Labelings)
def _plane_value(blocks, i, p):
    features = blocks.features
    _, L = scoring.parts(features, i)
    base = blocks.plane_start[i] + p * L
    total = blocks.offset[blocks.start[i] + p]
    for l in range(L):
        total += blocks.theta[l, blocks.labels[base + l]]
    if features.transitions:
        for l in range(1, L):
            total += blocks.move_theta[blocks.links[base + l]]
    return total


@implements(operations.set_direction, Labelings)
def _set_direction(blocks, i, p):
    features = blocks.features
    first, L = scoring.parts(features, i)
    base = blocks.plane_start[i] + p * L
    total = blocks.offset[blocks.start[i] + p] - blocks.term_offset[i]
    moved = 0
    for l in range(L):
        here = blocks.labels[base + l]
        mu = blocks.mu[first + l]
        if mu[here] == 1.0:
            continue  # φ^i has all its weight on the plane's label in this part
        blocks.moved[moved] = l
        moved += 1
        for k in range(blocks.seen_count[first + l]):
            step = (1.0 if k == here else 0.0) - mu[k]
            blocks.delta[l, k] = step
            total += step * blocks.theta[l, k]
    blocks.moved[blocks.moved.size - 1] = moved
    if features.transitions:
        begin, count = moves(blocks, i)
        for k in range(count):
            blocks.move_delta[k] = -blocks.nu[begin + k]
        for l in range(1, L):
            blocks.move_delta[blocks.links[base + l]] += 1.0
        for k in range(count):
            total += blocks.move_delta[k] * blocks.move_theta[k]
    return total


@implements(operations.set_direction_from_truth, Labelings)
def _set_direction_from_truth(blocks, i):
    features = blocks.features
    first, L = scoring.parts(features, i)
    for l in range(L):
        blocks.moved[l] = l
        for k in range(blocks.seen_count[first + l]):
            blocks.delta[l, k] = blocks.mu[first + l, k]
        blocks.delta[l, 0] -= 1.0
    blocks.moved[blocks.moved.size - 1] = L
    begin, count = moves(blocks, i)
    for k in range(count):
        blocks.move_delta[k] = blocks.nu[begin + k]
    for l in range(1, L if features.transitions else 0):
        blocks.move_delta[true_move(blocks, i, l)] -= 1.0


@kernel
def spread(blocks, i, l):
    """Write δ_l, over all labels of part l, to the dense scratch."""
    seen = blocks.seen[blocks.features.offsets[i] + l]
    blocks.dense[l] = 0.0
    for k in range(blocks.seen_count[blocks.features.offsets[i] + l]):
        blocks.dense[l, seen[k]] = blocks.delta[l, k]


@implements(operations.squared_length, Labelings)
def _squared_length(blocks, i):
    features = blocks.features
    first, L = scoring.parts(features, i)
    total = 0.0
    for s in range(blocks.moved[blocks.moved.size - 1]):
        l = blocks.moved[s]
        seen = blocks.seen[first + l]
        count = blocks.seen_count[first + l]
        delta = blocks.delta[l]
        gram = features.gram[features.gram_start[i] + l * L :]
        for t in range(s):
            m = blocks.moved[t]
            if gram[m] != 0.0:
                overlap = 0.0
                for k in range(count):
                    overlap += delta[k] * blocks.dense[m, seen[k]]
                total += 2.0 * gram[m] * overlap
        spread(blocks, i, l)
        total += gram[l] * scoring.squared_label_norm(features, first + l, seen, count, delta)
    _, count = moves(blocks, i)
    for k in range(count):
        total += blocks.move_delta[k] ** 2
    return total


@implements(operations.add_direction, Labelings)
def _add_direction(blocks, i, scale, v):
    features = blocks.features
    for s in range(blocks.moved[blocks.moved.size - 1]):
        l = blocks.moved[s]
        q = features.offsets[i] + l
        scoring.add_labels(
            features, q, blocks.seen[q], blocks.seen_count[q], scale, blocks.delta[l], v
        )
    base = features.n_features * features.stride
    begin, count = moves(blocks, i)
    for k in range(count):
        v[base + blocks.moves[begin + k]] += scale * blocks.move_delta[k]


@implements(operations.direction_indices, Labelings)
def _direction_indices(blocks, i, listed, indices):
    features = blocks.features
    size = 0
    for s in range(blocks.moved[blocks.moved.size - 1]):
        q = features.offsets[i] + blocks.moved[s]
        for k in range(scoring.label_size(features, q)):
            for c in range(blocks.seen_count[q]):
                index = scoring.label_index(features, q, k, blocks.seen[q, c])
                size = operations.list_index(index, listed, indices, size)
    base = features.n_features * features.stride
    begin, count = moves(blocks, i)
    for k in range(count):
        size = operations.list_index(base + blocks.moves[begin + k], listed, indices, size)
    return size


@implements(operations.add_direction_to_both, Labelings)
def _add_direction_to_both(blocks, i, scale, v, other_scale, other):
    features = blocks.features
    for s in range(blocks.moved[blocks.moved.size - 1]):
        l = blocks.moved[s]
        q = features.offsets[i] + l
        seen, count, delta = blocks.seen[q], blocks.seen_count[q], blocks.delta[l]
        scoring.add_labels_twice(features, q, seen, count, delta, scale, v, other_scale, other)
    base = features.n_features * features.stride
    begin, n_moves = moves(blocks, i)
    for k in range(n_moves):
        index = base + blocks.moves[begin + k]
        v[index] += scale * blocks.move_delta[k]
        other[index] += other_scale * blocks.move_delta[k]


@implements(operations.move_term, Labelings)
def _move_term(blocks, i, gamma):
    first = blocks.features.offsets[i]
    for s in range(blocks.moved[blocks.moved.size - 1]):
        l = blocks.moved[s]
        for k in range(blocks.seen_count[first + l]):
            blocks.mu[first + l, k] += gamma * blocks.delta[l, k]
    begin, count = moves(blocks, i)
    for k in range(count):
        blocks.nu[begin + k] += gamma * blocks.move_delta[k]


@implements(operations.shrink_term, Labelings)
def _shrink_term(blocks, i):
    first, L = scoring.parts(blocks.features, i)
    base, m = blocks.plane_start[i], blocks.n_planes[i]
    used = blocks.dense[0]
    for l in range(L):
        q = first + l
        used[: blocks.seen_count[q]] = 0.0
        used[0] = 1.0  # the true label
        for p in range(m):
            used[blocks.labels[base + p * L + l]] = 1.0
        kept = _keep(used, blocks.seen_count[q], blocks.seen[q], blocks.mu[q])
        if kept < blocks.seen_count[q]:
            blocks.mu[q, kept : blocks.seen_count[q]] = 0.0
            for p in range(m):
                blocks.labels[base + p * L + l] = np.int64(used[blocks.labels[base + p * L + l]])
            blocks.seen_count[q] = kept
    begin, count = moves(blocks, i)
    if count == 0:
        return
    used = blocks.move_delta
    used[:count] = 0.0
    for l in range(1, L):
        used[true_move(blocks, i, l)] = 1.0
        for p in range(m):
            used[blocks.links[base + p * L + l]] = 1.0
    kept = _keep(used, count, blocks.moves[begin:], blocks.nu[begin:])
    if kept < count:
        for l in range(1, L):
            for p in range(m):
                at = base + p * L + l
                blocks.links[at] = np.int64(used[blocks.links[at]])
        blocks.moves_count[i] = kept


@kernel
def _keep(used, count, listed, weights):
    """Keep entries of two lists where ``used`` is 1; set it to the new index; return the number."""
    kept = 0
    for k in range(count):
        if used[k] == 1.0:
            listed[kept], weights[kept] = listed[k], weights[k]
            used[k] = kept
            kept += 1
    return kept


@kernel
def true_move(blocks, i, l):
    """Return the index, in the term's list, of the true transition from part l − 1 to part l."""
    features = blocks.features
    part = features.offsets[i] + l
    move = features.truth[part] * features.stride + features.truth[part - 1]
    begin = blocks.moves_start[i]
    k = 0
    while blocks.moves[begin + k] != move:  # the list has had it from the beginning
        k += 1
    return k
