"""Measures of the MP-BCFW paper's claims: one number per repeat, computed from runs.

- At equal iterations, two runs with the same seed are compared only where both were evaluated.
  Later evaluations are rarer, so an iteration without an evaluation counts as the next one with
  an evaluation: if these are at k_1 < k_2 < …, the one at k_j counts for k_j − k_{j−1} iterations,
  with k_0 = 0.
- In time, two solvers are compared by the time to relative gaps of 0.3, 0.1 and 0.05, those that
  every repeat of the single-plane solver reaches. Where it reaches none, the *target* replaces
  them: the smallest duality gap that every repeat reaches within 80 % of its time. Times, and
  iterations, are read off each run's curve as a log plot draws it: linear in the logarithm of the
  gap between two rows, and unknown outside the rows.
- The approximate passes per iteration are ``Δapprox_calls / (n Δiteration)`` between two rows, so
  that iterations without an evaluation count, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from types import MappingProxyType

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case, Selection
from ssvm_bench.claims.claim import Fact, Measured, fact_text
from ssvm_bench.results.curves import crossing, ensure, first, least_positive
from ssvm_bench.results.table import Run, Runs, relative_gap
from ssvm_bench.results.targets import Common, common, reach, same_seed, target
from ssvm_bench.results.words import percent, seconds, span, times

AS_FAST = 1.1
"""Two times are alike up to this ratio; a difference of a tenth is not visible in a figure."""

QUALITIES = (0.3, 0.1, 0.05)
"""Relative gaps to which times are compared: the paper prints none for its “high quality”."""

NOTHING_COMMON = "no iteration was evaluated in two runs with the same seed"


# ---- at equal iterations ----------------------------------------------------------------------


def evaluated(
    case: Case, single: Selection, multi: Selection, y: str = "primal", multi_y: str = ""
) -> list[Common]:
    """Return the common evaluations of two solvers, per seed; ``multi_y`` is the second's column.

    Iteration 0 is left out: w is the same there for all solvers.
    """
    pairs = same_seed(single.by_seed(case), multi.by_seed(case), NOTHING_COMMON)
    found = [common(one, other, y, multi_y) for one, other in pairs]
    return [both for both in found if both.iterations.size]


def _where(found: Sequence[Common], ahead: str = "lower") -> dict[str, Fact]:
    """Return the number of common evaluations, and where the multi-plane run is not ahead."""
    ensure(found, NOTHING_COMMON)
    last = [float(both.behind[-1]) for both in found if both.behind.size]
    facts: dict[str, Fact] = {"common evaluations:": [both.iterations.size for both in found]}
    if last:
        facts[f"not {ahead} at"] = [both.behind.size for both in found]
        facts["the last at iteration"] = last
    return facts


def share_below(case: Case, single: Selection, multi: Selection) -> Measured:
    """Measure the share of the iterations at which the multi-plane primal is lower.

    If the primal after the exact pass is known, the note has its share, too. Then both solvers have
    made the same number of calls, and no approximate pass has followed.
    """
    found = evaluated(case, single, multi)
    facts = _where(found)
    if after := evaluated(case, single, multi, "primal", "primal_after_exact"):
        facts["after the exact pass, lower at"] = [both.share_below for both in after], percent
        facts |= {f"after it, {of}": fact for of, fact in [*_where(after).items()][1:]}
    return Measured([both.share_below for both in found], facts=facts)


def curves_below(case: Case, single: Selection, multi: Selection) -> Measured:
    """Measure the share of `share_below` for the medians over the repeats: Figure 4's curves."""
    found = evaluated(case, single, multi)
    ensure(found, NOTHING_COMMON)
    at = reduce(np.intersect1d, [both.iterations for both in found])
    ensure(at.size, "no iteration was evaluated in all runs")
    rows = [np.isin(both.iterations, at) for both in found]
    one, other = (
        np.median([values[of] for values, of in zip(side, rows, strict=True)], axis=0)
        for side in ([both.one for both in found], [both.other for both in found])
    )
    curves = Common(at, one, other)
    return Measured([curves.share_below], facts=_where([curves]))


