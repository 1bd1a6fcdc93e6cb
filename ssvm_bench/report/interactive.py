"""Interactive figures: the tables of the paper's figures, as plotly draws them.

A figure is a plain dict in plotly's format. The buttons that switch its x axis carry the curves
over the other axes and exchange x and y of every line, so that solvers which the reader has
switched off stay off.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from ssvm_bench.figures import style
from ssvm_bench.figures.curves import AXES, why_empty

DASHES = {"-": "solid", "--": "dash", ":": "dot", "-.": "dashdot"}
"""What plotly calls the line styles."""

FURTHER = ("dot", "dashdot", "longdash", "longdashdot")
"""Of further curves of one solver, which share its colour."""

LOG = {"type": "log", "exponentformat": "power", "nticks": 4}  # more of them: 2 to 9, crowded
DIGITS = 5
HEIGHT = 430
FONT = "system-ui, sans-serif"
LAYOUT = {
    "height": HEIGHT,
    "margin": {"l": 75, "r": 20, "t": 80, "b": 60},
    "font": {"family": FONT, "size": 13},
    "paper_bgcolor": "white",
    "plot_bgcolor": "white",
    "hovermode": "closest",
    "legend": {"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top"},
}
LINES = {
    "showgrid": True,
    "gridcolor": "#dddddd",
    "zeroline": False,
    "linecolor": "#444",
    "autorange": True,
}
MENU = {
    "type": "buttons",
    "direction": "right",
    "showactive": True,
    "pad": {"t": 0, "b": 0},
    "x": 0,
    "xanchor": "left",
    "y": 1.08,
    "yanchor": "bottom",
}
CONFIG: dict[str, Any] = {
    "responsive": True,
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "sendChartToCloud"],
    "showSendToCloud": False,
    "plotlyServerURL": "",
    "toImageButtonOptions": {"format": "svg"},
}
"""Of plotly; by default it offers to upload a figure, which a page without network must not."""


def figure(
    tables: Mapping[str, pd.DataFrame], labels: Mapping[str, str], log: bool
) -> dict[str, Any]:
    """Return a figure with one panel per quantity.

    Parameters
    ----------
    tables : dict
        x axis → curves of one problem instance, as `figures.curves.tabulate` gives them. The
        first one is shown until another is asked for.
    labels : dict
        x axis → its label.
    log : bool
        Whether y is on a log axis.

    Returns
    -------
    dict
        ``data`` and ``layout``.
    """
    first = next(iter(tables.values()))
    solvers = list(dict.fromkeys(first["solver"]))
    quantities = list(dict.fromkeys(first["quantity"]))
    numbers = ["", *map(str, range(2, len(quantities) + 1))]  # of panels, as plotly counts them
    drawn = {axis: list(_values(table, solvers, quantities)) for axis, table in tables.items()}
    shown = next(iter(drawn.values()))
    data = [
        {**look, **values} for look, values in zip(_looks(solvers, numbers), shown, strict=True)
    ]
    buttons = []
    for axis, values in drawn.items():
        switched = {key: [one[key] for one in values] for key in ("x", "y", "customdata")}
        # With another x axis go its label, and no zoom.
        change: dict[str, Any] = {}
        for number in numbers:
            change[f"xaxis{number}.title.text"] = html.escape(labels[axis])
            change |= {f"xaxis{number}.autorange": True, f"yaxis{number}.autorange": True}
        button = {"label": AXES[axis].button, "method": "update"}
        buttons.append({**button, "args": [switched, change]})
    grid = {"rows": 1, "columns": len(quantities), "pattern": "independent", "xgap": 0.28}
    layout: dict[str, Any] = {**LAYOUT, "grid": grid, "annotations": []}
    layout["updatemenus"] = [{**MENU, "buttons": buttons}]
    scale = LOG if log else {"rangemode": "tozero"}
    label = next(iter(labels.values()))
    for number, quantity in zip(numbers, quantities, strict=True):
        layout[f"xaxis{number}"] = {**LINES, "title": _title(label)}
        layout[f"yaxis{number}"] = {**LINES, **scale, "title": _title(quantity)}
        if reason := why_empty(first[first["quantity"] == quantity]):
            where = {"xref": f"x{number} domain", "yref": f"y{number} domain"}
            empty = {"text": reason, "x": 0.5, "y": 0.5, "showarrow": False}
            layout["annotations"].append({**where, **empty})
    return {"data": data, "layout": layout}


def library() -> Markup:
    """Return the markup of plotly's library, which a page with figures has to bring once."""
    from plotly.offline import get_plotlyjs

    return Markup(f"<script>{get_plotlyjs()}</script>")


