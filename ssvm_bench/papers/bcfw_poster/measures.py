"""Measures of the poster's claims about passes, numbers of examples, and duality gaps.

.. code-block:: text

    passes             calls of the exact oracle / n
    suboptimality      P(w) − D,     D the best dual value on the problem instance
    relative           (P(w) − D)/D

- The calls needed on n and on fewer examples are compared between runs with the same seed and
  options, at the smallest suboptimality that all of these runs reach.
- Runs of different solvers are compared in the same way, at the same seed.
- D is not the optimum. Where the size of a suboptimality matters, only evaluations count whose
  suboptimality is at least ``KNOWN`` (best primal − D): its relative error is at most 1/10.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ssvm_bench.claims.cases import Case, Family, Selection, ends
from ssvm_bench.claims.claim import Fact, Measured
from ssvm_bench.results.curves import crossing, ensure
from ssvm_bench.results.table import KNOWN, Run, Runs
from ssvm_bench.results.targets import same_seed, to_common_target
from ssvm_bench.results.words import seconds

LEVELS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
"""Relative primal suboptimalities."""

ROUNDING = 1e-12
"""By what share rounding may lift a dual value above a primal one: each is a sum of n terms."""

TOO_LOOSE = (
    "the best values known are too far apart to tell how large a suboptimality is; a longer run of "
    "any solver on this problem instance brings them together"
)


def least_known(case: Case) -> float:
    """Return the smallest suboptimality whose size is known."""
    return KNOWN * case.reference.gap


# ---- at equal numbers of passes ---------------------------------------------------------------


def sooner(
    case: Case, ours: Selection, family: Selection | Family, axis: str = "passes"
) -> Measured:
    """Measure the ratio of a family's passes (or seconds) to ours at a relative suboptimality.

    The level is one of ``LEVELS`` that each of our repeats reaches after its first pass; before, a
    curve is only the line from w = 0. It is the smallest level that a baseline reaches, or that no
    baseline has reached when all our repeats have; if there is none, it is the largest one.
    """
    mine, baselines = ours.of(case), family.by_name(case)
    theirs = [run for repeats in baselines.values() for run in repeats]
    unit = "{:.3g} passes" if axis == "passes" else "{:.3g} s"
    if axis == "time":
        case.timed([*mine, *theirs])
    optimum, end = abs(case.reference.dual), min(float(run[axis][-1]) for run in theirs)

    def at(level: float, runs: Sequence[Run], x: str) -> np.ndarray:
        return np.array([crossing(run[x], run["suboptimality"], level * optimum) for run in runs])

    found: list[tuple[float, np.ndarray, float, str]] = []
    for level in LEVELS:
        passes, spent = at(level, mine, "passes"), at(level, mine, axis)
        if (passes >= 1).all() and np.isfinite(passes).all():
            median, name = min(
                (float(np.median(at(level, repeats, axis))), name)
                for name, repeats in baselines.items()
            )
            if not found or math.isfinite(median) or end >= spent.max():
                found.append((level, spent, median, name))
    ensure(found, "there is no level that all repeats reach, and after the first pass")
    facts: dict[str, Fact] = {}
    for level, spent, median, name in found[-2:]:
        facts[f"to {level:g}:"] = spent, unit.format
        if math.isfinite(median):
            facts[f"{name} to {level:g}:"] = median, unit.format
        else:
            facts[f"no baseline gets to {level:g}"] = ""
    _, spent, median, _ = found[-1]
    ended = "a baseline ended before it reached that suboptimality"
    return Measured(median / spent, facts=facts, bounds=end / spent, ended=ended)


# ---- the number of examples --------------------------------------------------------------------


def growth_with_n(case: Case, runs: Selection) -> Measured:
    """Measure the calls to a suboptimality on all examples over those on half of them, per seed."""
    half = case.half
    pairs = same_seed(runs.by_seed(case), runs.by_seed(half))
    alike = all(a.solver_options == b.solver_options for a, b in pairs)
    ensure(alike, f"runs of {runs.name} differ in more than the examples")
    names = (f"calls at n = {of.data['n']}:" for of in (case, half))
    return _over(pairs, (case, half), names)


def calls_over(case: Case, runs: Selection, exact: Selection) -> Measured:
    """Measure the ratio of the calls to a suboptimality to those with an exact oracle, per seed."""
    pairs = same_seed(runs.by_seed(case), exact.by_seed(case))
    return _over(pairs, (case, case), ("calls:", "of the exact oracle:"))


def _over(
    pairs: Sequence[tuple[Run, Run]], on: tuple[Case, Case], names: Iterable[str]
) -> Measured:
    """Measure the ratio of the calls to the smallest suboptimality that all runs reach."""
    least = max(map(least_known, on))
    target, calls = to_common_target(pairs, "oracle_calls", "suboptimality", least, "suboptimality")
    ensure(not (calls < [int(case.data["n"]) for case in on]).any(), TOO_LOOSE)
    facts = {"to a suboptimality of": target, **dict(zip(names, calls.T, strict=True))}
    return Measured(calls[:, 0] / calls[:, 1], facts=facts)


# ---- time and planes of a call ----------------------------------------------------------------


def time_of_a_call(case: Case, ours: Selection, baseline: Selection) -> Measured:
    """Measure the ratio of our time per oracle call to that of a baseline, for each seed."""
    pairs = same_seed(ours.by_seed(case), baseline.by_seed(case))
    case.timed([*ours.of(case), *baseline.of(case)])
    mine, theirs = (ends(pairs, "time") / ends(pairs, "oracle_calls")).T
    facts = {f"a call of {ours}:": (mine, seconds), f"of {baseline}:": (theirs, seconds)}
    return Measured(mine / theirs, facts=facts)


def planes_of_calls(case: Case, runs: Selection) -> Measured:
    """Measure the planes found, without those of the ground truths, per oracle call."""
    found, passes = (Runs(runs.of(case)).last(of) for of in ("working_set_mean", "passes"))
    found = found - 1
    ensure((passes > 0).all() and (found >= 0).all(), "a run has not kept the planes that it found")
    facts = {"planes a term:": found, "passes:": passes}
    return Measured(found / passes, facts=facts)


# ---- inexact subproblems ----------------------------------------------------------------------


def gap_over_error(case: Case, runs: Selection) -> Measured:
    """Measure the smallest (P − F)/P over ε, the share by which the oracle may fall short."""
    mine = runs.of(case)
    error = float(mine[0].solver_options["error"])
    gaps = np.array([np.nanmin(run["relative_gap"]) for run in mine])
    return Measured(gaps / error, facts={"relative gap": gaps, "where ε is": error})


# ---- the duality gap --------------------------------------------------------------------------


def certified(case: Case, runs: Selection) -> Measured:
    """Measure the share of rows whose gap is at least P(w) − the lowest primal value of any run."""
    primal = case.reference.primal
    duals = [run["dual"] for run in runs.of(case)]
    allowed = primal + ROUNDING * abs(primal)
    bounds = {"lowest primal": primal, "highest dual of these": max(map(np.max, duals))}
    facts = {name: (value, "{:.6g}".format) for name, value in bounds.items()}
    return Measured([np.mean(dual <= allowed) for dual in duals], facts=facts)


def gap_over_suboptimality(case: Case, runs: Selection) -> Measured:
    """Measure the largest ratio of duality gap to primal suboptimality from the first pass on."""
    ratios = []
    for run in runs.of(case):
        error = run["suboptimality"]
        late = (run["passes"] >= 1) & (error > 0) & (error >= least_known(case))
        ensure(late.any(), TOO_LOOSE)
        ratios.append(run["gap"][late] / error[late])
    facts = {"median over the iterations": [np.median(of_run) for of_run in ratios]}
    return Measured([of_run.max() for of_run in ratios], facts=facts)
