"""Local binary patterns of images at several scales: what a landmark's surroundings look like.

The pattern of a pixel says which of eight points around it, at the distance of the scale, are at
least as bright as it is: a byte (Ojala et al. 2002). A landmark's features are the patterns of
pixels around it, at every scale on a grid of that spacing:

======  ======================
scale   grid
======  ======================
1       9 × 9
2       5 × 5, every 2 pixels
4       3 × 3, every 4 pixels
======  ======================

so that it has 115 cells, and 115 · 256 weights, of which an image meets 115. Kept are the maps of
the patterns, a byte a pixel and scale, with a margin into which the image's edge is continued.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.extras import needed

GRIDS = ((1, 4), (2, 2), (4, 1))
"""Scale, and how many cells there are from the middle of the grid to its side."""

MARGIN = 4
CODES = 256


def cells() -> np.ndarray:
    """Return the cells of a landmark: scale (its number), and row and column in the margin's frame.

    The frame is that of the window around a landmark whose first pixel is ``MARGIN`` above and left
    of it: int64 (115, 3).
    """
    found = [
        (k, MARGIN + scale * r, MARGIN + scale * c)
        for k, (scale, half) in enumerate(GRIDS)
        for r in range(-half, half + 1)
        for c in range(-half, half + 1)
    ]
    return np.array(found)


def maps(images: np.ndarray) -> np.ndarray:
    """Return the maps of images uint8 (n, H, W): uint8 (n, scales · (H + 8) · (W + 8))."""
    with needed("images", "Preparing pictures"):
        from skimage.feature import local_binary_pattern

    wide = MARGIN + GRIDS[-1][0]
    inside = slice(wide - MARGIN, MARGIN - wide)
    n, H, W = images.shape
    found = np.empty((n, len(GRIDS), H + 2 * MARGIN, W + 2 * MARGIN), np.uint8)
    for i, image in enumerate(images):
        padded = np.pad(image, wide, mode="edge")
        for k, (scale, _) in enumerate(GRIDS):
            found[i, k] = local_binary_pattern(padded, 8, scale)[inside, inside]
    return found.reshape(n, -1)
