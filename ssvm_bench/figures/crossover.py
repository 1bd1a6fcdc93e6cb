"""The crossover: time to a relative gap as a function of the cost of a call of the exact oracle.

.. code-block:: text

    T(c) = c · calls + CPU seconds outside the oracle

is the same for every solver, and counts all that it does besides calls: steps, planes, inner QPs.

A solver whose passes the run's clock ends makes other calls at another cost. It is run at each
cost, with ``clock=work`` and ``oracle.cost_call=c``. Such a run makes real calls, too, and its CPU
seconds outside them are ``cpu_time`` − calls · c₀, with c₀ the mean CPU seconds of a real call, the
median of all runs with ``clock=cpu`` on the problem instance. At c₀, the solver's own runs with
``clock=cpu`` count. All other solvers run once, with ``clock=cpu``, and these runs count at all c.

Relative gaps are those of :mod:`ssvm_bench.figures.targets`: a run that does not reach a gap takes
for ever, and a solver without a dual value is measured from the best one known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.document import TEXTS, Block, Table, bold
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.results import words
from ssvm_bench.results.curves import first
from ssvm_bench.results.table import Run, Runs, grouped, labels
from ssvm_bench.results.targets import gaps_reached
from ssvm_bench.results.words import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COSTS = tuple(10.0**k for k in range(-6, 1))
"""Costs of a call where no run names one: 1 µs to 1 s."""

AT_MOST = 40.0
"""The largest ratio that is drawn."""

EQUAL = 1.02
"""Two solvers whose times have a ratio below this are both first."""

COLUMNS = 2
"""Panels in a row of the figure."""

_COST = "oracle.cost_call"


def crossover(runs: Runs, gaps: Sequence[float]) -> pd.DataFrame:
    """Return the times of each solver to some relative gaps at several costs of a call.

    Without ``gaps``, they are the `gaps_reached` on each problem instance.

    Returns
    -------
    DataFrame
        ``dataset, source, n, lam, fingerprint, gap, cost, real, solver, repeats, reached``, the
        cost in seconds, and whether it is that of real calls. ``time`` is the median T(c) over the
        repeats, NaN unless more than half of them reached the gap, with ``time_min, time_max`` over
        those that did; ``passes`` and ``outside`` are the medians of calls/n and of the CPU seconds
        outside the oracle. ``ratio`` is ``time`` over the least one of all solvers at this cost.
    """
    rows = []
    for of_instance in runs.groups("problem").values():
        cpu = of_instance.where(clock="cpu")
        if not cpu:
            continue
        asked = gaps or gaps_reached(_by_label(cpu).values())
        real = float(np.median([run["seconds_per_call"][-1] for run in cpu]))
        at_costs = of_instance.where(lambda run: run.clock == "work")
        named = sorted({run.options[_COST] for run in at_costs})
        costs = dict.fromkeys(named or COSTS, False) | {real: True}
        for label, repeats in _by_label(cpu).items():
            steered = at_costs.where(partial(alike, repeats[0]))
            for cost, is_real in sorted(costs.items()):
                here = repeats
                if steered and not is_real:
                    here = steered.where(None, **{_COST: cost})
                for gap in asked:
                    about = {**repeats[0].instance, "gap": gap, "cost": cost, "real": is_real}
                    rows.append({**about, "solver": label, **_reached(here, gap, cost, real)})
    table = pd.DataFrame(rows)
    if len(table):
        least = table.groupby([*style.PROBLEM, "gap", "cost"])["time"].transform("min")
        table["ratio"] = table["time"] / least
    return table.replace(np.inf, np.nan)


def _by_label(runs: Runs) -> dict[str, Runs]:
    groups = grouped(zip(runs, labels(runs), strict=True), lambda pair: pair[1])
    return {label: Runs(run for run, _ in pairs) for label, pairs in groups.items()}


def alike(one: Run, other: Run) -> bool:
    """Return whether two runs are of one solver with the same options."""
    return one.solver_options == other.solver_options


def _reached(runs: Runs, gap: float, cost: float, real: float) -> dict[str, Any]:
    """Return what a row says of some repeats."""
    reached = [(run, run["relative_distance"]) for run in runs]
    measured = {
        "time": [first(seconds(run, cost, real), of, gap) for run, of in reached],
        "passes": [first(run["passes"], of, gap) for run, of in reached],
        "outside": [first(seconds(run, 0.0, real), of, gap) for run, of in reached],
    }
    there = [time for time in measured["time"] if np.isfinite(time)]
    low, high = (min(there), max(there)) if there else (np.nan, np.nan)
    middle = {name: float(np.median(of)) if of else np.inf for name, of in measured.items()}
    found = {"repeats": len(runs), "reached": len(there), **middle}
    return {**found, "time_min": low, "time_max": high}


def seconds(run: Run, cost: float, real: float) -> np.ndarray:
    """Return T(c) in each row of a run; ``real`` are the CPU seconds of a real call.

    With another clock than ``work``, the seconds outside the oracle are those of the run's clock.
    """
    calls = run["oracle_calls"]
    if run.clock == "work":
        outside = run["cpu_time"] - real * calls
    else:
        outside = run["time"] - run["oracle_time"]
    return cost * calls + np.maximum(outside, 0.0)


# ---- who is first -------------------------------------------------------------------------------


def firsts(table: pd.DataFrame) -> list[tuple[str, list[float]]]:
    """Return the solvers that are first at neighbouring costs, with these costs.

    A solver that is within `EQUAL` of the first one at the next cost is still called first there.

    Parameters
    ----------
    table : DataFrame
        As returned by `crossover`, on one problem instance, to one gap.
    """
    known = table[~table["real"] & table["time"].notna()]
    found: list[tuple[str, list[float]]] = []
    for cost, rows in known.groupby("cost"):
        times = rows.set_index("solver")["time"]
        if not found or times.get(found[-1][0], np.inf) > EQUAL * times.min():
            found.append((str(times.idxmin()), []))
        found[-1][1].append(float(cost))  # type: ignore[arg-type]  # the stubs: any scalar
    return found


def span(costs: Sequence[float]) -> str:
    """Return neighbouring costs in words."""
    ends = [words.seconds(cost) for cost in (costs[0], costs[-1])]
    return " to ".join(dict.fromkeys(ends))


def tables(table: pd.DataFrame) -> Iterator[Block]:
    """Yield, for each problem instance and gap, who is first where, and all ratios."""
    for instance in style.by_problem(table):
        for gap, rows in instance.groupby("gap", sort=False):
            title = f"{style.problem_title(rows.iloc[0])}: to a relative gap of {gap:g}"
            if rows["time"].isna().all():
                yield f"{title}: no solver got there."
                continue
            yield Table(title, *_ratios(rows))
            said = (f"{style.solver_label(name)}: {span(at)}" for name, at in firsts(rows))
            yield f"First, by the cost of a call: {'; '.join(said)}."


def _ratios(rows: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return header and cells: ratios to the best, the largest one, and passes at both ends."""
    costs = sorted(set(rows["cost"]))
    real = set(rows.loc[rows["real"], "cost"])
    heads = [f"{words.seconds(cost)}{' (real)' * (cost in real)}" for cost in costs]
    header = ["solver", *heads, "largest", f"passes at {heads[0]}", f"passes at {heads[-1]}"]
    lines = []
    for label, of_solver in rows.groupby("solver", sort=False):
        by_cost = of_solver.set_index("cost")
        ratios = [float(by_cost.loc[cost, "ratio"]) for cost in costs]
        worst = max(ratios) if np.isfinite(ratios).all() else np.nan
        ends = [float(by_cost.loc[cost, "passes"]) for cost in (costs[0], costs[-1])]
        cells = [bold(number(ratio, ".2f"), ratio == 1.0) for ratio in ratios]
        name = f"{style.solver_label(str(label))} (`{label}`)"
        lines.append([name, *cells, number(worst, ".2f"), *(number(end, ".0f") for end in ends)])
    return header, lines


