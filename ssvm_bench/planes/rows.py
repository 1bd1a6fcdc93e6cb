"""Planes as sparse rows over the coordinates that their term touches: the storage for any oracle.

Term i has a *support* J_i, the coordinates of w in which some plane of the term is non-zero. φ^i is
a dense row over J_i; a plane keeps its non-zeros and their indices in J_i. After one gather of
w[J_i], a plane is evaluated in its number of non-zeros, and a step costs O(|J_i|), never O(d).

The storage grows as oracle calls add planes. A term that outgrows its slots or its coordinates
moves to the end of that pool, which doubles when it is full. The non-zeros of planes are appended
to one pool; when it is full, those of planes that are still cached are copied to a new one. Kernels
do all of this but make pools larger.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from ssvm_bench.base import state
from ssvm_bench.base.interrupts import end_if_urgent
from ssvm_bench.base.jit import implements, kernel, nanoseconds, shared_kernel
from ssvm_bench.base.linalg import dot, dot_at
from ssvm_bench.base.state import Limits
from ssvm_bench.oracles.base import Plane, Problem
from ssvm_bench.oracles.labeling import write_plane
from ssvm_bench.planes import operations
from ssvm_bench.planes.dual_iterate import DualIterate, Tally, scale_term

# mypy: disable-error-code="no-untyped-def"

CHANGED = ("phi", "term_offset")
"""Fields that hold φ^i."""

SLOTS, COORDINATES, NONZEROS, BEFORE, LAST = range(5)
"""Entries of ``SparseRows.used``."""

_OF_SLOTS = ("offset", "active", "begin", "length")
_OF_SUPPORT = ("support", "phi")
"""Fields with an entry for each slot, and for each coordinate of a support."""


_POOLS = ("begin", "length", "indices", "values", "room", "width")
_SUPPORTS = ("size", "support_start", "support", "phi", "used")
_SCRATCH = ("w_here", "delta", "position")


class SparseRows(operations.storage_with(*_POOLS, *_SUPPORTS, *_SCRATCH)):  # type: ignore[misc]
    """Storage; the first five fields as in :mod:`ssvm_bench.planes.operations`.

    Attributes
    ----------
    begin, length : ndarrays of int64, shape (slots,)
        Each plane's non-zeros are ``length`` entries of ``indices`` and ``values`` from ``begin``.
    indices : ndarray of uint16 or uint32
        Positions in J_i.
    values : ndarray of float64
        n φ⋆ at these indices.
    room, width : ndarrays of int64, shape (n,)
        Capacity of term i: slots, and coordinates.
    size : ndarray of int64, shape (n,)
        |J_i| ≤ width[i].
    support_start : ndarray of int64, shape (n,)
    support : ndarray of int64
        J_i, from ``support_start[i]``.
    phi : ndarray of float64
        n φ^i⋆ over J_i, from ``support_start[i]``.
    used : ndarray of int64, shape (5,)
        Slots, coordinates and non-zeros in use; non-zeros before the last candidate, and the term
        of the last candidate.
    w_here, delta : ndarrays of float64, shape (d,)
        Scratch: w[J_i] and δ⋆ of the current term.
    position : ndarray of int64, shape (d,)
        Scratch: position of a coordinate in J_i, −1 if it is not there; all −1 between calls.
    """


def allocate(n: int, d: int) -> SparseRows:
    """Return a storage in which every φ^i is the ground truth's plane and every W_i is empty."""
    of_terms = ("n_planes", "active", "begin", "length", "width", "size", "support_start")
    return SparseRows(
        start=np.arange(n, dtype=np.int64),
        offset=np.zeros(n),
        term_offset=np.zeros(n),
        indices=np.zeros(0, np.uint16 if d <= 1 << 16 else np.uint32),
        values=np.zeros(0),
        room=np.ones(n, np.int64),
        support=np.zeros(0, np.int64),
        phi=np.zeros(0),
        used=np.array([n, 0, 0, 0, 0]),
        w_here=np.zeros(d),
        delta=np.zeros(d),
        position=np.full(d, -1, np.int64),
        **{name: np.zeros(n, np.int64) for name in of_terms},
    )


