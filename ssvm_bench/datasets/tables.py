"""Checks of a raw file's content: whitespace-separated tables, and what is expected of them.

Every check raises `ContentError` with the first line that is wrong; `sources` adds which file
it is and what to do.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


class ContentError(Exception):
    """A raw file is there, but is not what it should be; the message says where and how."""


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
    text += b"\n"
    found = _fields_per_line(text)
    check_lines(
        found == n_columns, lambda k: f"{found[k]} columns, expected {n_columns} in every line"
    )
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


def unpack(content: bytes) -> bytes:
    """Return the bytes in those of a gzip file, or of one that was unpacked on the way."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ContentError(f"the gzip file is cut short or damaged ({error})") from error


def _fields_per_line(text: bytes) -> np.ndarray:
    """Return the number of whitespace-separated fields (int64) of every line."""
    characters = np.frombuffer(text, dtype=np.uint8)
    blank = characters <= ord(" ")
    field_starts = ~blank
    field_starts[1:] &= blank[:-1]
    line_ends = np.flatnonzero(characters == ord("\n"))
    return np.diff(np.searchsorted(np.flatnonzero(field_starts), line_ends), prepend=0)
