"""Planes as sparse rows over the coordinates that their term touches: the storage for any oracle.

Term i has a *support* J_i, the coordinates of w in which some plane of the term is non-zero. φ^i is
a dense row over J_i; a plane keeps its non-zeros and their places in J_i. After one gather of
w[J_i], a plane is evaluated in its number of non-zeros, and a step costs O(|J_i|), never O(d).

Everything grows, beside an oracle call: a term that outgrows its place among the slots or the
coordinates moves to the end of that pool, which doubles when it is full. The non-zeros of planes
are appended to one pool; when it is full, those of planes that are still cached are copied to a
new one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.base.linalg import dot, dot_at
from ssvm_bench.planes import operations

# mypy: disable-error-code="no-untyped-def"

CHANGED = ("phi", "circ")
"""Fields that hold φ^i."""

SLOTS, COORDINATES, NONZEROS, BEFORE, LAST = range(5)
"""Entries of ``Rows.used``."""


class Rows(NamedTuple):
    """Storage; the first five fields as in :mod:`ssvm_bench.planes.operations`.

    Attributes
    ----------
    begin, length : ndarrays of int64, shape (slots,)
        Each plane's non-zeros are ``length`` entries of ``places`` and ``values`` from ``begin``.
    places : ndarray of uint16 or uint32
        Places in J_i.
    values : ndarray of float64
        n φ⋆ at these places.
    room, width : ndarrays of int64, shape (n,)
        Slots of term i, and coordinates that it has place for.
    size : ndarray of int64, shape (n,)
        |J_i| ≤ width[i].
    support_start : ndarray of int64, shape (n,)
    support : ndarray of int64
        J_i, from ``support_start[i]``.
    phi : ndarray of float64
        n φ^i⋆ over J_i, from ``support_start[i]``.
    used : ndarray of int64, shape (5,)
        Slots, coordinates and non-zeros handed out so far; non-zeros before the last candidate,
        and its term.
    w_here, delta : ndarrays of float64, shape (d,)
        Scratch: w[J_i] and δ⋆ of the current term.
    place : ndarray of int64, shape (d,)
        Scratch: place of a coordinate in J_i, −1 if it is not there; all −1 between calls.
    """

    start: np.ndarray
    n_planes: np.ndarray
    offset: np.ndarray
    active: np.ndarray
    circ: np.ndarray
    begin: np.ndarray
    length: np.ndarray
    places: np.ndarray
    values: np.ndarray
    room: np.ndarray
    width: np.ndarray
    size: np.ndarray
    support_start: np.ndarray
    support: np.ndarray
    phi: np.ndarray
    used: np.ndarray
    w_here: np.ndarray
    delta: np.ndarray
    place: np.ndarray


def allocate(n: int, d: int) -> Rows:
    """Return a storage in which every φ^i is the ground truth's plane and every W_i is empty."""
    return Rows(
        start=np.arange(n, dtype=np.int64),
        n_planes=np.zeros(n, np.int64),
        offset=np.zeros(n),
        active=np.zeros(n, np.int64),
        circ=np.zeros(n),
        begin=np.zeros(n, np.int64),
        length=np.zeros(n, np.int64),
        places=np.zeros(0, np.uint16 if d <= 1 << 16 else np.uint32),
        values=np.zeros(0),
        room=np.ones(n, np.int64),
        width=np.zeros(n, np.int64),
        size=np.zeros(n, np.int64),
        support_start=np.zeros(n, np.int64),
        support=np.zeros(0, np.int64),
        phi=np.zeros(0),
        used=np.array([n, 0, 0, 0, 0]),
        w_here=np.zeros(d),
        delta=np.zeros(d),
        place=np.full(d, -1, np.int64),
    )


def make_room(storage: Rows, i: int, size: int, nonzeros: int) -> Rows:
    """Return the storage with room for a candidate of term i.

    Parameters
    ----------
    storage : Rows
    i : int
        The term.
    size : int
        What |J_i| will be.
    nonzeros : int
        Non-zeros of the candidate.
    """
    if storage.n_planes[i] + 1 > storage.room[i]:
        storage = _more_slots(storage, i)
    if size > storage.width[i]:
        storage = _more_coordinates(storage, i, size)
    if storage.used[NONZEROS] + nonzeros > storage.values.size:
        live = _live(storage)
        places = np.empty(2 * (live + nonzeros), storage.places.dtype)
        values = np.empty(places.size)
        _compact(storage, places, values)
        storage = storage._replace(places=places, values=values)
    return storage


