"""The MP-BCFW paper: the claims of ``claims.yaml`` and their measures.

The paper's times of an oracle call, a plane's evaluation and a visit are its costs, set by options.
They are written only in ``each`` of the experiment ``mpbcfw_costs``, which also runs with them.

.. code-block:: text

    cost_call     c, the time of an oracle call (section 4.1)
    cost_visit    v = c (1 − s) / s, with s the oracle's share of BCFW's time (section 4.1)
    cost_plane    d · 3 µs / 2560: ten inner products over 256 features are a call on USPS

This module measures what MP-BCFW chooses, and what its parts gain (sections 3.4, 3.5 and 4.2). The
approximate passes per iteration are ``Δapprox_calls / (n Δiteration)`` between two rows, so that
iterations without an evaluation count, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ssvm_bench.claims.cases import Case, Costs, Selection, least_positive, relative_gap
from ssvm_bench.claims.claim import Claim, Measured, Statements, above, below, ensure, measure
from ssvm_bench.claims.comparisons import suboptimality
from ssvm_bench.claims.paper import Paper, about
from ssvm_bench.config import catalog
from ssvm_bench.figures.style import solver_label
from ssvm_bench.papers.mpbcfw import measures as by
from ssvm_bench.papers.mpbcfw import tables
from ssvm_bench.papers.mpbcfw.measures import as_printed, early, of_printed, reach, target_gap
from ssvm_bench.results import words
from ssvm_bench.results.table import Run, first
from ssvm_bench.results.words import counts, percent, seconds, times

# ---- working sets and approximate passes: section 4.2, Figure 6 --------------------------------


def passes(run: Run) -> np.ndarray:
    """Return the approximate passes of every iteration, as means between two evaluations."""
    steps = np.diff(run["iteration"].astype(int))
    ensure(steps.sum(), "a run made no iteration")
    calls = np.diff(run["approx_calls"])
    done = steps > 0
    mean = calls[done] / (run.n * steps[done])
    return np.repeat(mean, steps[done])


@of_printed
def of_passes(case: Case, number: Callable[[np.ndarray], float]) -> Measured:
    """Measure a number of the passes per iteration of MP-BCFW."""
    series = [passes(run) for run in case.repeats("mpbcfw")]
    ends = np.median([np.quantile(one, [0.1, 0.9]) for one in series], axis=0)
    count = [one.size for one in series]
    note = f"in 80 % of the iterations {ends[0]:.3g} to {ends[1]:.3g}; {counts(count)} iterations"
    return Measured(np.array([number(one) for one in series]), note=note)


@of_printed
def later_than_on(case: Case, datasets: Sequence[str]) -> Measured:
    """Measure how much later than on another dataset the passes reach half of their maximum.

    The number is the first iteration with so many passes, over the median on the other dataset.
    Only iterations count that all runs on both datasets have.

    Parameters
    ----------
    datasets : sequence of str
        Candidates for the other dataset; the first with runs is taken.
    """
    there = {other.dataset: other for other in case.others}
    name = next((name for name in datasets if name in there), "")
    ensure(name, "no finished runs on the horses to compare with")
    both = [[passes(run) for run in on.repeats("mpbcfw")] for on in (case, there[name])]
    common = min(series.size for of_case in both for series in of_case)
    ensure(common >= LEAST_ITERATIONS, f"fewer than {LEAST_ITERATIONS} iterations")
    tables = [np.array([series[:common] for series in of_case]) for of_case in both]
    most = [table.max(axis=1) for table in tables]
    halves = (table >= of[:, None] / 2 for table, of in zip(tables, most, strict=True))
    mine, theirs = (half.argmax(axis=1) + 1 for half in halves)  # iterations, from 1
    largest = [np.median(of) for of in most]
    note = f"half of {largest[0]:.3g} passes at iteration {np.median(mine):.3g}, on the horses "
    note += f"half of {largest[1]:.3g} at {np.median(theirs):.3g}; {common} iterations"
    return Measured(mine / np.median(theirs), note=note)


LEAST_ITERATIONS = 10
"""The least number of iterations that shows how passes grow."""


GAPS = (0.1, 0.03, 0.01)
"""Relative gaps at which a note shows the working sets."""


@of_printed
def of_planes(
    case: Case,
    number: Callable[[np.ndarray, np.ndarray], float],
    until: Mapping[str, float] = MappingProxyType({}),
) -> Measured:
    """Measure a number of (iteration, mean planes per term) of MP-BCFW.

    Parameters
    ----------
    number : callable
        Returns the number from both columns.
    until : mapping
        Dataset → the relative gap after which its runs' rows are ignored, if they reach it.
    """
    values, peaks, notes, shares = [], [], [], []
    for run in case.repeats("mpbcfw"):
        at = run["iteration"].astype(int)
        planes = run["working_set_mean"]
        ensure(at.size >= 3, "fewer than three evaluated iterations")
        ends = [_rows_until(run, gap) for gap in GAPS]
        rows = _rows_until(run, until.get(case.dataset, 0.0)) or at.size
        values.append(number(at[:rows], planes[:rows]))
        peaks.append((float(planes.max()), int(at[planes.argmax()])))
        notes.append((float(planes[-1]), int(at[-1]), float(relative_gap(run)[-1])))
        shares.append([end_over_peak(at[:end], planes[:end]) if end else math.nan for end in ends])
    (peak, top), (end, last, gap) = np.median(peaks, axis=0), np.median(notes, axis=0)
    note = f"peak {peak:.3g} at iteration {top:.0f}, {end:.3g} at the end ({last:.0f})"
    if case.dataset in until:
        shown = ", ".join(
            f"{share:.3g} at a relative gap of {percent(at)}"
            for at, share in zip(GAPS, np.median(shares, axis=0), strict=True)
            if not math.isnan(share)
        )
        note += f"; of the largest so far: {shown}, {end / peak:.3g} at the end ({percent(gap)})"
    return Measured(np.array(values), note=note)


def _rows_until(run: Run, gap: float) -> int:
    """Return the number of rows up to the first with at most a relative gap; 0 if there is none."""
    small = relative_gap(run) <= gap
    return int(small.argmax()) + 1 if small.any() else 0


def end_over_peak(at: np.ndarray, planes: np.ndarray) -> float:
    """Return the last number of planes relative to the largest."""
    return float(planes[-1] / planes.max()) if planes.max() > 0 else math.nan


def late_change(at: np.ndarray, planes: np.ndarray) -> float:
    """Return (max − min) / max of the planes over the last quarter of the iterations."""
    late = planes[at >= 0.75 * at[-1]]
    ensure(late.size >= 2, "fewer than two evaluated iterations in the last quarter")
    return float((late.max() - late.min()) / late.max()) if late.max() > 0 else 0.0


# ---- averages, limits, the slope rule ---------------------------------------------------------


@of_printed
def averaged_sooner(case: Case, solver: str) -> Measured:
    """Measure the iterations of an averaged solver to a suboptimality over the plain median.

    It is the lowest primal suboptimality that every plain repeat reaches in `PART` of its time.
    """
    plain, averaged = case.repeats(solver), case.repeats(f"{solver}_avg")
    early_values = (suboptimality(case, run)[: len(early(run))] for run in plain)
    target = max(least_positive(values, "primal suboptimality") for values in early_values)

    def reached(runs: Sequence[Run]) -> np.ndarray:
        curves = ((run["iteration"], suboptimality(case, run)) for run in runs)
        return np.array([first(*curve, target) for curve in curves])

    base = float(np.median(reached(plain)))
    ensure(base != 0, "the primal does not fall below its first value")
    relative = target / max(abs(case.reference.dual), 1e-12)
    note = f"to a suboptimality of {relative:.2g} of the optimum; {solver_label(solver)}: "
    return Measured(
        reached(averaged) / base,
        note=f"{note}{base:.3g} iterations",
        bounds=np.array([float(run["iteration"][-1]) / base for run in averaged]),
        ended=f"{solver_label(solver)}-avg ended before it reached that",
    )


@of_printed
def of_limits(case: Case) -> Measured:
    """Measure the larger of the shares of M and of N that MP-BCFW needs.

    An iteration adds at most one plane to a working set, which starts with one plane. So the number
    of iterations + 1 bounds its size.
    """
    shares, most, planes, bounds = [], 0.0, 0.0, 0
    for run in case.repeats("mpbcfw"):
        frame, solver = run.frame, run.solver_options
        here = max(float(passes(run).max()), float(frame["approx_passes"].max()))
        bound = int(frame["iteration"].iloc[-1]) + 1
        limits = [float(solver.get(name, 1000)) for name in "MN"]
        shares.append(max(here / limits[0], bound / limits[1]))
        most, bounds = max(most, here), max(bounds, bound)
        planes = max(planes, float(frame["working_set_mean"].max()))
    note = f"at most {most:.3g} passes an iteration; at most {planes:.3g} planes a term on "
    note += f"average, and never more than {bounds}, one an iteration"
    return Measured(np.array(shares), note=note)


@measure
def over_best_fixed(case: Case) -> Measured:
    """Measure the slope rule's time to the target gap over that of the best fixed number."""
    target = target_gap(case.repeats("bcfw"))
    rule = Selection("mpbcfw").by_seed(as_printed(case))
    fixed = {}
    for runs in case.runs.values():
        solver = next(iter(runs.values())).solver_options
        if solver["name"] == "mpbcfw" and solver.get("rule") == "fixed":
            fixed[int(solver["M"])] = runs
    seeds = sorted(rule.keys() & set.intersection(*map(set, fixed.values()))) if fixed else []
    ensure(seeds, "no finished runs with fixed numbers of passes")
    of_rule, *spent = (
        np.array([reach(runs[seed], target, "time") for seed in seeds])
        for runs in (rule, *fixed.values())
    )
    best = np.min(spent, axis=0)
    said = (
        f"{m}: {words.reached(float(np.median(of / of_rule)), times)}"
        for m, of in sorted(zip(fixed, spent, strict=True), key=lambda pair: pair[0])
    )
    note = f"time with a fixed number, over that with the rule: {', '.join(said)}"
    return Measured(of_rule / best, note=note)


