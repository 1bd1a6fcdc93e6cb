"""The numbers of figures of curves: from runs to one tidy table.

Repeats of a configuration are put on a common x grid, where the median, minimum and maximum of
their *y values* are taken. Nothing is extrapolated, unless a figure holds runs that have ended at
their last value (``held``), and says so:

- Between two evaluations, a repeat has the value of the line in a log plot (linear in log y).
  Before its first and after its last evaluation it has none. So a row that only one repeat has, by
  other evaluation intervals or a time limit, is not a median by itself.
- A curve continues while more than half of its repeats do. A repeat that ends can shift the median
  slightly, but a single remaining one never replaces it.
- A value that is not positive (possible with an inexact oracle, and by rounding where P and F meet)
  cannot be drawn on a log axis and counts as lower than all others. Where the median is such a
  value, the curve is interrupted. The band covers the positive values.
- A curve that does not exist is one row without x. A solver without a dual value has no dual
  suboptimality and no gap; without a known dual value there is no primal suboptimality. Repeats
  have no curve if one ended before another began; only then is ``repeats`` their number, and not 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ssvm_bench.figures import style
from ssvm_bench.results import words
from ssvm_bench.results.curves import bands
from ssvm_bench.results.optima import is_exact
from ssvm_bench.results.table import INSTANCE_COLUMNS, KNOWN, Best, ProblemInstance, Run, Runs


class Axis(NamedTuple):
    """An x axis: column of the trace, name in files, label, and text of its button."""

    column: str
    files: str
    label: str
    button: str = ""


AXES = {
    "iteration": Axis("iteration", "iterations", "iteration", "iterations"),
    "calls": Axis("oracle_calls", "oracle_calls", "calls of the exact oracle", "oracle calls"),
    "passes": Axis("passes", "oracle_passes", "passes of the exact oracle (calls / n)"),
    "time": Axis("time", "time", "time [s]", "time"),
}
"""The x axes that a figure of curves can have."""

QUANTITIES = ("primal suboptimality", "dual suboptimality", "duality gap")
POINT = ("x", "median", "min", "max", "repeats")
COLUMNS = (*INSTANCE_COLUMNS, "solver", "quantity", *POINT)
TIME_POINTS = 101
LONG = 4
"""Ratio of the lengths of curves above which x is logarithmic, unless it is time."""
SOON, DEEP = 0.02, 4
"""The first part of the axis of time, and decades: where curves fall by so many there, as runs that
begin far from the truth do, a linear axis shows one vertical line."""
MOST_HAVE = ", where more than half of them have values"
CLOCK_TOLERANCE = 0.1
"""Relative difference of wall and CPU time above which a runtime figure carries a note."""


Quantities: TypeAlias = Mapping[str, str | Callable[[Run], np.ndarray]]
"""Name of a quantity → its column, also a derived one, or a function of a run that returns it."""


def tabulate(
    runs: Runs,
    quantities: Quantities,
    axis: str,
    log: bool,
    names: Sequence[str] | None = None,
    *,
    held: bool = False,
    log_x: bool = False,
) -> pd.DataFrame:
    """Return the median and band of some quantities over the repeats of each curve.

    Parameters
    ----------
    runs : Runs
    quantities : mapping
        Name → column, or function of a run; NaN where there is no value.
    axis : str
        One of ``AXES``.
    log : bool
        Whether y is drawn on a log axis: then log y is interpolated, and y must be positive.
    names : sequence of str, optional
        The curve of each run, by default its `labels`.
    held : bool
        Whether a run that has ended keeps its last value, as the bounds of a run that has converged
        do: without it, a median may rise where runs end, though each of them falls.
    log_x : bool
        Whether the grid of time is even on a log axis.

    Returns
    -------
    DataFrame
        ``COLUMNS``, one row per point of a curve; ``repeats`` counts the values behind it, on a log
        axis the positive ones. A NaN median interrupts the curve; a NaN x means that the curve does
        not exist.
    """
    curves: list[dict[str, Any]] = []
    points: list[Sequence[np.ndarray]] = []
    for (_, label), repeats in runs.curves(names).items():
        xs = [run[AXES[axis].column] for run in repeats]
        about = repeats[0].instance
        for quantity, of in quantities.items():
            ys = [of(run) if callable(of) else run[of] for run in repeats]
            curves.append({**about, "solver": label, "quantity": quantity})
            if all(np.isnan(y).all() for y in ys):
                points.append(_no_curve(0))
                continue
            of_curve = bands(xs, ys, log, TIME_POINTS if axis == "time" else None, held, log_x)
            points.append(of_curve if of_curve.x.size else _no_curve(len(repeats)))
    if not curves:
        return pd.DataFrame(columns=COLUMNS)
    lengths = [len(of_curve[0]) for of_curve in points]
    columns = {name: np.repeat([curve[name] for curve in curves], lengths) for name in curves[0]}
    for name, of_curves in zip(POINT, zip(*points, strict=True), strict=True):
        columns[name] = np.concatenate(of_curves)
    return pd.DataFrame({name: columns[name] for name in COLUMNS})


def _no_curve(repeats: int) -> tuple[np.ndarray, ...]:
    """Return the row of a curve that does not exist."""
    return *(np.full(1, np.nan) for _ in POINT[:-1]), np.array([repeats])


def axis_label(runs: Sequence[Run], axis: str) -> str:
    """Return the label of the x axis, with its unit and clock."""
    return AXES[axis].label + f" ({clocks_of(runs)})" * (axis == "time")


def clocks_of(runs: Sequence[Run]) -> str:
    """Return the names of the clocks of some runs."""
    names = {"wall": "wall clock", "cpu": "CPU time", "work": "counted work"}
    clocks = sorted({run.clock for run in runs})
    return ", ".join(names.get(clock, clock) for clock in clocks)


def is_log_x(table: pd.DataFrame, axis: str, asked: bool | None = None) -> bool:
    """Return whether x is logarithmic: as asked, or where short curves would not be visible else.

    In the same time, a solver with cheap iterations makes many times as many. Numbers of iterations
    are compared by their ratios, so a log axis suits them. Time is linear, unless more than half of
    the curves fall by `DEEP` decades as `SOON`.
    """
    if asked is not None:
        return asked
    if axis == "time":
        of_curves = table.groupby([*style.PROBLEM, "solver", "quantity"])[["x", "median"]]
        falls = [_falls_soon(*rows.to_numpy().T) for _, rows in of_curves]
        return sum(falls) > len(falls) / 2
    lengths = table.groupby(["fingerprint", "lam", "solver"])["x"].max()
    of_problem = lengths[lengths > 0].groupby(["fingerprint", "lam"])
    return bool((of_problem.max() > LONG * of_problem.min()).any())


def _falls_soon(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether a curve loses `DEEP` decades in the first part of its time."""
    x, y = x[y > 0], np.log10(y[y > 0])
    return bool(x.size and y[0] - np.interp(SOON * x[-1], x, y) >= DEEP)


