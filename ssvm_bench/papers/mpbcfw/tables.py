"""Tables of the MP-BCFW paper's runs that vary one option, and its Figure 3 drawn from runs.

=========  ======================================================================================
scale      number of iterations at which the multi-plane primal is lower, for each λ and start
fitted     the claims about images, judged at each pair of λ for the horses and for Stanford
slope      time to a gap with the slope rule, with fixed numbers of passes, and with other T
noise      seconds of an iteration over the repeats
averages   dual suboptimality of the average over exact steps, of the average over approximate
           steps, and of their interpolation (section 3.5), as multiples of the last
rule       Figure 3: the rule that ends approximate passes
=========  ======================================================================================

The paper's Figure 3 is a sketch. Here it is drawn from the first iteration of runs that differ only
in the number M of approximate passes. The run with M first repeats the steps of the run with M − 1,
so the ends of these runs are the points of one curve, F against time. After each pass,

.. code-block:: text

    last       (F_M − F_{M−1}) / (t_M − t_{M−1})      slope of the last segment
    iteration  (F_M − F(start)) / (t_M − t(start))    slope of the dashed line

Another pass follows while ``last > iteration``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from operator import truediv
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import (
    USUAL,
    Case,
    Selection,
    cases,
    column,
    seconds_an_iteration,
)
from ssvm_bench.claims.display import MARKS
from ssvm_bench.claims.judging import HOLDS, evaluate
from ssvm_bench.config import registry
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.document import Block, Table, described
from ssvm_bench.figures.kind import FigureData, Kind, Output, table_kind
from ssvm_bench.figures.style import dataset_name, solver_label
from ssvm_bench.papers.mpbcfw import measures as by
from ssvm_bench.results import targets, words
from ssvm_bench.results.curves import UnmeasurableError, band, ensure
from ssvm_bench.results.table import Run, Runs, grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# ---- λ and the first iterations ---------------------------------------------------------------


PAIRS = {
    "plain": ("bcfw", "mpbcfw"),
    "avg": ("bcfw_avg", "mpbcfw_avg"),
    "bcfw": ("bcfw", "bcfw_avg"),
    "mpbcfw": ("mpbcfw", "mpbcfw_avg"),
}
"""Pairs that are compared: single- and multi-plane solver, and each solver with its average."""


def scale(runs: Runs) -> pd.DataFrame:
    """Return a row for each problem instance, start and pair with common evaluations."""
    rows: list[dict[str, Any]] = []
    for case in cases(runs, runs.best):
        for pair, solvers in PAIRS.items():
            if not case.solvers.issuperset(solvers):
                continue
            try:
                single, multi = map(Selection, solvers)
                found = by.evaluated(case, single, multi)
            except UnmeasurableError:
                continue
            if not found:
                continue
            lower = [both.iterations.size - both.behind.size for both in found]
            after = [int(both.behind[-1]) if both.behind.size else 0 for both in found]
            row = {"dataset": case.dataset, "n": int(case.data["n"]), "lam": case.problem.lam}
            row |= {"start": case.variant.start, "pair": pair, "repeats": len(found)}
            row["iterations"] = min(both.iterations.size for both in found)
            row |= {"lower": np.median(lower), "lower_min": min(lower), "lower_max": max(lower)}
            rows.append({**row, "last_not_lower": max(after)})
    return pd.DataFrame(rows)


def _from_which_on(row: Mapping[str, Any]) -> str:
    last = row["last_not_lower"]
    return f"{last + 1}" if last < row["iterations"] else words.NONE


SCALE = described(
    __file__,
    "scale",
    {
        "pair": lambda row: ", ".join(map(solver_label, PAIRS[row["pair"]])),
        "λ": lambda row: words.lam(row["lam"], row["n"]),
        "in all, from": _from_which_on,
    },
)


def _of_scale(_: FigureData, table: pd.DataFrame) -> Iterator[Block]:
    yield SCALE.text
    for _dataset, rows in table.groupby("dataset", sort=False):
        of = rows.assign(other=rows["pair"] != "plain").sort_values(["other", "start", "lam"])
        yield from SCALE.tables(of)


# ---- one scale of the features for each set of images ------------------------------------------

ON_IMAGES = {
    "below_plain": "1",
    "below_avg": "2",
    "planes_low": "22",
    "planes_grow": "23",
    "planes_stable": "24",
    "passes_hundreds": "25",
    "passes_slowly": "26",
}
"""The claims about images whose verdicts depend on the scale, and their numbers."""

HORSES, SCENES = ("horseseg", "weizmann"), "stanford"


def fitted(runs: Runs) -> pd.DataFrame:
    """Return a row for each start and pair of λ, for the horses and for Stanford.

    ``horses`` and ``stanford`` are the λ times n. Each claim of `ON_IMAGES` has a column for each
    of the two that it is about, with the mark of its verdict and the median.
    """
    paper = registry.papers()["mpbcfw"]
    claims = [claim for claim in paper.claims if claim.key in ON_IMAGES]
    of_instance = grouped(runs, lambda run: (run.dataset, run.start, round(run.lam * run.n)))
    rows: list[dict[str, Any]] = []
    for (name, start, horses), (other, begin, scenes) in product(of_instance, repeat=2):
        if name not in HORSES or other != SCENES or start != begin:
            continue
        both = [*of_instance[name, start, horses], *of_instance[other, start, scenes]]
        row: dict[str, Any] = {"start": start, "horses": horses, "stanford": scenes}
        found = evaluate(paper, both, runs.best, claims=claims)
        judged = [found_of for found_of in found if found_of.dataset in (name, other)]
        row["hold"], row["of"] = sum(of.verdict == HOLDS for of in judged), len(judged)
        for of in judged:
            place = "horses" if of.dataset == name else "Stanford"
            number = of.ours.partition(" (")[0]
            row[f"{ON_IMAGES[of.key]} {place}"] = f"{MARKS[of.verdict]} {number}".strip()
        rows.append(row)
    rows.sort(key=lambda row: (row["start"] == USUAL.start, row["horses"], row["stanford"]))
    return pd.DataFrame(rows)


def _of_fitted(_: FigureData, table: pd.DataFrame) -> Iterator[Block]:
    yield FITTED
    claims = [column for column in table if str(column)[:1].isdigit()]
    header = ("start", "λ, horses", "λ, Stanford", "hold", *map(str, claims))
    cells = [
        [
            *(row["start"], f"{row['horses']}/n", f"{row['stanford']}/n"),
            *(f"{row['hold']} of {row['of']}", *(str(row[claim]) for claim in claims)),
        ]
        for row in table.to_dict("records")
    ]
    yield Table("Verdicts and medians", header, cells, 3, headed=False)


FITTED = (
    "Claims 1, 2 and 22 to 26 on images, at the paper's costs, at each pair of scales. Features "
    "that are s times as large act as λ / s²: 10/n, 30/n and 100/n stand for features of 0.32, "
    "0.18 and 0.1 times their size. Claim 26 compares Stanford with the horses."
)

PRINTED = Selection("mpbcfw", prefer={"rule": "slope", "T": 10})
"""Runs with the paper's options, if there are any."""


