"""The operations of a block step on planes that are labelings.

With the scores θ and the Gram matrix G of :mod:`ssvm_bench.oracles.joint_features`, and δ the
difference of two marginals (over labels l, and over transitions t),

.. code-block:: text

    ⟨δ, [w 1]⟩ = Σ_l ⟨δ_l, θ[l]⟩ + Σ_t δ_t w_t + δ∘
    ‖δ⋆‖²      = Σ_{l,m} G[l,m] ⟨δ_l, δ_m⟩ + Σ_t δ_t²

A part in which φ^i is sure of the plane's label has δ_l = 0 and costs nothing.
"""

from __future__ import annotations

from ssvm_bench.base.jit import implements, kernel, prefetch
from ssvm_bench.oracles.scoring import (
    add_labels,
    add_labels_twice,
    label_index,
    label_scores,
    label_size,
    squared_label_norm,
)
from ssvm_bench.planes import operations
from ssvm_bench.planes.labelings import Labelings

# mypy: disable-error-code="no-untyped-def"


@kernel
def gather_from(storage, w, i, theta):
    """Do what ``gather`` does, given the unary scores ``theta`` of term i, shape (≥ L, stride)."""
    first = storage.features.offsets[i]
    for l in range(storage.features.offsets[i + 1] - first):
        for k in range(storage.seen_count[first + l]):
            storage.theta[l, k] = theta[l, storage.seen[first + l, k]]
    _load_moves(storage, w, i)


@kernel
def _load_moves(storage, w, i):
    base = storage.features.n_features * storage.features.stride
    begin = storage.moves_start[i]
    for k in range(storage.moves_count[i]):
        storage.move_theta[k] = w[base + storage.moves[begin + k]]


@implements(operations.prefetch_term, Labelings)
def _prefetch_term(blocks, i):
    features = blocks.features
    first = features.offsets[i]
    L = features.offsets[i + 1] - first
    begin, end = features.indptr[first], features.indptr[first + L]
    _fetch_range(features.indices, begin, end)
    _fetch_range(features.values, begin, end)
    _fetch_range(features.gram, features.gram_start[i], features.gram_start[i] + L * L)
    for l in range(L):
        _fetch_range(blocks.mu[first + l], 0, blocks.mu.shape[1])
        prefetch(blocks.seen[first + l], 0)
    _fetch_range(blocks.seen_count, first, first + L)
    places = blocks.plane_start[i]
    _fetch_range(blocks.labels, places, places + blocks.n_planes[i] * L)
    _fetch_range(blocks.links, places, places + blocks.n_planes[i] * L)
    moves = blocks.moves_start[i]
    _fetch_range(blocks.moves, moves, moves + blocks.moves_count[i])
    _fetch_range(blocks.nu, moves, moves + blocks.moves_count[i])


