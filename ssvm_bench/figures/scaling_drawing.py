"""The figure of `scaling`: a row of panels per quantity, a column per solver and problem."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ssvm_bench.figures import style
from ssvm_bench.figures.drawing import PLAIN, label_log_y, page
from ssvm_bench.figures.scaling import QUANTITIES, curve_name, oracle_name

LOOKS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#000000", "v"))
"""Colours and markers of oracles, from the cheapest on."""

_PROPORTION = "#aaaaaa"


def draw_scaling(
    table: pd.DataFrame, quantities: Sequence[str], title: str, notes: Sequence[str] = ()
) -> Figure:
    """Draw quantities against the number of workers, both on log axes; a line per oracle.

    Parameters
    ----------
    table : DataFrame
        As `scaling.scaling` gives it.
    quantities : sequence of str
        Some of ``QUANTITIES``: a row of panels each.
    title, notes
        As for `drawing.draw_curves`.
    """
    columns = ["fingerprint", "lam", "solver", "batch", "engine"]
    groups = [group for _, group in table.groupby(columns, sort=False)]
    delays = sorted(set(table["delay"]))
    looks = {delay: LOOKS[k % len(LOOKS)] for k, delay in enumerate(delays)}
    handles = [Line2D([], [], color=color, marker=mark) for color, mark in looks.values()]
    legend = handles, [oracle_name(delay) for delay in delays]
    shape = len(quantities), len(groups)
    with page(title, notes, shape, legend, sharey="row", panel_width=2.4) as (figure, panels):
        for row, quantity in zip(panels, quantities, strict=True):
            for panel, group in zip(row, groups, strict=True):
                panel.set_xscale("log", base=2)
                panel.set_yscale("log", base=2 if quantity == "speedup" else 10)
                panel.grid(axis="both")
                panel.set_axisbelow(True)
                for delay, (color, mark) in looks.items():
                    curve = group[group["delay"] == delay].dropna(subset=quantity)
                    _draw(panel, curve, quantity, color, mark)
                panel.set_xticks(sorted(set(group["workers"])))
                panel.xaxis.set_major_formatter(PLAIN)
            if quantity == "speedup":
                row[0].yaxis.set_major_formatter(PLAIN)
            else:
                label_log_y(row[0])
            row[0].set_ylabel(QUANTITIES[quantity])
        for panel, group in zip(panels[0], groups, strict=True):
            first = group.iloc[0].to_dict()
            name = f"{curve_name(first)}\n{style.dataset_name(first['dataset'])}"
            stand_in = " (stand-in)" * (first["source"] == "synthetic")
            name += f"{stand_in}, gap {first['gap']:g}"
            panel.set_title(style.as_written(name), loc="left", fontweight="bold")
        for panel in panels[-1]:
            panel.set_xlabel("workers")
    return figure


def _draw(panel: Axes, curve: pd.DataFrame, quantity: str, color: str, mark: str) -> None:
    """Draw a curve, over what it would be in proportion to the workers."""
    if curve.empty:
        return
    first = curve.iloc[0]
    factor = curve["workers"] / first["workers"]
    ideal = first[quantity] * factor if quantity == "speedup" else first[quantity] / factor
    panel.plot(curve["workers"], ideal, color=_PROPORTION, linewidth=1.0, zorder=1)
    panel.plot(curve["workers"], curve[quantity], color=color, marker=mark, markersize=4)
