"""Rows given once: storages of terms whose planes are all known from the beginning.

W_i holds every plane of term i and never changes; the first one is the ground truth's, which is 0.
φ^i is not stored: the solver keeps the weights of the planes. There are two storages.

`FixedRows`: a plane is stored as its non-zeros and their coordinates in w. Evaluating it, or adding
it to w, takes O(non-zeros), because other coordinates of its term are not read. The weights are in
a :mod:`~ssvm_bench.planes.simplex`.

`LineRows`: the planes of a term are on a line, the ground truth's and one or two opposite others:

.. code-block:: text

    φ^{i1} = [x, a]        φ^{i2} = [−x, b],  a + b ≤ 0        φ^i = α_i1 φ^{i1} + α_i2 φ^{i2}

Weight on both planes is never needed: moving the smaller weight from both to the ground truth's
plane keeps φ^i⋆, and adds −(a + b) ≥ 0 times that weight to φ^i∘. So β_i = α_i1 − α_i2 determines
φ^i: in [−1, 1], or, without a second plane (b = −∞), in [0, 1]. Binary problems and regression are
of this kind. The numbers of a term are stored side by side, because in random order a pass mostly
waits for memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base import state
from ssvm_bench.base.jit import implements, kernel, prefetch, prefetch_range
from ssvm_bench.base.linalg import dot_at
from ssvm_bench.oracles.base import Constraints, Problem
from ssvm_bench.planes import operations
from ssvm_bench.planes.dual_iterate import DualIterate, Tally, visit_working_sets

# mypy: disable-error-code="no-untyped-def"

ABOVE, BELOW, SQUARE, BETA, VIOLATION = range(5)
STRIDE = 5
"""Entries of a term in ``LineRows.numbers``, and their number."""

_AHEAD = 4
"""A row is prefetched so many visits before it is read, and its bounds twice as many before."""


def narrow(d: int) -> type:
    """Return the narrowest type for coordinates of w: a pass mostly waits for reading rows."""
    return np.uint16 if d <= 1 << 16 else np.uint32


@kernel
def set_squares(begin, values, square):
    """Let ``square[k]`` be the sum of the squares of ``values[begin[k]:begin[k + 1]]``."""
    for slot in range(square.size):
        total = 0.0
        for k in range(begin[slot], begin[slot + 1]):
            total += values[k] * values[k]
        square[slot] = total


@kernel
def _ahead(order, k):
    """Return the term whose row bounds, and the term whose rows, the k-th visit prefetches."""
    last = order.size - 1
    return order[min(k + 2 * _AHEAD, last)], order[min(k + _AHEAD, last)]


class FixedRows(NamedTuple):
    """Storage; ``start``, ``n_planes`` and ``offset`` as in :mod:`ssvm_bench.planes.operations`.

    Attributes
    ----------
    begin : ndarray of int64, shape (slots + 1,)
        Each plane's non-zeros are the entries ``begin[slot]:begin[slot + 1]``.
    indices : ndarray of uint16 or uint32
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
    indices: np.ndarray
    values: np.ndarray
    square: np.ndarray
    height: np.ndarray
    change: np.ndarray
    dense: np.ndarray


def no_rows(start: np.ndarray, slots: int, nonzeros: int, most: int, d: int) -> FixedRows:
    """Return a storage without planes; term i begins at ``start[i]`` and has ≤ ``most`` planes."""
    return FixedRows(
        start=start,
        n_planes=np.zeros_like(start),
        offset=np.zeros(slots),
        begin=np.zeros(slots + 1, np.int64),
        indices=np.zeros(nonzeros, narrow(d)),
        values=np.zeros(nonzeros),
        square=np.zeros(slots),
        height=np.zeros(most),
        change=np.zeros(most),
        dense=np.zeros(d),
    )


def fixed_rows(constraints: Constraints, d: int) -> FixedRows:
    """Return the storage of the given planes, which have been checked."""
    first = constraints.term_start[:-1]
    n, n_planes = first.size, np.diff(constraints.term_start) + 1
    lengths = np.insert(np.diff(constraints.indptr), first, 0)
    start = np.asarray(np.cumsum(n_planes) - n_planes, np.int64)
    blocks = no_rows(start, lengths.size, 0, int(n_planes.max()), d)._replace(
        n_planes=np.asarray(n_planes, np.int64),
        offset=np.insert(n * np.asarray(constraints.offset, np.float64), first, 0.0),
        indices=constraints.indices.astype(narrow(d)),
        values=n * np.asarray(constraints.values, np.float64),
    )
    np.cumsum(lengths, out=blocks.begin[1:])
    set_squares(blocks.begin, blocks.values, blocks.square)
    return blocks


