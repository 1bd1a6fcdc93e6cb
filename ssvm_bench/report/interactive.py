"""Figures of curves as ``page.js`` draws them when they are seen: their numbers, packed.

A value takes two bytes: where it is between the ends of its axis, in 65,534 steps, on a log axis of
its logarithm. So it has the precision of a screen many times over, and no JSON of decimals.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ssvm_bench.figures import style
from ssvm_bench.figures.curves import AXES, needs_log_x, why_empty
from ssvm_bench.figures.kind import Switched

STEPS = 65_534
GONE = STEPS + 1
"""What stands for a value that does not exist."""

DASHES = {"-": "", "--": "7 3", ":": "1.5 2.5", "-.": "7 2.5 1.5 2.5"}
"""Line style → lengths of lines and spaces."""

NOTHING = np.empty(0, int)
Ends = tuple[float, float]


def figure(shown: Switched) -> dict[str, Any]:
    """Return a figure with one panel per quantity.

    Returns
    -------
    dict
        ``panels``, their names; ``empty``, why a panel has no curve; ``log``, whether y is on a log
        axis; ``curves``, name and look of each; and ``axes``. Each x axis has its button and label,
        whether it is on a log axis, the ends of ``x`` and, per panel, of ``y``; and of each curve
        its x and, per panel, its median, and minimum and maximum where repeats differ.
    """
    first = next(iter(shown.tables.values()))
    solvers = list(dict.fromkeys(first["solver"]))
    quantities = list(dict.fromkeys(first["quantity"]))
    dashes = style.dashes(solvers)
    curves = [
        {
            "name": style.solver_label(solver),
            "color": style.color(solver),
            "dash": _lengths(dashes[solver]),
        }
        for solver in solvers
    ]
    axes = []
    for axis, table in shown.tables.items():
        log = needs_log_x(table, axis)
        names = "x", "median", "min", "max"
        columns = {
            name: _drawn(table[name].to_numpy(float), log if name == "x" else shown.log)
            for name in names
        }
        rows: dict[Any, Any] = table.groupby(["solver", "quantity"], sort=False).indices
        ends_x = _ends(columns["x"])
        ends_y = []
        for quantity in quantities:
            mine = table["quantity"].to_numpy() == quantity
            ends_y.append(_ends(*(columns[name][mine] for name in names[1:])))
        axes.append(
            {
                "button": AXES[axis].button,
                "label": shown.labels[axis],
                "log": log,
                "x": ends_x,
                "y": ends_y,
                "curves": [
                    _curve(
                        columns, [rows.get((solver, of), []) for of in quantities], ends_x, ends_y
                    )
                    for solver in solvers
                ],
            }
        )
    empty = [why_empty(first[first["quantity"] == quantity]) for quantity in quantities]
    return {"panels": quantities, "empty": empty, "log": shown.log, "curves": curves, "axes": axes}


def is_empty(shown: Switched) -> bool:
    """Tell whether a figure has no curve."""
    return all(table["median"].isna().all() for table in shown.tables.values())


def _curve(
    columns: Mapping[str, np.ndarray], rows: Sequence[np.ndarray], ends_x: Ends, ends_y: list[Ends]
) -> tuple[str | None, list[list[str] | None]]:
    """Return x, the same in all panels, and what there is in each panel."""
    x: str | None = None
    panels: list[list[str] | None] = []
    for at, ends in zip(rows, ends_y, strict=True):
        median, low, high = (columns[name][at] for name in ("median", "min", "max"))
        if np.isnan(median).all():
            panels.append(None)
            continue
        x = _packed(columns["x"][at], ends_x)
        shown = (median, low, high) if (high > low).any() else (median,)
        panels.append([_packed(values, ends) for values in shown])
    return x, panels


def _drawn(values: np.ndarray, log: bool) -> np.ndarray:
    """Return values as their axis shows them."""
    return np.log10(values, out=np.full_like(values, np.nan), where=values > 0) if log else values


def _ends(*columns: np.ndarray) -> Ends:
    values = np.concatenate(columns)
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)


def _packed(values: np.ndarray, ends: Ends) -> str:
    low, high = ends
    share = np.where(np.isfinite(values), (values - low) / ((high - low) or 1.0), 0.0)
    codes = np.where(np.isfinite(values), np.round(share * STEPS), GONE)
    return base64.b64encode(codes.astype("<u2").tobytes()).decode()


def _lengths(dashes: style.Dashes) -> str:
    return DASHES[dashes] if isinstance(dashes, str) else " ".join(map(str, dashes[1]))
