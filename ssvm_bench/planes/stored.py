"""The planes of a storage as arrays, and back into a new storage of the same terms.

A state says what there is, not where it lies: of every term its planes one after the other, without
the room that they have. So it is all known from the counts where a term begins. Kernels do not look
at what they read: every index is checked here, against the counts and against what is of the
problem.

The cache of :mod:`ssvm_bench.planes.cache` is stored as it lies there, as its closed terms count
when one is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from ssvm_bench.base.state import Stateful, array, expect, like
from ssvm_bench.planes import rows, simplex
from ssvm_bench.planes.cache import ENTRIES, NONZEROS, PLANES, SLOTS, TERMS, Cache
from ssvm_bench.planes.given_rows import BETA, STRIDE, VIOLATION, LineRows
from ssvm_bench.planes.labelings import Labelings
from ssvm_bench.planes.rows import Rows
from ssvm_bench.planes.simplex import Simplex


class StoredIterate(Stateful):
    """What a dual iterate knows: φ, and what there is in its storage.

    Attributes
    ----------
    N : int
        Most planes of a term.
    blocks : NamedTuple
        The storage.
    """

    N: int
    blocks: Any
    _state: Any

    def state(self) -> dict[str, Any]:
        """Return φ, and the planes of the storage."""
        return {**self._shared(), "blocks": planes_of(self.blocks)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """See `Stateful`; the storage has no more room than its planes need."""
        shared = self._shared()
        expect(state.keys() == {*shared, "blocks"}, "has other names")
        self._state = self._state._replace(**like(shared, {name: state[name] for name in shared}))
        self.blocks = with_planes(self.blocks, state["blocks"])
        expect(bool((self.blocks.n_planes <= self.N).all()), "has more planes than there may be")

    def _shared(self) -> dict[str, Any]:
        return {name: getattr(self._state, name) for name in ("w", "offset", "steps", "now")}


@singledispatch
def planes_of(blocks: Any) -> dict[str, np.ndarray]:
    """Return what there is in a storage; nothing where planes are given and weights elsewhere."""
    return {}


@singledispatch
def with_planes(blocks: Any, state: Mapping[str, Any]) -> Any:
    """Return a new storage with what there was in another one.

    Raises
    ------
    StateError
        If that cannot have been.
    """
    expect(not state, "has other names")
    return blocks


def _entries(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return start[i], …, start[i] + count[i] − 1 for every i, one after the other."""
    before = _starts(count)
    return np.arange(int(count.sum())) + np.repeat(start - before, count)


def _starts(count: np.ndarray) -> np.ndarray:
    return np.cumsum(count) - count


