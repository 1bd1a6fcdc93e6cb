"""What the transduction paper's claims are judged by: one number per draw of the data, from traces.

.. code-block:: text

    error           1 − accuracy of the last row: the share of wrong labels among those not observed
    accuracy        its mean over the repeats; deviation: its standard deviation
    objectives      primal of the last row, relative to that of other runs
    largest rise    max (L_ρ⁺ − L_ρ)/|L_ρ| from row to row at an unchanged ρ for which (18) holds
    residual left   ‖Kα − β‖ of the last row, relative to its largest value
    gap to (27)     supervised_gap of the last row, relative to the objective

The numbers that the paper prints, and what it compares, are in ``printed.yaml``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ssvm_bench.claims.cases import Case, Runs, column, ends, same_seed
from ssvm_bench.claims.claim import Measured, ensure, measure
from ssvm_bench.figures.document import beside
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import percent


class Spread(NamedTuple):
    """Mean over the splits, and what is behind ±, as shares; the caption calls that a variance."""

    mean: float
    deviation: float

    @property
    def root(self) -> Spread:
        """The same, if what is printed is a variance, in %²: with its root."""
        return Spread(self.mean, math.sqrt(100 * self.deviation) / 100)

    def has(self, mean: float) -> bool:
        """Tell whether a mean is within ±, to either side."""
        return abs(mean - self.mean) <= self.deviation


class Printed(NamedTuple):
    """A cell of Table 1: of the relaxation of Joulin and Bach, and of what the paper proposes."""

    sdp: Spread
    proposed: Spread


_PRINTED = beside(__file__, "printed")

MOONS: dict[str, float] = _PRINTED["moons"]
"""Solver → share of wrong labels (Figure 5)."""

KERNELS = ("linear", "rbf")

TABLE_1: dict[tuple[str, int, str], Printed] = {}
"""Dataset, labeled points, kernel → accuracies (Table 1)."""
for _set, _labeled, *_numbers in _PRINTED["table_1"]:
    for _kernel, _of in zip(KERNELS, (_numbers[:4], _numbers[4:]), strict=True):
        _spreads = (Spread(_of[k] / 100, _of[k + 1] / 100) for k in (0, 2))
        TABLE_1[_set, _labeled, _kernel] = Printed(*_spreads)

VIDEOS: dict[str, dict[str, float]] = _PRINTED["videos"]
"""Sequence → intersections over union of section 4.2, of our solvers by name, and of OSVOS."""

SETS = tuple(dict.fromkeys(dataset for dataset, _, _ in TABLE_1))

SPLITS = 12
"""What the means of Table 1 are over."""

SETTINGS = {"rho": 1e-3, "tau": 1.003, "start": "zero", "delta": 0.0}
"""Options of the solver that Table 1 is made by, and what we read for the start."""

WEIGHTS = {"linear": 0.05, "rbf": 0.0025}
"""Kernel → ν."""

NAMES = {"linear": "linear", "rbf": "RBF"}
"""Kernel → how it is written."""

DRAWS = {"moons": "draw", "scribbles": "picture", **dict.fromkeys(SETS, "split")}
"""Dataset → its option that makes a repeat: data drawn anew, a split or a picture."""

PROPOSED, INDUCTIVE, ALTERNATING = "dcadmm", "inductive", "coordinate_descent"
BASELINES: dict[str, str] = _PRINTED["baselines"]
"""Solvers that it is compared with → what a reader calls them."""


def error(run: Trace) -> float:
    """Return the share of wrong labels at the end of a run.

    Raises
    ------
    UnmeasurableError
        It is no run of transduction.
    """
    return 1.0 - float(column(run, "accuracy")[-1])


@measure
def errors(case: Case, runs: Runs, ours: Runs | None = None) -> Measured:
    """Measure the share of wrong labels; tell how many runs had converged.

    Given our runs, tell as well how much higher the objective ends than with them, and the time.
    """
    repeats = runs.of(case)
    found = np.array([error(run) for run in repeats])
    ended = sum(run.converged for run in repeats)
    note = f"mean {percent(found.mean())}; {ended} of {len(repeats)} runs have converged"
    if ours is not None:
        pairs = same_seed(runs.by_seed(case), ours.by_seed(case), "no two runs on the same draw")
        ratio = np.divide(*ends(pairs, "primal").T)
        there, here = np.median(ends(pairs, "time"), axis=0)
        note += (
            f"; it ends at {ratio.min():.2g} to {ratio.max():.2g} times the objective of DC-ADMM, "
            f"after {there:.3g} s in the median, where DC-ADMM takes {here:.3g} s"
        )
    return Measured(found, note=note)


# ---- Table 1 ----------------------------------------------------------------------------------


def _accuracies(case: Case, runs: Runs) -> np.ndarray:
    found = np.array([1.0 - error(run) for run in runs.of(case)])
    ensure(found.size >= SPLITS, f"only {found.size} of {SPLITS} splits have been run")
    return found


def _as_variance(holds: bool, with_root: bool) -> list[str]:
    """Say what the verdict is if ± is a variance, where that makes another one."""
    if holds == with_root:
        return []
    verdict = "holds" if with_root else "does not hold"
    return [f"it {verdict} if the printed ± is a variance, as the caption says"]


@measure
def accuracy(case: Case, printed: Mapping[str, Spread], runs: Runs) -> Measured:
    """Measure the mean accuracy over the repeats: to be within what is printed, on both sides."""
    found, cell = _accuracies(case, runs), printed[case.dataset]
    mean, text = found.mean(), f"{100 * found.mean():.4g} ± {100 * found.std():.3g} %"
    notes = [f"{100 * (mean - cell.mean):+.1f} points"]
    notes += _as_variance(cell.has(mean), cell.root.has(mean))
    if INDUCTIVE in case.solvers:
        alone = _accuracies(case, Runs(INDUCTIVE)).mean()
        notes.append(f"the inductive classifier has {100 * alone:.4g} %")
    low, high = cell.mean - cell.deviation, cell.mean + cell.deviation
    return Measured(np.array([mean]), low, high, "; ".join(notes), text)


@measure
def above(case: Case, printed: Mapping[str, Spread], runs: Runs) -> Measured:
    """Measure by how much the mean accuracy over the repeats is above a printed one."""
    found = _accuracies(case, runs)
    more = np.array([found.mean() - printed[case.dataset].mean])
    return Measured(more, text=f"{100 * more[0]:+.1f} points")


@measure
def deviation(case: Case, printed: Mapping[str, Spread], runs: Runs) -> Measured:
    """Measure the deviation of the accuracy over the repeats, to be below what is printed."""
    found, cell = _accuracies(case, runs), printed[case.dataset]
    said = _as_variance(*(found.std() <= of.deviation for of in (cell, cell.root)))
    return Measured(np.array([found.std()]), high=cell.deviation, note="".join(said))


@measure
def objectives(case: Case, runs: Runs, others: Runs) -> Measured:
    """Measure the objective at the end, relative to that of other runs, repeat by repeat."""
    pairs = same_seed(runs.by_seed(case), others.by_seed(case), "no two runs on the same split")
    right = 1.0 - np.mean([[error(run) for run in pair] for pair in pairs], axis=0)
    note = f"mean accuracy {percent(right[0])} against {percent(right[1])}"
    return Measured(np.divide(*ends(pairs, "primal").T), note=note)


# ---- theorems ---------------------------------------------------------------------------------


@measure
def largest_rise(case: Case, runs: Runs) -> Measured:
    """Measure by how much L_ρ rises at most where (18) holds, from one row to the next."""
    rises, checked, changed = [], 0, 0
    for run in runs.of(case):
        frame = run.frame
        holds = (frame["rho"].diff() == 0) & (frame["condition_18"].shift() > 1)
        values = frame["augmented_lagrangian"]
        checked += int(holds.sum())
        changed += int((frame["label_changes"][holds] > 0).sum())
        ensure(holds.any(), "(18) does not hold in any two rows that follow on each other")
        rises.append(float((values.diff() / values.abs())[holds].max()))
    return Measured(np.array(rises), note=f"{checked} rows, in {changed} of which labels change")


@measure
def residual_left(case: Case, runs: Runs) -> Measured:
    """Measure what is left of the residual."""
    of = [run.frame["residual"] for run in runs.of(case)]
    return Measured(np.array([each.iloc[-1] / each.max() for each in of]))


@measure
def supervised_gap(case: Case, runs: Runs) -> Measured:
    """Measure how far α is from the optimum of (27), at most; tell when labels changed last."""
    found, last = [], []
    for run in runs.of(case):
        end = run.frame.iloc[-1]
        found.append(abs(float(end["supervised_gap"])) / float(end["primal"]))
        changed = run.frame["iteration"][run.frame["label_changes"] > 0]
        last.append(f"{changed.max() if changed.size else 0:.0f} of {end['iteration']:.0f}")
    note = f"the last row in which labels change is iteration {', '.join(last)}"
    return Measured(np.array(found), note=note)
