"""Pictures with their superpixels, and labelings of these as colours over the picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ssvm_bench.config import GENUINE
from ssvm_bench.figures import style

TWO = ("#0072B2", "#E69F00")
NINE = (
    *("#56B4E9", "#228833", "#999999", "#DDCC77", "#332288", "#AA4499", "#663333", "#E69F00"),
    "#FFFFFF",
)
"""Colours of labels that readers with any colour vision can tell apart."""

WIDTH, TITLE, LEGEND = 2.6, 0.4, 0.7
"""Width of a panel, height of its title and of the legend, in inches."""

SCRIBBLE = 7
"""Width of a scribble that is a pixel wide, in pixels."""

COVER = 0.75
"""How much a label's colour hides of the picture below."""


Labels: TypeAlias = "tuple[str, np.ndarray]"
"""A title, and labels of superpixels."""


class Row(NamedTuple):
    """One picture.

    Attributes
    ----------
    title : str
    rgb : ndarray of uint8, shape (h, w, 3)
    truth : ndarray of uint8, shape (h, w)
        Labels of the pixels.
    segments : ndarray of int, shape (h, w)
        Superpixel of every pixel.
    y : ndarray of uint8, shape (L,)
        Ground truth of the superpixels.
    predictions : list of (str, ndarray of uint8, shape (L,))
        Titles and labels.
    scribbles : ndarray of uint8, shape (h, w), or None
        Labels that are drawn on pixels; what is above all labels is no scribble.
    """

    title: str
    rgb: np.ndarray
    truth: np.ndarray
    segments: np.ndarray
    y: np.ndarray
    predictions: Sequence[Labels]
    scribbles: np.ndarray | None = None


def draw_rows(rows: Sequence[Row], labels: Sequence[str], source: str) -> Figure:
    """Draw one row of panels a picture: superpixels, ground truth, labelings.

    Parameters
    ----------
    rows : sequence of Row
        With as many predictions each.
    labels : sequence of str
        Names of the labels 0 .. K − 1.
    source : str
        As the dataset tells it.
    """
    colours = [to_rgb(colour) for colour in (TWO if len(labels) == 2 else NINE)]
    n_panels = 3 + len(rows[0].predictions)
    heights = [WIDTH * row.rgb.shape[0] / row.rgb.shape[1] + TITLE for row in rows]
    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(WIDTH * n_panels, sum(heights) + LEGEND), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(rows), n_panels, squeeze=False, height_ratios=heights)
        for line, row in zip(panels, rows, strict=True):
            _draw_row(line, row, np.array(colours))
        figure.legend(
            handles=[
                Patch(facecolor=colour, edgecolor="#444444", label=label)
                for colour, label in zip(colours, labels, strict=True)
            ],
            loc="outside lower center",
            ncols=min(len(labels), 5),
            title=None if source in GENUINE else style.source_name(source),
        )
    return figure


def _draw_row(panels: Sequence[Axes], row: Row, colours: np.ndarray) -> None:
    picture, truth, parts, *others = panels
    edges = borders(row.segments)
    outlined = row.rgb.copy()
    outlined[edges] = (255, 230, 0)
    if row.scribbles is not None:
        from scipy.ndimage import minimum_filter

        strokes = minimum_filter(row.scribbles, SCRIBBLE)
        drawn = strokes < len(colours)
        outlined[drawn] = 255 * colours[strokes[drawn]]
    _panel(picture, outlined, row.title)
    _panel(truth, covered(row.rgb, colours[row.truth]), "ground truth")
    majority = colours[row.y][row.segments]
    lost = np.mean(row.y[row.segments] != row.truth)
    _panel(
        parts,
        covered(row.rgb, majority),
        f"majority in each superpixel\n{lost:.1%} of pixels differ",
    )
    for panel, (title, y) in zip(others, row.predictions, strict=True):
        wrong = np.mean(y != row.y)
        shown = covered(row.rgb, colours[y][row.segments])
        _panel(panel, shown, f"{title}\n{wrong:.1%} of superpixels wrong")


def _panel(panel: Axes, pixels: np.ndarray, title: str) -> None:
    panel.imshow(pixels, interpolation="nearest")
    panel.set_title(style.as_written(title), fontsize=8)
    panel.set_axis_off()


def covered(rgb: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Return the picture (h, w, 3) in grey below colours (h, w, 3) in 0 .. 1."""
    grey = rgb.mean(axis=2, keepdims=True) / 255
    return (1 - COVER) * grey + COVER * colours


def borders(segments: np.ndarray) -> np.ndarray:
    """Return the mask (h, w) of pixels with another superpixel on their right or below."""
    found = np.zeros(segments.shape, bool)
    found[:, :-1] |= segments[:, :-1] != segments[:, 1:]
    found[:-1] |= segments[:-1] != segments[1:]
    return found
