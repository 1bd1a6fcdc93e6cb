"""Figure 3 of the bundle-method report: how far the current solution is from the optimum.

.. code-block:: text

    y = (P(w) − F*) / F*,    F* = max F over every run ever made on the problem instance

There are two comparisons: of BMRM with P-BMRM for each P, and of BMRM with Prox-BMRM. F* is a lower
bound of the optimum, so y is too large; the note on the figure says how far F* can be too low.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ssvm_bench.figures import curves, style
from ssvm_bench.figures.document import beside
from ssvm_bench.figures.kind import CurveFigure
from ssvm_bench.papers.bmrm import bundle_runs
from ssvm_bench.results.table import BestValues, Run
from ssvm_bench.results.words import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COMPARISONS = {"BMRM and P-BMRM": ("bmrm", "p_bmrm"), "BMRM and Prox-BMRM": ("bmrm", "prox_bmrm")}
"""Comparison → its solvers."""

COMPARED = {solver for solvers in COMPARISONS.values() for solver in solvers}


def compared(traces: Sequence[Run]) -> list[Run]:
    """Return the runs of the compared solvers, on problem instances that BMRM has runs on."""
    known = {trace.problem for trace in traces if trace.solver == "bmrm"}
    runs = (trace for trace in traces if trace.solver in COMPARED)
    return [trace for trace in runs if trace.problem in known]


def relative(traces: Sequence[Run], best: BestValues, axis: str) -> pd.DataFrame:
    """Return the curves of the figure as a table, like `curves.tabulate`.

    Returns
    -------
    DataFrame
        ``curves.COLUMNS``, and ``pixels``, ``lam_n`` (λ n) and ``P``. The quantity is one of
        ``COMPARISONS``; the solver is a method's label. The largest λ of each dataset comes first.
    """
    runs = bundle_runs.runs(compared(traces))

    def values(trace: Run) -> dict[str, np.ndarray]:
        known, solver = best[trace.problem].dual, trace.solver
        distance = trace["primal"] / (known if known > 0 else np.nan) - 1
        return {name: distance for name, solvers in COMPARISONS.items() if solver in solvers}

    table = curves.tabulate([*runs["trace"]], values, axis, log=True, names=[*runs["solver"]])
    keys = ["fingerprint", "lam", "solver"]
    about = runs[[*keys, "pixels", "lam_n", "P"]].drop_duplicates(keys)
    return table.merge(about, on=keys, how="left")


def notes(traces: Sequence[Run], best: BestValues) -> list[str]:
    """Return a note on F* for readers of the figure."""
    optima = [best[trace.problem] for trace in traces]
    error = max((known.primal / known.dual - 1 for known in optima if known.dual > 0), default=0.0)
    known = "F*: the highest dual value ever seen"
    return [f"{known}; the optimum is at most {percent(error)} higher."]


# ---- the figure -------------------------------------------------------------------------------

PROX = "prox_bmrm"
Y_LABEL = "(P(w) − F*) / F*"
LINE_WIDTH = 1.0
"""Thin, because curves that fluctuate cover one another."""


def draw(
    table: pd.DataFrame,
    x_label: str,
    title: str,
    notes: Sequence[str] = (),
    log_x: bool = False,
    log_y: bool = True,
) -> Figure:
    """Draw the comparisons of each dataset below one another, λ falling from left to right.

    The parameters are those of `drawing.draw_curves`; `relative` returns the table. Of BMRM and
    P-BMRM, lighter curves have a larger P.
    """
    import matplotlib as mpl

    from ssvm_bench.figures import drawing

    lines, comparisons = style.strokes(table["solver"]), list(dict.fromkeys(table["quantity"]))
    rows = [
        [curves[curves["quantity"] == comparison] for _, curves in block.groupby("lam", sort=False)]
        for _, block in table.groupby(bundle_runs.INSTANCE, sort=False)
        for comparison in comparisons
    ]
    above: dict[tuple[int, float], Axes] = {}  # the first panel of a dataset and λ

    def draw_curves(panel: Axes, k: int, curves: pd.DataFrame) -> None:
        dataset, comparison = divmod(k, len(comparisons))
        first = above.setdefault((dataset, curves["lam"].iloc[0]), panel)
        if comparison:
            panel.sharex(first)
        else:
            lam = curves["lam_n"].iloc[0]
            instance = {"dataset": curves["dataset"].iloc[0], "lam_n": lam}
            report = bundle_runs.report_lam(instance)
            name = f"{bundle_runs.title(curves)}\n" * (curves is rows[k][0])
            drawing.set_heading(panel, f"{name}λ = {lam:g}/n (the report's λ = {report:g})")
        panel.set_yscale("log")
        panel.set_xscale("log" if log_x else "linear")
        with mpl.rc_context({"lines.linewidth": LINE_WIDTH}):
            drawing.draw_panel(panel, curves, lines)
        panel.set_xlabel(x_label)

    def finish(panel: Axes, k: int) -> None:
        drawing.label_log_y(panel)
        panel.set_ylabel(f"{comparisons[k % len(comparisons)]}\n{Y_LABEL}")

    P = dict(zip(table["solver"], table["P"], strict=True))
    order = sorted(P, key=lambda label: (label.partition(" ")[0] == PROX, P[label]))
    handles, _ = drawing.legend_of({label: lines[label] for label in order})
    legend = handles, [style.as_written(_text(label, P[label])) for label in order]
    return drawing.draw_grid(title, notes, rows, legend, draw_curves, finish)


def _text(label: str, P: int) -> str:
    """Return the text of a curve in the legend; for BMRM and P-BMRM, their P."""
    solver, _, options = label.partition(" ")
    if solver == PROX:
        return style.solver_label(label)
    options = options.removeprefix(f"P={P}").strip() or ("BMRM" if P == 1 else "")
    return f"P = {P} ({options})" if options else f"P = {P}"


KIND = CurveFigure(
    "Relative distance of the current solution to the optimum",
    file="relative_{}",
    chosen=compared,
    tabulate=relative,
    draw=draw,
    notes=notes,
).kind("relative", ["iteration", "time"], beside(__file__)["relative"])
