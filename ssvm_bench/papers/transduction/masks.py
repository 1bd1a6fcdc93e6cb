"""Pictures with the masks that methods found, side by side: a row of panels a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from ssvm_bench.figures import drawing, segmentation, style

RED, COVER = np.array(to_rgb("#E3000F")), 0.5
"""Colour of a mask, and how much it hides of the picture below."""

WIDTH, TITLE = 2.4, 0.25
"""Width of a panel, and height of its title, in inches."""

GROUND, FIGURE = np.array(to_rgb("#0050E3")), RED
"""Colours of the scribbles."""


class Row(NamedTuple):
    """One picture.

    Attributes
    ----------
    title : str
    rgb : ndarray of uint8, shape (h, w, 3)
    scribbles : ndarray of uint8, shape (h, w), or None
        0 on ground, 1 on figure; what is above is no scribble.
    masks : sequence of (str, ndarray of bool, shape (h, w))
        Titles and masks.
    """

    title: str
    rgb: np.ndarray
    scribbles: np.ndarray | None
    masks: Sequence[tuple[str, np.ndarray]]


def draw(rows: Sequence[Row], title: str, notes: Sequence[str]) -> Figure:
    """Draw the pictures, each beside its masks; all rows have as many of these."""
    shape = len(rows), 1 + len(rows[0].masks)
    tallest = max(row.rgb.shape[0] / row.rgb.shape[1] for row in rows)
    height = WIDTH * tallest + TITLE
    layout = drawing.page(title, notes, shape, ((), ()), height, panel_width=WIDTH)
    with layout as (figure, panels):
        for line, row in zip(panels, rows, strict=True):
            shown = [(row.title, _scribbled(row))]
            shown += [(name, covered(row.rgb, mask)) for name, mask in row.masks]
            for panel, (name, pixels) in zip(line, shown, strict=True):
                panel.imshow(pixels, interpolation="nearest")
                panel.set_title(style.as_written(name), fontsize=8)
                panel.set_axis_off()
    return figure


def covered(rgb: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the picture, red where the mask is, with values in 0 … 1."""
    pixels = rgb / 255.0
    pixels[mask] = (1.0 - COVER) * pixels[mask] + COVER * RED
    return pixels


def _scribbled(row: Row) -> np.ndarray:
    """Return the picture with its scribbles, as wide as they are seen."""
    pixels = row.rgb / 255.0
    if row.scribbles is not None:
        from scipy.ndimage import minimum_filter

        strokes = minimum_filter(row.scribbles, segmentation.SCRIBBLE)
        pixels[strokes == 0], pixels[strokes == 1] = GROUND, FIGURE
    return pixels
