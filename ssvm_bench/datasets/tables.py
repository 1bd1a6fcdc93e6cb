"""Raw files of text: whitespace-separated tables, rows of LIBSVM, and checks of what is in them.

A row of LIBSVM is ``label index:value index:value …``; indices begin at 1 and rise, and what is not
written is 0. It is parsed by scikit-learn, which says neither in which line it fails, nor anything
of values that are not finite, and of blank lines.

Every check raises `ContentError` with the first line that is wrong; `raw_files` adds which file
it is and what to do.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ssvm_bench.datasets.reading import ContentError, unpack

if TYPE_CHECKING:
    import pandas as pd
    from scipy.sparse import csr_array


def read_table(content: bytes, n_columns: int, text_columns: tuple[int, ...] = ()) -> pd.DataFrame:
    """Return the table in the bytes of a gzip-compressed (or already unpacked) text file.

    Parameters
    ----------
    content : bytes
        The file as it is on disk. Some servers and browsers unpack a ``.gz`` on the way.
    n_columns : int
        Columns that every line must have.
    text_columns : tuple of int
        Columns left as text; all others are finite numbers.

    Raises
    ------
    ContentError
        Truncated or damaged compression; no lines; a line with another number of columns; a
        field that is not a finite number.
    """
    import pandas as pd

    text = unpack(content).rstrip()
    if not text:
        raise ContentError("the file is empty")
    text = b"\n".join(_lines(text, n_columns))
    # every line has its columns, so the parser has nothing to guess (3: quotes are characters)
    table = pd.read_csv(
        io.BytesIO(text),
        sep=r"\s+",
        header=None,
        quoting=3,
        encoding="latin-1",
        low_memory=False,
        dtype=dict.fromkeys(text_columns, str),
        na_filter=False,
    )
    for column in table.columns.difference(list(text_columns)):
        raw = table[column]
        if raw.dtype.kind not in "iu":
            table[column] = pd.to_numeric(raw, errors="coerce")
            check_lines(np.isfinite(table[column].to_numpy(np.float64)), partial(_odd, raw, column))
    return table


def _lines(text: bytes, n_columns: int) -> Iterator[bytes]:
    """Yield lines whose columns are separated by one blank: what is blank is decided here alone."""
    for k, line in enumerate(io.BytesIO(text), 1):
        columns = line.split()
        if len(columns) != n_columns:
            found = f"{len(columns)} columns, expected {n_columns} in every line"
            raise ContentError(f"line {k}: {found}")
        yield b" ".join(columns)


def _odd(raw: pd.Series, column: int, k: int) -> str:
    return f"{raw[k]} in column {column + 1}, expected a number"


def check_lines(good: Any, explain: Callable[[int], str]) -> None:
    """Raise `ContentError` with the first line (from 1) that is not good, and why it is not."""
    good = np.asarray(good)
    if not good.all():
        k = int(np.argmin(good))
        raise ContentError(f"line {k + 1}: {explain(k)}")


def check_equal(what: str, found: Any, expected: Any) -> None:
    """Raise `ContentError` unless the counts found are those of the original file."""
    if not np.array_equal(found, expected):
        raise ContentError(f"{what}: found {found}, expected {expected}")


class Rows(NamedTuple):
    """What is in a file of LIBSVM.

    Attributes
    ----------
    x : csr_array of float64, shape (n, n_features)
    y : ndarray of float64, shape (n,)
        The labels as they are written.
    lines : list of int
        The line of each row, from 1.
    """

    x: csr_array
    y: np.ndarray
    lines: list[int]


def parse_libsvm(raw: bytes, n_features: int | None = None, comments: bool = False) -> Rows:
    """Return the rows of an unpacked file of LIBSVM.

    Parameters
    ----------
    raw : bytes
    n_features : int, optional
        Number of features, which no index exceeds; by default the largest index.
    comments : bool
        Whether lines may be blank, and end in a comment behind ``#``.

    Raises
    ------
    ContentError
        It has no lines; or the first line that is no row, and why.
    """
    from scipy.sparse import csr_array

    lines = [*enumerate(raw.rstrip().split(b"\n"), 1)]
    if comments:
        lines = [(k, kept) for k, line in lines if (kept := line.partition(b"#")[0]).strip()]
    if not lines or lines == [(1, b"")]:
        raise ContentError("the file is empty")
    for k, line in lines:
        if not line.strip() or b"#" in line or b"qid" in line:
            what = "it has a comment or a query" if line.strip() else "it is blank"
            raise ContentError(f"line {k} is no row, label index:value … ({what})")
    try:
        x, y = _rows(b"\n".join(line for _, line in lines))
    except (ValueError, OverflowError):
        raise _first_wrong(lines) from None
    if not np.isfinite(y).all():
        k = int(np.argmin(np.isfinite(y)))
        raise ContentError(f"line {lines[k][0]}: label {y[k]:g}, expected a finite number")
    row = np.repeat(np.arange(y.size), np.diff(x.indptr))
    f = int(x.indices.max(initial=0)) + 1 if n_features is None else n_features
    for wrong, what in (
        (~np.isfinite(x.data), "a value that is not a finite number"),
        (x.indices >= f, f"an index above {f}, the number of features"),
    ):
        if wrong.any():
            raise ContentError(f"line {lines[row[np.argmax(wrong)]][0]}: {what}")
    x = csr_array((x.data, x.indices, x.indptr), shape=(y.size, f))
    return Rows(x, y, [k for k, _ in lines])


def _rows(text: bytes) -> tuple[csr_array, np.ndarray]:
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(io.BytesIO(text), zero_based=False)
    return x, y


def _first_wrong(lines: Sequence[tuple[int, bytes]]) -> ContentError:
    """Return the error for the first line that is no row by itself."""
    for k, line in lines:
        try:
            _rows(line)
        except (ValueError, OverflowError) as error:
            reason = str(error).removesuffix(".").replace(" in SVMlight/LibSVM data file", "")
            return ContentError(f"line {k} is no row, label index:value … ({reason})")
    return ContentError("it is no file in LIBSVM's format")
