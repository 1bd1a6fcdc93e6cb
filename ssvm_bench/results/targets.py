"""Targets that runs reach, when they do, and what two runs have in common.

.. code-block:: text

    target(runs)                                what all of some runs reach
    gaps_reached(curves)                        relative gaps to which curves can be compared
    reach(run, target, x)                       where a run first reaches a target
    to_common_target(pairs, x, y)               where both runs of each pair do
    common(one, other, y)                       the values at the iterations that both have
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ssvm_bench.results.curves import crossing, ensure, first, least_positive
from ssvm_bench.results.table import DERIVED, TINY, Run

PART = 0.8
"""Share of the time of some runs within which they reach a target."""


def target(runs: Iterable[Run], y: str = "gap", what: str = "duality gap") -> float:
    """Return the smallest positive y that each of the runs reaches in `PART` of its time.

    That is the largest of the runs' smallest positive values there. Runs with the same budget that
    are as fast reach it, with a fourth of that time to spare.

    Raises
    ------
    UnmeasurableError
        If a run has no positive value there; ``what`` is y in this message.
    """

    def early(run: Run) -> np.ndarray:
        return run[y][run["time"] <= PART * run["time"][-1]]

    return max(least_positive(early(run), what) for run in runs)


DECADES = (1e-1, 1e-2, 1e-3)
"""Relative gaps that are compared wherever a curve reached them."""


LARGEST = 0.9
"""The largest relative gap of one digit that says something: at w = 0, it is 1."""


MORE = "more iterations (budget.max_iterations) show who is ahead"
"""What to do where no curve reached it."""


def gaps_reached(curves: Iterable[Sequence[Run]]) -> tuple[float, ...]:
    """Return relative gaps to which curves can be compared, the largest first.

    They are the smallest ones that every curve, most of the curves, and any curve reached, the
    latter two if they are not below the `DECADES`; and those of the decades that any curve
    reached. The former are rounded up to one digit. None is below a gap at which a run was told to
    end (`Run.ended_at`): what it would have needed to a smaller one is not known. A gap of 1 says
    nothing, so none is above `LARGEST`; if no curve got there, that is the only one.

    Parameters
    ----------
    curves : iterable of sequences of Run
        The repeats of each curve. It reached what more than half of them did; the gap of a solver
        without a dual is that in ``relative_distance``.
    """
    least, asked = [], 0.0
    for repeats in curves:
        known = [run["relative_distance"] for run in repeats]
        ends = [np.min(gap, where=np.isfinite(gap), initial=math.inf) for gap in known]
        least.append(float(np.sort(ends)[len(ends) // 2]))
        asked = max(asked, *(run.ended_at for run in repeats))
    least = sorted(_one_digit(max(gap, asked)) for gap in least) or [math.inf]
    best, half = least[0], least[len(least) // 2]
    found = {least[-1], max(half, DECADES[-1]), max(best, DECADES[-1])}
    found |= {gap for gap in DECADES if gap >= best}
    return tuple(sorted((gap for gap in found if gap <= LARGEST), reverse=True)) or (LARGEST,)


def _one_digit(value: float) -> float:
    """Return the smallest number of one digit that is not below a value, nor below `TINY`.

    >>> _one_digit(0.05), _one_digit(0.0501), _one_digit(0.97), _one_digit(-1.0)
    (0.05, 0.06, 1.0, 1e-12)
    """
    value = max(value, TINY)
    near = float(f"{value:.0e}")
    if near >= value:
        return near
    return float(f"{near + 10.0 ** math.floor(math.log10(value)):.0e}")


def reach(run: Run, target: float, x: str, y: str = "gap") -> float:
    """Return the x at which a run's y is first at most a target; infinite if it never is.

    Time is interpolated in log y between two rows; all else is that of the first evaluation.
    """
    return (crossing if x == "time" else first)(run[x], run[y], target)


def same_seed(
    here: Mapping[int, Run],
    there: Mapping[int, Run],
    otherwise: str = "no two runs with the same seed",
) -> list[tuple[Run, Run]]:
    """Return pairs of runs with the same seed; raise `UnmeasurableError` if there are none."""
    pairs = [(here[seed], there[seed]) for seed in here if seed in there]
    ensure(pairs, otherwise)
    return pairs


def to_common_target(
    pairs: Sequence[Sequence[Run]], x: str, y: str, least: float = 0.0, what: str = "duality gap"
) -> tuple[float, np.ndarray]:
    """Return the smallest positive y that all runs reach, at least ``least``, and the x of each.

    The x have the shape (pairs, 2); curves are read off as a log plot draws them (`crossing`).

    Raises
    ------
    UnmeasurableError
        If a run has no positive y; ``what`` is y in this message.
    """
    target = max(least, *(least_positive(run[y], what) for pair in pairs for run in pair))
    return target, np.array([[crossing(run[x], run[y], target) for run in pair] for pair in pairs])


class Common(NamedTuple):
    """The iterations ≥ 1 at which both of two runs have a value, and these values.

    An iteration without an evaluation counts as the next one with an evaluation.
    """

    iterations: np.ndarray
    one: np.ndarray
    other: np.ndarray

    @property
    def behind(self) -> np.ndarray:
        """The iterations at which the other value is not lower."""
        return self.iterations[self.other >= self.one]

    @property
    def share_below(self) -> float:
        """The share of iterations, evaluated or not, at which the other value is lower."""
        stands_for = np.diff(self.iterations, prepend=0)
        return float(stands_for[self.other < self.one].sum() / self.iterations[-1])


def common(one: Run, other: Run, y: str, other_y: str = "") -> Common:
    """Return what two runs have in common; of the other one ``other_y``, by default y.

    Iteration 0 is left out: w is the same there for all solvers.
    """

    def known(run: Run, name: str) -> tuple[np.ndarray, np.ndarray]:
        at = run["iteration"].astype(int)
        values = run[name] if name in run or name in DERIVED else np.full(len(run), np.nan)
        where = (at > 0) & ~np.isnan(values)
        return at[where], values[where]

    (k, here), (m, there) = known(one, y), known(other, other_y or y)
    at, of_one, of_other = np.intersect1d(k, m, assume_unique=True, return_indices=True)
    return Common(at, here[of_one], there[of_other])
