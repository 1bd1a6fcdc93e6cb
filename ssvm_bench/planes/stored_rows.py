"""Planes that are rows, as arrays and back: see :mod:`.stored`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ssvm_bench.planes import rows
from ssvm_bench.planes.given_rows import BETA, STRIDE, VIOLATION, LineRows
from ssvm_bench.planes.rows import Rows
from ssvm_bench.planes.stored import (
    check_below,
    check_distinct,
    check_sizes,
    entries,
    planes_of,
    starts_of,
    taken,
    with_planes,
)


@planes_of.register
def _(blocks: Rows) -> dict[str, np.ndarray]:
    slots = entries(blocks.start, blocks.n_planes)
    nonzeros = entries(blocks.begin[slots], blocks.length[slots])
    support = entries(blocks.support_start, blocks.size)
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
    found = taken(planes_of(blocks), state, ("n_planes", "term_offset", "size"))
    n_planes, length, size = found["n_planes"], found["length"], found["size"]
    for name, of in (("n_planes", "offset"), ("size", "phi"), ("length", "values")):
        check_below(found[name], found[of].size + 1, name)
    slots, coordinates, nonzeros = (int(count.sum()) for count in (n_planes, size, length))
    check_sizes(found, slots, "offset", "active", "length")
    check_sizes(found, nonzeros, "indices", "values")
    check_sizes(found, coordinates, "support", "phi")
    check_below(found["indices"], np.repeat(np.repeat(size, n_planes), length), "indices")
    check_below(found["support"], blocks.w_here.size, "support")
    check_distinct(np.repeat(np.arange(size.size), size), found["support"], "support")

    room = n_planes + 1  # one for a candidate
    start = starts_of(room)
    places = entries(start, n_planes)
    found["begin"] = starts_of(length)
    for name in rows.OF_SLOTS:
        flat, found[name] = found[name], np.zeros(room.sum(), found[name].dtype)
        found[name][places] = flat
    return blocks._replace(
        **found,
        start=start,
        room=room,
        width=size.copy(),
        support_start=starts_of(size),
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
    found = taken(planes_of(blocks), state, ("beta", "violation"))
    check_below(np.abs(found["beta"]), 1.0 + 1e-9, "beta")
    blocks.numbers[BETA::STRIDE] = found["beta"]
    blocks.numbers[VIOLATION::STRIDE] = found["violation"]
    return blocks