HORSES = "horseseg"
STANDS_FOR = {"weizmann": HORSES}
ON_HORSES = (HORSES, *STANDS_FOR)
IMAGES = (HORSES, "stanford", *STANDS_FOR)
BCFW_SHARES = {**dict.fromkeys(IMAGES, (0.94, 1.0)), "usps": (0.05, 0.25), "ocr": (0.6, 0.8)}
MPBCFW_SHARES = dict.fromkeys(IMAGES, (0.0, below(0.25)))

SUBSTANTIALLY = 2.0
"""The factor of “substantially faster”, and of slow over quick growth."""

UNTIL = {"stanford": 0.03}
"""The relative gap at which the working sets of all Stanford runs are read off."""

SAID, ABOUT = Statements(__file__), about(__file__)
LOOKS = ABOUT["looks"]


def _words(pair: str) -> dict[str, str]:
    single, multi = (LOOKS[solver].label for solver in by.PAIRS[pair])
    always = "always" if pair == "plain" else "improves"
    return {"single": single, "multi": multi, "always": always}


def _of_pair(pair: str) -> list[Claim]:
    claim = partial(SAID.claim, words=_words(pair))
    iterations, time = by.to_gap(pair, "iteration"), by.to_gap(pair, "time")
    ends = 1 / SUBSTANTIALLY, SUBSTANTIALLY
    return [
        claim("below", by.share_below(pair), percent, f"below_{pair}"),
        claim("fewer", iterations, times, f"fewer_{pair}", high=below(1)),
        claim("gain", by.gain_over_usps(pair), times, f"gain_{pair}", low=above(1)),
        claim("faster", time, times, f"faster_{pair}", high=ends[0]),
        claim("similar", time, times, f"similar_{pair}", *ends),
        claim("not_slower", by.to_gap(pair, "time", "slowest"), times, f"not_slower_{pair}"),
        claim("not_faster", by.to_gap(pair, "time", "fastest"), times, f"not_faster_{pair}"),
    ]


