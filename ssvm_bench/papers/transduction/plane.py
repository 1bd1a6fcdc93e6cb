"""Points in the plane, coloured by their labels: a panel per labeling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from ssvm_bench.figures import drawing, style

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Of labels; after these, they come again."""

SIDE_BY_SIDE = 2
"""Panels in a row."""

SIZE = 7
"""Of a point's marker, in points²."""


class Panel(NamedTuple):
    """A title, and a label of each point."""

    title: str
    y: np.ndarray


def draw(x: np.ndarray, panels: Sequence[Panel], title: str, notes: Sequence[str]) -> Figure:
    """Draw the points once for each labeling.

    Parameters
    ----------
    x : ndarray of float64, shape (n, 2)
    panels : sequence of Panel
        Their order is that of the figure, row by row.
    title : str
    notes : sequence of str
        Remarks below the figure.
    """
    colours = np.array(COLOURS)
    columns = min(len(panels), SIDE_BY_SIDE)
    shape = -(-len(panels) // columns), columns
    with drawing.page(title, notes, shape, ((), ()), panel_height=1.5) as (figure, axes):
        for place in axes.ravel():
            place.set_axis_off()
        for place, panel in zip(axes.ravel(), panels, strict=False):
            place.scatter(*x.T, s=SIZE, c=colours[panel.y % len(COLOURS)], linewidths=0)
            place.set_aspect("equal")
            place.set_title(style.as_written(panel.title), fontsize=8)
    return figure
