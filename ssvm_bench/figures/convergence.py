"""Figures of convergence, of working sets, and of certified gaps.

.. code-block:: text

    primal suboptimality   P(w) − max F      max over every run ever made on the problem instance
    dual suboptimality     min P − F(φ)      min over the same runs
    gap                    P(w) − F

    planes per example     mean size of the working sets
    passes per iteration   approximate passes, on average since the evaluation before:
                           (new approximate calls) / (new exact calls)

    certified gap          U − F, with an upper bound U of P(w) (``eval.bound``)
    possibly missed        U − P(w), of an oracle that is not exact

F(φ) belongs to the reported iterate; an average has its own. F is the best lower bound that the
solver had. Planes and passes are Figure 6 of the main paper, the effect of the automatic selection;
only runs with working sets have these curves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ssvm_bench.figures import curves
from ssvm_bench.figures.document import TEXTS
from ssvm_bench.figures.kind import CurveFigure
from ssvm_bench.results.trace import BestValues, Trace, dual_of_reported


def suboptimality(traces: Sequence[Trace], best: BestValues, axis: str) -> pd.DataFrame:
    """Return the curves of the convergence figures, as `curves.tabulate` does."""

    def values(trace: Trace) -> dict[str, np.ndarray]:
        primal, dual = trace.values("primal"), trace.values("dual")
        known = best[trace.problem]
        below = known.primal - dual_of_reported(trace)
        shown = primal - known.dual, below, primal - dual
        return dict(zip(curves.QUANTITIES, shown, strict=True))

    return curves.tabulate(traces, values, axis, log=True)


def selection(traces: Sequence[Trace], _: BestValues, axis: str) -> pd.DataFrame:
    """Return the curves of working sets and passes, as `curves.tabulate` does."""

    def values(trace: Trace) -> dict[str, np.ndarray]:
        approximate, exact = (
            np.diff(trace.values(name), prepend=np.nan) for name in ("approx_calls", "oracle_calls")
        )
        nothing = np.full_like(exact, np.nan)
        return {
            "planes per example": trace.values("working_set_mean"),
            "approximate passes per iteration": np.divide(
                approximate, exact, out=nothing, where=exact > 0
            ),
        }

    return curves.tabulate(traces, values, axis, log=False)


def certified(traces: Sequence[Trace], _: BestValues, axis: str) -> pd.DataFrame:
    """Return the curves of measured and of certified gaps, as `curves.tabulate` does."""

    def values(trace: Trace) -> dict[str, np.ndarray]:
        found, bound = (trace.values(name) for name in ("gap", "gap_bound"))
        return {
            "duality gap": found,
            "certified duality gap": bound,
            "possibly missed by the oracle": bound - found,
        }

    return curves.tabulate(traces, values, axis, log=True)


def with_working_sets(traces: Sequence[Trace]) -> list[Trace]:
    """Return the runs whose solver keeps planes."""
    return [trace for trace in traces if trace.frame["working_set_mean"].max() > 0]


SUBOPTIMALITY = CurveFigure(
    "Primal suboptimality, dual suboptimality and duality gap", "{}", suboptimality
)
SELECTION = CurveFigure(
    "Mean size of the working sets, and approximate passes per iteration",
    *("selection", selection, with_working_sets, False),
)
CERTIFIED = CurveFigure(
    "Duality gap to the primal value that was found, and to an upper bound of it",
    *("certified", certified),
    chosen=lambda traces: [trace for trace in traces if "gap_bound" in trace.frame],
)
KINDS = (
    SUBOPTIMALITY.kind("suboptimality", [*curves.AXES], TEXTS["suboptimality"]),
    SELECTION.kind("selection", ["iteration"]),
    CERTIFIED.kind("certified", ["iteration"]),
)
