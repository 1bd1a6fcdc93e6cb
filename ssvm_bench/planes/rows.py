"""Planes as rows over the coordinates that their term touches: the storage for any oracle.

Term i has a *support* J_i, the coordinates of w in which some plane of the term is non-zero. Its
planes and φ^i are contiguous rows over J_i, so that after one gather of w[J_i] every inner product
is a plain dot product, and a step costs O(|J_i| |W_i|), never O(d).

A support grows when a plane with new coordinates arrives, from Python and beside an oracle call:
a term that outgrows its place moves to the end of the pool, which doubles when it is full.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.jit import implements, kernel
from ssvm_bench.oracles.base import Plane
from ssvm_bench.planes import blocks

# mypy: disable-error-code="no-untyped-def"


class Rows(NamedTuple):
    """Storage; the first five fields as in :mod:`ssvm_bench.planes.blocks`.

    Attributes
    ----------
    room, width : ndarrays of int64, shape (n,)
        Slots of term i, and coordinates that each has place for.
    size : ndarray of int64, shape (n,)
        |J_i| ≤ width[i].
    row_start : ndarray of int64, shape (n,)
        Term i's rows in ``values``: first n φ^i⋆, then n φ⋆ of its planes, ``width[i]`` apart.
    support_start : ndarray of int64, shape (n,)
    support : ndarray of int64
        J_i, from ``support_start[i]``.
    values : ndarray of float64
    used : ndarray of int64, shape (3,)
        Slots, coordinates and values handed out so far.
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
    room: np.ndarray
    width: np.ndarray
    size: np.ndarray
    row_start: np.ndarray
    support_start: np.ndarray
    support: np.ndarray
    values: np.ndarray
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
        room=np.ones(n, np.int64),
        width=np.zeros(n, np.int64),
        size=np.zeros(n, np.int64),
        row_start=np.zeros(n, np.int64),
        support_start=np.zeros(n, np.int64),
        support=np.zeros(0, np.int64),
        values=np.zeros(0),
        used=np.array([n, 0, 0]),
        w_here=np.zeros(d),
        delta=np.zeros(d),
        place=np.full(d, -1, np.int64),
    )


def put(storage: Rows, i: int, plane: Plane) -> Rows:
    """Return the storage with the plane (scaled by 1/n) as the candidate of term i."""
    n, p, size = storage.n_planes.size, int(storage.n_planes[i]), int(storage.size[i])
    begin = int(storage.support_start[i])
    known = storage.support[begin : begin + size]
    storage.place[known] = np.arange(size)
    place = storage.place[plane.indices]
    storage.place[known] = -1
    new = place < 0
    place[new] = size + np.arange(np.count_nonzero(new))
    size += np.count_nonzero(new)

    storage = _make_room(storage, i, p + 1, size)
    begin, width = int(storage.support_start[i]), int(storage.width[i])
    storage.support[begin + storage.size[i] : begin + size] = plane.indices[new]
    storage.size[i] = size
    row = storage.row_start[i] + (1 + p) * width
    storage.values[row : row + width] = 0.0
    storage.values[row + place] = n * plane.values
    storage.offset[storage.start[i] + p] = n * plane.offset
    return storage


