"""Where the object of an example may be: the windows on its canvas, which a `Dataset` may have.

Positions are counted row by row; a position is a view on the canvas, of which nothing is copied.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Windows(NamedTuple):
    """The windows of a size whose corners are on a grid of the canvas.

    Attributes
    ----------
    canvas, size : (height, width)
        Of the canvas, whose pixels are the features of an example, row by row; of a window.
    step : int
        From one window to the next, in pixels, both ways.
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
