"""Table 2 of the bundle-method report: what each method costs until it stops, for each λ.

.. code-block:: text

    iterations   oracle passes until the relative gap is at most ε
    seconds      CPU seconds until then
    in the QP    qp_time / time at the end: the share of the inner quadratic programs
    speed-up     seconds of BMRM / seconds, on the same problem with the same ε
    rises        share of the evaluated iterations in which P(w) rises, ``primal_rises``

All are medians over repeats. A run that ended before its ε would have cost more than it did: its
iterations and seconds are ranges from there to infinity, and so is what is computed from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.papers.bmrm import bundle_runs
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE

BASELINE = "bmrm"
RANGES = ("iterations", "seconds", "speedup")
COLUMNS = [
    *bundle_runs.INSTANCE,
    *("lam", "lam_n", "epsilon", "solver", "title", "P", "options", "repeats", "converged"),
    *(f"{name}_{end}" for name in RANGES for end in ("from", "to")),
    *("qp_share", "rises", "report_iterations", "report_speedup"),
]


class Range(NamedTuple):
    """What is known of a number: that both ends are it, or that it is above ``low``.

    In the second case, it is at most ``high``.
    """

    low: float
    high: float

    def below(self, other: Range) -> bool | None:
        """Tell whether this number is smaller; None if that is not known."""
        if self.high < other.low or self.high == other.low < other.high:
            return True
        return False if self.low >= other.high else None

    def over(self, other: Range) -> Range:
        """Return this number divided by the other one, both positive."""
        if not (self.low > 0 and other.low > 0):
            return UNKNOWN
        low = 0.0 if math.isinf(other.high) else self.low / other.high
        return Range(low, self.high / other.low)

    def text(self, show: Callable[[float], str]) -> str:
        """Return it as text, e.g. ``> 8000``."""
        if math.isnan(self.low) or (self.low == 0 and math.isinf(self.high)):
            return NONE
        if self.low == self.high:
            return show(self.low)
        if math.isinf(self.high):
            return f"> {show(self.low)}"
        return f"< {show(self.high)}" if self.low == 0 else f"{show(self.low)}–{show(self.high)}"


UNKNOWN = Range(math.nan, math.nan)


def costs(traces: Sequence[Trace]) -> pd.DataFrame:
    """Return what each method costs at each λ at which there are runs of BMRM.

    Returns
    -------
    DataFrame
        One row per method and λ, from the largest: ``bundle_runs.INSTANCE``, ``lam``, ``lam_n``
        (the report's λ), ``epsilon``, ``solver`` (the method's label), ``title``, ``P``,
        ``options``, ``repeats``, ``converged`` (how many of them stopped at their ε), ``RANGES``
        as two columns each, ``…_from`` and ``…_to`` (infinite if unknown), ``qp_share``,
        ``rises``, ``report_iterations`` and ``report_speedup``. NaN where there is no value.
    """
    rows = []
    problems = grouped(bundle_runs.runs(traces), lambda run: (run.instance, run.lam, run.lam_n))
    for (instance, lam, lam_n), runs in problems.items():
        of_method = grouped(runs, lambda run: (run.method, run.epsilon))
        bases = [key for key in of_method if key[0].solver == BASELINE]
        for (method, epsilon), repeats in of_method.items() if bases else ():
            of_base = [of_method[key] for key in bases if key[1] == epsilon]
            row = {**instance._asdict(), "lam": lam, "lam_n": lam_n, "epsilon": epsilon}
            row |= {"solver": method.label, "title": method.title}
            row |= {"P": method.P, "options": method.options, "repeats": len(repeats)}
            row["converged"] = sum(run.converged for run in repeats)
            seconds = _cost(repeats, "cpu_time")
            cost = {
                "iterations": _cost(repeats, "iteration"),
                "seconds": seconds,
                "speedup": _speedup(of_base, method, seconds),
            }
            row |= {f"{name}_from": found.low for name, found in cost.items()}
            row |= {f"{name}_to": found.high for name, found in cost.items()}
            row["qp_share"] = float(np.median([_qp_share(run.trace) for run in repeats]))
            row["rises"] = float(np.median([_rises(run.trace) for run in repeats]))
            for name in ("iterations", "speedup"):
                row[f"report_{name}"] = bundle_runs.printed(row, name, method)
            rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def _speedup(
    of_base: Sequence[Sequence[bundle_runs.Run]], method: bundle_runs.Method, seconds: Range
) -> Range:
    """Return how much faster than BMRM a method is; unknown unless there is just one BMRM."""
    if len(of_base) != 1:
        return UNKNOWN
    if method.solver == BASELINE:
        return Range(1.0, 1.0)
    return _cost(of_base[0], "cpu_time").over(seconds)


def of(row: Any, name: str) -> Range:
    """Return one of ``RANGES`` of a row of the table."""
    return Range(row[f"{name}_from"], row[f"{name}_to"])


def _cost(repeats: Sequence[bundle_runs.Run], column: str) -> Range:
    """Return the median of what runs have spent at their end."""
    ends = [float(run.trace.frame[column].iloc[-1]) for run in repeats]
    highest = np.where([run.converged for run in repeats], ends, np.inf)
    return Range(float(np.median(ends)), float(np.median(highest)))


def _qp_share(trace: Trace) -> float:
    last = trace.frame.iloc[-1]
    if trace.metadata.get("clock") == "work" or "qp_time" not in last or not last["time"] > 0:
        return math.nan  # counted work and measured seconds have no ratio
    return float(last["qp_time"] / last["time"])


def _rises(trace: Trace) -> float:
    # Not counted in the rows: of a long run, a stored trace has but some.
    rises = trace.summary.get("primal_rises")
    return math.nan if rises is None else float(rises)
