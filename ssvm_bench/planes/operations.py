"""Operations of a block step, implemented by storages; visits, by policies; working sets; states.

A storage (:mod:`~ssvm_bench.planes.labelings`, :mod:`~ssvm_bench.planes.rows`) holds φ^i and the
planes φ^{ip} of the working set W_i of every term i. All are multiplied by n, so that no operation
divides; the step restores the scale. An operation works on one term, and leaves what the next
operation needs in scratch space of the storage.

==============================  ======================================  ===========================
symbol                          operation                               returns
==============================  ======================================  ===========================
w at term i                     `gather`, before all of the following
⟨n φ^{ip}, [w 1]⟩ + c_i         `plane_value`                           float
⟨n φ^i, [w 1]⟩ + c_i            `present_value`                         float
δ = n (φ^{ip} − φ^i)            `set_direction`                         ⟨δ, [w 1]⟩, n block gaps
δ = n φ^i                       `set_direction_from_truth`
δ = n (a φ^i + Σ_p b_p φ^{ip})  `set_direction_of_mixture`
‖δ⋆‖²                           `squared_length`                        float
v ← v + s δ⋆                    `add_direction`, `add_direction_to_both`
where δ⋆ may not be 0           `direction_indices`                     number of indices
n φ^i ← n φ^i + γ δ             `move_term`
n² ⟨φ^{ip}⋆, φ^{iq}⋆⟩           `inner_products`                        row of floats
n² ⟨φ^{ip}⋆, φ^i⋆⟩              `product_with_term`                     float
==============================  ======================================  ===========================

The number c_i is the same for all planes of a term, and cancels in every difference: a storage need
not compute what its planes have in common.

A storage is a named tuple whose first fields are those of every storage (`storage_with`):

===========  =================  ==============================================================
field        shape              meaning
===========  =================  ==============================================================
``start``    int64[n]           term i's planes are the slots start[i], start[i] + 1, …
``n_planes`` int64[n]           |W_i|; slot start[i] + n_planes[i] is the *candidate*, the plane
                                that the exact oracle has just returned
``offset``   float64[slots]     n φ∘ of each plane
``active``   int64[slots]       outer iteration in which the plane was last active
``term_offset`` float64[n]      n φ∘^i
===========  =================  ==============================================================

Arguments are ``blocks``, the storage; ``i``, a term, 0 ≤ i < n; ``p`` and ``q``, planes of W_i or
its candidate, 0 ≤ p ≤ |W_i|; ``w`` and ``v``, float64 vectors in the storage's layout of w, shape
(D,). Planes of a term are kept in the order in which they were inserted; ties between them go to
the one inserted first.

The *policy* of a solver defines what a visit of a term does. It is a ``NamedTuple`` whose type
implements the visits declared here.

A *state* (:mod:`ssvm_bench.base.state`) has the planes of every term, one term after the other,
without unused space. So the counts determine where each term begins. Kernels do not check the
indices that they read; therefore every index of a state has `Limits`, by the counts and the sizes
of the problem. Every storage registers its own ``state.of`` and ``state.like``.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import numpy as np

from ssvm_bench.base.jit import abstract, generic, kernel

# mypy: disable-error-code="no-untyped-def"


def storage_with(*names: str) -> Any:
    """Return a base class for a storage: the fields of every storage, followed by ``names``."""
    return namedtuple("Storage", ("start", "n_planes", "offset", "active", "term_offset", *names))


@generic
def prefetch_term(blocks, order, k):
    """Prefetch what visits after the k-th of ``order`` will read: a pass waits for memory."""


@generic
def prefetch_weights(blocks, w, order, k):
    """Prefetch what the visit after the k-th will read of w, where w is larger than the caches."""


@abstract
def gather(blocks, w, i):
    """Gather what the other operations on term i need of w."""


@abstract
def plane_value(blocks, i, p):
    """Return ⟨n φ^{ip}, [w 1]⟩ + c_i, c_i the same for all planes of term i."""


@abstract
def present_value(blocks, i):
    """Return ⟨n φ^i, [w 1]⟩ + c_i, with the c_i of `plane_value`."""


@abstract
def set_direction(blocks, i, p):
    """Let δ = n (φ^{ip} − φ^i) and return ⟨δ, [w 1]⟩."""


@abstract
def set_direction_from_truth(blocks, i):
    """Let δ = n φ^i, the difference of φ^i and the ground truth's plane, which is 0."""


