"""Readers of foreign bytes: files of unknown content, read within limits, with clear errors.

A small file may unpack to one that fills the memory, so nothing is read or unpacked without a
limit. Invalid bytes raise `ContentError`, which names the first invalid line; `parsing` turns
everything else that a parser raises into one. `explained` adds the name of the file, and advice.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError, SsvmBenchError, shown
from ssvm_bench.base.files import expanded, opened
from ssvm_bench.base.files import user_folder as user_folder  # which need not exist
from ssvm_bench.base.memory import check_room

if TYPE_CHECKING:
    import pandas as pd

Arrays = dict[str, np.ndarray]
"""Arrays that loaders make, by name."""

GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""

MOST = 1 << 25
"""Largest unpacked raw file that is parsed whole, in bytes: over twice our largest text file."""

MOST_OF_USERS = 1 << 32
"""Largest unpacked file of a user, in bytes."""

DESCRIPTOR = re.compile(r"-|/dev/stdin|(?:/dev/fd|/proc/self/fd)/(\d{1,9})")
"""Names of standard input, and of other descriptors that the process was started with."""

_STDIN = "-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"
_LONGEST_TEXT = 1 << 14
"""Largest text in an array, in bytes; the array takes as many for each of its texts."""


class ContentError(ValueError):
    """Foreign content is not as it should be; the message says where and how.

    Attributes
    ----------
    advice : str
        The sentence that says what to do, if it is not the usual one.
    """

    advice = ""


def ensure(good: object, why_not: str) -> None:
    """Raise `ContentError` with the message ``why_not`` unless ``good``."""
    if not good:
        raise ContentError(why_not)


@contextmanager
def parsing(what: str) -> Iterator[None]:
    """Turn everything that a parser of foreign bytes raises in the block into `ContentError`."""
    try:
        yield
    except (ContentError, SsvmBenchError, MemoryError):
        raise
    except Exception as error:
        reason = shown(str(error).partition("\n")[0].rstrip("."), 120)
        raise ContentError(f"{what} ({reason or type(error).__name__})") from error


@contextmanager
def explained(what: str, advice: str) -> Iterator[None]:
    """Turn errors about content, a file or memory, raised in the block, into `RunFailedError`."""
    try:
        yield
    except (ContentError, OSError, MemoryError) as error:
        reason: object = error
        if isinstance(error, MemoryError):
            reason = "it takes more memory than there is"
        elif isinstance(error, OSError) and str(error.filename or "") in what:
            reason = error.strerror or error
        do = getattr(error, "advice", "") or advice
        raise RunFailedError(f"{what}: {reason}. {do}") from error


def check_named(path: Path, descriptors: bool = False) -> Path:
    """Return the path of a file or folder that a call names; raise ``ConfigError`` if none exists.

    With ``descriptors``, it may be one for `content_of_users`.
    """
    with suppress(OSError):
        found = expanded(path)
        if (descriptors and DESCRIPTOR.fullmatch(str(path))) or found.exists():
            return found
    raise ConfigError(f"{shown(path, 300)}: there is no such file or folder.")


def check_file(path: Path, descriptors: bool = False) -> Path:
    """Return the path as `check_named` does; raise ``ConfigError`` if it is a folder as well."""
    found = check_named(path, descriptors)
    if found.is_dir():
        raise ConfigError(f"{shown(path, 300)} is a folder. Name a file.")
    return found


def called(path: Path, length: int = 300) -> str:
    """Return the name in messages of a file for `content_of_users`."""
    return "standard input" if str(path) in _STDIN else shown(path, length)


class Bounded:
    """A stream of bytes that raises `ContentError` after more than ``most`` bytes."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile, most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``."""
        block = self._stream.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise too_large(self._most)
        return block

    def __iter__(self) -> Iterator[bytes]:
        """Yield the remaining bytes in blocks."""
        return iter(partial(self.read, 1 << 20), b"")


def too_large(most: int) -> ContentError:
    """Return the error for more than ``most`` bytes."""
    return ContentError(f"it has more than {most / 1e6:.0f} MB, far more than the data")


@contextmanager
def unpacked(
    file: IO[bytes], most: int = MOST, what: str = "the gzip file is cut short or damaged"
) -> Iterator[Bounded]:
    """Yield a stream of the bytes of a file, at most ``most``, unpacked if it is a gzip file.

    Raises
    ------
    ContentError
        There are more bytes; or, with the message ``what``, anything else raised in the block.
    """
    packed = file.read(len(GZIP)) == GZIP
    file.seek(0)
    with parsing(what):
        yield Bounded(gzip.GzipFile(fileobj=file) if packed else file, most)


def content(path: Path, most: int = MOST) -> bytes:
    """Return the bytes of a regular file, `unpacked`."""
    with opened(path) as file, unpacked(file, most) as stream:
        return b"".join(stream)


def content_of_users(path: Path, descriptors: bool = False) -> bytes:
    """Return the `content` of a user's file, if memory can hold it while it is parsed.

    Parameters
    ----------
    path : Path
    descriptors : bool
        Whether the path may be ``-``, standard input, or another open descriptor of this process,
        as ``/dev/fd/63``: a pipe or a terminal is then read until its end.
    """
    descriptor = DESCRIPTOR.fullmatch(str(path)) if descriptors else None
    if descriptor is None:
        with opened(path) as file:
            return _content_of_users(file, path)
    with os.fdopen(os.dup(int(descriptor[1] or 0)), "rb") as pipe:
        # packed or not, it is read to its end first: nobody can go back in a pipe
        return _content_of_users(io.BytesIO(_read_whole(Bounded(pipe, MOST_OF_USERS), path)), path)


