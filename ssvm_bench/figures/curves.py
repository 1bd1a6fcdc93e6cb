"""The numbers of the convergence figures: from traces to one tidy table.

.. code-block:: text

    primal suboptimality   P(w) − max F      max over every finished run on the problem instance
    dual suboptimality     min P − F(φ)      min over the same runs
    gap                    P(w) − F(φ)

A problem instance is the data (fingerprint) and λ. Where a value is not positive (possible with
an inexact oracle) or missing, the curve is interrupted. Repeats of a configuration are put on a
common x grid, where the median, minimum and maximum of their *y values* are taken. No value is
made up: against iterations, a repeat counts only where it was evaluated; against time, it is
interpolated, linearly in log y as a log plot draws it, only between its own first and last row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.errors import RunFailedError
from ssvm_bench.trace import Trace, read_metadata, read_summary

AXES = ("iteration", "time")
QUANTITIES = ("primal suboptimality", "dual suboptimality", "duality gap")
COLUMNS = (
    *("dataset", "source", "n", "lam", "fingerprint"),
    *("solver", "quantity", "x", "median", "min", "max", "repeats"),
)
TIME_POINTS = 101
CLOCK_TOLERANCE = 0.1
"""Relative difference of wall and CPU time above which a runtime figure carries a note."""


class Problem(NamedTuple):
    """A problem instance: what may be compared in one panel."""

    fingerprint: str
    lam: float


class Best(NamedTuple):
    """The lowest primal and the highest dual value seen on a problem instance."""

    primal: float
    dual: float


def problem_of(metadata: Mapping[str, Any]) -> Problem:
    """Return the problem instance of a run."""
    return Problem(str(metadata["dataset"]["fingerprint"]), float(metadata["lam"]))


def best_values(
    folders: Iterable[Path], say: Callable[[str], object] | None = None
) -> dict[Problem, Best]:
    """Return the best values that any of the given finished runs saw, per problem instance.

    Parameters
    ----------
    folders : iterable of Path
        Finished runs.
    say : callable, optional
        Told about runs that cannot be read, which are then passed over; without it they raise.
    """
    best: dict[Problem, Best] = {}
    for folder in dict.fromkeys(folders):
        try:
            problem, summary = problem_of(read_metadata(folder)), read_summary(folder)
        except RunFailedError as error:
            if say is None:
                raise
            say(f"Passed over: {error}")
            continue
        known = best.get(problem, Best(np.nan, np.nan))
        best[problem] = Best(
            float(np.fmin(known.primal, _number(summary.get("best_primal")))),
            float(np.fmax(known.dual, _number(summary.get("best_dual")))),
        )
    return best


def suboptimality(traces: Sequence[Trace], best: Mapping[Problem, Best], axis: str) -> pd.DataFrame:
    """Return the curves of the convergence figures as a tidy table.

    Parameters
    ----------
    traces : sequence of Trace
        Finished runs. Those that differ in nothing but the seed are repeats of one curve.
    best : dict
        Best values per problem instance, as `best_values` finds them.
    axis : str
        ``"iteration"`` or ``"time"``.

    Returns
    -------
    DataFrame
        ``COLUMNS``, one row per point of a curve; ``repeats`` counts the runs behind it. A point
        with no repeats has NaN values and interrupts the curve.
    """
    if axis not in AXES:
        raise ValueError(f"axis must be one of {AXES}, got {axis!r}")
    groups: dict[tuple[Problem, str], list[Trace]] = {}
    for trace, label in zip(traces, labels(traces), strict=True):
        groups.setdefault((problem_of(trace.metadata), label), []).append(trace)
    blocks = []
    for (problem, label), repeats in groups.items():
        data = repeats[0].metadata["dataset"]
        for quantity in QUANTITIES:
            block = _band(repeats, quantity, best[problem], axis)
            block["dataset"], block["source"], block["n"] = data["name"], data["source"], data["n"]
            block["lam"], block["fingerprint"] = problem.lam, problem.fingerprint
            block["solver"], block["quantity"] = label, quantity
            blocks.append(block)
    if not blocks:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(blocks, ignore_index=True)[list(COLUMNS)]


def _band(repeats: Sequence[Trace], quantity: str, best: Best, axis: str) -> pd.DataFrame:
    """Return x, median, min, max and number of repeats of one curve."""
    xs = [trace.frame[axis].to_numpy(float) for trace in repeats]
    ys = [_log_values(trace.frame, quantity, best) for trace in repeats]
    if axis == "iteration":
        grid = np.unique(np.concatenate(xs))
        on_grid = np.full((len(repeats), grid.size), np.nan)
        for row, x, y in zip(on_grid, xs, ys, strict=True):
            row[np.searchsorted(grid, x)] = y
    else:
        grid = np.linspace(min(x[0] for x in xs), max(x[-1] for x in xs), TIME_POINTS)
        on_grid = np.array([_between(grid, x, y) for x, y in zip(xs, ys, strict=True)])
    values = np.exp(on_grid)
    present = ~np.isnan(values)
    count = present.sum(axis=0)
    some = count > 0
    table = {"x": grid, "median": np.nan, "min": np.nan, "max": np.nan, "repeats": count}
    frame = pd.DataFrame(table)
    if some.any():
        frame.loc[some, "median"] = np.nanmedian(values[:, some], axis=0)
        frame.loc[some, "min"] = np.nanmin(values[:, some], axis=0)
        frame.loc[some, "max"] = np.nanmax(values[:, some], axis=0)
    return frame


def _log_values(frame: pd.DataFrame, quantity: str, best: Best) -> np.ndarray:
    """Return the logarithm of a quantity, NaN where it is not positive."""
    primal, dual = frame["primal"].to_numpy(float), frame["dual"].to_numpy(float)
    values = {
        "primal suboptimality": primal - best.dual,
        "dual suboptimality": best.primal - dual,
        "duality gap": primal - dual,
    }[quantity]
    return np.log(np.where(values > 0, values, np.nan))


def _between(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Interpolate linearly between the points (x, y), nowhere else; NaN beside a NaN."""
    if x.size == 1:
        return np.where(grid == x[0], y[0], np.nan)
    left = np.clip(np.searchsorted(x, grid, side="right") - 1, 0, x.size - 2)
    width = x[left + 1] - x[left]
    share = np.where(width > 0, (grid - x[left]) / np.where(width > 0, width, 1.0), 1.0)
    between = y[left] + share * (y[left + 1] - y[left])
    # A measured point next to an interrupted one keeps its value.
    between = np.where(share == 0, y[left], np.where(share == 1, y[left + 1], between))
    return np.where((grid < x[0]) | (grid > x[-1]), np.nan, between)


