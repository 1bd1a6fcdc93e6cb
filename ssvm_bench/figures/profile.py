"""Profiles: the share of all targets that a solver reached, against what it took.

A target p is a relative gap on a problem instance; a cost is a number of passes of the exact oracle
(calls/n), the run's time, or the time with calls of c seconds, T(c) of `figures.crossover`.

.. code-block:: text

    t_sp       median cost of solver s to target p over its repeats; ∞ unless more than half of them
               reached it
    r_sp       t_sp / min_s t_sp, the ratio to the best solver
    ρ_s(τ)     share of the targets with r_sp ≤ τ: the performance profile
    L_s(x)     mean over the targets of the share of the repeats that reached it at a cost of at
               most x: the run-length distribution
    area       of ρ_s over log τ from 1 to 100, as a share of the largest one: the mean over the
               targets of max(0, 1 − log r_sp / log 100)
    first      share of the targets with r_sp = 1
    worst      max_p r_sp; none if a target was not reached

Targets that were not reached count as such, and so do those of a problem on which a solver has no
runs. ρ depends on all solvers that it shows: the best of them is the unit.

Bands and intervals are percentile intervals of the bootstrap, at 95 %: the repeats on each problem
instance are drawn anew, the same seeds for all solvers that have as many.

Sources: E. D. Dolan and J. J. Moré, *Benchmarking optimization software with performance profiles*,
Mathematical Programming 91, 2002. H. H. Hoos and T. Stützle, *Evaluating Las Vegas algorithms*, UAI
1998. N. Hansen et al., *COCO: a platform for comparing continuous optimizers in a black-box
setting*, Optimization Methods and Software 36, 2021 (targets of several problems in one
distribution).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.base import random
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import crossover, style
from ssvm_bench.figures.curves import axis_label, timing_notes
from ssvm_bench.figures.document import TEXTS, Block, Table, bold
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.results import words
from ssvm_bench.results.curves import first
from ssvm_bench.results.table import Run, Runs, grouped
from ssvm_bench.results.targets import gaps_reached
from ssvm_bench.results.words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDEST = 100.0
"""The ratio up to which the area counts."""

DRAWS = 400
"""Number of resamples of the bootstrap."""

ENDS = (0.025, 0.975)
"""Quantiles of the resamples between which a band is."""

CALLS, TIME = "calls", "time"
CALL_COSTS = {
    words.seconds(cost).replace(" ", "").replace("µ", "u"): cost for cost in crossover.COSTS
}
"""Name of a cost in an experiment file, as ``10ms`` → seconds of a call."""

RATIO, LENGTH = "ratio", "length"
"""The curves ρ and L."""


class Costs(NamedTuple):
    """The costs to all targets.

    Attributes
    ----------
    solvers : tuple of str
        Labels of the curves.
    of_problem : sequence of dict
        For each problem instance, solver → costs, float64 of shape (gaps, repeats); infinite where
        a run did not reach the gap. A solver without runs is missing.
    gaps : sequence of tuple of float
        The gaps of each problem instance.
    """

    solvers: tuple[str, ...]
    of_problem: Sequence[Mapping[str, np.ndarray]]
    gaps: Sequence[tuple[float, ...]]

    @property
    def targets(self) -> int:
        """The number of targets."""
        return sum(map(len, self.gaps))

    def ran(self, solver: str) -> int:
        """Return the number of targets on whose problem a solver has runs."""
        both = zip(self.of_problem, self.gaps, strict=True)
        return sum(len(gaps) for costs, gaps in both if solver in costs)


def spent(runs: Runs, gaps: Sequence[float], cost: str) -> Costs | None:
    """Return the costs to all targets; None if no run has such a cost.

    Of runs with several clocks, those of the clock with the most solvers count. Time with calls of
    some cost exists for runs with measured time; where solvers also have runs with counted time at
    this very cost, these count, as in `crossover`.

    Parameters
    ----------
    runs : Runs
    gaps : sequence of float
        Relative gaps; empty: the `gaps_reached` on each problem instance.
    cost : str
        ``calls``, ``time``, or one of `CALL_COSTS`.
    """
    chosen = of_one_clock(runs)
    if cost in CALL_COSTS and chosen[0].clock == "work":
        return None
    of_problem, of_gaps = [], []
    curves = chosen.curves()
    for problem, of in grouped(curves, lambda curve: curve[0]).items():
        here = {label: curves[problem, label] for _, label in of}
        asked = tuple(gaps) or gaps_reached(here.values())
        counted = runs.where(lambda run: run.clock == "work", problem={problem})
        real = _real([run for repeats in here.values() for run in repeats])
        costs = {}
        for label, repeats in here.items():
            if cost in CALL_COSTS:
                made = {"oracle.cost_call": CALL_COSTS[cost]}
                at_cost = counted.where(partial(crossover.alike, repeats[0]), **made)
                repeats = at_cost or repeats
            of_runs = [(_column(run, cost, real), run["relative_distance"]) for run in repeats]
            reached = np.array([[first(x, y, gap) for x, y in of_runs] for gap in asked])
            costs[label] = np.where(np.isnan(reached), np.inf, reached)  # not measured
        of_problem.append(costs)
        of_gaps.append(asked)
    return Costs(tuple(dict.fromkeys(label for _, label in curves)), of_problem, of_gaps)


def of_one_clock(runs: Runs) -> Runs:
    """Return the runs of the clock with the most solvers; of as many, the most runs."""
    clocks = runs.groups("clock")
    return max(clocks.values(), key=lambda of: (len({run.solver for run in of}), len(of)))


def _real(runs: Sequence[Run]) -> float:
    """Return the seconds of a real call, the median over some runs; NaN if they made none."""
    known = [run["seconds_per_call"][-1] for run in runs if run["oracle_calls"][-1] > 0]
    return float(np.median(known)) if known else math.nan


def _column(run: Run, cost: str, real: float) -> np.ndarray:
    if cost in CALL_COSTS:
        return crossover.seconds(run, CALL_COSTS[cost], real)
    return run["passes" if cost == CALLS else "time"]


# ---- curves and numbers -------------------------------------------------------------------------


def _draws(repeats: int, problem: int) -> np.ndarray:
    """Return which repeats are drawn, shape (1 + DRAWS, repeats); in the first row, each once."""
    shares = random.uniform((DRAWS, repeats), np.random.PCG64(problem))
    return np.vstack([np.arange(repeats), (shares * repeats).astype(int)])


def ratios(costs: Costs) -> np.ndarray:
    """Return r, float64 of shape (1 + DRAWS, solvers, targets): of the repeats, then of resamples.

    Ratios to a target that no solver reached are infinite.
    """
    shape = 1 + DRAWS, len(costs.solvers)
    parts = []
    for k, (of_problem, gaps) in enumerate(zip(costs.of_problem, costs.gaps, strict=True)):
        medians = np.full((*shape, len(gaps)), np.inf)
        for s, solver in enumerate(costs.solvers):
            if (known := of_problem.get(solver)) is not None:
                drawn = known[:, _draws(known.shape[1], k)]  # (gaps, draws, repeats)
                medians[:, s] = np.median(drawn, axis=-1).T
        parts.append(medians)
    spent = np.concatenate(parts, axis=-1)
    best = np.broadcast_to(spent.min(axis=1, keepdims=True), spent.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = spent / best
    found[spent == best] = 1.0  # also 0 of 0
    found[np.isinf(spent)] = np.inf
    return found


def lengths(costs: Costs, solver: str, x: np.ndarray) -> np.ndarray:
    """Return L of a solver at some costs, shape (1 + DRAWS, len(x)): as for `ratios`."""
    total = np.zeros((1 + DRAWS, x.size))
    for k, of_problem in enumerate(costs.of_problem):
        if solver in of_problem:
            known = of_problem[solver]  # (gaps, repeats)
            there = (known[:, :, None] <= x).sum(axis=0)  # gaps that each repeat reached
            total += there[_draws(known.shape[1], k)].mean(axis=1)
    return total / costs.targets


def curves(costs: Costs) -> pd.DataFrame:
    """Return ρ and L of each solver where they or their bands rise, and at both ends of the axis.

    Returns
    -------
    DataFrame
        ``curve`` (`RATIO` or `LENGTH`), ``solver``, ``x``, ``share``, and its band, ``low`` and
        ``high``. Between two x, a curve has the value at the lower one.
    """
    rows = []
    of_ratios = ratios(costs)
    known = of_ratios[0][of_ratios[0] <= WIDEST]
    widest = max(2.0, known.max(initial=1.0))
    everything = np.concatenate([of.ravel() for each in costs.of_problem for of in each.values()])
    drawn = everything[np.isfinite(everything) & (everything > 0)]  # by a log axis
    ends = (drawn.min(), drawn.max()) if drawn.size else (1.0, 1.0)
    for s, solver in enumerate(costs.solvers):
        mine = of_ratios[:, s]
        steps = np.vstack([mine[:1], np.quantile(mine[1:], ENDS, axis=0, method="inverted_cdf")])
        x = np.unique([1.0, widest, *steps[steps <= widest]])
        shares = (mine[:, None, :] <= x[:, None]).mean(axis=-1)
        rows.append(_curve(RATIO, solver, x, shares))
        own = [of[solver].ravel() for of in costs.of_problem if solver in of]
        x = np.unique(np.maximum(np.concatenate([ends, *own]), ends[0]))
        x = x[np.isfinite(x)]
        rows.append(_curve(LENGTH, solver, x, lengths(costs, solver, x)))
    return pd.concat(rows, ignore_index=True)


def _curve(name: str, solver: str, x: np.ndarray, shares: np.ndarray) -> pd.DataFrame:
    low, high = np.quantile(shares[1:], ENDS, axis=0, method="inverted_cdf")
    points = {"x": x, "share": shares[0], "low": low, "high": high}
    return pd.DataFrame({"curve": name, "solver": solver, **points})


def summary(costs: Costs) -> pd.DataFrame:
    """Return the numbers of each solver, the largest area first.

    Returns
    -------
    DataFrame
        ``solver``; ``area`` with its interval, ``area_low`` and ``area_high``; the shares of the
        targets where it is ``first``, and that it ``reached``; ``worst``, NaN if it did not reach
        all; and the number of ``targets``, and of those on whose problem it ``ran``.
    """
    rows = []
    found = ratios(costs)
    with np.errstate(divide="ignore"):
        areas = np.maximum(0.0, 1.0 - np.log(found) / math.log(WIDEST)).mean(axis=-1)
    for s, solver in enumerate(costs.solvers):
        mine = found[0, s]
        low, high = np.quantile(areas[1:, s], ENDS, method="inverted_cdf")
        row = {"solver": solver, "area": areas[0, s], "area_low": low, "area_high": high}
        row |= {"first": (mine == 1).mean(), "reached": np.isfinite(mine).mean()}
        row |= {"worst": mine.max() if np.isfinite(mine).all() else np.nan}
        rows.append({**row, "targets": costs.targets, "ran": costs.ran(solver)})
    return pd.DataFrame(rows).sort_values("area", ascending=False, kind="stable")


# ---- output -------------------------------------------------------------------------------------


def heading(cost: str) -> str:
    """Return a cost in words."""
    if cost in CALL_COSTS:
        return f"time, calls of {words.seconds(CALL_COSTS[cost])}"
    return "exact calls" if cost == CALLS else "time"


def _label(runs: Runs, cost: str) -> str:
    """Return the label of the axis of a cost."""
    if cost in CALL_COSTS:
        return f"seconds, with calls of {words.seconds(CALL_COSTS[cost])}"
    return axis_label(runs, "passes" if cost == CALLS else "time")


def table_of(rows: pd.DataFrame) -> Table:
    """Return the numbers in one cost as a table."""
    header = ["solver", "area", "95 % interval", "first", "reached", "worst ratio", "targets"]
    lines = []
    for row in rows.to_dict("records"):
        label = str(row["solver"])
        area = bold(f"{row['area']:.2f}", row["area"] == rows["area"].max())
        cells = [f"{style.solver_label(label)} (`{label}`)", area]
        cells.append(f"{row['area_low']:.2f} to {row['area_high']:.2f}")
        cells += [words.share(row[of]) for of in ("first", "reached")]
        lines.append([*cells, number(row["worst"], ".3g"), f"{row['ran']} of {row['targets']}"])
    return Table(f"In {heading(str(rows['cost'].iloc[0]))}", header, lines)


def notes(runs: Runs, numbers: pd.DataFrame, costs: Sequence[str]) -> list[str]:
    """Return what a reader of figure and tables has to know."""
    shown = of_one_clock(runs)
    repeats = [len(of) for of in shown.curves().values()]
    targets = int(numbers["targets"].iloc[0])
    problems = len(shown.groups("problem"))
    said = [
        f"{targets} targets on {problems} problem{'s' * (problems != 1)}; "
        f"{words.repeats(repeats)}" + "; bands: 95 %, by the bootstrap." * (max(repeats) > 1)
    ]
    missing = numbers.loc[numbers["ran"] < numbers["targets"], "solver"].unique()
    if len(missing):
        names = ", ".join(map(style.solver_label, missing))
        said.append(f"No runs on some problems, which count as not reached: {names}.")
    if len(shown) < len(runs):
        clock = f"Only runs with clock={shown[0].clock} count"
        said.append(f"{clock}, and counted time where it is that of the given cost of a call.")
    if bound := [label for (_, label), of in shown.curves().items() if not of[0].has_dual]:
        names = ", ".join(map(style.solver_label, dict.fromkeys(bound)))
        said.append(f"Without a dual value, and so measured from the best one known: {names}.")
    return said + (timing_notes(shown) if {*costs} - {CALLS} else [])


def draw(
    table: pd.DataFrame, x_labels: Mapping[str, str], title: str, notes: Sequence[str]
) -> Figure:
    """Draw a column of panels per cost: ρ above, L below; a line per solver.

    Parameters
    ----------
    table : DataFrame
        As returned by `curves`, with a column ``cost``.
    x_labels : mapping of str to str
        Cost → label of the axis of L.
    title, notes
        As for `drawing.page`.
    """
    from ssvm_bench.figures import drawing

    lines = style.strokes(table["solver"])
    numbers = {name: k for k, name in enumerate(lines, 1)} if len(lines) > drawing.MANY else {}
    rows = [
        [table[(table["curve"] == curve) & (table["cost"] == cost)] for cost in x_labels]
        for curve in (RATIO, LENGTH)
    ]

    def draw_panel(panel: Axes, k: int, of_panel: pd.DataFrame) -> None:
        cost = str(of_panel["cost"].iloc[0])
        panel.set_xscale("log")
        panel.grid(axis="y")
        panel.set_axisbelow(True)
        for label, curve in of_panel.groupby("solver", sort=False):
            color, dashes = lines[str(label)]
            ends = curve["low"], curve["high"]
            panel.fill_between(curve["x"], *ends, step="post", color=color, alpha=0.2, linewidth=0)
            panel.step(curve["x"], curve["share"], where="post", color=color, linestyle=dashes)
        panel.margins(x=0.02)
        panel.set_ylim(0, 1.02)
        drawing.label_log_x(panel)
        drawing.number_lines(panel, of_panel.assign(median=of_panel["share"]), lines, numbers)
        if k == 0:
            drawing.set_heading(panel, heading(cost))
        panel.set_xlabel("cost / that of the best solver" if k == 0 else x_labels[cost])

    def finish(panel: Axes, k: int) -> None:
        panel.set_ylabel("share of targets" if k == 0 else "share of targets and repeats")

    legend = drawing.legend_of(lines, numbers)
    return drawing.draw_grid(title, notes, rows, legend, draw_panel, finish)


def _outputs(data: FigureData, chosen: Sequence[str]) -> Iterator[Output]:
    """Yield the numbers with their document, and the curves with their figure.

    There are none of a single solver, nor where no target was reached.
    """
    if not data.runs:
        return
    found = {cost: spent(data.runs, data.gaps, cost) for cost in chosen}
    known = {cost: of for cost, of in found.items() if of and len(of.solvers) > 1 and _any(of)}
    if not known:
        return

    def of_each(part: Any) -> pd.DataFrame:
        parts = [part(of).assign(cost=cost) for cost, of in known.items()]
        whole = pd.concat(parts, ignore_index=True)
        return whole[["cost", *(name for name in whole if name != "cost")]]

    numbers, drawn = of_each(summary), of_each(curves)
    said = notes(data.runs, numbers, [*known])
    tables = [table_of(rows) for _, rows in numbers.groupby("cost", sort=False)]
    blocks: list[Block] = [TEXTS["profile"], *said, *tables]
    yield Output("profile", numbers, "Profiles: the share of all targets reached", blocks)
    x_labels = {cost: _label(of_one_clock(data.runs), cost) for cost in known}
    figure = partial(draw, drawn, x_labels, data.title, said)
    yield Output("profile_curves", drawn, "Profiles", figure=figure)


def _any(costs: Costs) -> bool:
    return any(np.isfinite(of).any() for of_solver in costs.of_problem for of in of_solver.values())


KIND = Kind(
    "profile",
    Choices((CALLS, TIME, *CALL_COSTS), "cost", "costs", gaps=True),
    _outputs,
    documents=True,
    chosen=(CALLS, TIME, "10ms"),
    embedded=True,
)
