"""How features are kept in a file: the same numbers, in little room; −0 may become 0.

Small integers k stand for features where each is k/scale, computed in the features' own type: grey
values become bytes in this way, numbers of three decimals two bytes. Of sparse features only the
non-zeros are kept. Where they are, ``rows`` says by the number of each one's column, and ``bits``
by a bit for every feature, which takes less room where there are many, and less time to read;
``dense`` features are as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssvm_bench.base.jit import kernel
from ssvm_bench.datasets.base import Dataset

# mypy: disable-error-code="no-untyped-def"

SCALES = (1, 255, 1000)
"""Integers, grey values of a byte, numbers of three decimals."""

CODES = ("|u1", "<i2")
"""Types of the integers that stand for features."""

FORMS = ("dense", "rows", "bits")

_COUNTS = np.array([byte.bit_count() for byte in range(256)], np.int64)


@dataclass(frozen=True)
class Features:
    """How features are kept.

    Attributes
    ----------
    dtype : str
        Their type in a `Dataset`.
    stored : str
        That in the file.
    scale : int
        What the integers in the file are divided by; 1 if they are what they seem.
    form : str
        ``"dense"``, ``"rows"`` or ``"bits"``.
    columns : str
        Type of a column's number, of the form ``"rows"``.
    """

    dtype: str
    stored: str
    scale: int
    form: str
    columns: str

    @property
    def is_known(self) -> bool:
        """Tell whether this program can have written it."""
        try:
            dtype = np.dtype(self.dtype)
        except TypeError:
            return False
        return (
            dtype.kind in "iuf"
            and self.stored in (self.dtype, *CODES)
            and self.scale in SCALES
            and self.form in FORMS
            and self.columns in ("<u2", "<i4")
        )

    @property
    def table(self) -> np.ndarray | None:
        """What the codes 0, 1, 2 … stand for, and at the end …, −2, −1; None: for themselves."""
        if self.stored == self.dtype:
            return None
        stored = np.dtype(self.stored)
        codes = np.arange(1 << 8 * stored.itemsize).astype(f"u{stored.itemsize}").view(stored)
        return codes.astype(self.dtype) / np.dtype(self.dtype).type(self.scale)


def features_of(datasets: Sequence[Dataset], deformed: bool = False) -> Features:
    """Return how the features of some datasets of one kind are kept.

    Parameters
    ----------
    datasets : sequence of Dataset
        Those to train on, and those that are held out.
    deformed : bool
        Whether they are images whose pixels will change: then sparse bytes are kept as ``bits``,
        and other sparse numbers, which cannot be deformed, as ``rows``.
    """
    first = datasets[0].x
    parts = [each.x if isinstance(each.x, np.ndarray) else each.x.data for each in datasets]
    dtype = first.dtype.newbyteorder("<").str
    stored, scale = _code([part.ravel() for part in parts])
    columns = "<u2" if first.shape[1] <= 1 << 16 else "<i4"
    form = "dense"
    if not isinstance(first, np.ndarray):
        bits = sum(each.x.shape[0] for each in datasets) * width(first.shape[1])
        rows = sum(part.size for part in parts) * np.dtype(columns).itemsize
        fits = stored == "|u1" if deformed else bits <= rows
        plain = all(_is_canonical(each.x) for each in datasets)  # else an order is lost
        form = "bits" if fits and plain else "rows"
    return Features(dtype, stored, scale, form, columns)


def _is_canonical(rows: Any) -> bool:
    """Tell whether the columns of each sparse row rise."""
    return bool(rows.has_canonical_format)


def width(n_features: int) -> int:
    """Return the number of bytes that have a bit for every feature."""
    return -(-n_features // 8)


def _code(arrays: Sequence[np.ndarray]) -> tuple[str, int]:
    """Return the smallest type of integers that stand for all numbers, and what divides them."""
    dtype = arrays[0].dtype
    if dtype.kind == "f":
        for scale in map(dtype.type, SCALES):
            codes = [np.rint(array * scale) for array in arrays]
            if all(
                np.array_equal(code / scale, array)
                for code, array in zip(codes, arrays, strict=True)
            ):
                low = min(code.min(initial=0) for code in codes)
                high = max(code.max(initial=0) for code in codes)
                for name in CODES:
                    if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
                        return name, int(scale)
    return dtype.newbyteorder("<").str, 1


def encoded(x: np.ndarray, features: Features) -> np.ndarray:
    """Return numbers as they are kept."""
    if features.stored == features.dtype:
        return np.ascontiguousarray(x, features.stored)
    return np.rint(x * np.dtype(features.dtype).type(features.scale)).astype(features.stored)


def bits_of(mask: np.ndarray) -> np.ndarray:
    """Return where a part has non-zeros, shape (parts, f), as bytes, shape (parts, `width`)."""
    return np.packbits(mask, axis=1, bitorder="little")


def row_ends(bits: np.ndarray) -> np.ndarray:
    """Return where the non-zeros of each part begin, and the last ones end: int64, (parts + 1,)."""
    indptr = np.empty(len(bits) + 1, np.int64)
    _count(bits, _COUNTS, indptr)
    return indptr


def columns_of(bits: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Return the column of each non-zero: int32."""
    columns = np.empty(indptr[-1] + 1, np.int32)  # what is no non-zero is written, too
    _list(bits, columns)
    return columns[:-1]


@kernel
def _count(bits, counts, indptr):
    k = 0
    for part in range(len(bits)):
        indptr[part] = k
        for byte in bits[part]:
            k += counts[byte]
    indptr[len(bits)] = k


@kernel
def _list(bits, columns):
    """Write each feature where the next non-zero belongs; zeros go by eight at a time."""
    k = np.uint64(0)
    for part in range(len(bits)):
        first = np.int32(0)
        for byte in bits[part]:
            if byte != 0:
                for j in range(8):
                    columns[k] = first + np.int32(j)
                    k += np.uint64(byte >> j & 1)
            first += np.int32(8)


@kernel
def _look_up(table, codes, values):
    for k in range(codes.size):
        values[k] = table[codes[k]]


def restored(
    features: Features,
    shape: tuple[int, int],
    codes: np.ndarray,
    columns: np.ndarray | None = None,
    indptr: np.ndarray | None = None,
) -> Any:
    """Return the matrix of features that was kept.

    Parameters
    ----------
    features : Features
        How.
    shape : (parts, f)
    codes : ndarray
        What is in the file.
    columns, indptr : ndarray, optional
        Those of the non-zeros, of sparse features.
    """
    values, table = codes, features.table
    if table is not None:
        values = np.empty(codes.size, features.dtype)
        _look_up(table, codes.view(f"u{codes.itemsize}"), values)
    if columns is None or indptr is None:
        return values.reshape(shape)
    return _sparse(values, columns.astype(np.int32, copy=False), indptr, shape)


def _sparse(
    data: np.ndarray, columns: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> Any:
    from scipy.sparse import csr_array

    if indptr[-1] < 1 << 31:  # else scipy would widen the columns, too
        indptr = indptr.astype(np.int32)
    return csr_array((data, columns, indptr), shape=shape)
