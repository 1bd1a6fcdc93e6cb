"""What the MP-BCFW paper's claims are judged by: one number per repeat, computed from traces.

- Two solvers are compared at equal iterations only where both were evaluated (repeats with the
  same seed). Evaluations are rarer later on, so that an iteration that was not evaluated counts as
  the next one that was: of those at k_1 < k_2 < …, the one at k_j stands for k_j − k_{j−1}
  iterations, k_0 = 0.
- In time they are compared by the time to a gap: the *target* is the smallest duality gap that
  every repeat of the single-plane solver reaches, i.e. the largest of their smallest positive gaps.
  The time to it is read off a run's own curve, between two of its rows linearly in the logarithm of
  the gap, as a log plot draws it; outside its rows it is unknown.
- The approximate passes per iteration are ``Δapprox_calls / (n Δiteration)`` between two rows, so
  that iterations that were not evaluated count, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case, Runs, least_positive
from ssvm_bench.claims.claim import Measured, UnmeasurableError, measure
from ssvm_bench.figures.curves import crossing
from ssvm_bench.figures.style import solver_label
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import counts, percent, seconds, span, times

PAIRS = {"plain": ("bcfw", "mpbcfw"), "avg": ("bcfw_avg", "mpbcfw_avg")}
"""The pairs that the paper compares: single-plane and multi-plane solver."""

# ---- at equal iterations ----------------------------------------------------------------------


class Common(NamedTuple):
    """The iterations at which both runs of a seed have a primal value, and these values."""

    iterations: np.ndarray
    single: np.ndarray
    multi: np.ndarray

    @property
    def behind(self) -> np.ndarray:
        """The iterations at which the multi-plane primal is not lower."""
        return self.iterations[self.multi >= self.single]

    @property
    def share_below(self) -> float:
        """The share of the iterations, evaluated or not, at which it is lower."""
        stands_for = np.diff(self.iterations, prepend=0)
        return float(stands_for[self.multi < self.single].sum() / self.iterations[-1])


def _common(case: Case, pair: str, column: str = "primal") -> list[Common]:
    """Return what two solvers have in common, per seed; `column` is that of the multi-plane one.

    Iteration 0 is left out: there w is the same for everyone.
    """
    single, multi = (Runs(solver).by_seed(case) for solver in PAIRS[pair])
    found = []
    for seed in sorted(single.keys() & multi.keys()):
        (k, one), (l, two) = _known(single[seed], "primal"), _known(multi[seed], column)
        at, of_one, of_two = np.intersect1d(k, l, assume_unique=True, return_indices=True)
        if at.size:
            found.append(Common(at, one[of_one], two[of_two]))
    return found


def _known(run: Trace, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the iterations from 1 at which a column has a value, and these."""
    at = run.frame["iteration"].to_numpy(int)
    values = run.frame.get(column, pd.Series(math.nan, run.frame.index)).to_numpy(float)
    known = (at > 0) & ~np.isnan(values)
    return at[known], values[known]


@measure
def share_below(case: Case, pair: str) -> Measured:
    """Measure the share of the iterations at which the multi-plane primal is lower.

    Where it is known after the exact pass, too, that is noted: there it has seen the same calls as
    the single-plane solver, and no approximate pass since.
    """
    found = _evaluated(case, pair)
    at, every = [len(both.iterations) for both in found], [both.iterations for both in found]
    note = f"{counts(at)} common evaluations, at iterations {min(map(min, every))} to "
    note += f"{max(map(max, every))}{_where_behind(found)}"
    after_exact = _common(case, pair, "primal_after_exact")
    if after_exact:
        shares = [both.share_below for both in after_exact]
        note += f"; after the exact pass lower at {percent(float(np.median(shares)))}"
        note += f" ({span((min(shares), max(shares)), percent)})" * (len(shares) > 1)
        note += _where_behind(after_exact)
    return Measured(np.array([both.share_below for both in found]), low=1.0, note=note)


def _evaluated(case: Case, pair: str) -> list[Common]:
    """Return the common iterations of `_common`, of which there must be some."""
    found = _common(case, pair)
    if not found:
        raise UnmeasurableError("no iteration was evaluated in two runs with the same seed")
    return found


def _where_behind(found: Sequence[Common]) -> str:
    """Say at how many evaluations the multi-plane primal is not lower, and where the last is."""
    last = [int(both.behind[-1]) for both in found if both.behind.size]
    if not last:
        return ""
    behind = sum(both.behind.size for both in found)
    of = sum(both.iterations.size for both in found)
    note = f"; not lower at {behind} of {of} evaluations, the last at iteration {counts(last)}"
    return note + f" ({len(last)} of {len(found)} repeats)" * (len(last) < len(found))