def render(drawn: dict[str, Any], id_: str) -> Markup:
    """Return the markup of a figure."""
    import plotly.io as pio

    text = pio.to_html(
        drawn,
        config=CONFIG,
        include_plotlyjs=False,
        full_html=False,
        default_height=f"{HEIGHT}px",
        validate=False,
        div_id=id_,
    )
    return Markup(text)


def _title(text: str) -> dict[str, Any]:
    return {"text": html.escape(text), "font": {"size": 13}, "standoff": 8}


def _looks(solvers: Sequence[str], numbers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield how bands and lines look, in the order of `_values`."""
    hover = "at %{x}: %{y:.3g}<br>from %{customdata[0]:.3g} to %{customdata[1]:.3g}, "
    for solver, before in style.repeats(solvers).items():
        # plotly takes its texts for markup, too.
        name, color = html.escape(style.solver_label(solver), quote=False), style.color(solver)
        dash = FURTHER[(before - 1) % len(FURTHER)] if before else DASHES[style.line(solver)]
        filled = {"fill": "toself", "fillcolor": _transparent(color), "line": {"width": 0}}
        line = {"line": {"color": color, "dash": dash, "width": 2}, "connectgaps": False}
        for number in numbers:
            look = {"type": "scatter", "mode": "lines", "legendgroup": solver, "name": name}
            look |= {"xaxis": f"x{number}", "yaxis": f"y{number}"}
            yield {**look, **filled, "showlegend": False, "hoverinfo": "skip"}
            hovers = {"hovertemplate": hover + "repeats: %{customdata[2]}"}
            yield {**look, **line, **hovers, "showlegend": not number}


def _values(
    table: pd.DataFrame, solvers: Sequence[str], quantities: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield x and y of bands and lines: per solver, per quantity, first the band."""
    curves = dict(iter(table.groupby(["solver", "quantity"], sort=False)))
    for solver in solvers:
        for quantity in quantities:
            curve = curves.get((solver, quantity), table.iloc[:0])
            yield _band(curve)
            extremes = zip(
                _numbers(curve["min"]), _numbers(curve["max"]), curve["repeats"], strict=True
            )
            yield {
                # Without any point, plotly would leave it out of the legend.
                "x": _numbers(curve["x"]) or [None],
                "y": _numbers(curve["median"]) or [None],
                "customdata": [[low, high, int(count)] for low, high, count in extremes],
                "mode": "lines+markers" if curve["median"].notna().sum() in (1, 2) else "lines",
            }


def _band(curve: pd.DataFrame) -> dict[str, Any]:
    """Return the outline of the band: one polygon per piece, nothing for a single repeat."""
    x: list[float | None] = []
    y: list[float | None] = []
    there = curve["min"].notna().to_numpy()
    edges = np.flatnonzero(np.diff(there, prepend=False, append=False))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        piece = curve.iloc[begin:end]
        if len(piece) > 1 and (piece["max"] > piece["min"]).any():
            along, low, high = (_numbers(piece[name]) for name in ("x", "min", "max"))
            x += [*along, *along[::-1], None]
            y += [*high, *low[::-1], None]
    # A trace without any point would be left out when its solver is switched off.
    return {"x": x or [None], "y": y or [None], "customdata": []}


def _numbers(values: pd.Series) -> list[float | None]:
    """Return values as JSON has them, with the digits that a screen can show."""
    return [None if np.isnan(value) else float(f"{value:.{DIGITS}g}") for value in values]


def _transparent(color: str) -> str:
    red, green, blue = (int(color[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.2)"
