"""What the transduction paper's claims are judged by: one number per draw of the data, from traces.

.. code-block:: text

    error     1 − accuracy of the last row: the share of wrong labels among those that are not told
"""

from __future__ import annotations

import math

import numpy as np

from ssvm_bench.papers.cases import Case, Runs
from ssvm_bench.papers.claim import Measured, UnmeasurableError, measure
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import percent


def error(run: Trace) -> float:
    """Return the share of wrong labels at the end of a run.

    Raises
    ------
    UnmeasurableError
        It is no run of transduction.
    """
    if "accuracy" not in run.frame:
        raise UnmeasurableError("a run has no column accuracy")
    return 1.0 - float(run.frame["accuracy"].iloc[-1])


@measure
def errors(case: Case, runs: Runs, low: float = -math.inf, high: float = math.inf) -> Measured:
    """Measure the share of wrong labels; tell how many runs had converged."""
    repeats = runs.of(case)
    found = np.array([error(run) for run in repeats])
    ended = sum(run.summary.get("stop_reason") == "converged" for run in repeats)
    note = f"mean {percent(found.mean())}; {ended} of {len(repeats)} runs have converged"
    return Measured(found, low, high, note)