def _content_of_users(file: IO[bytes], path: Path) -> bytes:
    with unpacked(file, MOST_OF_USERS) as stream:
        return _read_whole(stream, path)


def _read_whole(stream: Bounded, path: Path) -> bytes:
    """Return all bytes, as long as memory can hold them twice: as a whole, and in parts."""
    blocks, size = [], 0
    for block in stream:
        blocks.append(block)
        size += len(block)
        check_room(2.0 * size, called(path, 100), "Use fewer examples.")
    return b"".join(blocks)


def unpack(packed: bytes, most: int = MOST) -> bytes:
    """Return the unpacked bytes of a gzip file; other bytes are returned unchanged."""
    with unpacked(io.BytesIO(packed), most) as stream:
        return b"".join(stream)


def _npy(file: IO[bytes], size: int) -> np.ndarray:
    """Return the array in an ``.npy`` file of ``size`` bytes; nothing is unpickled.

    Raises
    ------
    ContentError
        The file is no array, its size contradicts its shape, or it has objects or long texts.
    """
    with parsing("it is no array in numpy's format"):
        version = np.lib.format.read_magic(file)
        of_version = {
            1: np.lib.format.read_array_header_1_0,
            2: np.lib.format.read_array_header_2_0,
        }
        shape, _, dtype = of_version[version[0]](file)
        if dtype.hasobject:
            raise ContentError(
                "pickled objects are refused: they could run any program. Write arrays of numbers "
                "or texts"
            )
        if dtype.kind in "US" and dtype.itemsize > _LONGEST_TEXT:
            raise ContentError(f"each of its texts takes {dtype.itemsize} bytes: shorten them")
        # before anything is allocated; of entries with 0 bytes, a file could claim any number
        there = size - file.tell()
        if math.prod(shape) * dtype.itemsize != there or math.prod(shape) > size:
            raise ContentError(f"it says that it has the shape {shape}, and has {there} bytes")
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def npz(content: bytes) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and content of each array in the bytes of an ``.npz`` file.

    Raises
    ------
    ContentError
        The file is no ``.npz``, or an array is refused by `_npy`, or occurs twice.
    RunFailedError
        Its arrays do not fit into memory.
    """
    seen = set()
    with parsing("it is no .npz that can be read"), zipfile.ZipFile(io.BytesIO(content)) as stored:
        size = sum(member.file_size for member in stored.infolist())
        check_room(size, "The arrays of an .npz", "Store fewer examples.")
        for member in stored.infolist():
            name = member.filename.removesuffix(".npy")
            ensure(name not in seen, f"its array {shown(name)!r} is there twice")
            seen.add(name)
            try:
                with stored.open(member) as file:
                    found = _npy(file, member.file_size)
            except ContentError as error:
                raise ContentError(f"its array {shown(name)!r} cannot be used: {error}") from error
            yield name, found


def check_room_of_lines(text: bytes) -> None:
    """Raise ``RunFailedError`` if memory cannot hold the lines of a user's text, split up.

    The estimate is a lower bound: 60 bytes for a line, 20 for an empty one.
    """
    lines, empty = text.count(b"\n"), text.count(b"\n\n")
    check_room(60.0 * lines - 40.0 * empty, f"The {lines} lines of a file", "Use fewer of them.")


def read_table(content: bytes, n_columns: int, text_columns: tuple[int, ...] = ()) -> pd.DataFrame:
    """Return the table in the bytes of a gzip-compressed (or already unpacked) text file.

    Parameters
    ----------
    content : bytes
        The file as stored on disk. Some servers and browsers unpack a ``.gz`` during a download.
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
    ensure(text, "the file is empty")
    text = b"\n".join(_lines(text, n_columns))
    with parsing("it is no table of text"):
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
        if raw.dtype.kind not in "iu":  # integers beyond 64 bits are texts here, but numbers
            table[column] = pd.to_numeric(raw.astype(str), errors="coerce")
            check_lines(
                np.isfinite(table[column].to_numpy(np.float64)),
                lambda k, raw=raw, column=column: (  # type: ignore[misc]
                    f"{raw[k]} in column {column + 1}, expected a number"
                ),
            )
    return table


def _lines(text: bytes, n_columns: int) -> Iterator[bytes]:
    """Yield lines with one blank between columns: only this function decides what is blank."""
    for k, line in enumerate(io.BytesIO(text), 1):
        columns = line.split()
        if len(columns) != n_columns:
            found = f"{len(columns)} columns, expected {n_columns} in every line"
            raise ContentError(f"line {k}: {found}")
        yield b" ".join(columns)


def check_lines(good: Any, explain: Callable[[int], str]) -> None:
    """Raise `ContentError` with the first line (from 1) that is not good, and why it is not."""
    good = np.asarray(good)
    if not good.all():
        k = int(np.argmin(good))
        raise ContentError(f"line {k + 1}: {explain(k)}")


def check_equal(what: str, found: Any, expected: Any) -> None:
    """Raise `ContentError` unless the counts found are those of the original file."""
    ensure(np.array_equal(found, expected), f"{what}: found {found}, expected {expected}")