@kernel
def _fetch_range(array, begin, end):
    for k in range(begin, end, 64 // array.itemsize):
        prefetch(array, k)


@implements(operations.gather, Labelings)
def _gather(blocks, w, i):
    features = blocks.features
    first = features.offsets[i]
    for l in range(features.offsets[i + 1] - first):
        q = first + l
        if blocks.seen_count[q] == 1:
            blocks.theta[l, 0] = 0.0  # all planes agree here: it makes no difference
        else:
            label_scores(features, w, q, blocks.seen[q], blocks.seen_count[q], blocks.theta[l])
    _load_moves(blocks, w, i)


@implements(operations.plane_value, Labelings)
def _plane_value(blocks, i, p):
    features = blocks.features
    L = features.offsets[i + 1] - features.offsets[i]
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
    first = features.offsets[i]
    L = features.offsets[i + 1] - first
    base = blocks.plane_start[i] + p * L
    total = blocks.offset[blocks.start[i] + p] - blocks.circ[i]
    moved = 0
    for l in range(L):
        here = blocks.labels[base + l]
        mu = blocks.mu[first + l]
        if mu[here] == 1.0:
            continue  # all of φ^i has the plane's label in this part
        blocks.moved[moved] = l
        moved += 1
        for k in range(blocks.seen_count[first + l]):
            step = (1.0 if k == here else 0.0) - mu[k]
            blocks.delta[l, k] = step
            total += step * blocks.theta[l, k]
    blocks.moved[blocks.moved.size - 1] = moved
    if features.transitions:
        begin = blocks.moves_start[i]
        for k in range(blocks.moves_count[i]):
            blocks.move_delta[k] = -blocks.nu[begin + k]
        for l in range(1, L):
            blocks.move_delta[blocks.links[base + l]] += 1.0
        for k in range(blocks.moves_count[i]):
            total += blocks.move_delta[k] * blocks.move_theta[k]
    return total


@implements(operations.set_direction_from_truth, Labelings)
def _set_direction_from_truth(blocks, i):
    features = blocks.features
    first = features.offsets[i]
    L = features.offsets[i + 1] - first
    for l in range(L):
        blocks.moved[l] = l
        for k in range(blocks.seen_count[first + l]):
            blocks.delta[l, k] = blocks.mu[first + l, k]
        blocks.delta[l, 0] -= 1.0
    blocks.moved[blocks.moved.size - 1] = L
    if features.transitions:
        begin = blocks.moves_start[i]
        for k in range(blocks.moves_count[i]):
            blocks.move_delta[k] = blocks.nu[begin + k]
        for l in range(1, L):
            here = features.truth[first + l]
            place = here * features.stride + features.truth[first + l - 1]
            k = 0
            while blocks.moves[begin + k] != place:  # seen since the beginning
                k += 1
            blocks.move_delta[k] -= 1.0


@implements(operations.squared_length, Labelings)
def _squared_length(blocks, i):
    features = blocks.features
    first = features.offsets[i]
    L = features.offsets[i + 1] - first
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
        blocks.dense[l] = 0.0
        for k in range(count):
            blocks.dense[l, seen[k]] = delta[k]
        total += gram[l] * squared_label_norm(features, first + l, seen, count, delta)
    if features.transitions:
        for k in range(blocks.moves_count[i]):
            total += blocks.move_delta[k] ** 2
    return total


@implements(operations.add_direction, Labelings)
def _add_direction(blocks, i, scale, v):
    features = blocks.features
    for s in range(blocks.moved[blocks.moved.size - 1]):
        l = blocks.moved[s]
        q = features.offsets[i] + l
        add_labels(features, q, blocks.seen[q], blocks.seen_count[q], scale, blocks.delta[l], v)
    if features.transitions:
        base = features.n_features * features.stride
        begin = blocks.moves_start[i]
        for k in range(blocks.moves_count[i]):
            v[base + blocks.moves[begin + k]] += scale * blocks.move_delta[k]


@implements(operations.direction_places, Labelings)
def _direction_places(blocks, i, listed, places):
    features = blocks.features
    size = 0
    for s in range(blocks.moved[blocks.moved.size - 1]):
        q = features.offsets[i] + blocks.moved[s]
        for k in range(label_size(features, q)):
            for c in range(blocks.seen_count[q]):
                place = label_index(features, q, k, blocks.seen[q, c])
                size = operations.list_place(place, listed, places, size)
    if features.transitions:
        base = features.n_features * features.stride
        begin = blocks.moves_start[i]
        for k in range(blocks.moves_count[i]):
            place = base + blocks.moves[begin + k]
            size = operations.list_place(place, listed, places, size)
    return size


@implements(operations.add_direction_to_both, Labelings)
def _add_direction_to_both(blocks, i, scale, v, other_scale, other):
    features = blocks.features
    for s in range(blocks.moved[blocks.moved.size - 1]):
        l = blocks.moved[s]
        q = features.offsets[i] + l
        seen, count, delta = blocks.seen[q], blocks.seen_count[q], blocks.delta[l]
        add_labels_twice(features, q, seen, count, delta, scale, v, other_scale, other)
    if features.transitions:
        base = features.n_features * features.stride
        begin = blocks.moves_start[i]
        for k in range(blocks.moves_count[i]):
            place = base + blocks.moves[begin + k]
            v[place] += scale * blocks.move_delta[k]
            other[place] += other_scale * blocks.move_delta[k]


@implements(operations.move_term, Labelings)
def _move_term(blocks, i, gamma):
    first = blocks.features.offsets[i]
    for s in range(blocks.moved[blocks.moved.size - 1]):
        l = blocks.moved[s]
        for k in range(blocks.seen_count[first + l]):
            blocks.mu[first + l, k] += gamma * blocks.delta[l, k]
    if blocks.features.transitions:
        begin = blocks.moves_start[i]
        for k in range(blocks.moves_count[i]):
            blocks.nu[begin + k] += gamma * blocks.move_delta[k]


@implements(operations.same_plane, Labelings)
def _same_plane(blocks, i, p, q):
    L = blocks.features.offsets[i + 1] - blocks.features.offsets[i]
    one = blocks.plane_start[i] + p * L
    other = blocks.plane_start[i] + q * L
    for l in range(L):
        if blocks.labels[one + l] != blocks.labels[other + l]:
            return False
    return True


@implements(operations.copy_plane, Labelings)
def _copy_plane(blocks, i, p, q):
    L = blocks.features.offsets[i + 1] - blocks.features.offsets[i]
    source = blocks.plane_start[i] + p * L
    target = blocks.plane_start[i] + q * L
    for l in range(L):
        blocks.labels[target + l] = blocks.labels[source + l]
        blocks.links[target + l] = blocks.links[source + l]
