"""Drawing of tidy tables of curves, the layout that all figures share, and their files."""

from __future__ import annotations

import io
import shutil
import textwrap
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.figures import style
from ssvm_bench.figures.curves import why_empty
from ssvm_bench.figures.document import latex_text
from ssvm_bench.results import words

STYLE = Path(__file__).with_name("ssvm_bench.mplstyle")
RC = mpl.rc_params_from_file(STYLE, use_default_template=False)

LEGEND: Any = {"handlelength": 2.8, "handletextpad": 0.8, "columnspacing": 1.2}
LEGEND |= {"borderaxespad": 0, "borderpad": 0}
"""Lengths in a legend, in units of its font size."""
PLAIN = FuncFormatter(lambda value, _: words.tick_label(value))
Legend = tuple[Sequence[Line2D], Sequence[str]]
SIDE_BY_SIDE = 3
"""The largest number of panels in a row of a figure with one quantity."""
LONGEST, WRAPPED = 80, 46
"""Longest title of a panel in one line, and the line width of a longer one, in characters."""
MANY = 7
"""The largest number of curves that a reader finds in the legend by their looks alone."""
NEAR = 0.05
"""The least distance of two numbers of curves, in heights and widths of the panel."""
MIN_WIDTH = 6.6
"""Inches, so that the notes fit."""
TITLE_WIDTH, NOTE_WIDTH = 12, 18
"""Characters of a title and of a note in an inch; longer ones continue in the next line."""
# No dates or program versions inside: the same numbers give the same file.
_FILE_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}
_LATEX = "lualatex", "xelatex"  # they know Greek letters


