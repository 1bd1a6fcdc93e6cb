"""What the BCFW poster's claims are judged by: one number per repeat, computed from traces.

.. code-block:: text

    passes             calls of the exact oracle / n
    suboptimality      P(w) − D,     D the best dual value on the problem instance
    relative           (P(w) − D)/D

- Solvers are compared at equal numbers of passes, and were evaluated at different ones: a curve is
  read off as it is drawn, between two rows linearly in log y, and nowhere else.
- One of our repeats is compared with the *median* curve of a rival, as most rivals make no random
  choices. Of a family of rivals, the lowest curve counts: which one that is may change on the way.
- The calls needed on n and on fewer examples are compared between runs with the same seed and
  options, at the smallest suboptimality that all of them reach.
- D is not the optimum. What depends on the size of a suboptimality, and not only on whose is lower,
  is measured where that is at least ``KNOWN`` times the best primal − D, so known to a tenth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ssvm_bench.figures.curves import along, crossing, read_off
from ssvm_bench.papers.cases import Case, Runs
from ssvm_bench.papers.claim import Measured, UnmeasurableError, measure
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import counts, number, span, times

LEVELS = (1.0, 0.1, 0.01, 0.001)
"""Relative primal suboptimalities."""

KNOWN = 10.0
"""Of the uncertainty of the optimum: suboptimalities whose size is known."""

ROUNDING = 1e-12
"""How far a dual value may be above a primal one, relative to it: both are sums of n terms."""

TOO_LOOSE = (
    "the best values known are too far apart to tell how large a suboptimality is; a longer run of "
    "any solver on this problem instance brings them together"
)


def suboptimality(case: Case, run: Trace) -> np.ndarray:
    """Return P(w) − D of each row."""
    return run.frame["primal"].to_numpy(float) - case.reference.dual


def least_known(case: Case) -> float:
    """Return the smallest suboptimality whose size is known."""
    best = case.reference
    return KNOWN * (best.primal - best.dual)


def _there(case: Case, family: Sequence[Runs]) -> dict[str, list[Trace]]:
    """Return the repeats of those solvers of a family that there are runs of, by name."""
    found = {runs.name: runs.of(case) for runs in family if runs.solver in case.solvers}
    if not found:
        names = " or ".join(runs.name for runs in family)
        raise UnmeasurableError(f"no finished runs of {names}")
    return found


# ---- at equal numbers of passes ---------------------------------------------------------------


@measure
def share_ahead(case: Case, ours: Runs, family: Sequence[Runs], low: float) -> Measured:
    """Measure the share of our evaluated numbers of passes ≥ 1 at which our primal is lower."""
    mine, rivals = ours.of(case), _there(case, family)
    shares, sizes, behind, ends = [], [], [], []
    for run in mine:
        at, my, their, name = _common(case, run, rivals)
        shares.append(float(np.mean(my < their)))
        sizes.append(at.size)
        behind += at[my >= their].tolist()
        ends.append((math.exp(their[-1] - my[-1]), name, float(at[-1])))
    note = f"{counts(sizes)} numbers of passes"
    if behind:
        note += f", not lower at {len(behind)} of {sum(sizes)} points, "
        note += f"the last at pass {max(behind):.3g}"
    factor, name, end = sorted(ends)[len(ends) // 2]
    note += f"; after {end:.3g} passes, {name} has {times(factor)} our suboptimality"
    return Measured(np.array(shares), low=low, note=note)


def _common(
    case: Case, run: Trace, rivals: Mapping[str, Sequence[Trace]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Return passes ≥ 1 with values, the log of ours, of the lowest rival's; who it is at last."""
    x = along(run, "passes")
    at = np.unique(x[x >= 1])
    mine = read_off(at, x, suboptimality(case, run), True)
    curves = {name: _median_curve(case, repeats, at) for name, repeats in rivals.items()}
    # All rivals have to be known: else the lowest would be another one where one of them ends.
    theirs = np.min(list(curves.values()), axis=0)
    known = ~np.isnan(mine + theirs)
    if not known.any():
        raise UnmeasurableError("no number of passes ≥ 1 at which all have a value")
    last = int(np.flatnonzero(known)[-1])
    lowest = min(curves, key=lambda name: float(curves[name][last]))
    return at[known], mine[known], theirs[known], lowest


def _median_curve(case: Case, repeats: Sequence[Trace], at: np.ndarray) -> np.ndarray:
    """Return the log of the median suboptimality of some repeats; NaN where one has no value."""
    heights = [
        read_off(at, along(run, "passes"), suboptimality(case, run), True) for run in repeats
    ]
    return np.median(heights, axis=0)


@measure
def fewer_passes(case: Case, ours: Runs, family: Sequence[Runs]) -> Measured:
    """Measure a family's passes to a relative suboptimality over ours.

    It is the smallest of ``LEVELS`` that each of our repeats reaches, and not within its first
    pass, where there is nothing to read off but the line from w = 0.
    """
    mine, rivals = ours.of(case), _there(case, family)
    found, notes = [], []
    for level in LEVELS:
        passes = np.array([_passes_to(case, run, level) for run in mine])
        if (passes >= 1).all() and np.isfinite(passes).all():
            median, name = _first(case, rivals, level)
            text = f"{name} {median:.3g}" if math.isfinite(median) else "no rival"
            notes.append(f"to {level:g}: {np.median(passes):.3g} passes, {text}")
            found.append((passes, median))
    if not found:
        raise UnmeasurableError(
            "there is no level that all repeats reach, and after the first pass"
        )
    passes, median = found[-1]
    ends = [float(along(run, "passes")[-1]) for repeats in rivals.values() for run in repeats]
    if math.isinf(median) and min(ends) < passes.max():
        raise UnmeasurableError("a rival ended before it reached that suboptimality")
    return Measured(median / passes, math.nextafter(1.0, 2.0), note="; ".join(notes))


