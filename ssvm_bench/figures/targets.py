"""The costs to reach a relative gap: numbers, table, figure, and sentences on the gain over BCFW.

The relative gap is (P − F)/|P|, as in ``budget.gap_tol``. Its costs are those in the first row of a
trace where the gap is small enough: seconds on the run's clock, and calls of the exact oracle.
Nothing is interpolated. A repeat that did not reach the gap counts as infinitely expensive. So
there is a median over the repeats if more than half of them reached the gap.

Costs are also counted to a distance from the best dual value F⋆ that any run saw on the problem
instance, (P − F⋆)/|P|: what a solver has found, whether or not it can prove it. A document has a
table for each of the two. In the figure and on pages of the report, the gap of a solver without a
dual value is that distance; this favours the solver, so its name is marked †.

The sentences, for a first-time reader, count the costs of another solver until its relative gap is
first as small as that of BCFW at its end. Their numbers are medians over the repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.curves import axis_label, timing_notes
from ssvm_bench.figures.document import TEXTS, Block, Heading, Table, bold
from ssvm_bench.figures.kind import FigureData, table_kind
from ssvm_bench.results import words
from ssvm_bench.results.curves import first
from ssvm_bench.results.table import Run, Runs, grouped
from ssvm_bench.results.targets import gaps_reached
from ssvm_bench.results.words import NONE, number, percent, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COSTS = {"time": "time", "calls": "passes"}
"""The costs, which are x axes of curves, and their columns."""

HEADINGS = {"time": "seconds", "calls": "exact passes"}
MARK = "†"
MEANING = TEXTS["without_dual"]

BASELINE = "bcfw"
OWN, BEST = "own dual", "best dual"
"""What a relative gap is measured from: a run's own dual, if it has one."""

TO_BEST = {name: f"{name}_to_best" for name in COSTS}
"""Cost → the column of its median to a distance from the best dual."""


def _from_best(run: Run) -> np.ndarray:
    return run["suboptimality"] / np.maximum(np.abs(run["primal"]), 1e-12)


def costs(
    runs: Sequence[Run],
    gaps: Sequence[float],
    of: Callable[[Run], np.ndarray] = lambda run: run["relative_distance"],
) -> list[dict[str, np.ndarray]]:
    """Return, gap by gap, the costs of each run when its relative gap was first as small.

    Each of ``COSTS`` is one number per run, infinite if the run did not reach the gap. ``of``
    returns the gaps of a run's rows.
    """

    def spent(column: str, gap: float) -> np.ndarray:
        return np.array([first(run[column], of(run), gap) for run in runs])

    return [{name: spent(column, gap) for name, column in COSTS.items()} for gap in gaps]


def targets(runs: Runs, gaps: Sequence[float]) -> pd.DataFrame:
    """Return the costs of each solver to several relative gaps, over its repeats.

    Without ``gaps``, they are the `gaps_reached` on each problem instance.

    Returns
    -------
    DataFrame
        ``dataset, source, n, lam, fingerprint, solver, bound, gap, repeats, reached``. Each cost
        has its median (NaN unless more than half of the repeats reached the gap), and ``_min`` and
        ``_max`` over those that reached it; and the median to such a distance from the best dual,
        ``_to_best``. Calls are in passes, i.e. divided by n.
    """
    rows, curves = [], runs.curves()
    asked = {
        problem: gaps or gaps_reached(repeats for _, repeats in of_problem)
        for problem, of_problem in grouped(curves.items(), lambda curve: curve[0][0]).items()
    }
    for (problem, label), repeats in curves.items():
        about = {**repeats[0].instance, "solver": label}
        about["bound"] = OWN if repeats[0].has_dual else BEST
        here = asked[problem]
        both = zip(here, costs(repeats, here), costs(repeats, here, _from_best), strict=True)
        for gap, found, to_best in both:
            row = {**about, "gap": gap, "repeats": len(repeats)}
            row["reached"] = int(np.isfinite(found["time"]).sum())
            for name, spent in found.items():
                reached = spent[np.isfinite(spent)]
                row[name] = float(np.median(spent))
                ends = (reached.min(), reached.max()) if reached.size else (np.nan, np.nan)
                row[f"{name}_min"], row[f"{name}_max"] = ends
            row |= {TO_BEST[name]: float(np.median(spent)) for name, spent in to_best.items()}
            rows.append(row)
    return pd.DataFrame(rows).replace(np.inf, np.nan)


