"""What it costs to reach a relative gap: the numbers of a table and of its figure.

The relative gap is (P − F)/|P|, as in ``budget.gap_tol``, and what it costs is read off the first
row of a trace at which it is small enough: seconds on the run's clock, and calls of the exact
oracle. Nothing is interpolated. A repeat that did not get there counts as infinitely expensive, so
that a median over the repeats exists where more than half of them got there.

A solver without a dual value is measured by the best dual value F⋆ that any run saw on the problem
instance: (P − F⋆)/|P|. That is in its favour, so its name is marked †.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ssvm_bench.figures import style, text_table
from ssvm_bench.figures.curves import axis_label, timing_notes
from ssvm_bench.figures.text_table import Bold, Sheet
from ssvm_bench.results import words
from ssvm_bench.results.problem_instance import BestValues, instance_of
from ssvm_bench.results.repeats import repeats_of
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE

COSTS = {"time": "time", "calls": "oracle_calls"}
"""What it costs → column of the trace."""

HEADINGS = {"time": "seconds", "calls": "exact passes"}
MARK = "†"
MEANING = f"{MARK}: without a dual value; its gap is measured from the best one known."
OWN, BEST = "own dual", "best dual"
"""What a relative gap is measured from."""


def bound(trace: Trace) -> str:
    """Return what the relative gap of a run is measured from: its own dual, if it has one."""
    return OWN if trace.frame["dual"].notna().any() else BEST


def costs(traces: Sequence[Trace], best: BestValues, target: float) -> pd.DataFrame:
    """Return what each run had spent when its relative gap was first seen at a target.

    Parameters
    ----------
    traces : sequence of Trace
        Finished runs.
    best : dict
        Best values per problem instance, as `optima.reference` gives them.
    target : float
        The relative gap.

    Returns
    -------
    DataFrame
        ``COSTS``, one row per run; infinite where the target was not reached.
    """
    rows = []
    for trace in traces:
        primal, gap = trace.frame["primal"], trace.frame["gap"]
        if bound(trace) == BEST:
            gap = primal - best[instance_of(trace.metadata)].dual
        reached = trace.frame[gap / primal.abs().clip(lower=1e-12) <= target]
        rows.append(
            {name: reached[of].iloc[0] if len(reached) else np.inf for name, of in COSTS.items()}
        )
    return pd.DataFrame(rows, columns=list(COSTS), dtype=float)


def targets(traces: Sequence[Trace], best: BestValues, gaps: Sequence[float]) -> pd.DataFrame:
    """Return the costs of each solver on each problem instance, over its repeats.

    Parameters are those of `costs`, for several relative gaps.

    Returns
    -------
    DataFrame
        ``dataset, source, n, lam, fingerprint, solver, bound, gap, repeats, reached``, and of each
        cost the median (NaN unless more than half of the repeats got there), and the ``_min`` and
        ``_max`` of those that did. Calls are in passes, i.e. divided by n.
    """
    rows = []
    for (problem, label), repeats in repeats_of(traces).items():
        data = repeats[0].metadata["dataset"]
        instance = {
            "dataset": data["name"],
            "source": data["source"],
            "n": data["n"],
            "lam": problem.lam,
            "fingerprint": problem.fingerprint,
        }
        for gap in gaps:
            found = costs(repeats, best, gap)
            found["calls"] /= data["n"]
            reached = found[np.isfinite(found["time"])]
            row = {**instance, "solver": label, "bound": bound(repeats[0]), "gap": gap}
            row |= {"repeats": len(found), "reached": len(reached)}
            for name in COSTS:
                median = float(found[name].median())
                row[name] = median if np.isfinite(median) else np.nan
                row[f"{name}_min"] = reached[name].min()
                row[f"{name}_max"] = reached[name].max()
            rows.append(row)
    return pd.DataFrame(rows)


def notes(table: pd.DataFrame, traces: Sequence[Trace]) -> list[str]:
    """Return what a reader of the figure has to know about its measurements."""
    text = f"Points: median; bars: minimum to maximum; {words.repeats(table['repeats'])}."
    marked = [MEANING] if (table["bound"] == BEST).any() else []
    return [text, *marked, *timing_notes(traces)]


def marked_label(solver: str, table: pd.DataFrame) -> str:
    """Return the name of a solver, marked if its gaps are measured from the best known dual."""
    marked = ((table["solver"] == solver) & (table["bound"] == BEST)).any()
    return style.solver_label(solver) + MARK * bool(marked)


def x_label(traces: Sequence[Trace], cost: str) -> str:
    """Return the label of the axis of a cost, with its unit."""
    return axis_label(traces, {"calls": "passes"}.get(cost, cost))


def markdown(table: pd.DataFrame, notes: Sequence[str] = ()) -> str:
    """Return the table as a page of Markdown: one section per problem instance, best in bold."""
    reading = (
        "Medians over the repeats, in seconds on the runs' clock and in passes of the exact oracle "
        f"(calls divided by n); the lowest of each column in bold. {NONE}: at most half of the "
        "repeats got there in the time they had."
    )
    instances = table.groupby(["fingerprint", "lam"], sort=False)
    shown = [_sheet(instance) for _, instance in instances]
    return text_table.page(
        "Time and exact oracle calls to a relative gap", [reading, *notes], shown
    )


def _sheet(instance: pd.DataFrame) -> Sheet:
    """Return the table of one problem instance."""
    gaps = list(dict.fromkeys(instance["gap"]))
    header = ["solver", *(f"{gap:g}: {HEADINGS[name]}" for gap in gaps for name in COSTS)]
    best = instance.groupby("gap")[list(COSTS)].min()
    lines = []
    for label, rows in instance.groupby("solver", sort=False):
        cells = [f"{marked_label(str(label), rows)} (`{label}`)"]
        for row in rows.to_dict("records"):
            cells += [_cell(row[name], best.loc[row["gap"], name]) for name in COSTS]
        lines.append(cells)
    return Sheet(style.problem_title(instance), header, lines)


def _cell(value: float, best: float) -> str:
    if np.isnan(value):
        return NONE
    text = f"{value:.3g}"
    return Bold(text) if value == best else text