def _make_room(storage: Rows, i: int, slots: int, coordinates: int) -> Rows:
    """Return the storage with place for that many slots and coordinates of term i."""
    room, width = int(storage.room[i]), int(storage.width[i])
    if slots <= room and coordinates <= width:
        return storage
    new_room = room if slots <= room else max(slots, 2 * room)
    new_width = width if coordinates <= width else max(coordinates, width + width // 2)
    slots_before = slice(int(storage.start[i]), int(storage.start[i]) + room)
    begin, row = int(storage.support_start[i]), int(storage.row_start[i])
    old_rows = storage.values[row : row + (1 + room) * width].reshape(1 + room, width)

    start, support_start, row_start = storage.used
    storage.used[:] += (new_room, new_width, (1 + new_room) * new_width)
    offset, active = (_grown(pool, storage.used[0]) for pool in (storage.offset, storage.active))
    support = _grown(storage.support, storage.used[1])
    values = _grown(storage.values, storage.used[2])
    offset[start : start + room] = storage.offset[slots_before]
    active[start : start + room] = storage.active[slots_before]
    support[support_start : support_start + width] = storage.support[begin : begin + width]
    rows = values[row_start : storage.used[2]].reshape(1 + new_room, new_width)
    rows[: 1 + room, :width] = old_rows

    storage.room[i], storage.width[i], storage.start[i] = new_room, new_width, start
    storage.support_start[i], storage.row_start[i] = support_start, row_start
    return storage._replace(values=values, support=support, offset=offset, active=active)


def _grown(pool: np.ndarray, used: int) -> np.ndarray:
    """Return the pool if it is large enough, else a copy of at least twice its size."""
    if used <= pool.size:
        return pool
    grown = np.zeros(max(used, 2 * pool.size), pool.dtype)
    grown[: pool.size] = pool
    return grown


@kernel
def _dot(a, b, size):
    """Sum in four interleaved partial sums: the same bits everywhere, four times as fast."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    k = 0
    while k + 4 <= size:
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
        k += 4
    while k < size:
        s0 += a[k] * b[k]
        k += 1
    return (s0 + s1) + (s2 + s3)


@implements(blocks.fetch, Rows)
def _fetch(blocks, i):
    pass  # long rows: the processor's own prefetching sees them coming


@implements(blocks.load, Rows)
def _load(blocks, w, i):
    support = blocks.support[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        blocks.w_here[k] = w[support[k]]


@implements(blocks.value, Rows)
def _value(blocks, i, p):
    row = blocks.values[blocks.row_start[i] + (1 + p) * blocks.width[i] :]
    return _dot(row, blocks.w_here, blocks.size[i]) + blocks.offset[blocks.start[i] + p]


@implements(blocks.aim, Rows)
def _aim(blocks, i, p):
    current = blocks.values[blocks.row_start[i] :]
    row = blocks.values[blocks.row_start[i] + (1 + p) * blocks.width[i] :]
    for k in range(blocks.size[i]):
        blocks.delta[k] = row[k] - current[k]
    climb = blocks.offset[blocks.start[i] + p] - blocks.circ[i]
    return _dot(blocks.delta, blocks.w_here, blocks.size[i]) + climb


@implements(blocks.aim_from_truth, Rows)
def _aim_from_truth(blocks, i):
    current = blocks.values[blocks.row_start[i] :]
    for k in range(blocks.size[i]):
        blocks.delta[k] = current[k]


@implements(blocks.length2, Rows)
def _length2(blocks, i):
    return _dot(blocks.delta, blocks.delta, blocks.size[i])


@implements(blocks.spread, Rows)
def _spread(blocks, i, scale, v):
    support = blocks.support[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        v[support[k]] += scale * blocks.delta[k]


@implements(blocks.advance, Rows)
def _advance(blocks, i, gamma):
    current = blocks.values[blocks.row_start[i] :]
    for k in range(blocks.size[i]):
        current[k] += gamma * blocks.delta[k]


@implements(blocks.same, Rows)
def _same(blocks, i, p, q):
    one = blocks.values[blocks.row_start[i] + (1 + p) * blocks.width[i] :]
    other = blocks.values[blocks.row_start[i] + (1 + q) * blocks.width[i] :]
    if blocks.offset[blocks.start[i] + p] != blocks.offset[blocks.start[i] + q]:
        return False
    for k in range(blocks.size[i]):
        if one[k] != other[k]:
            return False
    return True


@implements(blocks.copy, Rows)
def _copy(blocks, i, p, q):
    source = blocks.values[blocks.row_start[i] + (1 + p) * blocks.width[i] :]
    target = blocks.values[blocks.row_start[i] + (1 + q) * blocks.width[i] :]
    for k in range(blocks.size[i]):
        target[k] = source[k]
