"""The dual-coordinate paper (Ramanan 2013): its figures, and the claims of ``claims.yaml``.

The batch algorithm is ``dcd`` with M = 0, which only sweeps over all terms. The online algorithm is
``dcd_online`` with the schedule ``gap``. The bench measures what traces do not record.

The figures are choices of one kind:

===========  ====================================================================================
bounds       UB − F⋆, UB' − F⋆ and P⋆ − LB, over |F⋆|, after sweeps of Algorithm 1
order        relative gap (P − F)/|P| with random and with sequential order
schedules    relative gap of all examples with the schedules of Algorithm 2
cache        planes that these schedules keep
===========  ====================================================================================

F⋆ is the highest dual value and P⋆ the lowest primal value of all runs on the problem instance. So
UB − F⋆ is at least the distance of UB from the optimum, and P⋆ − LB at least that of LB.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Selection
from ssvm_bench.claims.claim import Claim
from ssvm_bench.claims.comparisons import above_start, share_ahead
from ssvm_bench.claims.old import Statements, about, above
from ssvm_bench.claims.paper import Paper
from ssvm_bench.figures import style
from ssvm_bench.figures.curves import COLUMNS, tabulate
from ssvm_bench.figures.kind import CurveFigure, FigureData, Output, kind_of
from ssvm_bench.papers.dual_coordinate import measures as by
from ssvm_bench.papers.dual_coordinate.measures import BATCH, COMPUTED, SEQUENTIAL, TRUE_BOUND
from ssvm_bench.results import words
from ssvm_bench.results.table import INSTANCE_COLUMNS as INSTANCE
from ssvm_bench.results.table import TINY, Run, Runs, labels_within
from ssvm_bench.results.words import percent, times

BOUNDS = {"UB": "upper_bound", "UB'": "tracked_bound", "LB": "dual"}
"""Name of a bound in the legend → its column."""

DISTANCE = "distance / |F*|"
GAP = "relative gap"
ANY_ONLINE = Selection("dcd_online", {"verify": True}, warm_start=False)
KEPT = "planes in the cache"


Chosen: TypeAlias = Callable[[Runs], Runs]


def _of(*kinds: Selection) -> Chosen:
    """Return a function that chooses the runs of these kinds."""
    return lambda runs: runs.where(lambda run: any(kind.has(run) for kind in kinds))


def _compared(option: str, *kinds: Selection) -> Chosen:
    """Return a function that chooses runs on instances where an option has several values."""

    def chosen(runs: Runs) -> Runs:
        groups = _of(*kinds)(runs).groups("problem").values()
        several = [of for of in groups if len(set(map(_value_of(option), of))) > 1]
        return Runs(run for of in several for run in of)

    return chosen


def bounds(runs: Runs, axis: str) -> pd.DataFrame:
    """Return the curves of the three bounds as a table, like `tabulate`."""

    def away(run: Run, bound: str) -> np.ndarray:
        at, (primal, dual) = run[BOUNDS[bound]], run.best or (math.nan, math.nan)
        distance = primal - at if bound == "LB" else at - dual
        return distance / max(abs(dual), TINY)

    def curve(bound: str) -> pd.DataFrame:
        names = _named(runs, lambda _: bound)
        return tabulate(runs, {DISTANCE: partial(away, bound=bound)}, axis, True, names)

    table = pd.concat(map(curve, BOUNDS), ignore_index=True)
    return table[table["repeats"] > 0]  # there is no UB before the first sweep


OF_DISTANCES = [
    "UB and UB': above F*, the highest dual value seen. LB: below the lowest primal value.",
    "An iteration is a sweep over all terms. UB' is no bound: it may be below F*, where it is not "
    "drawn.",
]


def _gaps(what: str, file: str, option: str, *kinds: Selection) -> CurveFigure:
    """Return the figure of the relative gap for each value of an option."""
    named = partial(_named, first=_value_of(option))
    return CurveFigure(what, file, {GAP: "relative_gap"}, _compared(option, *kinds), named=named)


def _value_of(option: str) -> Callable[[Run], str]:
    return lambda run: f"{option}={run.solver_options[option]}"


def _named(runs: Sequence[Run], first: Callable[[Run], str]) -> list[str]:
    """Return the names of curves: the solver, the text ``first`` of a run, and differing options.

    These are the options in which runs on one problem instance differ; tolerances and budgets that
    only differ between instances are left out.
    """
    found = []
    names = labels_within(runs, lambda run: run.problem)
    for run, label in zip(runs, names, strict=True):
        solver, *options = label.split(" ")
        others = [text for text in options if text != first(run)]
        found.append(" ".join([solver, first(run), *others]))
    return found


def kept(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the planes kept after the first pass against its number of examples.

    Runs on all examples of a dataset and on its first ones, at one λ, form one curve.
    """
    runs = [run for run in runs if (run["iteration"] == 1).any()]
    rows = [
        {**run.instance, "solver": label, KEPT: by.kept(run)}
        for run, label in zip(runs, _named(runs, _value_of("schedule")), strict=True)
    ]
    table = pd.DataFrame(rows, columns=[*INSTANCE, "solver", KEPT])
    blocks = [pd.DataFrame(columns=COLUMNS)]
    for _, curve in table.groupby(["dataset", "source", "lam", "solver"], sort=False):
        sizes = curve.groupby("n")[KEPT].agg(["median", "min", "max", "size"])
        if len(sizes) > 1:
            about = curve.iloc[curve["n"].to_numpy().argmax()].drop(KEPT)
            block = sizes.rename_axis("x").rename(columns={"size": "repeats"}).reset_index()
            blocks.append(block.assign(**about, quantity=KEPT))
    return pd.concat(blocks[1:] or blocks, ignore_index=True)[list(COLUMNS)]


