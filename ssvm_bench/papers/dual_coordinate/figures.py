"""The figures of the dual-coordinate paper, as choices of one kind.

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
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ssvm_bench.claims.claim import kinds_of_runs
from ssvm_bench.figures import style
from ssvm_bench.figures.curves import COLUMNS, tabulate
from ssvm_bench.figures.kind import CurveFigure, FigureData, Output, kind_of
from ssvm_bench.papers.dual_coordinate.measures import kept_by
from ssvm_bench.results import words
from ssvm_bench.results.table import INSTANCE_COLUMNS as INSTANCE
from ssvm_bench.results.table import TINY, Run, Runs, labels_within

RUNS = kinds_of_runs(Path(__file__).with_name("claims.yaml"))
"""The kinds of runs that claims compare, by name."""

BOUNDS = {"UB": "upper_bound", "UB'": "tracked_bound", "LB": "dual"}
"""Name of a bound in the legend → its column."""

ABSOLUTE = {False: "absolute=False", True: "absolute=True"}
"""The option that says of which kind ``tol`` is, as in the names of curves."""

DISTANCE = "distance / |F*|"
GAP = "relative gap"
KEPT = "planes in the cache"


Chosen: TypeAlias = Callable[[Runs], Runs]


def _of(*kinds: str) -> Chosen:
    """Return a function that chooses the runs of these kinds."""
    return lambda runs: runs.where(lambda run: any(RUNS[kind].has(run) for kind in kinds))


def _compared(option: str, *kinds: str) -> Chosen:
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
        return tabulate(runs, {DISTANCE: partial(away, bound=bound)}, axis, True, names, held=True)

    table = pd.concat(map(curve, BOUNDS), ignore_index=True)
    return table[table["repeats"] > 0]  # there is no UB before the first sweep


OF_DISTANCES = [
    "UB and UB': above F*, the highest dual value seen. LB: below the lowest primal value.",
    "An iteration is a sweep over all terms. UB' is no bound: it may be below F*, where it is not "
    "drawn.",
]


def _gaps(what: str, file: str, option: str, *kinds: str, note: str = "") -> CurveFigure:
    """Return the figure of the relative gap for each value of an option."""
    named, notes = partial(_named, first=_value_of(option)), [note] * bool(note)
    about: Any = {"named": named, "notes": lambda _: notes}
    return CurveFigure(what, file, {GAP: "relative_gap"}, _compared(option, *kinds), **about)


def _value_of(option: str) -> Callable[[Run], str]:
    return lambda run: f"{option}={run.solver_options[option]}"


def _named(runs: Sequence[Run], first: Callable[[Run], str]) -> list[str]:
    """Return the names of curves: the solver, the text ``first`` of a run, and differing options.

    These are the options in which runs on one problem instance differ; tolerances and budgets that
    only differ between instances are left out. Tolerances are named by the paper's word.
    """
    found = []
    names = labels_within(runs, lambda run: run.problem)
    for run, label in zip(runs, names, strict=True):
        solver, *options = label.split(" ")
        others = [text for text in options if text != first(run) and text not in ABSOLUTE.values()]
        if ABSOLUTE[True] in options:
            others.append("as a difference")
        others = [text.replace("tol=", "tol ") for text in others]
        found.append(" ".join([solver, first(run), *others]))
    return found


def kept(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the planes kept after the first pass against its number of examples.

    Runs on all examples of a dataset and on its first ones, at one λ, form one curve.
    """
    runs = [run for run in runs if (run["iteration"] == 1).any()]
    rows = [
        {**run.instance, "solver": label, KEPT: kept_by(run)}
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

    runs = _of("verified")(data.runs)
    table = kept(runs)
    if len(table):
        notes = [words.spread("Lines", "bands", table["repeats"]) + "."]
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
        *("bounds_{}", bounds, _of("true_bound")),
        notes=lambda _: OF_DISTANCES,
        held=True,
    ),
    "order": _gaps(
        "Relative gap with random and with sequential order",
        *("order_{}", "order", "batch", "sequential"),
    ),
    "schedules": _gaps(
        "Relative gap of all examples with each schedule",
        *("schedules_{}", "schedule", "verified"),
        note="An iteration is one pass; the pass that verifies its gap is not counted as another.",
    ),
}
AXES = {
    "bounds": ("iteration", "time"),
    "order": ("iteration",),
    "schedules": ("iteration", "time"),
}

KIND = kind_of(
    "coordinate",
    {**{name: partial(CURVES[name].outputs, axes=AXES[name]) for name in CURVES}, "cache": _cache},
    of_instance=lambda data: chain(*(figure.of_instance(data) for figure in CURVES.values())),
    intro="Distances of bounds are from the best values ever seen on the problem instance. The "
    "relative gap of online runs is that of all examples, also of those that are not kept.",
)
