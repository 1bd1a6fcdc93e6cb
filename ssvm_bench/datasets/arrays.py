"""Checks of foreign arrays: all that come from a file, a Python program or a plug-in.

`array`, `csr` and `sparse` check the kind, shape and range of arrays, whether a conversion to
another type is exact, and the structure of a sparse matrix before scipy uses it. `names` checks
names of labels and features.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.base.errors import shown
from ssvm_bench.base.memory import check_room
from ssvm_bench.datasets.reading import ContentError, ensure, parsing

if TYPE_CHECKING:
    from scipy.sparse import csr_array

INTEGERS, BOOL, REAL = "iu", "b", "biuf"
"""Kinds of entries, by numpy's codes; time intervals belong to none of them."""

_WORDS = {INTEGERS: "integers", BOOL: "bool", REAL: "numbers"}

MOST_LABELS = 1 << 16
"""Labels are stored in one or two bytes each."""

LARGEST = np.float64(1e100)
"""Largest feature: ‖ϕ‖²/λ must not overflow. As a Python float, it would be ∞ beside float32."""

LARGEST_WHOLE = 1 << 53
"""Largest integer up to which float64 represents all integers exactly."""

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters forbidden in names: controls, line ends, changes of direction, surrogates."""

_INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Characters that nobody sees: those that Unicode lets displays ignore, and some blanks."""

_VISIBLE = re.compile(rf"[^\s{_INVISIBLE}]")
"""Characters of which a name needs one: neither blank nor invisible."""

_UNSEEN_END = re.compile(rf"[\s{_INVISIBLE}].*|.*[\s{_INVISIBLE}]", re.DOTALL)

_UNSEEN = "is no name: it is empty or invisible"
_MORE = "Use fewer examples, or store them as uint8 or float64, which are taken as they are."

_LABELS = np.dtype(np.uint8), np.dtype(np.uint16)


def array(
    found: Any,
    name: str,
    kind: str = INTEGERS,
    shape: tuple[int | None, ...] = (None,),
    low: float | None = None,
    high: float = LARGEST,
    row: str = "entry",
    dtype: Any = None,
) -> np.ndarray:
    """Check a foreign array; return it in this machine's byte order.

    Parameters
    ----------
    found : object
    name : str
        Its name in messages.
    kind : str
        `INTEGERS`, `BOOL` or `REAL`.
    shape : tuple
        Expected shape; None: any size.
    low, high : float
        Range of its entries; NaN is in no range. Without ``low``, the range is not checked.
    row : str
        The name of a row in messages.
    dtype : dtype, optional
        The type to return, which must represent all entries exactly; None: the array's own.

    Raises
    ------
    ContentError
        A check fails; the message says which one, and which row is out of range.
    """
    # a masked array would return the numbers behind its mask
    is_array = isinstance(found, np.ndarray) and not isinstance(found, np.ma.MaskedArray)
    if not (
        is_array
        and found.dtype.kind in kind
        and len(shape) == found.ndim
        and all(size in (None, there) for size, there in zip(shape, found.shape, strict=True))
    ):
        sizes = ", ".join("…" if size is None else str(size) for size in shape)
        got = f"{found.dtype} of shape {found.shape}" if is_array else type(found).__name__
        comma = "," * (len(shape) == 1)
        raise ContentError(
            f"{name} must be an array of {_WORDS[kind]} of shape ({sizes}{comma}), got {got}"
        )
    found = np.asarray(found)
    found = found.astype(found.dtype.newbyteorder("="), copy=False)
    if low is not None:
        good = (found >= low) & (found <= high)
        if not good.all():
            least = "above 0" if 0 < low < 1 else f"at least {low:g}"
            _refuse(found, good, name, row, f"must be {least}, and at most {high:.12g}")
    return found if dtype is None else _exactly(found, np.dtype(dtype), name, row)


