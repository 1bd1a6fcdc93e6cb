"""A cache of examples: a storage of some terms, whose planes come and go.

A term is a cached example. Terms are numbered in the order in which they were cached, not by their
index among the problem's n examples: no array has length n. A term has the ground truth's plane,
which is 0, and planes of the oracle, each with a weight; steps see it as `FixedRows` and `Simplex`.
New terms are appended. A term that gets another plane is appended again; the old term is then
*closed*, and `compact` reclaims its space.

A storage of C terms represents a problem of C terms, so that the problem's n enters through λ:

.. code-block:: text

    λ_C = λ n/C        λ_C C = λ n        F = C/n F_C       w the same
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base import state
from ssvm_bench.base.jit import kernel
from ssvm_bench.base.state import Limits
from ssvm_bench.planes import operations
from ssvm_bench.planes.given_rows import FixedRows, no_rows, set_squares
from ssvm_bench.planes.operations import enlarged
from ssvm_bench.planes.simplex import Simplex, no_weights, set_row

# mypy: disable-error-code="no-untyped-def"

TERMS, SLOTS, NONZEROS, ENTRIES, PLANES = range(5)
"""Entries of ``Cache.used``."""

_MOST, _LONG = 8, 1 << 12
"""Least capacities: planes of one term; and non-zeros, and entries of K, of all terms."""


class Cache(NamedTuple):
    """See the module's docstring.

    Attributes
    ----------
    blocks : FixedRows
        The planes of C terms; closed and unused terms have none.
    numbers : Simplex
        α and K. The α of term t begin at ``start[t]``, like its planes; ``room[t]`` counts them.
    example : ndarray of int64, shape (C,)
        The number of each term's example; −1 for closed and unused terms.
    used : ndarray of int64, shape (5,)
        Terms, slots, non-zeros and entries of K in use, closed terms included; and cached planes,
        without those of the ground truths.
    indices, values : ndarrays of int64 and float64, shape (D,)
        Scratch: the row n φ⋆ of a plane that may be added.
    """

    blocks: FixedRows
    numbers: Simplex
    example: np.ndarray
    used: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def allocate(planes: int, D: int) -> Cache:
    """Return an empty cache for ``planes`` planes of D weights, the ground truths' not counted."""
    terms, slots = 2 * planes + 2, 4 * planes + _MOST
    start = np.zeros(terms, np.int64)
    numbers = no_weights(np.zeros_like(start), np.zeros(0), np.zeros_like(start))
    return Cache(
        blocks=no_rows(start, slots, 0, 0, D),
        numbers=numbers._replace(start=start, alpha=np.zeros(slots)),
        example=np.full(terms, -1),
        used=np.zeros(5, np.int64),
        indices=np.zeros(D, np.int64),
        values=np.zeros(D),
    )


def reserve(cache: Cache, planes: int, nonzeros: int) -> Cache:
    """Return the cache with space for a term of ``planes`` planes, the ground truth's counted.

    No plane is dropped and no weight changes, but terms may be renumbered.
    """
    blocks, numbers, used = cache.blocks, cache.numbers, cache.used
    if used[TERMS] == cache.example.size or used[SLOTS] + planes > blocks.offset.size:
        compact(cache, True)
    if used[SLOTS] + planes > blocks.offset.size:
        size = 2 * (used[SLOTS] + planes)
        blocks = blocks._replace(
            offset=enlarged(blocks.offset, size),
            square=enlarged(blocks.square, size),
            begin=enlarged(blocks.begin, size + 1),
        )
        numbers = numbers._replace(alpha=enlarged(numbers.alpha, size))
    if used[NONZEROS] + nonzeros > blocks.values.size:
        size = max(_LONG, int(1.5 * (used[NONZEROS] + nonzeros)))
        blocks = blocks._replace(
            indices=enlarged(blocks.indices, size), values=enlarged(blocks.values, size)
        )
    if used[ENTRIES] + planes**2 > numbers.gram.size:
        size = max(_LONG, 2 * (used[ENTRIES] + planes**2))
        numbers = numbers._replace(gram=enlarged(numbers.gram, size))
    cache = cache._replace(blocks=blocks, numbers=numbers)
    most = max(_MOST, 2 * planes)
    return _with_scratch(cache, most) if planes > blocks.height.size else cache


def _with_scratch(cache: Cache, most: int) -> Cache:
    """Return the cache with scratch for terms of up to ``most`` planes."""
    numbers = {name: np.zeros(most) for name in ("values", "change", "row")}
    return cache._replace(
        blocks=cache.blocks._replace(height=np.zeros(most), change=np.zeros(most)),
        numbers=cache.numbers._replace(order=np.zeros(most, np.int64), **numbers),
    )


def terms_of(cache: Cache, begin: int, size: int) -> np.ndarray:
    """Return the terms of the examples ``begin … begin + size − 1``, −1 for those not cached."""
    terms = np.full(size, -1)
    example = cache.example[: cache.used[TERMS]]
    (here,) = np.nonzero((example >= begin) & (example < begin + size))
    terms[example[here] - begin] = here
    return terms