def why_empty(panel: pd.DataFrame) -> str:
    """Return why a panel has no curve, from its rows of a table; empty if it has one."""
    if panel["median"].notna().any():
        return ""
    if panel["x"].notna().any():
        return "no positive values"
    if (panel["repeats"] > 0).any():  # they have no x in common
        return "no time in common"
    return "no dual value is known" if panel["quantity"].isin(QUANTITIES).all() else "no values"


def notes(table: pd.DataFrame, runs: Runs, axis: str, held: bool = False) -> list[str]:
    """Return the notes that a reader of the figure needs to understand its measurements.

    Parameters
    ----------
    table : DataFrame
        The curves, as returned by `tabulate`.
    runs : Runs
        The runs behind them.
    axis : str
        One of ``AXES``.
    held : bool
        As for `tabulate`.

    Returns
    -------
    list of str
        The meaning of line and band, where curves end or are interrupted, how far suboptimality
        is known, which solvers have no dual value; for runtimes, whether the machine was busy.
    """
    curves = table.groupby([*style.PROBLEM, "solver", "quantity"], sort=False)
    counted = {"points": ("x", "count"), "medians": ("median", "count"), "rows": ("x", "size")}
    of = curves.agg(**counted, most=("repeats", "max")).reset_index()
    drawn = of[of["points"] > 0]
    repeats = drawn.loc[drawn["most"] > 0, "most"]
    text = words.spread("Lines", "bands", repeats)
    ends = (set(of_curve.last(AXES[axis].column)) for of_curve in runs.curves().values())
    if (repeats > 1).any() and any(len(of_curve) > 1 for of_curve in ends):
        text += "; a run that has ended keeps its last value" if held else MOST_HAVE
    found = [f"{text}."]
    gone = (drawn["medians"] > 0) & (drawn["medians"] < drawn["rows"])
    interrupted = drawn.loc[gone & drawn["quantity"].isin(QUANTITIES), style.PROBLEM]
    problems = {ProblemInstance(*of_curve) for of_curve in interrupted.itertuples(index=False)}
    whys = {_why_not_positive(runs.where(problem={problem})) for problem in problems}
    found += [f"A curve is interrupted where its value is {why}." for why in sorted(whys)]
    found += _zero_notes(table, runs)
    without_x, some = of["points"] == 0, of["most"] > 0
    missing = {
        "Without a dual value, and so without dual suboptimality and gap": (
            without_x & ~some & (of["quantity"] == "duality gap")
        ),
        "Not drawn, as one repeat ended before another began": without_x & some,
    }
    for what, these in missing.items():
        names = ", ".join(map(style.solver_label, dict.fromkeys(of.loc[these, "solver"])))
        found += [f"{what}: {names}."] * bool(names)
    return [*found, *timing_notes(runs)] if axis == "time" else found


