"""Numbers of a run after so many iterations, for questions that no claim is about.

========  ========================================================================================
gap       (P − F) / |P|
primal    P(w)
dual      F(φ)
call      seconds of an oracle call up to there
========  ========================================================================================

They are read off the last evaluated iteration that is not later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.figures.style import solver_label
from ssvm_bench.papers.cases import Case
from ssvm_bench.papers.claim import Claim, Measured, UnmeasurableError, measure
from ssvm_bench.papers.question import Number
from ssvm_bench.results.words import counts, number, seconds


class Quantity(NamedTuple):
    """What it is, from a row of the trace, and as text; whether it is about time."""

    name: str
    of: Callable[[pd.Series], float]
    show: Callable[[float], str] = number
    timed: bool = False


QUANTITIES = {
    "gap": Quantity("relative gap", lambda row: row["gap"] / abs(row["primal"])),
    "primal": Quantity("primal value", lambda row: row["primal"]),
    "dual": Quantity("dual value", lambda row: row["dual"]),
    "call": Quantity(
        "time of an oracle call",
        lambda row: row["oracle_time"] / row["oracle_calls"],
        seconds,
        timed=True,
    ),
}


def claim(asked: Number, datasets: Iterable[str]) -> Claim:
    """Return a number as a claim about datasets that holds whatever it is."""
    quantity, solver = QUANTITIES[asked.what], solver_label(asked.solver)
    text = f"{quantity.name} of {solver} after {asked.after} iterations"
    paper = dict.fromkeys(datasets, "")
    return Claim(asked.key, "", text, "", paper, _after(asked), quantity.show, quantity.timed)


@measure
def _after(case: Case, asked: Number) -> Measured:
    """Measure a quantity of each repeat."""
    quantity = QUANTITIES[asked.what]
    runs = case.timed(asked.solver)[0] if quantity.timed else case.repeats(asked.solver)
    values, at = [], []
    for run in runs:
        iterations = run.frame["iteration"].to_numpy(int)
        if iterations[-1] < asked.after:
            raise UnmeasurableError(f"a run ended before iteration {asked.after}")
        row = run.frame[iterations <= asked.after].iloc[-1]
        values.append(float(quantity.of(row)))
        at.append(int(row["iteration"]))
    note = "" if set(at) == {asked.after} else f"evaluated at iteration {counts(at)}"
    return Measured(np.array(values), note=note)