def _cache(data: FigureData) -> Iterator[Output]:
    from ssvm_bench.figures import drawing

    runs = _of(ANY_ONLINE)(data.runs)
    table = kept(runs)
    if len(table):
        notes = [f"Lines: median; bands: minimum to maximum; {words.repeats(table['repeats'])}."]
        full = [run for run in runs if run["fixed_examples"].max() > 0]
        names = sorted(
            {(style.dataset_name(run.dataset), run.solver_options["cache"]) for run in full}
        )
        notes += [f"{name}: the cache was full, at {planes:,} planes." for name, planes in names]
        label = "examples of one pass"
        figure = partial(drawing.draw_curves, table, label, data.title, notes, log_y=False)
        yield Output("cache", table, figure=figure)


# ---- the kind of figure -----------------------------------------------------------------------

CURVES = {
    "bounds": CurveFigure(
        "How far the bounds UB, UB' and LB are from the optimum",
        *("bounds_{}", bounds, _of(TRUE_BOUND)),
        notes=lambda _: OF_DISTANCES,
    ),
    "order": _gaps(
        "Relative gap with random and with sequential order",
        *("order_{}", "order", BATCH, SEQUENTIAL),
    ),
    "schedules": _gaps(
        "Relative gap of all examples with each schedule", "schedules_{}", "schedule", ANY_ONLINE
    ),
}
AXES = {"bounds": ("iteration", "time"), "order": ("iteration",), "schedules": ("passes", "time")}

KIND = kind_of(
    "coordinate",
    {**{name: partial(CURVES[name].outputs, axes=AXES[name]) for name in CURVES}, "cache": _cache},
    of_instance=lambda data: chain(*(figure.of_instance(data) for figure in CURVES.values())),
    intro="Distances of bounds are from the best values ever seen on the problem instance. The "
    "relative gap of online runs is that of all examples, also of those that are not kept.",
)


SAID = Statements(__file__)

SCHEDULES = {
    "one_pass": "one step for each new example",
    "larank": "ten old examples for each new one",
    "mining": "hard-negative mining",
}
"""Schedules that the schedule ``gap`` is compared with: option → words."""

COSTS = {
    "schedule": (0.0, "seconds", "as measured"),
    "slow": (by.SLOW_CALL, "seconds, and 1 ms more for each call,", "with calls of 1 ms"),
    "calls": (math.inf, "calls of the oracle", "in calls of the oracle"),
}
"""Costs of the comparison: name → seconds added per call, unit, words in the statement."""

ROOM = 100
"""Capacity, in planes, of the small cache of ``STREAMED``."""

CACHED = {
    schedule: Selection("dcd_online", {"schedule": schedule, "verify": True}, warm_start=False)
    for schedule in ("gap", *SCHEDULES)
}
"""Runs with a cache and verified passes."""

