"""Table 1: accuracies of DC-ADMM on the SSL sets over their splits, beside the paper's.

========  =======================================================================================
paper     a row per set and number of labels: accuracy on all points, as found and as printed
relaxed   the same for the relaxation (``sdp``), by each of its losses
table     the same on unlabelled points, beside the inductive classifier
settings  a row per choice of the options that the paper leaves open
reached   as ``table``, for settings of our own
compared  a row per set, number of labels and setting: accuracy and objective
========  =======================================================================================

A mean is **within** the paper's if it differs by at most the printed ±. Distances from the paper's
means are those of the accuracy on all points, labelled ones included: that is what it prints. The
caption calls the number after ± a variance; it is a standard deviation, with n − 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.figures import style
from ssvm_bench.figures.document import Block, Table, bold, described
from ssvm_bench.figures.kind import FigureData, Output, kind_of
from ssvm_bench.papers.transduction import measures as by
from ssvm_bench.papers.transduction.measures import (
    INDUCTIVE,
    KERNELS,
    LABELED,
    SETS,
    TABLE_1,
    cell_of,
)
from ssvm_bench.papers.transduction.tables import TEXTS, of_draws, row_of
from ssvm_bench.results.table import Run
from ssvm_bench.results.words import NONE

OPEN = ("scaling", "sigma", "nu", "balance", "start", "rho", "tau", "delta", "ties", "order")
"""Options that the paper leaves open, or that we may choose otherwise."""

PRINTED = ("sdp", "sdp_deviation", "printed", "printed_deviation")
COLUMNS = [
    *("dataset", "source", "labeled", "kernel", "settings", "splits", "mean", "deviation"),
    *("inductive", "inductive_deviation", "iterations", "seconds", "converged", "objective"),
    *("of_all", "of_all_deviation", *PRINTED, "distance", "within", "off_diagonal"),
]


def accuracies(traces: Sequence[Run]) -> pd.DataFrame:
    """Return the accuracy on each set, for each number of labels, method and setting.

    Returns
    -------
    DataFrame
        ``COLUMNS``: ``mean`` and ``deviation`` over ``splits`` of the accuracy on unlabelled
        points, then those of the inductive classifier on the same problem, median ``iterations``
        and ``seconds``, how many runs have ``converged``, the mean ``objective``; the accuracy
        ``of_all`` points, the paper's cell, the ``distance`` between their means (for the
        relaxation that of SDP), and whether it is ``within`` the printed ±; the mean of K beside
        its diagonal.
    """
    rows = []
    for case in of_draws(run for run in traces if _is_of_table_1(run)):
        first = [next(iter(runs.values())) for runs in case.runs.values()]
        solver = [run.solver for run in first]
        there = dict(zip(solver, case.runs, strict=True))
        inductive = row_of(case, there[INDUCTIVE], _right) if INDUCTIVE in there else {}
        for name, run, label in zip(solver, first, case.runs, strict=True):
            if name == INDUCTIVE:
                continue
            row, cell = row_of(case, label, _right), TABLE_1[cell_of(run)]
            row |= zip(("dataset", "labeled", "kernel"), cell_of(run), strict=True)
            row |= {"settings": _settings(run), "splits": row["runs"]}
            row["inductive"] = inductive.get("mean", np.nan)
            row["inductive_deviation"] = inductive.get("deviation", np.nan)
            row |= zip(PRINTED, (*cell.sdp, *cell.proposed), strict=True)
            everything = np.array([by.of_all(of) for of in case.runs[label].values()])
            row["of_all"], row["of_all_deviation"] = everything.mean(), by.spread(everything)
            printed = cell.sdp if name == by.RELAXED else cell.proposed
            row["distance"] = row["of_all"] - printed.mean
            row["within"] = printed.has(row["of_all"])
            row["off_diagonal"] = by.beside_diagonal(case.runs[label].values())
            rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def _right(run: Run) -> float:
    return 1.0 - by.error(run)


def _is_of_table_1(run: Run) -> bool:
    known = run.solver in (by.PROPOSED, INDUCTIVE, by.ALTERNATING, by.RELAXED)
    return known and "dataset.labeled" in run.options and cell_of(run) in TABLE_1


def _settings(run: Run) -> str:
    config: Any = run.config
    options = {**config["dataset"], **config["oracle"], **config["solver"]}
    if options["kernel"] == "linear":
        del options["sigma"]
    elif options["sigma"] is None:
        options["sigma"] = "median"
    first = [] if options["name"] == by.PROPOSED else [style.solver_label(options["name"])]
    if options["name"] == by.RELAXED:
        first = [f"{first[0]} by {options['loss']}"]
    return ", ".join(first + [f"{name} {options[name]}" for name in OPEN if name in options])


# ---- the tables -------------------------------------------------------------------------------


def _inductive(row: Mapping[str, Any]) -> str:
    return _spread(row["inductive"], row["inductive_deviation"])


def _found(row: Mapping[Any, Any]) -> str:
    return bold(_spread(row["of_all"], row["of_all_deviation"]), row["within"])


TABLE = described(__file__, "table1", {"inductive": _inductive}, **TEXTS)
REACHED = described(__file__, "reached", {"inductive": _inductive}, **TEXTS)


def _further(row: Mapping[str, Any]) -> str:
    return f"{round(100 * row['distance'], 2) + 0.0:+.2f}"  # no −0


PAPER = described(__file__, "paper", {"found": _found, "distance": _further}, **TEXTS)
RELAXED = described(__file__, "relaxed", {"found": _found, "inductive": _inductive}, **TEXTS)
COMPARED = described(__file__, "compared")


def by_setting(table: pd.DataFrame) -> Iterator[Block]:
    """Yield the table of each kernel and setting, and a summary of it."""
    yield TABLE.text
    settings = _ordered(table).groupby(list(TABLE.by), sort=False)
    for _, rows in settings:
        yield from TABLE.tables(rows)
        yield _in_all(rows)
    if len(settings) > 1:
        yield f"**Both kernels.** {_in_all(table)}"


def _in_all(rows: pd.DataFrame) -> str:
    """Return a summary: the mean distance, and the cells with more than the inductive accuracy."""
    far, known = f"{100 * rows['distance'].abs().mean():.1f}", rows["inductive"].notna()
    text = TEXTS["in_all"].format(n=len(rows), far=far)
    better = (rows["mean"] > rows["inductive"]).sum()
    beside = TEXTS["in_all_inductive"].format(n=known.sum(), better=better)
    return f"{text} {beside}" if known.any() else text


def as_printed(table: pd.DataFrame) -> Iterator[Block]:
    """Yield the table of each kernel and setting, and how far it is from what is printed."""
    yield PAPER.text
    for _, rows in _ordered(table).groupby(list(PAPER.by), sort=False):
        yield from PAPER.tables(rows)
        yield TEXTS["as_printed"].format(
            n=len(rows),
            within=rows["within"].sum(),
            far=f"{100 * rows['distance'].abs().mean():.2f}",
            exact=sum(_found(row).strip("*") == _printed(row) for row in rows.to_dict("records")),
        )


def _printed(row: Mapping[Any, Any]) -> str:
    return _spread(row["printed"], row["printed_deviation"])


def settings_tables(table: pd.DataFrame) -> Iterator[Block]:
    """Yield a table per kernel with a row for each setting."""
    yield TABLE.text
    cells = [(dataset, labeled) for labeled in LABELED for dataset in SETS]
    names = [f"{style.dataset_name(dataset)} {labeled}" for dataset, labeled in cells]
    for kernel in KERNELS:
        lines = []
        mine = _ordered(table[table["kernel"] == kernel])
        for settings, rows in mine.groupby("settings", sort=False):
            by_cell = {(row["dataset"], row["labeled"]): row for row in rows.to_dict("records")}
            if all(cell in by_cell for cell in cells):
                shown = [by_cell[cell] for cell in cells]
                means = [bold(f"{100 * row['mean']:.1f}", row["within"]) for row in shown]
                columns = ([abs(row[of]) for row in shown] for of in ("mean", "distance"))
                last = [f"{100 * np.mean(values):.1f}" for values in columns]
                within = f"{sum(bool(row['within']) for row in shown)} of {len(shown)}"
                lines.append([str(settings), *means, *last, within])
        if lines:
            yield Table(kernel, ["settings", *names, "mean", "mean distance", "within ±"], lines)


def _ordered(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by kernel, in the order of the paper's table."""
    place = table["dataset"].map(SETS.index)
    return table.assign(place=place).sort_values(["kernel", "labeled", "place"], kind="stable")


def _spread(mean: float, deviation: float) -> str:
    return NONE if np.isnan(mean) else f"{100 * mean:.2f} ± {100 * deviation:.2f}"


# ---- the kind of figure -----------------------------------------------------------------------

DOCUMENTS: dict[str, tuple[str, str, Callable[[pd.DataFrame], Iterable[Block]]]] = {
    "table": ("table1", TABLE.title, by_setting),
    "settings": ("settings", "Settings, and how near they are to Table 1", settings_tables),
    "paper": ("paper", PAPER.title, as_printed),
    "reached": ("reached", REACHED.title, lambda table: REACHED.blocks(None, _ordered(table))),
    "relaxed": ("relaxed", RELAXED.title, lambda table: RELAXED.blocks(None, _ordered(table))),
    "compared": ("compared", COMPARED.title, lambda table: COMPARED.blocks(None, _ordered(table))),
}


def _output(name: str, data: FigureData) -> Iterator[Output]:
    (file, title, make), table = DOCUMENTS[name], accuracies(data.runs)
    yield Output(file, table, title, list(make(table)))


KIND = kind_of("accuracies", {name: partial(_output, name) for name in DOCUMENTS}, "table")
