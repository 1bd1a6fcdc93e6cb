"""Features of superpixels from a file of the user's, as of a deep network (``dataset.features``).

The file is an ``.npz`` of three arrays, a row for each superpixel, in any order:

=================  ==================  ============================================================
``picture``        integers, (m,)      the number of the picture, or of the frame, from 0
``superpixel``     integers, (m,)      the number of the superpixel in it, from 0
``features``       numbers, (m, f)     its features
=================  ==================  ============================================================

Rows of other pictures than those that are asked for are passed over. The file is a stranger's:
nothing in it is unpickled, or believed before it is looked at.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.base.files import opened

NAMES = ("picture", "superpixel", "features")


def read(path: Path, pictures: np.ndarray, superpixels: np.ndarray) -> np.ndarray:
    """Return the features of superpixels.

    Parameters
    ----------
    path : Path
        The file.
    pictures, superpixels : ndarrays of int64, shape (n,)
        Which superpixels, by their picture and their number in it.

    Returns
    -------
    ndarray of float32, shape (n, f)

    Raises
    ------
    ConfigError
        The file cannot be read, is none of these, or lacks a superpixel; or features are not
        finite.
    """
    picture, superpixel, features = _arrays(path)
    width = int(superpixels.max()) + 1
    rows = np.flatnonzero(np.isin(picture, pictures) & (superpixel < width))
    known, wanted = picture[rows] * width + superpixel[rows], pictures * width + superpixels
    order = np.argsort(known, kind="stable")
    if (np.diff(known[order]) == 0).any():
        raise _wrong(path, "it has a superpixel twice")
    lacking = np.flatnonzero(~np.isin(wanted, known))
    if lacking.size:
        k = lacking[0]
        whole = "" if pictures[k] in picture else ", of which it has none"
        raise _wrong(
            path,
            f"it lacks superpixel {superpixels[k]} of picture {pictures[k]}{whole} "
            f"({lacking.size} of {wanted.size} are missing)",
        )
    found = rows[order[np.searchsorted(known, wanted, sorter=order)]]
    with np.errstate(over="ignore"):
        taken = np.ascontiguousarray(features[found], np.float32)
    infinite = np.flatnonzero(~np.isfinite(taken).all(axis=1))
    if infinite.size:
        where = f"superpixel {superpixels[infinite[0]]} of picture {pictures[infinite[0]]}"
        raise _wrong(path, f"a feature of {where} is no finite number")
    return taken


def _arrays(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three arrays, if they are such."""
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is no .npz file")
        with opened(path) as file, np.load(file, allow_pickle=False) as content:
            picture, superpixel, features = (content[name] for name in NAMES)
    except KeyError as error:
        raise _wrong(path, f"it has no array {shown(error.args[0])}") from error
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        reason = getattr(error, "strerror", None) or shown(error, 200)
        raise _wrong(path, f"it cannot be read ({reason})") from error
    m = len(features) if features.ndim == 2 else -1
    if m < 1 or not features.shape[1] or features.dtype.kind not in "fiu":
        raise _wrong(path, f"features must be numbers of shape (m, f), got {features.shape}")
    for name, numbers in (("picture", picture), ("superpixel", superpixel)):
        if numbers.dtype.kind not in "iu" or numbers.shape != (m,) or numbers.min() < 0:
            raise _wrong(path, f"{name} must be {m} integers of 0 or more, one a row of features")
    return picture.astype(np.int64), superpixel.astype(np.int64), features


def _wrong(path: Path, what: str) -> ConfigError:
    return ConfigError(
        f"dataset.features={shown(path)} cannot be used: {what}. docs/transduction.md has the "
        "format."
    )
