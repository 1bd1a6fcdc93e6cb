"""From a tidy table of curves to a figure, and to the files of a figure."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ssvm_bench.figures import style
from ssvm_bench.files import write

FORMATS = ("png", "pdf", "svg")
LEGEND_COLUMNS = 5
PLAIN = FuncFormatter(lambda value, _: plain(value))
MIN_WIDTH = 6.6
"""Inches: room for the notes."""
# No dates or program versions inside: the same numbers give the same file.
_FILE_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}


def draw_curves(
    table: pd.DataFrame,
    x_label: str,
    title: str,
    notes: Sequence[str] = (),
    log_x: bool = False,
) -> Figure:
    """Draw one row of panels per problem instance and one column per quantity.

    Parameters
    ----------
    table : DataFrame
        As `curves.suboptimality` gives it.
    x_label, title : str
        Label of the x axis, with its unit; title of the figure.
    notes : sequence of str
        Remarks below the figure.
    log_x : bool
        Whether x is logarithmic; then it begins at the first value above 0.

    Returns
    -------
    Figure
        Medians as lines, minimum to maximum as shaded bands, log y.
    """
    problems = list(table.groupby(["fingerprint", "lam"], sort=False))
    quantities = list(dict.fromkeys(table["quantity"]))
    with _page(table, title, notes, len(problems), len(quantities)) as (figure, panels):
        for row, (_, problem) in zip(panels, problems, strict=True):
            for panel, quantity in zip(row, quantities, strict=True):
                panel.set_yscale("log")
                panel.set_xscale("log" if log_x else "linear")
                _draw_panel(panel, problem[problem["quantity"] == quantity])
                _label_log_y(panel)
                panel.set_ylabel(quantity)
            row[0].set_title(_problem_title(problem), loc="left", fontweight="bold")
        for panel in panels[-1]:
            panel.set_xlabel(x_label)
    return figure


def draw_selection(
    table: pd.DataFrame, x_label: str, title: str, notes: Sequence[str] = ()
) -> Figure:
    """Draw one row of panels per quantity and one column per problem instance, linear y.

    Parameters are those of `draw_curves`; the table is as `selection.selection` gives it.
    """
    problems = list(table.groupby(["fingerprint", "lam"], sort=False))
    quantities = list(dict.fromkeys(table["quantity"]))
    page = _page(table, title, notes, len(quantities), len(problems), sharex="col")
    with page as (figure, panels):
        for row, quantity in zip(panels, quantities, strict=True):
            for panel, (_, problem) in zip(row, problems, strict=True):
                _draw_panel(panel, problem[problem["quantity"] == quantity])
                panel.set_ylim(bottom=0)
            row[0].set_ylabel(quantity)
        for panel, (_, problem) in zip(panels[0], problems, strict=True):
            panel.set_title(_problem_title(problem, "\n"), loc="left", fontweight="bold")
        for panel in panels[-1]:
            panel.set_xlabel(x_label)
    return figure


@contextmanager
def _page(
    table: pd.DataFrame,
    title: str,
    notes: Sequence[str],
    rows: int,
    columns: int,
    sharex: Literal["none", "col"] = "none",
) -> Iterator[tuple[Figure, Any]]:
    """Lay out a figure: rows of panels, then below them the legend, then the notes."""
    solvers = list(dict.fromkeys(table["solver"]))
    with mpl.rc_context(style.RC):
        # In inches.
        notes_height = 0.06 + 0.16 * len(notes)
        below = notes_height + 0.22 * -(-len(solvers) // LEGEND_COLUMNS) + 0.08
        height = 0.45 + 2.5 * max(rows, 1) + below
        layout = ConstrainedLayoutEngine(
            rect=(0, below / height, 1, 1 - below / height), w_pad=0.08, h_pad=0.06
        )
        figure = Figure(figsize=(max(3.3 * columns, MIN_WIDTH), height), layout=layout)
        FigureCanvasAgg(figure)
        figure.suptitle(title)
        yield figure, figure.subplots(rows, columns, squeeze=False, sharex=sharex)
        _draw_legend(figure, solvers, notes_height / height)
        figure.text(0.5, 0.06 / height, "\n".join(notes), ha="center", va="bottom", fontsize=7.5)
        layout.execute(figure)  # once, not for every format
        figure.set_layout_engine("none")
        for panel in figure.axes:  # the layout's last digit differs from time to time
            panel.set_position(tuple(round(side, 6) for side in panel.get_position().bounds))


def _draw_panel(panel: Axes, curves: pd.DataFrame) -> None:
    """Draw the curves of one quantity on one problem instance."""
    panel.grid(axis="y")
    panel.set_axisbelow(True)
    if panel.get_xscale() == "log":
        curves = curves[curves["x"] > 0]
    for label, curve in curves.groupby("solver", sort=False):
        name = str(label)
        color = style.color(name)
        panel.fill_between(
            curve["x"], curve["min"], curve["max"], color=color, alpha=0.25, linewidth=0
        )
        panel.plot(curve["x"], curve["median"], color=color, linestyle=style.line(name))
    if curves["median"].isna().all():
        panel.text(0.5, 0.5, "no positive values", transform=panel.transAxes, ha="center")
    panel.margins(x=0.02)
    if panel.get_xscale() == "log":
        _label_log_x(panel)
        return
    whole = bool((curves["x"] % 1 == 0).all())
    panel.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=whole))


def _label_log_y(panel: Axes) -> None:
    """Label the log y axis: decades if there are two of them, else also between."""
    low, high = panel.get_ylim()
    if np.floor(np.log10(high)) > np.ceil(np.log10(low)):
        panel.yaxis.set_minor_formatter(NullFormatter())
        return
    if high / low > 5:
        panel.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    panel.yaxis.set_major_formatter(PLAIN)
    panel.yaxis.set_minor_formatter(PLAIN)
    panel.grid(axis="y", which="minor")


def _label_log_x(panel: Axes) -> None:
    """Label the log x axis with plain numbers: 1, 10, 100, 10k; within two decades also 2 and 5."""
    low, high = panel.get_xlim()
    panel.xaxis.set_major_formatter(PLAIN)
    panel.xaxis.set_minor_formatter(NullFormatter())
    if high / low < 120:
        panel.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        panel.xaxis.set_minor_formatter(PLAIN)


def plain(value: float) -> str:
    """Return a number as an axis is labelled with it: 0.02, 5,000, 20k, 1M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= max(size, 1e4):
            return f"{value / size:.4g}{letter}"
    return f"{value:,.4g}"


