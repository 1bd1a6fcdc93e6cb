"""Figure 3 of the MP-BCFW paper, on runs: the rule that ends approximate passes.

The paper draws a sketch. Here it is the first iteration of runs that differ in the number M of its
approximate passes alone: the run with M begins with what that with M − 1 has done, so that their
ends are the points of one curve, F against time. After each pass,

.. code-block:: text

    last       (F_M − F_{M−1}) / (t_M − t_{M−1})      slope of the last segment
    iteration  (F_M − F(start)) / (t_M − t(start))    slope of the dashed line

and another pass is made while ``last > iteration``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import cases
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.figures.style import dataset_name
from ssvm_bench.results.problem_instance import BestValues
from ssvm_bench.results.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def passes(traces: Sequence[Trace], best: BestValues) -> pd.DataFrame:
    """Return a row per dataset and number of passes; 0 is after the exact pass, −1 the start.

    ``pays`` is what the rule says after the pass; ``ended`` the number of passes that the run with
    the rule made.
    """
    found = []
    for case in cases(traces, best):
        curve: dict[int, tuple[float, float]] = {}
        ended = -1
        for run in case.traces():
            solver = run.metadata["config"]["solver"]
            first, last = run.frame.iloc[0], run.frame.iloc[-1]
            if solver.get("rule") == "fixed":
                curve[int(solver["M"])] = float(last["time"]), float(last["dual"])
                curve[-1] = float(first["time"]), float(first["dual"])
            else:
                ended = int(last["approx_passes"])
        if not curve or ended < 0:
            continue
        at = sorted(curve)
        time, dual = np.array([curve[number] for number in at]).T
        latest = np.concatenate([[np.nan, np.nan], np.diff(dual)[1:] / np.diff(time)[1:]])
        whole = np.concatenate([[np.nan], (dual[1:] - dual[0]) / (time[1:] - time[0])])
        about = {"dataset": case.dataset, "ended": ended, "passes": at, "time": time, "dual": dual}
        slopes = {"last": latest, "iteration": whole, "pays": latest > whole}
        found.append(pd.DataFrame({**about, **slopes}))
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def draw(table: pd.DataFrame, title: str) -> Figure:
    """Draw each dataset twice: halfway, where another pass pays, and where the iteration ends."""
    from ssvm_bench.figures import drawing

    datasets = list(dict.fromkeys(table["dataset"]))
    notes = [
        "Black: F in the first iteration, exact pass first; dashed: the iteration's slope so far.",
        "Left: the last segment is steeper, so another pass is made. Right: it is not, and the "
        "iteration ends.",
        "Grey: what further passes would have brought.",
    ]
    shape = len(datasets), 2
    with drawing.page(title, notes, shape, ((), ())) as (figure, panels):
        for line, dataset in zip(panels, datasets, strict=True):
            curve = table[table["dataset"] == dataset].sort_values("passes")
            ended = int(curve["ended"].iloc[0])
            for panel, at in zip(line, (max(ended // 2, 1), ended), strict=True):
                _draw_panel(panel, curve, at)
                after = f"after {at} pass{'es' * (at > 1)}"
                drawing.set_heading(panel, f"{dataset_name(dataset)}: {after}")
            line[0].set_ylabel("F")
        for panel in panels[-1]:
            panel.set_xlabel("time [s], at the paper's costs")
    return figure


def _draw_panel(panel: Any, curve: pd.DataFrame, at: int) -> None:
    done = curve[curve["passes"] <= at]
    ends = done.iloc[[0, -1]]
    panel.plot(curve["time"], curve["dual"], color="#BBBBBB", marker=".", linewidth=0.8)
    panel.plot(done["time"], done["dual"], color="black", marker=".")
    panel.plot(ends["time"], ends["dual"], color="black", linestyle="--", linewidth=0.8)


def _outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    table = passes(data.traces, data.best)
    if len(table):
        yield Output("rule", table, figure=draw(table, data.title))


KIND = Kind("rule", Choices(("iteration",)), _outputs)
