"""Ranges of weights as they are written in an option: ``[0-9,15,20-]``, ``all`` or ``none``.

A range names its first and its last weight, in the layout of ``weights.npz``, and both belong to
it; without a last one, it goes to the end. (A colon would not do: YAML reads ``1:10`` as 70.)

>>> parse("solver.nonnegative", ("15", "0-4", "5-9"))
(Range(first=0, last=9), Range(first=15, last=15))
>>> text(parse("solver.nonnegative", (15, "0-9")))
'0-9,15'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.config.validation import check_choice

NONE, ALL = "none", "all"

Given: TypeAlias = str | tuple[int | str, ...]
"""What an option of this kind holds."""

_FORM = re.compile(r"(\d{1,18})(-(\d{0,18}))?", re.ASCII)

_OPEN = 10**18
"""Beyond any weight: the last one of a range without."""


class Range(NamedTuple):
    """Some weights in a row: from ``first`` to ``last``, which belongs to them."""

    first: int
    last: int


_EVERY = Range(0, _OPEN)


def parse(option: str, given: str | Sequence[int | str]) -> tuple[Range, ...]:
    """Return the ranges in their order, those that meet joined.

    Raises
    ------
    ConfigError
        If one is written in another way or empty, or two overlap.
    """
    if isinstance(given, str):
        check_choice(option, given, (NONE, ALL))
        return (_EVERY,) if given == ALL else ()
    if not given:
        raise ConfigError(f"{option} is an empty list: write {NONE}, {ALL}, or ranges in brackets.")
    found = sorted(_range(option, str(item)) for item in given)
    joined = [found[0]]
    for before, after in pairwise(found):
        if after.first <= before.last:
            raise ConfigError(f"{option} has ranges that overlap, at the weight {after.first}.")
        if after.first == before.last + 1:
            joined[-1] = Range(joined[-1].first, after.last)
        else:
            joined.append(after)
    return tuple(joined)


def _range(option: str, item: str) -> Range:
    match = _FORM.fullmatch(item)
    if match is None:
        raise ConfigError(
            f"{option} must be {NONE}, {ALL}, or weights and ranges of weights in brackets, such "
            f"as [0-9,15,20-], got {shown(item)}."
        )
    first = int(match[1])
    last = int(match[3] or _OPEN) if match[2] else first
    if last < first:
        raise ConfigError(f"{option} has an empty range: {shown(item)} ends before it begins.")
    return Range(first, last)


def canonical(option: str, given: Given) -> Given:
    """Return the same, written in one way, for hashes; raise what `parse` does.

    >>> canonical("solver.nonnegative", ("5-9", "0-4")), canonical("solver.nonnegative", ("0-",))
    (('0-9',), 'all')
    """
    found = parse(option, given)
    return ALL if found == (_EVERY,) else tuple(text(found).split(",")) if found else NONE


def text(ranges: Sequence[Range]) -> str:
    """Return the ranges in one way of writing them."""
    return ",".join(
        str(first) if first == last else f"{first}-{last if last < _OPEN else ''}"
        for first, last in ranges
    )


def chosen(option: str, ranges: Sequence[Range], d: int) -> np.ndarray:
    """Return which of d weights are in a range, as truth values of shape (d,).

    Raises
    ------
    ConfigError
        If there is one in no place of theirs.
    """
    mask = np.zeros(d, bool)
    for each in ranges:
        end = each.first if each.last == _OPEN else each.last
        if end >= d:
            raise ConfigError(
                f"{option} names the weight {end}, and with this dataset and oracle there are "
                f"d = {d}, from 0 to {d - 1}."
            )
        mask[each.first : each.last + 1] = True
    return mask
