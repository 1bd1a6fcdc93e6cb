"""Two sides of runs, A and B, paired by problem and seed: ratios of their costs to a relative gap.

.. code-block:: text

    ratio of a pair   (seconds or exact calls of B) / (those of A), to the first row with a gap
                      (P − F)/|P| at or below the target
    median            over the pairs in which A or B reaches the target, of the log ratios; the
                      ratio is 0 if only B does, and infinite if only A does
    band              minimum to maximum over the pairs in which both reach the target

Whether there is a difference is tested over the same pairs as the median: see `paired_tests`.

Seconds are compared if both runs of a pair were timed by the same clock on the same processor.
Different processors are compared on request; counted time (``clock=work``) depends on none.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.figures import paired_tests, style
from ssvm_bench.figures.document import TEXTS, Block, List, described
from ssvm_bench.figures.kind import Output
from ssvm_bench.figures.targets import COSTS, costs
from ssvm_bench.results import words
from ssvm_bench.results.curves import band
from ssvm_bench.results.table import CODE, ProblemInstance, Run, differing_options, grouped
from ssvm_bench.results.targets import MORE, gaps_reached

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEEDS = {"time": "time", "calls": "oracle calls"}
"""Cost → its name in a sentence."""

SAME, OTHERS, CLOCKS = "same", "different processors", "different clocks"
"""Whether the seconds of two sides may be compared."""

COMPARED = ["fingerprint", "lam", "a", "b", "around", "clock"]
"""Columns that agree in the rows of one comparison."""

MOST = 60
"""The largest number of comparisons in a readable figure."""

WRAPPED = 32
"""The line width of the labels of rows in the figure, in characters."""

CHOOSE = "choose some by --experiment, --dataset, or a solver's options, as 'mpbcfw T=10'."


class Pairs(NamedTuple):
    """The runs of two curves on a problem instance that have a seed in common.

    Attributes
    ----------
    problem : ProblemInstance
    a, b : str
        Labels of the curves.
    around : str
        Options other than the solver's, if they differ between runs.
    clock : str
        The clock of both sides, or both clocks if they differ.
    runs : list of (Run, Run)
    """

    problem: ProblemInstance
    a: str
    b: str
    around: str
    clock: str
    runs: list[tuple[Run, Run]]


def paired(a: Sequence[Run], b: Sequence[Run], same_curve: bool) -> list[Pairs]:
    """Return the pairs of two sides.

    Parameters
    ----------
    a, b : sequence of Run
        Finished runs.
    same_curve : bool
        Whether a run is compared with that of the same solver and options on the other side; else
        every curve of A is compared with every different curve of B.
    """
    runs = [*a, *b]
    instances = [run.problem for run in runs]
    # these options do not distinguish curves
    hidden = ("clock", "budget.", "eval.", "dataset.", *[CODE] * same_curve)
    around, within = differing_options(runs, instances, lambda option: option.startswith(hidden))
    names = (run.solver for run in runs)
    curves = [f"{name} {options}".strip() for name, options in zip(names, within, strict=True)]
    keys = [*zip(instances, around, curves, strict=True)]
    halves = range(len(a)), range(len(a), len(runs))
    sides = [grouped(half, keys.__getitem__) for half in halves]
    found = []
    for (problem, options, of_a), here in sides[0].items():
        for (other, others, of_b), there in sides[1].items():
            alike = (problem, options) == (other, others)
            if alike and (of_a == of_b if same_curve else of_a != of_b):
                both = [[runs[k] for k in side] for side in (here, there)]
                made = (problem, of_a, of_b, options)
                found += [Pairs(*made, *of_clock) for of_clock in _of_clocks(*both)]
    return found


def _of_clocks(a: list[Run], b: list[Run]) -> Iterator[tuple[str, list[tuple[Run, Run]]]]:
    """Yield clock and pairs for each common clock; without any, the pairs of different clocks."""
    clocks = [grouped(side, lambda run: run.clock) for side in (a, b)]
    common = sorted(clocks[0].keys() & clocks[1].keys())
    sides = [(clock, clocks[0][clock], clocks[1][clock]) for clock in common]
    for clock, here, there in sides or [(" and ".join(sorted({*clocks[0], *clocks[1]})), a, b)]:
        by_length = partial(sorted, key=lambda run: run["iteration"][-1])
        longest = [{run.seed: run for run in by_length(side)} for side in (here, there)]
        seeds = sorted(longest[0].keys() & longest[1].keys())
        if seeds:
            yield clock, [(longest[0][seed], longest[1][seed]) for seed in seeds]


def timed(pairs: Pairs) -> str:
    """Return ``SAME`` if the seconds of both sides can be compared, else what differs."""
    clocks = {run.clock for pair in pairs.runs for run in pair}
    if len(clocks) > 1:
        return CLOCKS
    if clocks == {"work"}:
        return SAME
    used = [[run.processors for run in pair] for pair in pairs.runs]
    return SAME if all(here == there and len(here) == 1 for here, there in used) else OTHERS


def ratios(found: Sequence[Pairs], gaps: Sequence[float], seconds: bool) -> pd.DataFrame:
    """Return the ratios B / A of each comparison and gap.

    Parameters
    ----------
    found : sequence of Pairs
    gaps : sequence of float
        Relative gaps; empty: the `gaps_reached` by the sides of each comparison.
    seconds : bool
        Whether seconds of different processors are compared, too.

    Returns
    -------
    DataFrame
        The problem instance, ``a, b, around, clock, machines, gap``; the number of ``pairs``, and
        in how many of them A and B reached the gap (``reached_a, reached_b``); the smallest gaps of
        all runs (``least_a, least_b``, infinite if none is known); median, ``_min`` and
        ``_max`` of ``time`` and ``calls``, NaN where there is no ratio or seconds are not compared;
        and, with these names before them, the fields of a `paired_tests.Difference`.
    """
    rows = []
    for pairs in found:
        about, machines = pairs.runs[0][0].instance, timed(pairs)
        comparable = machines == SAME or (machines == OTHERS and seconds)
        sides = [*zip(*pairs.runs, strict=True)]
        asked = gaps or gaps_reached(sides)
        spent = (costs(side, asked) for side in sides)
        least = {f"least_{name}": _least(side) for name, side in zip("ab", sides, strict=True)}
        for gap, a, b in zip(asked, *spent, strict=True):
            row = {**about, "a": pairs.a, "b": pairs.b, "around": pairs.around}
            row |= {"clock": pairs.clock, "machines": machines, "gap": gap}
            row |= {"pairs": len(pairs.runs), **least}
            for side, of in (("a", a), ("b", b)):
                row[f"reached_{side}"] = int(np.isfinite(of["time"]).sum())
            for name in COSTS:
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = b[name] / a[name]  # 0 where only B got there, ∞ where only A did
                ratio[np.isfinite(a[name]) & (a[name] == b[name])] = 1.0
                known = ratio[~np.isnan(ratio) & (comparable or name != "time")]
                both = known[np.isfinite(known) & (known > 0)]
                row[name] = paired_tests.median(known) if known.size else math.nan
                ends = band(both)[1:] if both.size else (math.nan, math.nan)
                row[f"{name}_min"], row[f"{name}_max"] = ends
                test = paired_tests.difference(known)._asdict()
                row |= {f"{name}_{field}": value for field, value in test.items()}
            rows.append(row)
    return pd.DataFrame(rows)


def _least(side: Sequence[Run]) -> float:
    """Return the smallest relative gap in the rows of some runs; infinite if none is known."""
    known = np.concatenate([run["relative_distance"] for run in side])
    return float(np.min(known, where=np.isfinite(known), initial=math.inf))


# ---- output -----------------------------------------------------------------------------------


def output(
    table: pd.DataFrame,
    a: str,
    b: str,
    name: str,
    seconds: bool,
    further: Sequence[str] = (),
    asked: bool = False,
) -> Output:
    """Return the comparison of two sides as a document, numbers and a figure.

    ``further`` are notes in addition to those of `notes`; ``asked`` is that of `sentences`.
    """
    title = f"{b} beside {a}"
    said = [*further, *notes(table, seconds)]
    number = len(table.drop_duplicates(COMPARED))
    many = f"{number} comparisons are too many for a figure: {CHOOSE}"
    blocks: list[Block] = [
        TEXTS["pairs"].format(a=a, b=b),
        *said,
        *[many] * (number > MOST),
        List([*sentences(table, a, b, asked)]),
        *(of.filled() for of in TABLES.tables(table)),
        TEXTS["paired_tests"],
        *TESTS.tables(_by_cost(table)),
    ]
    some = table["calls"].notna().any()
    figure = (lambda: draw(table, title, said)) if some and number <= MOST else None
    return Output(name, table, title, blocks, figure)


def notes(table: pd.DataFrame, seconds: bool) -> list[str]:
    """Return notes on different machines and clocks."""
    found = []
    of = table.drop_duplicates(COMPARED)["machines"]
    if others := int((of == OTHERS).sum()):
        what = "Their seconds are compared all the same." if seconds else "Seconds are left out."
        found.append(f"{others} of {len(of)} comparisons are of runs on other processors. {what}")
    if clocks := int((of == CLOCKS).sum()):
        found.append(f"{clocks} of {len(of)} are of runs with other clocks: their seconds are not.")
    return found


def of_plug_ins(runs: Iterable[Run]) -> Iterator[str]:
    """Yield a note on the time of solvers that are no part of the program beside others."""
    both = grouped(runs, lambda run: run.is_of_plug_in)
    if len(both) < 2:
        return
    names = ", ".join(sorted({run.solver for run in both[True]}))
    for counted in sorted({run.clock == "work" for run in both[True]}):
        yield TEXTS["counted_plug_in" if counted else "timed_plug_in"].format(names=names)


def told_to_end(runs: Iterable[Run], gaps: Sequence[float]) -> Iterator[str]:
    """Yield a note on solvers whose runs were told to end before the smallest gap in question."""
    least = min(gaps, default=math.inf)
    ended = {run.solver: run.ended_at for run in runs if run.ended_at > least}
    for solver, gap in sorted(ended.items()):
        yield (
            f"{solver} was told to end at a relative gap of {gap:g} (budget.gap_tol), and did so: "
            "what it needs to a smaller one is not known."
        )


NOBODY = {0.0: "only B", math.inf: "only A"}
"""Median that is no proper ratio → which side reached the gap."""


def shown(row: Any, cost: str) -> str:
    """Return a ratio with its band."""
    middle = row[cost]
    if math.isnan(middle):
        return words.NONE
    text = NOBODY.get(middle) or words.times(middle)
    low, high = row[f"{cost}_min"], row[f"{cost}_max"]
    if row["pairs"] == 1 or math.isnan(low) or low == high:
        return text
    return f"{text} ({words.times(low)}–{words.times(high)})"


def sentences(
    table: pd.DataFrame, a: str = "A", b: str = "B", asked: bool = False
) -> Iterator[str]:
    """Yield a sentence per comparison, at the smallest gap with a ratio; if ``asked``, at each gap.

    ``a`` and ``b`` are the names of the sides where both are the same curve, as of two folders.
    """
    for _, rows in table.groupby([*COMPARED, *["gap"] * asked], sort=False):
        numbers = np.isfinite(rows["calls"]) & (rows["calls"] > 0)
        some = rows[numbers] if numbers.any() else rows[rows["calls"].notna()]
        row = (some if len(some) else rows).sort_values("gap").iloc[0]
        of = f"{row['b']} beside {row['a']}" if row["a"] != row["b"] else str(row["a"])
        about = f"{style.problem_title(row, value=True)}, {of} {row['around']}".strip()
        sides = (row["a"], row["b"]) if row["a"] != row["b"] else (a, b)
        pairs = int(row["pairs"])
        gap = f"a relative gap of {row['gap']:g} ({pairs} pair{'s' * (pairs != 1)})"
        if not len(some):
            far = _smallest(row, sides)
            rest = f" yet: {MORE}.{far}" if far else ": none is known."
            yield f"{about}: neither got to {gap}{rest}"
        elif not numbers.any():
            alone = sides[int(row["calls"] == 0)]
            tests = _tests(row, sides)
            yield f"{about}: only {alone} got to {gap}; {tests}.{_smallest(row, sides)}"
        else:
            said = [f"{shown(row, cost)} of the {NEEDS[cost]}" for cost in COSTS if row[cost] > 0]
            yield f"{about}: {' and '.join(said)} to {gap}; {_tests(row, sides)}."


def _smallest(row: Any, sides: tuple[str, str]) -> str:
    """Return how far each side got, as a sentence; empty if no gap is known."""
    text = words.beside([row["gap"]], words.figures)
    far = zip(sides, (row["least_a"], row["least_b"]), strict=True)
    said = [f"{text(least)} of {name}" for name, least in far if math.isfinite(least)]
    return f" The smallest is {' and '.join(said)}." if said else ""


def _tests(row: Any, sides: tuple[str, str]) -> str:
    """Return what the tests of both costs show, as the end of a sentence."""
    found: dict[str, str] = {}
    for cost in (cost for cost in COSTS if row[f"{cost}_shows"]):
        sure = f" (p = {row[f'{cost}_p']:.2g})" * (row[f"{cost}_shows"] in SIDES)
        found[cost] = _shows(row, cost, sides) + sure
    if len({*found.values()}) == 1:
        return next(iter(found.values()))
    return ", ".join(f"{NEEDS[cost]}: {text}" for cost, text in found.items())


SIDES = (paired_tests.AHEAD_A, paired_tests.AHEAD_B)


def _shows(row: Any, cost: str, sides: tuple[str, str] = SIDES) -> str:
    """Return what a test shows; ``sides`` are the names of A and B."""
    test = str(row[f"{cost}_shows"])
    return f"{sides[SIDES.index(test)]} is ahead" if test in SIDES else test


def _by_cost(table: pd.DataFrame) -> pd.DataFrame:
    """Return the tests, a row for each cost."""
    rows: list[dict[Any, Any]] = []
    for row in table.to_dict("records"):
        for cost in (cost for cost in COSTS if row[f"{cost}_shows"]):
            of = {field: row[f"{cost}_{field}"] for field in paired_tests.Difference._fields}
            sides = (row["a"], row["b"]) if row["a"] != row["b"] else SIDES
            what = {"cost": NEEDS[cost], "median": row[cost], "shown": _shows(row, cost, sides)}
            rows.append({**row, **of, **what})
    return pd.DataFrame(rows, columns=[*table, *paired_tests.Difference._fields, *TESTED])


TABLES = described(
    __file__,
    "pairs",
    {"time": partial(shown, cost="time"), "oracle calls": partial(shown, cost="calls")},
)
"""The tables of ratios, one for each problem instance."""

TESTED = ("cost", "median", "shown")


def _ratio(value: float) -> str:
    """Return a ratio; of ends of an interval, too."""
    return NOBODY.get(value) or words.times(value)


TESTS = described(
    __file__,
    "paired_tests",
    {
        "median": lambda row: _ratio(row["median"]),
        "95 % interval": lambda row: " to ".join(
            dict.fromkeys((_ratio(row["low"]), _ratio(row["high"])))
        ),
    },
)
"""The tables of tests, one for each problem instance."""


def draw(table: pd.DataFrame, title: str, notes: Sequence[str]) -> Figure:
    """Draw a row of panels per problem instance: ratios of time, if there are any, and of calls."""
    from ssvm_bench.figures.drawing import draw_grid, draw_range, gaps_of, label_log_x, set_heading

    drawn = [cost for cost in COSTS if table[cost].notna().any()]
    shades, legend = gaps_of(table)
    names = [
        " ".join(filter(None, (a if a == b else f"{b} ÷ {a}", around)))
        for a, b, around in zip(table["a"], table["b"], table["around"], strict=True)
    ]
    table = table.assign(
        name=[textwrap.fill(name, WRAPPED, break_on_hyphens=False) for name in names]
    )
    problems = style.by_problem(table)
    most = max(problem["name"].nunique() for problem in problems)
    gaps = max(len(set(problem["gap"])) for problem in problems)
    lines = max(1 + name.count("\n") for name in table["name"])
    rows = [[problem.assign(cost=cost) for cost in drawn] for problem in problems]

    def draw_panel(panel: Axes, k: int, rows: pd.DataFrame) -> None:
        cost = str(rows["cost"].iloc[0])
        if cost == drawn[0]:
            set_heading(panel, style.problem_title(rows.iloc[0]))
        panel.set_xscale("log")
        panel.axvline(1, color="#999999", linewidth=0.8)
        panel.grid(axis="x")
        names, here = list(dict.fromkeys(rows["name"])), sorted(set(rows["gap"]), reverse=True)
        for row in rows.to_dict("records"):
            below = here.index(row["gap"]) - 0.5 * (len(here) - 1)
            height = names.index(row["name"]) + 0.8 * below / len(here)
            draw_range(panel, height, row, cost, shades[row["gap"]], style.color(str(row["b"])))
            if not 0 < row[cost] < math.inf:
                # a pair with calls to the gap has seconds to it, too
                none = "neither" if math.isnan(row["calls"]) else "left out"
                a, b = (row["a"], row["b"]) if row["a"] != row["b"] else ("A", "B")
                alone = {0.0: f"only {b}", math.inf: f"only {a}"}
                text = f"{row['gap']:g}: {alone.get(row[cost], none)}"
                place = panel.get_yaxis_transform()  # x from 0 to 1 across the panel
                panel.text(0.02, height, text, transform=place, va="center", size=6)
        low, high = panel.get_xlim()
        panel.set_xlim(min(low, 0.5), max(high, 2.0))
        panel.set_xlabel(f"ratio of {NEEDS[cost]}")
        label_log_x(panel)

    def finish(panel: Axes, k: int) -> None:
        names = list(dict.fromkeys(problems[k]["name"]))
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.set_yticks(range(len(names)), [style.as_written(name) for name in names])

    height = 0.7 + most * max(0.13 * gaps, 0.16 * lines)
    return draw_grid(title, notes, rows, legend, draw_panel, finish, panel_height=height)
