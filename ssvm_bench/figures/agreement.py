"""Whether the solvers agree on the optimum: the distance of each from the best value known.

.. code-block:: text

    primal distance   (P − F⋆)/|F⋆|      P the lowest primal value of the run
    dual distance     (F⋆ − F)/|F⋆|      F the highest dual value of the run
    F⋆ = max F over every run ever made on the problem instance

The optimum is between F⋆ and the lowest primal value P⋆ of these runs. So a primal distance is an
upper bound of the true one, and a dual distance is too low by at most (P⋆ − F⋆)/|F⋆|.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.document import TEXTS, Cells, Table, bold, table_of
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.results.repeats import repeats_of
from ssvm_bench.results.trace import INSTANCE_COLUMNS, BestValues, Trace, columns_of
from ssvm_bench.results.words import number

COLUMNS = [
    *(*INSTANCE_COLUMNS, "known_to", "solver", "repeats"),
    *("stopped_by", "passes", "time", "primal", "dual", "agrees_to"),
]


def agreement(traces: Sequence[Trace], best: BestValues) -> pd.DataFrame:
    """Return the largest distances, over the repeats, of each solver on each problem instance.

    Returns
    -------
    DataFrame
        ``COLUMNS``, one row per solver where F⋆ is not 0. ``known_to`` is (P⋆ − F⋆)/|F⋆|;
        ``passes`` (calls / n) and ``time`` (seconds) are the costs of a whole run; ``dual`` is NaN
        for a solver without a dual value; ``agrees_to`` is the largest of the two distances and
        ``known_to``, rounded up to a power of ten.
    """
    rows = []
    for (problem, label), repeats in repeats_of(traces).items():
        known = best[problem]
        if known.dual == 0 or not math.isfinite(known.dual):
            continue
        ends = pd.concat([trace.frame.iloc[[-1]] for trace in repeats])
        primal = max(trace.frame["primal"].min() for trace in repeats) - known.dual
        dual = known.dual - min(trace.frame["dual"].max() for trace in repeats)
        known_to = (known.primal - known.dual) / abs(known.dual)
        distances = [float(value) / abs(known.dual) for value in (primal, dual)]
        row = {**columns_of(repeats[0].metadata), "known_to": known_to, "solver": label}
        row |= {"repeats": len(repeats)}
        reasons = dict.fromkeys(str(trace.summary.get("stop_reason")) for trace in repeats)
        row["stopped_by"] = ", ".join(reasons)
        row["passes"] = float(ends["oracle_calls"].max()) / row["n"]
        row["time"] = float(ends["time"].max())
        row |= dict(zip(("primal", "dual"), distances, strict=True))
        largest = np.nanmax([*distances, known_to])
        row["agrees_to"] = 10.0 ** math.ceil(math.log10(largest) - 1e-9) if largest > 0 else 0.0
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per problem instance, the best agreement in bold."""
    for _, rows in table.groupby(["fingerprint", "lam"], sort=False):
        nearest = rows["agrees_to"].min()
        known = f"{style.problem_title(rows)}: optimum known to {rows['known_to'].iloc[0]:.1g}"
        yield table_of(known, CELLS, rows.assign(nearest=nearest).to_dict("records"))


CELLS: Cells = {
    "solver": lambda row: f"{style.solver_label(row['solver'])} (`{row['solver']}`)",
    "passes": lambda row: f"{row['passes']:.0f}",
    "seconds": lambda row: f"{row['time']:.3g}",
    "stopped by": lambda row: row["stopped_by"],
    "primal distance": lambda row: number(row["primal"], ".1e"),
    "dual distance": lambda row: number(row["dual"], ".1e"),
    "agrees to": lambda row: bold(f"{row['agrees_to']:g}", row["agrees_to"] == row["nearest"]),
}


def _outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    table = agreement(data.traces, data.best)
    title = "How far each solver is from the optimum"
    yield Output("agreement", table, title, [TEXTS["agreement"], *tables(table)])


KIND = Kind("agreement", Choices(("table",)), _outputs)