def dual_above(case: Case, single: Selection, multi: Selection) -> Measured:
    """Measure the share of the iterations at which the multi-plane F (of averages) is higher."""
    duals = evaluated(case, single, multi, "reported_dual")
    found = [Common(at, -one, -other) for at, one, other in duals]
    facts = _where(found, "higher")
    return Measured([both.share_below for both in found], facts=facts)


def gain_over_usps(case: Case, single: Selection, multi: Selection) -> Measured:
    """Measure the gain per iteration over the median gain on USPS.

    The gain is the geometric mean of (suboptimality of single) / (suboptimality of multi), over
    the iterations common to all runs of the pair on the two datasets.
    """
    usps_cases = [other for other in case.others if other.dataset == "usps"]
    ensure(len(usps_cases) == 1, "no finished runs on USPS to compare with")
    sides = [_log_gains(of, single, multi) for of in (case, usps_cases[0])]
    shared = pd.concat([*sides[0], *sides[1]], axis=1, join="inner")
    ensure(not shared.empty, "no iteration was evaluated, with positive values, on both datasets")
    mine, usps = np.split(np.exp(shared.mean().to_numpy()), [len(sides[0])])
    facts: dict[str, Fact] = {"gain here:": mine, "on USPS:": usps, "iterations:": len(shared)}
    return Measured(mine / np.median(usps), facts=facts)


def _log_gains(case: Case, single: Selection, multi: Selection) -> list[pd.Series]:
    """Return iteration → log gain, per seed, where both suboptimalities are positive."""
    found, gains = evaluated(case, single, multi), []
    ensure(found, NOTHING_COMMON)
    for at, one, two in found:
        one, two = one - case.reference.dual, two - case.reference.dual
        positive = (one > 0) & (two > 0)
        gains.append(pd.Series(np.log(one[positive]) - np.log(two[positive]), at[positive]))
    return gains


# ---- to a gap ---------------------------------------------------------------------------------


def to_gap(
    case: Case, single: Selection, multi: Selection, x: str, not_beyond: str = ""
) -> Measured:
    """Measure the multi-plane time (or iterations) to a gap, the single-plane median as 1.

    The gaps are the relative ones of `QUALITIES` that every single-plane repeat reaches; if there
    is none, the target.

    Parameters
    ----------
    single, multi : Selection
    x : str
        ``"time"`` or ``"iteration"``.
    not_beyond : str
        ``"slowest"`` or ``"fastest"``: the single-plane repeat whose time bounds the range, which
        always includes ratios alike by `AS_FAST`; empty: no bound.
    """
    singles, multis = single.of(case), multi.of(case)
    if x == "time":
        case.timed([*singles, *multis])
    there = len(singles) > 1 or not not_beyond
    ensure(there, "no repeats, hence no spread to tell a difference from")
    unit = seconds if x == "time" else "{:.3g} iterations".format

    def to(goal: float, y: str, facts: Mapping[str, Fact]) -> Measured:
        spent = np.array([crossing(run[x], run[y], goal) for run in singles])
        base = float(np.median(spent))
        ensure(base != 0, "the gap does not fall below its first value")
        return Measured(
            [crossing(run[x], run[y], goal) / base for run in multis],
            min(spent.min() / base, 1 / AS_FAST) if not_beyond == "fastest" else -math.inf,
            max(spent.max() / base, AS_FAST) if not_beyond == "slowest" else math.inf,
            {**facts, f"{single}:": (spent, unit)},
            bounds=np.array([run[x][-1] / base for run in multis]),
            ended=f"{multi.name} ended before it reached that gap",
        )

    goals = [goal for goal in QUALITIES if all(_reaches(run, goal) for run in singles)]
    if not goals:
        gap = target(singles)
        primal = float(np.nanmedian([run["primal"][-1] for run in singles]))
        return to(
            gap, "gap", {"to a gap of": gap, "relative to the primal:": relative_gap(primal, gap)}
        )
    found = [to(goal, "relative_gap", {"to a relative gap of": goal}) for goal in goals]
    ratios = {goal: (of.values, times) for goal, of in zip(goals, found, strict=True)}
    largest, *others = (
        replace(of, facts={**of.facts} | {f"to {at}:": ratios[at] for at in goals if at != goal})
        for goal, of in zip(goals, found, strict=True)
    )
    return replace(largest, also=others)


