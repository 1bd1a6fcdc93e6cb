"""Raw files, read without trust in what they are: bytes, and tables of text.

A small file may unpack to one that fills the memory: nothing is read or unpacked without a limit.
Checks raise `ContentError` with the first line that is wrong; `raw_files` adds which file it is and
what to do.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.base.files import opened

if TYPE_CHECKING:
    import pandas as pd

GZIP = b"\x1f\x8b"
"""How a gzip file begins."""

MOST = 1 << 25
"""Bytes of a raw file, unpacked, that is parsed whole; those of text have less than half of it."""


MOST_OF_USERS = 1 << 32
"""The same of a file that a user brings."""


class ContentError(Exception):
    """A raw file is there, but is not what it should be; the message says where and how."""


def content(path: Path, most: int = MOST) -> bytes:
    """Return the bytes of a regular file, `unpack`-ed; `ContentError` if there are too many."""
    with opened(path) as file:
        return unpack(_at_most(file, most), most)


def unpack(packed: bytes, most: int = MOST) -> bytes:
    """Return the bytes in those of a gzip file, or of one that was unpacked on the way.

    Raises
    ------
    ContentError
        The compression is damaged or cut short, or there are more than ``most`` bytes in it.
    """
    if not packed.startswith(GZIP):
        return packed
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            return _at_most(file, most)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ContentError(f"the gzip file is cut short or damaged ({error})") from error


class Bounded:
    """A stream of bytes that ends in a `ContentError` when more than ``most`` have come."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    def read(self, size: int) -> bytes:
        """Return the next bytes, as many as ``size`` at most."""
        block = self._stream.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise too_large(self._most)
        return block


def _at_most(stream: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    found = stream.read(most + 1)
    if len(found) > most:
        raise too_large(most)
    return found


def too_large(most: int) -> ContentError:
    """Return the error for more than ``most`` bytes."""
    return ContentError(f"it has more than {most / 1e6:.0f} MB, far more than the data")


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
