"""The tables of transduction: over all draws of the data, beside the paper's numbers.

===========  ====================================================================================
errors       wrong labels of each solver
solves       iterations of conjugate gradients for a solution of (17)
overlaps     overlap of the masks found in pictures with the truth: a choice of `figures`
===========  ====================================================================================

Table 1 is in :mod:`.accuracies`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case, cases
from ssvm_bench.figures import style
from ssvm_bench.figures.document import described
from ssvm_bench.figures.kind import table_kind
from ssvm_bench.papers.transduction.measures import (
    DRAWS,
    FALSE,
    MISSED,
    MOONS,
    PROPOSED,
    TEXTS,
    TOLD,
    TRUTH,
    VIDEOS,
    error,
    overlap,
    spread,
)
from ssvm_bench.papers.transduction.oracles import kernels
from ssvm_bench.results.curves import band
from ssvm_bench.results.table import Run
from ssvm_bench.results.words import NONE, percent

PRINTED = {"moons": MOONS}
"""Dataset → solver → the share of wrong labels that the paper prints."""


def of_draws(traces: Iterable[Run]) -> list[Case]:
    """Return the runs of transduction by problem, with all draws of the data in one case."""
    known = "accuracy", "told_iou"  # the latter if all points are labelled
    return cases([run for run in traces if {*known} & {*run.frame}], {}, DRAWS)


def row_of(case: Case, label: str, measure: Callable[[Run], float]) -> dict[str, Any]:
    """Return a row about a curve: statistics of a measure of its runs, and of their last rows."""
    runs = list(case.runs[label].values())
    found = np.array([measure(run) for run in runs])
    ends = pd.concat([run.frame.iloc[[-1]] for run in runs])
    row: dict[str, Any] = {"dataset": case.dataset, "source": case.source, "solver": label}
    row |= {"runs": len(runs), "mean": found.mean(), "deviation": spread(found)}
    row["converged"] = sum(run.converged for run in runs)
    row |= zip(("median", "min", "max"), band(found), strict=True)
    row |= {"iterations": ends["iteration"].median(), "seconds": ends["time"].median()}
    accuracy = ends["accuracy"].mean() if "accuracy" in ends else np.nan  # all labelled
    return row | {"wrong": 1.0 - accuracy, "objective": ends["primal"].mean()}


# ---- wrong labels -----------------------------------------------------------------------------

ERROR_COLUMNS = [
    *("dataset", "source", "problem", "n", "nu", "solver", "draws", "mean", "deviation", "median"),
    *("min", "max", "iterations", "seconds", "printed"),
]


ERRORS = described(__file__, "errors")


def errors(traces: Sequence[Run]) -> pd.DataFrame:
    """Return the wrong labels of each solver over the draws of each dataset.

    Returns
    -------
    DataFrame
        ``ERROR_COLUMNS``: ``problem`` has the options of the data and the objective, ``mean`` to
        ``max`` are shares of wrong labels, ``iterations`` and ``seconds`` are medians, ``printed``
        is the paper's number, or NaN.
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


# ---- conjugate gradients ----------------------------------------------------------------------

FEW = 20
"""The largest mean number of iterations for a solution of (17) that is a small number."""


def solves(traces: Sequence[Run]) -> pd.DataFrame:
    """Return the iterations of conjugate gradients for a solution of (17).

    Returns
    -------
    DataFrame
        A row per run: ``dataset, source, n``, ``unknowns`` of all labels, ``precision``,
        ``solutions`` of (17), and iterations for a solution: ``mean`` over the run, ``most``
        between two evaluations; ``accuracy, primal, seconds`` at the end.
    """
    rows = []
    for run in traces:
        if "cg_iterations" not in run:
            continue
        last, oracle = run.frame.iloc[-1], run.config["oracle"]
        steps = run.frame[["iteration", "cg_iterations"]].diff().iloc[1:]
        data = run.data
        row = {"dataset": data["name"], "source": data["source"], "n": int(data["n"])}
        precision = oracle.get("precision") or kernels.PRECISION
        row |= {"unknowns": int(data["d"]), "precision": precision, "solutions": last["iteration"]}
        row["mean"] = last["cg_iterations"] / last["iteration"]
        row["most"] = (steps["cg_iterations"] / steps["iteration"]).max()
        row |= {"accuracy": last["accuracy"], "primal": last["primal"]}
        rows.append({**row, "seconds": last["cpu_time"]})
    return pd.DataFrame(rows)


