"""The cache of prepared arrays.

`cached` keeps them as an uncompressed npz in the user's cache folder. A cache file stores a key of
its origin (the raw file's hash and the loader's version) and a seal: name, size and CRC-32 of every
array. Reading an array verifies its CRC-32 anyway, so checking the seal does not read the bytes
twice. A file that is missing, damaged, modified or of another origin is written again.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.files import opened, write
from ssvm_bench.datasets.reading import Arrays

Make = Callable[[], Arrays]
"""Function that makes arrays which are not cached yet."""

KEY = "key"
"""Member of a cache file with two texts: the key, and the seal."""

_MOST_KEY = 1 << 16  # bytes


def cached(place: Path, key: str, make: Make, only: Collection[str] | None = None) -> Arrays:
    """Return the arrays of ``make()``, from the cache file if it has them under this key.

    Parameters
    ----------
    place : Path
        The cache file. Failing to write it is no error: the arrays are prepared again next time.
    key : str
        A text that changes whenever the arrays must be prepared again.
    make : callable
        Returns the arrays by name.
    only : collection of str, optional
        Names of the arrays to return; the others are not read.
    """
    found = stored(place, key, only)
    if found is not None:
        return found
    arrays = make()
    with suppress(OSError):
        _keep(place, key, arrays)
    return {name: arrays[name] for name in arrays if only is None or name in only}


def stored(place: Path, key: str, only: Collection[str] | None = None) -> Arrays | None:
    """Return the arrays that a cache file has under this key, or None."""
    # numpy's reader may raise anything for a damaged file, which then counts as missing
    with suppress(Exception), _opened_cache(place) as (its_key, file):
        if its_key == key:
            names = [name for name in file.files if name != KEY] if only is None else only
            return {name: file[name] for name in names}
    return None


def stored_key(place: Path) -> str:
    """Return the key of a cache file; empty if the file cannot be read."""
    with suppress(Exception), _opened_cache(place) as (key, _):
        return key
    return ""


@contextmanager
def _opened_cache(place: Path) -> Iterator[tuple[str, Any]]:
    """Open a cache file; yield its key and its reader.

    Compressed members are refused, so no array is larger than the file.
    """
    with opened(place) as stream, np.load(stream, allow_pickle=False) as file:
        for member in file.zip.infolist():
            room = _MOST_KEY if member.filename == f"{KEY}.npy" else math.inf
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > room:
                raise zipfile.BadZipFile
        key, seal = file[KEY].tolist()
        if seal != _seal(file.zip):
            raise zipfile.BadZipFile
        yield key, file


def _seal(archive: Any) -> str:
    """Return name, size and CRC-32 of every array in an archive."""
    arrays = (member for member in archive.infolist() if member.filename != f"{KEY}.npy")
    return " ".join(f"{array.filename}:{array.file_size}:{array.CRC:08x}" for array in arrays)


def _keep(place: Path, key: str, arrays: dict[str, Any]) -> None:
    """Write to a temporary name and rename, so that nobody reads half a file."""
    files.make(place.parent)
    # respect a read-only folder also as root, whom the mode bits do not stop
    if not place.parent.stat().st_mode & 0o222:
        raise PermissionError(place.parent)

    def put(file: BinaryIO) -> None:
        with zipfile.ZipFile(file, "w") as archive:
            for name, array in arrays.items():
                _put(archive, name, array)
            _put(archive, KEY, np.array([key, _seal(archive)]))

    write(place, put)


def _put(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
        np.save(member, array)
