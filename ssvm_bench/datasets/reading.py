"""Files of a user, read without trust in what they are.

A name may be that of a pipe, which waits for ever, or of a device, which never ends; and a small
file may unpack to one that fills the memory. So every raw file and every cache file is opened here,
which takes regular files only, and nothing is read or unpacked without a limit.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from pathlib import Path
from typing import IO, BinaryIO

GZIP = b"\x1f\x8b"
"""How a gzip file begins."""

MOST = 1 << 25
"""Bytes of a raw file, unpacked, that is parsed whole; those of text have less than half of it."""


class ContentError(Exception):
    """A raw file is there, but is not what it should be; the message says where and how."""


def opened(path: Path) -> BinaryIO:
    """Open a regular file.

    Raises
    ------
    ContentError
        It is a folder, a pipe, a device or a socket; none of them is waited for.
    OSError
        It cannot be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ContentError("it is not a regular file")
    return os.fdopen(descriptor, "rb")


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
            raise _too_large(self._most)
        return block


def _at_most(stream: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    found = stream.read(most + 1)
    if len(found) > most:
        raise _too_large(most)
    return found


def _too_large(most: int) -> ContentError:
    return ContentError(f"it has more than {most / 1e6:.0f} MB, far more than the data")