def draw_curves(
    table: pd.DataFrame,
    x_label: str,
    title: str,
    notes: Sequence[str] = (),
    log_x: bool = False,
    log_y: bool = True,
    wide: bool = False,
) -> Figure:
    """Draw a panel per problem instance and quantity: medians as lines, ranges as shaded bands.

    With more than `MANY` curves, these have numbers, at their ends and in the legend.

    Parameters
    ----------
    table : DataFrame
        As returned by `curves.tabulate`.
    x_label, title : str
        Label of the x axis, with its unit; title of the figure.
    notes : sequence of str
        Remarks below the figure.
    log_x : bool
        Whether x is logarithmic; then it begins at the first value above 0.
    log_y : bool
        Whether y is logarithmic, with one row of panels per problem instance; else it begins at 0,
        with one row per quantity. In either case, several instances with one quantity share rows.
    wide : bool
        Whether dashed lines are wide and below solid ones, so that both are seen where they meet.
    """
    problems = style.by_problem(table)
    quantities = list(dict.fromkeys(table["quantity"]))
    shape = (len(problems), len(quantities)) if log_y else (len(quantities), len(problems))
    alone = len(quantities) == 1 and len(problems) > 1
    if alone:
        shape = -(-len(problems) // SIDE_BY_SIDE), min(len(problems), SIDE_BY_SIDE)
    lines = style.strokes(table["solver"])
    numbers = {name: k for k, name in enumerate(lines, 1)} if len(lines) > MANY else {}
    share: Literal["none", "col"] = "none" if log_y or alone else "col"
    layout = page(title, notes, shape, legend_of(lines, numbers), sharex=share)
    with layout as (figure, panels):
        of_problems = panels.reshape(-1, 1) if alone else panels if log_y else panels.T
        for empty in of_problems[len(problems) :, 0]:
            empty.set_axis_off()
        for problem, of_problem in zip(problems, of_problems, strict=False):
            for panel, quantity in zip(of_problem, quantities, strict=True):
                panel.set_yscale("log" if log_y else "linear")
                panel.set_xscale("log" if log_x else "linear")
                curves = problem[problem["quantity"] == quantity]
                draw_panel(panel, curves, lines, wide)
                if log_y:
                    label_log_y(panel)
                else:
                    panel.set_ylim(bottom=0)
                number_lines(panel, curves, lines, numbers)
                if log_y or panel in panels[:, 0]:
                    panel.set_ylabel(quantity)
            heading = style.problem_title(problem.iloc[0], ": " if log_y and not alone else "\n")
            if len(heading) > LONGEST:
                heading = textwrap.fill(heading, WRAPPED)
            set_heading(of_problem[0], heading)
        for panel in of_problems[: len(problems)].ravel() if alone else panels[-1]:
            panel.set_xlabel(x_label)
    return figure


def draw_grid(
    title: str,
    notes: Sequence[str],
    rows: Sequence[Sequence[pd.DataFrame]],
    legend: Legend,
    draw: Callable[[Axes, int, pd.DataFrame], None],
    finish: Callable[[Axes, int], None],
    **layout: Any,
) -> Figure:
    """Draw rows of panels that share their y axis.

    Parameters
    ----------
    title, notes, legend, layout
        As for `page`.
    rows : sequence of sequences of DataFrame
        The table of each panel; shorter rows have empty panels at their end.
    draw : callable
        Draws a panel, given the index of its row and its table.
    finish : callable
        Labels the first panel of a row after the row is drawn, given the index of the row.
    """
    shape = len(rows), max(map(len, rows))
    with page(title, notes, shape, legend, sharey="row", **layout) as (figure, panels):
        for k, (line, tables) in enumerate(zip(panels, rows, strict=True)):
            for panel, table in zip(line, tables, strict=False):
                draw(panel, k, table)
            for panel in line[len(tables) :]:
                panel.set_axis_off()
            finish(line[0], k)
    return figure


def set_heading(panel: Axes, text: str) -> None:
    """Write a heading above a panel."""
    panel.set_title(style.as_written(text), loc="left", fontweight="bold")


@contextmanager
def page(
    title: str,
    notes: Sequence[str],
    shape: tuple[int, int],
    legend: Legend,
    panel_height: float = 2.5,
    sharex: Literal["none", "col"] = "none",
    sharey: Literal["none", "row"] = "none",
    panel_width: float = 3.3,
) -> Iterator[tuple[Figure, Any]]:
    """Lay out a figure: rows of panels, then below them the legend, then the notes."""
    rows, columns = shape
    with mpl.rc_context(RC):
        # In inches.
        width = max(panel_width * columns, MIN_WIDTH)
        legend_columns = _columns(legend[1], width)
        lines = [line for note in notes for line in textwrap.wrap(note, int(NOTE_WIDTH * width))]
        notes_height = 0.06 + 0.16 * len(lines)
        below = notes_height + 0.22 * -(-len(legend[0]) // legend_columns) + 0.08
        title_lines = textwrap.wrap(title, int(TITLE_WIDTH * width)) or [""]
        height = 0.45 + 0.2 * (len(title_lines) - 1) + panel_height * max(rows, 1) + below
        inside = 0, below / height, 1, 1 - below / height
        layout = ConstrainedLayoutEngine(rect=inside, w_pad=0.08, h_pad=0.06)
        figure = Figure(figsize=(width, height))  # it would be drawn twice if it had a layout
        FigureCanvasAgg(figure)
        figure.suptitle(style.as_written("\n".join(title_lines)))
        yield figure, figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
        at = 0.5, notes_height / height  # below all panels, so that it covers nothing
        figure.legend(
            *legend, loc="lower center", bbox_to_anchor=at, ncols=legend_columns, **LEGEND
        )
        said = style.as_written("\n".join(lines))
        figure.text(0.5, 0.06 / height, said, ha="center", va="bottom", fontsize=7.5)
        for axis in (axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)):
            if not axis.get_label_text():
                axis.set_label_coords(0, 0)  # else its position is computed, twice per drawing
            if isinstance(axis.get_minor_formatter(), NullFormatter):
                axis.set_tick_params("minor", label1On=False)  # else empty labels are measured
        layout.execute(figure)  # once, not for every format
        for panel in figure.axes:  # the layout's last digits vary
            panel.set_position(tuple(round(side, 6) for side in panel.get_position().bounds))


def draw_panel(
    panel: Axes, curves: pd.DataFrame, lines: Mapping[str, style.Stroke], wide: bool = False
) -> None:
    """Draw the curves of one quantity on one problem instance; ``lines`` are their strokes.

    A point without neighbours, which makes no line, has a marker. ``wide`` is that of
    `draw_curves`.
    """
    panel.grid(axis="y")
    panel.set_axisbelow(True)
    reason = why_empty(curves)
    curves = curves[curves["x"] > 0] if panel.get_xscale() == "log" else curves.dropna(subset="x")
    for label, curve in curves.groupby("solver", sort=False):
        name = str(label)
        color, dashes = lines[name]
        ends = curve["min"], curve["max"]
        panel.fill_between(curve["x"], *ends, color=color, alpha=0.25, linewidth=0)
        alone = _alone(curve["median"].to_numpy(float))
        marker = {"marker": "o", "markevery": alone, "markersize": 4} if alone else {}
        below = {"linewidth": 3.0, "zorder": 1.9} if wide and dashes != "-" else {}
        stroke: dict[str, Any] = {"color": color, "linestyle": dashes, **marker, **below}
        panel.plot(curve["x"], curve["median"], **stroke)
        if alone and len(curve) > 1 and panel.get_xscale() == "linear":
            # else a point alone would be all of the axis
            panel.set_xlim(curve["x"].min(), curve["x"].max())
    panel.text(0.5, 0.5, reason, transform=panel.transAxes, ha="center")
    panel.margins(x=0.02)
    if panel.get_xscale() == "log":
        label_log_x(panel)
        return
    whole = bool((curves["x"] % 1 == 0).all())
    panel.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=whole))


