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
from ssvm_bench.results.table import INSTANCE_COLUMNS, Runs
from ssvm_bench.results.words import number

SUBOPTIMALITY = CurveFigure(
    "Primal suboptimality, dual suboptimality and duality gap",
    file="{}",
    quantities=dict(
        zip(curves.QUANTITIES, ("suboptimality", "dual_suboptimality", "gap"), strict=True)
    ),
)
SELECTION = CurveFigure(
    "Mean size of the working sets, and approximate passes per iteration",
    file="selection",
    quantities={
        "planes per example": "working_set_mean",
        "approximate passes per iteration": "passes_per_iteration",
    },
    chosen=lambda runs: runs.where(lambda run: run["working_set_mean"].max() > 0),
    log=False,
)
CERTIFIED = CurveFigure(
    "Duality gap to the primal value that was found, and to an upper bound of it",
    file="certified",
    quantities={
        "duality gap": "gap",
        "certified duality gap": "gap_bound",
        "possibly missed by the oracle": lambda run: run["gap_bound"] - run["gap"],
    },
    chosen=lambda runs: runs.where(lambda run: "gap_bound" in run),
)
KINDS = (
    SUBOPTIMALITY.kind("suboptimality", [*curves.AXES], TEXTS["suboptimality"]),
    SELECTION.kind("selection", ["iteration"]),
    CERTIFIED.kind("certified", ["iteration"]),
)


# ---- agreement --------------------------------------------------------------------------------

AGREEMENT_COLUMNS = [
    *(*INSTANCE_COLUMNS, "known_to", "solver", "repeats"),
    *("stopped_by", "passes", "time", "primal", "dual", "agrees_to"),
]


def agreement(runs: Runs) -> pd.DataFrame:
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
    best = runs.best
    for (problem, label), repeats in runs.curves().items():
        known = best.get(problem)
        if known is None or known.dual == 0 or not math.isfinite(known.dual):
            continue
        distances = {
            "known_to": known.primal - known.dual,
            "primal": max(run["primal"].min() for run in repeats) - known.dual,
            "dual": known.dual - min(run["dual"].max() for run in repeats),
        }
        relative = {name: value / abs(known.dual) for name, value in distances.items()}
        largest = np.nanmax([*relative.values()])
        row = {**repeats[0].instance, **relative, "solver": label, "repeats": len(repeats)}
        row["stopped_by"] = ", ".join(dict.fromkeys(run.stop_reason for run in repeats))
        row |= {name: repeats.last(name).max() for name in ("passes", "time")}
        row["agrees_to"] = 10.0 ** math.ceil(math.log10(largest) - 1e-9) if largest > 0 else 0.0
        rows.append(row)
    return pd.DataFrame(rows, columns=AGREEMENT_COLUMNS)


def tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per problem instance, the best agreement in bold."""
    for rows in style.by_problem(table):
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
    table = agreement(data.runs)
    title = "How far each solver is from the optimum"
    yield Output("agreement", table, title, [TEXTS["agreement"], *tables(table)])


AGREEMENT = Kind("agreement", Choices(("table",)), _outputs)