def _exactly(found: np.ndarray, dtype: np.dtype, name: str, row: str) -> np.ndarray:
    """Convert numbers to another type; raise `ContentError` if one would change."""
    is_whole, to_float = found.dtype.kind != "f", dtype.kind == "f"
    rounds = is_whole and to_float and found.dtype.itemsize == 8  # numpy calls this safe
    if np.can_cast(found.dtype, dtype) and not rounds:
        if found.dtype != dtype:
            _check_room(found, dtype.itemsize, name)
        return found.astype(dtype, copy=False)
    _check_room(found, dtype.itemsize + 2, name)
    if is_whole:
        limits = np.iinfo(np.int64 if to_float else dtype)
        low, high = (-LARGEST_WHOLE, LARGEST_WHOLE) if to_float else (limits.min, limits.max)
        good = (found >= low) & (found <= high)
    elif to_float:
        good = (found.astype(dtype) == found) | np.isnan(found)
    else:
        good = (np.abs(found) <= np.float64(LARGEST_WHOLE)) & (found == np.rint(found))
    if not good.all():
        _refuse(found, good, name, row, f"{dtype} does not hold this number exactly")
    return found.astype(dtype)


def _check_room(found: np.ndarray, each: int, name: str) -> None:
    """Raise ``RunFailedError`` unless memory has ``each`` more bytes for every entry."""
    check_room(float(each) * found.size, f"Converting {name}", _MORE)


def _refuse(found: np.ndarray, good: np.ndarray, name: str, row: str, why: str) -> None:
    """Raise `ContentError` for the first entry that is not good."""
    at = tuple(np.argwhere(~good)[0])
    value = found[at] if found.dtype.kind in INTEGERS else f"{found[at]:.12g}"
    raise ContentError(f"{name} of {row} {at[0] if at else 0} is {value}, and {why}")


def why_no_label(name: str) -> str:
    """Return why a text cannot be the name of a label; empty if it can.

    Two labels that differ only by what nobody sees would be two classes.
    """
    if not _VISIBLE.search(name):
        return f"the label {_in_full(name)} {_UNSEEN}"
    if not _UNSEEN_END.fullmatch(name):
        return ""
    return f"the label {_in_full(name)} begins or ends with a blank or an invisible character"


def _in_full(name: str) -> str:
    """Return a name in quotes, with what nobody sees written as a code."""
    code = lambda found: found[0].encode("unicode_escape").decode()  # noqa: E731
    return shown(re.sub(f"[{_INVISIBLE}]", code, repr(name)))


def names(found: list[str], what: str) -> list[str]:
    """Check that names of labels or features differ and fit in a line of text; return them.

    Raises
    ------
    ContentError
        A name occurs twice, is invisible, or has an unprintable character or a line end.
    """
    for name in found:
        if not _VISIBLE.search(name):
            raise ContentError(f"{_in_full(name)} in {what} {_UNSEEN}")
        if _UNPRINTABLE.search(name):
            raise ContentError(
                f"'{shown(name)}' in {what} is no name: names have no line breaks, control "
                "characters, changes of direction or surrogates"
            )
    if len(set(found)) < len(found):
        twice, _ = Counter(found).most_common(1)[0]
        raise ContentError(f"the name '{shown(twice)}' is twice in {what}")
    return found


def offsets_of(found: Any, name: str, end: int, what: str, least: int) -> np.ndarray:
    """Check that offsets rise from 0 to ``end`` in steps ≥ ``least``; return them as int64.

    With ``least`` 0, there may be no example.
    """
    offsets = array(found, name, dtype=np.int64)
    begins = offsets.size > min(least, 1) and offsets[0] == 0
    ensure(begins, f"{name} must begin with 0 and have an entry for the end of each example")
    ensure(offsets[-1] == end, f"{name} end at {offsets[-1]}, and there are {end} {what}")
    steps = np.diff(offsets)
    if (steps < least).any():
        i = int(np.flatnonzero(steps < least)[0])
        how = "is empty" if steps[i] == 0 else f"ends before it begins ({name})"
        raise ContentError(f"example {i} {how}")
    return offsets