def _draw_legend(figure: Figure, solvers: Sequence[str], bottom: float) -> None:
    """Put one legend for all panels below them, where it covers nothing."""
    handles = [
        Line2D([], [], color=style.color(name), linestyle=style.line(name)) for name in solvers
    ]
    figure.legend(
        handles,
        [style.solver_label(name) for name in solvers],
        loc="lower center",
        bbox_to_anchor=(0.5, bottom),
        ncols=min(len(solvers), LEGEND_COLUMNS),
        handlelength=2.8,
        borderaxespad=0,
        borderpad=0,
    )


def _problem_title(problem: pd.DataFrame, between: str = ": ") -> str:
    """Say which data panels show: name, source, size, λ."""
    first = problem.iloc[0]
    name = style.DATASETS.get(first["dataset"], first["dataset"])
    source = style.SOURCES.get(first["source"], first["source"])
    n, lam = int(first["n"]), float(first["lam"])
    lam_text = "1/n" if abs(lam * n - 1) < 1e-9 else f"{lam:.3g}"
    return f"{name}{between}{source}, n = {n}, λ = {lam_text}"


def save(figure: Figure, table: pd.DataFrame, stem: Path, formats: Sequence[str]) -> list[Path]:
    """Write a figure in the given formats, and its numbers as CSV beside it.

    Parameters
    ----------
    figure, table
        The figure and the numbers it shows.
    stem : Path
        Path of the files without their suffix; the folder is created.
    formats : sequence of str
        Some of ``png``, ``pdf``, ``svg``.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    RunFailedError
        If a file cannot be written.
    """
    contents = {"csv": table.to_csv(index=False, float_format="%.6g").encode()}
    contents.update((suffix, rendered(figure, suffix)) for suffix in formats)
    return [
        write(stem.with_name(f"{stem.name}.{suffix}"), content)
        for suffix, content in contents.items()
    ]


def rendered(figure: Figure, suffix: str, dpi: int = 160) -> bytes:
    """Return the file of a figure, ``"png"``, ``"pdf"`` or ``"svg"``."""
    buffer = io.BytesIO()
    with mpl.rc_context(style.RC):
        figure.savefig(buffer, format=suffix, dpi=dpi, metadata=_FILE_METADATA[suffix])
    return buffer.getvalue()
