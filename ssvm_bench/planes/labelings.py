"""Planes as labelings, φ^i as label marginals: the storage of multiclass and chain problems.

A convex combination of planes of term i is linear in the labels' indicators, so it is kept as
marginals: μ[l, c], the weight of the labelings with label c in part l, and ν[t], the expected
number of times that transition t is used.

The work depends on the number of labels seen. Each part lists the labels, and each term the
transitions, that some plane of the term has used. μ and ν are kept over these lists only, and a
plane is a list of indices into them: 3 bytes a part. If only planes of W_i have weight, a policy
may remove from the lists what only dropped planes have used.

**A step.** Let θ be the scores and G the Gram matrix of :mod:`ssvm_bench.oracles.joint_features`,
and δ the difference of two marginals: δ_l over the labels of part l, and δ_t for each transition t.

.. code-block:: text

    ⟨δ, [w 1]⟩ = Σ_l ⟨δ_l, θ[l]⟩ + Σ_t δ_t w_t + δ∘
    ‖δ⋆‖²      = Σ_{l,m} G[l,m] ⟨δ_l, δ_m⟩ + Σ_t δ_t²

A part where φ^i has all its weight on the plane's label has δ_l = 0 and costs nothing.

**Inner products.** A plane's φ⋆ is the indicator of its labeling minus that of the ground truth.
φ^i⋆ is the same with marginals in place of the first indicator. Let D be one of them in dense form,
D[m, c] over parts and labels, and D[t] over transitions. Its inner product with the plane of a
labeling y is

.. code-block:: text

    Σ_{l: y_l ≠ y_i^l} Σ_m G[l, m] (D[m, y_l] − D[m, y_i^l]) + Σ_{t of y} D[t] − Σ_{t of y_i} D[t]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ssvm_bench.base import state
from ssvm_bench.base.jit import implements, kernel, prefetch, prefetch_range
from ssvm_bench.base.state import Limits
from ssvm_bench.oracles import scoring
from ssvm_bench.oracles.joint_features import fetch, touch
from ssvm_bench.oracles.scoring import labeling_loss, longest, parts
from ssvm_bench.planes import operations

# mypy: disable-error-code="no-untyped-def"

CHANGED = ("mu", "nu", "term_offset")
"""Fields that hold φ^i."""

_ROOM = 2  # slots of a term at first: one plane, and the candidate
_WIDTH = 4  # labels of a part at first, and by how many its list grows

_SEEN = ("seen", "seen_count", "is_new", "mu", "moves", "nu", "moves_start", "moves_count")
_PLANES = ("labels", "links", "plane_start")
_SCRATCH = ("theta", "delta", "dense", "moved", "move_theta", "move_delta")


class Labelings(operations.storage_with("features", *_SEEN, *_PLANES, *_SCRATCH)):  # type: ignore[misc]
    """Storage; the first five fields as in :mod:`ssvm_bench.planes.operations`.

    Attributes
    ----------
    features : JointFeatures or SignedFeatures
    seen : ndarray of the type of labels, shape (parts, width)
    seen_count : ndarray of int64, shape (parts,)
        The labels seen in each part; the ground truth's is the first.
    is_new : ndarray of bool, shape (parts,)
        Whether a label has been added to a part's list since it was last read; the reader of the
        list sets this to false.
    mu : ndarray of float64, shape (parts, width)
        Label marginals of φ^i over ``seen``. The width only grows with the longest list of labels,
        because in random order a pass mostly waits for memory.
    moves : ndarray of uint32
    nu : ndarray of float64
        The transitions seen in each term, as indices of w counted from the first transition, and
        their expected number in φ^i.
    moves_start, moves_count : ndarrays of int64, shape (n,)
        Where term i's transitions begin, and how many there are.
    labels, links : ndarrays of the type of labels, and uint16
        Plane p of term i, of L parts: ``labels[plane_start[i] + p·L + l]`` is the index in
        ``seen[l]`` of the label of part l, ``links[…]`` the index in the term's transitions of the
        one from part l − 1 to part l.
    plane_start : ndarray of int64, shape (n,)
    theta, delta : ndarrays of float64, shape (longest, stride)
        Scratch: θ and δ of the current term over ``seen``.
    dense : ndarray of float64, shape (longest, stride)
        Scratch: δ over all labels.
    moved : ndarray of int64, shape (longest + 1,)
        Scratch: the parts with δ_l ≠ 0, their number last.
    move_theta, move_delta : ndarrays of float64
        Scratch: weights w_t of the term's transitions, and δ_t.
    """

    @property
    def most_moves(self) -> int:
        """Number of weights of transitions, those of unused labels included."""
        return int(self.features.n_labels * self.features.stride)


def allocate(features: Any) -> Labelings:
    """Return a storage in which every φ^i is the ground truth's plane and every W_i is empty.

    The ground truth's plane is every term's candidate.
    """
    lengths = np.diff(features.offsets)
    n, size, most = lengths.size, features.truth.size, longest(features)
    moves = _moves(features)
    kinds = features.n_labels**2 if features.transitions else 0
    storage = Labelings(
        start=np.arange(n, dtype=np.int64) * _ROOM,
        n_planes=np.zeros(n, np.int64),
        offset=np.zeros(n * _ROOM),
        active=np.zeros(n * _ROOM, np.int64),
        term_offset=np.zeros(n),
        features=features,
        seen=np.zeros((size, _WIDTH), features.truth.dtype),
        seen_count=np.zeros(size, np.int64),
        is_new=np.zeros(size, bool),
        mu=np.zeros((size, _WIDTH)),
        moves=np.zeros(moves.sum(), np.uint32),
        nu=np.zeros(moves.sum()),
        moves_start=operations.starts_of(moves),
        moves_count=np.zeros(n, np.int64),
        labels=np.zeros(size * _ROOM, features.truth.dtype),
        links=np.zeros(size * _ROOM, np.uint16),
        plane_start=features.offsets[:-1] * _ROOM,
        **{name: np.zeros((most, features.stride)) for name in ("theta", "delta", "dense")},
        moved=np.zeros(most + 1, np.int64),
        move_theta=np.zeros(kinds),
        move_delta=np.zeros(kinds),
    )
    _begin_at_truth(storage)
    return storage


def reserve(storage: Labelings, visits: np.ndarray, N: int) -> Labelings:
    """Return the storage with space for one new plane per visit of each term.

    Parameters
    ----------
    visits : ndarray of int64, shape (n,)
        How often the coming exact pass visits each term.
    N : int
        Largest size of a working set.
    """
    lengths = np.diff(storage.features.offsets)
    needed = np.minimum(storage.n_planes + visits, N) + 1
    room = operations.grown(np.diff(storage.start, append=storage.offset.size), needed)
    if room.sum() > storage.offset.size:
        labels, planes = room * lengths, storage.n_planes
        storage = _regrown(storage, "start", planes, room, ("offset", "active"))
        storage = _regrown(storage, "plane_start", planes * lengths, labels, ("labels", "links"))
    labels = min(storage.seen_count.max() + visits.max(), storage.features.n_labels)
    if labels > storage.mu.shape[1]:
        more = -(-labels // _WIDTH) * _WIDTH - storage.mu.shape[1]
        storage = storage._replace(
            seen=np.pad(storage.seen, ((0, 0), (0, more))),
            mu=np.pad(storage.mu, ((0, 0), (0, more))),
        )
    needed = storage.moves_count + visits * _moves(storage.features)
    needed = np.minimum(needed, storage.move_theta.size)
    room = operations.grown(np.diff(storage.moves_start, append=storage.moves.size), needed)
    if room.sum() > storage.moves.size:
        storage = _regrown(storage, "moves_start", storage.moves_count, room, ("moves", "nu"))
    return storage


def follow_truth(storage: Labelings) -> np.ndarray:
    """Replace the former true labels, and return the terms whose true label has changed.

    For examples of one part, where no plane has used a label that is true now. φ^i and the planes
    of W_i keep their labelings, except that the new true label replaces the former one.
    """
    truth = storage.features.truth
    changed = np.flatnonzero(storage.seen[:, 0] != truth)
    storage.seen[changed, 0] = truth[changed]
    return changed


def _moves(features: Any) -> np.ndarray:
    """Return the number of transitions of one labeling of each term."""
    moves = np.diff(features.offsets) - 1
    return moves if features.transitions else np.zeros_like(moves)


def _regrown(
    storage: Labelings, start: str, count: np.ndarray, room: np.ndarray, names: Sequence[str]
) -> Labelings:
    """Return the storage with ``room[i]`` entries for term i in the arrays ``names``.

    Parameters
    ----------
    start : str
        The field with the index of each term's first entry in these arrays.
    count : ndarray of int64, shape (n,)
        Entries of each term that are in use.
    """
    begin = operations.starts_of(room)
    arrays = {name: np.zeros(room.sum(), getattr(storage, name).dtype) for name in names}
    for name, array in arrays.items():
        old, size = getattr(storage, name).view(np.uint8), array.itemsize
        _move(old, array.view(np.uint8), size, count, getattr(storage, start), begin)
    return storage._replace(**{start: begin}, **arrays)


@kernel
def _move(source, target, size, count, old_start, new_start):
    """Copy entries of ``size`` bytes."""
    for i in range(count.size):
        old, new = size * old_start[i], size * new_start[i]
        for k in range(size * count[i]):
            target[new + k] = source[old + k]


@kernel
def _begin_at_truth(storage):
    offsets = storage.features.offsets
    for i in range(storage.n_planes.size):
        set_candidate(storage, i, storage.features.truth[offsets[i] : offsets[i + 1]])
        storage.mu[offsets[i] : offsets[i + 1], 0] = 1.0
        if storage.features.transitions:
            for l in range(1, offsets[i + 1] - offsets[i]):
                link = storage.links[storage.plane_start[i] + l]
                storage.nu[storage.moves_start[i] + link] += 1.0


@kernel
def set_candidate(storage, i, y):
    """Make a labeling the candidate of term i; its labels and transitions count as seen.

    Parameters
    ----------
    storage : Labelings
        With space for a candidate (`reserve`).
    i : int
        The term.
    y : ndarray of the type of labels, shape (≥ L,)
        The labels of its L parts.
    """
    features = storage.features
    first, L = parts(features, i)
    p = storage.n_planes[i]
    base = storage.plane_start[i] + p * L
    storage.offset[storage.start[i] + p] = labeling_loss(features, i, y)
    for l in range(L):
        seen = storage.seen[first + l]
        k = 0
        while k < storage.seen_count[first + l] and seen[k] != y[l]:
            k += 1
        if k == storage.seen_count[first + l]:
            seen[k] = y[l]
            storage.seen_count[first + l] = k + 1
            storage.is_new[first + l] = True
            if k == 1:
                touch(features, first + l)
        storage.labels[base + l] = k
    if features.transitions:
        begin = storage.moves_start[i]
        for l in range(1, L):
            move = y[l] * features.stride + y[l - 1]
            k = 0
            while k < storage.moves_count[i] and storage.moves[begin + k] != move:
                k += 1
            if k == storage.moves_count[i]:
                storage.moves[begin + k] = move
                storage.nu[begin + k] = 0.0
                storage.moves_count[i] = k + 1
            storage.links[base + l] = k


@implements(operations.prefetch_weights, Labelings)
def _prefetch_weights(blocks, w, order, k):
    i = order[k + 1 if k + 1 < order.size else k]
    fetch(blocks.features, w, i, blocks.seen, blocks.seen_count)


@implements(operations.same_plane, Labelings)
def _same_plane(blocks, i, p, q):
    _, L = parts(blocks.features, i)
    one = blocks.plane_start[i] + p * L
    other = blocks.plane_start[i] + q * L
    for l in range(L):
        if blocks.labels[one + l] != blocks.labels[other + l]:
            return False
    return True


@implements(operations.copy_plane, Labelings)
def _copy_plane(blocks, i, p, q):
    _, L = parts(blocks.features, i)
    source = blocks.plane_start[i] + p * L
    target = blocks.plane_start[i] + q * L
    for l in range(L):
        blocks.labels[target + l] = blocks.labels[source + l]
        blocks.links[target + l] = blocks.links[source + l]


# ---- the operations of a step --------------------------------------------------------------------


@kernel
def gather_from(storage, w, i, theta):
    """Do what ``gather`` does, given the unary scores ``theta`` of term i, shape (≥ L, stride)."""
    first, L = parts(storage.features, i)
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


@implements(operations.prefetch_term, Labelings)
def _prefetch_term(blocks, order, k):
    features = blocks.features
    last = order.size - 1
    later = order[k + 2 if k + 2 < last else last]  # those of k + 1 were prefetched before
    for numbers in (features.offsets, features.gram_start, blocks.start, blocks.plane_start):
        prefetch(numbers, later)
    for numbers in (blocks.n_planes, blocks.moves_start, blocks.moves_count):
        prefetch(numbers, later)
    prefetch(blocks.term_offset, later)
    i = order[k + 1 if k + 1 < last else last]
    first, L = parts(features, i)
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


@implements(operations.gather, Labelings, shared=True)
def _gather(blocks, w, i):
    features = blocks.features
    first, L = parts(features, i)
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
    _, L = parts(features, i)
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
    first, L = parts(features, i)
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
    first, L = parts(features, i)
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
    first, L = parts(features, i)
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
    first, L = parts(blocks.features, i)
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
    k, last = 0, blocks.moves_count[i] - 1
    while k < last and blocks.moves[begin + k] != move:  # the list has had it from the beginning
        k += 1
    return k


# ---- inner products, and steps along mixtures of planes ------------------------------------------


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
                    total += gram[m] * scoring.label_difference_product(
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


# ---- as arrays, and back (:mod:`.operations`) ----------------------------------------------------


_COUNTS = ("n_planes", "term_offset", "seen_count", "moves_count")


@state.of.register
def _(blocks: Labelings) -> dict[str, np.ndarray]:
    of_planes = blocks.n_planes * np.diff(blocks.features.offsets)
    entries = {
        ("offset", "active"): operations.entries(blocks.start, blocks.n_planes),
        ("seen", "mu"): np.arange(blocks.seen.shape[1]) < blocks.seen_count[:, None],
        ("moves", "nu"): operations.entries(blocks.moves_start, blocks.moves_count),
        ("labels", "links"): operations.entries(blocks.plane_start, of_planes),
    }
    return operations.in_use(blocks, _COUNTS, entries)


def _entries_of_planes(found: Any, blocks: Labelings) -> np.ndarray:
    """Return the number of entries of ``labels`` of each term."""
    return found["n_planes"] * np.diff(blocks.features.offsets)


def _choices(found: Any, blocks: Labelings) -> np.ndarray:
    """Return, for each part of each plane, how many labels of it have been seen."""
    offsets = blocks.features.offsets
    terms = np.repeat(np.arange(offsets.size - 1), found["n_planes"])
    return found["seen_count"][operations.entries(offsets[terms], np.diff(offsets)[terms])]


def _first_seen(found: Any, _: Labelings) -> np.ndarray:
    """Return the first label seen in each part."""
    return found["seen"][operations.starts_of(found["seen_count"])]


def _transitions(found: Any, blocks: Labelings) -> np.ndarray:
    """Return, for each part of each plane, how many transitions of its term have been seen."""
    return np.repeat(np.maximum(found["moves_count"], 1), _entries_of_planes(found, blocks))


_LIMITS = {
    **dict.fromkeys(("offset", "active"), Limits(size="n_planes")),
    "seen_count": Limits(least=1),
    "seen": Limits(size="seen_count", below="features.n_labels", distinct=True),
    "mu": Limits(size="seen_count"),
    "moves_count": Limits(most="move_theta.size"),
    "moves": Limits(size="moves_count", below="most_moves", distinct=True),
    "nu": Limits(size="moves_count"),
    "labels": Limits(size=_entries_of_planes, below=_choices),
    "links": Limits(size=_entries_of_planes, below=_transitions),
    "true labels": Limits(of=_first_seen, equals="features.truth"),
}


@state.like.register
def _(blocks: Labelings, given: Any) -> Labelings:
    found = state.parts_like(state.of(blocks), given, _LIMITS, blocks)
    n_planes, _, seen_count, moves_count = (found[name] for name in _COUNTS)
    width = max(blocks.seen.shape[1], int(seen_count.max()))
    kept = np.arange(width) < seen_count[:, None]
    for name in ("seen", "mu"):
        flat, found[name] = found[name], np.zeros(kept.shape, found[name].dtype)
        found[name][kept] = flat
    starts = {
        "start": operations.starts_of(n_planes),
        "plane_start": operations.starts_of(_entries_of_planes(found, blocks)),
        "moves_start": operations.starts_of(moves_count),
    }
    return blocks._replace(is_new=np.ones(seen_count.size, bool), **found, **starts)