def _alone(values: np.ndarray) -> list[int]:
    """Return the positions of values whose neighbours are not there.

    >>> _alone(np.array([1.0, np.nan, 2.0, 3.0, np.nan, np.nan, 4.0]))
    [0, 6]
    """
    there = np.isfinite(np.concatenate(([np.nan], values, [np.nan])))
    found: list[int] = np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:]).tolist()
    return found


def number_lines(
    panel: Axes,
    curves: pd.DataFrame,
    lines: Mapping[str, style.Stroke],
    numbers: Mapping[str, int],
) -> None:
    """Write the number of each curve at its end; of ends that are close, one above the other."""
    low, high = panel.get_xlim()  # and lets the panel compute its limits
    ends = []
    for label, curve in curves.groupby("solver", sort=False) if numbers else ():
        drawn = curve[(curve["x"] >= low) & (curve["x"] <= high)].dropna(subset="median")
        if len(drawn):
            at = panel.transData.transform(drawn[["x", "median"]].to_numpy()[-1])
            x, y = panel.transAxes.inverted().transform(at)
            ends.append((float(y), float(x), str(label)))
    placed: list[tuple[float, float]] = []
    for y, x, label in sorted(ends):
        close = [above for beside, above in placed if abs(beside - x) < NEAR]
        y = max([y, *(above + NEAR for above in close if above + NEAR > y)])
        placed.append((x, y))
        color = lines[label].color
        panel.text(
            *(x + 0.01, y, f"{numbers[label]}"),
            transform=panel.transAxes,
            color=color,
            fontsize=6,
            va="center",
        )


def draw_range(
    panel: Axes, height: float, row: Mapping[Hashable, Any], name: str, alpha: float, color: str
) -> None:
    """Draw the median in a column as a point, and the minimum to maximum as a bar, if known."""
    ends = [row[f"{name}_min"], row[f"{name}_max"]]
    if np.isfinite(ends).all():
        panel.plot(ends, [height] * 2, color=color, alpha=alpha, linewidth=2.4)
    if 0 < row[name] < np.inf:
        panel.plot(row[name], height, "o", color=color, alpha=alpha, markersize=4.5)


def label_log_y(panel: Axes) -> None:
    """Label the log y axis: decades if there are two of them, else values between as well."""
    low, high = panel.get_ylim()
    if np.floor(np.log10(high)) > np.ceil(np.log10(low)):
        panel.yaxis.set_minor_formatter(NullFormatter())
        return
    if high / low > 5:
        panel.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    panel.yaxis.set_major_formatter(PLAIN)
    panel.yaxis.set_minor_formatter(PLAIN)
    panel.grid(axis="y", which="minor")


def label_log_x(panel: Axes) -> None:
    """Label the log x axis with plain numbers: 1, 10, 100, 10k; within two decades also 2 and 5."""
    low, high = panel.get_xlim()
    panel.xaxis.set_major_formatter(PLAIN)
    panel.xaxis.set_minor_formatter(NullFormatter())
    if high / low < 120:
        panel.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        panel.xaxis.set_minor_formatter(PLAIN)


def legend_of(
    lines: Mapping[str, style.Stroke], numbers: Mapping[str, int] = MappingProxyType({})
) -> Legend:
    """Return the legend of curves, with their numbers if they have some."""
    handles = [Line2D([], [], color=color, linestyle=dashes) for color, dashes in lines.values()]
    first = {name: f"{number}  " for name, number in numbers.items()}
    names = [first.get(name, "") + style.solver_label(name) for name in lines]
    return handles, [style.as_written(name) for name in names]


