"""Measures of the MP-BCFW paper's claims: one number per repeat, computed from traces.

- At equal iterations, two runs with the same seed are compared only where both were evaluated.
  Later evaluations are rarer, so an iteration without an evaluation counts as the next one with
  an evaluation: if these are at k_1 < k_2 < …, the one at k_j counts for k_j − k_{j−1} iterations,
  with k_0 = 0.
- In time, two solvers are compared by the time to the *target*: the smallest duality gap that
  every repeat of the single-plane solver reaches within 80 % of its time, i.e. the largest of the
  repeats' smallest positive gaps there. All solvers have the same budget, so a multi-plane solver
  that is as fast reaches the target, with a fourth of that time to spare. The time is read off
  each run's curve as a log plot draws it: linear in the logarithm of the gap between two rows,
  and unknown outside the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Concatenate, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case, Selection, ends, least_positive
from ssvm_bench.claims.claim import Measure, Measured, Options, ensure, measure
from ssvm_bench.figures.style import solver_label
from ssvm_bench.results.table import Run, crossing, first
from ssvm_bench.results.words import counts, number, percent, seconds, span, times

PAIRS = {"plain": ("bcfw", "mpbcfw"), "avg": ("bcfw_avg", "mpbcfw_avg")}
"""The pairs that the paper compares: single-plane and multi-plane solver."""

AS_FAST = 1.1
"""Two times are alike up to this ratio; a difference of a tenth is not visible in a figure."""

PRINTED: Mapping[str, Any] = {"rule": "slope", "T": 10}
"""The paper's options of MP-BCFW; runs with other options are compared with runs with these."""


def as_printed(case: Case) -> Case:
    """Return a case without the runs whose options differ from the paper's.

    If all runs of a solver have other options, these runs are kept.
    """

    def is_so(runs: Mapping[int, Run]) -> bool:
        solver = next(iter(runs.values())).solver_options
        return all(solver.get(name, value) == value for name, value in PRINTED.items())

    known = {label.split(" ")[0] for label, runs in case.runs.items() if is_so(runs)}
    runs = {name: of for name, of in case.runs.items() if is_so(of) or name.split()[0] not in known}
    others = [as_printed(replace(other, others=())) for other in case.others]
    return replace(case, runs=runs, others=others)


def of_printed(
    function: Callable[Concatenate[Any, Options], Measured],
) -> Callable[Options, Measure]:
    """Decorate like `measure`; the function gets the case with the paper's options only."""
    return measure(function, as_printed)


# ---- at equal iterations ----------------------------------------------------------------------


class Common(NamedTuple):
    """The iterations at which both runs of a seed have a primal value, and these values.

    ``single`` and ``multi`` are the values of the first and of the second solver.
    """

    iterations: np.ndarray
    single: np.ndarray
    multi: np.ndarray

    @property
    def behind(self) -> np.ndarray:
        """The iterations at which the multi-plane primal is not lower."""
        return self.iterations[self.multi >= self.single]

    @property
    def share_below(self) -> float:
        """The share of iterations, evaluated or not, at which the multi-plane primal is lower."""
        stands_for = np.diff(self.iterations, prepend=0)
        return float(stands_for[self.multi < self.single].sum() / self.iterations[-1])


def common(
    case: Case, one: str, other: str, column: str = "primal", first_column: str = "primal"
) -> list[Common]:
    """Return the common evaluations of two solvers, per seed; ``column`` is the second solver's.

    Iteration 0 is left out: w is the same there for all solvers.
    """
    found = []
    for single, multi in _seeds(case, one, other):
        (k, here), (l, there) = _known(single, first_column), _known(multi, column)
        at, of_one, of_two = np.intersect1d(k, l, assume_unique=True, return_indices=True)
        if at.size:
            found.append(Common(at, here[of_one], there[of_two]))
    return found


