"""Figures of convergence, of working sets and of certified gaps, and the agreement on the optimum.

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

**Agreement**: how far each solver is from the best value known.

.. code-block:: text

    primal distance   (P − F⋆)/|F⋆|      P the lowest primal value of the run
    dual distance     (F⋆ − F)/|F⋆|      F the highest dual value of the run
    F⋆ = max F over every run ever made on the problem instance

The optimum is between F⋆ and the lowest primal value P⋆ of these runs. So a primal distance is an
upper bound of the true one, and a dual distance is too low by at most (P⋆ − F⋆)/|F⋆|.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import curves, style
from ssvm_bench.figures.document import TEXTS, Cells, Table, bold, table_of
from ssvm_bench.figures.kind import CurveFigure, FigureData, Kind, Output
from ssvm_bench.results.table import INSTANCE_COLUMNS, BestValues, Run, Runs
from ssvm_bench.results.words import number


def suboptimality(traces: Sequence[Run], best: BestValues, axis: str) -> pd.DataFrame:
    """Return the curves of the convergence figures, as `curves.tabulate` does."""

    def values(trace: Run) -> dict[str, np.ndarray]:
        primal, dual = trace["primal"], trace["dual"]
        known = best[trace.problem]
        below = known.primal - trace["reported_dual"]
        shown = primal - known.dual, below, primal - dual
        return dict(zip(curves.QUANTITIES, shown, strict=True))

    return curves.tabulate(traces, values, axis, log=True)


def selection(traces: Sequence[Run], _: BestValues, axis: str) -> pd.DataFrame:
    """Return the curves of working sets and passes, as `curves.tabulate` does."""

    def values(trace: Run) -> dict[str, np.ndarray]:
        approximate, exact = (
            np.diff(trace[name], prepend=np.nan) for name in ("approx_calls", "oracle_calls")
        )
        nothing = np.full_like(exact, np.nan)
        return {
            "planes per example": trace["working_set_mean"],
            "approximate passes per iteration": np.divide(
                approximate, exact, out=nothing, where=exact > 0
            ),
        }

    return curves.tabulate(traces, values, axis, log=False)


def certified(traces: Sequence[Run], _: BestValues, axis: str) -> pd.DataFrame:
    """Return the curves of measured and of certified gaps, as `curves.tabulate` does."""

    def values(trace: Run) -> dict[str, np.ndarray]:
        found, bound = (trace[name] for name in ("gap", "gap_bound"))
        return {
            "duality gap": found,
            "certified duality gap": bound,
            "possibly missed by the oracle": bound - found,
        }

    return curves.tabulate(traces, values, axis, log=True)


def with_working_sets(traces: Sequence[Run]) -> list[Run]:
    """Return the runs whose solver keeps planes."""
    return [trace for trace in traces if trace["working_set_mean"].max() > 0]


KINDS = (
    CurveFigure(
        "Primal suboptimality, dual suboptimality and duality gap", "{}", suboptimality
    ).kind("suboptimality", [*curves.AXES], TEXTS["suboptimality"]),
    CurveFigure(
        "Mean size of the working sets, and approximate passes per iteration",
        *("selection", selection, with_working_sets, False),
    ).kind("selection", ["iteration"]),
    CurveFigure(
        "Duality gap to the primal value that was found, and to an upper bound of it",
        *("certified", certified),
        chosen=lambda traces: [trace for trace in traces if "gap_bound" in trace],
    ).kind("certified", ["iteration"]),
)


# ---- agreement --------------------------------------------------------------------------------

AGREEMENT_COLUMNS = [
    *(*INSTANCE_COLUMNS, "known_to", "solver", "repeats"),
    *("stopped_by", "passes", "time", "primal", "dual", "agrees_to"),
]


def agreement(traces: Sequence[Run], best: BestValues) -> pd.DataFrame:
    """Return the largest distances, over the repeats, of each solver on each problem instance.

    Returns
    -------
    DataFrame
        ``AGREEMENT_COLUMNS``, one row per solver where F⋆ is not 0. ``known_to`` is (P⋆ − F⋆)/|F⋆|;
        ``passes`` (calls / n) and ``time`` (seconds) are the costs of a whole run; ``dual`` is NaN
        for a solver without a dual value; ``agrees_to`` is the largest of the two distances and
        ``known_to``, rounded up to a power of ten.
    """
    rows = []
    for (problem, label), repeats in Runs(traces).curves().items():
        known = best[problem]
        if known.dual == 0 or not math.isfinite(known.dual):
            continue
        ends = pd.concat([trace.frame.iloc[[-1]] for trace in repeats])
        distances = {
            "known_to": known.primal - known.dual,
            "primal": max(trace["primal"].min() for trace in repeats) - known.dual,
            "dual": known.dual - min(trace["dual"].max() for trace in repeats),
        }
        relative = {name: value / abs(known.dual) for name, value in distances.items()}
        largest = np.nanmax([*relative.values()])
        reasons = dict.fromkeys(trace.stop_reason for trace in repeats)
        about = repeats[0].instance
        row = {**about, **relative, "solver": label, "repeats": len(repeats)}
        row |= {"stopped_by": ", ".join(reasons), "time": float(ends["time"].max())}
        row["passes"] = float(ends["oracle_calls"].max()) / about["n"]
        row["agrees_to"] = 10.0 ** math.ceil(math.log10(largest) - 1e-9) if largest > 0 else 0.0
        rows.append(row)
    return pd.DataFrame(rows, columns=AGREEMENT_COLUMNS)


def tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per problem instance, the best agreement in bold."""
    for _, rows in table.groupby(["fingerprint", "lam"], sort=False):
        nearest = rows["agrees_to"].min()
        known = f"{style.problem_title(rows)}: optimum known to {rows['known_to'].iloc[0]:.1g}"
        yield table_of(known, CELLS, rows.assign(nearest=nearest).to_dict("records"))


CELLS: Cells = {
    "solver": lambda row: f"{style.solver_label(row['solver'])} (`{row['solver']}`)",
    "passes": "{passes:.0f}",
    "seconds": "{time:.3g}",
    "stopped by": "{stopped_by}",
    "primal distance": lambda row: number(row["primal"], ".1e"),
    "dual distance": lambda row: number(row["dual"], ".1e"),
    "agrees to": lambda row: bold(f"{row['agrees_to']:g}", row["agrees_to"] == row["nearest"]),
}


def _outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    table = agreement(data.traces, data.best)
    title = "How far each solver is from the optimum"
    yield Output("agreement", table, title, [TEXTS["agreement"], *tables(table)])


AGREEMENT = Kind("agreement", Choices(("table",)), _outputs)
