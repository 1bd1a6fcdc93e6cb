"""The figure of `relative`: two rows of panels per dataset, one column per λ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ssvm_bench.figures import style
from ssvm_bench.figures.drawing import Legend, draw_panel, label_log_y, legend_of, page
from ssvm_bench.papers.bmrm import bundle_runs

PROX = "prox_bmrm"
Y_LABEL = "(P(w) − F*) / F*"
LINE_WIDTH = 1.0
"""Thin, as curves that fluctuate cover one another."""


def draw_relative(
    table: pd.DataFrame,
    x_label: str,
    title: str,
    notes: Sequence[str] = (),
    log_x: bool = False,
) -> Figure:
    """Draw the comparisons of each dataset below one another, λ falling from left to right.

    Parameters are those of `drawing.draw_curves`; the table is as `relative.relative` gives it. The
    lighter a curve of BMRM and P-BMRM, the larger P.
    """
    instances = [block for _, block in table.groupby(bundle_runs.INSTANCE, sort=False)]
    comparisons = list(dict.fromkeys(table["quantity"]))
    columns = max(block["lam"].nunique() for block in instances)
    shape = len(instances) * len(comparisons), columns
    lines = style.dashes(table["solver"])
    layout = page(title, notes, shape, _legend(table, lines), sharey="row")
    with layout as (figure, panels):
        for block, rows in zip(instances, np.split(panels, len(instances)), strict=True):
            problems = [problem for _, problem in block.groupby("lam", sort=False)]
            for row in rows[1:]:
                for panel, above in zip(row, rows[0], strict=True):
                    panel.sharex(above)
            for row, comparison in zip(rows, comparisons, strict=True):
                for panel, problem in zip(row, problems, strict=False):
                    panel.set_yscale("log")
                    panel.set_xscale("log" if log_x else "linear")
                    curves = problem[problem["quantity"] == comparison]
                    with mpl.rc_context({"lines.linewidth": LINE_WIDTH}):
                        draw_panel(panel, curves, lines)
                    panel.set_xlabel(x_label)
                for panel in row[len(problems) :]:
                    panel.set_axis_off()
                label_log_y(row[0])
                row[0].set_ylabel(f"{comparison}\n{Y_LABEL}")
            for panel, problem in zip(rows[0], problems, strict=False):
                panel.set_title(_lam(problem), loc="left", fontweight="bold")
            heading = f"{bundle_runs.title(block)}\n{_lam(problems[0])}"
            rows[0][0].set_title(heading, loc="left", fontweight="bold")
    return figure


def _lam(problem: pd.DataFrame) -> str:
    lam_n = problem["lam_n"].iloc[0]
    return f"λ = {lam_n:g}/n (the report's λ = {lam_n:g})"


def _legend(table: pd.DataFrame, lines: Mapping[str, style.Dashes]) -> Legend:
    """Return the legend: BMRM and P-BMRM by P, then Prox-BMRM."""
    labels = dict(zip(table["solver"], table["P"], strict=True))
    order = sorted(labels, key=lambda label: (label.partition(" ")[0] == PROX, labels[label]))
    handles, _ = legend_of({label: lines[label] for label in order})
    return handles, [style.as_written(_text(label, labels[label])) for label in order]


def _text(label: str, P: int) -> str:
    """Return what the legend says of a curve."""
    solver, _, options = label.partition(" ")
    if solver == PROX:
        return style.solver_label(label)
    options = options.removeprefix(f"P={P}").strip() or ("BMRM" if P == 1 else "")
    return f"P = {P} ({options})" if options else f"P = {P}"
