"""Parsed arrays, kept as an uncompressed npz beside the raw file or in the user's cache folder.

A cache file carries the key of what it was made from (the raw file's hash and the loader's
version). One that is missing, damaged or has another key is simply made again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench import files, places

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Arrays = dict[str, np.ndarray]


def user_folder() -> Path:
    """Return the user's cache folder of ssvm-bench, which need not exist."""
    return places.user_folder()


def cached(
    places: list[Path], key: str, make: Callable[[], Arrays], only: Collection[str] | None = None
) -> Arrays:
    """Return ``make()``, from the first of the places that has it under this key.

    Parameters
    ----------
    places : list of Path
        Where the cache file may be, the preferred place first. Failing to write to all of them
        is no error: the arrays are then made again next time.
    key : str
        Whatever changes when the arrays must.
    make : callable
        Returns the arrays by name.
    only : collection of str, optional
        Names of the arrays that are wanted; the others are not read.
    """
    found = stored(places, key, only)
    if found is not None:
        return found
    arrays = make()
    for place in places:
        with suppress(OSError):
            _write(place, key, arrays)
            break
    return {name: arrays[name] for name in arrays if only is None or name in only}


def stored(places: list[Path], key: str, only: Collection[str] | None = None) -> Arrays | None:
    """Return the arrays from the first of the places that has them under this key, or None."""
    for place in places:
        # whatever a damaged file makes numpy's reader raise, the answer is to make it again
        with suppress(Exception), np.load(place, allow_pickle=False) as file:
            if file["key"].item() == key:
                names = set(file.files) - {"key"} if only is None else only
                return {name: file[name] for name in file.files if name in names}
    return None


def stored_key(place: Path) -> str:
    """Return the key of a cache file; empty if there is none that can be read."""
    with suppress(Exception), np.load(place, allow_pickle=False) as file:
        return str(file["key"].item())
    return ""


def sparse_rows(arrays: Arrays, n_columns: int) -> csr_array:
    """Return the matrix whose non-zeros are kept as ``data``, narrow ``indices``, ``indptr``."""
    from scipy.sparse import csr_array

    rows = (arrays["data"], arrays["indices"].astype(np.int32), arrays["indptr"])
    return csr_array(rows, shape=(arrays["indptr"].size - 1, n_columns))


def _write(place: Path, key: str, arrays: dict[str, Any]) -> None:
    """Write to a temporary name and rename, so that nobody reads half a file."""
    place.parent.mkdir(parents=True, exist_ok=True)
    # the mode bits are asked because they do not stop root, and a read-only folder is a wish
    if not place.parent.stat().st_mode & 0o222:
        raise PermissionError(place.parent)
    files.write(place, lambda file: np.savez(file, key=np.array(key), **arrays))
