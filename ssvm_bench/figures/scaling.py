"""Time to a relative gap against the number of workers that call the oracle.

.. code-block:: text

    speed-up    S(P) = T(1)/T(P)        T(P) the time to the gap with P workers
    share       S(P)/P

P workers have P T(P) seconds in that time. They spend these on three things: calls
(``oracle_seconds``), waiting for the solver's own steps (P (T − ``oracle_wait``)), and waiting for
others (the rest): for messages, and at the end of a batch for its last call.

MP-BCFW decides by its clock how many approximate passes pay. If calls are fast, fewer passes pay,
and more calls are needed to reach a gap. The calls in excess of those with one worker are a loss,
too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Block, Table, bold, described
from ssvm_bench.figures.kind import FigureData, table_kind
from ssvm_bench.results.curves import first
from ssvm_bench.results.table import Run, Runs
from ssvm_bench.results.targets import gaps_reached
from ssvm_bench.results.words import NONE, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENOUGH = 0.8
"""The smallest share S(P)/P that counts as scaling."""

CURVE = ["dataset", "source", "n", "lam", "fingerprint", "solver", "batch", "engine", "delay"]
"""Columns that identify a curve."""

QUANTITIES = {"time": "seconds to the gap", "speedup": "speed-up"}

SPENT = {"time": "time", "calls": "oracle_calls", "summed": "oracle_seconds", "wait": "oracle_wait"}

_LOSSES = {"more": "more calls", "steps": "the solver's steps", "others": "waiting for others"}


def scaling(runs: Runs, gaps: Sequence[float]) -> pd.DataFrame:
    """Return the costs of each curve to a relative gap by workers, as medians over the repeats.

    The gap is the smallest of ``gaps`` that all runs on the problem instance have reached; the
    largest if there is none. Without ``gaps``, they are the `gaps_reached`.

    Returns
    -------
    DataFrame
        ``CURVE``, ``workers``, ``gap``, ``repeats``, ``reached``; ``time, calls, summed, wait``,
        NaN unless all repeats reached the gap; ``speedup`` and ``share`` against one worker; the
        shares of the workers' time, ``calling``, ``steps`` and ``others``; and ``more``, the share
        of the calls that one worker does not need.
    """
    rows = []
    for of_problem in runs.groups("problem").values():
        worst = max(np.fmin.reduce(run["relative_gap"]) for run in of_problem)
        asked = gaps or gaps_reached([run] for run in of_problem)
        gap = min((gap for gap in asked if gap >= worst), default=max(asked))
        rows += [{**_about(run), "gap": gap, **_spent(run, gap)} for run in of_problem]
    if not rows:
        return pd.DataFrame()
    found = (
        pd.DataFrame(rows)
        .replace(np.inf, np.nan)
        .groupby([*CURVE, "gap", "workers"], sort=False, dropna=False)
    )
    table = found[list(SPENT)].median()
    table["reached"], table["repeats"] = found["time"].count(), found.size()
    table.loc[table["reached"] < table["repeats"], list(SPENT)] = np.nan
    table = table.reset_index().sort_values([*CURVE, "workers"], ignore_index=True)
    same = [name for name in CURVE if name != "engine"]
    alone = table[(table["workers"] == 1) & (table["engine"] == "processes")].set_index(same)
    alone = alone.reindex(pd.MultiIndex.from_frame(table[same])).reset_index()
    table["speedup"] = alone["time"] / table["time"]
    table["share"] = table["speedup"] / table["workers"]
    table["calling"] = table["summed"] / (table["workers"] * table["time"])
    table["steps"] = 1.0 - table["wait"] / table["time"]
    table["others"] = 1.0 - table["calling"] - table["steps"]
    table["more"] = 1.0 - alone["calls"] / table["calls"]
    return table


def _about(run: Run) -> dict[str, Any]:
    """Return the columns that identify a run, with the workers that called its oracle."""
    of = run.options.get
    threads = of("parallel.threads") or 1
    here = "threads" if threads > 1 else "processes"
    return {
        **run.instance,
        "solver": run.solver,
        "batch": of("parallel.batch", 1),
        "engine": "dask" if of("parallel.address") else here,
        "delay": float(of("oracle.delay", 0.0)),
        "workers": max(threads, of("parallel.workers", 1)),
    }


def _spent(run: Run, gap: float) -> dict[str, float]:
    """Return the costs of a run to a relative gap; infinite if it did not reach the gap."""
    known = {name: column for name, column in SPENT.items() if column in run}
    spent = {name: first(run[of], run["relative_gap"], gap) for name, of in known.items()}
    return {name: spent.get(name, np.inf) for name in SPENT}


def curve_name(row: Mapping[Any, Any]) -> str:
    """Return the name of a curve without the delay: solver, τ, engine."""
    batch = f", τ = {row['batch']}" * (row["batch"] > 1)
    return f"{style.solver_label(row['solver'])}{batch}" + ", dask" * (row["engine"] == "dask")


def oracle_name(delay: float) -> str:
    """Return the cost of an oracle call as text."""
    return f"{1000 * delay:g} ms a call" if delay else "its own cost"


NUMBERS = described(
    __file__,
    "scaling",
    {
        "solver": curve_name,
        "oracle": lambda row: oracle_name(row["delay"]),
        "speed-up": lambda row: bold(number(row["speedup"], ".2f"), row["share"] >= ENOUGH),
    },
    enough=ENOUGH,
)


def tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield two tables per problem instance: the numbers, and up to where its curves scale."""
    for rows in style.by_problem(table):
        yield from NUMBERS.tables(rows)
        header = ["solver", "oracle", f"at least {ENOUGH:g} × workers up to", "then lost to"]
        ends = [_end(curve) for _, curve in rows.groupby(CURVE, sort=False, dropna=False)]
        title = f"Where it stops to scale: {style.problem_title(rows.iloc[0])}"
        yield Table(title, header, ends, words=len(header))


