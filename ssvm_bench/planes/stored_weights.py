"""Weights of planes, and the cache, as arrays and back: see :mod:`.stored`.

The cache of :mod:`.cache` is stored as it lies there, as its closed terms count when one is drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.base.state import expect
from ssvm_bench.planes import simplex
from ssvm_bench.planes.cache import ENTRIES, NONZEROS, PLANES, SLOTS, TERMS, Cache
from ssvm_bench.planes.simplex import Simplex
from ssvm_bench.planes.stored import check_below, check_sizes, entries, taken


def weights_of(numbers: Simplex) -> dict[str, np.ndarray]:
    """Return the weights and inner products of planes."""
    known = numbers.known
    planes = entries(numbers.start, np.maximum(known, 1))  # the first has its weight before it is
    gram = numbers.gram
    if gram.size:
        first, number = np.repeat(numbers.gram_start, known), entries(np.zeros_like(known), known)
        gram_rows = first + number * np.repeat(numbers.room, known)
        gram = gram[entries(gram_rows, np.repeat(known, known))]
    return {
        "known": known,
        "square": numbers.square,
        "alpha": numbers.alpha[planes],
        "product": numbers.product[planes],
        "gram": gram,
    }


def with_weights(numbers: Simplex, state: Any) -> Simplex:
    """Return new numbers with what others knew, to be `fitted` to the planes.

    Raises
    ------
    StateError
        If that cannot have been.
    """
    found = taken(weights_of(numbers), state, ("known", "square"))
    known, count = found["known"], np.maximum(found["known"], 1)
    check_below(known, found["alpha"].size + 1, "known")
    check_sizes(found, int(count.sum()), "alpha", "product")
    with_gram = numbers.gram.size > 0
    check_sizes(found, int(np.square(known).sum()) if with_gram else 0, "gram")
    made = simplex.no_weights(count, found["square"], known, with_gram)
    planes = entries(made.start, count)
    made.alpha[planes], made.product[planes] = found["alpha"], found["product"]
    if with_gram:
        first, number = np.repeat(made.gram_start, known), entries(np.zeros_like(known), known)
        gram_rows = first + number * np.repeat(made.room, known)
        made.gram[entries(gram_rows, np.repeat(known, known))] = found["gram"]
    return made


def fitted(numbers: Simplex, n_planes: np.ndarray) -> Simplex:
    """Return the numbers with room for one more of so many planes; they know no others."""
    expect(bool((numbers.known <= n_planes).all()), "has weights of planes that are not there")
    return simplex.reserve(numbers, n_planes + 1)


# ---- the cache ---------------------------------------------------------------------------------

_OF_BLOCKS = ("start", "n_planes", "offset", "begin", "indices", "values", "square")
_OF_NUMBERS = ("room", "gram_start", "known", "alpha", "gram")


def cache_of(cache: Cache) -> dict[str, np.ndarray]:
    """Return all of a cache but its scratch."""
    return {
        **{name: getattr(cache.blocks, name) for name in _OF_BLOCKS},
        **{name: getattr(cache.numbers, name) for name in _OF_NUMBERS},
        "example": cache.example,
        "used": cache.used,
    }


def with_cache(cache: Cache, state: Any, n: int) -> Cache:
    """Return a new cache, of a problem of n examples, with what there was in another one.

    Raises
    ------
    StateError
        If that cannot have been.
    """
    of_terms = "start", "n_planes", "room", "gram_start", "known", "example", "used"
    found = taken(cache_of(cache), state, of_terms)
    used, slots = found["used"], found["offset"].size
    check_sizes(found, slots, "square", "alpha")
    check_sizes(found, slots + 1, "begin")
    check_sizes(found, found["values"].size, "indices")
    sizes = cache.example.size, slots, found["values"].size, found["gram"].size, slots
    check_below(used, np.array(sizes) + 1, "used")
    check_below(found["room"], slots + 1, "room")

    start, m, room, gram_start = (found[name][: used[TERMS]] for name in of_terms[:4])
    begin = found["begin"][: used[SLOTS] + 1]
    ordered = (  # where a term ends, and where the next one begins
        (start + m, np.append(start[1:], used[SLOTS])),
        (gram_start + room**2, np.append(gram_start[1:], used[ENTRIES])),
        (begin, np.append(begin[1:], used[NONZEROS])),
        (m, room),
    )
    for one, other in ordered:
        expect(bool((one <= other).all()), "has planes that overlap")
    example = found["example"][: used[TERMS]]
    check_below(example, n, "example")
    live = m > 0
    expect(bool((live == (example >= 0)).all()), "example is none of the planes")
    expect(not found["n_planes"][used[TERMS] :].any(), "has planes behind the last term")
    expect(bool((found["known"][: used[TERMS]][live] == m[live]).all()), "known is another number")
    expect(used[PLANES] == m.sum() - live.sum(), "used counts other planes")
    check_below(found["indices"], cache.blocks.dense.size, "indices")

    most = int(room.max(initial=0))
    scratch = {name: np.zeros(most) for name in ("values", "change", "row")}
    return cache._replace(
        blocks=cache.blocks._replace(
            **{name: found[name] for name in _OF_BLOCKS},
            height=np.zeros(most),
            change=np.zeros(most),
        ),
        numbers=cache.numbers._replace(
            **{name: found[name] for name in _OF_NUMBERS},
            **scratch,
            order=np.zeros(most, np.int64),
            start=found["start"],
        ),
        example=found["example"],
        used=used,
    )
