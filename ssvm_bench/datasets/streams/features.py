"""How features are kept in a file: the same numbers, in little room; −0 may become 0.

Small integers k stand for features where each is k/scale, computed in the features' own type: grey
values become bytes in this way, numbers of three decimals two bytes. Sparse features are kept as
``rows``, which have their non-zeros only, or ``filled`` with their zeros where that takes less
room once it is compressed; ``dense`` ones are as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.jit import kernel

# mypy: disable-error-code="no-untyped-def"

SCALES = (1, 255, 1000)
"""Integers, grey values of a byte, numbers of three decimals."""

CODES = ("|u1", "<i2")
"""Types of the integers that stand for features."""

WORD = 8
"""Bytes that are compared with zero at once."""

FORMS = ("dense", "rows", "filled")


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
        ``"dense"``, ``"rows"`` or ``"filled"``.
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
            and (self.form != "filled" or self.stored == "|u1")
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


def features_of(datasets: Sequence[Dataset], filled: bool = False) -> Features:
    """Return how the features of some datasets of one kind are kept.

    Parameters
    ----------
    datasets : sequence of Dataset
        Those to train on, and those that are held out.
    filled : bool
        Whether sparse features are to be filled with their zeros in any case.
    """
    first = datasets[0].x
    parts = [each.x if isinstance(each.x, np.ndarray) else each.x.data for each in datasets]
    dtype = first.dtype.newbyteorder("<").str
    stored, scale = _code([part.ravel() for part in parts])
    columns = "<u2" if first.shape[1] <= 1 << 16 else "<i4"
    form = "dense"
    if not isinstance(first, np.ndarray):
        size = np.dtype(stored).itemsize
        room = sum(each.x.shape[0] for each in datasets) * first.shape[1] * size
        rows = sum(part.size for part in parts) * (size + np.dtype(columns).itemsize)
        plain = all(_is_plain(each.x) for each in datasets)  # else something would be lost
        fits = stored == "|u1" and plain and (filled or room <= 2 * rows)
        form = "filled" if fits else "rows"
    return Features(dtype, stored, scale, form, columns)


def _is_plain(rows: Any) -> bool:
    """Tell whether sparse rows have no zeros among their entries, and rising columns."""
    return bool(rows.has_canonical_format and rows.data.all())


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
        Those of the non-zeros, of the form ``"rows"``.
    """
    table = features.table
    if features.form == "filled":
        table = np.arange(256, dtype=np.uint8) if table is None else table
        return _sparse(*_not_zero(codes.reshape(shape), table), shape)
    values = codes.astype(features.dtype, copy=False) if table is None else table[codes]
    if columns is None or indptr is None:
        return values.reshape(shape)
    return _sparse(values, columns.astype(np.int32), indptr, shape)


def _not_zero(codes: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return data, columns and row ends of the entries that are not zero."""
    total = int(np.count_nonzero(codes))
    data = np.empty(total + 1, table.dtype)  # where the kernel writes zeros at the end
    columns = np.empty(total + 1, np.int32)
    indptr = np.empty(len(codes) + 1, np.int64)
    words = codes[:, : codes.shape[1] // WORD * WORD]
    words = np.ascontiguousarray(words).view(np.uint64)
    _gather(codes, words, table, data, columns, indptr)
    return data[:total], columns[:total], indptr


@kernel
def _gather(codes, words, table, data, columns, indptr):
    """Write each entry where the next one that is not zero belongs; zeros go by eight at a time."""
    k = 0
    for part in range(len(codes)):
        indptr[part] = k
        for word in range(words.shape[1]):
            if words[part, word] != 0:
                for j in range(word * WORD, (word + 1) * WORD):
                    data[k] = table[codes[part, j]]
                    columns[k] = j
                    k += codes[part, j] != 0
        for j in range(words.shape[1] * WORD, codes.shape[1]):
            data[k] = table[codes[part, j]]
            columns[k] = j
            k += codes[part, j] != 0
    indptr[len(codes)] = k


def _sparse(
    data: np.ndarray, columns: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> Any:
    from scipy.sparse import csr_array

    if indptr[-1] < 1 << 31:  # else scipy would widen the columns, too
        indptr = indptr.astype(np.int32)
    return csr_array((data, columns, indptr), shape=shape)
