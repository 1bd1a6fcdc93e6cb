"""Measures of the dual-coordinate paper's claims: one number per repeat, from runs.

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

import numpy as np

from ssvm_bench.claims.cases import Case, Family, Selection, check_clocks, column, ends
from ssvm_bench.claims.claim import Fact, Measured
from ssvm_bench.results import measurements
from ssvm_bench.results.curves import UnmeasurableError, crossing, ensure, first, least_positive
from ssvm_bench.results.table import Run, Runs
from ssvm_bench.results.targets import same_seed, to_common_target
from ssvm_bench.results.words import percent, seconds, span, times

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


def never_falls(case: Case, runs: Selection) -> Measured:
    """Measure the share of steps from row to row in which LB does not fall."""
    duals = [column(run, "dual") for run in runs.of(case)]
    falls = [-np.diff(dual) / np.maximum(np.abs(dual[1:]), 1e-12) for dual in duals]
    ensure(all(fall.size for fall in falls), "a run has no value")
    facts = {"largest relative fall": max(0.0, *np.concatenate(falls))}
    return Measured([np.mean(fall <= ROUNDING) for fall in falls], facts=facts)


def share_above(case: Case, runs: Selection) -> Measured:
    """Measure the share of sweeps with both bounds in which UB' ≥ UB."""
    found, last = [], []
    for run in runs.of(case):
        tracked, upper = column(run, "tracked_bound"), column(run, "upper_bound")
        known = np.isfinite(tracked) & np.isfinite(upper)
        ensure(known.any(), "no sweep has both bounds")
        found.append((tracked - upper)[known] / np.abs(upper[known]))
        last += run["iteration"][known][found[-1] < -DIGITS].tolist()[-1:]
    facts: dict[str, Fact] = {
        "sweeps:": [above.size for above in found],
        "of their second half": (
            [np.mean(above[above.size // 2 :] >= -DIGITS) for above in found],
            percent,
        ),
        "on the mean UB' is above UB by": ([above.mean() for above in found], percent),
    }
    if last:
        facts["where UB' is below UB, it is by up to"] = -min(map(np.min, found)), percent
        facts["the last such sweep is"] = last
    return Measured([np.mean(above >= -DIGITS) for above in found], facts=facts)


# ---- to the tolerance --------------------------------------------------------------------------


def slowdown(case: Case, slow: Selection, fast: Selection, enough: float = 0.0) -> Measured:
    """Measure the slow runs' seconds to the tolerance over the fast ones', per seed.

    A fast run may have ended earlier, if the ratio to the time it took is small ``enough`` already.
    """
    pairs = _pairs(case, slow, fast)
    spent, sweeps, calls = (ends(pairs, of) for of in ("time", "iteration", "oracle_calls"))
    met = np.array([[run.converged for run in pair] for pair in pairs])
    ratios = spent[:, 0] / spent[:, 1]
    known = met[:, 1] | (met[:, 0] & (ratios <= enough))
    ensure(known.all(), "a run did not get to its tolerance in the time it had")
    facts: dict[str, Fact] = {"to a tolerance of": float(pairs[-1][1].solver_options["tol"])}
    for k, kind in enumerate((slow, fast)):
        more = "" if met[:, k].all() else "more than "
        time, count = np.median(spent[:, k]), np.median(sweeps[:, k])
        facts[f"{kind}:"] = f"{more}{seconds(time)} and {count:.0f} sweeps"
    each = spent / sweeps
    facts["seconds a sweep, as a ratio:"] = each[:, 0] / each[:, 1], times
    facts["visits of an example, as a ratio:"] = calls[:, 0] / calls[:, 1], times
    return Measured(
        np.where(met[:, 0], ratios, math.inf),
        facts=facts,
        text="" if met[:, 1].all() else f"< {times(float(ratios.max()))}",
        bounds=ratios,
        ended="a run to compare with ended before its tolerance",
    )


# ---- sweeps -----------------------------------------------------------------------------------


def single_first(case: Case, runs: Selection) -> Measured:
    """Measure the share of single steps in the second sweep; the note has that of all sweeps.

    The first sweep is over the planes found, where no term has two planes to make a pair of.
    """
    second, whole = [], []
    for run in runs.of(case):
        single, made = column(run, "single_steps"), column(run, "pair_steps")
        made = made + single
        there = run["iteration"].tolist()[:3] == [0, 1, 2] and made[2] != made[1]
        ensure(there, "a run does not tell the steps of its second sweep")
        second.append((single[2] - single[1]) / (made[2] - made[1]))
        whole.append(single[-1] / made[-1])
    return Measured(second, facts={"of all sweeps": (whole, percent)})


def slower_later(case: Case, runs: Selection) -> Measured:
    """Measure the seconds per sweep in the second half of a run over those of its first sweep."""
    ratios, pairs, planes = [], [], []
    for run in runs.of(case):
        sweeps, spent = run["iteration"], run["time"]
        ensure(
            sweeps.size > 2 and sweeps[1] == 1, "a run does not tell the time of its first sweep"
        )
        at = int(np.searchsorted(sweeps, sweeps[-1] / 2))
        later = (spent[-1] - spent[at]) / (sweeps[-1] - sweeps[at])
        ratios.append(later / (spent[1] - spent[0]))
        pair, single = (column(run, of)[-1] - run[of][at] for of in ("pair_steps", "single_steps"))
        pairs.append(pair / (pair + single))
        planes.append(run["working_set_mean"][[1, -1]])
    after_first, at_end = np.transpose(planes)
    facts: dict[str, Fact] = {
        "pairs among the steps of the second half:": (pairs, percent),
        "planes an example, its truth's included, after the first sweep:": after_first,
        "at the end:": at_end,
    }
    return Measured(ratios, facts=facts)


def mimicked_sweeps(case: Case, one: Selection, several: Selection) -> Measured:
    """Measure the sweeps of ``several`` to the gap that ``one`` has after one sweep, per seed.

    The note has the sweeps to the smallest gap that all runs reach, here and on other datasets.
    """
    pairs, (mine, theirs) = _sweeps(case, one, several)
    after = [run["relative_gap"][1] for run, _ in pairs]
    gaps = zip((other for _, other in pairs), after, strict=True)
    sweeps = [crossing(run["iteration"], run["relative_gap"], gap) for run, gap in gaps]
    facts: dict[str, Fact] = {
        "relative gap after one sweep": after,
        f"sweeps to the smallest gap of all runs, {several}:": theirs,
        f"{one}:": mine,
    }
    for other in case.others:
        if other.dataset != case.dataset:
            try:
                _, (here, there) = _sweeps(other, one, several)
            except UnmeasurableError:
                continue
            facts[f"the ratio of these on {other.dataset}:"] = there / here, times
    return Measured(sweeps, facts=facts)


def _sweeps(
    case: Case, one: Selection, several: Selection
) -> tuple[list[tuple[Run, Run]], np.ndarray]:
    """Return pairs of runs by seed, and their sweeps to the smallest gap that all reach."""
    pairs = _pairs(case, one, several)
    ensure(min(len(run) for pair in pairs for run in pair) >= 2, "a run made no sweep")
    _, found = to_common_target(pairs, "iteration", "relative_gap")
    ensure(not (found <= 0).any(), "a run reached no gap below that of its start")
    return pairs, found.T


# ---- the stream -------------------------------------------------------------------------------


def passes_to_tolerance(case: Case, runs: Selection, tol: float) -> Measured:
    """Measure the passes until the gap of all examples is within a tolerance."""
    mine = runs.of(case)
    after_one = np.concatenate([run["relative_gap"][run["iteration"] == 1] for run in mine])
    ensure(after_one.size, "the first pass was not evaluated")
    passes = [first(run["iteration"], run["relative_gap"], tol) for run in mine]
    return Measured(passes, facts={"verified relative gap after one pass": after_one})


def cost_of_hot_start(case: Case, hot: Selection, cold: Selection) -> Measured:
    """Measure visits of cached examples over those when each optimisation begins at α = 0."""
    mine, theirs = ends(_pairs(case, hot, cold), "approx_calls").T
    n = int(case.data["n"])
    facts = {"visits for each new example:": mine / n, "from α = 0:": theirs / n}
    return Measured(mine / theirs, facts=facts)


def growth_of_storage(case: Case, runs: Selection) -> Measured:
    """Measure the storage of a pass over all examples over that of a pass over half of them.

    Storage counts the numbers of w and the planes in the cache; the other examples have left, with
    their weights in w. The note has the size of a kernel matrix of all examples with weight.
    """
    half, d = case.half, int(case.data["d"])
    pairs = same_seed(runs.by_seed(case), runs.by_seed(half))
    planes = np.array([[column(run, "cache_size").max() for run in pair] for pair in pairs])
    weights = ends(pairs, "fixed_examples") + planes
    facts: dict[str, Fact] = {"numbers of w:": (d, "{:.0f}".format), "planes:": planes[:, 0]}
    for of, counts in zip((case, half), weights.T, strict=True):
        facts[f"examples with weight after {of.data['n']}:"] = counts, "{:.0f}".format
        facts[f"numbers of their kernel matrix after {of.data['n']}:"] = counts**2
    return Measured((d + planes[:, 0]) / (d + planes[:, 1]), facts=facts)


def growth_of_cache(case: Case, runs: Selection) -> Measured:
    """Measure the planes kept after a pass over all examples over those after half of them."""
    half = case.half
    pairs = same_seed(runs.by_seed(case), runs.by_seed(half))
    kept, fewer = np.array([[kept_by(run) for run in pair] for pair in pairs]).T
    ensure(fewer.all(), "nothing is kept")
    n, part = (int(of.data["n"]) for of in (case, half))
    facts: dict[str, Fact] = {
        f"planes after {n} examples:": (kept, "{:.6g}".format),
        f"after {part}:": (fewer, "{:.6g}".format),
        "of the examples": (kept / n, percent),
    }
    found = Measured(kept / fewer, facts=facts)
    left = max(column(run, "fixed_examples").max() for run in runs.of(case))
    why = f"the limit of the cache decides what stays: {left:.0f} examples had to leave"
    ensure(left <= 0, f"{why}; {found.note}")
    return found


def kept_by(run: Run) -> float:
    """Return the number of planes kept after the first pass."""
    after = column(run, "cache_size")[run["iteration"] == 1]
    ensure(after.size, "the first pass was not evaluated")
    return float(after[0])


# ---- schedules of the stream ------------------------------------------------------------------

COSTS = ("time", "oracle_calls")
"""Columns with the cost of a run so far."""

SOLVED = 0.1
"""The largest relative gap at which schedules are compared: no solution is near beyond it."""

SLOW_CALLS = (1e-3, 1e-2)
"""Shortest and longest seconds assumed for an oracle call that searches an image."""


def costlier(case: Case, ours: Selection, baseline: Selection, call: float = 0.0) -> Measured:
    """Measure a schedule's median cost of a verified gap over that of each of our repeats.

    ``call`` is the number of seconds added to each oracle call; if infinite, only calls count. The
    gap is our runs' tolerance, or the smallest gap that all our repeats reach if that is larger.
    """
    mine, theirs = ours.of(case), baseline.of(case)
    check_clocks((*mine, *theirs))
    gap = _gap_of(mine)
    spent, base = _spent(mine, gap), np.median(_spent(theirs, gap), axis=0)
    median = np.median(spent, axis=0)
    facts: dict[str, Fact] = {"to a relative gap of": gap, f"{ours}:": _said(median)}
    facts[f"{baseline}:"] = _said(base)
    if np.isfinite(base).all():
        for slow in (0.0, *SLOW_CALLS):
            name = f"with {seconds(slow)} more a call" if slow else "as measured"
            facts[name] = _cost(base, slow) / _cost(median, slow), times
    each = _cost(spent, call)
    ended = _cost(np.transpose([Runs(theirs).last(of) for of in COSTS]), call).min()
    return Measured(
        _cost(base, call) / each,
        facts=facts,
        bounds=ended / each,
        ended="a run to compare with ended before it reached that gap",
    )


def spread(case: Case, schedules: Family) -> Measured:
    """Measure the slowest schedule's seconds to a verified gap over the fastest one's, per seed.

    The gap is chosen as in `costlier`, with the first schedule as ours.
    """
    found = [runs.by_seed(case) for runs in schedules.members]
    seeds = [seed for seed in found[0] if all(seed in runs for runs in found)]
    ensure(seeds, "no seed with all schedules")
    runs = [[of[seed] for seed in seeds] for of in found]
    check_clocks(run for of in runs for run in of)
    gap = _gap_of([*found[0].values()])
    spent = np.array([_spent(of, gap)[:, 0] for of in runs])
    ended = np.where(np.isinf(spent), [Runs(of).last("time") for of in runs], spent)
    names = (f"{kind}:" for kind in schedules.members)
    facts = {name: (of, seconds) for name, of in zip(names, spent, strict=True)}
    return Measured(
        spent.max(axis=0) / spent.min(axis=0),
        facts={"to a relative gap of": gap, **facts},
        bounds=ended.max(axis=0) / spent.min(axis=0),
        ended="a run ended before it reached that gap",
    )


def _gap_of(mine: Sequence[Run]) -> float:
    """Return the runs' tolerance, or the smallest gap that all of them reach if that is larger.

    Raises `UnmeasurableError` if it is above ``SOLVED``.
    """
    tol = float(mine[0].solver_options["tol"])
    gap = max(tol, *(least_positive(run["relative_gap"]) for run in mine))
    ensure(gap <= SOLVED, f"the smallest gap that all repeats reach is {percent(gap)}")
    return gap


def _spent(runs: Sequence[Run], gap: float) -> np.ndarray:
    """Return the `COSTS` of the first row within a gap, shape (runs, 2); infinite without one."""
    return np.array([[first(run[of], run["relative_gap"], gap) for of in COSTS] for run in runs])


def _cost(spent: np.ndarray, call: float) -> np.ndarray:
    """Return seconds plus ``call`` for each oracle call; if ``call`` is infinite, the calls."""
    time, calls = spent.T
    if math.isinf(call):
        return calls
    return time + call * calls if call else time


def _said(spent: np.ndarray) -> str:
    """Return costs as text."""
    time, calls = spent
    return "not reached" if math.isinf(time) else f"{seconds(time)} and {calls:.3g} calls"


# ---- the bench --------------------------------------------------------------------------------


FIRST_SWEEP = "dcd / LIBLINEAR: a first sweep"
"""The quantity in the bench."""


def first_sweep_on_bench(case: Case, runs: Selection) -> Measured:
    """Return the number of the bench where these runs exist; the note has single comparisons."""
    runs.of(case)
    found = [row for row in case.bench if row.quantity == FIRST_SWEEP]
    ensure(found, f"no such row in {measurements.FOLDER}/: `make bench` measures it")
    (row,) = found
    return Measured(row.value, facts={"single comparisons": span((row.low, row.high), times)})
