"""How what was found in pictures overlaps with the truth: the claims' measures, and a table.

.. code-block:: text

    more overlap   IoU of the last row, minus that of the other method, repeat by repeat
    fewer false    false pixels of the other method, minus ours: both are shares of all pixels

Both claims about videos rest on features that are almost linearly separable. The inductive method
is the same in the paper and here, and knows nothing of the videos but its first frame: how far its
IoU is below the printed one is what our features lack. Where that is more than `LACKING`, the
claims cannot be measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case, Runs, column, same_seed
from ssvm_bench.claims.claim import Measured, UnmeasurableError, measure
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Cells
from ssvm_bench.papers.transduction.measures import PROPOSED, VIDEOS
from ssvm_bench.papers.transduction.tables import COLUMNS, TEXTS, of_draws, row_of
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE, percent

LACKING = 0.1
"""By how much the IoU of the inductive method may be below the printed one."""

FALSE, MISSED, TOLD, TRUTH = "false_pixels", "missed_pixels", "told_iou", "truth_iou"
"""Columns of traces; older ones have none of them."""


ORDER = ("kernel_kmeans", "inductive", PROPOSED)
"""Methods, in the order in which they are drawn; what the paper proposes is the last."""


def of_methods(traces: Sequence[Trace], known: str = "iou") -> list[tuple[Case, list[str]]]:
    """Return the runs on pictures by problem, and the curves of each, in their order.

    They are those with a column: there is no IoU where all frames are annotated.
    """
    found = of_draws([run for run in traces if known in run.frame or "iou" in run.frame])
    return [(case, sorted(case.runs, key=_order)) for case in found]


def _order(label: str) -> tuple[int, list[float], str]:
    """Return where a curve comes: by method, then by the numbers in its label."""
    numbers = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", label)
    return ORDER.index(label.split(" ")[0]), list(map(float, numbers)), label


def name_of(case: Case) -> str:
    """Return what tells a case of pictures in the name of a file."""
    config: Any = next(case.traces()).metadata["config"]["dataset"]
    return "_".join(filter(None, (case.dataset, config.get("pictures"))))


# ---- measures ---------------------------------------------------------------------------------


def overlap(run: Trace) -> float:
    """Return the IoU at the end of a run; raise `UnmeasurableError` if it has none."""
    return float(column(run, "iou")[-1])


def _pairs(case: Case, ours: Runs, baseline: Runs) -> list[tuple[Trace, Trace]]:
    nothing = "no two runs are on the same picture"
    return same_seed(ours.by_seed(case), baseline.by_seed(case), nothing)


def _means(pairs: Sequence[tuple[Trace, Trace]]) -> str:
    """Return the means of both: IoU, and where they are known, false and missed pixels."""
    said = []
    for what, name in (("IoU", "iou"), ("false pixels", FALSE), ("missed pixels", MISSED)):
        if all(name in run.frame for pair in pairs for run in pair):
            both = np.mean([[column(run, name)[-1] for run in pair] for pair in pairs], axis=0)
            said.append(f"{what} {percent(both[0])} against {percent(both[1])}")
    return "mean " + ", ".join(said)


def _larger(pairs: Sequence[tuple[Trace, Trace]]) -> Measured:
    values = np.array([overlap(one) - overlap(other) for one, other in pairs])
    return Measured(values, low=0.0, note=_means(pairs))


@measure
def more_overlap(case: Case, ours: Runs, baseline: Runs) -> Measured:
    """Measure how much larger our IoU is, picture by picture."""
    return _larger(_pairs(case, ours, baseline))


@measure
def more_overlap_in_videos(case: Case, ours: Runs, inductive: Runs) -> Measured:
    """Measure how much larger our IoU is, with features that can tell."""
    pairs = _pairs(case, ours, inductive)
    _check_features(case, [other for _, other in pairs], _means(pairs))
    return _larger(pairs)


@measure
def fewer_false(case: Case, ours: Runs, inductive: Runs) -> Measured:
    """Measure how much fewer of the pixels are taken for figure and are not, likewise."""
    pairs = _pairs(case, ours, inductive)
    _check_features(case, [other for _, other in pairs], _means(pairs))
    fewer = [column(other, FALSE)[-1] - column(one, FALSE)[-1] for one, other in pairs]
    return Measured(np.array(fewer), low=0.0, note=_means(pairs))


def _check_features(case: Case, inductive: Sequence[Trace], measured: str) -> None:
    """Raise `UnmeasurableError` where the features are too far from those of the paper."""
    printed = VIDEOS[case.dataset]["inductive"]
    found = float(np.mean([overlap(run) for run in inductive]))
    if found >= printed - LACKING:
        return
    said = (
        "not with these features: those of the paper are of a deep network, and almost linearly "
        f"separable; with ours the inductive method has an IoU of {percent(found)}, where the "
        f"paper has {100 * printed:.2f} %"
    )
    known = [run.frame[TOLD].iloc[-1] for run in inductive if TOLD in run.frame]
    if known:
        said += f", though it has {percent(np.mean(known))} on the frame that it is trained on"
    raise UnmeasurableError(f"{said}. Measured with ours: {measured}")


# ---- the table --------------------------------------------------------------------------------


OVERLAP_COLUMNS = [
    *("data", "source", "problem", "solver", "runs", "iou", "deviation", "min", FALSE, MISSED),
    *(TOLD, TRUTH, "wrong", "objective", "iterations", "converged", "seconds", "printed"),
]


def overlaps(of: Iterable[tuple[Case, Sequence[str]]]) -> pd.DataFrame:
    """Return the overlap of each method on each set of pictures; given the methods of each."""
    rows = [_row(case, label) for case, labels in of for label in labels]
    return pd.DataFrame(rows).rename(columns={"mean": "iou"}).reindex(columns=OVERLAP_COLUMNS)


def _row(case: Case, label: str) -> dict[str, Any]:
    runs = list(case.runs[label].values())
    of_run = overlap if all("iou" in run.frame for run in runs) else lambda _: np.nan
    row: dict[str, Any] = {"data": name_of(case), **row_of(case, label, of_run)}
    config: Any = runs[0].metadata["config"]
    row["problem"] = _problem(case, config)
    row["converged"] = sum(run.summary.get("stop_reason") == "converged" for run in runs)
    for name in (FALSE, MISSED, TOLD, TRUTH):
        known = [run.frame[name].iloc[-1] for run in runs if name in run.frame]
        row[name] = np.mean(known) if len(known) == len(runs) else np.nan
    row["printed"] = VIDEOS.get(case.dataset, {}).get(config["solver"]["name"], np.nan)
    return row


def _problem(case: Case, config: Mapping[str, Any]) -> str:
    """Return what else tells a problem: ν, and the weight of the pairs."""
    potts = config.get("oracle", {}).get("potts")
    known = ", all frames annotated" * (config["dataset"].get("annotated") == "all")
    return f"ν {case.problem.lam:g}" + ("" if potts is None else f", Potts {potts:g}") + known


def said_of(table: pd.DataFrame) -> str:
    """Return what is said above a table."""
    shown = [
        f"{100 * VIDEOS[name]['osvos']:.2f} % on {style.dataset_name(name)}"
        for name in dict.fromkeys(table["data"])
        if name in VIDEOS
    ]
    videos = TEXTS["videos"].format(osvos=" and ".join(shown))
    return " ".join([TEXTS["overlaps"], *[videos] * bool(shown)])


OVERLAP_CELLS: Cells = {
    **COLUMNS["overlaps"],
    "data": lambda row: row["data"].replace("_", " "),
    "IoU": lambda row: (
        (NONE if np.isnan(row["iou"]) else percent(row["iou"]))
        + f" ± {percent(row['deviation'])}" * bool(row["runs"] > 1)
    ),
    "paper's IoU": lambda row: (
        NONE if np.isnan(row["printed"]) else f"{100 * row['printed']:.2f} %"
    ),
}
