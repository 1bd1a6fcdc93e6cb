"""The numbers of Figure 6: what the automatic selection makes of working sets and passes.

.. code-block:: text

    planes per example     mean size of the working sets
    passes per iteration   approximate passes, on average since the evaluation before:
                           (new approximate calls) / (new exact calls)

Only runs that keep working sets have such curves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.curves import tabulate
from ssvm_bench.figures.kind import CurveFigure, Kind, Section
from ssvm_bench.results.trace import Trace

QUANTITIES = ("planes per example", "approximate passes per iteration")


def selection(traces: Sequence[Trace], axis: str = "iteration") -> pd.DataFrame:
    """Return the curves of the figure, as `curves.tabulate` does."""
    return tabulate(with_working_sets(traces), _values, axis, log=False)


def with_working_sets(traces: Sequence[Trace]) -> list[Trace]:
    """Return the runs whose solver keeps planes."""
    return [trace for trace in traces if trace.frame["working_set_mean"].max() > 0]


def _values(trace: Trace) -> dict[str, np.ndarray]:
    approximate, exact = (
        np.diff(trace.frame[name].to_numpy(float), prepend=np.nan)
        for name in ("approx_calls", "oracle_calls")
    )
    passes = np.divide(approximate, exact, out=np.full_like(exact, np.nan), where=exact > 0)
    planes = trace.frame["working_set_mean"].to_numpy(float)
    return dict(zip(QUANTITIES, (planes, passes), strict=True))


FIGURE = CurveFigure(
    "Mean size of the working sets, and approximate passes per iteration",
    file="selection",
    chosen=with_working_sets,
    tabulate=lambda traces, _, axis: selection(traces, axis),
    log=False,
)
KIND = Kind(
    "selection",
    Choices(("iteration",)),
    FIGURE.outputs,
    Section(
        "selection",
        "Working sets and approximate passes",
        "No run kept planes of former iterations.",
    ),
    FIGURE.of_instance,
)