@measure
def gain_over_usps(case: Case, pair: str) -> Measured:
    """Measure how much larger the gain per iteration is than on USPS: a ratio of factors.

    The gain is the geometric mean of (suboptimality of single) / (suboptimality of multi), over
    the iterations common to all four solver curves of the two datasets.
    """
    usps_cases = [other for other in case.others if other.dataset == "usps"]
    if len(usps_cases) != 1:
        raise UnmeasurableError("no finished runs on USPS to compare with")
    here, there = _log_gains(case, pair), _log_gains(usps_cases[0], pair)
    at = set.intersection(*(set(gains) for gains in (*here, *there)))
    if not at:
        raise UnmeasurableError(
            "no iteration was evaluated, with positive values, on both datasets"
        )
    mine, usps = (
        np.exp([np.mean([gains[k] for k in sorted(at)]) for gains in both])
        for both in (here, there)
    )
    note = (
        f"gain {np.median(mine):.3g} here, {np.median(usps):.3g} on USPS, "
        f"over {len(at)} iterations up to {max(at)}"
    )
    return Measured(mine / np.median(usps), note=note)


def _log_gains(case: Case, pair: str) -> list[dict[int, float]]:
    """Return, per seed, iteration → log of the gain, where both suboptimalities are positive."""
    gains = []
    for at, one, two in _evaluated(case, pair):
        one, two = one - case.reference.dual, two - case.reference.dual
        positive = (one > 0) & (two > 0)
        logs = np.log(one[positive]) - np.log(two[positive])
        gains.append(dict(zip(at[positive].tolist(), logs.tolist(), strict=True)))
    return gains


# ---- to a gap ---------------------------------------------------------------------------------


def target_gap(runs: Sequence[Trace]) -> float:
    """Return the smallest positive duality gap that each of the runs reaches."""
    return max(least_positive(run.frame["gap"].to_numpy(float)) for run in runs)


def reach(run: Trace, target: float, axis: str) -> float:
    """Return where a run's gap is first at most the target; infinite where it never is.

    In time, interpolated in log gap between the two rows around it; for iterations, the first
    evaluated one.
    """
    gap, x = run.frame["gap"].to_numpy(float), run.frame[axis].to_numpy(float)
    if axis == "time":
        return crossing(x, gap, target)
    return float(x[gap <= target][0]) if (gap <= target).any() else math.inf


@measure
def to_gap(case: Case, pair: str, axis: str, not_beyond: str = "") -> Measured:
    """Measure the multi-plane time (or iterations) to the target gap, the single-plane median as 1.

    Parameters
    ----------
    pair : str
        One of ``PAIRS``.
    axis : str
        ``"time"`` or ``"iteration"``.
    not_beyond : str
        ``"slowest"`` or ``"fastest"``: the single-plane repeat that is the bound, if any is.
    """
    solvers = PAIRS[pair]
    if axis == "time":
        single, multi = case.timed(*solvers)
    else:
        single, multi = (case.repeats(solver) for solver in solvers)
    target = target_gap(single)
    times = np.array([reach(run, target, axis) for run in single])
    base = float(np.median(times))
    if base == 0:
        raise UnmeasurableError("the gap does not fall below its first value")
    if not_beyond and len(times) < 2:
        raise UnmeasurableError("no repeats, hence no spread to tell a difference from")
    relative = target / max(abs(_primal_of(single)), 1e-12)
    unit = " s" if axis == "time" else " iterations"
    note = f"gap {target:.3g} ({relative:.2g} of the primal); "
    note += f"{solver_label(solvers[0])}: {base:.3g}{unit}"
    note += f" ({times.min():.3g}–{times.max():.3g})" if len(times) > 1 else ""
    return Measured(
        np.array([reach(run, target, axis) / base for run in multi]),
        times.min() / base if not_beyond == "fastest" else -math.inf,
        times.max() / base if not_beyond == "slowest" else math.inf,
        note,
        bounds=np.array([float(run.frame[axis].iloc[-1]) / base for run in multi]),
        ended=f"{solver_label(solvers[1])} ended before it reached that gap",
    )


def _primal_of(runs: Sequence[Trace]) -> float:
    return float(np.nanmedian([run.frame["primal"].iloc[-1] for run in runs]))


# ---- the oracle -------------------------------------------------------------------------------


