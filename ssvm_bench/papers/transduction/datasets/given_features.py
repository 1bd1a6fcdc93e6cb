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

from pathlib import Path

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.datasets import reading
from ssvm_bench.datasets.arrays import REAL, array
from ssvm_bench.datasets.reading import ContentError

NAMES = ("picture", "superpixel", "features")

_MOST = np.iinfo(np.int32).max


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
        found = dict(reading.npz(reading.content(path, reading.MOST_OF_USERS)))
        features = array(found["features"], "features", REAL, (None, None))
        if not features.size:
            raise ContentError(f"features have no entry, of shape {features.shape}")
        picture, superpixel = (
            array(found[name], name, shape=(len(features),), low=0, high=_MOST, dtype=np.int64)
            for name in NAMES[:2]
        )
    except KeyError as error:
        raise _wrong(path, f"it has no array {shown(error.args[0])}") from error
    except OSError as error:
        raise _wrong(path, f"it cannot be read ({error.strerror or error})") from error
    except ContentError as error:
        raise _wrong(path, str(error)) from error
    return picture, superpixel, features


def _wrong(path: Path, what: str) -> ConfigError:
    return ConfigError(
        f"dataset.features={shown(path)} cannot be used: {what}. docs/transduction.md has the "
        "format."
    )