def ends_of(lengths: np.ndarray) -> np.ndarray:
    """Return the offsets of rows of these lengths: 0 and the partial sums, int64."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def csr(arrays: Mapping[str, np.ndarray], n_columns: int) -> csr_array:
    """Return the matrix of foreign ``data``, ``indices`` and ``indptr``, with int32 columns."""
    from scipy.sparse import csr_array

    data = array(arrays["data"], "the non-zeros of x", REAL)
    indptr = array(arrays["indptr"], "the row ends of x", dtype=np.int64)
    shape = indptr.size - 1, n_columns
    indices = check_csr(data.size, arrays["indices"], indptr, shape, "row {} of x".format)
    if indptr[-1] < 1 << 31:  # else scipy would widen the columns, too
        indptr = indptr.astype(np.int32)
    return csr_array((data, indices.astype(np.int32), indptr), shape=shape)


def sparse(found: Any, name: str) -> csr_array:
    """Return a scipy sparse matrix, whose arrays are not trusted, as CSR of float64.

    Raises
    ------
    ContentError
        Its arrays do not form a matrix of real numbers.
    """
    from scipy import sparse as scipy_sparse

    with parsing(f"{name} is no {found.format} matrix"):
        if found.format == "dok":
            found = found.tocoo()
        elif found.format == "lil":
            if [*map(len, found.rows)] != [*map(len, found.data)]:
                raise ContentError(f"{name} has rows with other numbers of columns than of entries")
            found = found.tocsr()
        kind, (rows, columns) = found.format, found.shape
        shape = (None,) * np.ndim(found.data)
        data = array(found.data, f"the entries of {name}", REAL, shape, dtype=np.float64)
        if kind in ("csr", "csc", "bsr"):
            _, *block = data.shape if kind == "bsr" else (0, 1, 1)
            sizes = [*map(divmod, found.shape, block)]
            if sizes[0][1] or sizes[1][1]:
                raise ContentError(f"{name} has blocks of {block}, and the shape {found.shape}")
            major, minor = (columns, rows) if kind == "csc" else (sizes[0][0], sizes[1][0])
            where = f"row {{}} of {name}" if kind == "csr" else f"part {{}} of {name}"
            check_csr(len(data), found.indices, found.indptr, (major, minor), where.format)
            arrays: Any = data, found.indices, found.indptr
        else:  # scipy checks these itself
            places = (found.offsets,) if kind == "dia" else found.coords
            at = [array(of, f"the places of entries of {name}", dtype=np.int64) for of in places]
            arrays = data, at[0] if kind == "dia" else tuple(at)
        return getattr(scipy_sparse, f"{kind}_array")(arrays, shape=found.shape).tocsr()


def check_csr(
    n: int, indices: Any, indptr: Any, shape: Any, row: Callable[[int], str]
) -> np.ndarray:
    """Check the indices of n non-zeros; return the columns. ``row`` names a row in messages."""
    indices = array(indices, "the columns of x")
    array(indptr, "the row ends of x", shape=(shape[0] + 1,))
    offsets_of(indptr, "the row ends of x", indices.size, "non-zeros", 0)
    ensure(indices.size == n, f"x has {indices.size} columns for {n} non-zeros")
    # as an unsigned integer, a negative column is a large one
    if indices.size and indices.view(f"u{indices.itemsize}").max() >= shape[1]:
        k = int(np.flatnonzero((indices < 0) | (indices >= shape[1]))[0])
        where = row(int(np.searchsorted(indptr, k, side="right")) - 1)
        raise ContentError(
            f"{where} has feature {indices[k]}, and features are 0 to {shape[1] - 1}"
        )
    return indices


# ---- types that kernels are compiled for --------------------------------------------------------


def label_type(n_labels: int) -> np.dtype:
    """Return the type in which labels are stored: uint8 if it is enough, else uint16."""
    return _LABELS[n_labels > 256]  # an instance: comparing with a class is slow


def normalised(x: Any) -> Any:
    """Convert features to a type that kernels are compiled for: uint8 if exact, else float64.

    Parameters
    ----------
    x : ndarray or csr_array, shape (parts, f)

    Raises
    ------
    ContentError
        Neither type represents a number exactly.
    """
    values = small = x if isinstance(x, np.ndarray) else x.data
    if values.dtype != np.uint8:
        _check_room(values, 2, "x")
        with np.errstate(invalid="ignore"):
            small = values.astype(np.uint8)
        if not np.array_equal(small, values):
            del small
            row = "row" if x is values else "non-zero"
            small = array(values, "x", REAL, (None,) * values.ndim, row=row, dtype=np.float64)
    if x is values:
        if not small.flags.c_contiguous:
            _check_room(small, small.itemsize, "x")
        return np.ascontiguousarray(small)
    if small is values:
        return x
    return type(x)((small, x.indices, x.indptr), shape=x.shape)
