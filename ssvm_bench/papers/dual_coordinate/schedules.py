"""Measures of the claims about schedules of the online algorithm: the cost of a verified gap.

.. code-block:: text

    verified             P − F ≤ tol P, with P of all examples
    cost                 measured seconds, plus a given number of seconds per oracle call
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.claims import cases
from ssvm_bench.claims.cases import Case, Runs, check_clocks, column, relative_gap
from ssvm_bench.claims.claim import Measured, ensure, measure
from ssvm_bench.figures.curves import first_at
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import reached, seconds, times

TIME, CALLS = COSTS = ("time", "oracle_calls")
"""Trace columns with the cost of a run so far."""

SLOW_CALL, SLOWER_CALL = 1e-3, 1e-2
"""Shortest and longest seconds assumed for an oracle call that searches an image."""


@measure
def costlier(case: Case, ours: Runs, baseline: Runs, call: float) -> Measured:
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
def spread(case: Case, kinds: Sequence[Runs]) -> Measured:
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


def _target(mine: Sequence[Trace]) -> float:
    """Return the runs' tolerance, or the smallest gap that all of them reach if that is larger."""
    tol = float(mine[0].solver["tol"])
    return max(tol, *(cases.least_positive(relative_gap(run)) for run in mine))


def _cost(spent: Any, call: float) -> Any:
    """Return seconds plus ``call`` for each oracle call; if ``call`` is infinite, the calls."""
    if math.isinf(call):
        return spent[CALLS]
    return spent[TIME] + (call * spent[CALLS] if call else 0.0)


def _spent_on(runs: Sequence[Trace], target: float) -> pd.DataFrame:
    """Return each run's seconds and calls at its first row within a gap; infinite without one."""
    spent = [[first_at(column(run, of), relative_gap(run), target) for of in COSTS] for run in runs]
    return pd.DataFrame(spent, columns=list(COSTS))
