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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ssvm_bench.figures import curves, style
from ssvm_bench.figures.document import TEXTS, Block, bold, described
from ssvm_bench.figures.kind import CurveFigure, FigureData, table_kind
from ssvm_bench.results.table import INSTANCE_COLUMNS, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _draw_both(
    table: pd.DataFrame, x_label: str, title: str, notes: Sequence[str], log_x: bool, log_y: bool
) -> Figure:
    """Draw curves as `drawing.draw_curves` does, so that those with and without averages show."""
    from ssvm_bench.figures import drawing

    return drawing.draw_curves(table, x_label, title, notes, log_x, log_y, True)


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
    draw=_draw_both,
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
            "known_to": known.gap,
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


def _agrees_to(row: Mapping[str, Any]) -> str:
    return bold(f"{row['agrees_to']:g}", row["agrees_to"] == row["nearest"])


_DOCUMENT = described(__file__, "agreement", {"agrees to": _agrees_to})


def _blocks(data: FigureData, table: pd.DataFrame) -> list[Block]:
    nearest = table.groupby(style.PROBLEM)["agrees_to"].transform("min")
    return _DOCUMENT.blocks(data, table.assign(nearest=nearest))


AGREEMENT = table_kind("agreement", _DOCUMENT.title, agreement, _blocks)