# ---- the slope rule, and T --------------------------------------------------------------------


def slope(runs: Runs) -> pd.DataFrame:
    """Return a row for each dataset and configuration of MP-BCFW, sorted by T and M."""
    rows: list[dict[str, Any]] = []
    for case in cases(runs, runs.best):
        of_rule = [label for label in case.runs if label.split(" ")[0] == "mpbcfw"]
        if case.variant.start != USUAL.start or "bcfw" not in case.solvers or len(of_rule) < 2:
            continue
        target = targets.target(case.repeats("bcfw"))
        usual = PRINTED.by_seed(case)
        for label in of_rule:
            mine = case.runs[label]
            both = sorted(mine.keys() & usual.keys())
            at, times, later, tenth = (
                [targets.reach(of[seed], gap, "time") for seed in both]
                for gap in (target, target / 10)
                for of in (usual, mine)
            )
            iterations = [targets.reach(mine[seed], target, "iteration") for seed in both]
            solver = mine[both[0]].solver_options
            fixed = solver["M"] if solver.get("rule") == "fixed" else 0
            row = {"dataset": case.dataset, "M": fixed, "T": solver["T"], "repeats": len(both)}
            row |= {"gap": target, "time": np.median(times)}
            ratio = band([*map(truediv, times, at)])
            row |= zip(("ratio", "ratio_min", "ratio_max"), ratio, strict=True)
            row["iterations"] = np.median(iterations)
            rows.append({**row, "tenth": np.median([*map(truediv, tenth, later)])})
    # runs with the usual T come first
    rows.sort(key=lambda row: (row["dataset"], row["T"] != PRINTED.prefer["T"], row["T"], row["M"]))
    return pd.DataFrame(rows)


SLOPE = described(
    __file__,
    "slope",
    {
        "approximate passes": lambda row: f"{row['M']}" if row["M"] else "slope rule",
        "to the rule's": lambda row: words.median(
            (row["ratio"], row["ratio_min"], row["ratio_max"]), row["repeats"], words.times
        ),
    },
)


# ---- the noise of times -----------------------------------------------------------------------


def noise(runs: Runs) -> pd.DataFrame:
    """Return a row for each dataset, start and solver with repeats whose time was measured.

    ``time`` is the median of the seconds of an iteration, up to the last one that all repeats have;
    ``spread`` their interquartile range over it.
    """
    rows: list[dict[str, Any]] = []
    for case in cases(runs, runs.best):
        for label, repeats in ({} if case.variant.counted else case.runs).items():
            spent = seconds_an_iteration([*repeats.values()])
            if len(spent) < 2:
                continue
            low, middle, high = np.quantile(spent, (0.25, 0.5, 0.75))
            row: dict[str, Any] = {"dataset": case.dataset, "start": case.variant.start}
            row |= {
                "solver": label,
                "repeats": len(spent),
                "time": middle,
                "spread": (high - low) / middle,
            }
            rows.append({**row, "time_min": spent.min(), "time_max": spent.max()})
    return pd.DataFrame(rows)


