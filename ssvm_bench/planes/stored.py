"""Conversion of a storage's planes to arrays, and back to a new storage of the same terms.

A state has the planes of every term, one term after the other, without unused space. So the counts
determine where each term begins. Kernels do not check the indices that they read; therefore every
index of a state is checked, against the counts and the sizes of the problem.

Every storage registers its own `state.of` and `state.like`; this module has what they share.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ssvm_bench.base.state import expect, parts_like


def entries(start: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return start[i], …, start[i] + count[i] − 1 for every i, one after the other."""
    before = starts_of(count)
    return np.arange(int(count.sum())) + np.repeat(start - before, count)


def starts_of(count: np.ndarray) -> np.ndarray:
    """Return the index of the first entry of each group, for groups stored one after the other."""
    return np.cumsum(count) - count


def lying(
    storage: Any, whole: tuple[str, ...], in_use: Mapping[Any, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return arrays of a storage by name: the ``whole`` ones, and of others the entries in use."""
    found = {name: getattr(storage, name) for name in whole}
    for names, entries in in_use.items():
        found |= {name: getattr(storage, name)[entries] for name in names}
    return found


def taken(
    own: Mapping[str, np.ndarray], state: Any, *fixed: str, **ends: Any
) -> dict[str, np.ndarray]:
    """Return the arrays of a state by name, after a check that entries are below ``ends``.

    All arrays except the ``fixed`` ones may differ in length from those of ``own``.
    """
    found = parts_like(own, state, own.keys() - {*fixed})
    for name, end in ends.items():
        check_below(found[name], end, name)
    return found


def check_sizes(found: Mapping[str, np.ndarray], size: int, *names: str) -> None:
    """Check the number of entries of some arrays."""
    for name in names:
        expect(found[name].size == size, f"{name} has {found[name].size} entries, not {size}")


def check_below(found: np.ndarray, end: Any, name: str) -> None:
    """Check that indices, which are not negative, are below an end."""
    expect(bool((found < end).all()), f"{name} has an index that is out of range")


def check_distinct(of: np.ndarray, found: np.ndarray, name: str) -> None:
    """Check that no two entries with the same number in ``of`` are equal."""
    keys = of * (int(found.max(initial=0)) + 1) + found
    expect(np.unique(keys).size == keys.size, f"{name} has an entry twice")
