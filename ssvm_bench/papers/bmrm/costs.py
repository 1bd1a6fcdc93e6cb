"""The cost of each bundle method until it stops, for each λ: the numbers of the report's Table 2.

.. code-block:: text

    iterations   oracle passes until the relative gap is at most ε
    seconds      CPU seconds until then
    in the QP    qp_time / time at the end: the share of the inner quadratic programs
    in products  gram_time / time: the share of the inner products of new planes with all others
    rejected     points that Algorithm 2 rejected; its own iterations are the passes without these
    speed-up     seconds of BMRM / seconds, on the same problem with the same ε
    rises        share of the evaluated iterations in which P(w) rises, ``primal_rises``
    above        geometric mean over the evaluated iterations of P(w) / (its least so far), minus 1:
                 how far a curve on a log axis is above its lower envelope; from iteration 1 on,
                 because BMRM first moves from w = 0 to a point far above it
    QPs          reduced problems solved per iteration of Algorithm 1 or 2

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
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ssvm_bench.papers.bmrm import bundle_runs
from ssvm_bench.papers.bmrm.bundle_runs import Method
from ssvm_bench.results.table import Run, grouped
from ssvm_bench.results.words import NONE
from ssvm_bench.solvers.bundle.bmrm import ACCEPT

BASELINE = Method("bmrm")
RANGES = ("iterations", "seconds", "speedup")
ENDS = ("from", "to")
COLUMNS = [
    *(*bundle_runs.INSTANCE, "lam", "lam_n", "report_lam", "epsilon", *bundle_runs.METHOD),
    *("repeats", "converged", *(f"{name}_{end}" for name, end in product(RANGES, ENDS))),
    *("qp_share", "product_share", "rises", "above", "start_iterations", "start_seconds"),
    *("beside_seconds", "qps", "rejected", "report_iterations", "report_speedup"),
]
SGD_PASSES = 10
TIMES = ("qp_time", "gram_time")
REJECTS = ACCEPT[0]
"""The acceptance rule that can reject a point."""

MEASURED, AFTER_START, REPORT_PASS = "", "without SGD", "at the report's pass"

Row: TypeAlias = dict[str, Any]


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


def of(row: Row, name: str) -> Range:
    """Return one of ``RANGES`` of a row of the table."""
    return Range(row[f"{name}_from"], row[f"{name}_to"])


def rows_of(table: pd.DataFrame) -> list[Row]:
    """Return the rows of the table."""
    columns = {name: table[name].tolist() for name in table}  # much faster than to_dict
    numbers = zip(*columns.values(), strict=True)
    rows: list[Any] = [dict(zip(columns, row, strict=True)) for row in numbers]
    return rows


def method_of(row: Row) -> Method:
    """Return the method of a row of the table, without its options."""
    return Method(row["solver"].partition(" ")[0], row["P"])


def costs(traces: Sequence[Run]) -> pd.DataFrame:
    """Return the costs of each method at each λ at which there are runs of BMRM.

    Returns
    -------
    DataFrame
        One row per method and λ, from the largest: ``bundle_runs.INSTANCE``, ``lam``, ``lam_n``
        (our λ times n), ``report_lam`` (the report's λ that it is compared with), ``epsilon``,
        ``solver`` (the method's label), ``title``, ``P``, ``options``, ``repeats``, ``converged``
        (how many repeats stopped at their ε), ``RANGES`` as two columns each, ``…_from`` and
        ``…_to`` (infinite if unknown), ``qp_share``, ``product_share``, ``rises``, ``above``,
        ``start_iterations`` and ``start_seconds`` (of SGD, before w₁), ``beside_seconds`` (QPs and
        products), ``qps``, ``rejected``, ``report_iterations`` and ``report_speedup``. NaN where
        there is no value.
    """
    runs = bundle_runs.runs(traces)
    last = pd.DataFrame([_end(trace) for trace in runs["trace"]], columns=list(MEDIANS))
    for name in ("iterations", "seconds"):
        last[f"{name}_to"] = last[f"{name}_from"].where(runs["converged"], math.inf)
    keys = [*bundle_runs.PROBLEM, "epsilon", *bundle_runs.METHOD]
    medians = {str(name): (name, lambda ends: ends.median(skipna=False)) for name in last}
    counts = {"repeats": ("converged", "size"), "converged": ("converged", "sum")}
    of_method = runs.join(last).groupby(keys, sort=False, as_index=False)
    table = _with_speedups(of_method.agg(**counts, **medians))
    rows = rows_of(table)
    table["report_lam"] = [bundle_runs.report_lam(row) for row in rows]
    for name in ("iterations", "speedup"):
        table[f"report_{name}"] = [bundle_runs.printed(row, name, method_of(row)) for row in rows]
    return table


MEDIANS = (
    *("iterations_from", "seconds_from", "qp_share", "product_share", "rises", "above"),
    *("start_iterations", "start_seconds", "beside_seconds", "qps", "rejected"),
)
"""Quantities at the ends of runs whose medians `costs` returns."""


def _end(trace: Run) -> tuple[float, ...]:
    """Return ``MEDIANS`` of a run."""
    frame, solver = trace.frame, trace.solver_options
    last = frame.iloc[-1]
    # a share of counted work in measured seconds has no meaning
    seconds = math.nan if trace.clock == "work" else last["time"]
    shares = [last.get(name, math.nan) / (seconds or math.nan) for name in TIMES]
    # rises cannot be counted in the rows: the stored trace of a long run has only some of them
    rises = trace.end.get("primal_rises")
    rises = math.nan if rises is None else rises
    primal = frame.loc[frame["iteration"] > 0, "primal"]
    above = math.expm1(np.log(primal / primal.cummin()).mean())
    start = _start(trace)
    beside = sum(last.get(name, math.nan) for name in TIMES)
    can_reject = solver["name"].startswith("prox") and solver.get("accept", REJECTS) == REJECTS
    rejected = last.get("rejected", math.nan if can_reject else 0.0)
    qps = last.get("qps", math.nan) / max(last["iteration"] - start[0] - rejected, 1)
    ends = last["iteration"], last["cpu_time"], *shares, rises, above
    return (*ends, *start, beside, qps, rejected)


def _start(trace: Run) -> tuple[float, float]:
    """Return the iterations and seconds of SGD before w₁ was evaluated; 0 without SGD."""
    if trace.solver_options.get("init") != "sgd":
        return 0.0, 0.0
    at = trace.frame[trace.frame["iteration"] == SGD_PASSES]
    if not len(at):
        return math.nan, math.nan
    row = at.iloc[0]
    return SGD_PASSES - 1.0, row["cpu_time"] - row["oracle_time"] / (2 * SGD_PASSES)


def _with_speedups(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of problems that BMRM has runs on, with their speed-ups."""

    def problem_of(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in bundle_runs.PROBLEM)

    found, rows = [], rows_of(table)
    plain = grouped((row for row in rows if method_of(row) == BASELINE), problem_of)
    for row in (row for row in rows if problem_of(row) in plain):
        bases = [base for base in plain[problem_of(row)] if base["epsilon"] == row["epsilon"]]
        speedup = UNKNOWN
        if len(bases) == 1:  # with several, it is not known which one is meant
            faster = of(bases[0], "seconds").over(of(row, "seconds"))
            speedup = Range(1.0, 1.0) if method_of(row) == BASELINE else faster
        found.append({**row, "speedup_from": speedup.low, "speedup_to": speedup.high})
    return pd.DataFrame(found, columns=COLUMNS)


# ---- readings ---------------------------------------------------------------------------------


def readings(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return each reading of the table that its runs allow; the first is the table itself."""
    found, after = {MEASURED: table}, table.copy()
    for name, end in product(("iterations", "seconds"), ENDS):
        after[f"{name}_{end}"] -= after[f"start_{name}"]
    if (table["start_iterations"] > 0).any():
        found[AFTER_START] = _with_speedups(after)
    passes = pd.Series([bundle_runs.pass_seconds(row) for row in rows_of(table)], table.index)
    if (passes > 0).all() and (table["beside_seconds"] >= 0).all():
        for end in ENDS:
            after[f"seconds_{end}"] = after[f"iterations_{end}"] * passes + after["beside_seconds"]
        found[REPORT_PASS] = _with_speedups(after)
    return found


def of_report(dataset: str) -> pd.DataFrame:
    """Return the report's numbers for a dataset as a table like that of `costs`, perhaps empty."""
    return _with_speedups(pd.DataFrame(bundle_runs.printed_rows(dataset)))
