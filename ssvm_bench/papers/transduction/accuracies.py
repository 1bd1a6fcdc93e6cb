"""Table 1: accuracies of DC-ADMM on the SSL sets over their splits, beside the paper's.

========  =======================================================================================
table     a row per set and number of labels: ours, the inductive classifier, paper, distance, SDP
settings  a row per choice of the options that the paper leaves open
reached   as ``table``, for settings of our own, without a verdict
compared  a row per set, number of labels and setting: accuracy and objective
========  =======================================================================================

A mean is **within** the paper's if it differs by at most the printed ±. The caption calls this
number a variance; if it is one, the deviation is its root (`Spread.root`).
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
    Spread,
    cell_of,
)
from ssvm_bench.papers.transduction.tables import TEXTS, of_draws, row_of
from ssvm_bench.results.table import Run
from ssvm_bench.results.words import NONE

OPEN = ("scaling", "sigma", "nu", "balance", "start", "rho", "tau", "delta")
"""Options of objective and solver that the paper leaves open, or that we may choose otherwise."""

PRINTED = ("sdp", "sdp_deviation", "printed", "printed_deviation")
COLUMNS = [
    *("dataset", "source", "labeled", "kernel", "settings", "splits", "mean", "deviation"),
    *("inductive", "inductive_deviation", "iterations", "seconds", "converged", "objective"),
    *(*PRINTED, "distance", "within", "within_root", "of_all"),
]


def accuracies(traces: Sequence[Run]) -> pd.DataFrame:
    """Return the accuracy on each set, for each number of labels, method and setting.

    Returns
    -------
    DataFrame
        ``COLUMNS``: ``mean`` and ``deviation`` over ``splits``, then those of the inductive
        classifier on the same problem, median ``iterations`` and ``seconds``, how many runs have
        ``converged``, the mean ``objective``, the paper's cell, the ``distance`` to its mean, and
        whether this is ``within`` the printed ±, and within its root (``within_root``); last, the
        mean accuracy ``of_all`` points, where labelled points count as right.
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
            row["distance"] = row["mean"] - cell.proposed.mean
            row["within"] = cell.proposed.has(row["mean"])
            row["within_root"] = cell.proposed.root.has(row["mean"])
            share = row["labeled"] / run.n
            rows.append({**row, "of_all": share + (1.0 - share) * row["mean"]})
    return pd.DataFrame(rows, columns=COLUMNS)


def _right(run: Run) -> float:
    return 1.0 - by.error(run)


def _is_of_table_1(run: Run) -> bool:
    known = run.solver in (by.PROPOSED, INDUCTIVE, by.ALTERNATING)
    return known and "dataset.labeled" in run.options and cell_of(run) in TABLE_1


def _settings(run: Run) -> str:
    config: Any = run.config
    options = {**config["oracle"], **config["solver"]}
    if options["kernel"] == "linear":
        del options["sigma"]
    first = [] if options["name"] == by.PROPOSED else [style.solver_label(options["name"])]
    return ", ".join(first + [f"{name} {options[name]}" for name in OPEN if name in options])


# ---- the tables -------------------------------------------------------------------------------


def _inductive(row: Mapping[str, Any]) -> str:
    return _spread(row["inductive"], row["inductive_deviation"])


def _ours(row: Mapping[str, Any]) -> str:
    return bold(_spread(row["mean"], row["deviation"]), row["within"])


TABLE = described(__file__, "table1", {"inductive": _inductive, "ours": _ours}, **TEXTS)
REACHED = described(__file__, "reached", {"inductive": _inductive}, **TEXTS)
COMPARED = described(__file__, "compared")


def by_setting(table: pd.DataFrame) -> Iterator[Block]:
    """Yield the table of each kernel and setting, and a summary of it."""
    yield TABLE.text
    settings = _ordered(table).groupby(list(TABLE.by), sort=False)
    for _, rows in settings:
        yield from TABLE.tables(rows)
        yield _in_all(rows.to_dict("records"))
    if len(settings) > 1:
        yield f"**Both kernels.** {_in_all(table.to_dict('records'))}"


def _in_all(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Return a summary: cells within the printed ±, mean distances, and cells above SDP."""
    cells = [TABLE_1[row["dataset"], row["labeled"], row["kernel"]] for row in rows]
    pairs = [*zip(rows, (cell.proposed for cell in cells), strict=True)]

    def far(of: Callable[[Mapping[Any, Any], Spread], float]) -> str:
        return f"{100 * np.mean([abs(of(*pair)) for pair in pairs]):.1f}"

    text = TEXTS["in_all"].format(
        n=len(rows),
        within=sum(bool(row["within"]) for row in rows),
        root=sum(bool(row["within_root"]) for row in rows),
        far=far(lambda row, _: row["distance"]),
        of_all=far(lambda row, ours: row["of_all"] - ours.mean),
        above=sum(row["mean"] > row["sdp"] for row in rows),
        printed=sum(cell.proposed.mean > cell.sdp.mean for cell in cells),
    )
    pairs = [(row, ours) for row, ours in pairs if row["inductive"] > 0]
    if not pairs:
        return text
    beside = TEXTS["in_all_inductive"].format(
        n=len(pairs),
        near=sum(ours.has(row["inductive"]) for row, ours in pairs),
        far=far(lambda row, ours: row["inductive"] - ours.mean),
        better=sum(row["mean"] > row["inductive"] for row, _ in pairs),
        printed=sum(ours.mean > row["inductive"] for row, ours in pairs),
    )
    return f"{text} {beside}"


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
    "reached": ("reached", REACHED.title, lambda table: REACHED.blocks(None, _ordered(table))),
    "compared": ("compared", COMPARED.title, lambda table: COMPARED.blocks(None, _ordered(table))),
}


def _output(name: str, data: FigureData) -> Iterator[Output]:
    (file, title, make), table = DOCUMENTS[name], accuracies(data.runs)
    yield Output(file, table, title, list(make(table)))


KIND = kind_of("accuracies", {name: partial(_output, name) for name in DOCUMENTS}, "table")