def _of_average(solver: str) -> Claim:
    words = {"plain": LOOKS[solver].label, "averaged": LOOKS[f"{solver}_avg"].label}
    sooner, key = averaged_sooner(solver), f"average_{solver}"
    return SAID.claim("average", sooner, times, key, high=below(1), words=words)


CLAIMS = (
    *(claim for claims in zip(*map(_of_pair, by.PAIRS), strict=True) for claim in claims),
    SAID.claim("share_bcfw", by.oracle_share("bcfw", BCFW_SHARES), percent),
    SAID.claim("share_mpbcfw", by.oracle_share("mpbcfw", MPBCFW_SHARES), percent),
    SAID.claim("call", by.call_time(), seconds),
    SAID.claim("planes_small", of_planes(lambda _, planes: planes.max()), high=5),
    SAID.claim("passes_small", of_passes(lambda of: np.quantile(of, 0.9)), high=below(10)),
    SAID.claim("planes_fall", of_planes(end_over_peak), high=0.9),
    SAID.claim("passes_ocr", of_passes(np.median), low=10, high=15),
    SAID.claim("planes_low", of_planes(end_over_peak), high=0.5),
    SAID.claim("planes_grow", of_planes(end_over_peak, UNTIL), low=0.9),
    SAID.claim("planes_stable", of_planes(late_change, UNTIL), percent, high=0.1),
    SAID.claim("passes_hundreds", of_passes(np.max), low=200),
    SAID.claim("passes_slowly", later_than_on(ON_HORSES), times, low=SUBSTANTIALLY),
    *map(_of_average, by.PAIRS["plain"]),
    SAID.claim("limits", of_limits(), percent, high=below(1)),
    *(
        SAID.claim("curves", by.curves_below(pair), percent, f"curves_{pair}", words=_words(pair))
        for pair in by.PAIRS
    ),
    SAID.claim("rule", over_best_fixed(), times, high=by.AS_FAST),
    SAID.claim(
        "quality", by.not_sooner("plain"), key="quality_plain", low=1, words=_words("plain")
    ),
    *(
        SAID.claim("duals", by.dual_above(pair), percent, f"duals_{pair}", words=_words(pair))
        for pair in by.PAIRS
    ),
)

EXPERIMENT = "mpbcfw_costs"


@cache
def costs() -> dict[str, Costs]:
    """Return dataset → the paper's costs."""
    content = catalog.read_yaml(catalog.entries("experiments")[EXPERIMENT])
    prefix = "oracle."
    return {
        dataset: Costs.of({key.removeprefix(prefix): value for key, value in options.items()})
        for dataset, options in content["each"].items()
    }


PAPER = Paper(
    folder=Path(__file__).parent,
    title="the MP-BCFW paper",
    order=0,
    kinds=tables.KINDS,
    file="claims",
    claims=CLAIMS,
    solvers=frozenset({"mpbcfw", "mpbcfw_avg"}),
    stands_for=STANDS_FOR,
    costs=costs,
    **ABOUT,
)
