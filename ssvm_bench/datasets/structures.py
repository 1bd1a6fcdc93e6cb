"""Further data of three structures: alphabets, search boxes and local patterns, windows.

**Segments** are images of text, composed without gaps of characters of fixed widths:

.. code-block:: text

    k(s_1) = 0,   k(s_i) = k(s_{i−1}) + ω(a_{i−1}),   W = k(s_L) + ω(a_L)

(Uřičář and Franc 2012, equation 15) for characters a_i of widths ω(a_i) that begin at the columns
k(s_i). The label of a column is a pair of a character and a column in it; pairs are numbered
character by character. A sequence of labels is *admissible* if it is such a segmentation.

**Landmarks** of an image have one search box each, and are joined by a tree. A parent comes before
its children; the first landmark is the root. Positions in a box are numbered row by row. The label
of a landmark is its pixel, row · width + column.

The local binary pattern of a pixel is a byte: which of eight points around it, at the distance
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

**Latent** objects are in one of the windows on the canvas of an example. Positions are numbered row
by row. A window is a view of the canvas; its pixels are not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ssvm_bench.base.errors import needed

GRIDS = ((1, 4), (2, 2), (4, 1))
"""Scale of local patterns, and number of cells from the middle of the grid to its side."""

MARGIN, CODES = 4, 256
"""Pixels of a map beyond the edge of the image; number of patterns."""


class Alphabet(NamedTuple):
    """The characters, in the order of their labels.

    Attributes
    ----------
    names : tuple of str
    widths : tuple of int
        ω ≥ 1, in columns.
    """

    names: tuple[str, ...]
    widths: tuple[int, ...]

    @property
    def n_labels(self) -> int:
        """Number of pairs of a character and a column in it."""
        return sum(self.widths)

    @property
    def starts(self) -> np.ndarray:
        """Label of the first column of each character, int64."""
        return np.cumsum([0, *self.widths[:-1]])

    @property
    def labels(self) -> list[str]:
        """Names of the labels: character and column."""
        pairs = zip(self.names, self.widths, strict=True)
        return [f"{name}.{j}" for name, width in pairs for j in range(width)]

    def columns(self, characters: Sequence[int]) -> np.ndarray:
        """Return the labels (int64) of the columns of a text, given by indices into ``names``."""
        starts = self.starts
        return np.concatenate([starts[a] + np.arange(self.widths[a]) for a in characters])

    def segments(self, y: np.ndarray) -> list[tuple[int, int]]:
        """Return the (character, first column) pairs of an admissible sequence of labels."""
        of_label = np.repeat(np.arange(len(self.widths)), self.widths)
        found, k = [], 0
        while k < len(y):
            found.append((int(of_label[y[k]]), k))
            k += self.widths[found[-1][0]]
        return found

    def fault(self, n_labels: int) -> str | None:
        """Return why the alphabet does not fit data with so many labels; None if it does."""
        if len(self.names) != len(self.widths):
            return f"it has {len(self.names)} characters and {len(self.widths)} widths"
        for name, width in zip(self.names, self.widths, strict=True):
            if width < 1:
                return f"the width of character {name!r} is {width}, and widths are 1 or more"
        if self.n_labels != n_labels:
            return f"its characters have {self.n_labels} columns, and there are {n_labels} labels"
        return None

    def first_inadmissible(self, y: np.ndarray, offsets: np.ndarray) -> tuple[int, str] | None:
        """Return the first part with an inadmissible label, and why; None if there is none.

        Parameters
        ----------
        y : ndarray of integers, shape (parts,)
        offsets : ndarray of int64, shape (n + 1,)
        """
        y = y.astype(np.int64)
        starts, stops = np.zeros((2, self.n_labels), bool)
        starts[self.starts], stops[self.starts + np.array(self.widths) - 1] = True, True
        begins, ends = np.zeros((2, y.size), bool)
        begins[offsets[:-1]], ends[offsets[1:] - 1] = True, True
        after = np.concatenate(([True], stops[y[:-1]])) | begins
        follows = np.concatenate(([False], y[1:] == y[:-1] + 1)) & ~begins
        wrong = np.where(after, ~starts[y], ~follows) | (ends & ~stops[y])
        if not wrong.any():
            return None
        part = int(np.argmax(wrong))
        return part, (
            f"has the label {self.labels[y[part]]}, where no sequence of whole characters can have "
            "it: they follow each other without gaps and overlaps, and fill an image"
        )


class Boxes(NamedTuple):
    """Search boxes of landmarks, and their tree.

    Attributes
    ----------
    names : tuple of str
        Names of the P landmarks.
    parents : tuple of int
        Parent of each landmark; −1 for the root.
    corners, sizes : tuples of (int, int)
        First row and column of each box; its numbers of rows and columns.
    image : (height, width)
        Size of every image, in pixels.
    upper, lower : tuples of int
        Two groups of landmarks. The distance of their mean positions is the unit of deviations: for
        a face, the distance from the corners of the eyes to those of the mouth.
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    corners: tuple[tuple[int, int], ...]
    sizes: tuple[tuple[int, int], ...]
    image: tuple[int, int]
    upper: tuple[int, ...]
    lower: tuple[int, ...]

    @property
    def labels(self) -> list[str]:
        """Names of the labels: row and column."""
        return [f"{r}:{c}" for r in range(self.image[0]) for c in range(self.image[1])]

    def positions(self, y: np.ndarray) -> np.ndarray:
        """Return row and column, int64 (…, 2), of labels of any shape."""
        return np.stack(np.divmod(y.astype(np.int64), self.image[1]), axis=-1)

    def scale(self, positions: np.ndarray) -> np.ndarray:
        """Return the distance (n,) that is the unit of deviations, for positions (n, P, 2)."""
        upper, lower = (positions[:, list(of)].mean(axis=1) for of in (self.upper, self.lower))
        return np.sqrt(((upper - lower) ** 2).sum(axis=1))

    def fault(self, n_labels: int) -> str | None:
        """Return why the boxes do not fit data with so many labels; None if they do."""
        P = len(self.names)
        sizes = [len(of) for of in (self.parents, self.corners, self.sizes)]
        if P < 1 or sizes != [P] * 3:
            return f"it has {P} landmarks, {sizes[0]} parents and {sizes[2]} boxes"
        for l, (name, parent) in enumerate(zip(self.names, self.parents, strict=True)):
            if not (parent == -1 if l == 0 else 0 <= parent < l):
                return f"the parent of {name!r} is {parent}, and comes before it in a tree"
            (row, column), (rows, columns) = self.corners[l], self.sizes[l]
            inside = row >= 0 and column >= 0 and rows >= 1 and columns >= 1
            if not inside or row + rows > self.image[0] or column + columns > self.image[1]:
                return f"the search box of {name!r} leaves the image"
        if self.image[0] * self.image[1] != n_labels:
            return f"an image has {self.image} pixels, and there are {n_labels} labels"
        if not all(of and set(of) <= set(range(P)) for of in (self.upper, self.lower)):
            return "a deviation is measured in the distance of landmarks that there are"
        return None

    def first_inadmissible(self, y: np.ndarray, offsets: np.ndarray) -> tuple[int, str] | None:
        """Return the first inadmissible landmark, and why it is; None if there is none.

        Parameters
        ----------
        y : ndarray of integers, shape (n P,)
        offsets : ndarray of int64, shape (n + 1,)
        """
        P = len(self.names)
        if not np.array_equal(offsets, P * np.arange(offsets.size)):
            i = int(np.argmax(np.diff(offsets) != P))
            return int(offsets[i]), f"is of an image with other than {P} landmarks"
        at = self.positions(y.reshape(-1, P))
        low = np.array(self.corners)
        wrong = ((at < low) | (at >= low + np.array(self.sizes))).any(axis=2).ravel()
        if wrong.any():
            part = int(np.argmax(wrong))
            (r, c), l = at.reshape(-1, 2)[part], part % P
            (top, left), (rows, columns) = self.corners[l], self.sizes[l]
            return part, (
                f"is the landmark {self.names[l]!r} in row {r}, column {c}, outside its search box "
                f"of rows {top} to {top + rows - 1} and columns {left} to {left + columns - 1}"
            )
        flat = np.flatnonzero(self.scale(at) == 0.0)
        if flat.size:
            return int(P * flat[0]), (
                "is of an image whose landmarks have the distance 0 that deviations are measured in"
            )
        return None


def pattern_cells() -> np.ndarray:
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


def pattern_maps(images: np.ndarray) -> np.ndarray:
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


class Windows(NamedTuple):
    """The windows of one size whose corners are on a grid of the canvas.

    Attributes
    ----------
    canvas, size : (height, width)
        Size of the canvas, whose pixels are the features of an example, row by row; of a window.
    step : int
        Distance from one window to the next along each axis, in pixels.
    """

    canvas: tuple[int, int]
    size: tuple[int, int]
    step: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of positions down and across."""
        (H, W), (h, w) = self.canvas, self.size
        return (H - h) // self.step + 1, (W - w) // self.step + 1

    @property
    def positions(self) -> int:
        """Number of positions."""
        return self.shape[0] * self.shape[1]

    def corners(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return row and column of the first pixel of the windows at some positions."""
        rows, columns = np.divmod(places, self.shape[1])
        return rows * self.step, columns * self.step