def _more_slots(storage: Rows, i: int) -> Rows:
    room = int(storage.room[i])
    begin, end = int(storage.start[i]), int(storage.used[SLOTS])
    storage.used[SLOTS] += 2 * room
    of_slots = {
        name: _grown(getattr(storage, name), storage.used[SLOTS])
        for name in ("offset", "active", "begin", "length")
    }
    for pool in of_slots.values():
        pool[end : end + room] = pool[begin : begin + room]
    storage.start[i], storage.room[i] = end, 2 * room
    return storage._replace(**of_slots)


def _more_coordinates(storage: Rows, i: int, size: int) -> Rows:
    width = size * 3 // 2
    begin, end, known = (
        int(storage.support_start[i]),
        int(storage.used[COORDINATES]),
        storage.size[i],
    )
    storage.used[COORDINATES] += width
    support, phi = (
        _grown(pool, storage.used[COORDINATES]) for pool in (storage.support, storage.phi)
    )
    for pool in (support, phi):
        pool[end : end + known] = pool[begin : begin + known]
    storage.support_start[i], storage.width[i] = end, width
    return storage._replace(support=support, phi=phi)


def _grown(pool: np.ndarray, used: int) -> np.ndarray:
    """Return the pool if it is large enough, else a copy of at least twice its size."""
    if used <= pool.size:
        return pool
    grown = np.zeros(max(used, 2 * pool.size), pool.dtype)
    grown[: pool.size] = pool
    return grown


@kernel
def _live(blocks):
    """Return the number of non-zeros of all cached planes."""
    total = 0
    for i in range(blocks.n_planes.size):
        for slot in range(blocks.start[i], blocks.start[i] + blocks.n_planes[i]):
            total += blocks.length[slot]
    return total


@kernel
def _compact(blocks, places, values):
    """Copy the non-zeros of all cached planes to new pools, term by term."""
    end = 0
    for i in range(blocks.n_planes.size):
        for slot in range(blocks.start[i], blocks.start[i] + blocks.n_planes[i]):
            begin = blocks.begin[slot]
            blocks.begin[slot] = end
            for k in range(begin, begin + blocks.length[slot]):
                places[end] = blocks.places[k]
                values[end] = blocks.values[k]
                end += 1
    blocks.used[NONZEROS] = blocks.used[BEFORE] = end


@kernel
def set_candidate(blocks, i, indices, values, offset):
    """Make a plane the candidate of term i, if there is room for it.

    Parameters
    ----------
    blocks : Rows
    i : int
        The term.
    indices : ndarray of int64, shape (m,)
        Where φ⋆ is not 0, without repeats, 0 ≤ index < d.
    values : ndarray of float64, shape (m,)
        φ⋆ there, scaled by 1/n.
    offset : float
        φ∘, scaled by 1/n.

    Returns
    -------
    size, nonzeros : int
        Zeros; or what `make_room` must make room for first.
    """
    _forget_last(blocks)
    n = blocks.n_planes.size
    slot = blocks.start[i] + blocks.n_planes[i]
    known = blocks.size[i]
    support = blocks.support[blocks.support_start[i] :]
    for k in range(known):
        blocks.place[support[k]] = k
    size = known
    for index in indices:
        if blocks.place[index] < 0:
            blocks.place[index] = size
            size += 1
    begin = blocks.used[NONZEROS]
    fits = (
        blocks.n_planes[i] < blocks.room[i]
        and size <= blocks.width[i]
        and begin + indices.size <= blocks.values.size
    )
    if fits:
        phi = blocks.phi[blocks.support_start[i] :]
        for k in range(indices.size):
            at = blocks.place[indices[k]]
            blocks.places[begin + k] = at
            blocks.values[begin + k] = n * values[k]
            if at >= known:
                support[at] = indices[k]
                phi[at] = 0.0
        blocks.size[i] = size
        blocks.begin[slot], blocks.length[slot] = begin, indices.size
        blocks.offset[slot] = n * offset
        blocks.used[NONZEROS] = begin + indices.size
        blocks.used[BEFORE], blocks.used[LAST] = begin, i
    for index in indices:
        blocks.place[index] = -1
    for k in range(known):
        blocks.place[support[k]] = -1
    return (0, 0) if fits else (max(size, 1), indices.size)  # an empty plane needs a slot, too


