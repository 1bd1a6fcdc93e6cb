"""Features with names as the columns of a sparse matrix.

The features of a part are names, each of value 1, or a mapping from names to values, where a text
becomes the feature ``name=text`` of value 1. Columns are numbered in order of first occurrence, as
by scikit-learn's ``DictVectorizer(sort=False)``. One pass looks up all names of all parts in one
dict: a call for each part or name would take longer than the look-up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, repeat
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.base.errors import shown
from ssvm_bench.datasets.arrays import ends_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_TEXTS = {str, np.str_}
"""Types of texts that ``str`` returns as they are: equal texts have equal names of features."""

_USUAL = {*_TEXTS, bool, int, float}
"""Types of values of which only the size has to be checked."""

_WRONG = "X has features that are neither numbers nor texts, or are NaN"


class _Columns(dict[Any, int]):
    """Name of a feature → its column; a name that is looked up first has the next one."""

    def __missing__(self, name: Any) -> int:
        self[name] = column = len(self)
        return column


class _OfName(dict[Any, int]):
    """Value of one name → column: that of ``name=text``, or that of the name for any number.

    Parameters
    ----------
    name : object
    column : callable
        Name of a feature → its column.
    remembers : bool
        Whether to keep the columns of texts: a repeated text is then not joined to its name again.
    """

    def __init__(self, name: Any, column: Callable[[Any], int], remembers: bool) -> None:
        self.name, self.column, self.remembers = name, column, remembers

    def __missing__(self, value: Any) -> int:
        is_text = isinstance(value, str)
        column = self.column(f"{self.name!s}={value!s}" if is_text else self.name)
        if self.remembers if is_text else value in (0, 1):
            self[value] = column
        return column


class _ByName(dict[Any, _OfName]):
    """Name → its `_OfName`, with these parameters."""

    def __init__(self, column: Callable[[Any], int], remembers: bool) -> None:
        self.column, self.remembers = column, remembers

    def __missing__(self, name: Any) -> _OfName:
        made = _OfName(name, self.column, self.remembers)
        if self.remembers and type(name) is str:  # 1 and True are equal, and other texts
            self[name] = made
        return made


def numbered(
    features: Sequence[Any], place: Callable[[int], str], known: dict[Any, int] | None = None
) -> tuple[csr_array, dict[Any, int]]:
    """Return named features as a matrix, and the column of each name.

    Parameters
    ----------
    features : sequence of mapping, or of list, tuple or set of str
        The features of each part.
    place : callable
        Returns the name of a part in messages.
    known : dict, optional
        Name → column; other features are left out. None: all have columns.

    Returns
    -------
    x : csr_array, shape (parts, f)
        uint8 if no part is a mapping, else float64; without repeated entries.
    columns : dict
        Name → column.

    Raises
    ------
    ValueError
        Features do not have the form above, or a number is not finite.
    """
    from scipy.sparse import csr_array

    if not {*map(type, features)} <= {list, tuple, dict}:
        _check(features, place)
        features = [*map(_plain, features)]
    mapped = dict in {*map(type, features)}
    if mapped:
        features = [each if type(each) is dict else dict.fromkeys(each, 1.0) for each in features]
    learns, kinds = known is None, set[type]()
    if mapped or not learns:
        kinds = {*map(type, chain.from_iterable(features))}
    of_values = {*map(type, _values(features))} if mapped else set()
    if not (of_values <= _USUAL if mapped else all(issubclass(kind, str) for kind in kinds)):
        _check(features, place)
    values = None
    if mapped:
        with suppress(TypeError, ValueError, OverflowError):  # as of numbers that are too large
            ones = (1.0 if isinstance(value, str) else value for value in _values(features))
            values = np.fromiter(ones, np.float64)
        if values is None or not np.isfinite(values).all():
            _check(features, place)
            raise ValueError(_WRONG)
    columns = _Columns() if known is None else known
    ends = ends_of(np.fromiter(map(len, features), np.int64, len(features)))
    try:
        found = _found(features, columns, learns, mapped, kinds | of_values, int(ends[-1]))
    except TypeError:  # a name that is not hashable
        _check(features, place)
        raise
    if learns and not mapped and not all(isinstance(name, str) for name in columns):
        _check(features, place)
    if not learns:
        kept = found >= 0
        ends, found = ends_of(kept)[ends], found[kept]
        values = None if values is None else values[kept]
    if values is None:
        values = np.ones(found.size, np.uint8)
    indptr = ends.astype(np.int32 if ends[-1] < 1 << 31 else np.int64)  # of scipy: as the columns
    x = csr_array((values, found, indptr), shape=(len(features), len(columns)))
    x.sum_duplicates()
    if not mapped:
        x.data[:] = 1  # a repeated name has no other value
    return x, dict(columns) if learns else columns


def _found(
    features: Sequence[Any],
    columns: Any,
    learns: bool,
    mapped: bool,
    kinds: set[type],
    size: int,
) -> np.ndarray:
    """Return the column of each name of all parts; −1 where it is not known."""
    if not mapped:
        names = chain.from_iterable(features)
        if learns:
            return np.fromiter(map(columns.__getitem__, names), np.int32, size)
        return np.fromiter(map(columns.get, names, repeat(-1)), np.int32, size)
    column = columns.__getitem__ if learns else lambda name: columns.get(name, -1)
    remembers = all(kind in _TEXTS or not issubclass(kind, str) for kind in kinds)
    of_names = map(_ByName(column, remembers).__getitem__, chain.from_iterable(features))
    return np.fromiter(map(dict.__getitem__, of_names, _values(features)), np.int32, size)


def _values(features: Sequence[dict[Any, Any]]) -> Iterator[Any]:
    return chain.from_iterable(map(dict.values, features))


def _plain(each: Any) -> Any:
    """Return the features of a part as a list or a dict."""
    if isinstance(each, Mapping):
        return dict(each)
    # the order of a set varies from run to run
    return sorted(each) if isinstance(each, set | frozenset) else [*each]


def _check(features: Sequence[Any], place: Callable[[int], str]) -> None:
    """Raise ``ValueError`` for the first features that `numbered` does not take, if there are any.

    Numbers that are too large for float64 are among these.
    """
    for k, each in enumerate(features):
        if isinstance(each, Mapping):
            for name, value in each.items():
                if not (isinstance(value, str) or _is_finite(value)):
                    at = f"{shown(repr(name))} of {place(k)} is {shown(repr(value))}"
                    raise ValueError(f"{_WRONG}: {at}")
        else:
            is_list = isinstance(each, list | tuple | set | frozenset)
            if not is_list or not all(isinstance(name, str) for name in each):
                raise ValueError(
                    "features with names of a part must be a mapping or a list of texts, got "
                    f"{shown(repr(each))} as {place(k)}"
                )


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, Number) and math.isfinite(value)  # type: ignore[arg-type]
    except (ArithmeticError, TypeError, ValueError):  # too large, complex, or NaN as decimals are
        return False