@measure
def oracle_share(case: Case, solver: str, bounds: Mapping[str, tuple[float, float]]) -> Measured:
    """Measure oracle time / time of whole runs; per dataset, the range in which it must be."""
    last = _last_rows(case, solver)
    inside = [row["oracle_time"] / row["oracle_calls"] for row in last]
    outside = [(row["time"] - row["oracle_time"]) / row["oracle_calls"] for row in last]
    call, rest = float(np.median(inside)), float(np.median(outside))
    note = f"per call {seconds(call)} inside the oracle, {seconds(rest)} outside"
    (low, high), paper = bounds[case.dataset], PAPER_CALL[case.dataset]
    shares = np.array([row["oracle_time"] / row["time"] for row in last])
    if solver == "bcfw" and not low <= np.median(shares) <= high:
        would = (paper[0] / (paper[0] + rest), paper[1] / (paper[1] + rest))
        note += f"; with the paper's {span(paper)} per call, else as here, it would be "
        note += span(would, percent)
    return Measured(shares, low, high, note)


PAPER_CALL = {
    "usps": (1e-6, 10e-6),
    "ocr": (50e-6, 50e-6),
    "horseseg": (1e-3, 5e-3),
    "weizmann": (1e-3, 5e-3),
    "stanford": (1e-3, 5e-3),
}
"""Seconds of an oracle call in the paper: "a few µs", "approximately 50 µs", "1 to 5 ms"."""


@measure
def call_time(case: Case) -> Measured:
    """Measure the seconds of an exact oracle call in BCFW; half to twice a single number hold."""
    calls = np.array([r["oracle_time"] / r["oracle_calls"] for r in _last_rows(case, "bcfw")])
    low, high = PAPER_CALL[case.dataset]
    found = Measured(calls, *((low / 2, high * 2) if low == high else (low, high)))
    median, note = float(np.median(calls)), ""
    if 0 < median < found.low:
        note = f"{span((low / median, high / median), times)} faster than the paper's"
    elif median > found.high:
        note = f"{span((median / high, median / low), times)} slower than the paper's"
    return found._replace(note=note)


def _last_rows(case: Case, solver: str) -> list[pd.Series]:
    rows = [run.frame.iloc[-1] for run in case.timed(solver)[0]]
    if not all(row["oracle_calls"] > 0 and row["time"] > 0 for row in rows):
        raise UnmeasurableError("a run made no oracle call")
    return rows


# ---- working sets and approximate passes: section 4.2, Figure 6 --------------------------------


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
def of_passes(case: Case, number: Callable[[np.ndarray], float]) -> Measured:
    """Measure a number of the passes per iteration of MP-BCFW."""
    series = [passes(run) for run in case.repeats("mpbcfw")]
    ends = np.median([np.quantile(one, [0.1, 0.9]) for one in series], axis=0)
    count = [one.size for one in series]
    note = f"in 80 % of the iterations {ends[0]:.3g} to {ends[1]:.3g}; {counts(count)} iterations"
    return Measured(np.array([number(one) for one in series]), note=note)


@measure
def later_than_on(case: Case, datasets: Sequence[str]) -> Measured:
    """Measure how much later than elsewhere the passes get to half of their largest number.

    That is the first iteration with so many passes, over the median on another dataset; of the
    iterations that all runs on both have.

    Parameters
    ----------
    datasets : sequence of str
        The other dataset; the first of these that there are runs on.
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
    return Measured(mine / np.median(theirs), note=note)


LEAST_ITERATIONS = 10
"""Fewer tell nothing about growth."""


def half_way(series: np.ndarray) -> int:
    """Return the first iteration, from 1, with at least half of the largest number of passes."""
    return int(np.argmax(series >= series.max() / 2)) + 1


@measure
def of_planes(case: Case, number: Callable[[np.ndarray, np.ndarray], float]) -> Measured:
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
    return Measured(np.array(values), note=note)


def end_over_peak(at: np.ndarray, planes: np.ndarray) -> float:
    """Return the last number of planes relative to the largest."""
    return float(planes[-1] / planes.max()) if planes.max() > 0 else math.nan


def late_change(at: np.ndarray, planes: np.ndarray) -> float:
    """Return (max − min) / max of the planes over the last quarter of the iterations."""
    late = planes[at >= 0.75 * at[-1]]
    if late.size < 2:
        raise UnmeasurableError("fewer than two evaluated iterations in the last quarter")
    return float((late.max() - late.min()) / late.max()) if late.max() > 0 else 0.0
