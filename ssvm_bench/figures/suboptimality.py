"""Convergence figures: primal and dual suboptimality and duality gap; numbers in `curves`."""

from __future__ import annotations

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import curves
from ssvm_bench.figures.kind import CurveFigure, Kind, Section

FIGURE = CurveFigure(
    "Primal suboptimality, dual suboptimality and duality gap",
    file="{}",
    chosen=lambda traces: traces,
    tabulate=curves.suboptimality,
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
