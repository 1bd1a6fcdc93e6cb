"""Pictures whose superpixels are points: the weights of neighbours, and the parts to show.

.. code-block:: text

    p_kc    pixels of superpixel k with the true label c; its label is the most frequent one
    c_kl    b_kl / b̄ · exp(−‖m_k − m_l‖² / (2 m̄²)) for neighbours k ∼ l

b_kl is the length of their border and m_k the mean colour; b̄ is the mean of b and m̄² the mean of
‖m_k − m_l‖² over all neighbours. Separating superpixels is cheap where the border is short or the
colours differ (Boykov and Jolly, ICCV 2001).

**A user's own features** (``dataset.features``), e.g. of a deep network, are in an ``.npz`` of
three arrays, with a row for each superpixel, in any order:

=================  ==================  ============================================================
``picture``        integers, (m,)      the number of the picture, or of the frame, from 0
``superpixel``     integers, (m,)      the number of the superpixel in it, from 0
``features``       numbers, (m, f)     its features
=================  ==================  ============================================================

Rows of pictures that are not needed are ignored. The file is not trusted: nothing in it is
unpickled, or used before it is checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.datasets import reading
from ssvm_bench.datasets.arrays import REAL, array
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images.pictures import Picture
from ssvm_bench.datasets.images.preparation import borders
from ssvm_bench.datasets.reading import ContentError, ensure

_DIGITS = 6  # the last bits of an exponential depend on the machine


def contrast(rgb: np.ndarray, segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return neighbours k < l, int64 (E, 2), and their weights, float64 (E,).

    Parameters
    ----------
    rgb : ndarray of uint8, shape (h, w, 3)
    segments : ndarray of uint16, shape (h, w)
        Superpixel of every pixel.
    """
    pairs, lengths = borders(segments)
    if not len(pairs):
        return np.zeros((0, 2), np.int64), np.zeros(0)
    of = segments.ravel()
    sums = [np.bincount(of, weights=rgb[:, :, colour].ravel()) for colour in range(3)]
    means = np.stack(sums, axis=1) / np.bincount(of)[:, None]
    apart = np.square(means[pairs[:, 0]] - means[pairs[:, 1]]).sum(axis=1)
    weights = lengths / lengths.mean() * np.exp(-0.5 * apart / max(float(apart.mean()), 1e-12))
    return pairs.astype(np.int64), np.round(weights, _DIGITS)


class Scene(NamedTuple):
    """One picture.

    Attributes
    ----------
    title : str
    picture : Picture
        Its truth has the labels of the points.
    segments : ndarray of int, shape (h, w)
        Superpixel of every pixel.
    scribbles : ndarray of uint8, shape (h, w), or None
        The labels of scribbled pixels (`.scribbles`).
    dataset : Dataset
        The dataset of points.
    points : ndarray of int64, shape (L,)
        The points that are the superpixels 0 … L − 1 of the picture.
    """

    title: str
    picture: Picture
    segments: np.ndarray
    scribbles: np.ndarray | None
    dataset: Dataset
    points: np.ndarray


# ---- a user's own features -----------------------------------------------------------------------


NAMES = ("picture", "superpixel", "features")

_MOST = np.iinfo(np.int32).max


def given_features(path: Path, pictures: np.ndarray, superpixels: np.ndarray) -> np.ndarray:
    """Return the features of some superpixels from a file.

    Parameters
    ----------
    path : Path
        The file.
    pictures, superpixels : ndarrays of int64, shape (n,)
        The superpixels, as the number of the picture and the number in the picture.

    Returns
    -------
    ndarray of float32, shape (n, f)

    Raises
    ------
    ConfigError
        The file cannot be read, has another format, or lacks a superpixel; or features are not
        finite.
    """
    picture, superpixel, features = _given(path)
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


def _given(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the three arrays; raise `ConfigError` if they are not valid."""
    try:
        found = dict(reading.npz(reading.content(path, reading.MOST_OF_USERS)))
        features = array(found["features"], "features", REAL, (None, None))
        ensure(features.size, f"features have no entry, of shape {features.shape}")
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
        f"dataset.features={shown(path)} cannot be used: {what}. `ssvm-bench help transduction` "
        "shows the format."
    )
