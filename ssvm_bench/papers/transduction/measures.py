"""What the transduction paper's claims are judged by: one number per draw of the data, from traces.

.. code-block:: text

    error           1 − accuracy of the last row: the share of wrong labels among those not observed
    accuracy        its mean over the repeats; deviation: its standard deviation
    more overlap    IoU of the last row, minus that of the other method, repeat by repeat
    largest rise    max (L_ρ⁺ − L_ρ)/|L_ρ| over iterations at an unchanged ρ for which (18) holds
    residual left   ‖Kα − β‖ of the last row, relative to its largest value
    gap to (27)     supervised_gap of the last row, relative to the objective
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ssvm_bench.claims.cases import Case, Runs, column, same_seed
from ssvm_bench.claims.claim import Measured, UnmeasurableError, measure
from ssvm_bench.papers.transduction.printed import Spread
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import percent


def error(run: Trace) -> float:
    """Return the share of wrong labels at the end of a run.

    Raises
    ------
    UnmeasurableError
        It is no run of transduction.
    """
    return 1.0 - float(column(run, "accuracy")[-1])


@measure
def errors(case: Case, runs: Runs) -> Measured:
    """Measure the share of wrong labels; tell how many runs had converged."""
    repeats = runs.of(case)
    found = np.array([error(run) for run in repeats])
    ended = sum(run.summary.get("stop_reason") == "converged" for run in repeats)
    note = f"mean {percent(found.mean())}; {ended} of {len(repeats)} runs have converged"
    return Measured(found, note=note)


# ---- Table 1 ----------------------------------------------------------------------------------


def _accuracies(case: Case, solver: str) -> np.ndarray:
    return np.array([1.0 - error(run) for run in Runs(solver).of(case)])


@measure
def accuracy(case: Case, printed: Mapping[str, Spread], solver: str) -> Measured:
    """Measure the mean accuracy over the repeats, which is to be near what is printed, or above."""
    found, cell = _accuracies(case, solver), printed[case.dataset]
    text = f"{100 * found.mean():.4g} ± {100 * found.std():.3g} %"
    note = f"mean ± standard deviation over {found.size} splits"
    return Measured(np.array([found.mean()]), low=cell.mean - cell.deviation, note=note, text=text)


@measure
def deviation(case: Case, printed: Mapping[str, Spread], solver: str) -> Measured:
    """Measure the deviation of the accuracy over the repeats, to be below what is printed."""
    found = _accuracies(case, solver)
    if found.size < 2:
        raise UnmeasurableError("there is but one repeat")
    return Measured(np.array([found.std()]), high=printed[case.dataset].deviation)


# ---- pictures ---------------------------------------------------------------------------------


@measure
def more_overlap(case: Case, ours: Runs, baseline: Runs) -> Measured:
    """Measure how much larger our IoU is, picture by picture."""
    nothing = "no two runs are on the same picture"
    pairs = same_seed(ours.by_seed(case), baseline.by_seed(case), nothing)
    both = [(overlap(one), overlap(other)) for one, other in pairs]
    means = np.mean(both, axis=0)
    note = f"mean IoU {percent(means[0])} against {percent(means[1])}"
    return Measured(np.array([a - b for a, b in both]), low=0.0, note=note)


def overlap(run: Trace) -> float:
    """Return the IoU at the end of a run. Raises as `error` does."""
    return float(column(run, "iou")[-1])


# ---- theorems ---------------------------------------------------------------------------------


@measure
def largest_rise(case: Case, runs: Runs) -> Measured:
    """Measure by how much L_ρ rises at most where (18) holds."""
    rises, checked = [], 0
    for run in runs.of(case):
        frame = run.frame
        next_to = (frame["iteration"].diff() == 1) & (frame["rho"].diff() == 0)
        holds = next_to & (frame["condition_18"].shift() > 1)
        values = frame["augmented_lagrangian"]
        checked += int(holds.sum())
        if not holds.any():
            raise UnmeasurableError("(18) does not hold in any two rows that follow on each other")
        rises.append(float((values.diff() / values.abs())[holds].max()))
    return Measured(np.array(rises), note=f"{checked} iterations")


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
    note = f"labels change for the last time in iteration {', '.join(last)}"
    return Measured(np.array(found), note=note)