def _taken(
    own: Mapping[str, np.ndarray], state: Mapping[str, Any], fixed: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Return the arrays of a state; but for ``fixed`` ones, they may have another length."""
    expect(isinstance(state, Mapping) and own.keys() == state.keys(), "has other names")
    return {
        name: array(like_it, state[name], like_it.shape if name in fixed else None)
        for name, like_it in own.items()
    }


def _check_sizes(found: Mapping[str, np.ndarray], size: int, *names: str) -> None:
    for name in names:
        expect(found[name].size == size, f"{name} has {found[name].size} entries, not {size}")


def _check_below(found: np.ndarray, end: Any, name: str) -> None:
    expect(bool((found < end).all()), f"{name} has an index that is out of range")


def _check_distinct(of: np.ndarray, found: np.ndarray, name: str) -> None:
    """Check that no two entries with the same number in ``of`` are the same."""
    keys = of * (int(found.max(initial=0)) + 1) + found
    expect(np.unique(keys).size == keys.size, f"{name} has an entry twice")


# ---- labelings ---------------------------------------------------------------------------------


def _lengths(blocks: Labelings) -> np.ndarray:
    return np.diff(blocks.features.offsets)


@planes_of.register
def _(blocks: Labelings) -> dict[str, np.ndarray]:
    n_planes, moves_count = blocks.n_planes, blocks.moves_count
    slots = _entries(blocks.start, n_planes)
    places = _entries(blocks.plane_start, n_planes * _lengths(blocks))
    moves = _entries(blocks.moves_start, moves_count)
    seen = np.arange(blocks.seen.shape[1]) < blocks.seen_count[:, None]
    return {
        "n_planes": n_planes,
        "offset": blocks.offset[slots],
        "active": blocks.active[slots],
        "term_offset": blocks.term_offset,
        "seen_count": blocks.seen_count,
        "seen": blocks.seen[seen],
        "mu": blocks.mu[seen],
        "moves_count": moves_count,
        "moves": blocks.moves[moves],
        "nu": blocks.nu[moves],
        "labels": blocks.labels[places],
        "links": blocks.links[places],
    }


@with_planes.register
def _(blocks: Labelings, state: Mapping[str, Any]) -> Labelings:
    counts = "n_planes", "term_offset", "seen_count", "moves_count"
    found = _taken(planes_of(blocks), state, counts)
    n_planes, seen_count, moves_count = (found[name] for name in counts if name != counts[1])
    features, lengths = blocks.features, _lengths(blocks)
    n, K = lengths.size, features.n_labels
    _check_below(n_planes, found["offset"].size + 1, "n_planes")  # so that no sum overflows
    _check_below(seen_count, K + 1, "seen_count")
    _check_below(moves_count, blocks.move_theta.size + 1, "moves_count")
    _check_sizes(found, int(n_planes.sum()), "offset", "active")
    _check_sizes(found, int((n_planes * lengths).sum()), "labels", "links")
    _check_sizes(found, int(seen_count.sum()), "seen", "mu")
    _check_sizes(found, int(moves_count.sum()), "moves", "nu")

    expect(bool((seen_count > 0).all()), "seen_count has a part without labels")
    _check_below(found["seen"], K, "seen")
    _check_distinct(np.repeat(np.arange(seen_count.size), seen_count), found["seen"], "seen")
    first = found["seen"][_starts(seen_count)]
    expect(np.array_equal(first, features.truth), "seen does not begin with the true labels")

    _check_below(found["moves"], K * features.stride, "moves")
    of_moves = np.repeat(np.arange(n), moves_count)
    _check_distinct(of_moves, found["moves"], "moves")
    if features.transitions:
        later = np.ones(features.truth.size, bool)
        later[features.offsets[:-1]] = False
        (at,) = np.nonzero(later)
        true = features.truth[at].astype(np.int64) * features.stride + features.truth[at - 1]
        terms, size = np.repeat(np.arange(n), lengths)[at], K * features.stride
        there = np.isin(terms * size + true, of_moves * size + found["moves"])
        expect(bool(there.all()), "moves lacks one of the true labels")

    terms = np.repeat(np.arange(n), n_planes)
    parts = _entries(features.offsets[:-1][terms], lengths[terms])
    _check_below(found["labels"], seen_count[parts], "labels")
    links = np.repeat(moves_count[terms], lengths[terms])
    _check_below(found["links"], np.maximum(links, 1), "links")

    width = max(blocks.seen.shape[1], int(seen_count.max()))
    kept = np.arange(width) < seen_count[:, None]
    for name in ("seen", "mu"):
        flat, found[name] = found[name], np.zeros(kept.shape, found[name].dtype)
        found[name][kept] = flat
    starts = {
        "start": _starts(n_planes),
        "plane_start": _starts(n_planes * lengths),
        "moves_start": _starts(moves_count),
    }
    return blocks._replace(**found, **starts)


# ---- rows --------------------------------------------------------------------------------------


@planes_of.register
def _(blocks: Rows) -> dict[str, np.ndarray]:
    slots = _entries(blocks.start, blocks.n_planes)
    nonzeros = _entries(blocks.begin[slots], blocks.length[slots])
    support = _entries(blocks.support_start, blocks.size)
    return {
        "n_planes": blocks.n_planes,
        "offset": blocks.offset[slots],
        "active": blocks.active[slots],
        "term_offset": blocks.term_offset,
        "length": blocks.length[slots],
        "indices": blocks.indices[nonzeros],
        "values": blocks.values[nonzeros],
        "size": blocks.size,
        "support": blocks.support[support],
        "phi": blocks.phi[support],
    }


@with_planes.register
def _(blocks: Rows, state: Mapping[str, Any]) -> Rows:
    found = _taken(planes_of(blocks), state, ("n_planes", "term_offset", "size"))
    n_planes, length, size = found["n_planes"], found["length"], found["size"]
    for name, of in (("n_planes", "offset"), ("size", "phi"), ("length", "values")):
        _check_below(found[name], found[of].size + 1, name)
    slots, coordinates, nonzeros = (int(count.sum()) for count in (n_planes, size, length))
    _check_sizes(found, slots, "offset", "active", "length")
    _check_sizes(found, nonzeros, "indices", "values")
    _check_sizes(found, coordinates, "support", "phi")
    _check_below(found["indices"], np.repeat(np.repeat(size, n_planes), length), "indices")
    _check_below(found["support"], blocks.w_here.size, "support")
    _check_distinct(np.repeat(np.arange(size.size), size), found["support"], "support")

    room = n_planes + 1  # one for a candidate
    start = _starts(room)
    places = _entries(start, n_planes)
    found["begin"] = _starts(length)
    for name in rows.OF_SLOTS:
        flat, found[name] = found[name], np.zeros(room.sum(), found[name].dtype)
        found[name][places] = flat
    return blocks._replace(
        **found,
        start=start,
        room=room,
        width=size.copy(),
        support_start=_starts(size),
        used=np.array([room.sum(), coordinates, nonzeros, nonzeros, 0]),
    )


@planes_of.register
def _(blocks: LineRows) -> dict[str, np.ndarray]:
    return {
        "beta": blocks.numbers[BETA::STRIDE],
        "violation": blocks.numbers[VIOLATION::STRIDE],
    }


@with_planes.register
def _(blocks: LineRows, state: Mapping[str, Any]) -> LineRows:
    found = _taken(planes_of(blocks), state, ("beta", "violation"))
    _check_below(np.abs(found["beta"]), 1.0 + 1e-9, "beta")
    blocks.numbers[BETA::STRIDE] = found["beta"]
    blocks.numbers[VIOLATION::STRIDE] = found["violation"]
    return blocks


# ---- weights -----------------------------------------------------------------------------------


def weights_of(numbers: Simplex) -> dict[str, np.ndarray]:
    """Return the weights and inner products of planes."""
    known = numbers.known
    planes = _entries(numbers.start, np.maximum(known, 1))  # the first has its weight before it is
    gram = numbers.gram
    if gram.size:
        first, number = np.repeat(numbers.gram_start, known), _entries(np.zeros_like(known), known)
        gram_rows = first + number * np.repeat(numbers.room, known)
        gram = gram[_entries(gram_rows, np.repeat(known, known))]
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
    found = _taken(weights_of(numbers), state, ("known", "square"))
    known, count = found["known"], np.maximum(found["known"], 1)
    _check_below(known, found["alpha"].size + 1, "known")
    _check_sizes(found, int(count.sum()), "alpha", "product")
    with_gram = numbers.gram.size > 0
    _check_sizes(found, int(np.square(known).sum()) if with_gram else 0, "gram")
    made = simplex.no_weights(count, found["square"], known, with_gram)
    planes = _entries(made.start, count)
    made.alpha[planes], made.product[planes] = found["alpha"], found["product"]
    if with_gram:
        first, number = np.repeat(made.gram_start, known), _entries(np.zeros_like(known), known)
        gram_rows = first + number * np.repeat(made.room, known)
        made.gram[_entries(gram_rows, np.repeat(known, known))] = found["gram"]
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
    found = _taken(cache_of(cache), state, of_terms)
    used, slots = found["used"], found["offset"].size
    _check_sizes(found, slots, "square", "alpha")
    _check_sizes(found, slots + 1, "begin")
    _check_sizes(found, found["values"].size, "indices")
    sizes = cache.example.size, slots, found["values"].size, found["gram"].size, slots
    _check_below(used, np.array(sizes) + 1, "used")
    _check_below(found["room"], slots + 1, "room")

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
    _check_below(example, n, "example")
    live = m > 0
    expect(bool((live == (example >= 0)).all()), "example is none of the planes")
    expect(not found["n_planes"][used[TERMS] :].any(), "has planes behind the last term")
    expect(bool((found["known"][: used[TERMS]][live] == m[live]).all()), "known is another number")
    expect(used[PLANES] == m.sum() - live.sum(), "used counts other planes")
    _check_below(found["indices"], cache.blocks.dense.size, "indices")

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
