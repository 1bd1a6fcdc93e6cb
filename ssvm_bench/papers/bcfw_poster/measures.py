"""Measures of the poster's claims about passes, numbers of examples, and duality gaps.

Each measure is one number per repeat, computed from traces. The other claims are measured by
:mod:`theorems` and :mod:`ssvm_bench.claims.comparisons`; ``paper.py`` lists all claims.

.. code-block:: text

    passes             calls of the exact oracle / n
    suboptimality      P(w) − D,     D the best dual value on the problem instance
    relative           (P(w) − D)/D

The module :mod:`ssvm_bench.claims.comparisons` describes how curves are compared.

- The calls needed on n and on fewer examples are compared between runs with the same seed and
  options, at the smallest suboptimality that all of these runs reach.
- Runs of different solvers are compared in the same way, at the same seed.
- D is not the optimum. Where the size of a suboptimality matters, only evaluations count whose
  suboptimality is at least ``KNOWN`` (best primal − D): its relative error is at most 1/10.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ssvm_bench.claims.cases import Case, Selection, ends
from ssvm_bench.claims.comparisons import family_runs, half_of, suboptimality, to_common
from ssvm_bench.claims.old import Measured, measure
from ssvm_bench.results.table import Run, crossing, ensure, same_seed
from ssvm_bench.results.words import number

LEVELS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Relative primal suboptimalities."""

KNOWN = 10.0
"""Suboptimalities of at least so many times (best primal − D) have a known size."""

ROUNDING = 1e-12
"""By what share rounding may lift a dual value above a primal one: each is a sum of n terms."""

TOO_LOOSE = (
    "the best values known are too far apart to tell how large a suboptimality is; a longer run of "
    "any solver on this problem instance brings them together"
)


def least_known(case: Case) -> float:
    """Return the smallest suboptimality whose size is known."""
    best = case.reference
    return KNOWN * (best.primal - best.dual)


# ---- at equal numbers of passes ---------------------------------------------------------------


@measure
def sooner(
    case: Case,
    ours: Selection,
    family: Sequence[Selection],
    axis: Literal["passes", "time"] = "passes",
) -> Measured:
    """Measure the ratio of a family's passes (or seconds) to ours at a relative suboptimality.

    The level is one of ``LEVELS`` that each of our repeats reaches after its first pass; before, a
    curve is only the line from w = 0. It is the smallest level that a baseline reaches, or that no
    baseline has reached when all our repeats have; if there is none, it is the largest one.
    """
    mine, baselines = ours.of(case), family_runs(case, family)
    if axis == "time":
        case.timed(ours, *(runs for runs in family if runs.solver in case.solvers))
    unit = "s" if axis == "time" else "passes"
    ends = min(float(run[axis][-1]) for runs in baselines.values() for run in runs)
    found: list[tuple[np.ndarray, float]] = []
    notes = []
    for level in LEVELS:
        passes = np.array([_first_at(case, run, level, "passes") for run in mine])
        if (passes >= 1).all() and np.isfinite(passes).all():
            spent = np.array([_first_at(case, run, level, axis) for run in mine])
            median, name = _first(case, baselines, level, axis)
            told = math.isfinite(median) or ends >= spent.max()
            if told or not found:
                text = f"{name} {median:.3g}" if math.isfinite(median) else "no baseline"
                notes.append(f"to {level:g}: {np.median(spent):.3g} {unit}, {text}")
                found.append((spent, median))
    ensure(found, "there is no level that all repeats reach, and after the first pass")
    spent, median = found[-1]
    ended = "a baseline ended before it reached that suboptimality"
    note = "; ".join(notes[-2:])
    return Measured(median / spent, note=note, bounds=ends / spent, ended=ended)


def _first_at(case: Case, run: Run, level: float, axis: str) -> float:
    target = level * abs(case.reference.dual)
    return crossing(run[axis], suboptimality(case, run), target)


def _first(
    case: Case, baselines: Mapping[str, Sequence[Run]], level: float, axis: str
) -> tuple[float, str]:
    """Return the smallest median of passes (or seconds) to a level, and that baseline's name."""
    return min(
        (float(np.median([_first_at(case, run, level, axis) for run in repeats])), name)
        for name, repeats in baselines.items()
    )


# ---- the number of examples --------------------------------------------------------------------


@measure
def growth_with_n(case: Case, runs: Selection) -> Measured:
    """Measure the calls to a suboptimality on all examples over those on half of them, per seed."""
    calls, note = calls_on_both(case, half_of(case), runs)
    return Measured(calls[:, 0] / calls[:, 1], note=note)


