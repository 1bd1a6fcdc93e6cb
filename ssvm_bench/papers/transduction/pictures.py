"""What runs of transduction found in pictures: masks, and their overlap with the true ones.

===========  ====================================================================================
masks        pictures, or frames that the paper shows, with the masks that each method found
frames       IoU of each frame of a sequence, for each method
overlap      a table: IoU and wrong pixels of each method (:mod:`.overlaps`)
===========  ====================================================================================

Masks are in no trace: they are drawn where the runs themselves are at hand (:mod:`.found`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case
from ssvm_bench.config import GENUINE
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.document import table_of
from ssvm_bench.figures.kind import PHOTOGRAPHS, FigureData, Kind, Output
from ssvm_bench.papers.transduction import found
from ssvm_bench.papers.transduction.datasets.scenes import Scene
from ssvm_bench.papers.transduction.oracles.transduction import overlap_of
from ssvm_bench.papers.transduction.overlaps import (
    OVERLAP_CELLS,
    TOLD,
    name_of,
    overlaps,
    said_of,
)
from ssvm_bench.papers.transduction.printed import DRAWS, PROPOSED
from ssvm_bench.papers.transduction.tables import of_draws
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRAMES = {"davis_bmx_trees": (5, 15, 60, 68, 79), "davis_car_shadow": (3, 39)}
"""Sequence → the frames that the paper shows; for its frame 84 the last of bmx-trees, which has 80:
that Figure 2 is of this sequence is an inference (:mod:`.overlaps`)."""

MOST_PICTURES = 4
"""Rows of a figure of pictures."""

ORDER = ("kernel_kmeans", "inductive", PROPOSED)
"""Methods, in the order in which they are drawn; what the paper proposes is the last."""


def of_methods(traces: Sequence[Trace], known: str = "iou") -> list[tuple[Case, list[str]]]:
    """Return the runs on pictures by problem, and the curves of each, in their order.

    They are those with a column: there is no IoU where all frames are annotated.
    """
    found = of_draws([run for run in traces if known in run.frame or "iou" in run.frame])
    return [(case, sorted(case.runs, key=_order)) for case in found]


def _order(label: str) -> tuple[int, list[float], str]:
    return ORDER.index(label.split(" ")[0]), _numbers(label), label


def _numbers(label: str) -> list[float]:
    """Return the numbers in a label, to sort by."""
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", label)]


# ---- masks ------------------------------------------------------------------------------------


def _draw_masks(data: FigureData) -> Iterator[Output]:
    """Yield the masks of each case whose runs are at hand."""
    for case, methods in of_methods(data.traces):
        rows, numbers = [], []
        for number, runs in _shown(case, methods, data.loaded):
            here = [each for each in map(data.loaded, runs) if each]
            if len(here) < len(runs):
                continue
            scene = here[0].scene(number)
            rgb, truth = scene.picture
            row = [(scene.title, _scribbled(rgb, scene.scribbles)), ("truth", covered(rgb, truth))]
            for label, each in zip(methods, here, strict=True):
                share = _iou(scene, each.y)
                title = f"{style.solver_label(label)}: IoU {percent(share)}"
                row.append((title, covered(rgb, each.y[scene.points][scene.segments])))
                numbers.append((number, label, share))
            rows.append(row)
        if rows:
            table = pd.DataFrame(numbers, columns=["picture", "solver", "iou"])
            name = f"masks_{name_of(case)}"
            notes = [style.source_name(case.source)] * (case.source not in GENUINE)
            figure = draw_masks(rows, data.title, notes)
            yield Output(name, table, figure=figure, formats=PHOTOGRAPHS)


def _shown(
    case: Case, methods: Sequence[str], loaded: Callable[[Trace], found.Found | None]
) -> Iterator[tuple[int, list[Trace]]]:
    """Yield the pictures that are drawn, and the run of each method on it."""
    common = sorted(set.intersection(*(set(case.runs[label]) for label in methods)))
    if case.dataset in DRAWS:  # runs of a picture each
        for picture in common[:MOST_PICTURES]:
            yield picture, [case.runs[label][picture] for label in methods]
        return
    for seed in common[:1]:
        runs = [case.runs[label][seed] for label in methods]
        first = loaded(runs[0])
        if first is not None and first.data.frame is not None:
            last = int(first.data.frame[-1])
            yield from ((frame, runs) for frame in FRAMES.get(case.dataset, ()) if frame <= last)


def _iou(scene: Scene, y: np.ndarray) -> float:
    """Return the IoU of the mask of one picture."""
    mask, truth = y[scene.points][scene.segments] == 1, scene.picture.truth == 1
    union = np.count_nonzero(mask | truth)
    return np.count_nonzero(mask & truth) / union if union else 1.0


RED, COVER = np.array([0xE3, 0x00, 0x0F]) / 255, 0.5
"""Colour of a mask, and how much it hides of the picture below."""

WIDTH, TITLE = 2.4, 0.25
"""Width of a panel, and height of its title, in inches."""

GROUND, FIGURE = np.array([0x00, 0x50, 0xE3]) / 255, RED
"""Colours of the scribbles."""


def draw_masks(
    rows: Sequence[Sequence[tuple[str, np.ndarray]]], title: str, notes: Sequence[str]
) -> Figure:
    """Draw pictures beside their masks: titles and pixels, as many in each row."""
    from ssvm_bench.figures import drawing

    shapes = [pixels.shape for row in rows for _, pixels in row]
    height = WIDTH * max(h / w for h, w, _ in shapes) + TITLE
    shape = len(rows), len(rows[0])
    layout = drawing.page(title, notes, shape, ((), ()), height, panel_width=WIDTH)
    with layout as (figure, panels):
        for line, row in zip(panels, rows, strict=True):
            for panel, (name, pixels) in zip(line, row, strict=True):
                panel.imshow(pixels, interpolation="nearest")
                panel.set_title(style.as_written(name), fontsize=8)
                panel.set_axis_off()
    return figure


def covered(rgb: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the picture, red where the label is 1, with values in 0 … 1."""
    pixels, mask = rgb / 255.0, labels == 1
    pixels[mask] = (1.0 - COVER) * pixels[mask] + COVER * RED
    return pixels