def put(storage: SparseRows, i: int, plane: Plane) -> SparseRows:
    """Make a plane, whose values are scaled by 1/n, the candidate of term i; return the storage."""
    while (short := set_candidate(storage, i, *plane))[1] > 0:
        storage = with_space(storage, *short)
    return storage


def with_space(storage: SparseRows, kind: int, count: int) -> SparseRows:
    """Return the storage with space at the end of some pools for more of their entries.

    Parameters
    ----------
    storage : SparseRows
    kind : int
        ``SLOTS``, ``COORDINATES`` or ``NONZEROS``.
    count : int
        At least 1.
    """
    if kind == NONZEROS:
        cached = zip(storage.start, storage.start + storage.n_planes, strict=True)
        live = sum(int(storage.length[begin:end].sum()) for begin, end in cached)
        indices = np.empty(2 * (live + count), storage.indices.dtype)
        values = np.empty(indices.size)
        _compact(storage, indices, values)
        return storage._replace(indices=indices, values=values)
    names = _OF_SLOTS if kind == SLOTS else _OF_SUPPORT
    size = max(int(storage.used[kind]) + count, 2 * getattr(storage, names[0]).size)
    return storage._replace(
        **{name: operations.enlarged(getattr(storage, name), size) for name in names}
    )


@kernel
def _compact(blocks, indices, values):
    """Copy the non-zeros of all cached planes to new pools, term by term."""
    end = 0
    for i in range(blocks.n_planes.size):
        for slot in range(blocks.start[i], blocks.start[i] + blocks.n_planes[i]):
            begin = blocks.begin[slot]
            blocks.begin[slot] = end
            for k in range(begin, begin + blocks.length[slot]):
                indices[end] = blocks.indices[k]
                values[end] = blocks.values[k]
                end += 1
    blocks.used[NONZEROS] = blocks.used[BEFORE] = end


@shared_kernel
def set_candidate(blocks, i, indices, values, offset):
    """Make a plane the candidate of term i, if the storage has space for it.

    Parameters
    ----------
    blocks : SparseRows
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
    kind, count : int
        Zeros if there was space; else the arguments with which to call `with_space` first.
    """
    _forget_last(blocks)
    n, slots, known = blocks.n_planes.size, blocks.n_planes[i], blocks.size[i]
    if slots == blocks.room[i]:
        room = max(2 * slots, 1)
        if blocks.used[SLOTS] + room > blocks.offset.size:
            return SLOTS, room
        _move_slots(blocks, i, room)
    support = blocks.support[blocks.support_start[i] :]
    for k in range(known):
        blocks.position[support[k]] = k
    size = known
    for index in indices:
        if blocks.position[index] < 0:
            blocks.position[index] = size
            size += 1
    kind, count = _shortage(blocks, i, size, indices.size)
    if count == 0:
        if size > blocks.width[i]:
            _move_support(blocks, i, _wider(size))
        slot, begin, first = blocks.start[i] + slots, blocks.used[NONZEROS], blocks.support_start[i]
        for k in range(indices.size):
            at = blocks.position[indices[k]]
            blocks.indices[begin + k] = at
            blocks.values[begin + k] = n * values[k]
            if at >= known:
                blocks.support[first + at] = indices[k]
                blocks.phi[first + at] = 0.0
        blocks.size[i] = size
        blocks.begin[slot], blocks.length[slot] = begin, indices.size
        blocks.offset[slot] = n * offset
        blocks.used[NONZEROS] = begin + indices.size
        blocks.used[BEFORE], blocks.used[LAST] = begin, i
    for index in indices:
        blocks.position[index] = -1
    support = blocks.support[blocks.support_start[i] :]
    for k in range(known):
        blocks.position[support[k]] = -1
    return kind, count


@kernel
def _wider(size):
    """Return the capacity of a term that outgrows its coordinates."""
    return size * 3 // 2


@kernel
def _shortage(blocks, i, size, nonzeros):
    """Return which pool has no space for a candidate, and for how many entries; or zeros."""
    width = _wider(size)
    if size > blocks.width[i] and blocks.used[COORDINATES] + width > blocks.phi.size:
        return COORDINATES, width
    if blocks.used[NONZEROS] + nonzeros > blocks.values.size:
        return NONZEROS, nonzeros
    return 0, 0