def calls_on_both(case: Case, part: Case, runs: Selection) -> tuple[np.ndarray, str]:
    """Return the calls to the smallest suboptimality that all runs reach, and a note on them.

    Returns
    -------
    calls : ndarray of float64, shape (pairs of runs, 2)
        On all examples, and on a part.
    note : str
    """
    pairs = same_seed(runs.by_seed(case), runs.by_seed(part))
    alike = all(a.solver_options == b.solver_options for a, b in pairs)
    ensure(alike, f"runs of {runs.name} differ in more than the examples")
    target, (here, there), calls = _calls(pairs, (case, part))
    n, fewer = case.data["n"], part.data["n"]
    note = f"to {target:.3g}: {here:.3g} calls at n = {n}, {there:.3g} at {fewer}"
    return calls, note


def _calls(
    pairs: Sequence[tuple[Run, Run]], on: tuple[Case, Case]
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the smallest suboptimality that all runs reach, median calls to it, and all calls."""

    def curve(case: Case, run: Run) -> tuple[np.ndarray, np.ndarray]:
        return run["oracle_calls"], suboptimality(case, run)

    curves = [[*map(curve, on, pair)] for pair in pairs]
    target, calls = to_common(curves, max(map(least_known, on)), "suboptimality")
    ensure(not (calls < [int(case.data["n"]) for case in on]).any(), TOO_LOOSE)
    return target, np.median(calls, axis=0), calls


# ---- time and planes of a call ----------------------------------------------------------------


@measure
def time_of_a_call(case: Case, ours: Selection, baseline: Selection) -> Measured:
    """Measure the ratio of our time per oracle call to that of a baseline, for each seed."""
    mine, theirs = case.timed(ours, baseline)
    pairs = same_seed(mine, theirs)
    seconds = ends(pairs, "time") / ends(pairs, "oracle_calls")
    here, there = 1e6 * np.median(seconds, axis=0)
    note = f"{here:.3g} µs a call, {baseline.name} {there:.3g} µs"
    return Measured(seconds[:, 0] / seconds[:, 1], note=note)


@measure
def planes_of_calls(case: Case, runs: Selection) -> Measured:
    """Measure the planes found, without those of the ground truths, per oracle call."""
    n, shares, counts = int(case.data["n"]), [], []
    for run in runs.of(case):
        found = n * (run["working_set_mean"] - 1)
        made = run["oracle_calls"]
        ensure(made[-1] and not found[-1] < 0, "a run has not kept the planes that it found")
        shares.append(found[-1] / made[-1])
        counts.append(found[-1] / n)
    note = f"{np.median(counts):.3g} planes a term after {made[-1] / n:.3g} passes"
    return Measured(np.array(shares), high=1.0, note=note)


# ---- inexact subproblems ----------------------------------------------------------------------


@measure
def gap_over_error(case: Case, runs: Selection) -> Measured:
    """Measure the smallest (P − F)/P over ε, the share by which the oracle may fall short."""
    mine = runs.of(case)
    error = float(mine[0].solver_options["error"])
    gaps = np.array([np.nanmin(run["relative_gap"]) for run in mine])
    note = f"relative gap {np.median(gaps):.3g}, where ε = {error:g}"
    return Measured(gaps / error, high=1.0, note=note)


@measure
def calls_over(case: Case, runs: Selection, exact: Selection) -> Measured:
    """Measure the ratio of the calls to a suboptimality to those with an exact oracle, per seed."""
    pairs = same_seed(runs.by_seed(case), exact.by_seed(case))
    target, (here, there), calls = _calls(pairs, (case, case))
    note = f"to {target:.3g}: {here:.3g} calls, {there:.3g} of the exact oracle"
    return Measured(calls[:, 0] / calls[:, 1], note=note)


# ---- the duality gap --------------------------------------------------------------------------


@measure
def certified(case: Case, runs: Selection) -> Measured:
    """Measure the share of rows whose gap is at least P(w) − the lowest primal value of any run."""
    primal = case.reference.primal
    duals = [run["dual"] for run in runs.of(case)]
    allowed = primal + ROUNDING * abs(primal)
    note = f"lowest primal {primal:.6g}, highest dual of these {max(map(np.max, duals)):.6g}"
    return Measured(np.array([np.mean(dual <= allowed) for dual in duals]), 1.0, note=note)


@measure
def gap_over_suboptimality(case: Case, runs: Selection) -> Measured:
    """Measure the largest ratio of duality gap to primal suboptimality from the first pass on."""
    largest, middle = [], []
    for run in runs.of(case):
        error = suboptimality(case, run)
        late = (run["passes"] >= 1) & (error > 0) & (error >= least_known(case))
        ensure(late.any(), TOO_LOOSE)
        ratios = run["gap"][late] / error[late]
        largest.append(ratios.max())
        middle.append(np.median(ratios))
    note = f"median over the iterations {number(float(np.median(middle)))}"
    return Measured(np.array(largest), note=note)
