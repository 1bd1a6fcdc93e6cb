"""Line rows: the storage of terms whose planes lie along one line.

Besides the ground truth's plane, which is 0, term i has one other, or two of opposite direction:

.. code-block:: text

    φ^{i1} = [x, a]        φ^{i2} = [−x, b],  a + b ≤ 0        φ^i = α_i1 φ^{i1} + α_i2 φ^{i2}

To have weight on both is no better than to have none of the smaller one's on either: −(a + b) times
that is gained. So one number says what φ^i is, β_i = α_i1 − α_i2 in [−1, 1], and one that is not
negative where there is no second plane: b = −∞. Binary problems and regression are of this kind.
What a visit needs of a term lies side by side, as in random order a pass waits for memory more than
for anything else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.jit import implements, kernel, prefetch
from ssvm_bench.base.linalg import dot_at
from ssvm_bench.oracles.constraints import Constraints
from ssvm_bench.planes import operations
from ssvm_bench.planes.fixed_rows import narrow

# mypy: disable-error-code="no-untyped-def"

ABOVE, BELOW, SQUARE, BETA, VIOLATION = range(5)
STRIDE = 5
"""Entries of a term in ``numbers``, and how many they are."""

_LINE = 64
"""Bytes that the processor fetches at once."""


class LineRows(NamedTuple):
    """Storage.

    Attributes
    ----------
    n_planes : ndarray of int64, shape (n,)
        2 or 3: the ground truth's plane counts.
    begin : ndarray of int64, shape (n + 1,)
        The non-zeros of term i's first plane are the entries ``begin[i]:begin[i + 1]``.
    places : ndarray of uint16 or uint32
        Coordinates of w.
    values : ndarray of float64
        n φ^{i1}⋆ there.
    numbers : ndarray of float64, shape (STRIDE · n,)
        Of each term n φ∘ of both planes, n² ‖φ⋆‖², β, and how much the last visit found it to
        violate optimality.
    height : ndarray of float64, shape (1,)
        Scratch: ⟨n φ^{i1}⋆, w⟩ of the current term.
    """

    n_planes: np.ndarray
    begin: np.ndarray
    places: np.ndarray
    values: np.ndarray
    numbers: np.ndarray
    height: np.ndarray


def allocate(constraints: Constraints, d: int) -> LineRows | None:
    """Return the storage, at β = 0, of planes that have been checked; None if they are others."""
    wrong = np.diff(constraints.term_start)
    n, first = wrong.size, constraints.term_start[:-1]
    star, above, below = constraints.star(d), constraints.offset[first], np.full(n, -np.inf)
    if (wrong == 2).all():
        second = star[1::2]
        star, below = star[::2], constraints.offset[first + 1]
        if not (_are_opposite(star, second) and (above + below <= 0.0).all()):
            return None
    elif not (wrong == 1).all():
        return None
    blocks = LineRows(
        n_planes=wrong + 1,
        begin=np.asarray(star.indptr, np.int64),
        places=star.indices.astype(narrow(d)),
        values=n * np.asarray(star.data, np.float64),
        numbers=np.zeros(STRIDE * n),
        height=np.zeros(1),
    )
    blocks.numbers[ABOVE::STRIDE] = n * above
    blocks.numbers[BELOW::STRIDE] = n * below
    blocks.numbers[VIOLATION::STRIDE] = np.inf
    _squares(blocks)
    return blocks


def _are_opposite(one: csr_array, other: csr_array) -> bool:
    """Tell whether two matrices, non-zeros in the same order, are each other's negative."""
    return (
        np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and np.array_equal(one.data, -other.data)
    )


@kernel
def _squares(blocks):
    for i in range(blocks.n_planes.size):
        total = 0.0
        for k in range(blocks.begin[i], blocks.begin[i + 1]):
            total += blocks.values[k] * blocks.values[k]
        blocks.numbers[STRIDE * i + SQUARE] = total


@implements(operations.prefetch_start, LineRows)
def _prefetch_start(blocks, i):
    prefetch(blocks.begin, i)
    prefetch(blocks.numbers, STRIDE * i)
    prefetch(blocks.numbers, STRIDE * i + STRIDE - 1)


@implements(operations.prefetch_term, LineRows)
def _prefetch_term(blocks, i):
    begin, end = blocks.begin[i], blocks.begin[i + 1]
    for k in range(begin, end, _LINE // blocks.values.itemsize):
        prefetch(blocks.values, k)
    prefetch(blocks.values, end)
    for k in range(begin, end, _LINE // blocks.places.itemsize):
        prefetch(blocks.places, k)
    prefetch(blocks.places, end)


@implements(operations.gather, LineRows)
def _gather(blocks, w, i):
    begin, end = blocks.begin[i], blocks.begin[i + 1]
    blocks.height[0] = dot_at(blocks.values[begin:end], blocks.places[begin:end], w)


@implements(operations.add_direction, LineRows)
def _add_direction(blocks, i, scale, v):
    add_plane(blocks, i, scale, v)


@implements(operations.direction_places, LineRows)
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


@kernel
def circ(numbers, beta):
    """Return n φ∘^i at β, from the numbers of term i."""
    return beta * numbers[ABOVE] if beta >= 0.0 else -beta * numbers[BELOW]
