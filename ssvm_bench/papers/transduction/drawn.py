"""The figures of transduction, each a choice of one kind.

===========  ====================================================================================
labels       the points of the first draw, in the plane, with the labels that each solver found
convergence  L_ρ, ‖Kα − β‖ and label changes of ``dcadmm`` on the first draw, over iterations
===========  ====================================================================================

Labels are in no trace: they are drawn where the runs themselves are at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import registry, typed
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.curves import tabulate
from ssvm_bench.figures.kind import CurveFigure, FigureData, Kind, Output
from ssvm_bench.papers.transduction.claims import DRAWS, PROPOSED, RIVALS
from ssvm_bench.papers.transduction.datasets.points import Points
from ssvm_bench.papers.transduction.errors import of_draws
from ssvm_bench.papers.transduction.measures import error
from ssvm_bench.results.problem_instance import BestValues
from ssvm_bench.results.reading import read_labels
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import percent

# ---- the labels -------------------------------------------------------------------------------


IN_THE_PLANE = ("moons",)
"""Datasets whose points can be drawn."""


def _draw_labels(data: FigureData) -> Iterator[Output]:
    """Yield the points of the first draw of each dataset of the plane, and options of it."""
    from ssvm_bench.papers.transduction import plane

    drawn: Counter[str] = Counter()
    for case in of_draws(data.traces):
        if case.dataset not in IN_THE_PLANE:
            continue
        first = min(draw for runs in case.runs.values() for draw in runs)
        runs = {label: runs[first] for label, runs in case.runs.items() if first in runs}
        points = _points(next(iter(runs.values())))
        found = {label: y for label, run in runs.items() if (y := _labels(run, points)) is not None}
        if points is None or not found:
            continue
        panels = [plane.Panel("ground truth", points.y)]
        for label, y in sorted(found.items(), key=lambda pair: _place(pair[0])):
            wrong = percent(error(runs[label]))
            panels.append(plane.Panel(f"{style.solver_label(label)}\n{wrong} wrong", y))
        table = pd.DataFrame(points.x, columns=["x", "y"]).assign(truth=points.y, **found)
        notes = [f"{DRAWS[case.dataset]} = {first}"]
        figure = plane.draw(points.x, panels, data.title, notes)
        drawn[case.dataset] += 1
        number = f"_{drawn[case.dataset]}" * (drawn[case.dataset] > 1)
        yield Output(f"labels_{case.dataset}{number}", table, figure=figure)


def _place(label: str) -> tuple[int, str]:
    """Return where a curve's labels are drawn: as in the paper, what it proposes is the last."""
    order = (*RIVALS, PROPOSED)
    solver = label.split(" ")[0]
    return order.index(solver) if solver in order else len(order), label


def _points(run: Trace) -> Points | None:
    """Return the points of a run, unless the program draws others by now."""
    config: Any = run.metadata["config"]["dataset"]
    module = registry.module("dataset", config["kind"])
    data = module.load(typed.convert(module.Config, config, "dataset"))
    return data if data.fingerprint == run.metadata["dataset"]["fingerprint"] else None


def _labels(run: Trace, data: Points | None) -> np.ndarray | None:
    """Return the labels that a run found, if it is at hand."""
    try:
        if data is None or run.is_cut:
            return None
        return read_labels(run.folder, data.n, data.n_labels)[0]
    except RunFailedError:
        return None


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


def convergence(traces: Sequence[Trace], _: BestValues, axis: str) -> pd.DataFrame:
    """Return the curves of `QUANTITIES`, as `curves.tabulate` does."""

    def values(run: Trace) -> dict[str, np.ndarray]:
        of = {name: run.frame[column].to_numpy(float) for name, column in QUANTITIES.items()}
        return {name: np.where(drawn > 0, drawn, np.nan) for name, drawn in of.items()}

    return tabulate(traces, values, axis, log=False)  # of one run, nothing between its rows


CONVERGENCE = CurveFigure(
    "Augmented Lagrangian, residual and label changes of DC-ADMM",
    file="convergence_{}",
    chosen=_of_first_draw,
    tabulate=convergence,
    notes=lambda *_: ["Where no label changes, nothing is drawn of the label changes."],
)


# ---- the kind of figure -----------------------------------------------------------------------

LABELS, CURVES = "labels", "convergence"


def _outputs(data: FigureData, names: Sequence[str]) -> Iterator[Output]:
    if LABELS in names:
        yield from _draw_labels(data)
    if CURVES in names:
        yield from CONVERGENCE.outputs(data, ["iteration"])


KIND = Kind("transduction", Choices((LABELS, CURVES), "figure", "figures"), _outputs)
