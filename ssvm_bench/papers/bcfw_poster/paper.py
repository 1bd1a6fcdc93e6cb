"""The BCFW poster (Jaggi et al., ICML 2013): each claim, its measure and its range.

The texts are in ``claims.yaml``; a claim holds if the median over the repeats is in its range.

The claims are about OCR at three λ, in passes and calls of the oracle. The poster's cutting-plane
method is taken to be 1-slack without a cache, as in BMRM. Comparisons with other cutting-plane
methods, comparisons in seconds, and self-checks are not counted.

**Table 1** bounds the oracle calls to an error ε by C nᵃ λᵇ εᶜ. Each method's error is the one that
its theorem bounds. Here it is computed from traces and the best values known on the problem
instance, P⋆ and F⋆:

===============  ==========================================================
duality gap      P(w) − F
primal error     P(w) − F⋆
dual error       P⋆ − F
saddle gap       P(w) − the dual value within the ball (``saddle_dual``)
===============  ==========================================================

The optimum is between F⋆ and P⋆, so an error may come out too large, but never too small. The calls
to ε are read off where the curve first crosses ε. A *ratio* compares the calls at two settings that
differ in one of n, λ and ε; beside it is what the order predicts: (n'/n)ᵃ, (λ'/λ)ᵇ, (ε'/ε)ᶜ. Orders
bound calls, not ratios: from a better start than the worst, calls may rise faster than their bound.
So no claim is judged by ratios. Where a trace has the theorem's bound for its own run
(``gap_bound``), no error may be above that bound.

Calls within the first pass are not compared: the curve there is only the line from w = 0.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Selection
from ssvm_bench.claims.claim import Claim
from ssvm_bench.claims.comparisons import above_start, share_ahead
from ssvm_bench.claims.old import Statements, about, above
from ssvm_bench.claims.paper import Paper
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Table, beside
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.papers.bcfw_poster import measures as by
from ssvm_bench.papers.bcfw_poster import theorems
from ssvm_bench.results.table import INSTANCE_COLUMNS as INSTANCE
from ssvm_bench.results.table import Best, BestValues, Run, Runs, crossing
from ssvm_bench.results.words import NONE, number, percent, times

VARIED = ("n", "lam", "eps")
NAMES = {"n": "n", "lam": "λ", "eps": "ε"}
HARDER = {"n": 1.0, "lam": -1.0, "eps": -1.0}
"""The sign of the change that takes more calls."""


class Order(NamedTuple):
    """A row of Table 1: the error that is bounded, the order as text, and its exponents."""

    error: str
    text: str
    n: float
    lam: float
    eps: float


ORDERS = {name: Order(*of) for name, of in beside(__file__, "orders").items()}
"""The rows of Table 1, and the poster's rate of batch Frank–Wolfe."""

COLUMNS = [
    *("dataset", "source", "solver", "error", "varied", "n", "lam", "eps"),
    *("to", "calls", "calls_to", "ratio", "predicted"),
]


def error_of(trace: Run, kind: str, known: Best) -> np.ndarray:
    """Return one of the errors of each row of a run."""
    ends: dict[str, tuple[str | float, str | float]] = {
        "duality gap": ("primal", "dual"),
        "primal error": ("primal", known.dual),
        "dual error": (known.primal, "dual"),
        "saddle gap": ("primal", "saddle_dual"),
    }
    above, below = (
        trace[end] if isinstance(end, str) else np.full(len(trace), end) for end in ends[kind]
    )
    return np.asarray(above - below)


def calls(traces: Sequence[Run], best: BestValues, errors: Sequence[float]) -> pd.DataFrame:
    """Return the calls of each solver of Table 1 to each error on each problem instance.

    Returns
    -------
    DataFrame
        ``dataset, source, n, lam, fingerprint, data, solver, eps, calls, bound``: ``data`` says
        of which data the examples are the first n; ``calls`` is the median over the repeats, NaN
        if it is infinite or within the first pass; ``bound`` is the largest error / ``gap_bound``
        on a row of any repeat, NaN if the trace has none.
    """
    rows = []
    for (problem, label), repeats in Runs(traces).curves().items():
        order = ORDERS.get(label.partition(" ")[0])
        if order is None:
            continue
        about = repeats[0].metadata
        instance = repeats[0].instance
        data = {**about["config"].get("dataset", {}), "n_samples": None}
        curves = [error_of(trace, order.error, best[problem]) for trace in repeats]
        bound = [_over_bound(trace, curve) for trace, curve in zip(repeats, curves, strict=True)]
        row = {**instance, "data": json.dumps(data, sort_keys=True, default=str), "solver": label}
        row["bound"] = max(bound)
        for eps in errors:
            needed = [
                crossing(trace["oracle_calls"], curve, eps)
                for trace, curve in zip(repeats, curves, strict=True)
            ]
            median = float(np.median(needed))
            known = instance["n"] <= median < math.inf
            rows.append({**row, "eps": eps, "calls": median if known else math.nan})
    columns = [*INSTANCE, "data", "solver", "bound", "eps", "calls"]
    return pd.DataFrame(rows, columns=columns)