ROUNDING = 1e-9
"""Of sums, relative to the largest of P, F and 1, as in the runner."""


def _why_not_positive(runs: Runs) -> str:
    """Return what the values of the runs on a problem are that a log axis cannot show.

    By weak duality, an exact oracle never finds a P below an F: its gaps and distances end at 0.
    """
    seen = [(run["primal"].min(), run["dual"].max()) for run in runs]
    primals, duals = zip(*seen, *runs.best.values(), strict=True)
    best = Best(np.fmin.reduce(primals), np.fmax.reduce(duals))
    if not -best.gap > _rounding(best):
        return "0 up to rounding"
    kinds = {str((run.config.get("oracle") or {}).get("kind")) for run in runs}
    too_low = " (the oracle may miss the maximum, and P is then too low)"
    return "not positive" + too_low * (not all(map(is_exact, kinds)))


def _rounding(best: Best) -> float:
    """Return the largest difference of P and F that may be rounding."""
    return ROUNDING * max(abs(best.dual), abs(best.primal), 1.0)


def _zero_notes(table: pd.DataFrame, runs: Runs) -> list[str]:
    """Return a note if suboptimalities are drawn that are too small for their zero to be known.

    The optimum is between the best values. So a suboptimality is at least their distance, and too
    large by at most that.
    """
    drawn = table[table["quantity"].isin(QUANTITIES[:2]) & (table["median"] > 0)]
    least = drawn.groupby(style.PROBLEM, sort=False)["median"].min()
    off = [
        best.gap
        for problem, best in runs.best.items()
        if best.gap > _rounding(best) and least.get(problem, np.inf) < KNOWN * best.gap
    ]
    if not off:
        return []
    most = words.span((min(off), max(off)), words.figures)
    return [
        "The optimum is not known: suboptimality, measured from the best values of any run so far, "
        f"is up to {most} too large{' (by problem)' * (len(off) > 1)}."
    ]


def timing_notes(runs: Runs) -> list[str]:
    """Return notes on runtimes: whether the machine was busy, and whether there were several."""
    found = [processors_note(runs)]
    if beside := sum(bool(run.metadata.get("concurrent_runs")) for run in runs):
        found.append(f"{beside} of {len(runs)} runs were timed while other runs were going on.")
    # an oracle with a delay sleeps
    wall = runs.where(lambda run: run.clock == "wall" and not run.options.get("oracle.delay"))
    ends = wall.last("time"), wall.last("cpu_time")
    differ = int((abs(ends[0] - ends[1]) > CLOCK_TOLERANCE * np.maximum(*ends)).sum())
    if differ:
        found.append(
            f"In {differ} of {len(wall)} runs, wall and CPU time differ by more than "
            f"{CLOCK_TOLERANCE:.0%}: the machine was busy, or several cores worked."
        )
    return list(filter(None, found))


def processors_note(runs: Runs) -> str:
    """Return a note on times of several processors, and on medians that mix them; else empty."""
    of_curves = [
        [run.processors for run in repeats if run.clock != "work"]
        for repeats in runs.curves().values()
    ]
    counts = Counter(name for repeats in of_curves for used in repeats for name in used)
    if len(counts) < 2:
        return ""
    named = ", ".join(f"{count} on {name}" for name, count in sorted(counts.items()))
    timed = [set().union(*repeats) for repeats in of_curves if repeats]
    mixed = sum(len(used) > 1 for used in timed)
    within = f", within the repeats of {mixed} of {len(timed)} curves" * bool(mixed)
    return f"Runs were timed on different processors{within}: {named}."
