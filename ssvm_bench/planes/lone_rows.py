"""Lone rows: the storage of terms that have one plane besides the ground truth's.

φ^i = α_i φ^{i1}, so that one number says what it is: the weight α_i. Binary problems are of this
kind. What a visit needs of a term lies side by side, as in random order a pass waits for memory
more than for anything else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.jit import implements, kernel, prefetch
from ssvm_bench.linalg import dot_at
from ssvm_bench.oracles.constraints import Constraints
from ssvm_bench.planes import operations
from ssvm_bench.planes.fixed_rows import narrow

# mypy: disable-error-code="no-untyped-def"

OFFSET, SQUARE, ALPHA, VIOLATION = range(4)
STRIDE = 4
"""Entries of a term in ``numbers``, and how many they are."""

_LINE = 64
"""Bytes that the processor fetches at once."""


class LoneRows(NamedTuple):
    """Storage.

    Attributes
    ----------
    n_planes : ndarray of int64, shape (n,)
        2: the ground truth's plane counts.
    begin : ndarray of int64, shape (n + 1,)
        The non-zeros of term i's plane are the entries ``begin[i]:begin[i + 1]``.
    places : ndarray of uint16 or uint32
        Coordinates of w.
    values : ndarray of float64
        n φ⋆ there.
    numbers : ndarray of float64, shape (STRIDE · n,)
        Of each term n φ∘, n² ‖φ⋆‖², α, and how much the last visit found it to violate optimality.
    height : ndarray of float64, shape (1,)
        Scratch: ⟨n φ^{i1}, [w 1]⟩ of the current term.
    """

    n_planes: np.ndarray
    begin: np.ndarray
    places: np.ndarray
    values: np.ndarray
    numbers: np.ndarray
    height: np.ndarray


def allocate(constraints: Constraints, d: int) -> LoneRows:
    """Return the storage, at α = 0, of planes that have been checked."""
    n = constraints.offset.size
    blocks = LoneRows(
        n_planes=np.full(n, 2),
        begin=np.asarray(constraints.indptr, np.int64),
        places=constraints.indices.astype(narrow(d)),
        values=n * np.asarray(constraints.values, np.float64),
        numbers=np.zeros(STRIDE * n),
        height=np.zeros(1),
    )
    blocks.numbers[OFFSET::STRIDE] = n * constraints.offset
    blocks.numbers[VIOLATION::STRIDE] = np.inf
    _squares(blocks)
    return blocks


@kernel
def _squares(blocks):
    for i in range(blocks.n_planes.size):
        total = 0.0
        for k in range(blocks.begin[i], blocks.begin[i + 1]):
            total += blocks.values[k] * blocks.values[k]
        blocks.numbers[STRIDE * i + SQUARE] = total


@implements(operations.prefetch_start, LoneRows)
def _prefetch_start(blocks, i):
    prefetch(blocks.begin, i)
    prefetch(blocks.numbers, STRIDE * i)
    prefetch(blocks.numbers, STRIDE * i + 3)


@implements(operations.prefetch_term, LoneRows)
def _prefetch_term(blocks, i):
    begin, end = blocks.begin[i], blocks.begin[i + 1]
    for k in range(begin, end, _LINE // blocks.values.itemsize):
        prefetch(blocks.values, k)
    prefetch(blocks.values, end)
    for k in range(begin, end, _LINE // blocks.places.itemsize):
        prefetch(blocks.places, k)
    prefetch(blocks.places, end)


@implements(operations.gather, LoneRows)
def _gather(blocks, w, i):
    begin, end = blocks.begin[i], blocks.begin[i + 1]
    product = dot_at(blocks.values[begin:end], blocks.places[begin:end], w)
    blocks.height[0] = product + blocks.numbers[STRIDE * i + OFFSET]


@implements(operations.add_direction, LoneRows)
def _add_direction(blocks, i, scale, v):
    add_plane(blocks, i, scale, v)


@implements(operations.direction_places, LoneRows)
def _direction_places(blocks, i, listed, places):
    size = 0
    for k in range(blocks.begin[i], blocks.begin[i + 1]):
        size = operations.list_place(blocks.places[k], listed, places, size)
    return size


@kernel
def add_plane(blocks, i, scale, v):
    """Add scale · n φ^{i1}⋆ to v."""
    for k in range(blocks.begin[i], blocks.begin[i + 1]):
        v[blocks.places[k]] += scale * blocks.values[k]
