"""Raw files, read without trust in what they are.

A small file may unpack to one that fills the memory: nothing is read or unpacked without a limit.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import IO

from ssvm_bench.base.files import opened

GZIP = b"\x1f\x8b"
"""How a gzip file begins."""

MOST = 1 << 25
"""Bytes of a raw file, unpacked, that is parsed whole; those of text have less than half of it."""


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
