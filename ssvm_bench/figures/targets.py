"""What it costs to reach a relative gap: the numbers of a table and of its figure.

The relative gap is (P − F)/|P|, as in ``budget.gap_tol``, and what it costs is read off the first
row of a trace at which it is small enough: seconds on the run's clock, and calls of the exact
oracle. Nothing is interpolated. A repeat that did not get there counts as infinitely expensive, so
that a median over the repeats exists where more than half of them got there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ssvm_bench.figures import style
from ssvm_bench.figures.curves import axis_label, labels, problem_of, timing_notes
from ssvm_bench.trace import Trace

TARGETS = (0.1, 0.05, 0.02, 0.01)
"""Relative gaps of the table."""

COSTS = {"time": "time", "calls": "oracle_calls"}
"""What it costs → column of the trace."""

HEADINGS = {"time": "seconds", "calls": "exact passes"}
NONE = "–"


def costs(traces: Sequence[Trace], target: float) -> pd.DataFrame:
    """Return what each run had spent when its relative gap was first seen at a target.

    Returns
    -------
    DataFrame
        ``COSTS``, one row per run; infinite where the target was not reached.
    """
    rows = []
    for trace in traces:
        gap = trace.frame["gap"] / trace.frame["primal"].abs().clip(lower=1e-12)
        reached = trace.frame[gap <= target]
        rows.append(
            {name: reached[of].iloc[0] if len(reached) else np.inf for name, of in COSTS.items()}
        )
    return pd.DataFrame(rows, columns=list(COSTS), dtype=float)


def targets(traces: Sequence[Trace], gaps: Sequence[float] = TARGETS) -> pd.DataFrame:
    """Return the costs of each solver on each problem instance, over its repeats.

    Returns
    -------
    DataFrame
        ``dataset, source, n, lam, fingerprint, solver, gap, repeats, reached``, and of each cost
        the median (NaN unless more than half of the repeats got there), and the ``_min`` and
        ``_max`` of those that did. Calls are in passes, i.e. divided by n.
    """
    groups: dict[tuple, list[Trace]] = {}
    for trace, label in zip(traces, labels(traces), strict=True):
        groups.setdefault((problem_of(trace.metadata), label), []).append(trace)
    rows = []
    for (problem, label), repeats in groups.items():
        data = repeats[0].metadata["dataset"]
        instance = {
            "dataset": data["name"],
            "source": data["source"],
            "n": data["n"],
            "lam": problem.lam,
            "fingerprint": problem.fingerprint,
        }
        for gap in gaps:
            found = costs(repeats, gap)
            found["calls"] /= data["n"]
            reached = found[np.isfinite(found["time"])]
            row = {**instance, "solver": label, "gap": gap}
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
    low, high = int(table["repeats"].min()), int(table["repeats"].max())
    count = f"{low}" if low == high else f"{low} to {high}"
    text = f"Points: median; bars: minimum to maximum; {count} repeat{'s' * (high > 1)}."
    return [text, *timing_notes(traces)]


def x_label(traces: Sequence[Trace], cost: str) -> str:
    """Return the label of the axis of a cost, with its unit."""
    return axis_label(traces, {"calls": "passes"}.get(cost, cost))


def markdown(table: pd.DataFrame, notes: Sequence[str] = ()) -> str:
    """Return the table as a page of Markdown: one section per problem instance, best in bold."""
    lines = [
        "# Time and exact oracle calls to a relative gap",
        "",
        "Medians over the repeats, in seconds on the runs' clock and in passes of the exact oracle "
        f"(calls divided by n); the lowest of each column in bold. {NONE}: at most half of the "
        "repeats got there in the time they had.",
    ]
    for note in notes:
        lines += ["", note]
    for _, instance in table.groupby(["fingerprint", "lam"], sort=False):
        lines += ["", f"## {style.problem_title(instance)}", ""]
        gaps = list(dict.fromkeys(instance["gap"]))
        header = ["solver", *(f"{gap:g}: {HEADINGS[name]}" for gap in gaps for name in COSTS)]
        lines += [_cells(header), _cells(["---", *["---:"] * (len(header) - 1)])]
        best = instance.groupby("gap")[list(COSTS)].min()
        for label, rows in instance.groupby("solver", sort=False):
            cells = [f"{style.solver_label(str(label))} (`{label}`)"]
            for row in rows.to_dict("records"):
                cells += [_cell(row[name], best.loc[row["gap"], name]) for name in COSTS]
            lines.append(_cells(cells))
    return "\n".join(lines) + "\n"


def _cell(value: float, best: float) -> str:
    if np.isnan(value):
        return NONE
    text = f"{value:.3g}"
    return f"**{text}**" if value == best else text


def _cells(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
