"""The tables of transduction: over all draws of the data, beside what the paper prints.

===========  ====================================================================================
errors       wrong labels of each solver
accuracies   Table 1: accuracies of ``dcadmm`` on the SSL sets over splits. ``table``: a row per
             set and number of labels; ``settings``: a row per choice of what the paper leaves open
overlaps     mean IoU of each method, over pictures or frames (:mod:`.pictures`)
===========  ====================================================================================

A mean of Table 1 is **as good** as the paper's if it is at least that minus the deviation that is
printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import Case, cases
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Cells, Table, bold, table_of
from ssvm_bench.figures.kind import FigureData, Kind, Output, Section
from ssvm_bench.papers.transduction.measures import error, overlap
from ssvm_bench.papers.transduction.printed import (
    DRAWS,
    KERNELS,
    MOONS,
    PROPOSED,
    SETS,
    TABLE_1,
)
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE, percent

PRINTED = {"moons": MOONS}
"""Dataset → solver → the share of wrong labels that the paper prints."""


def of_draws(traces: Iterable[Trace]) -> list[Case]:
    """Return the runs of transduction by problem, those on all draws of the data together."""
    return cases([run for run in traces if "accuracy" in run.frame], {}, DRAWS)


def name_of(case: Case) -> str:
    """Return what tells a case of pictures in the name of a file."""
    config: Any = next(case.traces()).metadata["config"]["dataset"]
    return "_".join(filter(None, (case.dataset, config.get("pictures"))))


def _row(case: Case, label: str, measure: Callable[[Trace], float]) -> dict[str, Any]:
    """Return what tables have of a curve: a number of its runs, their ends; means and medians."""
    runs = list(case.runs[label].values())
    found = np.array([measure(run) for run in runs])
    ends = pd.concat([run.frame.iloc[[-1]] for run in runs])
    row: dict[str, Any] = {"dataset": case.dataset, "source": case.source, "solver": label}
    row |= {"runs": len(runs), "mean": found.mean(), "deviation": found.std()}
    row |= {"median": np.median(found), "min": found.min(), "max": found.max()}
    row |= {"iterations": ends["iteration"].median(), "seconds": ends["time"].median()}
    return row | {"wrong": 1.0 - ends["accuracy"].mean(), "objective": ends["primal"].mean()}


COSTS: Cells = {
    "iterations": lambda row: f"{row['iterations']:.0f}",
    "seconds": lambda row: f"{row['seconds']:.3g}",
}
"""What the tables have last, or nearly."""

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
            row = _row(case, label, error)
            row |= {"problem": case.problem.fingerprint, "n": int(case.data["n"])}
            row |= {"nu": case.problem.lam, "draws": row["runs"]}
            row["printed"] = PRINTED.get(case.dataset, {}).get(label.split(" ")[0], np.nan)
            rows.append(row)
    return pd.DataFrame(rows, columns=ERROR_COLUMNS)


ERRORS = (
    "Wrong labels among those that are not told, at the end of each run: mean ± standard "
    "deviation, median and range over draws of the data; medians of iterations and seconds. The "
    "paper prints those of one draw."
)
ERROR_CELLS: Cells = {
    "solver": lambda row: style.solver_label(row["solver"]),
    "draws": lambda row: f"{row['draws']}",
    "wrong": lambda row: f"{percent(row['mean'])} ± {percent(row['deviation'])}",
    "median": lambda row: percent(row["median"]),
    "range": lambda row: f"{percent(row['min'])} – {percent(row['max'])}",
    **COSTS,
    "paper": lambda row: NONE if np.isnan(row["printed"]) else percent(row["printed"]),
}


def error_tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per problem."""
    for _, rows in table.groupby(["dataset", "problem", "nu"], sort=False):
        row = rows.iloc[0]
        title = f"{style.dataset_name(row['dataset'])}, n = {row['n']}, ν = {row['nu']:g}"
        yield table_of(title, ERROR_CELLS, rows.to_dict("records"))


