"""The gain of a solver over BCFW, in three sentences for a first-time reader.

The costs of the other solver are counted until its relative gap is first as small as that of BCFW
at its end (`targets.costs`). Numbers are medians over the repeats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from ssvm_bench.figures import style
from ssvm_bench.figures.kind import table_kind
from ssvm_bench.figures.targets import BASELINE, OWN, bound, costs, relative_gap
from ssvm_bench.results.repeats import repeats_of
from ssvm_bench.results.trace import BestValues, Trace, columns_of
from ssvm_bench.results.words import number, percent, seconds

NAME = "comparison"
"""The name of the kind and of its files."""


def compare(traces: Sequence[Trace], best: BestValues) -> pd.DataFrame:
    """Return the costs of solvers with a dual value on the problem instances with runs of BCFW.

    Returns
    -------
    DataFrame
        Columns of the instance; ``solver``; ``passes, time, gap, approx_passes`` at its end, the
        gap relative and the approximate passes per iteration; ``to_passes, to_time`` to the gap of
        BCFW at its end, NaN unless more than half of the repeats reached that gap.
    """

    def gap(repeats: Sequence[Trace]) -> float:
        return float(np.median([relative_gap(trace, best)[-1] for trace in repeats]))

    found: dict[str, dict[str, list[Trace]]] = {}
    for (instance, label), repeats in repeats_of(traces).items():
        if bound(repeats[0]) == OWN:
            found.setdefault(str(instance), {})[label] = repeats
    rows = []
    for solvers in (solvers for solvers in found.values() if BASELINE in solvers):
        for label, repeats in solvers.items():
            row = {**columns_of(repeats[0].metadata), "solver": label}
            ends = [trace.frame[["oracle_calls", "time"]].iloc[-1] for trace in repeats]
            calls, time = np.median(ends, axis=0)
            row |= {"passes": calls / row["n"], "time": time, "gap": gap(repeats)}
            passes = [trace.values("approx_passes")[1:].mean() for trace in repeats]
            (spent,) = costs(repeats, best, [gap(solvers[BASELINE])])
            row |= {"approx_passes": np.median(passes)}
            row |= {"to_passes": np.median(spent["calls"]) / row["n"]}
            rows.append({**row, "to_time": np.median(spent["time"])})
    return pd.DataFrame(rows).replace(np.inf, np.nan)


def sentences(table: pd.DataFrame) -> Iterator[str]:
    """Yield the sentences on each solver except BCFW."""
    for _, instance in table.groupby(["fingerprint", "lam"], sort=False):
        base = instance[instance["solver"] == BASELINE].iloc[0]
        for row in instance[instance["solver"] != BASELINE].to_dict("records"):
            of, other = style.solver_label(BASELINE), style.solver_label(str(row["solver"]))
            yield (
                f"After {base['passes']:.0f} passes of the exact oracle over the {base['n']} "
                f"examples, the gap between primal and dual is {percent(base['gap'])} of the "
                f"primal value with {of}; with {other} it is {percent(row['gap'])} after "
                f"{row['passes']:.0f}."
            )
            yield (
                f"{other} is where {of} ends after {number(row['to_passes'], '.0f')} passes and "
                f"{seconds(row['to_time'])}; {of} needs {base['passes']:.0f} passes and "
                f"{seconds(base['time'])}."
                if row["to_passes"] == row["to_passes"]
                else f"{other} does not get to where {of} ends."
            )
            if row["approx_passes"] > 0:
                made = f"{row['approx_passes']:.0f}"
                yield (
                    f"{other} keeps the planes that the oracle returned, and makes {made} "
                    f"pass{'es' * (made != '1')} over them for each of the oracle's: a pass costs "
                    "more time, and is worth it the more, the slower the oracle is."
                )


KIND = table_kind(NAME, "", compare, lambda _, table: sentences(table))
