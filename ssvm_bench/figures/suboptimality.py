"""Convergence figures: primal and dual suboptimality and duality gap; numbers in `curves`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import curves
from ssvm_bench.figures.kind import CurveFigure, Kind, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _draw(table: pd.DataFrame, label: str, title: str, notes: Sequence[str], log_x: bool) -> Figure:
    from ssvm_bench.figures import drawing

    return drawing.draw_curves(table, label, title, notes, log_x)


FIGURE = CurveFigure(
    "Primal suboptimality, dual suboptimality and duality gap",
    file="{}",
    chosen=lambda traces: traces,
    tabulate=curves.suboptimality,
    draw=_draw,
)
KIND = Kind(
    "suboptimality",
    Choices(tuple(curves.AXES)),
    FIGURE.outputs,
    Section("convergence", "Convergence", "No run has finished."),
    FIGURE.of_instance,
    intro="Primal suboptimality is measured from the highest dual value ever seen on the problem "
    "instance, dual suboptimality from the lowest primal value. Buttons switch the x axis; a "
    "click on a solver hides it in all panels, a double click all others; drag to zoom, "
    "double-click a panel to see all of it again.",
)