def _known(run: Run, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the iterations ≥ 1 with a value in a column, and the values; for averages, their F."""
    at = run["iteration"].astype(int)
    values = run.frame.get(column, pd.Series(math.nan, run.frame.index)).to_numpy(float)
    values = run["reported_dual"] if column == "dual" else values
    known = (at > 0) & ~np.isnan(values)
    return at[known], values[known]


@of_printed
def share_below(case: Case, pair: str) -> Measured:
    """Measure the share of the iterations at which the multi-plane primal is lower.

    If the primal after the exact pass is known, the note has its share, too. Then both solvers have
    made the same number of calls, and no approximate pass has followed.
    """
    found = _evaluated(case, pair)
    note = _where_common(found) + _where_behind(found)
    after_exact = common(case, *PAIRS[pair], "primal_after_exact")
    if after_exact:
        shares = [both.share_below for both in after_exact]
        note += f"; after the exact pass lower at {percent(float(np.median(shares)))}"
        note += f" ({span((min(shares), max(shares)), percent)})" * (len(shares) > 1)
        note += _where_behind(after_exact)
    return Measured(np.array([both.share_below for both in found]), low=1.0, note=note)


@of_printed
def curves_below(case: Case, pair: str) -> Measured:
    """Measure the share of `share_below` for the medians over the repeats: Figure 4's curves."""
    found = _evaluated(case, pair)
    at = reduce(np.intersect1d, [both.iterations for both in found])
    ensure(at.size, "no iteration was evaluated in all runs")
    rows = [np.isin(both.iterations, at) for both in found]
    single = np.median([both.single[of] for both, of in zip(found, rows, strict=True)], axis=0)
    multi = np.median([both.multi[of] for both, of in zip(found, rows, strict=True)], axis=0)
    curves = Common(at, single, multi)
    note = f"{at.size} iterations that all repeats evaluated{_where_behind([curves])}"
    return Measured(np.array([curves.share_below]), low=1.0, note=note)


@of_printed
def dual_above(case: Case, pair: str) -> Measured:
    """Measure the share of the iterations at which the multi-plane F (of averages) is higher."""
    duals = common(case, *PAIRS[pair], "dual", "dual")
    ensure(duals, NOTHING_COMMON)
    found = [Common(at, -single, -multi) for at, single, multi in duals]
    note = _where_common(found) + _where_behind(found, "higher")
    return Measured(np.array([both.share_below for both in found]), low=1.0, note=note)


def _evaluated(case: Case, pair: str) -> list[Common]:
    """Return the result of `common`; raise `UnmeasurableError` if it is empty."""
    found = common(case, *PAIRS[pair])
    ensure(found, NOTHING_COMMON)
    return found


NOTHING_COMMON = "no iteration was evaluated in two runs with the same seed"


def _seeds(case: Case, one: str, other: str) -> list[tuple[Run, Run]]:
    """Return the pairs of runs of two solvers with the same seed."""
    first, second = (Selection(solver).by_seed(case) for solver in (one, other))
    return [(first[seed], second[seed]) for seed in sorted(first.keys() & second.keys())]


def _where_common(found: Sequence[Common]) -> str:
    """Return a note: the number of common evaluations, and their range of iterations."""
    at, every = [len(both.iterations) for both in found], [both.iterations for both in found]
    where = f"at iterations {min(map(min, every))} to {max(map(max, every))}"
    return f"{counts(at)} common evaluations, {where}"


def _where_behind(found: Sequence[Common], ahead: str = "lower") -> str:
    """Return a note: at how many evaluations the multi-plane run is not ahead, and the last."""
    last = [int(both.behind[-1]) for both in found if both.behind.size]
    if not last:
        return ""
    behind = sum(both.behind.size for both in found)
    of = sum(both.iterations.size for both in found)
    note = f"; not {ahead} at {behind} of {of} evaluations, the last at iteration {counts(last)}"
    return note + f" ({len(last)} of {len(found)} repeats)" * (len(last) < len(found))


@of_printed
def gain_over_usps(case: Case, pair: str) -> Measured:
    """Measure the gain per iteration over the median gain on USPS.

    The gain is the geometric mean of (suboptimality of single) / (suboptimality of multi), over
    the iterations common to all runs of the pair on the two datasets.
    """
    usps_cases = [other for other in case.others if other.dataset == "usps"]
    ensure(len(usps_cases) == 1, "no finished runs on USPS to compare with")
    here, there = _log_gains(case, pair), _log_gains(usps_cases[0], pair)
    shared = pd.concat([*here, *there], axis=1, join="inner")
    ensure(not shared.empty, "no iteration was evaluated, with positive values, on both datasets")
    mine, usps = np.split(np.exp(shared.mean().to_numpy()), [len(here)])
    note = (
        f"gain {np.median(mine):.3g} here, {np.median(usps):.3g} on USPS, "
        f"over {len(shared)} iterations up to {shared.index.max()}"
    )
    return Measured(mine / np.median(usps), note=note)


def _log_gains(case: Case, pair: str) -> list[pd.Series]:
    """Return iteration → log gain, per seed, where both suboptimalities are positive."""
    gains = []
    for at, one, two in _evaluated(case, pair):
        one, two = one - case.reference.dual, two - case.reference.dual
        positive = (one > 0) & (two > 0)
        gains.append(pd.Series(np.log(one[positive]) - np.log(two[positive]), at[positive]))
    return gains


# ---- to a gap ---------------------------------------------------------------------------------


PART = 0.8
"""Share of the time of the single-plane runs within which they reach a target."""


def target_gap(runs: Sequence[Run]) -> float:
    """Return the smallest positive gap that each of the runs reaches in `PART` of its time."""
    return max(least_positive(early(run)["gap"].to_numpy(float)) for run in runs)


def early(run: Run) -> pd.DataFrame:
    """Return the rows within `PART` of a run's time."""
    time = run["time"]
    return run.frame[time <= PART * time[-1]]


def reach(run: Run, target: float, axis: str) -> float:
    """Return the x at which a run's gap is first at most the target; infinite if it never is.

    Time is interpolated in log gap between two rows; an iteration is the first evaluated one.
    """
    read = crossing if axis == "time" else first
    return read(run[axis], run["gap"], target)


@of_printed
def to_gap(case: Case, pair: str, axis: str, not_beyond: str = "") -> Measured:
    """Measure the multi-plane time (or iterations) to the target gap, the single-plane median as 1.

    Parameters
    ----------
    pair : str
        One of ``PAIRS``.
    axis : str
        ``"time"`` or ``"iteration"``.
    not_beyond : str
        ``"slowest"`` or ``"fastest"``: the single-plane repeat whose time bounds the range, which
        always includes ratios alike by `AS_FAST`; empty: no bound.
    """
    solvers = PAIRS[pair]
    if axis == "time":
        case.timed(*map(Selection, solvers))
    single, multi = map(case.repeats, solvers)
    target = target_gap(single)
    times = np.array([reach(run, target, axis) for run in single])
    base = float(np.median(times))
    ensure(base != 0, "the gap does not fall below its first value")
    there = len(times) > 1 or not not_beyond
    ensure(there, "no repeats, hence no spread to tell a difference from")
    primal = float(np.nanmedian([run["primal"][-1] for run in single]))
    relative = target / max(abs(primal), 1e-12)
    unit = " s" if axis == "time" else " iterations"
    note = f"gap {target:.3g} ({relative:.2g} of the primal); "
    note += f"{solver_label(solvers[0])}: {base:.3g}{unit}"
    note += f" ({times.min():.3g}–{times.max():.3g})" if len(times) > 1 else ""
    return Measured(
        np.array([reach(run, target, axis) / base for run in multi]),
        min(times.min() / base, 1 / AS_FAST) if not_beyond == "fastest" else -math.inf,
        max(times.max() / base, AS_FAST) if not_beyond == "slowest" else math.inf,
        note,
        bounds=np.array([float(run[axis][-1]) / base for run in multi]),
        ended=f"{solver_label(solvers[1])} ended before it reached that gap",
    )


@of_printed
def not_sooner(case: Case, pair: str) -> Measured:
    """Measure the smallest gap, over the optimum, that the multi-plane run reaches no sooner.

    The gaps are those in the rows of both runs of a seed, the start's included. Iterations are
    interpolated between rows, so that runs evaluated at the same iterations still differ.
    """
    optimum = max(abs(case.reference.dual), 1e-12)
    found, smallest = [], []
    for runs in _seeds(case, *PAIRS[pair]):
        gaps = [run["gap"] for run in runs]
        smallest.append(max(map(least_positive, gaps)))
        known = np.unique(np.concatenate(gaps))
        known = known[known >= smallest[-1]]
        single, multi = (
            np.array([crossing(run["iteration"], of, gap) for gap in known])
            for run, of in zip(runs, gaps, strict=True)
        )
        found.append(known[multi >= single].min())
    ensure(found, NOTHING_COMMON)
    both = min(smallest) / optimum, max(smallest) / optimum
    note = f"down to {span(both, number)}, the smallest gap that both reach"
    return Measured(np.array(found) / optimum, note=note)


# ---- the oracle -------------------------------------------------------------------------------


@of_printed
def oracle_share(case: Case, solver: str, bounds: Mapping[str, tuple[float, float]]) -> Measured:
    """Measure oracle time / time of whole runs; ``bounds`` has the range for each dataset."""
    calls, inside, whole = _spent(case, solver)
    call, rest = np.median(inside / calls), np.median((whole - inside) / calls)
    note = f"per call {seconds(call)} inside the oracle, {seconds(rest)} outside"
    if solver == "mpbcfw":
        late = [_late_share(run) for run in case.repeats(solver)]
        note += f"; {percent(float(np.median(late)))} over the last quarter of the iterations"
    (low, high), paper = bounds[case.dataset], PAPER_CALL[case.dataset]
    shares = inside / whole
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


@of_printed
def call_time(case: Case) -> Measured:
    """Measure the seconds of an exact oracle call in BCFW.

    Where the paper gives a single number, the range is from half of it to twice it.
    """
    calls, inside, _ = _spent(case, "bcfw")
    low, high = PAPER_CALL[case.dataset]
    found = Measured(inside / calls, *((low / 2, high * 2) if low == high else (low, high)))
    median, note = float(np.median(found.values)), ""
    if 0 < median < found.low:
        note = f"{span((low / median, high / median), times)} faster than the paper's"
    elif median > found.high:
        note = f"{span((median / high, median / low), times)} slower than the paper's"
    return found._replace(note=note)


def _late_share(run: Run) -> float:
    """Return oracle time / time over the rows in the last quarter of the iterations."""
    frame = run.frame
    begin = int(np.searchsorted(frame["iteration"], 0.75 * frame["iteration"].iloc[-1]))
    spent = frame[["oracle_time", "time"]].iloc[-1] - frame[["oracle_time", "time"]].iloc[begin]
    return float(spent["oracle_time"] / spent["time"]) if spent["time"] > 0 else math.nan


def _spent(case: Case, solver: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the oracle calls, oracle time and time of whole runs."""
    runs = [[*case.timed(Selection(solver))[0].values()]]
    calls, inside, whole = (ends(runs, name)[0] for name in ("oracle_calls", "oracle_time", "time"))
    ensure((calls > 0).all() and (whole > 0).all(), "a run made no oracle call")
    return calls, inside, whole
