"""Local binary patterns of images at several scales: the features around a landmark.

The pattern of a pixel is a byte that says which of eight points around the pixel, at the distance
of the scale, are at least as bright (Ojala et al. 2002). A landmark's features are the patterns of
the pixels around it, on one grid per scale, with the scale as its spacing:

======  ======================
scale   grid
======  ======================
1       9 × 9
2       5 × 5, every 2 pixels
4       3 × 3, every 4 pixels
======  ======================

So a landmark has 115 cells and 115 · 256 weights, of which an image uses 115. The maps of the
patterns are stored, one byte per pixel and scale, with a margin that continues the image's edge.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.errors import needed

GRIDS = ((1, 4), (2, 2), (4, 1))
"""Scale, and number of cells from the middle of the grid to its side."""

MARGIN = 4
CODES = 256


def cells() -> np.ndarray:
    """Return the cells of a landmark, int64 (115, 3): index of the scale, row and column.

    Row and column count from the pixel that is ``MARGIN`` above and ``MARGIN`` left of the
    landmark.
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
