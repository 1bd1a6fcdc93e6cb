"""Planes as labelings, φ^i as label marginals: the storage of multiclass and chain problems.

A convex combination of planes of term i is linear in the labels' indicators, so it is kept as
marginals: μ[l, c], the weight of the labelings with label c in part l, and ν[t], the expected
number of times that transition t is used.

Work follows the labels that have been seen. Each part lists the labels, and each term the
transitions, that some plane of the term has used; μ and ν are kept over these lists only, and a
plane is a list of indices into them: 3 bytes a part.

The operations on this storage are in :mod:`ssvm_bench.planes.labeling_operations`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.oracles.joint_features import transition_base
from ssvm_bench.oracles.scoring import label_index, label_size, labeling_loss, longest
from ssvm_bench.planes import operations

# mypy: disable-error-code="no-untyped-def"

CHANGED = ("mu", "nu", "term_offset")
"""Fields that hold φ^i."""

_ROOM = 2  # slots of a term at first: one plane, and the candidate
_WIDTH = 4  # labels of a part at first, and by how many its list grows

_LEAST = 1 << 18
"""Shorter vectors are in the caches: looking at all of them is as fast."""

_LARGEST_SHARE = 0.25
"""With more of w than this, a sparse sum is no faster than one over all of it."""


class Labelings(NamedTuple):
    """Storage; the first five fields as in :mod:`ssvm_bench.planes.operations`.

    Attributes
    ----------
    features : JointFeatures or SignedFeatures
    seen : ndarray of the type of labels, shape (parts, width)
    seen_count : ndarray of int64, shape (parts,)
        The labels seen in each part; the ground truth's is the first.
    mu : ndarray of float64, shape (parts, width)
        Label marginals of φ^i over ``seen``. The width grows with the longest list of labels:
        in random order, a pass waits for memory more than for anything else.
    moves : ndarray of uint32
    nu : ndarray of float64
        The transitions seen in each term, as indices of w behind the unaries, and their expected
        number in φ^i.
    moves_start, moves_count : ndarrays of int64, shape (n,)
        Where term i's transitions begin, and how many there are.
    labels, links : ndarrays of the type of labels, and uint16
        Plane p of term i, of L parts: ``labels[plane_start[i] + p·L + l]`` is the index in
        ``seen[l]`` of the label of part l, ``links[…]`` the index in the term's transitions of that
        from part l − 1 to part l.
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

    start: np.ndarray
    n_planes: np.ndarray
    offset: np.ndarray
    active: np.ndarray
    term_offset: np.ndarray
    features: Any
    seen: np.ndarray
    seen_count: np.ndarray
    mu: np.ndarray
    moves: np.ndarray
    nu: np.ndarray
    moves_start: np.ndarray
    moves_count: np.ndarray
    labels: np.ndarray
    links: np.ndarray
    plane_start: np.ndarray
    theta: np.ndarray
    delta: np.ndarray
    dense: np.ndarray
    moved: np.ndarray
    move_theta: np.ndarray
    move_delta: np.ndarray


def allocate(features: Any) -> Labelings:
    """Return a storage in which every φ^i is the ground truth's plane and every W_i is empty.

    The ground truth's plane is every term's candidate.
    """
    lengths = np.diff(features.offsets)
    n, parts, most = lengths.size, features.truth.size, int(longest(features))
    moves = _moves(features)
    kinds = features.n_labels**2 if features.transitions else 0
    storage = Labelings(
        start=np.arange(n, dtype=np.int64) * _ROOM,
        n_planes=np.zeros(n, np.int64),
        offset=np.zeros(n * _ROOM),
        active=np.zeros(n * _ROOM, np.int64),
        term_offset=np.zeros(n),
        features=features,
        seen=np.zeros((parts, _WIDTH), features.truth.dtype),
        seen_count=np.zeros(parts, np.int64),
        mu=np.zeros((parts, _WIDTH)),
        moves=np.zeros(moves.sum(), np.uint32),
        nu=np.zeros(moves.sum()),
        moves_start=_starts(moves),
        moves_count=np.zeros(n, np.int64),
        labels=np.zeros(parts * _ROOM, features.truth.dtype),
        links=np.zeros(parts * _ROOM, np.uint16),
        plane_start=features.offsets[:-1] * _ROOM,
        theta=np.zeros((most, features.stride)),
        delta=np.zeros((most, features.stride)),
        dense=np.zeros((most, features.stride)),
        moved=np.zeros(most + 1, np.int64),
        move_theta=np.zeros(kinds),
        move_delta=np.zeros(kinds),
    )
    _begin_at_truth(storage)
    return storage


