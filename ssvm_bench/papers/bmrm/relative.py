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
from ssvm_bench.results.table import Run, Runs
from ssvm_bench.results.words import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COMPARISONS = {"BMRM and P-BMRM": ("bmrm", "p_bmrm"), "BMRM and Prox-BMRM": ("bmrm", "prox_bmrm")}
"""Comparison → its solvers."""

COMPARED = {solver for solvers in COMPARISONS.values() for solver in solvers}


def compared(runs: Runs) -> Runs:
    """Return the runs of the compared solvers, on problem instances that BMRM has runs on."""
    known = {run.problem for run in runs.where(solver="bmrm")}
    return runs.where(solver=COMPARED, problem=known)


def _distance(run: Run) -> np.ndarray:
    known = run.best.dual if run.best else np.nan
    return run["primal"] / (known if known > 0 else np.nan) - 1


def relative(runs: Runs, axis: str) -> pd.DataFrame:
    """Return the curves of the figure as a table, like `curves.tabulate`.

    Returns
    -------
    DataFrame
        ``curves.COLUMNS``, and ``pixels``, ``lam_n`` (λ n) and ``P``. The quantity is one of
        ``COMPARISONS``; the solver is a method's label. The largest λ of each dataset comes first.
    """
    setups = bundle_runs.setups(compared(runs))
    keys, more = ["fingerprint", "lam", "solver"], ["pixels", "lam_n", "P"]

    def comparison(name: str) -> pd.DataFrame:
        mine = {of: each for of, each in setups.items() if of.method.solver in COMPARISONS[name]}
        labels = [of.method.label for of, each in mine.items() for _ in each]
        repeats = Runs(run for each in mine.values() for run in each)
        return curves.tabulate(repeats, {name: _distance}, axis, log=True, names=labels)

    rows = [of.columns for of in setups]
    about = pd.DataFrame(rows, columns=[*keys, *more]).drop_duplicates(keys)
    table = about.merge(pd.concat(map(comparison, COMPARISONS)), on=keys)
    return table[[*curves.COLUMNS, *more]]


def notes(runs: Runs) -> list[str]:
    """Return a note on F* for readers of the figure."""
    best = runs.best.values()
    error = max((known.primal / known.dual - 1 for known in best if known.dual > 0), default=0.0)
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
        for _, block in table.groupby([*bundle_runs.Data._fields], sort=False)
        for comparison in comparisons
    ]
    above: dict[tuple[int, float], Axes] = {}  # the first panel of a dataset and λ

    def draw_curves(panel: Axes, k: int, curves: pd.DataFrame) -> None:
        dataset, comparison = divmod(k, len(comparisons))
        first = above.setdefault((dataset, curves["lam"].iloc[0]), panel)
        if comparison:
            panel.sharex(first)
        else:
            row = curves.iloc[0]
            data = bundle_runs.Data(*row[[*bundle_runs.Data._fields]])
            lam, report = row["lam_n"], bundle_runs.report_lam(data.dataset, row["lam_n"])
            name = f"{data.title}\n" * (curves is rows[k][0])
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
        words = " ".join(bundle_runs.RULES.get(text, text) for text in options.split())
        return f"{style.solver_label(solver)} ({words})" if words else style.solver_label(solver)
    options = options.removeprefix(f"P={P}").strip() or ("BMRM" if P == 1 else "")
    return f"P = {P} ({options})" if options else f"P = {P}"


KIND = CurveFigure(
    "Relative distance of the current solution to the optimum",
    file="relative_{}",
    chosen=compared,
    quantities=relative,
    draw=draw,
    notes=notes,
).kind("relative", ["iteration", "time"], beside(__file__)["relative"])
