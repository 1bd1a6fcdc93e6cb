"""Measures that the ``claims.yaml`` of any paper may name, besides those of its own folder.

- Solvers are compared at equal numbers of passes, but are evaluated at different ones. So a curve
  is interpolated as it is drawn: between two rows, linearly in log y. It is not extrapolated.
- Each of our repeats is compared with the *median* curve of a baseline, as most baselines make no
  random choices. In a family of baselines, the lowest curve counts, point by point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ssvm_bench.claims.cases import Case, Family, Selection
from ssvm_bench.claims.claim import Fact, Measured
from ssvm_bench.results.curves import ensure, read_off
from ssvm_bench.results.table import Run
from ssvm_bench.results.words import percent, times


def share_ahead(case: Case, ours: Selection, family: Selection | Family) -> Measured:
    """Measure the share of our evaluated passes ≥ 1 at which our primal is lower."""
    mine, baselines, _ = ours.of(case), family.by_name(case), case.reference
    found = [_beside(run, baselines) for run in mine]
    behind = [at[ours >= theirs] for at, ours, theirs, _ in found]
    facts: dict[str, Fact] = {"numbers of passes:": [both.at.size for both in found]}
    if any(at.size for at in behind):
        facts["not lower at"] = [at.size for at in behind]
        facts["the last at pass"] = [at[-1] for at in behind if at.size]
        if len(baselines) > 1:
            for name, repeats in baselines.items():
                alone = [_beside(run, {name: repeats}).share_lower for run in mine]
                facts[f"lower than {name} at"] = alone, percent
    # the baseline that is the lowest at the end, in the median repeat
    ratios = [float(np.exp(both.theirs[-1] - both.ours[-1])) for both in found]
    _, name, end = sorted(
        (ratio, both.lowest, both.at[-1]) for ratio, both in zip(ratios, found, strict=True)
    )[len(found) // 2]
    facts[f"after {end:.3g} passes, the suboptimality of {name} over ours is"] = ratios, times
    return Measured([both.share_lower for both in found], facts=facts)


class _Beside(NamedTuple):
    """Passes ≥ 1, log suboptimality of a run and of the baselines, and the last lowest's name."""

    at: np.ndarray
    ours: np.ndarray
    theirs: np.ndarray
    lowest: str

    @property
    def share_lower(self) -> float:
        return float(np.mean(self.ours < self.theirs))


def _beside(run: Run, baselines: Mapping[str, Sequence[Run]]) -> _Beside:
    """Return the suboptimality of a run beside the lowest median of some baselines."""
    passes = run["passes"]
    at = np.unique(passes[passes >= 1])

    def heights(of: Run) -> np.ndarray:
        return read_off(at, of["passes"], of["suboptimality"], True)

    mine = heights(run)
    curves = {
        name: np.median([*map(heights, repeats)], axis=0) for name, repeats in baselines.items()
    }
    # Where one baseline has no value, another would pass for the lowest.
    theirs = np.min([*curves.values()], axis=0)
    known = ~np.isnan(mine + theirs)
    ensure(known.any(), "no number of passes ≥ 1 at which all have a value")
    last = int(np.flatnonzero(known)[-1])
    lowest = min(curves, key=lambda name: float(curves[name][last]))
    return _Beside(at[known], mine[known], theirs[known], lowest)


def above_start(case: Case, ours: Selection, baseline: Selection) -> Measured:
    """Measure the largest P(w) after iteration 0 over P(0); the note has the baseline's."""

    def largest(runs: Sequence[Run]) -> list[float]:
        ensure(all(len(run) > 1 for run in runs), "a run has no evaluated iteration")
        return [float(np.nanmax(run["primal"][1:]) / run["primal"][0]) for run in runs]

    facts: dict[str, Fact] = {}
    if baseline.solver in case.solvers:
        facts[f"{baseline.name}:"] = largest(baseline.of(case)), times
    return Measured(largest(ours.of(case)), facts=facts)
