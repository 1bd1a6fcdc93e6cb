"""What the claims about working sets and approximate passes are judged by: section 4.2, Figure 6.

The approximate passes per iteration are ``Δapprox_calls / (n Δiteration)`` between two rows, so
that iterations that were not evaluated count, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ssvm_bench.claims.cases import Case
from ssvm_bench.claims.claim import Measured, UnmeasurableError, measure
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import counts


def passes(run: Trace) -> np.ndarray:
    """Return the approximate passes of every iteration; means between two evaluated ones."""
    steps = np.diff(run.frame["iteration"].to_numpy(int))
    if not steps.sum():
        raise UnmeasurableError("a run made no iteration")
    calls = np.diff(run.frame["approx_calls"].to_numpy(float))
    done = steps > 0
    mean = calls[done] / (float(run.metadata["dataset"]["n"]) * steps[done])
    return np.repeat(mean, steps[done])


@measure
def of_passes(
    case: Case,
    number: Callable[[np.ndarray], float],
    low: float = -math.inf,
    high: float = math.inf,
) -> Measured:
    """Measure a number of the passes per iteration of MP-BCFW."""
    series = [passes(run) for run in case.repeats("mpbcfw")]
    ends = np.median([np.quantile(one, [0.1, 0.9]) for one in series], axis=0)
    count = [one.size for one in series]
    note = f"in 80 % of the iterations {ends[0]:.3g} to {ends[1]:.3g}; {counts(count)} iterations"
    return Measured(np.array([number(one) for one in series]), low, high, note)


@measure
def later_than_on(case: Case, datasets: Sequence[str], low: float) -> Measured:
    """Measure how much later than elsewhere the passes get to half of their largest number.

    That is the first iteration with so many passes, over the median on another dataset; of the
    iterations that all runs on both have.

    Parameters
    ----------
    datasets : sequence of str
        The other dataset; the first of these that there are runs on.
    low : float
        Ratio from which on the growth is slow.
    """
    there = {other.dataset: other for other in case.others}
    name = next((name for name in datasets if name in there), None)
    if name is None:
        raise UnmeasurableError("no finished runs on the horses to compare with")
    both = [[passes(run) for run in on.repeats("mpbcfw")] for on in (case, there[name])]
    common = min(series.size for of_case in both for series in of_case)
    if common < LEAST_ITERATIONS:
        raise UnmeasurableError(f"fewer than {LEAST_ITERATIONS} iterations")
    mine, theirs = (np.array([half_way(one[:common]) for one in of_case]) for of_case in both)
    largest = [np.median([one[:common].max() for one in of_case]) for of_case in both]
    note = f"half of {largest[0]:.3g} passes at iteration {np.median(mine):.3g}, on the horses "
    note += f"half of {largest[1]:.3g} at {np.median(theirs):.3g}; {common} iterations"
    return Measured(mine / np.median(theirs), low=low, note=note)


LEAST_ITERATIONS = 10
"""Fewer tell nothing about growth."""


def half_way(series: np.ndarray) -> int:
    """Return the first iteration, from 1, with at least half of the largest number of passes."""
    return int(np.argmax(series >= series.max() / 2)) + 1


@measure
def of_planes(
    case: Case,
    number: Callable[[np.ndarray, np.ndarray], float],
    low: float = -math.inf,
    high: float = math.inf,
) -> Measured:
    """Measure a number of (iteration, mean planes per term) of MP-BCFW."""
    values, peaks, notes = [], [], []
    for run in case.repeats("mpbcfw"):
        at = run.frame["iteration"].to_numpy(int)
        planes = run.frame["working_set_mean"].to_numpy(float)
        if at.size < 3:
            raise UnmeasurableError("fewer than three evaluated iterations")
        values.append(number(at, planes))
        peaks.append((float(planes.max()), int(at[planes.argmax()])))
        notes.append((float(planes[-1]), int(at[-1])))
    (peak, top), (end, last) = np.median(peaks, axis=0), np.median(notes, axis=0)
    note = f"peak {peak:.3g} at iteration {top:.0f}, {end:.3g} at the end ({last:.0f})"
    return Measured(np.array(values), low, high, note)


def end_over_peak(at: np.ndarray, planes: np.ndarray) -> float:
    """Return the last number of planes relative to the largest."""
    return float(planes[-1] / planes.max()) if planes.max() > 0 else math.nan


def late_change(at: np.ndarray, planes: np.ndarray) -> float:
    """Return (max − min) / max of the planes over the last quarter of the iterations."""
    late = planes[at >= 0.75 * at[-1]]
    if late.size < 2:
        raise UnmeasurableError("fewer than two evaluated iterations in the last quarter")
    return float((late.max() - late.min()) / late.max()) if late.max() > 0 else 0.0