@kernel
def _row(blocks, slot):
    """Return a plane: coordinates, and n φ⋆ there, both of shape (its non-zeros,)."""
    begin, end = blocks.begin[slot], blocks.begin[slot + 1]
    return blocks.indices[begin:end], blocks.values[begin:end]


@implements(operations.prefetch_term, FixedRows)
def _prefetch_term(blocks, order, k):
    far, i = _ahead(order, k)
    prefetch(blocks.start, far)
    prefetch(blocks.n_planes, far)
    first = blocks.start[i]
    prefetch(blocks.offset, first)
    begin, end = blocks.begin[first], blocks.begin[first + blocks.n_planes[i]]
    prefetch_range(blocks.values, begin, end)
    prefetch_range(blocks.indices, begin, end)


@implements(operations.gather, FixedRows)
def _gather(blocks, w, i):
    first = blocks.start[i]
    for p in range(blocks.n_planes[i]):
        indices, values = _row(blocks, first + p)
        blocks.height[p] = dot_at(values, indices, w) + blocks.offset[first + p]


@implements(operations.plane_value, FixedRows)
def _plane_value(blocks, i, p):
    return blocks.height[p]


@implements(operations.set_direction_of_mixture, FixedRows)
def _set_direction_of_mixture(blocks, i, own, change):
    for p in range(blocks.n_planes[i]):  # φ^i is not stored: own is 0
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
                indices, values = _row(blocks, first + q)
                before += blocks.change[q] * dot_at(values, indices, blocks.dense)
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
                v[blocks.indices[k]] += factor * blocks.values[k]


@implements(operations.direction_indices, FixedRows)
def _direction_indices(blocks, i, listed, indices):
    first = blocks.start[i]
    size = 0
    for p in range(blocks.n_planes[i]):
        if blocks.change[p] != 0.0:
            for k in range(blocks.begin[first + p], blocks.begin[first + p + 1]):
                size = operations.list_index(blocks.indices[k], listed, indices, size)
    return size


@implements(operations.inner_products, FixedRows)
def _inner_products(blocks, i, p, row):
    first = blocks.start[i]
    _spread(blocks, first + p, 1.0)
    for q in range(p):
        indices, values = _row(blocks, first + q)
        row[q] = dot_at(values, indices, blocks.dense)
    _spread(blocks, first + p, 0.0)
    row[p] = blocks.square[first + p]


@kernel
def _spread(blocks, slot, factor):
    """Write a plane, times a factor, over its coordinates of the dense scratch."""
    for k in range(blocks.begin[slot], blocks.begin[slot + 1]):
        blocks.dense[blocks.indices[k]] = factor * blocks.values[k]


class LineRows(NamedTuple):
    """Storage of terms whose planes are on one line.

    Attributes
    ----------
    n_planes : ndarray of int64, shape (n,)
        2 or 3: the ground truth's plane counts.
    begin : ndarray of int64, shape (n + 1,)
        The non-zeros of term i's first plane are the entries ``begin[i]:begin[i + 1]``.
    indices : ndarray of uint16 or uint32
        Coordinates of w.
    values : ndarray of float64
        n φ^{i1}⋆ there.
    numbers : ndarray of float64, shape (STRIDE · n,)
        For each term: n φ∘ of both planes, n² ‖φ⋆‖², β, and its violation of optimality at the
        last visit.
    height : ndarray of float64, shape (1,)
        Scratch: ⟨n φ^{i1}⋆, w⟩ of the current term.
    """

    n_planes: np.ndarray
    begin: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    numbers: np.ndarray
    height: np.ndarray


