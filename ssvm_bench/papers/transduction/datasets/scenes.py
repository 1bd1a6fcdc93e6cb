"""Pictures whose superpixels are points: their neighbours, and what is shown of them.

.. code-block:: text

    p_kc    pixels of superpixel k with the true label c; its label is the most frequent one
    c_kl    b_kl / b̄ · exp(−‖m_k − m_l‖² / (2 m̄²)) for neighbours k ∼ l

b_kl is the length of their border, m_k the mean colour, b̄ the mean of b and m̄² that of ‖m_k − m_l‖²
over all neighbours: to separate superpixels is cheap where the border is short or the colours
differ (Boykov and Jolly, ICCV 2001).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images.pictures import Picture
from ssvm_bench.datasets.images.superpixels import borders

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
        Its truth are labels of the points.
    segments : ndarray of int, shape (h, w)
        Superpixel of every pixel.
    scribbles : ndarray of uint8, shape (h, w), or None
        The labels of pixels that are scribbled (`.scribbles`).
    dataset : Dataset
        Of points.
    points : ndarray of int64, shape (L,)
        Those that are superpixels 0 … L − 1 of the picture.
    """

    title: str
    picture: Picture
    segments: np.ndarray
    scribbles: np.ndarray | None
    dataset: Dataset
    points: np.ndarray