def labels(traces: Sequence[Trace]) -> list[str]:
    """Name each run's curve: its solver, and the options in which runs of that solver differ.

    So a sweep over ``solver.T`` gives the curves ``mpbcfw T=5`` and ``mpbcfw T=10``, which are
    not taken for repeats of one another.
    """
    flat = [_flatten(trace.metadata["config"]) for trace in traces]
    names = [str(config.get("solver.name")) for config in flat]
    result = []
    for trace, config, name in zip(traces, flat, names, strict=True):
        peers = [
            other
            for other, other_name, other_trace in zip(flat, names, traces, strict=True)
            if other_name == name and problem_of(other_trace.metadata) == problem_of(trace.metadata)
        ]
        varied = [
            key
            for key in sorted({key for peer in peers for key in peer} - NOT_A_CURVE)
            if len({repr(peer.get(key)) for peer in peers}) > 1
        ]
        options = [f"{key.removeprefix('solver.')}={config.get(key)}" for key in varied]
        result.append(" ".join([name, *options]))
    return result


NOT_A_CURVE = frozenset({"seed", "results_dir", "force", "quiet", "dataset.source", "lam"})
"""Options that make no other curve: repeats, verbosity, and what a problem instance covers."""


def _flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def axis_label(traces: Sequence[Trace], axis: str) -> str:
    """Return the label of the x axis, with its unit and clock."""
    if axis == "iteration":
        return "iteration"
    names = {"wall": "wall clock", "cpu": "CPU time", "work": "counted work"}
    clocks = sorted({str(trace.metadata.get("clock")) for trace in traces})
    return f"time [s] ({', '.join(names.get(clock, clock) for clock in clocks)})"


def notes(table: pd.DataFrame, traces: Sequence[Trace], axis: str) -> list[str]:
    """Return what a reader of the figure has to know about its measurements.

    Parameters
    ----------
    table : DataFrame
        The curves, as `suboptimality` gives them.
    traces : sequence of Trace
        The runs behind them.
    axis : str
        ``"iteration"`` or ``"time"``.

    Returns
    -------
    list of str
        What line and band are; for runtimes, whether the machine was busy.
    """
    repeats = table.groupby(["fingerprint", "lam", "solver"])["repeats"].max()
    low, high = int(repeats.min()), int(repeats.max())
    count = f"{low}" if low == high else f"{low} to {high}"
    lines = "median, up to where the first repeat ends" if high > 1 and axis == "time" else "median"
    found = [f"Lines: {lines}; bands: minimum to maximum; {count} repeat{'s' * (high > 1)}."]
    if axis != "time":
        return found
    beside = sum(bool(trace.metadata.get("concurrent_runs")) for trace in traces)
    if beside:
        found.append(f"{beside} of {len(traces)} runs were timed while other runs were going on.")
    wall = [trace for trace in traces if trace.metadata.get("clock") == "wall"]
    differ = sum(_clocks_differ(trace.frame) for trace in wall)
    if differ:
        found.append(
            f"In {differ} of {len(wall)} runs, wall and CPU time differ by more than "
            f"{CLOCK_TOLERANCE:.0%}: the machine was busy, or several cores worked."
        )
    return found


def _clocks_differ(frame: pd.DataFrame) -> bool:
    time, cpu = float(frame["time"].iloc[-1]), float(frame["cpu_time"].iloc[-1])
    return abs(time - cpu) > CLOCK_TOLERANCE * max(time, cpu)


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)
