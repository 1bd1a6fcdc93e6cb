"""Pictures with their true and predicted labels: superpixels, segments, landmarks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from ssvm_bench.config import GENUINE
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.structures import Alphabet
from ssvm_bench.figures import style
from ssvm_bench.figures.drawing import RC

TWO = ("#0072B2", "#E69F00")
NINE = (
    *("#56B4E9", "#228833", "#999999", "#DDCC77", "#332288", "#AA4499", "#663333", "#E69F00"),
    "#FFFFFF",
)
"""Colours of labels that readers with any colour vision can tell apart."""

TRUE, FOUND = "#0072B2", "#D55E00"
"""Colours of true and of predicted segments and landmarks."""

SCRIBBLE = 7
"""Width in pixels at which a scribble of one pixel is drawn."""

FAINT = 0.15
"""Borders that are a larger share of a picture are fainter: they would hide it."""

COVER = 0.75
"""Opacity of a label's colour over the picture."""

GREY = {"cmap": "gray", "vmin": 0, "vmax": 255}

Labels: TypeAlias = "tuple[str, np.ndarray]"
"""A title, and labels of superpixels."""


@contextmanager
def _page(
    heights: Sequence[float], columns: int, width: float, margin: float
) -> Iterator[tuple[Figure, np.ndarray]]:
    """Lay out rows of panels; lengths are in inches."""
    with mpl.rc_context(RC):
        figure = Figure(figsize=(width * columns, sum(heights) + margin), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
        yield figure, panels


def show(panel: Axes, pixels: np.ndarray, title: str, size: float, **options: Any) -> None:
    """Show pixels without interpolation, below a title in font size ``size``."""
    panel.imshow(pixels, interpolation="nearest", **options)
    panel.set_title(style.as_written(title), fontsize=size)
    panel.set_axis_off()


# ---- superpixels ------------------------------------------------------------------------------


class LabeledPicture(NamedTuple):
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
        Labels that are drawn on pixels; a value above all labels means no scribble.
    """

    title: str
    rgb: np.ndarray
    truth: np.ndarray
    segments: np.ndarray
    y: np.ndarray
    predictions: Sequence[Labels]
    scribbles: np.ndarray | None = None


def draw_rows(rows: Sequence[LabeledPicture], labels: Sequence[str], source: str) -> Figure:
    """Draw one row of panels a picture: superpixels, ground truth, labelings.

    Parameters
    ----------
    rows : sequence of LabeledPicture
        All with the same number of predictions.
    labels : sequence of str
        Names of the labels 0 .. K − 1.
    source : str
        Source of the dataset.
    """
    colours = [to_rgb(colour) for colour in (TWO if len(labels) == 2 else NINE)]
    heights = [2.6 * row.rgb.shape[0] / row.rgb.shape[1] + 0.4 for row in rows]
    with _page(heights, 3 + len(rows[0].predictions), 2.6, 0.7) as (figure, panels):
        for line, row in zip(panels, rows, strict=True):
            for panel, (pixels, title) in zip(line, _shown(row, np.array(colours)), strict=True):
                show(panel, pixels, title, 8)
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


def _shown(row: LabeledPicture, colours: np.ndarray) -> Iterator[tuple[np.ndarray, str]]:
    """Yield the pixels and the title of each panel of a picture."""
    outlined = row.rgb.copy()
    lines = borders(row.segments)
    strength = min(1.0, FAINT / max(lines.mean(), FAINT))
    outlined[lines] = (1 - strength) * outlined[lines] + strength * np.array([255, 230, 0])
    if row.scribbles is not None:
        strokes = widened(row.scribbles)
        scribbled = strokes < len(colours)
        outlined[scribbled] = 255 * colours[strokes[scribbled]]
    yield outlined, row.title
    yield _covered(row.rgb, colours[row.truth]), "ground truth"
    lost = np.mean(row.y[row.segments] != row.truth)
    title = f"majority in each superpixel\n{lost:.1%} of pixels differ"
    yield _covered(row.rgb, colours[row.y][row.segments]), title
    for name, y in row.predictions:
        title = f"{name}\n{np.mean(y != row.y):.1%} of superpixels wrong"
        yield _covered(row.rgb, colours[y][row.segments]), title


def widened(scribbles: np.ndarray) -> np.ndarray:
    """Return a map of scribbles, widened to ``SCRIBBLE`` pixels."""
    from scipy.ndimage import minimum_filter

    return minimum_filter(scribbles, SCRIBBLE)


def _covered(rgb: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Return the picture (h, w, 3) in grey below colours (h, w, 3) in 0 .. 1."""
    grey = rgb.mean(axis=2, keepdims=True) / 255
    return (1 - COVER) * grey + COVER * colours


def borders(segments: np.ndarray) -> np.ndarray:
    """Return the mask (h, w) of pixels with another superpixel on their right or below."""
    found = np.zeros(segments.shape, bool)
    found[:, :-1] |= segments[:, :-1] != segments[:, 1:]
    found[:-1] |= segments[:-1] != segments[1:]
    return found


# ---- segments and landmarks: before and after training ----------------------------------------


class Learned(NamedTuple):
    """What a run has learned.

    Attributes
    ----------
    title : str
    w : ndarray of float64, shape (d,)
    before, after : ndarrays of integers
        Labels of all parts of the images that are shown, at w = 0 and at w.
    """

    title: str
    w: np.ndarray
    before: np.ndarray
    after: np.ndarray


def draw_structures(
    titles: Sequence[str],
    images: Sequence[np.ndarray],
    dataset: Dataset,
    learned: Sequence[Learned],
    source: str,
) -> Figure:
    """Draw images whose labels are segments or landmarks, a row each: true, before and after.

    Number plates are followed by the templates of each run.

    Parameters
    ----------
    titles : sequence of str
    images : sequence of ndarray of uint8, shape (rows, columns)
    dataset : Dataset
        The dataset of these images.
    learned : sequence of Learned
    source : str
        Source of the dataset.
    """
    admissible: Any = dataset.admissible
    of_plates = isinstance(admissible, Alphabet)
    templates, draw = (learned, _show_segments) if of_plates else ([], _show_landmarks)
    tall = 2.8 * max(image.shape[0] / image.shape[1] for image in images) + 0.45
    heights = [tall] * len(images) + [0.6 * 2.8 + 0.45] * len(templates)
    with _page(heights, 1 + 2 * len(learned), 2.8, 0.45) as (figure, panels):
        for k, (line, title, image) in enumerate(zip(panels, titles, images, strict=False)):
            parts = slice(dataset.offsets[k], dataset.offsets[k + 1])
            shown = [(title, dataset.y)]
            for run in learned:
                shown += [("w = 0", run.before), (run.title, run.after)]
            for panel, (above, y) in zip(line, shown, strict=True):
                found = None if y is dataset.y else y[parts]
                draw(panel, admissible, image, above, dataset.y[parts], found)
        for k, run in enumerate(templates, len(images)):
            for panel in panels[k]:
                panel.set_axis_off()
            across = figure.add_subplot(panels[0, 0].get_gridspec()[k, :])
            _draw_templates(across, run, admissible, dataset.n_features)
        if source != "real":
            figure.suptitle(style.source_name(source), fontsize=8)
    return figure


def _show_segments(
    panel: Axes,
    alphabet: Any,
    image: np.ndarray,
    title: str,
    truth: np.ndarray,
    found: np.ndarray | None,
) -> None:
    """Show a plate with its true or predicted segmentation into characters."""
    pieces = alphabet.segments(truth if found is None else found)
    for _, begin in pieces[1:]:
        panel.axvline(begin - 0.5, color=TRUE if found is None else FOUND, linewidth=0.8)
    text = "".join(alphabet.names[character] for character, _ in pieces)
    wrong = "" if found is None else f"{np.mean(found != truth):.1%} of columns wrong"
    show(panel, image, f"{title}\n{wrong}\n{text}", 7, **GREY)


def _draw_templates(panel: Axes, run: Learned, alphabet: Alphabet, n_features: int) -> None:
    templates = run.w.reshape(alphabet.n_labels, n_features).T
    high = np.abs(templates).max() or 1.0
    panel.imshow(templates, cmap="gray", vmin=-high, vmax=high, interpolation="nearest")
    for start, name in zip(alphabet.starts, alphabet.names, strict=True):
        panel.axvline(start - 0.5, color=FOUND, linewidth=0.6)
        panel.text(start, -1.0, style.as_written(name), fontsize=7, va="bottom")
    panel.set_axis_off()
    panel.set_title(style.as_written(f"templates of {run.title}"), fontsize=8, pad=14)


def _show_landmarks(
    panel: Axes,
    boxes: Any,
    image: np.ndarray,
    title: str,
    truth: np.ndarray,
    found: np.ndarray | None,
) -> None:
    """Show a face with its true landmarks, and the predicted ones if there are any."""
    at = boxes.positions(truth)
    marked = [(at, "o", TRUE)]
    if found is not None:
        marked.append((boxes.positions(found), "x", FOUND))
        far = np.sqrt(((marked[1][0] - at) ** 2).sum(axis=1)).mean()
        share = far / boxes.scale(at[None].astype(np.float64))[0]
        title = f"{title}\ndeviation {share:.1%} of eyes to mouth"
    show(panel, image, title, 7, **GREY)
    for points, marker, colour in marked:
        panel.plot(*points.T[::-1], marker, color=colour, markersize=4, fillstyle="none")