NOISE = described(
    __file__,
    "noise",
    {
        "an iteration": lambda row: words.median(
            (row["time"], row["time_min"], row["time_max"]), row["repeats"], words.seconds
        ),
    },
)


# ---- two averages -----------------------------------------------------------------------------

AVERAGES = described(__file__, "averages")

AT = (10, 30)
"""The iterations after which averages are compared."""


def averages(runs: Runs) -> pd.DataFrame:
    """Return a row for each dataset and number of iterations."""
    rows: list[dict[str, Any]] = []
    for case in cases(runs, runs.best):
        for at in AT:
            found = pd.DataFrame([_suboptimal(case, run, at) for run in case.repeats("mpbcfw_avg")])
            about = {"dataset": case.dataset, "after": at, "repeats": len(found)}
            medians = {str(name): value for name, value in found.median().items()}
            rows.append({**about, **medians})
    return pd.DataFrame(rows)


def _suboptimal(case: Case, run: Run, at: int) -> dict[str, float]:
    """Return the dual suboptimality of the interpolation, and each average's as a multiple."""
    last = run["iteration"].astype(int) <= at
    ensure(run["iteration"][-1] >= at, f"a run ended before iteration {at}")
    between = case.reference.dual - column(run, "dual_of_average")[last][-1]
    return {"interpolation": between} | {
        name: (case.reference.dual - column(run, f"dual_of_{name}_average")[last][-1]) / between
        for name in ("exact", "approximate")
    }


# ---- Figure 3 ---------------------------------------------------------------------------------


def passes(runs: Runs) -> pd.DataFrame:
    """Return a row per dataset and number of passes; 0 is after the exact pass, −1 the start.

    ``pays`` says whether the rule continues after the pass; ``ended`` is the number of passes of
    the run with the rule.
    """
    found = []
    for case in cases(runs, runs.best):
        curve: dict[int, np.ndarray] = {}
        ended = -1
        for run in case.traces():
            if run.solver_options.get("rule") == "fixed":
                begin, end = np.stack([run["time"], run["dual"]], axis=1)[[0, -1]]
                curve[-1], curve[run.solver_options["M"]] = begin, end
            else:
                ended = int(run["approx_passes"][-1])
        if not curve or ended < 0:
            continue
        at = pd.DataFrame.from_dict(curve, "index", columns=["time", "dual"]).sort_index()
        segments, whole = at.diff().iloc[2:], at - at.iloc[0]
        at["last"] = segments["dual"] / segments["time"]
        at["iteration"] = whole["dual"] / whole["time"]
        at["pays"] = at["last"] > at["iteration"]
        at.insert(0, "passes", at.index)
        at.insert(0, "ended", ended)
        at.insert(0, "dataset", case.dataset)
        found.append(at)
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def draw_rule(table: pd.DataFrame, title: str) -> Figure:
    """Draw each dataset halfway, where another pass follows, and where the iteration ends."""
    from ssvm_bench.figures import drawing

    datasets = table.groupby("dataset", sort=False)
    notes = [
        "Black: F in the first iteration, exact pass first; dashed: the iteration's slope so far.",
        "Left: the last segment is steeper, so another pass is made. Right: it is not, and the "
        "iteration ends.",
        "Grey: what further passes would have brought.",
    ]
    shape = len(datasets), 2
    with drawing.page(title, notes, shape, ((), ())) as (figure, panels):
        for line, (dataset, curve) in zip(panels, datasets, strict=True):
            ended = int(curve["ended"].iloc[0])
            for panel, at in zip(line, (max(ended // 2, 1), ended), strict=True):
                done = curve[curve["passes"] <= at]
                ends = done.iloc[[0, -1]]
                panel.plot(curve["time"], curve["dual"], color="#BBBBBB", marker=".", linewidth=0.8)
                panel.plot(done["time"], done["dual"], color="black", marker=".")
                panel.plot(ends["time"], ends["dual"], color="black", linestyle="--", linewidth=0.8)
                after = f"after {at} pass{'es' * (at > 1)}"
                drawing.set_heading(panel, f"{dataset_name(str(dataset))}: {after}")
            line[0].set_ylabel("F")
        for panel in panels[-1]:
            panel.set_xlabel("time [s], at the paper's costs")
    return figure


def _draw_rule(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    table = passes(data.runs)
    if len(table):
        yield Output("rule", table, figure=partial(draw_rule, table, data.title))


# ---- the kinds --------------------------------------------------------------------------------

KINDS = (
    table_kind("scale", SCALE.title, scale, _of_scale),
    table_kind("slope", SLOPE.title, slope, SLOPE.blocks),
    table_kind("averages", AVERAGES.title, averages, AVERAGES.blocks),
    Kind("rule", Choices(("iteration",)), _draw_rule),
    table_kind("fitted", "Which scale of the features makes the claims hold", fitted, _of_fitted),
    table_kind("noise", NOISE.title, noise, NOISE.blocks),
)