def _reaches(run: Run, goal: float) -> bool:
    """Return whether a run reaches a relative gap after its start."""
    gaps = run["relative_gap"]
    return bool(gaps[0] > goal and (gaps <= goal).any())


def not_sooner(case: Case, single: Selection, multi: Selection) -> Measured:
    """Measure the smallest gap, over the optimum, that the multi-plane run reaches no sooner.

    The gaps are those in the rows of both runs of a seed, the start's included. Iterations are
    interpolated between rows, so that runs evaluated at the same iterations still differ.
    """
    optimum = max(abs(case.reference.dual), 1e-12)
    found, smallest = [], []
    for runs in same_seed(single.by_seed(case), multi.by_seed(case), NOTHING_COMMON):
        smallest.append(max(least_positive(run["gap"]) for run in runs))
        known = np.unique(np.concatenate([run["gap"] for run in runs]))
        known = known[known >= smallest[-1]]
        one, other = (
            np.array([crossing(run["iteration"], run["gap"], gap) for gap in known]) for run in runs
        )
        found.append(known[other >= one].min())
    facts = {"the smallest gap that both reach:": np.array(smallest) / optimum}
    return Measured(np.array(found) / optimum, facts=facts)


def averaged_sooner(case: Case, plain: Selection, averaged: Selection) -> Measured:
    """Measure the iterations of an averaged solver to a suboptimality over the plain median.

    It is the lowest primal suboptimality that every plain repeat reaches in 80 % of its time.
    """
    relative = max(abs(case.reference.dual), 1e-12)
    goal = target(plain.of(case), "suboptimality", "primal suboptimality")

    def reached(runs: Sequence[Run]) -> np.ndarray:
        return np.array([first(run["iteration"], run["suboptimality"], goal) for run in runs])

    base = float(np.median(reached(plain.of(case))))
    ensure(base != 0, "the primal does not fall below its first value")
    return Measured(
        reached(averaged.of(case)) / base,
        facts={
            "to a suboptimality, relative to the optimum, of": goal / relative,
            f"iterations of {plain}:": base,
        },
        bounds=np.array([run["iteration"][-1] / base for run in averaged.of(case)]),
        ended=f"{averaged.name} ended before it reached that",
    )


# ---- the oracle -------------------------------------------------------------------------------


