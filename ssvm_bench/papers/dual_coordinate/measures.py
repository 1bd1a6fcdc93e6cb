"""Measures of the dual-coordinate paper's claims: one number per repeat, from traces.

.. code-block:: text

    sweep                a visit of every term: an iteration of dcd with M = 0, Algorithm 1
    pass                 a pass over the stream: an iteration of dcd_online, Algorithm 2
    LB, UB, UB'          the columns dual, upper_bound and tracked_bound
    to the tolerance     until a run ended because its own bounds met, UB − LB ≤ tol UB
    verified             P − F ≤ tol P, with P of all examples
    cost                 measured seconds, plus a given number of seconds per oracle call

- Two runs that make the same random choices are compared by seed. A repeat that has not met its
  tolerance counts as infinitely slow, unless it only had less time.
- Curves are read off as a log plot draws them: linear in the logarithm between two rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case, Selection, check_clocks, column, ends
from ssvm_bench.claims.comparisons import half_of, to_common
from ssvm_bench.claims.old import Measured, measure
from ssvm_bench.results import measurements
from ssvm_bench.results.table import (
    Run,
    UnmeasurableError,
    crossing,
    ensure,
    first,
    least_positive,
    same_seed,
)
from ssvm_bench.results.words import counts, percent, reached, seconds, span, times

SWEEPS = {"M": 0, "order": "random", "bound": "tracked", "products": "keep"}
BATCH = Selection("dcd", SWEEPS, warm_start=False)
WARM = Selection("dcd", SWEEPS, warm_start=True)
TRUE_BOUND = Selection("dcd", {**SWEEPS, "bound": "true"}, warm_start=False)
SEQUENTIAL = Selection("dcd", {**SWEEPS, "order": "sequential"}, warm_start=False)
COMPUTED = Selection("dcd", {**SWEEPS, "products": "compute"}, warm_start=False)
LENGTHS = Selection("dcd", {**SWEEPS, "products": "lengths"}, warm_start=False)
HOT, COLD = (
    Selection("dcd_online", {"schedule": "gap", "verify": False, "hot": hot}, warm_start=False)
    for hot in (True, False)
)

ROUNDING = 1e-9
"""Largest relative rounding error of a dual value, which is a sum over all terms."""

DIGITS = 1e-6
"""Largest relative rounding error of a bound: stored traces keep seven digits."""


def _pairs(case: Case, one: Selection, other: Selection) -> list[tuple[Run, Run]]:
    """Return the pairs of runs with the same seed; raise if their clocks differ."""
    pairs = same_seed(one.by_seed(case), other.by_seed(case))
    check_clocks(run for pair in pairs for run in pair)
    return pairs


# ---- the bounds -------------------------------------------------------------------------------


@measure
def never_falls(case: Case, runs: Selection) -> Measured:
    """Measure the share of steps from row to row in which LB does not fall."""
    shares, falls = [], [0.0]
    for run in runs.of(case):
        dual = column(run, "dual")
        fall = (dual[:-1] - dual[1:]) / np.maximum(np.abs(dual[1:]), 1e-12)
        shares.append(float(np.mean(fall <= ROUNDING)) if fall.size else math.nan)
        falls += fall.tolist()
    return Measured(np.array(shares), low=1.0, note=f"largest relative fall {max(falls):.2g}")


@measure
def share_above(case: Case, runs: Selection) -> Measured:
    """Measure the share of sweeps with both bounds in which UB' ≥ UB."""
    shares, late, means, sizes, last, below = [], [], [], [], [], [0.0]
    for run in runs.of(case):
        tracked, upper = column(run, "tracked_bound"), column(run, "upper_bound")
        known = np.isfinite(tracked) & np.isfinite(upper)
        ensure(known.any(), "no sweep has both bounds")
        above = (tracked - upper)[known] / np.abs(upper[known])
        wrong = np.flatnonzero(above < -DIGITS)
        shares.append(1 - wrong.size / above.size)
        late.append(float(np.mean(above[above.size // 2 :] >= -DIGITS)))
        means.append(float(above.mean()))
        sizes.append(above.size)
        below += (-above[wrong]).tolist()
        last += [int(run["iteration"][known][wrong[-1]])] if wrong.size else []
    note = f"{counts(sizes)} sweeps, of the second half of them {percent(float(np.median(late)))}"
    note += f"; on the mean UB' is above UB by {percent(float(np.median(means)))}"
    if last:
        note += f"; where UB' is below UB, it is by up to {percent(max(below))} of it; "
        note += f"the last is sweep {counts(last)}"
    return Measured(np.array(shares), note=note)


# ---- to the tolerance --------------------------------------------------------------------------


def _to_tolerance(
    case: Case, slow: Selection, fast: Selection, enough: float = 0.0
) -> tuple[Measured, tuple[float, float], list[tuple[Run, Run]]]:
    """Measure slow runs' seconds to the tolerance over fast ones'; return medians and pairs, too.

    A fast run may have ended earlier, if the ratio to the time it took is small ``enough`` already.
    """
    pairs = _pairs(case, slow, fast)
    ended, met = ends(pairs, "time"), np.array([[run.converged for run in pair] for pair in pairs])
    ratios = ended[:, 0] / ended[:, 1]
    known = met[:, 1] | (met[:, 0] & (ratios <= enough))
    ensure(known.all(), "a run did not get to its tolerance in the time it had")
    unknown = "a run to compare with ended before its tolerance"
    found = Measured(np.where(met[:, 0], ratios, math.inf), bounds=ratios, ended=unknown)
    if not met[:, 1].all():
        found = found._replace(text=f"< {times(float(ratios.max()))}")
    before, after = np.median(ended, axis=0)
    return found, (before, after), pairs


@measure
def speedup(case: Case, fast: Selection, slow: Selection) -> Measured:
    """Measure the slow runs' seconds to the tolerance over the fast ones', and count sweeps."""
    found, (before, after), pairs = _to_tolerance(case, slow, fast)
    first, then = np.median(ends(pairs, "iteration"), axis=0)
    calls = np.median(np.divide(*ends(pairs, "oracle_calls").T))
    tol = float(pairs[-1][1].solver_options["tol"])
    longer = before / first / (after / then)
    note = f"to {tol:g}: {seconds(before)} and {first:.0f} sweeps against {seconds(after)} and "
    note += f"{then:.0f}; a sweep takes {longer:.3g}× as long, and there are {calls:.3g}× as many "
    return found._replace(note=f"{note}looks at an example")


@measure
def slowdown(case: Case, slow: Selection, fast: Selection) -> Measured:
    """Measure the slow runs' seconds to the tolerance over the fast ones', per seed."""
    found, (after, before), _ = _to_tolerance(case, slow, fast)
    return found._replace(note=f"{seconds(after)} against {seconds(before)}")


@measure
def cost_of_warm_start(case: Case, warm: Selection, cold: Selection, cheap: float) -> Measured:
    """Measure the seconds to the tolerance from another λ's solution over those from α = 0."""
    found, (after, scratch), pairs = _to_tolerance(case, warm, cold, cheap)
    larger = pairs[-1][0].config["path"][-1]
    sweeps = np.median(ends(pairs, "iteration"), axis=0)
    more = "more than " * bool(found.text)
    note = f"{seconds(after)} and {sweeps[0]:.0f} sweeps from λ = {larger}, "
    note += f"{more}{seconds(scratch)} and {sweeps[1]:.0f} from α = 0"
    return found._replace(note=note)


# ---- sweeps -----------------------------------------------------------------------------------


@measure
def single_first(case: Case, runs: Selection) -> Measured:
    """Measure the share of single steps in the second sweep; the note has that of all sweeps.

    The first sweep is over the planes found, where no term has two planes to make a pair of.
    """
    second, whole = [], []
    for run in runs.of(case):
        single, pair = column(run, "single_steps"), column(run, "pair_steps")
        made = single + pair
        there = run.frame["iteration"].tolist()[:3] == [0, 1, 2] and made[2] != made[1]
        ensure(there, "a run does not tell the steps of its second sweep")
        second.append((single[2] - single[1]) / (made[2] - made[1]))
        whole.append(single[-1] / made[-1])
    note = f"of all sweeps {percent(float(np.median(whole)))}"
    return Measured(np.array(second), note=note)


@measure
def slower_later(case: Case, runs: Selection) -> Measured:
    """Measure the seconds per sweep in the second half of a run over those of its first sweep."""
    ratios, pairs, planes = [], [], []
    for run in runs.of(case):
        sweeps, spent = run["iteration"], run["time"]
        pair, made = column(run, "pair_steps"), column(run, "single_steps")
        there = sweeps.size > 2 and sweeps[1] == 1
        ensure(there, "a run does not tell the time of its first sweep")
        at = int(np.searchsorted(sweeps, sweeps[-1] / 2))
        later = (spent[-1] - spent[at]) / (sweeps[-1] - sweeps[at])
        ratios.append(later / (spent[1] - spent[0]))
        pairs.append((pair[-1] - pair[at]) / (pair[-1] - pair[at] + made[-1] - made[at]))
        planes.append(run["working_set_mean"][[1, -1]])
    first, last = np.median(planes, axis=0)
    note = f"in the second half {percent(float(np.median(pairs)))} of the steps are pairs; "
    note += f"{first:.3g} planes an example, its truth's included, after the first sweep, "
    note += f"{last:.3g} at the end"
    return Measured(np.array(ratios), note=note)


@measure
def mimicked_sweeps(case: Case, one: Selection, several: Selection) -> Measured:
    """Measure the sweeps of ``several`` to the gap that ``one`` has after one sweep, per seed.

    The note has the sweeps to the smallest gap that all runs reach, here and on other datasets.
    """
    pairs, found = _sweeps(case, one, several)
    more = []
    for other in case.others:
        if other.dataset != case.dataset:
            try:
                _, there = _sweeps(other, one, several)
            except UnmeasurableError:
                continue
            more.append(f"{other.dataset} {times(float(np.median(there[:, 1] / there[:, 0])))}")
    first = np.array([run["relative_gap"][1] for run, _ in pairs])
    at = [
        crossing(run["iteration"], run["relative_gap"], gap)
        for (_, run), gap in zip(pairs, first, strict=True)
    ]
    mine, theirs = np.median(found, axis=0)
    note = f"relative gap after one sweep {np.median(first):.3g}; to the smallest gap of all runs "
    note += f"{theirs:.3g} sweeps against {mine:.3g}"
    note += f"; the same elsewhere: {', '.join(more)}" * bool(more)
    return Measured(np.array(at), note=note)


def _sweeps(
    case: Case, one: Selection, several: Selection
) -> tuple[list[tuple[Run, Run]], np.ndarray]:
    """Return pairs of runs by seed, and their sweeps to the smallest gap that all reach."""
    pairs = _pairs(case, one, several)
    ensure(min(len(run) for pair in pairs for run in pair) >= 2, "a run made no sweep")
    curves = [[(run["iteration"], run["relative_gap"]) for run in pair] for pair in pairs]
    _, found = to_common(curves)
    ensure(not (found <= 0).any(), "a run reached no gap below that of its start")
    return pairs, found


# ---- the stream -------------------------------------------------------------------------------


@measure
def passes_to_tolerance(case: Case, runs: Selection, tol: float) -> Measured:
    """Measure the passes until the gap of all examples is within a tolerance."""
    passes, after_one = [], []
    for run in runs.of(case):
        gap, at = run["relative_gap"], run["iteration"]
        passes.append(first(at, gap, tol))
        after_one += gap[at == 1].tolist()
    ensure(after_one, "the first pass was not evaluated")
    said = span((min(after_one), max(after_one)), "{:.2g}".format)
    note = f"verified relative gap after one pass {said}"
    return Measured(np.array(passes), note=note)


@measure
def cost_of_hot_start(case: Case, hot: Selection, cold: Selection) -> Measured:
    """Measure visits of cached examples over those when each optimisation begins at α = 0."""
    pairs = _pairs(case, hot, cold)
    visits = ends(pairs, "approx_calls")
    mine, theirs = np.median(visits, axis=0) / int(case.data["n"])
    note = f"{mine:.3g} visits for each new example, {theirs:.3g} from α = 0"
    return Measured(visits[:, 0] / visits[:, 1], note=note)


@measure
def growth_of_storage(case: Case, runs: Selection) -> Measured:
    """Measure the storage of a pass over all examples over that of a pass over half of them.

    Storage counts the numbers of w and the planes in the cache; the other examples have left, with
    their weights in w. The note has the size of a kernel matrix of all examples with weight.
    """
    half = half_of(case)
    pairs = same_seed(runs.by_seed(case), runs.by_seed(half))
    d = int(case.data["d"])
    at_hand = np.array([[column(run, "cache_size").max() for run in pair] for pair in pairs])
    weights = ends(pairs, "fixed_examples") + at_hand
    (planes, _), (alphas, fewer) = np.median(at_hand, axis=0), np.median(weights, axis=0)
    n, part = (int(where.data["n"]) for where in (case, half))
    note = f"{d} numbers of w and {planes:.0f} planes; after {n} examples {alphas:.0f} have "
    note += f"weight, after {part} examples {fewer:.0f}, whose kernel matrices have "
    note += f"{alphas**2:.2g} and {fewer**2:.2g} numbers"
    return Measured((d + at_hand[:, 0]) / (d + at_hand[:, 1]), note=note)


@measure
def growth_of_cache(case: Case, runs: Selection) -> Measured:
    """Measure the planes kept after a pass over all examples over those after half of them."""
    half, here = half_of(case), runs.by_seed(case)
    pairs = same_seed(here, runs.by_seed(half))
    sizes_kept = np.array([[kept(run) for run in pair] for pair in pairs])
    ensure(not (sizes_kept[:, 1] == 0).any(), "nothing is kept")
    all_, some = np.median(sizes_kept, axis=0)
    sizes = [int(where.data["n"]) for where in (case, half)]
    note = f"{all_:.6g} planes after {sizes[0]} examples, {some:.6g} after {sizes[1]}"
    note += f"; {percent(all_ / sizes[0])} of the examples"
    left = max(float(column(run, "fixed_examples").max()) for run in here.values())
    why = f"the limit of the cache decides what stays: {left:.0f} examples had to leave; {note}"
    ensure(left <= 0, why)
    return Measured(sizes_kept[:, 0] / sizes_kept[:, 1], note=note)


def kept(run: Run) -> float:
    """Return the number of planes kept after the first pass."""
    after = column(run, "cache_size")[run["iteration"] == 1]
    ensure(after.size, "the first pass was not evaluated")
    return float(after[0])


# ---- schedules of the stream ------------------------------------------------------------------

TIME, CALLS = COSTS = ("time", "oracle_calls")
"""Run columns with the cost of a run so far."""

SLOW_CALL, SLOWER_CALL = 1e-3, 1e-2
"""Shortest and longest seconds assumed for an oracle call that searches an image."""


@measure
def costlier(case: Case, ours: Selection, baseline: Selection, call: float) -> Measured:
    """Measure a schedule's median cost of a verified gap over that of each of our repeats.

    ``call`` is the number of seconds added to each oracle call; if infinite, only calls count. The
    gap is our runs' tolerance, or the smallest gap that all our repeats reach if that is larger.
    """
    mine, theirs = ours.of(case), baseline.of(case)
    check_clocks((*mine, *theirs))
    target = _target(mine)
    spent, baselines = (_spent_on(runs, target) for runs in (mine, theirs))
    base, theirs_spent = spent.median(), baselines.median()
    note = f"to a relative gap of {target:.2g}: {seconds(base[TIME])} and {base[CALLS]:.3g} calls "
    note += f"against {reached(theirs_spent[TIME], seconds)}"
    if not math.isinf(theirs_spent[TIME]):
        costs = (0.0, SLOW_CALL, SLOWER_CALL)
        ratios = [_cost(theirs_spent, each) / _cost(base, each) for each in costs]
        as_is, slow, slower = map(times, ratios)
        note += f" and {theirs_spent[CALLS]:.3g} calls; "
        note += f"{as_is} as measured, {slow} with {seconds(SLOW_CALL)} more a call, "
        note += f"{slower} with {seconds(SLOWER_CALL)}"
    ended = min(float(_cost(run.frame.iloc[-1], call)) for run in theirs)
    each = _cost(spent, call).to_numpy()
    return Measured(
        _cost(theirs_spent, call) / each,
        note=note,
        bounds=ended / each,
        ended="a run to compare with ended before it reached that gap",
    )


@measure
def spread(case: Case, kinds: Sequence[Selection]) -> Measured:
    """Measure the slowest schedule's seconds to a verified gap over the fastest one's, per seed.

    The gap is chosen as in `costlier`, with the first schedule as ours.
    """
    found = [runs.by_seed(case) for runs in kinds]
    seeds = [seed for seed in found[0] if all(seed in runs for runs in found)]
    ensure(seeds, "no seed with all schedules")
    check_clocks(runs[seed] for runs in found for seed in seeds)
    target = _target(list(found[0].values()))
    of_seeds = ([runs[seed] for seed in seeds] for runs in found)
    spent = np.array([_spent_on(runs, target)[TIME].to_numpy() for runs in of_seeds])
    ended = np.array([[float(runs[seed].frame[TIME].iloc[-1]) for seed in seeds] for runs in found])
    medians = np.median(spent, axis=1)
    names = (runs.options["schedule"] for runs in kinds)
    said = (f"{name} {reached(at, seconds)}" for name, at in zip(names, medians, strict=True))
    return Measured(
        spent.max(axis=0) / spent.min(axis=0),
        note=f"to a relative gap of {target:.2g}: {', '.join(said)}",
        bounds=np.where(np.isinf(spent), ended, spent).max(axis=0) / spent.min(axis=0),
        ended="a run ended before it reached that gap",
    )


def _target(mine: Sequence[Run]) -> float:
    """Return the runs' tolerance, or the smallest gap that all of them reach if that is larger."""
    tol = float(mine[0].solver_options["tol"])
    return max(tol, *(least_positive(run["relative_gap"]) for run in mine))


def _cost(spent: Any, call: float) -> Any:
    """Return seconds plus ``call`` for each oracle call; if ``call`` is infinite, the calls."""
    if math.isinf(call):
        return spent[CALLS]
    return spent[TIME] + (call * spent[CALLS] if call else 0.0)


def _spent_on(runs: Sequence[Run], target: float) -> pd.DataFrame:
    """Return each run's seconds and calls at its first row within a gap; infinite without one."""
    spent = [[first(column(run, of), run["relative_gap"], target) for of in COSTS] for run in runs]
    return pd.DataFrame(spent, columns=list(COSTS))


# ---- the bench --------------------------------------------------------------------------------


@measure
def on_bench(case: Case, quantity: str, runs: Selection) -> Measured:
    """Return a number of the bench where these runs exist; the note has single comparisons."""
    runs.of(case)
    found = [row for row in case.bench if row.quantity == quantity]
    ensure(found, f"no such row in {measurements.FOLDER}/: `make bench` measures it")
    (row,) = found
    note = f"single comparisons {span((row.low, row.high), times)}"
    return Measured(np.array([row.value]), note=note)
