"""The operations of a block step, implemented per storage, and the working sets built on them.

For term i with its plane φ^i, and plane p of its working set (all times n, so that no operation
divides; the solver puts the scale back):

.. code-block:: text

    aim       δ = n (φ^{ip} − φ^i)                   returns ⟨δ, [w 1]⟩, n times the block gap
    length2   ‖δ⋆‖²
    spread    v ← v + s δ⋆
    advance   n φ^i ← n φ^i + γ δ
    load      what the above need to know of w at term i
    value     ⟨n φ^{ip}, [w 1]⟩ + a constant of the term

Visits of several steps also need `here`, `aim_mix`, `inner_products` and `product`.

A storage is a ``NamedTuple`` whose first fields are those of every storage:

===========  =================  ==============================================================
field        shape              meaning
===========  =================  ==============================================================
``start``    int64[n]           term i's planes are the slots start[i], start[i] + 1, …
``n_planes`` int64[n]           |W_i|; slot start[i] + n_planes[i] is the *candidate*, the plane
                                that the exact oracle has just returned
``offset``   float64[slots]     n φ∘ of each plane
``active``   int64[slots]       outer iteration in which the plane was last active
``circ``     float64[n]         n φ∘^i
===========  =================  ==============================================================

Planes of a term are kept in the order in which they were found; ties between them go to the
oldest.
"""

from __future__ import annotations

from ssvm_bench.jit import generic, kernel

# mypy: disable-error-code="no-untyped-def"


@generic
def fetch(blocks, i):
    """Prefetch what a step on term i will read: in random order, a pass waits for memory."""


@generic
def load(blocks, w, i):
    """Gather what the other operations need to know of w at term i."""


@generic
def value(blocks, i, p):
    """Return ⟨n φ^{ip}, [w 1]⟩ + c_i, c_i the same for all planes of term i; after ``load``."""


@generic
def aim(blocks, i, p):
    """Let δ = n (φ^{ip} − φ^i) and return ⟨δ, [w 1]⟩; after ``load``."""


@generic
def length2(blocks, i):
    """Return ‖δ⋆‖² of the δ of the last ``aim``."""


@generic
def spread(blocks, i, scale, v):
    """Add scale · δ⋆ to v, a vector in w's layout."""


@generic
def spread_twice(blocks, i, scale, v, other_scale, other):
    """Do ``spread`` to v and to another vector, in one go."""


@generic
def advance(blocks, i, gamma):
    """Move n φ^i (but for its offset, which the caller owns) by γ δ."""


@generic
def aim_from_truth(blocks, i):
    """Let δ = n φ^i, the way from the ground truth's plane to φ^i."""


@generic
def here(blocks, i):
    """Return ⟨n φ^i, [w 1]⟩ + c_i, with the c_i of ``value``; after ``load``."""


@generic
def aim_mix(blocks, i, own, change):
    """Let δ = own · n φ^i + Σ_p change[p] · n φ^{ip} over W_i; the coefficients add up to 0."""


@generic
def inner_products(blocks, i, p, row):
    """Let row[q] = n² ⟨φ^{ip}⋆, φ^{iq}⋆⟩ for all planes q ≤ p of W_i."""


@generic
def product(blocks, i, p):
    """Return n² ⟨φ^{ip}⋆, φ^i⋆⟩."""


@generic
def same(blocks, i, p, q):
    """Tell whether planes p and q of term i are the same labeling."""


@generic
def copy(blocks, i, p, q):
    """Copy plane p of term i over its plane q (``offset`` and ``active`` are the caller's)."""


@kernel
def best_plane(blocks, i):
    """Return the plane of W_i with the highest value, the oldest of several; after ``load``."""
    best = 0
    highest = value(blocks, i, 0)
    for p in range(1, blocks.n_planes[i]):
        here = value(blocks, i, p)
        if here > highest:
            highest = here
            best = p
    return best


@kernel
def remember(blocks, i, N, now):
    """Put the candidate into W_i (Algorithm 3, line 5), unless it is there already.

    Over N planes, the longest inactive is dropped, the oldest of several.
    """
    if N == 0:
        return
    first = blocks.start[i]
    candidate = blocks.n_planes[i]
    for p in range(candidate):
        if same(blocks, i, p, candidate):
            blocks.active[first + p] = now
            return
    blocks.active[first + candidate] = now
    blocks.n_planes[i] = candidate + 1
    if candidate + 1 > N:
        oldest = 0
        for p in range(1, candidate + 1):
            if blocks.active[first + p] < blocks.active[first + oldest]:
                oldest = p
        remove(blocks, i, oldest)


@kernel
def drop_inactive(blocks, i, last):
    """Drop the planes of W_i that were last active in outer iteration ``last`` or before."""
    p = 0
    while p < blocks.n_planes[i]:
        if blocks.active[blocks.start[i] + p] <= last:
            remove(blocks, i, p)
        else:
            p += 1


@kernel
def remove(blocks, i, p):
    """Drop plane p of W_i."""
    first = blocks.start[i]
    blocks.n_planes[i] -= 1
    for q in range(p, blocks.n_planes[i]):
        copy(blocks, i, q + 1, q)
        blocks.offset[first + q] = blocks.offset[first + q + 1]
        blocks.active[first + q] = blocks.active[first + q + 1]
