"""Rows given once: the storage of terms whose planes are all known from the beginning.

W_i holds every plane of term i and never changes: the ground truth's, which is 0, first. A plane is
its non-zeros and their coordinates in w, so that it is evaluated, or added to w, in O(non-zeros),
without a gather of what else its term touches. φ^i is not kept: whoever steps keeps the weights of
the planes (:mod:`ssvm_bench.planes.simplex`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.base.jit import implements, kernel, prefetch
from ssvm_bench.base.linalg import dot_at
from ssvm_bench.oracles.constraints import Constraints
from ssvm_bench.planes import operations

# mypy: disable-error-code="no-untyped-def"

_LINE = 64
"""Bytes that the processor fetches at once."""


class FixedRows(NamedTuple):
    """Storage; ``start``, ``n_planes`` and ``offset`` as in :mod:`ssvm_bench.planes.operations`.

    Attributes
    ----------
    begin : ndarray of int64, shape (slots + 1,)
        Each plane's non-zeros are the entries ``begin[slot]:begin[slot + 1]``.
    places : ndarray of uint16 or uint32
        Coordinates of w.
    values : ndarray of float64
        n φ⋆ there.
    square : ndarray of float64, shape (slots,)
        n² ‖φ⋆‖².
    height, change : ndarrays of float64, shape (most planes of a term,)
        Scratch: ⟨n φ^{ip}, [w 1]⟩ of the current term, and the coefficients of its δ.
    dense : ndarray of float64, shape (d,)
        Scratch: one plane; all 0 between calls.
    """

    start: np.ndarray
    n_planes: np.ndarray
    offset: np.ndarray
    begin: np.ndarray
    places: np.ndarray
    values: np.ndarray
    square: np.ndarray
    height: np.ndarray
    change: np.ndarray
    dense: np.ndarray


def allocate(constraints: Constraints, d: int) -> FixedRows:
    """Return the storage of planes that have been checked."""
    term_start, offset = constraints.term_start, constraints.offset
    n, n_planes = term_start.size - 1, np.diff(term_start) + 1
    lengths = np.insert(np.diff(constraints.indptr), term_start[:-1], 0)
    most = int(n_planes.max())
    blocks = FixedRows(
        start=np.asarray(np.cumsum(n_planes) - n_planes, np.int64),
        n_planes=np.asarray(n_planes, np.int64),
        offset=np.insert(n * np.asarray(offset, np.float64), term_start[:-1], 0.0),
        begin=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        places=constraints.indices.astype(narrow(d)),
        values=n * np.asarray(constraints.values, np.float64),
        square=np.zeros(lengths.size),
        height=np.zeros(most),
        change=np.zeros(most),
        dense=np.zeros(d),
    )
    _squares(blocks)
    return blocks


def narrow(d: int) -> type:
    """Return the narrowest type of a coordinate of w: reading rows is what a pass waits for."""
    return np.uint16 if d <= 1 << 16 else np.uint32


@kernel
def _squares(blocks):
    for slot in range(blocks.square.size):
        total = 0.0
        for k in range(blocks.begin[slot], blocks.begin[slot + 1]):
            total += blocks.values[k] * blocks.values[k]
        blocks.square[slot] = total


@kernel
def _row(blocks, slot):
    """Return a plane: coordinates, and n φ⋆ there, both of shape (its non-zeros,)."""
    begin, end = blocks.begin[slot], blocks.begin[slot + 1]
    return blocks.places[begin:end], blocks.values[begin:end]


@implements(operations.prefetch_start, FixedRows)
def _prefetch_start(blocks, i):
    prefetch(blocks.start, i)
    prefetch(blocks.n_planes, i)


@implements(operations.prefetch_term, FixedRows)
def _prefetch_term(blocks, i):
    first = blocks.start[i]
    begin, end = blocks.begin[first], blocks.begin[first + blocks.n_planes[i]]
    prefetch(blocks.offset, first)
    for k in range(begin, end, _LINE // blocks.values.itemsize):
        prefetch(blocks.values, k)
    for k in range(begin, end, _LINE // blocks.places.itemsize):
        prefetch(blocks.places, k)


@implements(operations.gather, FixedRows)
def _gather(blocks, w, i):
    first = blocks.start[i]
    for p in range(blocks.n_planes[i]):
        places, values = _row(blocks, first + p)
        blocks.height[p] = dot_at(values, places, w) + blocks.offset[first + p]


@implements(operations.plane_value, FixedRows)
def _plane_value(blocks, i, p):
    return blocks.height[p]


@implements(operations.set_direction_of_mixture, FixedRows)
def _set_direction_of_mixture(blocks, i, own, change):
    for p in range(blocks.n_planes[i]):  # there is no φ^i: own is 0
        blocks.change[p] = change[p]


@implements(operations.squared_length, FixedRows)
def _squared_length(blocks, i):
    first = blocks.start[i]
    total = 0.0
    for p in range(blocks.n_planes[i]):
        if blocks.change[p] == 0.0:
            continue
        total += blocks.change[p] * blocks.change[p] * blocks.square[first + p]
        before = 0.0
        _spread(blocks, first + p, 1.0)
        for q in range(p):
            if blocks.change[q] != 0.0:
                places, values = _row(blocks, first + q)
                before += blocks.change[q] * dot_at(values, places, blocks.dense)
        _spread(blocks, first + p, 0.0)
        total += 2.0 * blocks.change[p] * before
    return total


@implements(operations.add_direction, FixedRows)
def _add_direction(blocks, i, scale, v):
    first = blocks.start[i]
    for p in range(blocks.n_planes[i]):
        factor = scale * blocks.change[p]
        if factor != 0.0:
            for k in range(blocks.begin[first + p], blocks.begin[first + p + 1]):
                v[blocks.places[k]] += factor * blocks.values[k]


@implements(operations.direction_places, FixedRows)
def _direction_places(blocks, i, listed, places):
    first = blocks.start[i]
    size = 0
    for p in range(blocks.n_planes[i]):
        if blocks.change[p] != 0.0:
            for k in range(blocks.begin[first + p], blocks.begin[first + p + 1]):
                size = operations.list_place(blocks.places[k], listed, places, size)
    return size


@implements(operations.inner_products, FixedRows)
def _inner_products(blocks, i, p, row):
    first = blocks.start[i]
    _spread(blocks, first + p, 1.0)
    for q in range(p):
        places, values = _row(blocks, first + q)
        row[q] = dot_at(values, places, blocks.dense)
    _spread(blocks, first + p, 0.0)
    row[p] = blocks.square[first + p]


@kernel
def _spread(blocks, slot, factor):
    """Write a plane, times a factor, over its coordinates of the dense scratch."""
    for k in range(blocks.begin[slot], blocks.begin[slot + 1]):
        blocks.dense[blocks.places[k]] = factor * blocks.values[k]
