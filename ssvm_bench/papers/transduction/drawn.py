"""The table and the figure of transduction, each a choice of one kind.

===========  ====================================================================================
errors       the share of wrong labels of each solver, over all draws of the data, as a table
labels       the points of the first draw, in the plane, with the labels that each solver found
===========  ====================================================================================

Labels are in no trace: they are drawn where the runs themselves are at hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.config import registry, typed
from ssvm_bench.config.experiment import Choices
from ssvm_bench.datasets.points import Points
from ssvm_bench.errors import RunFailedError
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Sheet
from ssvm_bench.figures.kind import Kind, Material, Output, Section
from ssvm_bench.papers.cases import Case, cases
from ssvm_bench.papers.transduction.claims import DRAWS, PRINTED, PROPOSED, RIVALS
from ssvm_bench.papers.transduction.measures import error
from ssvm_bench.results.trace import Trace, read_labels
from ssvm_bench.results.words import NONE, percent

COLUMNS = [
    *("dataset", "source", "problem", "n", "nu", "solver", "draws", "mean", "deviation", "median"),
    *("min", "max", "iterations", "seconds", "printed"),
]


def errors(traces: Sequence[Trace]) -> pd.DataFrame:
    """Return the wrong labels of each solver over the draws of each dataset.

    Returns
    -------
    DataFrame
        ``COLUMNS``: ``problem`` tells the options of the data and the objective, ``mean`` to
        ``max`` are shares of wrong labels, ``iterations`` and ``seconds`` medians, ``printed`` is
        what the paper has, or NaN.
    """
    rows = []
    for case in _cases(traces):
        for label, runs in case.runs.items():
            found = np.array([error(run) for run in runs.values()])
            ends = pd.concat([run.frame.iloc[[-1]] for run in runs.values()])
            row: dict[str, Any] = {"dataset": case.dataset, "source": case.source}
            row |= {"problem": case.problem.fingerprint, "n": int(case.data["n"])}
            row |= {"nu": case.problem.lam, "solver": label, "draws": len(runs)}
            row |= {"mean": found.mean(), "deviation": found.std(), "median": np.median(found)}
            row |= {"min": found.min(), "max": found.max()}
            row |= {"iterations": ends["iteration"].median(), "seconds": ends["time"].median()}
            row["printed"] = PRINTED.get((case.dataset, label.split(" ")[0]), np.nan)
            rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def _cases(traces: Sequence[Trace]) -> list[Case]:
    return cases([run for run in traces if "accuracy" in run.frame], {}, DRAWS)


READING = (
    "Wrong labels among those that are not told, at the end of each run: mean ± standard "
    "deviation, median and range over draws of the data; medians of iterations and seconds. The "
    "paper prints those of one draw."
)


def sheets(table: pd.DataFrame) -> Iterator[Sheet]:
    """Yield a table per problem."""
    header = ["solver", "draws", "wrong", "median", "range", "iterations", "seconds", "paper"]
    for _, rows in table.groupby(["dataset", "problem", "nu"], sort=False):
        lines = []
        for row in rows.to_dict("records"):
            spread = f"{percent(row['mean'])} ± {percent(row['deviation'])}"
            between = f"{percent(row['min'])} – {percent(row['max'])}"
            cells = [style.solver_label(row["solver"]), f"{row['draws']}", spread]
            cells += [percent(row["median"]), between, f"{row['iterations']:.0f}"]
            lines.append([*cells, f"{row['seconds']:.3g}", _printed(row["printed"])])
        title = f"{style.dataset_name(row['dataset'])}, n = {row['n']}, ν = {row['nu']:g}"
        yield Sheet(title, header, lines)


def _printed(share: float) -> str:
    return NONE if np.isnan(share) else percent(share)


# ---- the labels -------------------------------------------------------------------------------


IN_THE_PLANE = ("moons",)
"""Datasets whose points can be drawn."""


def _draw_labels(material: Material) -> Iterator[Output]:
    """Yield the points of the first draw of each dataset of the plane, and options of it."""
    from ssvm_bench.figures import plane

    drawn: Counter[str] = Counter()
    for case in _cases(material.traces):
        if case.dataset not in IN_THE_PLANE:
            continue
        first = min(draw for runs in case.runs.values() for draw in runs)
        runs = {label: runs[first] for label, runs in case.runs.items() if first in runs}
        data = _points(next(iter(runs.values())))
        found = {label: y for label, run in runs.items() if (y := _labels(run, data)) is not None}
        if data is None or not found:
            continue
        panels = [plane.Panel("ground truth", data.y)]
        for label, y in sorted(found.items(), key=lambda pair: _place(pair[0])):
            wrong = percent(error(runs[label]))
            panels.append(plane.Panel(f"{style.solver_label(label)}\n{wrong} wrong", y))
        table = pd.DataFrame(data.x, columns=["x", "y"]).assign(truth=data.y, **found)
        notes = [f"{DRAWS[case.dataset]} = {first}"]
        figure = plane.draw(data.x, panels, material.title, notes)
        drawn[case.dataset] += 1
        number = f"_{drawn[case.dataset]}" * (drawn[case.dataset] > 1)
        yield Output(f"labels_{case.dataset}{number}", table, figure=figure)


def _place(label: str) -> tuple[int, str]:
    """Return where a curve's labels are drawn: as in the paper, what it proposes is the last."""
    order = (*RIVALS, PROPOSED)
    solver = label.split(" ")[0]
    return order.index(solver) if solver in order else len(order), label


def _points(run: Trace) -> Points | None:
    """Return the points of a run, unless the program draws others by now."""
    config: Any = run.metadata["config"]["dataset"]
    module = registry.module("dataset", config["kind"])
    data = module.load(typed.convert(module.Config, config, "dataset"))
    return data if data.fingerprint == run.metadata["dataset"]["fingerprint"] else None


def _labels(run: Trace, data: Points | None) -> np.ndarray | None:
    """Return the labels that a run found, if it is at hand."""
    try:
        return None if data is None else read_labels(run.folder, data.n, data.n_labels)[0]
    except RunFailedError:
        return None


# ---- the kind of figure -----------------------------------------------------------------------

ERRORS, LABELS = "errors", "labels"


def _outputs(material: Material, names: Sequence[str]) -> Iterator[Output]:
    if ERRORS in names:
        table = errors(material.traces)
        yield Output("errors", table, "Wrong labels", [READING, *sheets(table)])
    if LABELS in names:
        yield from _draw_labels(material)


KIND = Kind(
    "transduction",
    Choices((ERRORS, LABELS), "figure", "figures"),
    _outputs,
    Section("transduction", "Transduction", "There are no runs of transduction."),
    documents=True,
)
