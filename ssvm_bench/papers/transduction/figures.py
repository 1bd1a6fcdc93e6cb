"""The figures of transduction, choices of two kinds.

===========  ====================================================================================
labels       the points of the first draw, in the plane, with the labels that each solver found
convergence  L_ρ, ‖Kα − β‖ and label changes of ``dcadmm`` on the first draw, over iterations
masks        pictures, or frames that the paper shows, with the masks that each method found
frames       IoU of each frame of a sequence, for each method
overlap      a table: IoU and wrong pixels of each method (:mod:`.tables`)
===========  ====================================================================================

Traces have no labels and masks: they are drawn if the runs themselves are available. What is
loaded in addition to a trace is a `Found` (`Kind.loads`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.claims.cases import Case
from ssvm_bench.config import GENUINE, registry
from ssvm_bench.figures import style
from ssvm_bench.figures.curves import tabulate
from ssvm_bench.figures.kind import PHOTOGRAPHS, CurveFigure, FigureData, Output, kind_of
from ssvm_bench.papers.transduction import tables
from ssvm_bench.papers.transduction.datasets.points import Points
from ssvm_bench.papers.transduction.measures import DRAWS, MOONS, PROPOSED, error
from ssvm_bench.papers.transduction.oracles.transduction import agreement, overlap_of
from ssvm_bench.papers.transduction.tables import of_draws
from ssvm_bench.results.table import Run, Runs
from ssvm_bench.results.trace import is_finished, read_labels
from ssvm_bench.results.words import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ---- loading ----------------------------------------------------------------------------------


class Found(NamedTuple):
    """Labels that a run found, their points, and the options of the dataset."""

    data: Points
    config: Any
    y: np.ndarray


def load(run: Run) -> Found | None:
    """Return what a run found; None without its files, or if the points have changed since."""
    # checked first, so that the pictures are only needed if there is something to draw
    if run.is_truncated or not is_finished(run.folder):
        return None
    config, data = _loaded(json.dumps(run.config["dataset"]))
    if data.fingerprint != run.data["fingerprint"]:
        return None
    try:
        return Found(data, config, read_labels(run.folder, data.n, data.n_labels)[0])
    except RunFailedError:
        return None


@lru_cache(maxsize=1)  # the runs on one dataset come one after the other
def _loaded(options: str) -> tuple[Any, Points]:
    """Return the options of a dataset and the dataset, given the options as JSON."""
    config = registry.config("dataset", json.loads(options))
    return config, registry.module("dataset", config.kind).load(config)


# ---- the labels -------------------------------------------------------------------------------


IN_THE_PLANE = ("moons",)
"""Datasets whose points are in the plane and can be drawn."""


def _draw_labels(data: FigureData) -> Iterator[Output]:
    """Yield the labels of the first draw of each problem on a dataset of the plane."""
    drawn: Counter[str] = Counter()
    for case in of_draws(data.runs):
        if case.dataset not in IN_THE_PLANE:
            continue
        first = min(draw for runs in case.runs.values() for draw in runs)
        runs = {label: runs[first] for label, runs in case.runs.items() if first in runs}
        at_hand = {label: here for label, run in runs.items() if (here := data.loaded(run))}
        if not at_hand:
            continue
        points = next(iter(at_hand.values())).data
        panels = {"ground truth": points.y}
        for label in sorted(at_hand, key=_order):
            wrong = percent(error(runs[label]))
            panels[f"{style.solver_label(label)}\n{wrong} wrong"] = at_hand[label].y
        labels = {label: here.y for label, here in at_hand.items()}
        table = pd.DataFrame(points.x, columns=["x", "y"]).assign(truth=points.y, **labels)
        notes = [f"{DRAWS[case.dataset]} = {first}"]
        drawn[case.dataset] += 1
        number = f"_{drawn[case.dataset]}" * (drawn[case.dataset] > 1)
        figure = partial(draw_labels, points.x, panels, data.title, notes)
        yield Output(f"labels_{case.dataset}{number}", table, figure=figure)


def _order(label: str) -> tuple[int, str]:
    """Return the sort key of a curve's panel: in the paper's order, the proposed method last."""
    order, solver = [*MOONS], label.split(" ")[0]
    return order.index(solver) if solver in order else len(order), label


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Colours of labels; they repeat after the last."""

SIDE_BY_SIDE = 2
"""Number of panels in a row."""

SIZE = 7
"""Size of a point's marker, in points²."""