def line_rows(constraints: Constraints, d: int) -> LineRows | None:
    """Return the storage of checked planes, at β = 0; None if terms' planes are not on a line."""
    wrong = np.diff(constraints.term_start)
    n, first = wrong.size, constraints.term_start[:-1]
    star, above, below = constraints.star(d), constraints.offset[first], np.full(n, -np.inf)
    if (wrong == 2).all():
        second = star[1::2]
        star, below = star[::2], constraints.offset[first + 1]
        opposite = (  # non-zeros in the same order
            np.array_equal(star.indptr, second.indptr)
            and np.array_equal(star.indices, second.indices)
            and np.array_equal(star.data, -second.data)
        )
        if not (opposite and (above + below <= 0.0).all()):
            return None
    elif not (wrong == 1).all():
        return None
    blocks = LineRows(
        n_planes=wrong + 1,
        begin=np.asarray(star.indptr, np.int64),
        indices=star.indices.astype(narrow(d)),
        values=n * np.asarray(star.data, np.float64),
        numbers=np.zeros(STRIDE * n),
        height=np.zeros(1),
    )
    blocks.numbers[ABOVE::STRIDE] = n * above
    blocks.numbers[BELOW::STRIDE] = n * below
    blocks.numbers[VIOLATION::STRIDE] = np.inf
    set_squares(blocks.begin, blocks.values, blocks.numbers[SQUARE::STRIDE])
    return blocks


@implements(operations.prefetch_term, LineRows)
def _prefetch_line(blocks, order, k):
    far, i = _ahead(order, k)
    prefetch(blocks.begin, far)
    prefetch(blocks.numbers, STRIDE * far)
    prefetch(blocks.numbers, STRIDE * far + STRIDE - 1)
    prefetch_range(blocks.values, blocks.begin[i], blocks.begin[i + 1])
    prefetch_range(blocks.indices, blocks.begin[i], blocks.begin[i + 1])
    prefetch(blocks.values, blocks.begin[i + 1])
    prefetch(blocks.indices, blocks.begin[i + 1])


@implements(operations.gather, LineRows)
def _gather_on_line(blocks, w, i):
    begin, end = blocks.begin[i], blocks.begin[i + 1]
    blocks.height[0] = dot_at(blocks.values[begin:end], blocks.indices[begin:end], w)


@implements(operations.direction_indices, LineRows)
def _direction_indices_on_line(blocks, i, listed, indices):
    size = 0
    for k in range(blocks.begin[i], blocks.begin[i + 1]):
        size = operations.list_index(blocks.indices[k], listed, indices, size)
    return size


@implements(operations.add_direction, LineRows)
def _add_line(blocks, i, scale, v):  # δ = n φ^{i1}
    for k in range(blocks.begin[i], blocks.begin[i + 1]):
        v[blocks.indices[k]] += scale * blocks.values[k]


@kernel
def term_offset(numbers, beta):
    """Return n φ∘^i at β, from the numbers of term i."""
    return beta * numbers[ABOVE] if beta >= 0.0 else -beta * numbers[BELOW]


# ---- as arrays, and back (:mod:`.operations`) ----------------------------------------------------


_ALMOST_ONE = 1.0 + 1e-9


@state.of.register
def _(blocks: LineRows) -> dict[str, np.ndarray]:
    numbers = blocks.numbers
    return {"beta": numbers[BETA::STRIDE], "violation": numbers[VIOLATION::STRIDE]}


@state.like.register
def _(blocks: LineRows, given: Any) -> LineRows:
    own, limits = state.of(blocks), {"beta": state.Limits(least=-_ALMOST_ONE, most=_ALMOST_ONE)}
    for name, found in state.parts_like(own, given, limits).items():
        own[name][:] = found
    return blocks


@state.of.register
def _(blocks: FixedRows) -> dict[str, np.ndarray]:
    return {}  # all planes are given, and the solver keeps the weights


@state.like.register
def _(blocks: FixedRows, given: Any) -> FixedRows:
    state.parts_like({}, given)
    return blocks


# ---- the iterate ---------------------------------------------------------------------------------


class GivenRows(DualIterate):
    """All planes, given as rows: `FixedRows` or `LineRows`."""

    @classmethod
    def of(cls, problem: Problem, constraints: Constraints) -> GivenRows:
        """Return φ with the planes that the oracle has listed."""
        line = line_rows(constraints, problem.d)
        blocks = fixed_rows(constraints, problem.d) if line is None else line
        return cls(problem, blocks, N=int(blocks.n_planes.max()))

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        before = policy.steps.sum()
        visit_working_sets(policy, self.blocks, order, self.shared)
        return Tally(int(policy.steps.sum() - before), share=0.0, calls=order.size)

    def _scale_terms(self, policy: Any, scale: float) -> None:
        _scale_weights(policy, self.blocks, scale, self._state.now)


@kernel
def _scale_weights(policy, blocks, scale, now):
    """Scale all terms of a storage without φ^i, where only the policy has weights."""
    for i in range(blocks.n_planes.size):
        operations.insert_truth(policy, blocks, i, scale, now)
