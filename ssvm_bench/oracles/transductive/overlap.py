"""Intersection over union of the figure, label 1, in pixels: picture by picture, then the mean.

.. code-block:: text

    IoU_t = Σ_{i∈t: y_i=1} p_i1 / ( Σ_{i∈t} p_i1 + Σ_{i∈t: y_i=1} Σ_{c≠1} p_ic )

p_ic are the pixels of superpixel i with the true label c. A picture without figure, true or found,
has 1. Pictures whose superpixels are all told, as the first of a video, do not count.
(F. Perazzi et al.: A benchmark dataset and evaluation methodology for video object segmentation,
CVPR 2016, section 4.1: J.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FIGURE = 1


class Overlap(NamedTuple):
    """The pixels of superpixels.

    Attributes
    ----------
    figure, other : ndarrays of float64, shape (n,)
        Pixels of each point that are figure, and those that are not.
    frame : ndarray of int64, shape (n,)
        The picture of each point.
    counted : ndarray of int64
        The pictures that count.
    """

    figure: np.ndarray
    other: np.ndarray
    frame: np.ndarray
    counted: np.ndarray

    def iou(self, y: np.ndarray) -> np.ndarray:
        """Return the IoU of each picture that counts, for the labels of all points."""
        found = y == FIGURE
        both, true, more = (
            np.bincount(self.frame, weights=pixels)[self.counted]
            for pixels in (found * self.figure, self.figure, found * self.other)
        )
        union = true + more
        return np.where(union > 0, both / np.maximum(union, 1.0), 1.0)

    def mean_iou(self, y: np.ndarray) -> float:
        """Return the mean; NaN if no picture counts."""
        return float(self.iou(y).mean()) if self.counted.size else np.nan


def build(pixels: np.ndarray, frame: np.ndarray | None, told: np.ndarray) -> Overlap:
    """Return what scores labels of points with these pixels, shape (n, L); told are ≥ 0."""
    frame = np.zeros(len(pixels), np.int64) if frame is None else frame
    figure = pixels[:, FIGURE].astype(np.float64)
    other = pixels.sum(axis=1) - figure
    return Overlap(figure, other, frame, np.unique(frame[told < 0]))
