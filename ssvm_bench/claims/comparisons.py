"""Measures that several papers' claims are judged by: one number per repeat, from traces.

.. code-block:: text

    passes             calls of the exact oracle / n
    suboptimality      P(w) − D,     D the best dual value on the problem instance

- Solvers are compared at equal numbers of passes, but are evaluated at different ones. So a curve
  is interpolated as it is drawn: between two rows, linearly in log y. It is not extrapolated.
- Each of our repeats is compared with the *median* curve of a baseline, as most baselines make no
  random choices. In a family of baselines, the lowest curve counts, point by point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ssvm_bench.claims.cases import Case, Selection
from ssvm_bench.claims.old import Measured, measure
from ssvm_bench.results.table import Run, crossing, ensure, least_positive, read_off
from ssvm_bench.results.words import counts, percent, span, times


def suboptimality(case: Case, run: Run) -> np.ndarray:
    """Return P(w) − D of each row."""
    return run["primal"] - case.reference.dual


def family_runs(case: Case, family: Sequence[Selection]) -> dict[str, list[Run]]:
    """Return name → repeats of those solvers of a family that have runs."""
    found = {runs.name: runs.of(case) for runs in family if runs.solver in case.solvers}
    ensure(found, f"no finished runs of {' or '.join(runs.name for runs in family)}")
    return found


@measure
def share_ahead(case: Case, ours: Selection, family: Sequence[Selection]) -> Measured:
    """Measure the share of our evaluated passes ≥ 1 at which our primal is lower."""
    mine, baselines = ours.of(case), family_runs(case, family)
    shares, sizes, behind, ends = [], [], [], []
    for run in mine:
        at, my, their, name = _common(case, run, baselines)
        shares.append(float(np.mean(my < their)))
        sizes.append(at.size)
        behind += at[my >= their].tolist()
        ends.append((math.exp(their[-1] - my[-1]), name, float(at[-1])))
    note = f"{counts(sizes)} numbers of passes"
    if behind:
        note += f", not lower at {len(behind)} of {sum(sizes)} points, "
        note += f"the last at pass {max(behind):.3g}"
    if behind and len(baselines) > 1:
        alone = []
        for name, repeats in baselines.items():
            pairs = [_common(case, run, {name: repeats})[1:3] for run in mine]
            lower = float(np.median([np.mean(a < b) for a, b in pairs]))
            alone.append(f"{name} at {percent(lower)}")
        note += f"; lower than {', '.join(alone)}"
    factor, name, end = sorted(ends)[len(ends) // 2]
    note += f"; after {end:.3g} passes, {name} has {times(factor)} our suboptimality"
    return Measured(np.array(shares), note=note)


def _common(
    case: Case, run: Run, baselines: Mapping[str, Sequence[Run]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Return passes ≥ 1, log P − D of a run and of the baselines, and the last lowest's name."""
    x = run["passes"]
    at = np.unique(x[x >= 1])

    def heights(of: Run) -> np.ndarray:
        return read_off(at, of["passes"], suboptimality(case, of), True)

    mine = heights(run)
    medians = (np.median([*map(heights, repeats)], axis=0) for repeats in baselines.values())
    curves = dict(zip(baselines, medians, strict=True))
    # Where one baseline has no value, another would pass for the lowest.
    theirs = np.min(list(curves.values()), axis=0)
    known = ~np.isnan(mine + theirs)
    ensure(known.any(), "no number of passes ≥ 1 at which all have a value")
    last = int(np.flatnonzero(known)[-1])
    lowest = min(curves, key=lambda name: float(curves[name][last]))
    return at[known], mine[known], theirs[known], lowest


@measure
def above_start(case: Case, ours: Selection, baseline: Selection) -> Measured:
    """Measure the largest P(w) after iteration 0 over P(0); the note has the baseline's."""

    def largest(run: Run) -> float:
        primal = run["primal"]
        ensure(primal.size > 1, "a run has no evaluated iteration")
        return float(np.nanmax(primal[1:]) / primal[0])

    values = np.array([largest(run) for run in ours.of(case)])
    note = ""
    if baseline.solver in case.solvers:
        peaks = [largest(run) for run in baseline.of(case)]
        note = f"{baseline.name}: {span((min(peaks), max(peaks)), times)}"
    return Measured(values, high=1.0, note=note)


def to_common(
    pairs: Sequence[Sequence[tuple[np.ndarray, np.ndarray]]],
    least: float = 0.0,
    what: str = "duality gap",
) -> tuple[float, np.ndarray]:
    """Return the smallest positive y that all curves reach, and the x at which each reaches it.

    Parameters
    ----------
    pairs : sequence of pairs of (x, y)
        The curves that are compared.
    least : float
        The smallest y that counts.
    what : str
        What y is, for error messages.

    Returns
    -------
    target : float
    x : ndarray of float64, shape (pairs, 2)
    """
    target = max(least, *(least_positive(y, what) for pair in pairs for _, y in pair))
    return target, np.array([[crossing(x, y, target) for x, y in pair] for pair in pairs])


def half_of(case: Case) -> Case:
    """Return the case on a part of the examples whose size is nearest to one half."""
    parts = [other for other in case.others if other.is_part_of(case)]
    ensure(parts, "no finished runs on a part of the examples")
    return min(parts, key=lambda other: abs(2 * int(other.data["n"]) - int(case.data["n"])))