@kernel
def _forget_last(blocks):
    """Give the non-zeros of the last candidate back, unless it is in its working set."""
    first = blocks.start[blocks.used[LAST]]
    for slot in range(first, first + blocks.n_planes[blocks.used[LAST]]):
        if blocks.begin[slot] + blocks.length[slot] == blocks.used[NONZEROS]:
            return
    blocks.used[NONZEROS] = blocks.used[BEFORE]


@kernel
def plane(blocks, i, p):
    """Return plane p of term i: places in J_i, and n φ⋆ there, both of shape (its non-zeros,)."""
    slot = blocks.start[i] + p
    begin, end = blocks.begin[slot], blocks.begin[slot] + blocks.length[slot]
    return blocks.places[begin:end], blocks.values[begin:end]


@implements(operations.prefetch_term, Rows)
def _prefetch_term(blocks, i):
    pass  # long rows: the processor's own prefetching sees them coming


@implements(operations.gather, Rows)
def _gather(blocks, w, i):
    support = blocks.support[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        blocks.w_here[k] = w[support[k]]


@implements(operations.plane_value, Rows)
def _plane_value(blocks, i, p):
    places, values = plane(blocks, i, p)
    return dot_at(values, places, blocks.w_here) + blocks.offset[blocks.start[i] + p]


@implements(operations.set_direction, Rows)
def _set_direction(blocks, i, p):
    phi = blocks.phi[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        blocks.delta[k] = -phi[k]
    places, values = plane(blocks, i, p)
    for k in range(values.size):
        blocks.delta[places[k]] += values[k]
    climb = blocks.offset[blocks.start[i] + p] - blocks.circ[i]
    return dot(blocks.delta, blocks.w_here, blocks.size[i]) + climb


@implements(operations.set_direction_from_truth, Rows)
def _set_direction_from_truth(blocks, i):
    phi = blocks.phi[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        blocks.delta[k] = phi[k]


@implements(operations.squared_length, Rows)
def _squared_length(blocks, i):
    return dot(blocks.delta, blocks.delta, blocks.size[i])


@implements(operations.add_direction, Rows)
def _add_direction(blocks, i, scale, v):
    support = blocks.support[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        v[support[k]] += scale * blocks.delta[k]


@implements(operations.direction_places, Rows)
def _direction_places(blocks, i, listed, places):
    support = blocks.support[blocks.support_start[i] :]
    size = 0
    for k in range(blocks.size[i]):
        size = operations.list_place(support[k], listed, places, size)
    return size


@implements(operations.add_direction_to_both, Rows)
def _add_direction_to_both(blocks, i, scale, v, other_scale, other):
    support = blocks.support[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        v[support[k]] += scale * blocks.delta[k]
        other[support[k]] += other_scale * blocks.delta[k]


@implements(operations.move_term, Rows)
def _move_term(blocks, i, gamma):
    phi = blocks.phi[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        phi[k] += gamma * blocks.delta[k]


@implements(operations.same_plane, Rows)
def _same_plane(blocks, i, p, q):
    if blocks.offset[blocks.start[i] + p] != blocks.offset[blocks.start[i] + q]:
        return False
    places, values = plane(blocks, i, p)
    other_places, other_values = plane(blocks, i, q)
    if values.size != other_values.size:
        return False
    for k in range(values.size):
        if places[k] != other_places[k] or values[k] != other_values[k]:
            return False
    return True


@implements(operations.copy_plane, Rows)
def _copy_plane(blocks, i, p, q):
    first = blocks.start[i]
    blocks.begin[first + q] = blocks.begin[first + p]
    blocks.length[first + q] = blocks.length[first + p]
