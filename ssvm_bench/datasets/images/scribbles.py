"""Scribbles: what a user would draw on a picture to say what is figure and what is ground.

Nobody draws them here: a stroke is a part of the skeleton of the true mask (the middle line of its
largest piece), from one of its points, chosen at random, as far to all sides along the skeleton as
a share of its length goes. So a stroke is connected, and well inside of what it marks.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from ssvm_bench.base.random import uniform

NOTHING = 255
"""In a map of scribbles, a pixel without one."""


def scribbled(truth: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return the map of scribbles, one stroke for each label that occurs.

    Parameters
    ----------
    truth : ndarray of uint8, shape (h, w)
        Label of every pixel.
    share : float
        Share of the length of a skeleton that is drawn, in (0, 1].
    seed : int

    Returns
    -------
    ndarray of uint8, shape (h, w)
        The label that a scribble gives a pixel, else `NOTHING`.
    """
    bits = np.random.PCG64(seed)
    found = np.full(truth.shape, NOTHING, np.uint8)
    for label in np.unique(truth):
        found[stroke(truth == label, share, bits)] = label
    return found


def stroke(mask: np.ndarray, share: float, bits: np.random.PCG64) -> np.ndarray:
    """Return the mask of a stroke along the skeleton of a mask that is not empty."""
    from scipy.ndimage import binary_dilation, label
    from skimage.morphology import skeletonize

    around = np.ones((3, 3), bool)
    # the border of the picture is a border of what is in it
    thin = skeletonize(np.pad(mask, 1))[1:-1, 1:-1]
    pieces, _ = label(thin, around)
    line = pieces == 1 + np.bincount(pieces[thin] - 1).argmax()
    wanted = ceil(share * np.count_nonzero(line))
    rows, columns = np.nonzero(line)
    begin = int(uniform((1,), bits)[0] * rows.size)
    drawn = np.zeros_like(mask)
    drawn[rows[begin], columns[begin]] = True
    while np.count_nonzero(drawn) < wanted:
        drawn = binary_dilation(drawn, around, mask=line)
    return drawn