ONLINE, ONE_PASS, LARANK = (CACHED[schedule] for schedule in ("gap", "one_pass", "larank"))
STREAMED = Selection("dcd_online", {"schedule": "one_pass", "cache": ROOM}, warm_start=False)
SSG = Selection("ssg")
SUBGRADIENT = (SSG, Selection("ssg_weighted"), Selection("ssg_tail"))

FIRST_SWEEP = "dcd / LIBLINEAR: a first sweep"
"""The quantity in the bench."""

ABOUT = 1.5
"""Two costs are about the same up to this ratio."""

TWICE = (1.5, 2.5)
"""Factors within a quarter of 2 are about 2."""

CHEAP = 0.5
"""A cost is cheap beside another one up to this share of it."""

CRUCIAL = 2.0
"""A choice is crucial from this factor on."""

TOL = 0.05
"""Tolerance of the programs that the paper's author published."""

MOST = 0.9
"""A statement holds as a rule, or nearly always, from this share on."""

STEADY = 4 / 3
"""Kept planes have not grown from half to all of the examples up to this factor."""

CONSTANT = 1.01
"""Storage is constant up to this factor, which allows for a few more planes."""


def _factor(value: float) -> str:
    """Return a factor as text, with the digits that one near the end of its range needs."""
    return f"{value:.3g}×"


def _schedules() -> Iterator[Claim]:
    """Yield a claim for each cost and each schedule that the schedule ``gap`` is compared with."""
    for name, (call, cost, told) in COSTS.items():
        for schedule, baseline in SCHEDULES.items():
            words = {"baseline": baseline, "told": told, "cost": cost}
            measured = by.costlier(ONLINE, CACHED[schedule], call)
            yield SAID.claim("schedule", measured, times, f"{name}_{schedule}", 1, words=words)


_TOLD = {"tol": percent(TOL), "room": f"{ROOM}"}

CLAIMS = (
    SAID.claim("first_sweep", by.on_bench(FIRST_SWEEP, BATCH), times, high=ABOUT),
    SAID.claim("single_first", by.single_first(BATCH), percent, low=MOST),
    SAID.claim("slower_later", by.slower_later(COMPUTED), times, low=above(1)),
    SAID.claim("tracked_faster", by.speedup(BATCH, TRUE_BOUND), _factor, "", *TWICE),
    SAID.claim("tracked_above", by.share_above(TRUE_BOUND), percent, low=MOST),
    SAID.claim("random_order", by.mimicked_sweeps(BATCH, SEQUENTIAL), times, low=above(1)),
    SAID.claim("hot_start", by.cost_of_hot_start(by.HOT, by.COLD), times, high=CHEAP),
    SAID.claim("products", by.slowdown(COMPUTED, by.LENGTHS), _factor, high=ABOUT),
    SAID.claim("crucial", by.spread(tuple(CACHED.values())), times, low=CRUCIAL),
    SAID.claim("revisiting", by.costlier(LARANK, ONE_PASS, 0.0), times, low=above(1)),
    SAID.claim("one_pass", by.passes_to_tolerance(ONLINE, TOL), high=1, words=_TOLD),
    SAID.claim("storage", by.growth_of_storage(STREAMED), _factor, high=CONSTANT, words=_TOLD),
    SAID.claim("stable", above_start(ONLINE, BATCH), times),
    SAID.claim("untuned", above_start(BATCH, SSG), times),
    SAID.claim("ahead_of_ssg", share_ahead(BATCH, SUBGRADIENT), percent, low=MOST),
    SAID.claim("ahead_few_labels", share_ahead(BATCH, SUBGRADIENT), percent, low=MOST),
    SAID.claim("path", by.cost_of_warm_start(by.WARM, BATCH, CHEAP), times, high=CHEAP),
    *_schedules(),
    SAID.claim("cache", by.growth_of_cache(ONLINE), times, high=STEADY),
    SAID.claim("dual_batch", by.never_falls(BATCH), percent),
    SAID.claim("dual_online", by.never_falls(ONLINE), percent),
)

PAPER = Paper(
    folder=Path(__file__).parent,
    title="the dual-coordinate paper",
    kinds=(KIND,),
    file="claims-dual-coordinate",
    claims_=CLAIMS,
    solvers=frozenset({"dcd", "dcd_online"}),
    beside_runs_of=frozenset({"dcd_online", "ssg"}),  # at larger λ of paths, dcd runs alone
    partial=True,
    **about(__file__),
)