@kernel
def has_room(cache, planes, nonzeros):
    """Return whether a term of ``planes`` planes can be appended without a `reserve`."""
    used = cache.used
    return (
        used[TERMS] < cache.example.size
        and used[SLOTS] + planes <= cache.blocks.offset.size
        and used[NONZEROS] + nonzeros <= cache.blocks.values.size
        and used[ENTRIES] + planes * planes <= cache.numbers.gram.size
        and planes <= cache.blocks.height.size
    )


@kernel
def open_term(cache, example, planes):
    """Append a term for ``planes`` planes, so far with the ground truth's alone; return it."""
    blocks, numbers, used = cache.blocks, cache.numbers, cache.used
    t = used[TERMS]
    used[TERMS] = t + 1
    cache.example[t] = example
    blocks.start[t] = used[SLOTS]
    blocks.n_planes[t] = 0
    numbers.room[t] = planes
    numbers.gram_start[t] = used[ENTRIES]
    used[ENTRIES] += planes * planes
    used[PLANES] -= 1
    add_row(cache, t, 0, 0.0, 1.0)
    return t


@kernel
def add_row(cache, t, count, offset, alpha):
    """Add a plane to the last term; its ``count`` non-zeros are already behind all others."""
    blocks, numbers, used = cache.blocks, cache.numbers, cache.used
    p = blocks.n_planes[t]
    slot = blocks.start[t] + p
    begin = used[NONZEROS]
    blocks.begin[slot], blocks.begin[slot + 1] = begin, begin + count
    blocks.offset[slot] = offset
    set_squares(blocks.begin[slot:], blocks.values, blocks.square[slot : slot + 1])
    blocks.n_planes[t] = numbers.known[t] = p + 1
    numbers.alpha[slot] = alpha
    used[NONZEROS] = begin + count
    used[SLOTS] = slot + 1
    used[PLANES] += 1
    set_row(numbers, blocks, t, p)


@kernel
def add_candidate(cache, t, count, offset):
    """Add the row in the scratch to the last term, with weight 0."""
    begin = cache.used[NONZEROS]
    for k in range(count):
        cache.blocks.indices[begin + k] = cache.indices[k]
        cache.blocks.values[begin + k] = cache.values[k]
    add_row(cache, t, count, offset, 0.0)


@kernel
def moved_behind(cache, t):
    """Append term t again, with space for one more plane, and close t; return the new term."""
    blocks, numbers = cache.blocks, cache.numbers
    first, m = blocks.start[t], blocks.n_planes[t]
    last = open_term(cache, cache.example[t], m + 1)
    numbers.alpha[blocks.start[last]] = numbers.alpha[first]
    for p in range(1, m):
        begin, end = blocks.begin[first + p], blocks.begin[first + p + 1]
        to = cache.used[NONZEROS]
        for k in range(end - begin):
            blocks.indices[to + k] = blocks.indices[begin + k]
            blocks.values[to + k] = blocks.values[begin + k]
        add_row(cache, last, end - begin, blocks.offset[first + p], numbers.alpha[first + p])
    close(cache, t)
    return last


@kernel
def close(cache, t):
    """Close a term: its example is no longer cached."""
    cache.used[PLANES] -= cache.blocks.n_planes[t] - 1
    cache.blocks.n_planes[t] = 0
    cache.example[t] = -1


@kernel
def find_candidate(cache, t, count, offset):
    """Return the index of the plane of term t that equals the row in the scratch; 0 if none."""
    blocks = cache.blocks
    for p in range(1, blocks.n_planes[t]):
        slot = blocks.start[t] + p
        begin = blocks.begin[slot]
        same = blocks.begin[slot + 1] - begin == count and blocks.offset[slot] == offset
        for k in range(count if same else 0):
            same &= blocks.indices[begin + k] == cache.indices[k]
            same &= blocks.values[begin + k] == cache.values[k]
        if same:
            return p
    return 0


@kernel
def compact(cache, keeps_idle):
    """Reclaim the space of closed terms; unless ``keeps_idle``, drop all planes with α = 0, too.

    A term left with the ground truth's plane alone is closed. Σ_p α_p φ^{ip} stays, and so does w.
    """
    blocks, numbers, used = cache.blocks, cache.numbers, cache.used
    gram, kept = numbers.gram, numbers.order
    terms, slots, nonzeros, entries, planes = 0, 0, 0, 0, 0
    for t in range(used[TERMS]):
        first, gram_first, room = blocks.start[t], numbers.gram_start[t], numbers.room[t]
        m = 0
        for p in range(blocks.n_planes[t]):
            if p == 0 or keeps_idle or numbers.alpha[first + p] > 0.0:
                kept[m] = p
                m += 1
        if m < 2:
            continue
        cache.example[terms] = cache.example[t]
        blocks.start[terms], numbers.gram_start[terms] = slots, entries
        blocks.n_planes[terms] = numbers.room[terms] = numbers.known[terms] = m
        for q in range(m):
            slot = first + kept[q]
            for r in range(m):
                gram[entries + q * m + r] = gram[gram_first + kept[q] * room + kept[r]]
            begin, end = blocks.begin[slot], blocks.begin[slot + 1]
            blocks.begin[slots] = nonzeros
            for k in range(end - begin if nonzeros < begin else 0):
                blocks.indices[nonzeros + k] = blocks.indices[begin + k]
                blocks.values[nonzeros + k] = blocks.values[begin + k]
            nonzeros += end - begin
            blocks.begin[slots + 1] = nonzeros
            blocks.offset[slots] = blocks.offset[slot]
            blocks.square[slots] = blocks.square[slot]
            numbers.alpha[slots] = numbers.alpha[slot]
            slots += 1
        entries += m * m
        planes += m - 1
        terms += 1
    for t in range(terms, used[TERMS]):
        blocks.n_planes[t] = 0
        cache.example[t] = -1
    used[TERMS], used[SLOTS], used[NONZEROS] = terms, slots, nonzeros
    used[ENTRIES], used[PLANES] = entries, planes