@abstract
def set_direction_of_mixture(blocks, i, own, change):
    """Let δ = own · n φ^i + Σ_p change[p] · n φ^{ip} over W_i; the coefficients add up to 0."""


@abstract
def squared_length(blocks, i):
    """Return ‖δ⋆‖² of the δ of the last `set_direction`."""


@abstract
def add_direction(blocks, i, scale, v):
    """Add scale · δ⋆ to v."""


@generic
def add_direction_to_both(blocks, i, scale, v, other_scale, other):
    """Add scale · δ⋆ to v, and other_scale · δ⋆ to another vector."""
    add_direction(blocks, i, scale, v)
    add_direction(blocks, i, other_scale, other)


@abstract
def direction_indices(blocks, i, listed, indices):
    """List the indices in w where δ⋆ may be non-zero, each once, and return their number.

    ``listed`` must be all false before; it is true at these indices afterwards.
    """


@abstract
def move_term(blocks, i, gamma):
    """Move n φ^i by γ δ, except for its offset, which the caller changes."""


@abstract
def inner_products(blocks, i, p, row):
    """Let row[q] = n² ⟨φ^{ip}⋆, φ^{iq}⋆⟩ for all planes q ≤ p of W_i."""


@abstract
def product_with_term(blocks, i, p):
    """Return n² ⟨φ^{ip}⋆, φ^i⋆⟩."""


@generic
def shrink_term(blocks, i):
    """Drop what no plane of term i needs, if φ^i is a convex combination of planes of W_i."""


@abstract
def same_plane(blocks, i, p, q):
    """Return whether planes p and q of term i are the same."""


@abstract
def copy_plane(blocks, i, p, q):
    """Copy plane p of term i over plane q; the caller copies ``offset`` and ``active``."""


# ---- visits: of a policy ----------------------------------------------------------


@generic
def visit_without_oracle(policy, blocks, i, state):
    """Visit term i without its exact oracle, if the policy finds its planes sufficient.

    Returns
    -------
    int
        Number of planes evaluated; 0 if the oracle is to be called.
    """
    return 0


@abstract
def exact_visit(policy, blocks, i, state):
    """Visit term i when the oracle's plane is its candidate; after ``gather``.

    Returns
    -------
    bool
        Whether anything has changed.
    """


@abstract
def approximate_visit(policy, blocks, i, state):
    """Visit term i with the planes of W_i alone; return |W_i| before the visit."""


@generic
def prefetch_visit(policy, blocks, order, k):
    """Do `prefetch_term` before an approximate visit, limited to what the policy will read."""
    prefetch_term(blocks, order, k)


@abstract
def insert_truth(policy, blocks, i, scale, now):
    """Insert the candidate, the ground truth's plane, into W_i, before n φ^i is scaled.

    If all planes are known from the beginning, W_i has it already.
    """


@generic
def must_stay(policy, i, p):
    """Return whether plane p of W_i must be kept: away and pairwise steps need its weight."""
    return False


@generic
def forget_plane(policy, i, p):
    """Delete the policy's numbers of a dropped plane, 0 ≤ p < |W_i| before the drop."""


# ---- working sets, on any storage --------------------------------------------------------------


@kernel
def list_index(index, listed, indices, size):
    """Append an index to the ``size`` listed ones, unless it is among them; return their number."""
    if listed[index]:
        return size
    listed[index] = True
    indices[size] = index
    return size + 1


