"""From a tidy table of curves to a figure, and to the files of a figure."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullFormatter, StrMethodFormatter

from ssvm_bench.errors import RunFailedError
from ssvm_bench.figures import style

FORMATS = ("png", "pdf", "svg")
LEGEND_COLUMNS = 5
# No dates or program versions inside: the same numbers give the same file.
_FILE_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}


def draw_curves(table: pd.DataFrame, x_label: str, title: str, notes: Sequence[str] = ()) -> Figure:
    """Draw one row of panels per problem instance and one column per quantity.

    Parameters
    ----------
    table : DataFrame
        As `curves.suboptimality` gives it.
    x_label, title : str
        Label of the x axis, with its unit; title of the figure.
    notes : sequence of str
        Remarks below the figure.

    Returns
    -------
    Figure
        Medians as lines, minimum to maximum as shaded bands, log y.
    """
    problems = list(table.groupby(["fingerprint", "lam"], sort=False))
    quantities = list(dict.fromkeys(table["quantity"]))
    solvers = list(dict.fromkeys(table["solver"]))
    with mpl.rc_context(style.RC):
        # In inches: rows of panels, then below them the legend, then the notes.
        notes_height = 0.06 + 0.16 * len(notes)
        below = notes_height + 0.22 * -(-len(solvers) // LEGEND_COLUMNS) + 0.08
        height = 0.45 + 2.5 * len(problems) + below
        layout = ConstrainedLayoutEngine(
            rect=(0, below / height, 1, 1 - below / height), w_pad=0.08, h_pad=0.06
        )
        figure = Figure(figsize=(3.3 * len(quantities), height), layout=layout)
        FigureCanvasAgg(figure)
        figure.suptitle(title)
        panels = figure.subplots(len(problems), len(quantities), squeeze=False)
        for row, (_, problem) in zip(panels, problems, strict=True):
            for panel, quantity in zip(row, quantities, strict=True):
                _draw_panel(panel, problem[problem["quantity"] == quantity])
                panel.set_ylabel(quantity)
            row[0].set_title(_row_title(problem), loc="left", fontweight="bold")
        for panel in panels[-1]:
            panel.set_xlabel(x_label)
        _draw_legend(figure, solvers, notes_height / height)
        figure.text(0.5, 0.06 / height, "\n".join(notes), ha="center", va="bottom", fontsize=7.5)
    return figure


def _draw_panel(panel: Axes, curves: pd.DataFrame) -> None:
    """Draw the curves of one quantity on one problem instance."""
    panel.set_yscale("log")
    panel.grid(axis="y")
    panel.set_axisbelow(True)
    for label, curve in curves.groupby("solver", sort=False):
        name = str(label)
        color = style.color(name)
        panel.fill_between(
            curve["x"], curve["min"], curve["max"], color=color, alpha=0.25, linewidth=0
        )
        # Where a repeat has ended, the median of those that are left jumps.
        median = curve["median"].where(curve["repeats"] == curve["repeats"].max())
        panel.plot(curve["x"], median, color=color, linestyle=style.line(name))
    if curves["median"].isna().all():
        panel.text(0.5, 0.5, "no positive values", transform=panel.transAxes, ha="center")
    panel.margins(x=0.02)
    whole = bool((curves["x"] % 1 == 0).all())
    panel.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=whole))
    low, high = panel.get_ylim()
    if high / low > 10:  # two labelled decades at least: labels between them only clutter
        panel.yaxis.set_minor_formatter(NullFormatter())
    else:
        panel.yaxis.set_major_formatter(StrMethodFormatter("{x:.4g}"))
        panel.yaxis.set_minor_formatter(StrMethodFormatter("{x:.4g}"))
        panel.grid(axis="y", which="minor")


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


def _row_title(problem: pd.DataFrame) -> str:
    """Say which data a row of panels shows: name, source, size, λ."""
    first = problem.iloc[0]
    name = style.DATASETS.get(first["dataset"], first["dataset"])
    source = style.SOURCES.get(first["source"], first["source"])
    n, lam = int(first["n"]), float(first["lam"])
    lam_text = "1/n" if abs(lam * n - 1) < 1e-9 else f"{lam:.3g}"
    return f"{name}: {source}, n = {n}, λ = {lam_text}"


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


def rendered(figure: Figure, suffix: str) -> bytes:
    """Return the file of a figure, ``"png"``, ``"pdf"`` or ``"svg"``."""
    buffer = io.BytesIO()
    with mpl.rc_context(style.RC):
        figure.savefig(buffer, format=suffix, dpi=160, metadata=_FILE_METADATA[suffix])
    return buffer.getvalue()


def write(path: Path, content: bytes) -> Path:
    """Write a file at once, creating its folder; return its path.

    Raises
    ------
    RunFailedError
        If it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        raise RunFailedError(
            f"Cannot write the figure {path}: {error.strerror or error}. Make room there or "
            "make it writable, or choose another place (results_dir=…, --output), then draw again."
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()
    return path
