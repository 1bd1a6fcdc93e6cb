"""The cost of each bundle method until it stops, for each λ: the numbers of the report's Table 2.

.. code-block:: text

    iterations   oracle passes until the relative gap is at most ε
    seconds      CPU seconds until then; unknown if the run's clock counts work
    in the QP    qp_time / time at the end: the share of the inner quadratic programs
    in products  gram_time / time: the share of the inner products of new planes with all others
    rejected     points that Algorithm 2 rejected; its own iterations are the passes without these
    speed-up     seconds of BMRM / seconds, on the same problem with the same ε
    rises        share of the evaluated iterations in which P(w) rises, ``primal_rises``
    above        geometric mean over the evaluated iterations of P(w) / (its least so far), minus 1:
                 how far a curve on a log axis is above its lower envelope; from iteration 1 on,
                 because BMRM first moves from w = 0 to a point far above it
    QPs          reduced problems solved per iteration of Algorithm 1 or 2

The BCFW family (`OTHERS`) has no ε: its costs are those at the first evaluation at which the
relative gap is at most `EPSILON`, and its runs may continue, to bound the optimum.

All are medians over repeats. A run that ended before its ε would have cost more than it did. Its
iterations and seconds are ranges from what it took to infinity; so are numbers computed from them.

**Readings.** The report does not say whether its numbers include the ten passes of SGD, and its
passes took other times than ours. So the same runs are read in three ways:

.. code-block:: text

    (as measured)         every pass and second, including those of SGD and its ten evaluations
    without SGD           the evaluation of w₁ is the first iteration; it takes a twentieth of the
                          oracle's seconds in the start, which calls it twenty times for each term
    at the report's pass  without SGD; an iteration takes as long as one of the report's BMRM at its
                          largest λ, where QPs are small; our own seconds outside the oracle (inner
                          QPs and products of planes) are added
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.papers.bmrm.bundle_runs import (
    BMRM,
    EPSILON,
    OTHERS,
    Method,
    Setup,
    pass_seconds,
    printed,
    printed_table,
    setups,
)
from ssvm_bench.results.table import Run, grouped
from ssvm_bench.results.words import NONE

SGD_PASSES = 10
ACCEPTS_ALL = "always"
"""The acceptance rule that rejects no point."""

MEASURED, AFTER_START, REPORT_PASS = "", "without SGD", "at the report's pass"


class Range(NamedTuple):
    """What is known of a number.

    If the ends are equal, they are the number; otherwise it is above ``low`` and at most ``high``.
    """

    low: float
    high: float

    def below(self, other: Range) -> bool | None:
        """Return whether this number is smaller; None if that is not known."""
        if self.high < other.low or self.high == other.low < other.high:
            return True
        return False if self.low >= other.high else None

    def plus(self, number: float) -> Range:
        """Return the range of this number plus another one."""
        return Range(self.low + number, self.high + number)

    def times(self, factor: float) -> Range:
        """Return the range of this number times a positive one."""
        return Range(self.low * factor, self.high * factor)

    def over(self, other: Range) -> Range:
        """Return this number divided by the other one, both positive."""
        if not (self.low > 0 and other.low > 0):
            return UNKNOWN
        low = 0.0 if math.isinf(other.high) else self.low / other.high
        return Range(low, self.high / other.low)

    def __format__(self, form: str) -> str:
        """Return the range as text, with its ends in a number format."""
        return self.text(f"{{:{form}}}".format)

    def text(self, show: Callable[[float], str]) -> str:
        """Return the range as text, e.g. ``> 8000``."""
        if math.isnan(self.low) or (self.low == 0 and math.isinf(self.high)):
            return NONE
        if self.low == self.high:
            return show(self.low)
        if math.isinf(self.high):
            return f"> {show(self.low)}"
        return f"< {show(self.high)}" if self.low == 0 else f"{show(self.low)}–{show(self.high)}"


UNKNOWN = Range(math.nan, math.nan)


class Cost(NamedTuple):
    """What a method costs at one λ: medians over repeats, NaN where there is no value.

    ``converged`` is how many repeats stopped at their ε; ``start_iterations`` and ``start_seconds``
    are those of SGD, before w₁; ``own_iterations`` those from the evaluation of w₁ on, NaN without
    SGD; ``beside_seconds`` those of QPs and products.
    """

    setup: Setup
    repeats: int
    converged: int
    iterations: Range
    seconds: Range
    speedup: Range = UNKNOWN
    qp_share: float = math.nan
    product_share: float = math.nan
    rises: float = math.nan
    above: float = math.nan
    start_iterations: float = math.nan
    start_seconds: float = math.nan
    own_iterations: float = math.nan
    beside_seconds: float = math.nan
    qps: float = math.nan
    rejected: float = math.nan

    @property
    def method(self) -> Method:
        """The method."""
        return self.setup.method

    @property
    def lam_n(self) -> float:
        """Our λ times n."""
        return self.setup.lam_n

    @property
    def row(self) -> dict[str, Any]:
        """The cost as columns of a table, where a range has two, and the report's numbers."""
        found = self.setup.columns
        for name, value in zip(self._fields[1:], self[1:], strict=True):
            if isinstance(value, Range):
                found |= {f"{name}_from": value.low, f"{name}_to": value.high}
            else:
                found[name] = value
        reported = ("iterations", "speedup")
        return found | {f"report_{name}": printed(self.setup, name) for name in reported}


