"""Measures of the transduction paper's claims: one number per draw of the data, from traces.

.. code-block:: text

    error           1 − accuracy of the last row: the share of wrong labels among those not observed
    accuracy        mean of 1 − error over the repeats; deviation: the standard deviation
    objectives      primal of the last row, relative to that of other runs
    largest rise    max (L_ρ⁺ − L_ρ)/|L_ρ| from row to row at an unchanged ρ for which (18) holds
    residual left   ‖Kα − β‖ of the last row, relative to its largest value
    gap to (27)     supervised_gap of the last row, relative to the objective

The paper's numbers and the names of its baselines are in ``printed.yaml``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ssvm_bench.claims.cases import Case, Selection, column, ends
from ssvm_bench.claims.old import Measured, measure
from ssvm_bench.figures.document import beside
from ssvm_bench.results.table import Run, ensure, same_seed
from ssvm_bench.results.words import percent


class Spread(NamedTuple):
    """A mean over the splits and the number after ±, as shares; the caption calls it a variance."""

    mean: float
    deviation: float

    @property
    def root(self) -> Spread:
        """The spread with the root of the printed number, read as a variance in %²."""
        return Spread(self.mean, math.sqrt(100 * self.deviation) / 100)

    def has(self, mean: float) -> bool:
        """Return whether a mean is within ± of the printed mean."""
        return abs(mean - self.mean) <= self.deviation


class Printed(NamedTuple):
    """A cell of Table 1: the relaxation of Joulin and Bach, and the proposed method."""

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
"""Sequence → name of our solver, or OSVOS → intersection over union in section 4.2."""

SETS = tuple(dict.fromkeys(dataset for dataset, _, _ in TABLE_1))

SPLITS = 12
"""Number of splits that the means of Table 1 are over."""

SETTINGS = {"rho": 1e-3, "tau": 1.003, "start": "zero", "delta": 0.0}
"""Solver options of Table 1 as printed; the start is our reading."""

WEIGHTS = {"linear": 0.05, "rbf": 0.0025}
"""Kernel → ν."""

NAMES = {"linear": "linear", "rbf": "RBF"}
"""Kernel → its name in texts."""

DRAWS = {"moons": "draw", "scribbles": "picture", **dict.fromkeys(SETS, "split")}
"""Dataset → the option that distinguishes repeats: the draw of the data, a split or a picture."""

PROPOSED, INDUCTIVE, ALTERNATING = "dcadmm", "inductive", "coordinate_descent"
BASELINES: dict[str, str] = _PRINTED["baselines"]
"""Solver that the proposed method is compared with → its name in texts."""


def error(run: Run) -> float:
    """Return the share of wrong labels at the end of a run.

    Raises
    ------
    UnmeasurableError
        The run is not one of transduction.
    """
    return 1.0 - float(column(run, "accuracy")[-1])


@measure
def errors(case: Case, runs: Selection, ours: Selection | None = None) -> Measured:
    """Measure the share of wrong labels; the note has the number of converged runs.

    If ``ours`` is given, the note compares the final objectives and times with these runs.
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


def _accuracies(case: Case, runs: Selection) -> np.ndarray:
    found = np.array([1.0 - error(run) for run in runs.of(case)])
    ensure(found.size >= SPLITS, f"only {found.size} of {SPLITS} splits have been run")
    return found


def _as_variance(holds: bool, with_root: bool) -> list[str]:
    """Return a note with the verdict if ± is a variance, where this changes the verdict."""
    if holds == with_root:
        return []
    verdict = "holds" if with_root else "does not hold"
    return [f"it {verdict} if the printed ± is a variance, as the caption says"]


@measure
def accuracy(case: Case, printed: Mapping[str, Spread], runs: Selection) -> Measured:
    """Measure the mean accuracy over the repeats; it has to be within the printed ±."""
    found, cell = _accuracies(case, runs), printed[case.dataset]
    mean, text = found.mean(), f"{100 * found.mean():.4g} ± {100 * found.std():.3g} %"
    notes = [f"{100 * (mean - cell.mean):+.1f} points"]
    notes += _as_variance(cell.has(mean), cell.root.has(mean))
    if INDUCTIVE in case.solvers:
        alone = _accuracies(case, Selection(INDUCTIVE)).mean()
        notes.append(f"the inductive classifier has {100 * alone:.4g} %")
    low, high = cell.mean - cell.deviation, cell.mean + cell.deviation
    return Measured(np.array([mean]), low, high, "; ".join(notes), text)


@measure
def above(case: Case, printed: Mapping[str, Spread], runs: Selection) -> Measured:
    """Measure how far the mean accuracy over the repeats is above a printed one."""
    found = _accuracies(case, runs)
    more = np.array([found.mean() - printed[case.dataset].mean])
    return Measured(more, text=f"{100 * more[0]:+.1f} points")


@measure
def deviation(case: Case, printed: Mapping[str, Spread], runs: Selection) -> Measured:
    """Measure the deviation of the accuracy over the repeats; the printed one is its limit."""
    found, cell = _accuracies(case, runs), printed[case.dataset]
    said = _as_variance(*(found.std() <= of.deviation for of in (cell, cell.root)))
    return Measured(np.array([found.std()]), high=cell.deviation, note="".join(said))


@measure
def objectives(case: Case, runs: Selection, others: Selection) -> Measured:
    """Measure the final objective over that of other runs, for each repeat."""
    pairs = same_seed(runs.by_seed(case), others.by_seed(case), "no two runs on the same split")
    right = 1.0 - np.mean([[error(run) for run in pair] for pair in pairs], axis=0)
    note = f"mean accuracy {percent(right[0])} against {percent(right[1])}"
    return Measured(np.divide(*ends(pairs, "primal").T), note=note)


# ---- theorems ---------------------------------------------------------------------------------


@measure
def largest_rise(case: Case, runs: Selection) -> Measured:
    """Measure the largest relative rise of L_ρ between two rows where (18) holds."""
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
def residual_left(case: Case, runs: Selection) -> Measured:
    """Measure the final residual over the largest one."""
    of = [run.frame["residual"] for run in runs.of(case)]
    return Measured(np.array([each.iloc[-1] / each.max() for each in of]))


@measure
def supervised_gap(case: Case, runs: Selection) -> Measured:
    """Measure the bound on α's gap to (27) over the objective; note when labels changed last."""
    found, last = [], []
    for run in runs.of(case):
        end = run.frame.iloc[-1]
        found.append(abs(float(end["supervised_gap"])) / float(end["primal"]))
        changed = run.frame["iteration"][run.frame["label_changes"] > 0]
        last.append(f"{changed.max() if changed.size else 0:.0f} of {end['iteration']:.0f}")
    note = f"the last row in which labels change is iteration {', '.join(last)}"
    return Measured(np.array(found), note=note)