def _end(curve: pd.DataFrame) -> list[str]:
    """Return the number of workers up to which a curve scales, and the largest loss beyond."""
    enough = curve["share"] >= ENOUGH
    beyond = curve[~enough.cummin()]
    last = curve.loc[enough.cummin(), "workers"].max()
    why = NONE
    if len(beyond) and beyond.iloc[0][list(_LOSSES)].notna().all():
        first = beyond.iloc[0]
        name = max(_LOSSES, key=lambda loss: first[loss])
        why = f"{_LOSSES[name]}, {100 * first[name]:.0f} % with {first['workers']} workers"
    about = curve.iloc[0].to_dict()
    return [curve_name(about), oracle_name(about["delay"]), number(last, ".0f"), why]


# ---- the figure -------------------------------------------------------------------------------

LOOKS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#000000", "v"))
"""Colours and markers of oracles, from the cheapest on."""


def draw(
    table: pd.DataFrame, quantities: Sequence[str], title: str, notes: Sequence[str]
) -> Figure:
    """Draw quantities against the number of workers, both on log axes; a line per oracle.

    A row of panels shows one quantity, a column the curves of one solver on one problem.
    """
    from matplotlib.lines import Line2D

    from ssvm_bench.figures.drawing import PLAIN, draw_grid, label_log_y, set_heading

    looks = dict(zip(sorted(set(table["delay"])), cycle(LOOKS), strict=False))
    handles = [Line2D([], [], color=color, marker=mark) for color, mark in looks.values()]
    columns = table.groupby([name for name in CURVE if name != "delay"], sort=False)
    rows = [[shown for _, shown in columns]] * len(quantities)

    def draw_panel(panel: Axes, k: int, rows: pd.DataFrame) -> None:
        quantity = quantities[k]
        if k == 0:
            row = rows.iloc[0].to_dict()
            where = style.dataset_name(row["dataset"])
            where += " (synthetic)" * (row["source"] == "synthetic")
            set_heading(panel, f"{curve_name(row)}\n{where}, gap {row['gap']:g}")
        panel.set_xscale("log", base=2)
        panel.set_yscale("log", base=2 if quantity == "speedup" else 10)
        panel.grid(axis="both")
        panel.set_axisbelow(True)
        for delay, (color, mark) in looks.items():
            curve = rows[rows["delay"] == delay].dropna(subset=quantity)
            if len(curve):
                first, factor = curve.iloc[0], curve["workers"] / curve["workers"].iloc[0]
                ideal = first[quantity] * (factor if quantity == "speedup" else 1 / factor)
                panel.plot(curve["workers"], ideal, color="#aaaaaa", linewidth=1.0, zorder=1)
                shown = curve["workers"], curve[quantity]
                panel.plot(*shown, color=color, marker=mark, markersize=4)
        panel.set_xticks(sorted(set(rows["workers"])))
        panel.xaxis.set_major_formatter(PLAIN)
        if k == len(quantities) - 1:
            panel.set_xlabel("workers")

    def finish(panel: Axes, k: int) -> None:
        if quantities[k] == "speedup":
            panel.yaxis.set_major_formatter(PLAIN)
        else:
            label_log_y(panel)
        panel.set_ylabel(QUANTITIES[quantities[k]])

    legend = handles, list(map(oracle_name, looks))
    return draw_grid(title, notes, rows, legend, draw_panel, finish, panel_width=2.4)


def _notes(data: FigureData) -> list[str]:
    busy = sum(bool(run.metadata.get("concurrent_runs")) for run in data.runs)
    said = f"{busy} of {len(data.runs)} runs were timed while others were going on."
    return [said] * bool(busy)


def _blocks(data: FigureData, table: pd.DataFrame) -> list[Block]:
    return [NUMBERS.text, *_notes(data), *tables(table)]


def _draw(data: FigureData, table: pd.DataFrame, quantities: Sequence[str]) -> Figure:
    notes = ["Grey: in proportion to the workers.", *_notes(data)]
    return draw(table, quantities, data.title, notes)


KIND = table_kind(
    "scaling",
    NUMBERS.title,
    scaling,
    _blocks,
    _draw,
    Choices(tuple(QUANTITIES), "quantity", "quantities", gaps=True),
)
