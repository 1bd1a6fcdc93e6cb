"""The planes of a storage as arrays, and back into a new storage of the same terms.

A state says what there is, not where it lies: of every term its planes one after the other, without
the room that they have. So it is all known from the counts where a term begins. Kernels do not look
at what they read: every index is checked here, against the counts and against what is of the
problem.

Labelings are here, rows in :mod:`.stored_rows`, weights and the cache in :mod:`.stored_weights`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from ssvm_bench.base.state import Stateful, array, expect, like
from ssvm_bench.planes.labelings import Labelings


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


def entries(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return start[i], …, start[i] + count[i] − 1 for every i, one after the other."""
    before = starts_of(count)
    return np.arange(int(count.sum())) + np.repeat(start - before, count)


def starts_of(count: np.ndarray) -> np.ndarray:
    """Return where each of some runs of entries begins, one after the other."""
    return np.cumsum(count) - count


def taken(
    own: Mapping[str, np.ndarray], state: Mapping[str, Any], fixed: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Return the arrays of a state; but for ``fixed`` ones, they may have another length."""
    expect(isinstance(state, Mapping) and own.keys() == state.keys(), "has other names")
    return {
        name: array(like_it, state[name], like_it.shape if name in fixed else None)
        for name, like_it in own.items()
    }


def check_sizes(found: Mapping[str, np.ndarray], size: int, *names: str) -> None:
    """Check the number of entries of some arrays."""
    for name in names:
        expect(found[name].size == size, f"{name} has {found[name].size} entries, not {size}")


def check_below(found: np.ndarray, end: Any, name: str) -> None:
    """Check that indices, none of them negative, are below an end."""
    expect(bool((found < end).all()), f"{name} has an index that is out of range")


def check_distinct(of: np.ndarray, found: np.ndarray, name: str) -> None:
    """Check that no two entries with the same number in ``of`` are the same."""
    keys = of * (int(found.max(initial=0)) + 1) + found
    expect(np.unique(keys).size == keys.size, f"{name} has an entry twice")


# ---- labelings ---------------------------------------------------------------------------------


def _lengths(blocks: Labelings) -> np.ndarray:
    return np.diff(blocks.features.offsets)


@planes_of.register
def _(blocks: Labelings) -> dict[str, np.ndarray]:
    n_planes, moves_count = blocks.n_planes, blocks.moves_count
    slots = entries(blocks.start, n_planes)
    places = entries(blocks.plane_start, n_planes * _lengths(blocks))
    moves = entries(blocks.moves_start, moves_count)
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
    found = taken(planes_of(blocks), state, counts)
    n_planes, seen_count, moves_count = (found[name] for name in counts if name != counts[1])
    features, lengths = blocks.features, _lengths(blocks)
    n, K = lengths.size, features.n_labels
    check_below(n_planes, found["offset"].size + 1, "n_planes")  # so that no sum overflows
    check_below(seen_count, K + 1, "seen_count")
    check_below(moves_count, blocks.move_theta.size + 1, "moves_count")
    check_sizes(found, int(n_planes.sum()), "offset", "active")
    check_sizes(found, int((n_planes * lengths).sum()), "labels", "links")
    check_sizes(found, int(seen_count.sum()), "seen", "mu")
    check_sizes(found, int(moves_count.sum()), "moves", "nu")

    expect(bool((seen_count > 0).all()), "seen_count has a part without labels")
    check_below(found["seen"], K, "seen")
    check_distinct(np.repeat(np.arange(seen_count.size), seen_count), found["seen"], "seen")
    first = found["seen"][starts_of(seen_count)]
    expect(np.array_equal(first, features.truth), "seen does not begin with the true labels")

    check_below(found["moves"], K * features.stride, "moves")
    of_moves = np.repeat(np.arange(n), moves_count)
    check_distinct(of_moves, found["moves"], "moves")
    if features.transitions:
        later = np.ones(features.truth.size, bool)
        later[features.offsets[:-1]] = False
        (at,) = np.nonzero(later)
        true = features.truth[at].astype(np.int64) * features.stride + features.truth[at - 1]
        terms, size = np.repeat(np.arange(n), lengths)[at], K * features.stride
        there = np.isin(terms * size + true, of_moves * size + found["moves"])
        expect(bool(there.all()), "moves lacks one of the true labels")

    terms = np.repeat(np.arange(n), n_planes)
    parts = entries(features.offsets[:-1][terms], lengths[terms])
    check_below(found["labels"], seen_count[parts], "labels")
    links = np.repeat(moves_count[terms], lengths[terms])
    check_below(found["links"], np.maximum(links, 1), "links")

    width = max(blocks.seen.shape[1], int(seen_count.max()))
    kept = np.arange(width) < seen_count[:, None]
    for name in ("seen", "mu"):
        flat, found[name] = found[name], np.zeros(kept.shape, found[name].dtype)
        found[name][kept] = flat
    starts = {
        "start": starts_of(n_planes),
        "plane_start": starts_of(n_planes * lengths),
        "moves_start": starts_of(moves_count),
    }
    return blocks._replace(**found, **starts)
