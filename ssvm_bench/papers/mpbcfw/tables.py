"""What the MP-BCFW paper says without a figure of its own: tables of runs that vary one option.

=========  ======================================================================================
scale      at how many iterations the multi-plane primal is lower, for each λ and start
slope      time to a gap with the slope rule, with fixed numbers of passes, and with other T
averages   dual suboptimality of the average over exact steps, of that over approximate ones, and
           of the interpolation between them (section 3.5), each over the interpolation's
=========  ======================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import USUAL, Case, Runs, cases, column
from ssvm_bench.claims.claim import UnmeasurableError
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.document import Block, Table
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.figures.style import dataset_name, solver_label
from ssvm_bench.papers.mpbcfw import measures as by
from ssvm_bench.results import words
from ssvm_bench.results.problem_instance import BestValues
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.trace import Trace

# ---- λ and the first iterations ---------------------------------------------------------------


PAIRS = {
    **by.PAIRS,
    "bcfw": ("bcfw", "bcfw_avg"),
    "mpbcfw": ("mpbcfw", "mpbcfw_avg"),
}
"""Which two are compared: single- and multi-plane solver, and each with its average."""


def scale(traces: Sequence[Trace], best: BestValues) -> pd.DataFrame:
    """Return a row for each problem instance, start and pair of solvers that has runs."""
    rows: list[dict[str, Any]] = []
    for case in cases(traces, best):
        for pair, solvers in PAIRS.items():
            found = by.common(case, *solvers) if case.solvers.issuperset(solvers) else []
            if not found:
                continue
            lower = [both.iterations.size - both.behind.size for both in found]
            after = [int(both.behind[-1]) if both.behind.size else 0 for both in found]
            rows.append(
                {
                    "dataset": case.dataset,
                    "n": int(case.data["n"]),
                    "lam": case.problem.lam,
                    "start": case.variant.start,
                    "pair": pair,
                    "repeats": len(found),
                    "iterations": min(both.iterations.size for both in found),
                    "lower": float(np.median(lower)),
                    "lower_min": min(lower),
                    "lower_max": max(lower),
                    "last_not_lower": max(after),
                }
            )
    return pd.DataFrame(rows)


OF_SCALE = (
    "At how many of the first iterations the second solver has a lower primal value than the first "
    "one of the same seed: median (minimum – maximum) over the repeats; and from which iteration "
    "on it is lower in all of them. Features that are s times as large are λ / s² in "
    "λ: 10/n and 100/n stand for features of 0.32 and 0.1 times their size. Time is counted at the "
    "paper's costs."
)


def _order(row: Mapping[Any, Any]) -> tuple[int, bool, float]:
    return list(PAIRS).index(row["pair"]), row["start"] != USUAL.start, row["lam"]


def _of_scale(data: FigureData) -> tuple[pd.DataFrame, list[Block]]:
    table = scale(data.traces, data.best)
    blocks: list[Block] = [OF_SCALE]
    header = ("pair", "start", "λ", "repeats", "iterations", "lower at", "in all, from")
    for dataset, of in grouped(table.to_dict("records"), lambda row: row["dataset"]).items():
        cells = [
            [
                ", ".join(map(solver_label, PAIRS[row["pair"]])),
                row["start"],
                words.lam(row["lam"], row["n"]),
                f"{row['repeats']}",
                f"{row['iterations']}",
                f"{row['lower']:.3g} ({row['lower_min']} – {row['lower_max']})",
                f"{row['last_not_lower'] + 1}" * (row["last_not_lower"] < row["iterations"])
                or words.NONE,
            ]
            for row in sorted(
                of, key=lambda row: (row["pair"] != "plain", row["start"], row["lam"])
            )
        ]
        blocks.append(Table(dataset_name(str(dataset)), header, cells, 3))
    return table, blocks


# ---- the slope rule, and T --------------------------------------------------------------------


def slope(traces: Sequence[Trace], best: BestValues) -> pd.DataFrame:
    """Return a row for each dataset and configuration of MP-BCFW, in the order of its options."""
    rows: list[dict[str, Any]] = []
    for case in cases(traces, best):
        of_rule = [label for label in case.runs if label.split(" ")[0] == "mpbcfw"]
        if case.variant.start != USUAL.start or "bcfw" not in case.solvers or len(of_rule) < 2:
            continue
        target = by.target_gap(case.repeats("bcfw"))
        usual = Runs("mpbcfw").by_seed(by.as_printed(case))
        at = {seed: by.reach(run, target, "time") for seed, run in usual.items()}
        for runs in case.runs.values():
            solver = next(iter(runs.values())).metadata["config"]["solver"]
            if solver["name"] != "mpbcfw":
                continue
            both = sorted(runs.keys() & at.keys())
            times = [by.reach(runs[seed], target, "time") for seed in both]
            ratios = [by.reach(runs[seed], target, "time") / at[seed] for seed in both]
            iterations = [by.reach(runs[seed], target, "iteration") for seed in both]
            rows.append(
                {
                    "dataset": case.dataset,
                    "M": solver["M"] if solver.get("rule") == "fixed" else 0,
                    "T": solver["T"],
                    "repeats": len(both),
                    "gap": target,
                    "time": float(np.median(times)),
                    "ratio": float(np.median(ratios)),
                    "ratio_min": min(ratios),
                    "ratio_max": max(ratios),
                    "iterations": float(np.median(iterations)),
                }
            )
    order = ["dataset", "T", "M"]
    table = pd.DataFrame(rows)
    return table.sort_values(order, key=_first_usual, kind="stable") if rows else table


def _first_usual(values: pd.Series) -> pd.Series:
    """Return what T is sorted by: runs with the usual one come first."""
    return values.where(values != by.PRINTED["T"], -1) if values.name == "T" else values


OF_SLOPE = (
    "Time, counted at the paper's costs, to the smallest duality gap that every BCFW repeat "
    "reaches within 80 % of its budget; and as a ratio to the runs of the same seed with the slope "
    "rule and T = 10: median (minimum – maximum). With a fixed number, that many approximate "
    "passes are made in every iteration."
)


def _of_slope(data: FigureData) -> tuple[pd.DataFrame, list[Block]]:
    table = slope(data.traces, data.best)
    blocks: list[Block] = [OF_SLOPE]
    header = ("approximate passes", "T", "repeats", "iterations", "time", "to the rule's")
    for dataset, of in grouped(table.to_dict("records"), lambda row: row["dataset"]).items():
        cells = [
            [
                f"{row['M']}" if row["M"] else "slope rule",
                f"{row['T']}",
                f"{row['repeats']}",
                _or_not(row["iterations"], "{:.3g}".format),
                _or_not(row["time"], words.seconds),
                _band(row),
            ]
            for row in of
        ]
        title = f"{dataset_name(str(dataset))}: to a gap of {of[0]['gap']:.3g}"
        blocks.append(Table(title, header, cells))
    return table, blocks


def _band(row: Mapping[Any, Any]) -> str:
    median, low, high = (
        _or_not(row[name], words.times) for name in ("ratio", "ratio_min", "ratio_max")
    )
    return f"{median} ({low} – {high})" if row["repeats"] > 1 else median


def _or_not(value: float, show: Callable[[float], str]) -> str:
    return show(value) if np.isfinite(value) else "not reached"


# ---- two averages -----------------------------------------------------------------------------

AT = (10, 30)
"""The iterations after which they are compared."""


def averages(traces: Sequence[Trace], best: BestValues) -> pd.DataFrame:
    """Return a row for each dataset and number of iterations."""
    rows: list[dict[str, Any]] = []
    for case in cases(traces, best):
        for at in AT:
            found = [
                row for run in case.repeats("mpbcfw_avg") for row in [_suboptimal(case, run, at)]
            ]
            if found:
                medians = {
                    name: float(np.median([one[name] for one in found])) for name in found[0]
                }
                rows.append(
                    {"dataset": case.dataset, "after": at, "repeats": len(found), **medians}
                )
    return pd.DataFrame(rows)


def _suboptimal(case: Case, run: Trace, at: int) -> dict[str, float]:
    """Return the dual suboptimality of the interpolation, and of each average over that."""
    last = run.frame["iteration"].to_numpy(int) <= at
    if run.frame["iteration"].iloc[-1] < at:
        raise UnmeasurableError(f"a run ended before iteration {at}")
    between = case.reference.dual - column(run, "dual_of_average")[last][-1]
    return {"interpolation": between} | {
        name: (case.reference.dual - column(run, f"dual_of_{name}_average")[last][-1]) / between
        for name in ("exact", "approximate")
    }


OF_AVERAGES = (
    "Dual suboptimality of the average over exact steps alone, and of that over approximate steps "
    "alone, as multiples of that of their best interpolation, which is what MP-BCFW-avg reports "
    "(section 3.5); medians over the repeats. Time is counted at the paper's costs."
)


def _of_averages(data: FigureData) -> tuple[pd.DataFrame, list[Block]]:
    table = averages(data.traces, data.best)
    header = (
        "dataset",
        "iterations",
        "repeats",
        "interpolation",
        "exact alone",
        "approximate alone",
    )
    cells = [
        [
            dataset_name(row["dataset"]),
            f"{row['after']}",
            f"{row['repeats']}",
            f"{row['interpolation']:.3g}",
            f"{row['exact']:.4g}×",
            f"{row['approximate']:.4g}×",
        ]
        for row in table.to_dict("records")
    ]
    return table, [OF_AVERAGES, Table("Dual suboptimality", header, cells, headed=False)]


# ---- the kinds --------------------------------------------------------------------------------


def _kind(
    name: str, title: str, made: Callable[[FigureData], tuple[pd.DataFrame, list[Block]]]
) -> Kind:
    """Return a kind of table, if there are rows."""

    def outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
        table, blocks = made(data)
        if len(table):
            yield Output(name, table, title, blocks)

    return Kind(name, Choices(("table",)), outputs)


KINDS = (
    _kind("scale", "Where MP-BCFW's primal value is lower, against λ and start", _of_scale),
    _kind("slope", "The slope rule against fixed numbers of approximate passes", _of_slope),
    _kind("averages", "Two averages, and the interpolation between them", _of_averages),
)