def _errors(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    table = errors(data.traces)
    yield Output("errors", table, "Wrong labels", [ERRORS, *error_tables(table)])


# ---- Table 1 ----------------------------------------------------------------------------------

OPEN = ("scaling", "sigma", "nu", "balance", "start", "tau", "delta")
"""What the paper leaves open, or what we may choose in another way; of the objective and solver."""

PRINTED_COLUMNS = ("sdp", "sdp_deviation", "printed", "printed_deviation")
ACCURACY_COLUMNS = [
    *("dataset", "source", "labeled", "kernel", "settings", "splits", "mean", "deviation"),
    *("iterations", "seconds", *PRINTED_COLUMNS, "as_good"),
]


def accuracies(traces: Sequence[Trace]) -> pd.DataFrame:
    """Return the accuracy of ``dcadmm`` on each set, for each number of labels and each setting.

    Returns
    -------
    DataFrame
        ``ACCURACY_COLUMNS``: ``mean`` and ``deviation`` over ``splits``, ``iterations`` and
        ``seconds`` medians, then the paper's cell.
    """
    rows = []
    for case in of_draws(run for run in traces if _is_of_table_1(run)):
        for label, runs in case.runs.items():
            first = next(iter(runs.values()))
            row = _row(case, label, lambda run: 1.0 - error(run))
            row |= zip(("dataset", "labeled", "kernel"), _cell(first), strict=True)
            row |= {"settings": _settings(first), "splits": len(runs)}
            sdp, printed = TABLE_1[_cell(first)]
            row |= zip(PRINTED_COLUMNS, (*sdp, *printed), strict=True)
            row["as_good"] = row["mean"] >= printed.mean - printed.deviation
            rows.append(row)
    return pd.DataFrame(rows, columns=ACCURACY_COLUMNS)


def _is_of_table_1(run: Trace) -> bool:
    config: Any = run.metadata["config"]
    ours = config["solver"]["name"] == PROPOSED and "labeled" in config["dataset"]
    return ours and _cell(run) in TABLE_1


def _cell(run: Trace) -> tuple[str, int, str]:
    """Return the cell of Table 1 that a run is of: set, labels, kernel."""
    config: Any = run.metadata["config"]
    return config["dataset"]["name"], config["dataset"]["labeled"], config["oracle"]["kernel"]


def _settings(run: Trace) -> str:
    config: Any = run.metadata["config"]
    options = {**config["oracle"], **config["solver"]}
    if options["kernel"] == "linear":
        del options["sigma"]
    return ", ".join(f"{name} {options[name]}" for name in OPEN if name in options)


ACCURACIES = (
    "Accuracy on the points whose label is not told, in %: mean ± standard deviation over splits. "
    "**Bold**: at least the mean that the paper prints for its method, minus the deviation that it "
    "prints. SDP is the relaxation of Joulin and Bach, as the paper prints it."
)
ACCURACY_CELLS: Cells = {
    "set": lambda row: style.dataset_name(row["dataset"]),
    "labels": lambda row: f"{row['labeled']}",
    "splits": lambda row: f"{row['splits']}",
    "ours": lambda row: bold(_spread(row["mean"], row["deviation"]), row["as_good"]),
    "paper": lambda row: _spread(row["printed"], row["printed_deviation"]),
    "SDP": lambda row: _spread(row["sdp"], row["sdp_deviation"]),
    **COSTS,
}


def by_setting(table: pd.DataFrame) -> Iterator[Table]:
    """Yield the table of each kernel and setting."""
    for (kernel, settings), rows in _ordered(table).items():
        yield table_of(f"{kernel}: {settings} ({_count(rows)})", ACCURACY_CELLS, rows)


def settings_tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per kernel with a row for each setting."""
    cells = [(dataset, labeled) for labeled in (10, 100) for dataset in SETS]
    names = [f"{style.dataset_name(dataset)} {labeled}" for dataset, labeled in cells]
    for kernel in KERNELS:
        lines = []
        for (_, settings), rows in _ordered(table[table["kernel"] == kernel]).items():
            by_cell = {(row["dataset"], row["labeled"]): row for row in rows}
            if all(cell in by_cell for cell in cells):
                shown = (by_cell[cell] for cell in cells)
                means = [bold(f"{100 * row['mean']:.1f}", row["as_good"]) for row in shown]
                lines.append([settings, *means, _count(rows)])
        if lines:
            yield Table(kernel, ["settings", *names, "as good"], lines)


def _ordered(table: pd.DataFrame) -> dict[tuple[str, str], list[dict[Any, Any]]]:
    """Return the rows by kernel and settings, in the order of the paper's table."""
    rows = sorted(
        table.to_dict("records"),
        key=lambda row: (row["kernel"], row["labeled"], SETS.index(row["dataset"])),
    )
    return grouped(rows, lambda row: (row["kernel"], row["settings"]))


def _count(rows: Sequence[Mapping[Any, Any]]) -> str:
    return f"{sum(bool(row['as_good']) for row in rows)} of {len(rows)}"


def _spread(mean: float, deviation: float) -> str:
    return f"{100 * mean:.2f} ± {100 * deviation:.2f}"


DOCUMENTS = {
    "table": ("table1", "Table 1: accuracies on the SSL sets", by_setting),
    "settings": ("settings", "Settings, and how many cells are as good", settings_tables),
}


def _accuracies(data: FigureData, names: Sequence[str]) -> Iterator[Output]:
    table = accuracies(data.traces)
    for name in names:
        file, title, make = DOCUMENTS[name]
        yield Output(file, table, title, [ACCURACIES, *make(table)])


# ---- overlap ----------------------------------------------------------------------------------

OVERLAPS = (
    "Intersection over union of the figure, in pixels, at the end of each run: of single pictures "
    "the mean ± standard deviation over them, and the least; of a sequence the mean over its "
    "frames but the first. The objective is that of the labels and the classifier at the end, a "
    "mean; seconds and iterations are medians. The features are those of the project: visual "
    "words of gradients and colours. The paper has those of a deep network, and prints pictures, "
    "no numbers."
)


OVERLAP_COLUMNS = [
    *("data", "source", "solver", "runs", "iou", "deviation", "min", "wrong", "objective"),
    *("iterations", "seconds"),
]


def overlaps(of: Iterable[tuple[Case, Sequence[str]]]) -> pd.DataFrame:
    """Return the IoU of each method on each set of pictures; given the methods of each."""
    rows = [
        {"data": name_of(case), **_row(case, label, overlap)}
        for case, labels in of
        for label in labels
    ]
    return pd.DataFrame(rows).rename(columns={"mean": "iou"}).reindex(columns=OVERLAP_COLUMNS)


OVERLAP_CELLS: Cells = {
    "data": lambda row: row["data"].replace("_", " "),
    "method": lambda row: style.solver_label(row["solver"]),
    "runs": lambda row: f"{row['runs']}",
    "IoU": lambda row: (
        percent(row["iou"]) + f" ± {percent(row['deviation'])}" * bool(row["runs"] > 1)
    ),
    "least": lambda row: percent(row["min"]),
    "wrong superpixels": lambda row: percent(row["wrong"]),
    "objective": lambda row: f"{row['objective']:.4g}",
    **COSTS,
}

# ---- the kinds of figures ---------------------------------------------------------------------

NOTHING = "There are no runs of transduction."
KINDS = (
    Kind(
        "errors",
        Choices(("table",)),
        _errors,
        Section("transduction", "Transduction", NOTHING),
        documents=True,
    ),
    Kind("accuracies", Choices(tuple(DOCUMENTS), "table", "tables"), _accuracies, documents=True),
)
