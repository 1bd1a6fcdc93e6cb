"""Convergence figures: primal and dual suboptimality, and duality gap.

.. code-block:: text

    primal suboptimality   P(w) − max F      max over every run ever made on the problem instance
    dual suboptimality     min P − F(φ)      min over the same runs
    gap                    P(w) − F

F(φ) is that of the reported iterate, of averages their own; F the best lower bound that the solver
had.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.curves import AXES, QUANTITIES, tabulate
from ssvm_bench.figures.kind import CurveFigure, Kind, Section
from ssvm_bench.results.problem_instance import BestValues, instance_of
from ssvm_bench.results.trace import Trace, dual_of_reported


def suboptimality(traces: Sequence[Trace], best: BestValues, axis: str) -> pd.DataFrame:
    """Return the curves of the convergence figures as a tidy table.

    Parameters and table are those of `tabulate`.
    """

    def values(trace: Trace) -> dict[str, np.ndarray]:
        primal, dual = trace.frame["primal"].to_numpy(float), trace.frame["dual"].to_numpy(float)
        known = best[instance_of(trace.metadata)]
        below = known.primal - dual_of_reported(trace.frame)
        return dict(zip(QUANTITIES, (primal - known.dual, below, primal - dual), strict=True))

    return tabulate(traces, values, axis, log=True)


FIGURE = CurveFigure(
    "Primal suboptimality, dual suboptimality and duality gap",
    file="{}",
    chosen=lambda traces: traces,
    tabulate=suboptimality,
)
KIND = Kind(
    "suboptimality",
    Choices(tuple(AXES)),
    FIGURE.outputs,
    Section("convergence", "Convergence", "No run has finished."),
    FIGURE.of_instance,
    intro="Primal suboptimality is measured from the highest dual value ever seen on the problem "
    "instance, dual suboptimality from the lowest primal value. Buttons switch the x axis; a "
    "click on a solver hides it in all panels, a double click all others; drag to zoom, "
    "double-click a panel to see all of it again.",
)