@kernel
def _move_slots(blocks, i, room):
    """Move a term to the end of the pools of slots, with another capacity."""
    begin, end = blocks.start[i], blocks.used[SLOTS]
    for p in range(blocks.n_planes[i]):
        blocks.offset[end + p] = blocks.offset[begin + p]
        blocks.active[end + p] = blocks.active[begin + p]
        blocks.begin[end + p] = blocks.begin[begin + p]
        blocks.length[end + p] = blocks.length[begin + p]
    blocks.start[i], blocks.room[i], blocks.used[SLOTS] = end, room, end + room


@kernel
def _move_support(blocks, i, width):
    """Move a term to the end of the pools of coordinates, with another capacity."""
    begin, end = blocks.support_start[i], blocks.used[COORDINATES]
    for k in range(blocks.size[i]):
        blocks.support[end + k] = blocks.support[begin + k]
        blocks.phi[end + k] = blocks.phi[begin + k]
    blocks.support_start[i], blocks.width[i] = end, width
    blocks.used[COORDINATES] = end + width


@kernel
def _forget_last(blocks):
    """Free the non-zeros of the last candidate, unless it is in its working set."""
    first = blocks.start[blocks.used[LAST]]
    for slot in range(first, first + blocks.n_planes[blocks.used[LAST]]):
        if blocks.begin[slot] + blocks.length[slot] == blocks.used[NONZEROS]:
            return
    blocks.used[NONZEROS] = blocks.used[BEFORE]


@kernel
def plane(blocks, i, p):
    """Return plane p of term i: indices in J_i, and n φ⋆ there, both of shape (its non-zeros,)."""
    slot = blocks.start[i] + p
    begin, end = blocks.begin[slot], blocks.begin[slot] + blocks.length[slot]
    return blocks.indices[begin:end], blocks.values[begin:end]