WIDTH, ABOVE = 3.3, 0.45
"""Inches: width of a panel, and height of its title of two lines."""


def draw_labels(
    x: np.ndarray, panels: Mapping[str, np.ndarray], title: str, notes: Sequence[str]
) -> Figure:
    """Draw points of the plane once for each labeling.

    Parameters
    ----------
    x : ndarray of float64, shape (n, 2)
    panels : dict
        Title → label of each point, in the order of the figure, row by row.
    title : str
    notes : sequence of str
        Remarks below the figure.
    """
    from ssvm_bench.figures import drawing

    colours = np.array(COLOURS)
    columns = min(len(panels), SIDE_BY_SIDE)
    shape = -(-len(panels) // columns), columns
    spread = np.ptp(x, axis=0)
    size = {"panel_width": WIDTH, "panel_height": WIDTH * spread[1] / spread[0] + ABOVE}
    with drawing.page(title, notes, shape, ((), ()), **size) as (figure, axes):
        for place in axes.ravel():
            place.set_axis_off()
        for place, (above, y) in zip(axes.ravel(), panels.items(), strict=False):
            place.scatter(*x.T, s=SIZE, c=colours[y % len(COLOURS)], linewidths=0)
            place.set_aspect("equal")
            place.set_title(style.as_written(above), fontsize=8)
    return figure


# ---- convergence ------------------------------------------------------------------------------

QUANTITIES = {
    "augmented Lagrangian": "augmented_lagrangian",
    "residual": "residual",
    "label changes": "label_changes",
}
"""Name of a quantity → its column."""


def _of_first_draw(runs: Runs) -> Runs:
    """Return the runs of the proposed method on the first draw of each problem."""
    cases = of_draws(runs.where(solver=PROPOSED))
    return Runs(repeats[min(repeats)] for case in cases for repeats in case.runs.values())


def _positive(run: Run, column: str) -> np.ndarray:
    """Return a column, NaN where it is not positive."""
    return np.where(run[column] > 0, run[column], np.nan)


def _tabulated(runs: Runs, axis: str) -> pd.DataFrame:
    drawn = {name: partial(_positive, column=column) for name, column in QUANTITIES.items()}
    # log=False: a single run is drawn at its rows only, without interpolation
    return tabulate(runs, drawn, axis, log=False)


CONVERGENCE = CurveFigure(
    "Augmented Lagrangian, residual and label changes of DC-ADMM",
    file="convergence_{}",
    quantities=_tabulated,
    chosen=_of_first_draw,
    notes=lambda _: ["Where no label changes, nothing is drawn of the label changes."],
)


# ---- masks ------------------------------------------------------------------------------------

FRAMES = {"davis_bmx_trees": (5, 15, 60, 68, 79), "davis_car_shadow": (3, 39)}
"""Sequence → the frames that the paper shows. bmx-trees has 80 frames, so its last one replaces the
paper's frame 84; that Figure 2 shows this sequence is our inference (``texts.yaml``)."""

MOST_PICTURES = 4
"""Largest number of rows in a figure of pictures."""


def _draw_masks(data: FigureData) -> Iterator[Output]:
    """Yield the masks of each case whose runs are available."""
    for case, methods in tables.of_methods(data.runs):
        rows, numbers = [], []
        for number, runs in _shown(case, methods, data.loaded):
            here = [each for each in map(data.loaded, runs) if each]
            if len(here) < len(runs):
                continue
            made = replace(here[0].config, source=here[0].data.source)
            scene = registry.module("dataset", made.kind).scene(made, number)
            rgb, truth = scene.picture
            row = [(scene.title, _scribbled(rgb, scene.scribbles)), ("truth", covered(rgb, truth))]
            for label, each in zip(methods, here, strict=True):
                labels = each.y[scene.points][scene.segments]
                share = agreement(labels == 1, truth == 1)
                title = f"{style.solver_label(label)}: IoU {percent(share)}"
                row.append((title, covered(rgb, labels)))
                numbers.append((number, label, share))
            rows.append(row)
        if rows:
            table = pd.DataFrame(numbers, columns=["picture", "solver", "iou"])
            name = f"masks_{tables.name_of(case)}"
            notes = [style.source_name(case.source)] * (case.source not in GENUINE)
            figure = partial(draw_masks, rows, data.title, notes)
            yield Output(name, table, figure=figure, formats=PHOTOGRAPHS)


def _shown(
    case: Case, methods: Sequence[str], loaded: Callable[[Run], Found | None]
) -> Iterator[tuple[int, list[Run]]]:
    """Yield the number of each picture to draw, and each method's run on it."""
    common = sorted(set.intersection(*(set(case.runs[label]) for label in methods)))
    if case.dataset in DRAWS:  # one picture per run
        for picture in common[:MOST_PICTURES]:
            yield picture, [case.runs[label][picture] for label in methods]
        return
    for seed in common[:1]:
        runs = [case.runs[label][seed] for label in methods]
        first = loaded(runs[0])
        if first is not None and first.data.frame is not None:
            last = int(first.data.frame[-1])
            yield from ((frame, runs) for frame in FRAMES.get(case.dataset, ()) if frame <= last)


RED, COVER = np.array([0xE3, 0x00, 0x0F]) / 255, 0.5
"""Colour of a mask, and its opacity."""

WIDTH, TITLE = 2.4, 0.25
"""Width of a panel and height of its title, in inches."""

GROUND, FIGURE = np.array([0x00, 0x50, 0xE3]) / 255, RED
"""Colours of the scribbles."""


def draw_masks(
    rows: Sequence[Sequence[tuple[str, np.ndarray]]], title: str, notes: Sequence[str]
) -> Figure:
    """Draw pictures beside their masks, as rows of (title, pixels) of the same length."""
    from ssvm_bench.figures import drawing, pictures

    shapes = [pixels.shape for row in rows for _, pixels in row]
    height = WIDTH * max(h / w for h, w, _ in shapes) + TITLE
    shape = len(rows), len(rows[0])
    layout = drawing.page(title, notes, shape, ((), ()), height, panel_width=WIDTH)
    with layout as (figure, panels):
        for line, row in zip(panels, rows, strict=True):
            for panel, (name, pixels) in zip(line, row, strict=True):
                pictures.show(panel, pixels, name, 8)
    return figure


def covered(rgb: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the picture, red where the label is 1, with values in 0 … 1."""
    pixels, mask = rgb / 255.0, labels == 1
    pixels[mask] = (1.0 - COVER) * pixels[mask] + COVER * RED
    return pixels


def _scribbled(rgb: np.ndarray, scribbles: np.ndarray | None) -> np.ndarray:
    """Return the picture with its scribbles, if there are any, widened to be visible."""
    pixels = rgb / 255.0
    if scribbles is not None:
        from ssvm_bench.figures import pictures

        strokes = pictures.widened(scribbles)
        pixels[strokes == 0], pixels[strokes == 1] = GROUND, FIGURE
    return pixels


# ---- frames -----------------------------------------------------------------------------------


def _draw_frames(data: FigureData) -> Iterator[Output]:
    """Yield the IoU of the frames of each sequence whose runs are available."""
    for case, methods in tables.of_methods(data.runs):
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
            figure = partial(draw_frames, table, data.title, style.dataset_name(case.dataset))
            yield Output(f"frames_{tables.name_of(case)}", table, figure=figure)


def draw_frames(table: pd.DataFrame, title: str, name: str) -> Figure:
    """Draw a curve over the frames for each solver; ``name`` is the name of the sequence."""
    from ssvm_bench.figures import drawing

    wide = table.rename(columns={"frame": "x", "iou": "median"})
    lines = style.strokes(wide["solver"])
    curves = wide.assign(min=wide["median"], max=wide["median"], quantity="IoU", repeats=1)
    with drawing.page(title, [], (1, 1), drawing.legend_of(lines)) as (figure, panels):
        panel = panels[0, 0]
        drawing.draw_panel(panel, curves, lines)
        panel.set(xlabel="frame", ylabel="IoU", ylim=(0, 1))
        panel.set_title(name, loc="left", fontweight="bold")
    return figure


# ---- the kinds of figures ---------------------------------------------------------------------


def _overlap(data: FigureData) -> Iterator[Output]:
    table = tables.overlaps(tables.of_methods(data.runs, tables.TOLD))
    shown = tables.OVERLAPS.tables(table) if len(table) else ()
    yield Output("overlap", table, tables.OVERLAPS.title, [tables.said_of(table), *shown])


_convergence = partial(CONVERGENCE.outputs, axes=["iteration"])
KINDS = (
    kind_of(
        "pictures", {"masks": _draw_masks, "frames": _draw_frames, "overlap": _overlap}, loads=load
    ),
    kind_of("transduction", {"labels": _draw_labels, "convergence": _convergence}, loads=load),
)
