"""Images with segments or landmarks: the true ones, and predictions before and after training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.structures import Alphabet, Boxes
from ssvm_bench.figures import style

TRUE, FOUND = "#0072B2", "#D55E00"
"""Colours that readers with any colour vision can tell apart."""

WIDTH, TITLE = 2.8, 0.45
"""Width of a panel, and height of its title, in inches."""


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


def segments(
    titles: Sequence[str],
    images: Sequence[np.ndarray],
    dataset: Dataset,
    learned: Sequence[Learned],
    source: str,
) -> Figure:
    """Draw plates, a row each, and the templates of each run below.

    Parameters
    ----------
    titles : sequence of str
    images : sequence of ndarray of uint8, shape (rows, columns)
    dataset : Dataset
        Of these images.
    learned : sequence of Learned
    source : str
        Where the images come from.
    """
    alphabet = dataset.admissible
    assert isinstance(alphabet, Alphabet)
    tall = WIDTH * max(image.shape[0] / image.shape[1] for image in images) + TITLE
    figure, panels = _panels(len(images), learned, tall, len(learned) * (0.6 * WIDTH + TITLE))
    for k, (line, title, image) in enumerate(zip(panels, titles, images, strict=True)):
        parts = slice(dataset.offsets[k], dataset.offsets[k + 1])
        truth = dataset.y[parts]
        heading = f"{title}\n\n{_text(alphabet, truth)}"
        _plate(line[0], image, alphabet, truth, TRUE, heading)
        for panel, (name, y) in zip(line[1:], _labelings(learned), strict=True):
            wrong = f"{np.mean(y[parts] != truth):.1%} of columns wrong"
            heading = f"{name}\n{wrong}\n{_text(alphabet, y[parts])}"
            _plate(panel, image, alphabet, y[parts], FOUND, heading)
    f = dataset.n_features
    for k, run in enumerate(learned):
        panel = figure.add_subplot(panels[0, 0].get_gridspec()[len(images) + k, :])
        templates = run.w.reshape(alphabet.n_labels, f).T
        high = np.abs(templates).max() or 1.0
        panel.imshow(templates, cmap="gray", vmin=-high, vmax=high, interpolation="nearest")
        for start, name in zip(alphabet.starts, alphabet.names, strict=True):
            panel.axvline(start - 0.5, color=FOUND, linewidth=0.6)
            panel.text(start, -1.0, style.as_written(name), fontsize=7, va="bottom")
        panel.set_axis_off()
        panel.set_title(f"templates of {run.title}", fontsize=8, pad=14)
    return _named(figure, source)


def landmarks(
    titles: Sequence[str],
    images: Sequence[np.ndarray],
    dataset: Dataset,
    learned: Sequence[Learned],
    source: str,
) -> Figure:
    """Draw faces with their landmarks, a row each; the parameters are those of `segments`."""
    boxes = dataset.admissible
    assert isinstance(boxes, Boxes)
    truth = boxes.positions(dataset.y).reshape(len(images), -1, 2)
    figure, panels = _panels(len(images), learned, WIDTH + TITLE, 0.0)
    for k, (line, title, image) in enumerate(zip(panels, titles, images, strict=True)):
        _face(line[0], image, truth[k], None, title)
        for panel, (name, y) in zip(line[1:], _labelings(learned), strict=True):
            at = boxes.positions(y).reshape(truth.shape)[k]
            far = np.sqrt(((at - truth[k]) ** 2).sum(axis=1)).mean()
            share = far / boxes.scale(truth[k : k + 1].astype(np.float64))[0]
            _face(panel, image, truth[k], at, f"{name}\ndeviation {share:.1%} of eyes to mouth")
    return _named(figure, source)


def _panels(
    rows: int, learned: Sequence[Learned], tall: float, below: float
) -> tuple[Figure, np.ndarray]:
    """Return a figure with a row of panels an image, and room below for a panel of each run."""
    columns = 1 + 2 * len(learned)
    extra = len(learned) if below else 0
    with mpl.rc_context(style.RC):
        figure = Figure(
            figsize=(WIDTH * columns, rows * tall + below + TITLE), layout="constrained"
        )
        FigureCanvasAgg(figure)
        heights = [tall] * rows + [below / max(extra, 1)] * extra
        panels = figure.subplots(rows + extra, columns, squeeze=False, height_ratios=heights)
    for panel in panels[rows:].ravel():
        panel.set_axis_off()
    return figure, panels[:rows]


def _labelings(learned: Sequence[Learned]) -> list[tuple[str, np.ndarray]]:
    pairs = [
        [(f"{run.title}: before", run.before), (f"{run.title}: after", run.after)]
        for run in learned
    ]
    return [each for pair in pairs for each in pair]


def _text(alphabet: Alphabet, y: np.ndarray) -> str:
    return style.as_written("".join(alphabet.names[a] for a, _ in alphabet.segments(y)))


def _plate(
    panel: Axes, image: np.ndarray, alphabet: Alphabet, y: np.ndarray, colour: str, title: str
) -> None:
    panel.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    for _, begin in alphabet.segments(y)[1:]:
        panel.axvline(begin - 0.5, color=colour, linewidth=0.8)
    panel.set_title(title, fontsize=7)
    panel.set_axis_off()


def _face(
    panel: Axes, image: np.ndarray, truth: np.ndarray, found: np.ndarray | None, title: str
) -> None:
    panel.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    panel.plot(truth[:, 1], truth[:, 0], "o", color=TRUE, markersize=4, fillstyle="none")
    if found is not None:
        panel.plot(found[:, 1], found[:, 0], "x", color=FOUND, markersize=4)
    panel.set_title(style.as_written(title), fontsize=7)
    panel.set_axis_off()


def _named(figure: Figure, source: str) -> Figure:
    if source != "real":
        figure.suptitle(style.source_name(source), fontsize=8)
    return figure