def reserve(storage: Labelings, visits: np.ndarray, N: int) -> Labelings:
    """Return the storage with room for one new plane per visit of each term.

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
        entries, planes = room * lengths, storage.n_planes
        storage = _regrown(storage, "start", planes, room, ("offset", "active"))
        storage = _regrown(storage, "plane_start", planes * lengths, entries, ("labels", "links"))
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
    """Replace the former true labels, and return the terms whose label has changed.

    For examples of one part, in which no plane has had a label that is true now: φ^i and the planes
    of W_i keep their labelings but for that.
    """
    truth = storage.features.truth
    changed = np.flatnonzero(storage.seen[:, 0] != truth)
    storage.seen[changed, 0] = truth[changed]
    return changed


def _moves(features: Any) -> np.ndarray:
    """Return the number of transitions of one labeling of each term."""
    moves = np.diff(features.offsets) - 1
    return moves if features.transitions else np.zeros_like(moves)


def _starts(room: np.ndarray) -> np.ndarray:
    return np.cumsum(room) - room


def _regrown(
    storage: Labelings, start: str, count: np.ndarray, room: np.ndarray, names: Sequence[str]
) -> Labelings:
    """Return the storage with so much room for each term in some arrays.

    Parameters
    ----------
    start : str
        The field that tells where a term's entries begin in them.
    count : ndarray of int64, shape (n,)
        Entries of each term that there are.
    """
    begin = _starts(room)
    arrays = {name: np.zeros(room.sum(), getattr(storage, name).dtype) for name in names}
    for name, array in arrays.items():
        _move(getattr(storage, name), array, count, getattr(storage, start), begin)
    return storage._replace(**{start: begin}, **arrays)


@kernel
def _move(source, target, count, old_start, new_start):
    for i in range(count.size):
        for k in range(count[i]):
            target[new_start[i] + k] = source[old_start[i] + k]


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
        With room for a candidate (`reserve`).
    i : int
        The term.
    y : ndarray of the type of labels, shape (≥ L,)
        The labels of its L parts.
    """
    features = storage.features
    first = features.offsets[i]
    L = features.offsets[i + 1] - first
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


# ---- where w may differ from 0 ----------------------------------------------------------------


class Support:
    """The indices of w that planes of any term have touched so far.

    A labeling changes w only at the features of its parts, and there at its labels and the true
    ones. So with hundreds of thousands of features, as of words, all but a few per cent of w are 0
    until the oracle finds other labels: operations on whole vectors, such as a norm, need only look
    at the rest. The indices are sorted: a sum over them is the same, to the bit, as one over w.

    Parameters
    ----------
    D : int
        Number of weights in the storage's layout.

    Attributes
    ----------
    indices : ndarray of uint32, or None
        Sorted; None stands for all of w.
    """

    def __init__(self, D: int) -> None:
        self.D = D
        self.forget()

    def forget(self) -> None:
        """Begin anew, where other planes may have replaced the former ones."""
        self.indices: np.ndarray | None = None
        self._wide = not _LEAST <= self.D < 1 << 32
        self._known = np.zeros(0, np.int64)
        self._marks = np.zeros(0, bool)

    def update(self, blocks: Labelings) -> None:
        """Take in the labels that have been seen since the last time."""
        if self._wide:
            return
        if self._known.size == 0:
            self._known, self._marks = np.ones_like(blocks.seen_count), np.zeros(self.D, bool)
            self._marks[transition_base(blocks.features) :] = True
            self.indices = np.flatnonzero(self._marks).astype(np.uint32)
        if _mark(blocks, self._known, self._marks):
            self.indices = np.flatnonzero(self._marks).astype(np.uint32)
        if self.indices is not None and self.indices.size > _LARGEST_SHARE * self.D:
            self.forget()  # there will only be more
            self._wide = True


@kernel
def _mark(blocks, known, marks):
    """Mark where w may change at the parts whose labels have become more; tell if there are any."""
    features = blocks.features
    found = False
    for q in range(known.size):
        count = blocks.seen_count[q]
        if count > known[q]:
            known[q] = count
            found = True
            for k in range(label_size(features, q)):
                for c in range(count):
                    marks[label_index(features, q, k, blocks.seen[q, c])] = True
    return found