def _scribbled(rgb: np.ndarray, scribbles: np.ndarray | None) -> np.ndarray:
    """Return the picture with its scribbles, if there are any, as wide as they are seen."""
    pixels = rgb / 255.0
    if scribbles is not None:
        from scipy.ndimage import minimum_filter

        from ssvm_bench.figures import pictures

        strokes = minimum_filter(scribbles, pictures.SCRIBBLE)
        pixels[strokes == 0], pixels[strokes == 1] = GROUND, FIGURE
    return pixels


# ---- frames -----------------------------------------------------------------------------------


def _draw_frames(data: FigureData) -> Iterator[Output]:
    """Yield the IoU of the frames of each sequence whose runs are at hand."""
    from ssvm_bench.figures import drawing

    for case, methods in of_methods(data.traces):
        if case.dataset in DRAWS:
            continue
        rows = []
        for label in methods:
            here = data.loaded(next(iter(case.runs[label].values())))
            if here is None:
                break
            observed = np.where(here.data.labeled, here.data.y.astype(np.int64), -1)
            made = overlap_of(here.data.pixels, here.data.frame, observed)
            shares = zip(made.counted, made.iou(here.y), strict=True)
            rows += [(label, int(frame), share) for frame, share in shares]
        else:
            table = pd.DataFrame(rows, columns=["solver", "frame", "iou"])
            wide = table.rename(columns={"frame": "x", "iou": "median"})
            lines = style.dashes(wide["solver"])
            curves = wide.assign(min=wide["median"], max=wide["median"], quantity="IoU", repeats=1)
            legend = drawing.legend_of(lines)
            layout = drawing.page(data.title, [], (1, 1), legend)
            with layout as (figure, panels):
                panel = panels[0, 0]
                drawing.draw_panel(panel, curves, lines)
                panel.set(xlabel="frame", ylabel="IoU", ylim=(0, 1))
                panel.set_title(style.dataset_name(case.dataset), loc="left", fontweight="bold")
            yield Output(f"frames_{name_of(case)}", table, figure=figure)


# ---- the kind of figure -----------------------------------------------------------------------


def _overlap(data: FigureData) -> Iterator[Output]:
    table = overlaps(of_methods(data.traces, TOLD))
    title = "Overlap with the true masks"
    shown = [table_of(title, OVERLAP_CELLS, table.to_dict("records"), 3)] * bool(len(table))
    yield Output("overlap", table, title, [said_of(table), *shown])


DRAWN = {"masks": _draw_masks, "frames": _draw_frames, "overlap": _overlap}


def _outputs(data: FigureData, names: Sequence[str]) -> Iterator[Output]:
    for name in names:
        yield from DRAWN[name](data)


KIND = Kind("pictures", Choices((*DRAWN,), "figure", "figures"), _outputs, loads=found.load)