def costs(traces: Sequence[Run]) -> list[Cost]:
    """Return the costs of each method at each λ at which BMRM has runs, from the largest λ."""
    found = []
    for setup, runs in setups(traces).items():
        each = [_of_run(setup, run) for run in runs]
        # the numbers of a range are in columns
        middle = [np.median(values, axis=0) for values in zip(*(c[3:] for c in each), strict=True)]
        numbers = (Range(*map(float, m)) if np.ndim(m) else float(m) for m in middle)
        converged = sum(cost.converged for cost in each)
        found.append(Cost._make([setup, len(each), converged, *numbers]))
    return _with_speedups(found)


def table(of: Sequence[Cost]) -> pd.DataFrame:
    """Return costs as a table, with a row for each."""
    return pd.DataFrame([cost.row for cost in of])


def _of_run(setup: Setup, run: Run) -> Cost:
    """Return the costs of one run."""
    at, reached = _end(setup, run)

    def last(name: str, otherwise: float = math.nan) -> float:
        return float(run[name][at]) if name in run else otherwise

    is_other = setup.method.solver in OTHERS
    done = last("oracle_calls") / run.n if is_other else last("iteration")
    spent = done, last("cpu_time")
    passes, seconds = (Range(end, end if reached else math.inf) for end in spent)
    time, beside = last("time") or math.nan, last("qp_time") + last("gram_time")
    if is_other:
        beside = spent[1] - last("oracle_time")
    if run.clock == "work":  # then the seconds of a busy machine are no costs, and no shares
        seconds, time, beside = UNKNOWN, math.nan, math.nan
    # rises cannot be counted in the rows: the stored trace of a long run has only some of them
    rises = run.end.get("primal_rises")
    primal = run["primal"][: at + 1][run["iteration"][: at + 1] > 0]
    begun, begun_seconds = _start(run)
    prox, accept = run.solver.startswith("prox"), run.solver_options.get("accept")
    rejected = last("rejected", math.nan if prox and accept != ACCEPTS_ALL else 0.0)
    return Cost(
        setup,
        1,
        reached,
        passes,
        seconds,
        qp_share=last("qp_time") / time,
        product_share=last("gram_time") / time,
        rises=math.nan if rises is None else rises,
        above=math.expm1(np.log(primal / np.minimum.accumulate(primal)).mean()),
        start_iterations=begun,
        start_seconds=begun_seconds,
        own_iterations=done - begun if begun > 0 else math.nan,
        beside_seconds=beside,
        qps=last("qps") / max(spent[0] - begun - rejected, 1),
        rejected=rejected,
    )


def _end(setup: Setup, run: Run) -> tuple[int, bool]:
    """Return the row of a run that its costs are read from, and whether it has reached ε there."""
    if setup.method.solver not in OTHERS:
        return len(run["iteration"]) - 1, run.converged
    reached = np.flatnonzero(run["relative_distance"] <= EPSILON)
    return (int(reached[0]), True) if reached.size else (len(run["iteration"]) - 1, False)


def _start(run: Run) -> tuple[float, float]:
    """Return the iterations and seconds of SGD before w₁ was evaluated; 0 without SGD."""
    if run.solver_options.get("init") != "sgd":
        return 0.0, 0.0
    at = np.flatnonzero(run["iteration"] == SGD_PASSES)
    if not at.size:
        return math.nan, math.nan
    cpu, oracle = (float(run[name][at[0]]) for name in ("cpu_time", "oracle_time"))
    return SGD_PASSES - 1.0, cpu - oracle / (2 * SGD_PASSES)


def _with_speedups(of: Sequence[Cost]) -> list[Cost]:
    """Return the costs on problems that BMRM has runs on, with speed-ups."""
    found = []
    plain = grouped((c for c in of if c.method[:2] == BMRM[:2]), lambda c: c.setup.problem)
    for cost in (cost for cost in of if cost.setup.problem in plain):
        same = [c for c in plain[cost.setup.problem] if c.setup.epsilon == cost.setup.epsilon]
        speedup = UNKNOWN
        if len(same) == 1:  # with several, it is not known which one is meant
            speedup = Range(1.0, 1.0) if cost is same[0] else same[0].seconds.over(cost.seconds)
        found.append(cost._replace(speedup=speedup))
    return found


# ---- readings ---------------------------------------------------------------------------------


def readings(of: Sequence[Cost]) -> dict[str, list[Cost]]:
    """Return each reading of costs that their runs allow; the first is the costs themselves."""
    found = {MEASURED: [*of]}
    after = [
        cost._replace(
            iterations=cost.iterations.plus(-cost.start_iterations),
            seconds=cost.seconds.plus(-cost.start_seconds),
        )
        for cost in of
    ]
    if any(cost.start_iterations > 0 for cost in of):
        found[AFTER_START] = _with_speedups(after)
    passes = [pass_seconds(cost.setup.data) for cost in of]
    if all(each > 0 and cost.beside_seconds >= 0 for each, cost in zip(passes, of, strict=True)):
        spent = (
            cost.iterations.times(each).plus(cost.beside_seconds)
            for each, cost in zip(passes, after, strict=True)
        )
        pairs = zip(after, spent, strict=True)
        found[REPORT_PASS] = _with_speedups([cost._replace(seconds=of) for cost, of in pairs])
    return found


def of_report(dataset: str) -> list[Cost]:
    """Return the costs that the report prints for a dataset; of others than its own, none."""
    rows = printed_table(dataset)
    found = (Cost(setup, 0, 0, Range(k, k), Range(spent, spent)) for setup, k, spent in rows)
    return _with_speedups([*found])
