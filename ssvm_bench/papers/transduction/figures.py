"""The figures of transduction, each a choice of one kind.

===========  ====================================================================================
labels       the points of the first draw, in the plane, with the labels that each solver found
convergence  L_ρ, ‖Kα − β‖ and label changes of ``dcadmm`` on the first draw, over iterations
===========  ====================================================================================

Labels are in no trace: they are drawn where the runs themselves are at hand (:mod:`.found`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.curves import tabulate
from ssvm_bench.figures.kind import CurveFigure, FigureData, Kind, Output
from ssvm_bench.papers.transduction import found
from ssvm_bench.papers.transduction.measures import error
from ssvm_bench.papers.transduction.printed import BASELINES, DRAWS, PROPOSED
from ssvm_bench.papers.transduction.tables import of_draws
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ---- the labels -------------------------------------------------------------------------------


IN_THE_PLANE = ("moons",)
"""Datasets whose points can be drawn."""


def _draw_labels(data: FigureData) -> Iterator[Output]:
    """Yield the points of the first draw of each dataset of the plane, and options of it."""
    drawn: Counter[str] = Counter()
    for case in of_draws(data.traces):
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
        figure = draw_labels(points.x, panels, data.title, notes)
        yield Output(f"labels_{case.dataset}{number}", table, figure=figure)


def _order(label: str) -> tuple[int, str]:
    """Return where a curve's labels are drawn: as in the paper, what it proposes is the last."""
    order = (*BASELINES, PROPOSED)
    solver = label.split(" ")[0]
    return order.index(solver) if solver in order else len(order), label


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
"""Of labels; after these, they come again."""

SIDE_BY_SIDE = 2
"""Panels in a row."""

SIZE = 7
"""Of a point's marker, in points²."""


def draw_labels(
    x: np.ndarray, panels: Mapping[str, np.ndarray], title: str, notes: Sequence[str]
) -> Figure:
    """Draw points of the plane once for each labeling.

    Parameters
    ----------
    x : ndarray of float64, shape (n, 2)
    panels : dict
        Title → label of each point; their order is that of the figure, row by row.
    title : str
    notes : sequence of str
        Remarks below the figure.
    """
    from ssvm_bench.figures import drawing

    colours = np.array(COLOURS)
    columns = min(len(panels), SIDE_BY_SIDE)
    shape = -(-len(panels) // columns), columns
    with drawing.page(title, notes, shape, ((), ()), panel_height=1.5) as (figure, axes):
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
"""What is drawn of it → its column."""


def _of_first_draw(traces: Sequence[Trace]) -> list[Trace]:
    """Return the runs of what the paper proposes, on the first draw of each problem."""
    ours = [run for run in traces if run.metadata["config"]["solver"]["name"] == PROPOSED]
    return [repeats[min(repeats)] for case in of_draws(ours) for repeats in case.runs.values()]


def _positive(run: Trace) -> dict[str, np.ndarray]:
    """Return the values of `QUANTITIES` that are positive."""
    of = {name: run.frame[column].to_numpy(float) for name, column in QUANTITIES.items()}
    return {name: np.where(drawn > 0, drawn, np.nan) for name, drawn in of.items()}


CONVERGENCE = CurveFigure(
    "Augmented Lagrangian, residual and label changes of DC-ADMM",
    file="convergence_{}",
    chosen=_of_first_draw,
    # of one run, nothing between its rows
    tabulate=lambda traces, _, axis: tabulate(traces, _positive, axis, log=False),
    notes=lambda *_: ["Where no label changes, nothing is drawn of the label changes."],
)


# ---- the kind of figure -----------------------------------------------------------------------


def _outputs(data: FigureData, names: Sequence[str]) -> Iterator[Output]:
    if "labels" in names:
        yield from _draw_labels(data)
    if "convergence" in names:
        yield from CONVERGENCE.outputs(data, ["iteration"])


CHOICES = Choices(("labels", "convergence"), "figure", "figures")
KIND = Kind("transduction", CHOICES, _outputs, loads=found.load)
