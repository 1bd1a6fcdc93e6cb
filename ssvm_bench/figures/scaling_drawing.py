"""The figure of `scaling`: a row of panels per quantity, a column per solver and problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ssvm_bench.figures import style
from ssvm_bench.figures.drawing import PLAIN, label_log_y, page

LOOKS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#000000", "v"))
"""Colours and markers of oracles, from the cheapest on."""

_PROPORTION = "#aaaaaa"


def draw_scaling(
    table: pd.DataFrame,
    quantities: Mapping[str, str],
    headings: Mapping[int, str],
    oracles: Mapping[float, str],
    title: str,
    notes: Sequence[str] = (),
) -> Figure:
    """Draw quantities against the number of workers, both on log axes; a line per oracle.

    Parameters
    ----------
    table : DataFrame
        As `scaling.scaling` gives it, with a column ``panel``.
    quantities : mapping of str to str
        Column of the table, a row of panels each → label of its y axis.
    headings : mapping of int to str
        ``panel`` → its heading.
    oracles : mapping of float to str
        Delay → what the oracle is called, the cheapest first.
    title, notes
        As for `drawing.draw_curves`.
    """
    groups = [table[table["panel"] == panel] for panel in headings]
    looks = {delay: LOOKS[k % len(LOOKS)] for k, delay in enumerate(oracles)}
    handles = [Line2D([], [], color=color, marker=mark) for color, mark in looks.values()]
    legend = handles, list(oracles.values())
    shape = len(quantities), len(groups)
    with page(title, notes, shape, legend, sharey="row", panel_width=2.4) as (figure, panels):
        for row, (quantity, label) in zip(panels, quantities.items(), strict=True):
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
            row[0].set_ylabel(label)
        for panel, heading in zip(panels[0], headings.values(), strict=True):
            panel.set_title(style.as_written(heading), loc="left", fontweight="bold")
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
