"""Where the landmarks of an image may be: a search box for each, and a tree that joins them.

Landmarks are counted such that the parent of each comes before it; the first one is the root.
Positions in a box are counted row by row. The label of a landmark is the pixel that it is at,
row · width + column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Boxes(NamedTuple):
    """Search boxes.

    Attributes
    ----------
    names : tuple of str
        Of the P landmarks.
    parents : tuple of int
        That of each landmark, of the root −1.
    corners, sizes : tuples of (int, int)
        First row and column of each box; rows and columns of it.
    image : (height, width)
        Of every image, in pixels.
    upper, lower : tuples of int
        Landmarks whose means are the two ends of the distance that deviations are measured in: of a
        face the corners of the eyes, and of the mouth.
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
        """What the labels are called: row and column."""
        return [f"{r}:{c}" for r in range(self.image[0]) for c in range(self.image[1])]

    def positions(self, y: np.ndarray) -> np.ndarray:
        """Return row and column, int64 (…, 2), of labels of any shape."""
        return np.stack(np.divmod(y.astype(np.int64), self.image[1]), axis=-1)

    def scale(self, positions: np.ndarray) -> np.ndarray:
        """Return the distance that deviations are measured in, for positions (n, P, 2)."""
        upper, lower = (positions[:, list(of)].mean(axis=1) for of in (self.upper, self.lower))
        return np.sqrt(((upper - lower) ** 2).sum(axis=1))

    def fault(self, n_labels: int, n_features: int) -> str | None:
        """Return what is wrong with them for data of so many labels and features."""
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
        """Return the first landmark outside its box, and where it is; None if there is none.

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