def gaps_of(table: pd.DataFrame) -> tuple[dict[float, float], Legend]:
    """Return relative gap → opacity, the largest gap first, and the legend of the gaps."""
    gaps = sorted(set(table["gap"]), reverse=True)
    shades = dict(zip(gaps, np.linspace(0.3, 1.0, len(gaps)).tolist(), strict=True))
    point = partial(Line2D, [], [], color="black", marker="o", linestyle="none")
    points = [point(alpha=shade) for shade in shades.values()]
    return shades, (points, [f"relative gap {gap:g}" for gap in gaps])


def _columns(names: Sequence[str], width: float) -> int:
    """Return the largest number of columns of a legend that is at most ``width`` inches wide."""
    size = float(mpl.rcParams["legend.fontsize"])
    texts = [TextPath((0, 0), name, size=size).get_extents().width / size for name in names]
    room = 72 * 0.95 * width / size
    for columns in range(len(texts), 1, -1):
        widest = sum(part.max() for part in np.array_split(texts, columns))
        lengths = columns * (LEGEND["handlelength"] + LEGEND["handletextpad"])
        if widest + lengths + (columns - 1) * LEGEND["columnspacing"] <= room:
            return columns
    return 1


def rendered(figure: Figure, suffix: str, dpi: int = 160) -> bytes:
    """Return the file of a figure: ``"png"``, ``"pdf"``, ``"svg"`` or, set by LaTeX, ``"pgf"``.

    Raises
    ------
    ConfigError
        If LaTeX is needed but not installed, or the figure has pictures, which pgf cannot have.
    RunFailedError
        If LaTeX fails.
    """
    if suffix == "pgf":
        program = next(filter(shutil.which, _LATEX), None)
        if program is None:
            raise ConfigError(
                f"Figures as pgf are set by LaTeX, and none of {', '.join(_LATEX)} is installed. "
                "Install one, or choose --format pdf."
            )
        with mpl.rc_context(RC):
            return _pgf(figure, program)
    buffer = io.BytesIO()
    with mpl.rc_context(RC):
        figure.savefig(buffer, format=suffix, dpi=dpi, metadata=_FILE_METADATA.get(suffix))
    return buffer.getvalue()


def _pgf(figure: Figure, program: str) -> bytes:
    """Return the file of a figure, whose texts are measured by ``program``, a LaTeX."""
    from matplotlib.backends import backend_pgf  # importing it takes time

    def source(text: str, is_formula: bool) -> str:
        """Return what LaTeX reads: formulas are matplotlib's own, as the powers of ten."""
        return text if is_formula else latex_text(text)

    class Renderer(backend_pgf.RendererPgf):
        """Sets texts as they are written; the original passes them on, commands included."""

        def draw_text(
            self,
            gc: Any,
            x: Any,
            y: Any,
            s: Any,
            prop: Any,
            angle: Any,
            ismath: Any = False,
            mtext: Any = None,
        ) -> None:
            super().draw_text(gc, x, y, source(s, ismath), prop, angle, ismath, mtext)

        def get_text_width_height_descent(self, s: Any, prop: Any, ismath: Any) -> Any:
            return super().get_text_width_height_descent(source(s, ismath), prop, ismath)

        def draw_image(self, *arguments: Any, **options: Any) -> None:
            """Refuse a picture, which would be a file beside the figure's."""
            raise ConfigError("A figure with pictures cannot be pgf. Choose --format pdf.")

    buffer, original = io.BytesIO(), backend_pgf.RendererPgf
    backend_pgf.RendererPgf = Renderer  # type: ignore[misc]
    try:
        # the fonts are those of the document
        with mpl.rc_context({"pgf.texsystem": program, "pgf.rcfonts": False}):
            figure.savefig(buffer, format="pgf")
    except (backend_pgf.LatexError, ValueError, RuntimeError, OSError) as error:
        said = str(error)
        reason = next((line for line in said.splitlines() if line.startswith("!")), said)
        raise RunFailedError(
            f"{program} cannot set the figure: {shown(reason, 200)}. Repair LaTeX, which needs its "
            "package pgf, or choose --format pdf."
        ) from error
    finally:
        backend_pgf.RendererPgf = original  # type: ignore[misc]
    return buffer.getvalue()