def oracle_share(
    case: Case,
    solver: Selection,
    bounds: Mapping[str, Sequence[float]] = MappingProxyType({}),
    paper: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> Measured:
    """Measure oracle time / time of whole runs.

    ``bounds`` has the range for each dataset, ``paper`` the paper's seconds of a call: outside that
    range, the note says what the share would be with these.
    """
    calls, inside, whole = _spent(case, solver)
    rest = (whole - inside) / calls
    facts: dict[str, Fact] = {
        "a call inside the oracle:": (inside / calls, seconds),
        "outside:": (rest, seconds),
        "the share over the last quarter of the iterations:": (
            [_late_share(run) for run in solver.of(case)],
            percent,
        ),
    }
    low, high = bounds.get(case.dataset, (-math.inf, math.inf))
    if case.dataset in paper and not low <= np.median(inside / whole) <= high:
        least, most = (call / (call + float(np.median(rest))) for call in paper[case.dataset])
        facts["the share if a call took as long as the paper's:"] = span((least, most), percent)
    return Measured(inside / whole, low, high, facts)


def call_time(case: Case, solver: Selection, paper: Mapping[str, Sequence[float]]) -> Measured:
    """Measure the seconds of an exact oracle call; ``paper`` has the paper's range.

    Where the paper gives a single number, the range is from half of it to twice it.
    """
    calls, inside, _ = _spent(case, solver)
    least, most = paper[case.dataset]
    low, high = (least / 2, most * 2) if least == most else (least, most)
    median, facts = float(np.median(inside / calls)), dict[str, Fact]()
    if 0 < median < low:
        facts["faster than the paper's:"] = span((least / median, most / median), times)
    elif median > high:
        facts["slower than the paper's:"] = span((median / most, median / least), times)
    return Measured(inside / calls, low, high, facts)


def _late_share(run: Run) -> float:
    """Return oracle time / time over the rows in the last quarter of the iterations."""
    begin = int(np.searchsorted(run["iteration"], 0.75 * run["iteration"][-1]))
    inside, spent = (run[name][-1] - run[name][begin] for name in ("oracle_time", "time"))
    return float(inside / spent) if spent > 0 else math.nan


def _spent(case: Case, solver: Selection) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the oracle calls, oracle time and time of whole runs."""
    runs = Runs(solver.of(case))
    case.timed(runs)
    calls, inside, whole = map(runs.last, ("oracle_calls", "oracle_time", "time"))
    ensure((calls > 0).all() and (whole > 0).all(), "a run made no oracle call")
    return calls, inside, whole


# ---- working sets and approximate passes: section 4.2, Figure 6 --------------------------------

LEAST_ITERATIONS = 10
"""The least number of iterations that shows how passes grow."""

GAPS = (0.1, 0.03, 0.01)
"""Relative gaps at which a note shows the working sets."""


def passes(run: Run) -> np.ndarray:
    """Return the approximate passes of every iteration, as means between two evaluations."""
    steps = np.diff(run["iteration"].astype(int))
    ensure(steps.sum(), "a run made no iteration")
    done = steps > 0
    mean = np.diff(run["approx_calls"])[done] / (run.n * steps[done])
    return np.repeat(mean, steps[done])


def of_passes(case: Case, solver: Selection, quantile: float) -> Measured:
    """Measure a quantile, over the iterations, of the approximate passes per iteration."""
    series = [passes(run) for run in solver.of(case)]
    low, high = np.quantile(np.stack([np.quantile(one, [0.1, 0.9]) for one in series]), 0.5, axis=0)
    facts: dict[str, Fact] = {
        "in 80 % of the iterations:": f"{low:.3g} to {high:.3g}",
        "iterations:": [one.size for one in series],
    }
    return Measured([np.quantile(one, quantile) for one in series], facts=facts)


def later_than_on(case: Case, solver: Selection, datasets: Sequence[str]) -> Measured:
    """Measure how much later than on another dataset the passes reach half of their maximum.

    The number is the first iteration with so many passes, over the median on the other dataset.
    Only iterations count that all runs on both datasets have.

    Parameters
    ----------
    solver : Selection
    datasets : sequence of str
        Candidates for the other dataset; the first with runs is taken, with most examples.
    """
    there = {of.dataset: of for of in sorted(case.others, key=lambda of: int(of.data["n"]))}
    name = next((name for name in datasets if name in there), "")
    ensure(name, "no finished runs on the horses to compare with")
    both = [[passes(run) for run in solver.of(on)] for on in (case, there[name])]
    size = min(series.size for of_case in both for series in of_case)
    ensure(size >= LEAST_ITERATIONS, f"fewer than {LEAST_ITERATIONS} iterations")
    series = [np.array([one[:size] for one in of_case]) for of_case in both]
    most = [of.max(axis=1) for of in series]
    mine, theirs = (  # iterations, from 1
        (of >= largest[:, None] / 2).argmax(axis=1) + 1
        for of, largest in zip(series, most, strict=True)
    )
    facts: dict[str, Fact] = {
        "largest:": most[0],
        "half of it at iteration": mine,
        f"largest on the {there[name].data['n']} horses:": most[1],
        "half of that at iteration": theirs,
        "iterations that all have:": size,
    }
    return Measured(mine / np.median(theirs), facts=facts)


def of_planes(
    case: Case,
    solver: Selection,
    number: str,
    until: Mapping[str, Sequence[float]] = MappingProxyType({}),
) -> Measured:
    """Measure a number of the mean planes per term along the iterations.

    Parameters
    ----------
    solver : Selection
    number : str
        ``largest``; ``end``, the last over the largest; ``change``, (max − min) / max over the last
        quarter of the iterations.
    until : mapping
        Dataset → the range of numbers for which the claim holds, where the verdict depends on the
        end of the paper's runs, which it does not print: runs are judged up to each relative gap of
        `GAPS` that all of them reach, and to their end. If these differ, nothing is measured, and
        the text has the numbers of both ends.
    """
    runs = solver.of(case)
    for run in runs:
        ensure(len(run) >= 3, "fewer than three evaluated iterations")
    ends_ = np.array([[run["working_set_mean"].max(), run["working_set_mean"][-1]] for run in runs])
    facts: dict[str, Fact] = {
        "peak:": ends_[:, 0],
        "at iteration": [run["iteration"][run["working_set_mean"].argmax()] for run in runs],
        "at the end:": ends_[:, 1],
    }

    def up_to(gap: float) -> np.ndarray:
        rows = [_rows_until(run, gap) or len(run) for run in runs]
        pairs = zip(runs, rows, strict=True)
        return np.array(
            [PLANES[number](run["iteration"][:k], run["working_set_mean"][:k]) for run, k in pairs]
        )

    values = up_to(-math.inf)
    if case.dataset not in until:
        return Measured(values, facts=facts)
    gaps = [gap for gap in GAPS if all(_rows_until(run, gap) >= 3 for run in runs)]
    found = {f"up to a relative gap of {percent(gap)}:": up_to(gap) for gap in gaps}
    found["up to the end:"] = values
    low, high = until[case.dataset]
    verdicts = {bool(low <= np.median(at) <= high) for at in found.values()}
    if len(verdicts) > 1:
        said = "; ".join(f"{place} {fact_text(at)}" for place, at in found.items())
        values = np.full(len(runs), math.nan)
        text = f"it depends on the end of the paper's runs, which is not printed; {said}"
        return Measured(values, text=text)
    return Measured(
        values, facts={**facts, **{of: at for of, at in found.items() if of not in facts}}
    )


def _rows_until(run: Run, gap: float) -> int:
    """Return the number of rows up to the first with at most a relative gap; 0 if there is none."""
    small = run["relative_gap"] <= gap
    return int(small.argmax()) + 1 if small.any() else 0


def end_over_peak(at: np.ndarray, planes: np.ndarray) -> float:
    """Return the last number of planes relative to the largest."""
    return float(planes[-1] / planes.max()) if planes.max() > 0 else math.nan


def late_change(at: np.ndarray, planes: np.ndarray) -> float:
    """Return (max − min) / max of the planes over the last quarter of the iterations."""
    late = planes[at >= 0.75 * at[-1]]
    ensure(late.size >= 2, "fewer than two evaluated iterations in the last quarter")
    return float((late.max() - late.min()) / late.max()) if late.max() > 0 else 0.0


PLANES = {"largest": lambda _, planes: planes.max(), "end": end_over_peak, "change": late_change}


# ---- limits, the slope rule -------------------------------------------------------------------


def of_limits(case: Case, solver: Selection) -> Measured:
    """Measure the larger of the shares of M and of N that MP-BCFW needs.

    An iteration adds at most one plane to a working set, which starts with one plane. So the number
    of iterations + 1 bounds its size.
    """
    runs = solver.of(case)
    most = np.array([max(passes(run).max(), run["approx_passes"].max()) for run in runs])
    size = np.array([run["iteration"][-1] + 1 for run in runs])
    M, N = (np.array([run.solver_options.get(name, 1000) for run in runs]) for name in "MN")
    facts: dict[str, Fact] = {
        "passes of an iteration, at most:": most.max(),
        "planes a term on average, at most:": max(run["working_set_mean"].max() for run in runs),
        "a term's planes, one for each iteration, at most:": size.max(),
    }
    return Measured(np.maximum(most / M, size / N), facts=facts)


def over_best_fixed(case: Case, single: Selection, rule: Selection) -> Measured:
    """Measure the slope rule's time to the target gap over that of the best fixed number."""
    gap, by_rule = target(single.of(case)), rule.by_seed(case)
    fixed = {}
    for runs in case.runs.values():
        run = next(iter(runs.values()))
        if run.solver == rule.solver and run.solver_options.get("rule") == "fixed":
            fixed[int(run.solver_options["M"])] = runs
    seeds = sorted(by_rule.keys() & set.intersection(*map(set, fixed.values()))) if fixed else []
    ensure(seeds, "no finished runs with fixed numbers of passes")
    mine, *spent = (
        np.array([reach(runs[seed], gap, "time") for seed in seeds])
        for runs in (by_rule, *fixed.values())
    )
    others = sorted(zip(fixed, spent, strict=True), key=lambda pair: pair[0])
    facts = {f"M = {m} over the rule:": (of / mine, times) for m, of in others}
    return Measured(mine / np.min(spent, axis=0), facts=facts)