def _over_bound(trace: Run, error: np.ndarray) -> float:
    if "gap_bound" not in trace or trace.frame["gap_bound"].isna().all():
        return math.nan
    return float(np.nanmax(error / trace["gap_bound"]))


def ratios(needed: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios of calls between neighbouring settings: ``COLUMNS``.

    ``n, lam, eps`` are the easier of two settings, and ``to`` is the value of ``varied`` in the
    harder one. ``calls`` and ``calls_to`` are the calls at the easier and at the harder one.
    """
    rows = []
    for varied in VARIED:
        others = [name for name in VARIED if name != varied]
        keys = ["dataset", "source", "data", "solver", *others]
        for _, group in needed.groupby(keys, sort=False):
            ordered = group.sort_values(varied, ascending=HARDER[varied] > 0).to_dict("records")
            for easy, hard in itertools.pairwise(ordered):
                order = ORDERS[easy["solver"].partition(" ")[0]]
                row = {name: easy[name] for name in ("dataset", "source", "solver", *VARIED)}
                row |= {"error": order.error, "varied": varied, "to": hard[varied]}
                row |= {"calls": easy["calls"], "calls_to": hard["calls"]}
                row["ratio"] = hard["calls"] / easy["calls"]
                row["predicted"] = (hard[varied] / easy[varied]) ** getattr(order, varied)
                rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def tables(needed: pd.DataFrame, table: pd.DataFrame) -> Iterator[Table]:
    """Yield the exponents, then the ratios for each of n, λ and ε."""
    for (dataset, source), measured in table.groupby(["dataset", "source"], sort=False):
        name = f"{style.dataset_name(str(dataset))}, {style.source_name(str(source))}"
        of_data = needed[(needed["dataset"] == dataset) & (needed["source"] == source)]
        yield _exponents(name, of_data, measured)
        for varied, rows in measured.groupby("varied", sort=False):
            changed = NAMES[str(varied)]
            yield _ratios(f"{name}: calls after a change of {changed} over those before", rows)


def _exponents(name: str, needed: pd.DataFrame, table: pd.DataFrame) -> Table:
    """Return the measured exponents, medians of log ratio / log change, beside those of Table 1."""
    header = ["solver", "error", "calls in Table 1"]
    header += [f"exponent of {NAMES[varied]} (Table 1)" for varied in VARIED]
    lines = []
    for solver, rows in table.groupby("solver", sort=False):
        order = ORDERS[str(solver).partition(" ")[0]]
        cells = [f"{style.solver_label(str(solver))} (`{solver}`)", order.error, f"O({order.text})"]
        for varied in VARIED:
            mine = rows[rows["varied"] == varied]
            found = np.log(mine["ratio"]) / np.log(mine["to"] / mine[varied])
            cells.append(f"{number(found.median(), '.2f')} ({getattr(order, varied):g})")
        bound = needed.loc[needed["solver"] == solver, "bound"].max()
        lines.append([*cells, number(bound, ".2g")])
    header.append("largest error / proved bound")
    return Table(f"{name}: exponents", header, lines, words=3)


def _ratios(title: str, table: pd.DataFrame) -> Table:
    varied = table["varied"].iloc[0]
    others = [name for name in VARIED if name != varied]
    settings = table[[varied, "to", *others]].drop_duplicates().to_dict("records")
    header = ["solver"]
    for setting in settings:
        fixed = ", ".join(f"{NAMES[name]} {setting[name]:g}" for name in others)
        header.append(f"{setting[varied]:g} → {setting['to']:g} ({fixed})")
    lines = []
    for solver, rows in table.groupby("solver", sort=False):
        cells = [style.solver_label(str(solver))]
        for setting in settings:
            mine = rows[np.logical_and.reduce([rows[name] == setting[name] for name in setting])]
            of = [f"{number(row['ratio'])} ({row['predicted']:.3g})" for _, row in mine.iterrows()]
            cells.append(of[0] if of else NONE)
        lines.append(cells)
    return Table(title, header, lines)


def _outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    needed = calls(data.runs, data.runs.best, data.gaps)
    table = ratios(needed)
    if len(table):
        title = "How the number of oracle calls grows with n, 1/λ and 1/ε"
        yield Output("rates", table, title, [beside(__file__)["rates"], *tables(needed, table)])


KIND = Kind("rates", Choices(("table",), "choice", "choices", gaps=True), _outputs)


# ---- the claims -------------------------------------------------------------------------------


SAID, ABOUT = Statements(__file__), about(__file__)

BCFW = Selection("bcfw", {"step": "line_search"})
BCFW_FIXED = Selection("bcfw", {"step": "2n/(k+2n)"})
BCFW_AVG = Selection("bcfw_avg")
BCFW_TAIL = Selection("bcfw_tail")
INEXACT = Selection("bcfw_inexact", {"falls": False})
INEXACT_FALLING = Selection("bcfw_inexact", {"falls": True})
SSG, SSG_WEIGHTED, SSG_TAIL = Selection("ssg"), Selection("ssg_weighted"), Selection("ssg_tail")
FW = Selection("fw")
ONE_SLACK = Selection("one_slack", {"cache": 0})
CACHED = Selection("one_slack", {"cache": 5})
N_SLACK = Selection("cutting_plane")


class Ours(NamedTuple):
    """A form of BCFW, and SSG in the same form."""

    key: str
    name: str
    runs: Selection
    ssg: Selection


OURS = PLAIN, WEIGHTED, TAIL = (
    Ours("bcfw", "BCFW", BCFW, SSG),
    Ours("bcfw_avg", "BCFW-avg", BCFW_AVG, SSG_WEIGHTED),
    Ours("bcfw_tail", "BCFW-tavg", BCFW_TAIL, SSG_TAIL),
)


class Family(NamedTuple):
    """Baselines that are compared as one: the lowest of their curves counts."""

    key: str
    name: str
    members: Sequence[Selection]


FAMILIES = (
    Family("eg", "EG", (Selection("eg"),)),
    Family("fw", "batch Frank–Wolfe", (FW,)),
    Family("cutting_plane", "the cutting-plane method (1-slack, no cache)", (ONE_SLACK,)),
)
OTHERS = (
    Family("cached", "1-slack with a cache of constraints", (CACHED,)),
    Family("n_slack", "n-slack cutting planes", (N_SLACK,)),
)
"""Baselines that the poster's words do not exclude, but that we do not take to be its own."""

ANY_SSG = Family("any_ssg", "SSG, averaged or not", (SSG, SSG_WEIGHTED, SSG_TAIL))

MOST = 0.9
"""The least share of evaluations at which a solver that is ahead has the lower primal."""

_LEVELS = ", ".join(f"{level:g}" for level in by.LEVELS)

FACTOR = 4 / 3
"""Numbers of calls within this factor are the same; below √2, to tell the ratios 1 and 2 apart."""

TWICE = 2.0
"""The largest ratio of two costs of one order: a call of the oracle, and the work beside it."""

AN_ORDER = 10.0
"""The largest ratio at which a gap is of the suboptimality's order."""


def _words(ours: Ours, family: Family) -> dict[str, str]:
    """Return the texts that fill the braces in the statements of a comparison."""
    theirs = f"the {'lowest ' * (len(family.members) > 1)}median of {family.name}"
    return {"ours": ours.name, "family": family.name, "theirs": theirs, "levels": _LEVELS}


def _compared(ours: Ours, family: Family) -> Iterator[Claim]:
    """Yield the claims that one of ours is ahead of a family."""
    words = _words(ours, family)
    ahead = share_ahead(ours.runs, family.members)
    passes = by.sooner(ours.runs, family.members)
    pair = f"{ours.key}_{family.key}"
    yield SAID.claim("ahead", ahead, percent, f"ahead_{pair}", low=MOST, words=words)
    yield SAID.claim("passes", passes, times, f"passes_{pair}", low=above(1), words=words)


def _rivals(ours: Ours) -> Sequence[Family]:
    """Return SSG in the same form, and the other baselines of the poster's figure."""
    return Family("ssg", ABOUT["looks"][ours.ssg.solver].label, (ours.ssg,)), *FAMILIES


def _beside(kind: str, ours: Sequence[Ours], families: Sequence[Family]) -> Iterator[Claim]:
    """Yield comparisons that are not counted."""
    for one, family in product(ours, families):
        for claim in _compared(one, family):
            yield claim._replace(beside=kind, paper=dict.fromkeys(claim.paper, NONE))


def _in_seconds(ours: Ours) -> Iterator[Claim]:
    """Yield the claims that one of ours takes less time than SSG in the same form and others do."""
    for family in (*_rivals(ours), *(() if ours is WEIGHTED else OTHERS)):
        measured = by.sooner(ours.runs, family.members, "time")
        key, words = f"seconds_{ours.key}_{family.key}", _words(ours, family)
        claim = SAID.claim("seconds", measured, times, key, low=above(1), words=words)
        yield claim._replace(beside="in seconds")


def _size_claim(key: str, name: str, runs: Selection) -> Claim:
    measured = by.growth_with_n(runs)
    return SAID.claim("size", measured, times, f"size_{key}", 1 / FACTOR, FACTOR, {"solver": name})


def _gap_claims(key: str, name: str, runs: Selection) -> Iterator[Claim]:
    certified, tight = by.certified(runs), by.gap_over_suboptimality(runs)
    words = {"solver": name}
    yield SAID.claim("certificate", certified, percent, f"certificate_{key}", words=words)
    yield SAID.claim("tight", tight, times, f"tight_{key}", high=AN_ORDER, words=words)


CLAIMS = (
    *(claim for family in _rivals(PLAIN) for claim in _compared(PLAIN, family)),
    *_beside("weighted averages", [WEIGHTED], _rivals(WEIGHTED)),
    *(claim for family in _rivals(TAIL) for claim in _compared(TAIL, family)),
    SAID.claim("start", above_start(BCFW, SSG), times),
    SAID.claim("step", share_ahead(BCFW, [BCFW_FIXED]), percent, low=0.5),
    SAID.claim("call", by.time_of_a_call(BCFW, SSG), times, high=TWICE),
    SAID.claim("inexact", by.gap_over_error(INEXACT), times),
    SAID.claim("inexact_calls", by.calls_over(INEXACT_FALLING, BCFW), times, high=FACTOR),
    SAID.claim("inexact_rate", theorems.over_bound(theorems.INEXACT)),
    SAID.claim("sparse", by.planes_of_calls(BCFW_TAIL), percent),
    SAID.claim("rate_bcfw", theorems.over_bound(theorems.BCFW)),
    SAID.claim("rate_ssg", theorems.over_bound(theorems.SSG)),
    SAID.claim("rate_fw", theorems.over_bound(theorems.FW)),
    SAID.claim("rate_one_slack", theorems.over_bound(theorems.ONE_SLACK)),
    _size_claim("bcfw", "BCFW", BCFW),
    _size_claim("ssg", "SSG", SSG),
    SAID.claim("size_fw", theorems.over_bound_on_both(theorems.FW)),
    SAID.claim("size_one_slack", theorems.over_bound_on_both(theorems.ONE_SLACK)),
    *_gap_claims("bcfw", "BCFW", BCFW),
    *_gap_claims("fw", "batch Frank–Wolfe", FW),
    *_beside("unlike averages", OURS, [ANY_SSG]),
    *_beside("other baselines", [PLAIN, TAIL], OTHERS),
    *(claim for ours in OURS for claim in _in_seconds(ours)),
)

PAPER = Paper(
    folder=Path(__file__).parent,
    title="the BCFW poster",
    short="poster",
    kinds=(KIND,),
    file="claims-poster",
    claims_=CLAIMS,
    solvers=frozenset({runs.solver for _, _, runs, _ in OURS} | {INEXACT.solver, FW.solver}),
    beside_runs_of=frozenset(
        runs.solver for family in (ANY_SSG, *FAMILIES, *OTHERS) for runs in family.members
    ),
    **ABOUT,
)