@implements(operations.gather, SparseRows)
def _gather(blocks, w, i):
    support = blocks.support[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        blocks.w_here[k] = w[support[k]]


@implements(operations.plane_value, SparseRows)
def _plane_value(blocks, i, p):
    indices, values = plane(blocks, i, p)
    return dot_at(values, indices, blocks.w_here) + blocks.offset[blocks.start[i] + p]


@implements(operations.set_direction, SparseRows)
def _set_direction(blocks, i, p):
    phi = blocks.phi[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        blocks.delta[k] = -phi[k]
    indices, values = plane(blocks, i, p)
    for k in range(values.size):
        blocks.delta[indices[k]] += values[k]
    climb = blocks.offset[blocks.start[i] + p] - blocks.term_offset[i]
    return dot(blocks.delta, blocks.w_here, blocks.size[i]) + climb


@implements(operations.set_direction_from_truth, SparseRows)
def _set_direction_from_truth(blocks, i):
    phi = blocks.phi[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        blocks.delta[k] = phi[k]


@implements(operations.squared_length, SparseRows)
def _squared_length(blocks, i):
    return dot(blocks.delta, blocks.delta, blocks.size[i])


@implements(operations.add_direction, SparseRows)
def _add_direction(blocks, i, scale, v):
    support = blocks.support[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        v[support[k]] += scale * blocks.delta[k]


@implements(operations.direction_indices, SparseRows)
def _direction_indices(blocks, i, listed, indices):
    support = blocks.support[blocks.support_start[i] :]
    size = 0
    for k in range(blocks.size[i]):
        size = operations.list_index(support[k], listed, indices, size)
    return size


@implements(operations.move_term, SparseRows)
def _move_term(blocks, i, gamma):
    phi = blocks.phi[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        phi[k] += gamma * blocks.delta[k]


@implements(operations.same_plane, SparseRows)
def _same_plane(blocks, i, p, q):
    if blocks.offset[blocks.start[i] + p] != blocks.offset[blocks.start[i] + q]:
        return False
    indices, values = plane(blocks, i, p)
    other_indices, other_values = plane(blocks, i, q)
    if values.size != other_values.size:
        return False
    for k in range(values.size):
        if indices[k] != other_indices[k] or values[k] != other_values[k]:
            return False
    return True


@implements(operations.copy_plane, SparseRows)
def _copy_plane(blocks, i, p, q):
    first = blocks.start[i]
    blocks.begin[first + q] = blocks.begin[first + p]
    blocks.length[first + q] = blocks.length[first + p]


@implements(operations.present_value, SparseRows)
def _present_value(blocks, i):
    phi = blocks.phi[blocks.support_start[i] :]
    return dot(phi, blocks.w_here, blocks.size[i]) + blocks.term_offset[i]


@implements(operations.set_direction_of_mixture, SparseRows)
def _set_direction_of_mixture(blocks, i, own, change):
    phi = blocks.phi[blocks.support_start[i] :]
    for k in range(blocks.size[i]):
        blocks.delta[k] = own * phi[k]
    for p in range(blocks.n_planes[i]):
        if change[p] != 0.0:
            indices, values = plane(blocks, i, p)
            for k in range(values.size):
                blocks.delta[indices[k]] += change[p] * values[k]


@implements(operations.inner_products, SparseRows)
def _inner_products(blocks, i, p, row):
    for k in range(blocks.size[i]):
        blocks.delta[k] = 0.0
    indices, values = plane(blocks, i, p)
    for k in range(values.size):
        blocks.delta[indices[k]] = values[k]
    for q in range(p + 1):
        others, factors = plane(blocks, i, q)
        row[q] = dot_at(factors, others, blocks.delta)


@implements(operations.product_with_term, SparseRows)
def _product_with_term(blocks, i, p):
    indices, values = plane(blocks, i, p)
    return dot_at(values, indices, blocks.phi[blocks.support_start[i] :])


# ---- as arrays, and back (:mod:`.operations`) ----------------------------------------------------


_COUNTS = ("n_planes", "term_offset", "size")


@state.of.register
def _(blocks: SparseRows) -> dict[str, np.ndarray]:
    slots = operations.entries(blocks.start, blocks.n_planes)
    entries = {
        ("offset", "active", "length"): slots,
        ("indices", "values"): operations.entries(blocks.begin[slots], blocks.length[slots]),
        ("support", "phi"): operations.entries(blocks.support_start, blocks.size),
    }
    return operations.in_use(blocks, _COUNTS, entries)


def _size_of_support(found: Any, _: SparseRows) -> np.ndarray:
    """Return |J_i| for each non-zero of each plane."""
    return np.repeat(np.repeat(found["size"], found["n_planes"]), found["length"])


_LIMITS = {
    **dict.fromkeys(("offset", "active", "length"), Limits(size="n_planes")),
    "phi": Limits(size="size"),
    "support": Limits(size="size", below="w_here.size", distinct=True),
    "values": Limits(size="length"),
    "indices": Limits(size="length", below=_size_of_support),
}


@state.like.register
def _(blocks: SparseRows, given: Any) -> SparseRows:
    found = state.parts_like(state.of(blocks), given, _LIMITS, blocks)
    n_planes, size, nonzeros = found["n_planes"], found["size"], found["values"].size
    return blocks._replace(
        **found,
        start=operations.starts_of(n_planes),
        begin=operations.starts_of(found["length"]),
        room=n_planes.copy(),
        width=size.copy(),
        support_start=operations.starts_of(size),
        used=np.array([found["offset"].size, found["phi"].size, nonzeros, nonzeros, 0]),
    )


# ---- the iterate ---------------------------------------------------------------------------------


class RowIterate(DualIterate):
    """Planes are sparse rows of the outer layout; the oracle is called from Python."""

    _phi_i = CHANGED

    def __init__(self, problem: Problem, N: int) -> None:
        super().__init__(problem, allocate(problem.n, problem.d), N)
        self.blocks.n_planes[:] = N > 0  # of the ground truth's plane (Algorithm 3, line 3)

    @property
    def inner_d(self) -> int:
        """See `DualIterate`."""
        return self.problem.d

    def pack(self, w: np.ndarray) -> np.ndarray:
        """See `DualIterate`."""
        return w.copy()

    outer = pack

    def _exact_pass(self, policy: Any, order: np.ndarray, may_skip: bool, batch: int) -> Tally:
        oracle = self.problem.oracle
        writing = oracle.writing() if batch == 1 and oracle.caller is None else None
        if writing is None:
            return super()._exact_pass(policy, order, may_skip, batch)
        d, counts, at = self.problem.d, np.zeros(_COUNTED, np.int64), 0
        row = np.zeros(d, np.int64), np.zeros(d)
        waited, begin, timespec = 0.0, perf_counter(), np.zeros(2, np.int64)
        while at < order.size:
            end_if_urgent()
            piece, given = order[at : at + _AT_A_TIME], (self.shared, may_skip, *row, timespec)
            visits, size, offset = _visits(policy, writing, self.blocks, piece, *given, counts)
            at += visits
            if visits < piece.size:
                i, plane = int(piece[visits]), Plane(row[0][:size], row[1][:size], offset)
                if size < 0:
                    start = perf_counter()
                    plane, _ = oracle.best_plane(self.query, i)
                    waited += perf_counter() - start
                self.blocks = put(self.blocks, i, plane)
                counts[_CHANGED] += _visit_candidate(policy, self.blocks, i, self.shared)
                at += 1
        changed, skipped, evaluated, took = counts.tolist()
        share = (waited + 1e-9 * took) / max(perf_counter() - begin, 1e-9)
        return Tally(changed, share, order.size - skipped, skipped, evaluated)

    def _answered_visits(self, policy: Any, asked: np.ndarray) -> tuple[int, float]:
        changed, seconds, terms, state = 0, 0.0, asked.tolist(), self.shared
        at = self.query if len(terms) < 2 else self.query.copy()
        planes = self.problem.oracle.best_planes(at, terms)
        for i in terms:
            start = perf_counter()
            plane, _ = next(planes)
            seconds += perf_counter() - start
            self.blocks = put(self.blocks, i, plane)
            changed += _visit_candidate(policy, self.blocks, i, state)
        return changed, seconds

    def _scale_terms(self, policy: Any, scale: float) -> None:
        truth = Plane(np.zeros(0, np.int64), np.zeros(0), 0.0)
        for i in range(self.problem.n):
            self.blocks = put(self.blocks, i, truth)
            scale_term(policy, self.blocks, i, scale, self._state.now)


_CHANGED, _SKIPPED, _EVALUATED, _NANOSECONDS, _COUNTED = range(5)
"""Visits that changed something, those without a call, their planes, and the calls' time."""

_AT_A_TIME = 256
"""Number of terms after which a second Ctrl-C is noticed."""


@kernel
def _visits(policy, oracle, blocks, order, state, may_skip, indices, values, timespec, counts):
    """Visit terms with a compiled oracle, until one is left to Python.

    Parameters
    ----------
    oracle : NamedTuple
        It implements `write_plane`, to which ``indices`` and ``values`` are given.
    timespec : ndarray of int64, shape (2,)
        Scratch.
    counts : ndarray of int64, shape (_COUNTED,)
        What is done is added to it.

    Returns
    -------
    visits : int
        Number of terms visited.
    size : int
        Size of the next term's plane, which has been written, and for which there is no space;
        below 0: it has not been written.
    offset : float
        Of this plane.
    """
    query = state.w if state.query.size == 0 else state.query
    for k in range(order.size):
        i = order[k]
        if may_skip:
            seen = operations.visit_without_oracle(policy, blocks, i, state)
            if seen > 0:
                counts[_SKIPPED] += 1
                counts[_EVALUATED] += seen
                continue
        begin = nanoseconds(timespec)
        size, offset, made = write_plane(oracle, query, i, indices, values)
        counts[_NANOSECONDS] += nanoseconds(timespec) - begin
        if not made:
            return k, -1, 0.0
        _, short = set_candidate(blocks, i, indices[:size], values[:size], offset)
        if short > 0:
            return k, size, offset
        counts[_CHANGED] += _visit_candidate(policy, blocks, i, state)
    return order.size, 0, 0.0


@shared_kernel
def _visit_candidate(policy, blocks, i, state):
    """Do an `exact_visit`, after ``gather``."""
    operations.gather(blocks, state.w, i)
    return operations.exact_visit(policy, blocks, i, state)
