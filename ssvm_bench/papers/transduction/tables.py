"""The tables of transduction: over all draws of the data, beside what the paper prints.

===========  ====================================================================================
errors       wrong labels of each solver
solves       conjugate gradients: their iterations for a solution of (17)
===========  ====================================================================================

Table 1 is in :mod:`.accuracies`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case, cases
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Cells, Table, beside, table_of
from ssvm_bench.figures.kind import table_kind
from ssvm_bench.papers.transduction.measures import DRAWS, MOONS, error
from ssvm_bench.papers.transduction.oracles import kernels
from ssvm_bench.results.trace import Trace

TEXTS, COLUMNS = beside(__file__), beside(__file__, "tables")
"""What is said above tables, and their columns."""

PRINTED = {"moons": MOONS}
"""Dataset → solver → the share of wrong labels that the paper prints."""


def of_draws(traces: Iterable[Trace]) -> list[Case]:
    """Return the runs of transduction by problem, those on all draws of the data together."""
    known = "accuracy", "told_iou"  # the latter where all are labelled
    return cases([run for run in traces if {*known} & {*run.frame}], {}, DRAWS)


def row_of(case: Case, label: str, measure: Callable[[Trace], float]) -> dict[str, Any]:
    """Return what tables have of a curve: a number of its runs, their ends; means and medians."""
    runs = list(case.runs[label].values())
    found = np.array([measure(run) for run in runs])
    ends = pd.concat([run.frame.iloc[[-1]] for run in runs])
    row: dict[str, Any] = {"dataset": case.dataset, "source": case.source, "solver": label}
    row |= {"runs": len(runs), "mean": found.mean(), "deviation": found.std()}
    row |= {"median": np.median(found), "min": found.min(), "max": found.max()}
    row |= {"iterations": ends["iteration"].median(), "seconds": ends["time"].median()}
    accuracy = ends["accuracy"].mean() if "accuracy" in ends else np.nan  # all are labelled
    return row | {"wrong": 1.0 - accuracy, "objective": ends["primal"].mean()}


# ---- wrong labels -----------------------------------------------------------------------------

ERROR_COLUMNS = [
    *("dataset", "source", "problem", "n", "nu", "solver", "draws", "mean", "deviation", "median"),
    *("min", "max", "iterations", "seconds", "printed"),
]


def errors(traces: Sequence[Trace]) -> pd.DataFrame:
    """Return the wrong labels of each solver over the draws of each dataset.

    Returns
    -------
    DataFrame
        ``ERROR_COLUMNS``: ``problem`` tells the options of the data and the objective, ``mean`` to
        ``max`` are shares of wrong labels, ``iterations`` and ``seconds`` medians, ``printed`` is
        what the paper has, or NaN.
    """
    rows = []
    for case in of_draws(traces):
        for label in case.runs:
            row = row_of(case, label, error)
            row |= {"problem": case.problem.fingerprint, "n": int(case.data["n"])}
            row |= {"nu": case.problem.lam, "draws": row["runs"]}
            row["printed"] = PRINTED.get(case.dataset, {}).get(label.split(" ")[0], np.nan)
            rows.append(row)
    return pd.DataFrame(rows, columns=ERROR_COLUMNS)


def error_tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per problem."""
    for _, rows in table.groupby(["dataset", "problem", "nu"], sort=False):
        row = rows.iloc[0]
        title = f"{style.dataset_name(row['dataset'])}, n = {row['n']}, ν = {row['nu']:g}"
        yield table_of(title, COLUMNS["errors"], rows.to_dict("records"))


# ---- conjugate gradients ----------------------------------------------------------------------

FEW = 20
"""Iterations for a solution of (17), on average, up to which they are a small number."""

SOLVE_COLUMNS = [
    *("dataset", "source", "n", "unknowns", "precision", "solutions", "mean", "most"),
    *("accuracy", "primal", "seconds"),
]


def solves(traces: Sequence[Trace]) -> pd.DataFrame:
    """Return how many iterations conjugate gradients took for a solution of (17).

    Returns
    -------
    DataFrame
        ``SOLVE_COLUMNS``, a row per run: ``unknowns`` of all labels, ``solutions`` of (17),
        ``mean`` iterations of one, and between two evaluations with ``most`` of them.
    """
    rows = []
    for run in traces:
        if "cg_iterations" not in run.frame:
            continue
        last, oracle = run.frame.iloc[-1], run.metadata["config"]["oracle"]
        steps = run.frame[["iteration", "cg_iterations"]].diff().iloc[1:]
        data = run.metadata["dataset"]
        row = {"dataset": data["name"], "source": data["source"], "n": int(data["n"])}
        precision = oracle.get("precision") or kernels.PRECISION
        row |= {"unknowns": int(data["d"]), "precision": precision, "solutions": last["iteration"]}
        row["mean"] = last["cg_iterations"] / last["iteration"]
        row["most"] = (steps["cg_iterations"] / steps["iteration"]).max()
        row |= {"accuracy": last["accuracy"], "primal": last["primal"], "seconds": last["cpu_time"]}
        rows.append(row)
    return pd.DataFrame(rows, columns=SOLVE_COLUMNS)


SOLVE_CELLS: Cells = {
    **COLUMNS["solves"],
    "a small number": lambda row: "holds" if row["mean"] <= FEW else "does not hold",
}


# ---- the kinds of figures ---------------------------------------------------------------------

KINDS = (
    table_kind(
        "errors",
        "Wrong labels",
        lambda traces, _: errors(traces),
        lambda _, table: [TEXTS["errors"], *error_tables(table)],
        documents=True,
    ),
    table_kind(
        "solves",
        "Iterations of conjugate gradients",
        lambda traces, _: solves(traces),
        lambda _, table: [
            TEXTS["solves"].format(few=FEW),
            table_of("Conjugate gradients", SOLVE_CELLS, table.to_dict("records")),
        ],
    ),
)