def _passes_to(case: Case, run: Trace, level: float) -> float:
    target = level * abs(case.reference.dual)
    return crossing(along(run, "passes"), suboptimality(case, run), target)


def _first(case: Case, rivals: Mapping[str, Sequence[Trace]], level: float) -> tuple[float, str]:
    """Return the smallest median of passes to a level, and whose it is."""
    return min(
        (float(np.median([_passes_to(case, run, level) for run in repeats])), name)
        for name, repeats in rivals.items()
    )


# ---- no tuning --------------------------------------------------------------------------------


@measure
def above_start(case: Case, ours: Runs, rival: Runs) -> Measured:
    """Measure the largest P(w) after iteration 0 over P(0); of the rival, tell it."""

    def largest(run: Trace) -> float:
        primal = run.frame["primal"].to_numpy(float)
        if primal.size < 2:
            raise UnmeasurableError("a run has no evaluated iteration")
        return float(np.nanmax(primal[1:]) / primal[0])

    values = np.array([largest(run) for run in ours.of(case)])
    note = ""
    if rival.solver in case.solvers:
        peaks = [largest(run) for run in rival.of(case)]
        note = f"{rival.name}: {span((min(peaks), max(peaks)), times)}"
    return Measured(values, high=1.0, note=note)


# ---- the number of examples --------------------------------------------------------------------


class Growth(NamedTuple):
    """Calls to a suboptimality on all examples and on a part: shape (pairs of runs, 2)."""

    calls: np.ndarray
    note: str


@measure
def growth_with_n(case: Case, runs: Runs, factor: float) -> Measured:
    """Measure the calls to a suboptimality over those on half of the examples, per seed."""
    found = calls_on_both(case, half_of(case), runs)
    return Measured(found.calls[:, 0] / found.calls[:, 1], 1 / factor, factor, found.note)


def half_of(case: Case) -> Case:
    """Return the part of the examples that is nearest to half of them."""
    parts = [other for other in case.others if other.is_part_of(case)]
    if not parts:
        raise UnmeasurableError("no finished runs on a part of the examples")
    return min(parts, key=lambda other: abs(2 * int(other.data["n"]) - int(case.data["n"])))


def calls_on_both(case: Case, part: Case, runs: Runs) -> Growth:
    """Return the calls to the smallest suboptimality that all runs reach."""
    n, fewer = int(case.data["n"]), int(part.data["n"])
    pairs = _pairs(runs, case, part)
    errors = [
        [suboptimality(where, run) for where, run in zip((case, part), pair, strict=True)]
        for pair in pairs
    ]
    smallest = [_smallest(error) for both in errors for error in both]
    target = max(*smallest, least_known(case), least_known(part))
    calls = np.array(
        [
            [
                crossing(along(run, "calls"), error, target)
                for run, error in zip(pair, both, strict=True)
            ]
            for pair, both in zip(pairs, errors, strict=True)
        ]
    )
    if (calls < [n, fewer]).any():
        raise UnmeasurableError(TOO_LOOSE)
    here, there = np.median(calls, axis=0)
    note = f"to {target:.3g}: {here:.3g} calls at n = {n}, {there:.3g} at {fewer}"
    return Growth(calls, note)


def _pairs(runs: Runs, case: Case, part: Case) -> list[tuple[Trace, Trace]]:
    """Return the runs on two instances with the same seed, whose solver has the same options."""
    here, there = (runs.by_seed(where) for where in (case, part))
    pairs = [(here[seed], there[seed]) for seed in here if seed in there]
    if not pairs:
        raise UnmeasurableError("no two runs with the same seed")
    if any(a.metadata["config"]["solver"] != b.metadata["config"]["solver"] for a, b in pairs):
        raise UnmeasurableError(f"runs of {runs.name} differ in more than the examples")
    return pairs


def _smallest(error: np.ndarray) -> float:
    """Return the smallest positive error."""
    if not (error > 0).any():
        raise UnmeasurableError("no positive suboptimality")
    return float(error[error > 0].min())


# ---- the duality gap --------------------------------------------------------------------------


@measure
def certified(case: Case, runs: Runs) -> Measured:
    """Measure the share of rows whose gap is no less than P(w) − the lowest primal of any run."""
    primal = case.reference.primal
    duals = [run.frame["dual"].to_numpy(float) for run in runs.of(case)]
    allowed = primal + ROUNDING * abs(primal)
    note = f"lowest primal {primal:.6g}, highest dual of these {max(map(np.max, duals)):.6g}"
    return Measured(np.array([np.mean(dual <= allowed) for dual in duals]), 1.0, note=note)


@measure
def gap_over_suboptimality(case: Case, runs: Runs, high: float) -> Measured:
    """Measure the largest duality gap / primal suboptimality from the first pass on."""
    largest, middle = [], []
    for run in runs.of(case):
        error = suboptimality(case, run)
        late = (along(run, "passes") >= 1) & (error > 0) & (error >= least_known(case))
        if not late.any():
            raise UnmeasurableError(TOO_LOOSE)
        ratios = run.frame["gap"].to_numpy(float)[late] / error[late]
        largest.append(ratios.max())
        middle.append(np.median(ratios))
    note = f"median over the iterations {number(float(np.median(middle)))}"
    return Measured(np.array(largest), high=high, note=note)
