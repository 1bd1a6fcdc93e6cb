"""Table 1 of the transduction paper: accuracies on the SSL sets over splits, beside what it prints.

===========  ====================================================================================
table        a row per set and number of labels: mean ± standard deviation, and the paper's columns
settings     a row per choice of what the paper leaves open: means, and how many are as good
===========  ====================================================================================

A mean is **as good** as the paper's if it is at least that minus the deviation that is printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Cells, Table, bold, table_of
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.papers.transduction.claims import PROPOSED
from ssvm_bench.papers.transduction.errors import COSTS, of_draws
from ssvm_bench.papers.transduction.measures import error
from ssvm_bench.papers.transduction.printed import KERNELS, SETS, TABLE_1
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.trace import Trace

TABLE, SETTINGS = "table", "settings"

OPEN = ("scaling", "sigma", "nu", "balance", "start", "tau", "delta")
"""What the paper leaves open, or what we may choose in another way; of the objective and solver."""

COLUMNS = [
    *("dataset", "source", "labeled", "kernel", "settings", "splits", "mean", "deviation"),
    *("iterations", "seconds", "sdp", "sdp_deviation", "printed", "printed_deviation", "as_good"),
]


def accuracies(traces: Sequence[Trace]) -> pd.DataFrame:
    """Return the accuracy of ``dcadmm`` on each set, for each number of labels and each setting.

    Returns
    -------
    DataFrame
        ``COLUMNS``: ``mean`` and ``deviation`` over ``splits``, ``iterations`` and ``seconds``
        medians, then the paper's cell.
    """
    rows = []
    for case in of_draws([run for run in traces if _is_of_table_1(run)]):
        for runs in case.runs.values():
            repeats = list(runs.values())
            place = _place(repeats[0])
            found = np.array([1.0 - error(run) for run in repeats])
            ends = pd.concat([run.frame.iloc[[-1]] for run in repeats])
            printed = TABLE_1[place]
            row: dict[str, Any] = dict(zip(("dataset", "labeled", "kernel"), place, strict=True))
            row |= {"source": case.source, "settings": _settings(repeats[0])}
            row |= {"splits": len(repeats), "mean": found.mean(), "deviation": found.std()}
            row |= {"iterations": ends["iteration"].median(), "seconds": ends["time"].median()}
            row |= {"sdp": printed.sdp.mean, "sdp_deviation": printed.sdp.deviation}
            row |= {"printed": printed.proposed.mean}
            row |= {"printed_deviation": printed.proposed.deviation}
            row["as_good"] = found.mean() >= printed.proposed.mean - printed.proposed.deviation
            rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def _is_of_table_1(run: Trace) -> bool:
    config: Any = run.metadata["config"]
    ours = config["solver"]["name"] == PROPOSED and "labeled" in config["dataset"]
    return ours and _place(run) in TABLE_1


def _place(run: Trace) -> tuple[str, int, str]:
    """Return the cell of Table 1 that a run is of: set, labels, kernel."""
    config: Any = run.metadata["config"]
    return config["dataset"]["name"], config["dataset"]["labeled"], config["oracle"]["kernel"]


def _settings(run: Trace) -> str:
    config: Any = run.metadata["config"]
    options = {**config["oracle"], **config["solver"]}
    if options["kernel"] == "linear":
        del options["sigma"]
    return ", ".join(f"{name} {options[name]}" for name in OPEN if name in options)


READING = (
    "Accuracy on the points whose label is not told, in %: mean ± standard deviation over splits. "
    "**Bold**: at least the mean that the paper prints for its method, minus the deviation that it "
    "prints. SDP is the relaxation of Joulin and Bach, as the paper prints it."
)


CELLS: Cells = {
    "set": lambda row: style.dataset_name(row["dataset"]),
    "labels": lambda row: f"{row['labeled']}",
    "splits": lambda row: f"{row['splits']}",
    "ours": lambda row: bold(_spread(row["mean"], row["deviation"]), row["as_good"]),
    "paper": lambda row: _spread(row["printed"], row["printed_deviation"]),
    "SDP": lambda row: _spread(row["sdp"], row["sdp_deviation"]),
    **COSTS,
}


def tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield the table of each kernel and setting."""
    for (kernel, settings), rows in _ordered(table).items():
        yield table_of(f"{kernel}: {settings} ({_count(rows)})", CELLS, rows)


def settings_tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per kernel with a row for each setting."""
    cells = [(dataset, labeled) for labeled in (10, 100) for dataset in SETS]
    names = [f"{style.dataset_name(dataset)} {labeled}" for dataset, labeled in cells]
    for kernel in KERNELS:
        lines = []
        for (_, settings), rows in _ordered(table[table["kernel"] == kernel]).items():
            by_cell = {(row["dataset"], row["labeled"]): row for row in rows}
            shown = [
                bold(f"{100 * row['mean']:.1f}", row["as_good"])
                for row in map(by_cell.get, cells)
                if row is not None
            ]
            if len(shown) == len(cells):
                lines.append([settings, *shown, _count(rows)])
        if lines:
            yield Table(kernel, ["settings", *names, "as good"], lines)


def _ordered(table: pd.DataFrame) -> dict[tuple[str, str], list[dict[Any, Any]]]:
    """Return the rows by kernel and settings, in the order of the paper's table."""
    rows = sorted(
        table.to_dict("records"),
        key=lambda row: (row["kernel"], row["labeled"], SETS.index(row["dataset"])),
    )
    return grouped(rows, lambda row: (row["kernel"], row["settings"]))


def _count(rows: Sequence[dict[Any, Any]]) -> str:
    return f"{sum(bool(row['as_good']) for row in rows)} of {len(rows)}"


def _spread(mean: float, deviation: float) -> str:
    return f"{100 * mean:.2f} ± {100 * deviation:.2f}"


# ---- the kind of figure -----------------------------------------------------------------------

DOCUMENTS = {
    TABLE: ("table1", "Table 1: accuracies on the SSL sets", tables),
    SETTINGS: ("settings", "Settings, and how many cells are as good", settings_tables),
}


def _outputs(data: FigureData, names: Sequence[str]) -> Iterator[Output]:
    table = accuracies(data.traces)
    for name in names:
        file, title, make = DOCUMENTS[name]
        yield Output(file, table, title, [READING, *make(table)])


KIND = Kind("accuracies", Choices((TABLE, SETTINGS), "table", "tables"), _outputs, documents=True)