@kernel
def best_plane(blocks, i):
    """Return the plane of W_i with the highest value, the first of several; after ``gather``."""
    best = 0
    highest = plane_value(blocks, i, 0)
    for p in range(1, blocks.n_planes[i]):
        value = plane_value(blocks, i, p)
        if value > highest:
            highest = value
            best = p
    return best


@kernel
def insert(blocks, i, now):
    """Insert the candidate into W_i, unless it is there; mark it active; return its index."""
    first = blocks.start[i]
    candidate = blocks.n_planes[i]
    for p in range(candidate):
        if same_plane(blocks, i, p, candidate):
            blocks.active[first + p] = now
            return p
    blocks.active[first + candidate] = now
    blocks.n_planes[i] = candidate + 1
    return candidate


@kernel
def insert_candidate(policy, blocks, i, now):
    """Insert the candidate into W_i (Algorithm 3, line 5), unless it is there already.

    W_i has at most ``policy.N`` planes.
    """
    if policy.N > 0:
        insert(blocks, i, now)
        drop_longest_inactive(policy, blocks, i)


@kernel
def drop_longest_inactive(policy, blocks, i):
    """If W_i has more than N planes, drop the one inactive for longest that need not stay."""
    if blocks.n_planes[i] <= policy.N:
        return
    active = blocks.active[blocks.start[i] :]
    longest = -1
    for p in range(blocks.n_planes[i]):
        if not must_stay(policy, i, p) and (longest < 0 or active[p] < active[longest]):
            longest = p
    if longest >= 0:
        drop_plane(policy, blocks, i, longest)


@kernel
def drop_inactive(policy, blocks, i, last):
    """Drop the planes of W_i that were last active in outer iteration ``last`` or before.

    Returns
    -------
    bool
        Whether there were any.
    """
    before = blocks.n_planes[i]
    p = 0
    while p < blocks.n_planes[i]:
        if blocks.active[blocks.start[i] + p] <= last and not must_stay(policy, i, p):
            drop_plane(policy, blocks, i, p)
        else:
            p += 1
    return blocks.n_planes[i] < before


@kernel
def drop_plane(policy, blocks, i, p):
    """Drop plane p of W_i."""
    first = blocks.start[i]
    blocks.n_planes[i] -= 1
    for q in range(p, blocks.n_planes[i]):
        copy_plane(blocks, i, q + 1, q)
        blocks.offset[first + q] = blocks.offset[first + q + 1]
        blocks.active[first + q] = blocks.active[first + q + 1]
    forget_plane(policy, i, p)


# ---- capacity of a storage, whose terms are stored one after the other -------------------------


def grown(room: np.ndarray, needed: np.ndarray) -> np.ndarray:
    """Return each term's capacity, at least doubled where more is needed, int64, shape (n,)."""
    return np.where(needed > room, np.maximum(needed, 2 * room), room)


def enlarged(array: np.ndarray, *shape: int) -> np.ndarray:
    """Return a larger copy, padded with 0; entries not used yet take hardly any memory."""
    larger = np.zeros(shape, array.dtype)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger


# ---- the planes of a storage as arrays, and back -------------------------------------------------


def entries(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return start[i], …, start[i] + count[i] − 1 for every i, one after the other."""
    before = starts_of(count)
    return np.arange(int(count.sum())) + np.repeat(start - before, count)


def starts_of(count: np.ndarray) -> np.ndarray:
    """Return the index of the first entry of each group, for groups stored one after the other."""
    return np.cumsum(count) - count


def in_use(
    storage: Any, whole: tuple[str, ...], entries: Mapping[Any, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return arrays of a storage by name: the ``whole`` ones, and of others some ``entries``."""
    found = {name: getattr(storage, name) for name in whole}
    for names, at in entries.items():
        found |= {name: getattr(storage, name)[at] for name in names}
    return found