def notes(table: pd.DataFrame, runs: Runs) -> list[str]:
    """Return the notes that a reader of the figure needs to understand its measurements."""
    text = words.spread("Points", "bars", table["repeats"]) + "."
    marked = [MEANING] if (table["bound"] == BEST).any() else []
    return [text, *marked, *timing_notes(runs)]


def marked_label(solver: str, table: pd.DataFrame) -> str:
    """Return the name of a solver, marked if its gaps are measured from the best known dual."""
    marked = ((table["solver"] == solver) & (table["bound"] == BEST)).any()
    return style.solver_label(solver) + MARK * bool(marked)


def x_label(runs: Runs, cost: str) -> str:
    """Return the label of the axis of a cost, with its unit."""
    return axis_label(runs, COSTS[cost])


def tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield the medians on each problem instance, the best in bold: to a gap, and to a distance."""
    for instance in style.by_problem(table):
        title = style.problem_title(instance.iloc[0])
        own = instance[instance["bound"] == OWN]
        if len(own):
            yield _medians(f"{title}: to a gap P − F", own, {name: name for name in COSTS})
        yield _medians(f"{title}: to a distance P − F⋆", instance, TO_BEST)


def _medians(title: str, table: pd.DataFrame, columns: Mapping[str, str]) -> Table:
    """Return the table of the medians in some columns; cost → column."""
    gaps = list(dict.fromkeys(table["gap"]))
    header = ["solver", *(f"{gap:g}: {HEADINGS[name]}" for gap in gaps for name in COSTS)]
    best = table.groupby("gap")[[*columns.values()]].min()
    lines = []
    for label, rows in table.groupby("solver", sort=False):
        cells = [f"{style.solver_label(str(label))} (`{label}`)"]
        for row in rows.to_dict("records"):
            lowest = best.loc[row["gap"]]
            for of in columns.values():
                form = ",.0f" if row[of] >= 1000 else ".3g"
                cells.append(bold(number(row[of], form), row[of] == lowest[of]))
        lines.append(cells)
    return Table(title, header, lines).filled()


# ---- on pages of the report -------------------------------------------------------------------


def spent(table: pd.DataFrame, labels: Mapping[str, str]) -> Table:
    """Return a table of each solver's costs on one problem instance: ranges, ratios to BCFW.

    Parameters
    ----------
    table : DataFrame
        As returned by `targets`, on one problem instance.
    labels : dict
        Cost → heading of its column.
    """
    ratio = f"÷ {style.solver_label(BASELINE)}"
    header = ["relative gap", "solver", "repeats that got there"]
    header += [head for name in COSTS for head in (labels[name], ratio)]
    rows = []
    for gap, of_gap in grouped(table.to_dict("records"), lambda row: row["gap"]).items():
        base = [row for row in of_gap if row["solver"].partition(" ")[0] == BASELINE]
        lowest = {name: np.nanmin([np.inf, *(row[name] for row in of_gap)]) for name in COSTS}
        for row in of_gap:
            name = style.solver_label(row["solver"]) + MARK * (row["bound"] == BEST)
            cells = [f"{gap:g}", name, f"{row['reached']} of {row['repeats']}"]
            for cost in COSTS:
                cells.append(bold(_range(row, cost), row[cost] == lowest[cost]))
                compared = len(base) == 1 and base[0][cost] > 0
                cells.append(number(row[cost] / base[0][cost], ".2g") if compared else NONE)
            rows.append(cells)
    return Table(style.problem_title(table.iloc[0]), header, rows, words=2)


def _range(row: Mapping[Hashable, Any], name: str) -> str:
    """Return the median, and the minimum and maximum of the repeats that reached the gap."""
    size, form = (row["n"], ",.0f") if name == "calls" else (1, ".3g")
    median, low, high = (number(row[f"{name}{end}"] * size, form) for end in ("", "_min", "_max"))
    return median if row["repeats"] == 1 or not row["reached"] else f"{median} ({low} to {high})"


# ---- the figure -------------------------------------------------------------------------------


def draw(
    table: pd.DataFrame, x_labels: Mapping[str, str], title: str, notes: Sequence[str] = ()
) -> Figure:
    """Draw one row of panels per cost and one column per problem instance; a line per solver.

    Parameters
    ----------
    table : DataFrame
        As returned by `targets`.
    x_labels : mapping of str to str
        Cost, a column of the table → label of its x axis.
    title, notes : str, sequence of str
        As for `drawing.draw_curves`.

    Returns
    -------
    Figure
        Medians as points, the darker the smaller the gap; minimum to maximum as lines, log x.
    """
    from ssvm_bench.figures.drawing import draw_grid, gaps_of, label_log_x, set_heading

    solvers = list(dict.fromkeys(table["solver"]))
    costs, (shades, legend) = list(x_labels), gaps_of(table)
    problems = style.by_problem(table)

    def draw_panel(panel: Axes, k: int, problem: pd.DataFrame) -> None:
        if k == 0:
            set_heading(panel, style.problem_title(problem.iloc[0], "\n"))
        panel.set_xscale("log")
        panel.grid(axis="both")
        panel.set_axisbelow(True)
        for height, solver in enumerate(solvers):
            _draw_costs(panel, problem[problem["solver"] == solver], costs[k], height, shades)
        panel.set_xlabel(x_labels[costs[k]].replace(" (", "\n("))  # long names need space
        label_log_x(panel)

    def finish(panel: Axes, k: int) -> None:
        panel.set_ylim(len(solvers) - 0.5, -0.5)
        names = [style.as_written(marked_label(solver, table)) for solver in solvers]
        panel.set_yticks(range(len(solvers)), names)

    rows, height = [problems] * len(costs), 0.6 + 0.19 * max(len(solvers), 5)
    return draw_grid(title, notes, rows, legend, draw_panel, finish, panel_height=height)


def _draw_costs(
    panel: Axes, rows: pd.DataFrame, cost: str, height: int, shades: Mapping[float, float]
) -> None:
    """Draw the costs of one solver to each gap."""
    from ssvm_bench.figures.drawing import draw_range

    text = "not reached by most runs" if len(rows) else "no runs"
    rows = rows[rows[cost].notna() & (rows[cost] > 0)]
    if rows.empty:  # x from 0 to 1 across the panel
        panel.text(0.02, height, text, transform=panel.get_yaxis_transform(), va="center", size=6.5)
        return
    color = style.color(str(rows["solver"].iloc[0]))
    panel.plot(rows[cost], [height] * len(rows), color=color, linewidth=0.8, alpha=0.5)
    for row in rows.to_dict("records"):
        draw_range(panel, height, row, cost, shades[row["gap"]], color)


# ---- the gain over BCFW, in sentences ---------------------------------------------------------


def compare(runs: Runs) -> pd.DataFrame:
    """Return the costs of solvers with a dual value on the problem instances with runs of BCFW.

    Returns
    -------
    DataFrame
        Columns of the instance; ``solver``; ``passes, time, gap, approx_passes`` at its end, the
        gap relative and the approximate passes per iteration; ``to_passes, to_time`` to the gap of
        BCFW at its end, NaN unless more than half of the repeats reached that gap.
    """
    rows = []
    for curves in grouped(runs.curves().items(), lambda curve: curve[0][0]).values():
        solvers = {label: repeats for (_, label), repeats in curves if repeats[0].has_dual}
        if BASELINE not in solvers:
            continue
        gap = float(np.median(solvers[BASELINE].last("relative_gap")))
        for label, repeats in solvers.items():
            row = {**repeats[0].instance, "solver": label}
            for name, column in (("passes",) * 2, ("time",) * 2, ("gap", "relative_gap")):
                row[name] = np.median(repeats.last(column))
            row["approx_passes"] = np.median([run["approx_passes"][1:].mean() for run in repeats])
            (spent,) = costs(repeats, [gap])
            row |= {f"to_{COSTS[name]}": np.median(of) for name, of in spent.items()}
            rows.append(row)
    return pd.DataFrame(rows).replace(np.inf, np.nan)


def sentences(table: pd.DataFrame) -> Iterator[Block]:
    """Yield paragraphs on each problem instance, below its title if there are several."""
    problems = style.by_problem(table)
    for instance in problems:
        rows = instance.assign(name=[*map(style.solver_label, instance["solver"])])
        is_base = rows["solver"] == BASELINE
        if is_base.all():
            continue
        if len(problems) > 1:
            yield Heading(style.problem_title(instance.iloc[0]))
        (base,) = rows[is_base].head(1).to_dict("records")
        yield from _beside(base, rows[~is_base].to_dict("records"))


def _beside(base: Mapping[Any, Any], others: Sequence[Mapping[Any, Any]]) -> Iterator[str]:
    """Yield what other solvers reach and take beside BCFW, on one problem instance."""
    ends = (
        f"with {of['name']} it is {percent(of['gap'])} after {of['passes']:.0f}" for of in others
    )
    yield (
        f"After {base['passes']:.0f} passes of the exact oracle over the {base['n']} examples, the "
        f"gap between primal and dual is {percent(base['gap'])} of the primal value with "
        f"{base['name']}; {'; '.join(ends)}."
    )
    said = [
        f"{of['name']} is where {base['name']} ends after {of['to_passes']:.0f} passes and "
        f"{seconds(of['to_time'])}"
        for of in others
        if of["to_passes"] > 0
    ]
    own = f"{base['name']} needs {base['passes']:.0f} passes and {seconds(base['time'])}"
    said += [own] * bool(said)
    away = (of["name"] for of in others if not of["to_passes"] > 0)
    said += [f"{name} does not get to where {base['name']} ends" for name in away]
    yield f"{'; '.join(said)}."
    made = [of for of in others if of["approx_passes"] > 0]
    if made:
        counts = (f"{of['approx_passes']:.0f} with {of['name']}" for of in made)
        yield (
            "Some solvers keep the planes that the oracle returned, and make passes over them: for "
            f"each of the oracle's, {', '.join(counts)}. Such passes cost time, too, and are worth "
            "it the more, the slower the oracle is."
        )


# ---- the kinds of figures ---------------------------------------------------------------------


def _blocks(data: FigureData, table: pd.DataFrame) -> list[Block]:
    said = f"{words.repeats(table['repeats']).capitalize()}."
    return [TEXTS["targets"], said, *timing_notes(data.runs), *tables(data.headed(table))]


def _draw(data: FigureData, table: pd.DataFrame, axes: Sequence[str]) -> Figure:
    labels = {axis: x_label(data.runs, axis) for axis in axes}
    return draw(data.headed(table), labels, data.title, notes(table, data.runs))


KIND = table_kind(
    "targets",
    "Time and exact oracle calls to a relative gap",
    targets,
    _blocks,
    _draw,
    Choices(tuple(COSTS), gaps=True),
    intro=TEXTS["spent"].format(without_dual=MEANING),
)
COMPARISON = table_kind("comparison", "", compare, lambda _, table: sentences(table))