@kernel
def add_terms(cache, terms, scale, v):
    """Add scale · Σ_tp α_tp n φ^{tp}⋆ over some terms to v, and return Σ_tp α_tp n φ^{tp}∘."""
    blocks = cache.blocks
    offset = 0.0
    for t in terms:
        for slot in range(blocks.start[t], blocks.start[t] + blocks.n_planes[t]):
            alpha = cache.numbers.alpha[slot]
            offset += alpha * blocks.offset[slot]
            factor = scale * alpha
            for k in range(blocks.begin[slot], blocks.begin[slot + 1]):
                v[blocks.indices[k]] += factor * blocks.values[k]
    return offset


@kernel
def look(cache, w, lowest):
    """Return Σ_t max_p ⟨n φ^{tp}, [w 1]⟩; set ``lowest[t]`` to the least value where α > 0."""
    blocks = cache.blocks
    total = 0.0
    for t in range(cache.used[TERMS]):
        operations.gather(blocks, w, t)
        highest = 0.0
        lowest[t] = np.inf
        for p in range(blocks.n_planes[t]):
            value = operations.plane_value(blocks, t, p)
            highest = max(highest, value)
            if cache.numbers.alpha[blocks.start[t] + p] > 0.0:
                lowest[t] = min(lowest[t], value)
        total += highest
    return total


# ---- as arrays, and back: everything except scratch, in the order in which it is stored --------

_OF_BLOCKS = ("start", "n_planes", "offset", "begin", "indices", "values", "square")
_OF_NUMBERS = ("room", "gram_start", "known", "alpha", "gram")


@state.of.register
def _(cache: Cache) -> dict[str, np.ndarray]:
    return {
        **{name: getattr(cache.blocks, name) for name in _OF_BLOCKS},
        **{name: getattr(cache.numbers, name) for name in _OF_NUMBERS},
        "example": cache.example,
        "used": cache.used,
    }


def _slack(found: Any, cache: Cache) -> np.ndarray:
    """Return what must not be negative, or the indices in a cache lead out of its arrays."""
    used, slots, end = found["used"], found["offset"].size, found["used"][TERMS]
    of_terms = (found[name] for name in ("start", "n_planes", "room", "gram_start", "known"))
    start, m, room, gram_start, known = of_terms
    sizes = cache.example.size, slots, found["values"].size, found["gram"].size, slots
    slack = (
        np.array(sizes) - used,
        slots - room,
        np.diff(start[:end], append=used[SLOTS]) - m[:end],
        np.diff(gram_start[:end], append=used[ENTRIES]) - room[:end] ** 2,
        np.diff(found["begin"][: used[SLOTS] + 1], append=used[NONZEROS]),
        room[:end] - m[:end],
        -m[end:],  # no planes behind the last term
        -np.abs(known - m)[m > 0],
        -np.abs(used[PLANES:] - np.maximum(m - 1, 0).sum()),
        -np.not_equal(found["example"] >= 0, m > 0).astype(np.int64),
    )
    return np.concatenate(slack)


_LIMITS = {
    **dict.fromkeys(("offset", "values", "gram"), Limits(size=...)),
    **dict.fromkeys(("square", "alpha"), Limits(size=lambda found, _: found["offset"].size)),
    "begin": Limits(size=lambda found, _: found["offset"].size + 1),
    "indices": Limits(size=lambda found, _: found["values"].size, below="blocks.dense.size"),
    "slack": Limits(of=_slack, least=0),
}


@state.like.register
def _(cache: Cache, given: Any) -> Cache:
    found = state.parts_like(state.of(cache), given, _LIMITS, cache)
    blocks = cache.blocks._replace(**{name: found[name] for name in _OF_BLOCKS})
    numbers = cache.numbers._replace(**{name: found[name] for name in ("start", *_OF_NUMBERS)})
    made = cache._replace(
        blocks=blocks, numbers=numbers, example=found["example"], used=found["used"]
    )
    return _with_scratch(made, int(found["room"][: made.used[TERMS]].max(initial=0)))
