"""The figure of `targets`: a row of panels per cost, a column per problem instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import blended_transform_factory

from ssvm_bench.figures import style
from ssvm_bench.figures.drawing import label_log_x, page


def draw_targets(
    table: pd.DataFrame,
    names: Mapping[str, str],
    x_labels: Mapping[str, str],
    title: str,
    notes: Sequence[str] = (),
) -> Figure:
    """Draw one row of panels per cost and one column per problem instance; a line per solver.

    Parameters
    ----------
    table : DataFrame
        As `targets.targets` gives it.
    names : mapping of str to str
        Solver → what it is called, in the order of the rows.
    x_labels : mapping of str to str
        Cost, a column of the table → label of its x axis.
    title, notes : str, sequence of str
        As for `drawing.draw_curves`.

    Returns
    -------
    Figure
        Medians as points, the darker the smaller the gap; minimum to maximum as lines, log x.
    """
    problems = list(table.groupby(["fingerprint", "lam"], sort=False))
    solvers = list(names)
    gaps = sorted(set(table["gap"]), reverse=True)
    shades = dict(zip(gaps, np.linspace(0.3, 1.0, len(gaps)), strict=True))
    points = [
        Line2D([], [], color="black", alpha=shades[gap], marker="o", linestyle="none")
        for gap in gaps
    ]
    legend = (points, [f"relative gap {gap:g}" for gap in gaps])
    height = 0.6 + 0.19 * len(solvers)
    layout = page(title, notes, (len(x_labels), len(problems)), legend, height, sharey="row")
    with layout as (figure, panels):
        for row, (cost, x_label) in zip(panels, x_labels.items(), strict=True):
            for panel, (_, problem) in zip(row, problems, strict=True):
                panel.set_xscale("log")
                panel.grid(axis="both")
                panel.set_axisbelow(True)
                for place, solver in enumerate(solvers):
                    _draw_costs(panel, problem[problem["solver"] == solver], cost, place, shades)
                panel.set_ylim(len(solvers) - 0.5, -0.5)
                panel.set_yticks(
                    range(len(solvers)), [style.as_written(name) for name in names.values()]
                )
                panel.set_xlabel(x_label)
                label_log_x(panel)
        for panel, (_, problem) in zip(panels[0], problems, strict=True):
            panel.set_title(style.problem_title(problem, "\n"), loc="left", fontweight="bold")
    return figure


def _draw_costs(
    panel: Axes, rows: pd.DataFrame, cost: str, place: int, shades: Mapping[float, float]
) -> None:
    """Draw what it costs one solver to reach each gap, at the height ``place``."""
    text = "not reached by most runs" if len(rows) else "no runs"
    rows = rows[rows[cost].notna() & (rows[cost] > 0)]
    if rows.empty:  # x from 0 to 1 across the panel
        across = blended_transform_factory(panel.transAxes, panel.transData)
        panel.text(0.02, place, text, transform=across, va="center", size=6.5)
        return
    color = style.color(str(rows["solver"].iloc[0]))
    panel.plot(rows[cost], [place] * len(rows), color=color, linewidth=0.8, alpha=0.5)
    for gap, middle, low, high in zip(
        rows["gap"], rows[cost], rows[f"{cost}_min"], rows[f"{cost}_max"], strict=True
    ):
        panel.plot([low, high], [place, place], color=color, alpha=shades[gap], linewidth=2.4)
        panel.plot(middle, place, "o", color=color, alpha=shades[gap], markersize=4.5)
