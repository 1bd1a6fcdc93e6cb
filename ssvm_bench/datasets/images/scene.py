"""A picture whose superpixels are points of transduction, as it is shown to a human."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.datasets.images.pictures import Picture
from ssvm_bench.datasets.points import Points


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
        The labels of pixels that are scribbled (:mod:`.scribbles`).
    dataset : Points
    points : ndarray of int64, shape (L,)
        Those that are superpixels 0 … L − 1 of the picture.
    """

    title: str
    picture: Picture
    segments: np.ndarray
    scribbles: np.ndarray | None
    dataset: Points
    points: np.ndarray