# ---- the figure ---------------------------------------------------------------------------------


def draw(table: pd.DataFrame, title: str, notes: Sequence[str]) -> Figure:
    """Draw a panel per problem instance, and a line per solver that has one.

    Parameters
    ----------
    table : DataFrame
        As returned by `crossover`, to one gap.
    title : str
    notes : sequence of str
        Remarks below the figure.
    """
    from ssvm_bench.figures import drawing

    missing = without_line(table)
    strokes = style.strokes(table["solver"])
    lines = {name: stroke for name, stroke in strokes.items() if name not in missing}
    numbers = {name: k for k, name in enumerate(lines, 1)}
    problems = style.by_problem(table)
    shape = -(-len(problems) // COLUMNS), min(len(problems), COLUMNS)
    layout = drawing.page(
        title, notes, shape, drawing.legend_of(lines, numbers), 2.7, sharey="row", panel_width=4.2
    )
    with layout as (figure, panels):
        for panel in panels.ravel()[len(problems) :]:
            panel.set_axis_off()
        for panel, of_problem in zip(panels.ravel(), problems, strict=False):
            panel.set_xscale("log")
            panel.set_yscale("log")
            least = of_problem["time"] / of_problem["ratio"]
            curves = of_problem.assign(
                x=of_problem["cost"],
                median=of_problem["ratio"],
                min=of_problem["time_min"] / least,
                max=of_problem["time_max"] / least,
            )
            shown = curves[~curves["real"] & curves["solver"].isin([*lines])]
            at_costs = shown.sort_values("cost")
            drawing.draw_panel(panel, at_costs, lines)
            panel.set_ylim(0.9, AT_MOST)
            drawing.number_lines(panel, at_costs[at_costs["median"] < AT_MOST], lines, numbers)
            for cost in curves.loc[curves["real"], "cost"].unique():
                panel.axvline(cost, color="black", linewidth=0.8, linestyle=":")
            panel.xaxis.set_major_formatter(lambda cost, _: words.seconds(cost))
            panel.yaxis.set_major_formatter(drawing.PLAIN)
            drawing.set_heading(panel, style.problem_title(of_problem.iloc[0], ": "))
        for panel in panels[:, 0]:
            panel.set_ylabel("time / that of the best solver")
        for panel in panels[-1]:
            panel.set_xlabel("cost of a call of the oracle")
    return figure


def without_line(table: pd.DataFrame) -> list[str]:
    """Return the solvers whose ratios are nowhere small enough to be drawn."""
    least = table[~table["real"]].groupby("solver", sort=False)["ratio"].min()
    return [str(name) for name, ratio in least.items() if not ratio < AT_MOST]


def lines_missing(table: pd.DataFrame) -> str:
    """Return a note on solvers without a line; the table is to one gap."""
    names = ", ".join(map(style.solver_label, without_line(table)))
    return (
        f"A solver without a line did not get there, or takes more than {AT_MOST:g} times as long"
        f"{f': in all panels {names}' * bool(names)}."
    )


def notes(table: pd.DataFrame) -> list[str]:
    """Return what a reader of figure and tables has to know."""
    spread = f"Lines: median; bands: minimum to maximum; {words.repeats(table['repeats'])}."
    return [spread, TEXTS["crossover_real"]]


def outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    """Yield the document with all numbers, and a figure for each gap."""
    table = crossover(data.runs, data.gaps)
    if not len(table):
        return
    said = notes(table)
    blocks = [TEXTS["crossover"], *said, *tables(table)]
    yield Output("crossover", table, "Time to a relative gap against the cost of a call", blocks)
    for gap, rows in table.groupby("gap", sort=False):
        if rows["time"].notna().any():
            title = f"{data.title}: to a relative gap of {gap:g}"
            about = title, [*said, lines_missing(rows)]
            yield Output(f"crossover-{gap:g}", rows, figure=partial(draw, rows, *about))


KIND = Kind("crossover", Choices(("table",), gaps=True), outputs, documents=True)