def is_small(row: Mapping[str, Any]) -> str:
    """Return whether the mean number of iterations for a solution is a small one."""
    return "holds" if row["mean"] <= FEW else "does not hold"


SOLVES = described(__file__, "solves", {"a small number": is_small}, few=FEW)


# ---- pictures ---------------------------------------------------------------------------------


ORDER = ("kernel_kmeans", "inductive", PROPOSED)
"""Methods in the order in which they are drawn, with the proposed method last."""


def of_methods(traces: Sequence[Run], known: str = "iou") -> list[tuple[Case, list[str]]]:
    """Return the runs on pictures by problem, and the labels of each problem's curves in order.

    Runs with the column ``known`` or ``iou`` count: if all frames are annotated, there is no IoU.
    """
    found = of_draws([run for run in traces if known in run or "iou" in run])
    return [(case, sorted(case.runs, key=_order)) for case in found]


def _order(label: str) -> tuple[int, list[float], str]:
    """Return the sort key of a curve: by method, then by the numbers in its label."""
    numbers = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", label)
    return ORDER.index(label.split(" ")[0]), list(map(float, numbers)), label


def name_of(case: Case) -> str:
    """Return the part of a file's name that identifies a case of pictures."""
    pictures = next(case.traces()).config["dataset"].get("pictures")
    return "_".join(filter(None, (case.dataset, pictures)))


# ---- the table --------------------------------------------------------------------------------


OVERLAP_COLUMNS = [
    *("data", "source", "problem", "solver", "runs", "iou", "deviation", "min", FALSE, MISSED),
    *(TOLD, TRUTH, "wrong", "objective", "iterations", "converged", "seconds", "printed"),
]


def overlaps(of: Iterable[tuple[Case, Sequence[str]]]) -> pd.DataFrame:
    """Return the overlap of each method on each set of pictures, given the methods of each set."""
    rows = [_row(case, label) for case, labels in of for label in labels]
    return pd.DataFrame(rows).rename(columns={"mean": "iou"}).reindex(columns=OVERLAP_COLUMNS)


def _row(case: Case, label: str) -> dict[str, Any]:
    runs = list(case.runs[label].values())
    of_run = overlap if all("iou" in run for run in runs) else lambda _: np.nan
    row: dict[str, Any] = {"data": name_of(case), **row_of(case, label, of_run)}
    row["problem"] = _problem(case, runs[0].config)
    for name in (FALSE, MISSED, TOLD, TRUTH):
        known = [run.frame[name].iloc[-1] for run in runs if name in run]
        row[name] = np.mean(known) if len(known) == len(runs) else np.nan
    row["printed"] = VIDEOS.get(case.dataset, {}).get(runs[0].solver, np.nan)
    return row


def _problem(case: Case, config: Mapping[str, Any]) -> str:
    """Return the options of a problem: ν, weight of pairs, annotated frames, file of features."""
    potts = config.get("oracle", {}).get("potts")
    known = ", all frames annotated" * (config["dataset"].get("annotated") == "all")
    features = config["dataset"].get("features")
    own = "" if features is None else f", {PurePath(features).stem}"
    return f"ν {case.problem.lam:g}" + ("" if potts is None else f", Potts {potts:g}") + known + own


def _overlap(row: Mapping[str, Any]) -> str:
    iou = NONE if np.isnan(row["iou"]) else percent(row["iou"])
    return iou + f" ± {percent(row['deviation'])}" * (row["runs"] > 1)


OVERLAPS = described(
    __file__,
    "overlaps",
    {
        "IoU": _overlap,
        "paper's IoU": lambda row: (
            NONE if np.isnan(row["printed"]) else f"{100 * row['printed']:.2f} %"
        ),
    },
)


def said_of(table: pd.DataFrame) -> str:
    """Return the text above a table of overlaps."""
    shown = [
        f"{100 * VIDEOS[name]['osvos']:.2f} % on {style.dataset_name(name)}"
        for name in dict.fromkeys(table["data"])
        if name in VIDEOS
    ]
    videos = TEXTS["videos"].format(osvos=" and ".join(shown))
    return " ".join([OVERLAPS.text, *[videos] * bool(shown)])


# ---- the kinds of figures ---------------------------------------------------------------------

KINDS = (
    table_kind("errors", ERRORS.title, errors, ERRORS.blocks, documents=True),
    table_kind("solves", SOLVES.title, solves, SOLVES.blocks),
)
