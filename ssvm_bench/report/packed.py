"""The numbers of a figure, packed for the page's script.

A value takes two bytes: its position between the ends of its axis (on a log axis, that of its
logarithm) in 65,534 steps. This is many times as precise as a screen, and shorter than decimals in
JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.figures import style
from ssvm_bench.figures.curves import AXES, is_log_x, why_empty
from ssvm_bench.figures.kind import Switched

STEPS = 65_534
GONE = STEPS + 1
"""The code of a value that does not exist."""

DASHES = {"-": "", "--": "7 3", ":": "1.5 2.5", "-.": "7 2.5 1.5 2.5"}
"""Line style → lengths of lines and spaces."""

HEIGHTS = ["median", "min", "max"]
Ends = tuple[float, float]


def packed_figure(shown: Switched) -> dict[str, Any]:
    """Return the data of a figure with one panel per quantity.

    Returns
    -------
    dict
        ``panels``, their names; ``empty``, why a panel has no curve; ``log``, whether y is on a log
        axis; ``curves``, name and look of each; and ``axes``. Each x axis has its button and label,
        whether it is logarithmic, the ends of ``x`` and, per panel, of ``y``. It also has the x of
        each curve and, per panel, its median, and minimum and maximum where repeats differ;
        or the number of an earlier axis where these are the same.
    """
    first = next(iter(shown.tables.values()))
    solvers = list(dict.fromkeys(first["solver"]))
    quantities = list(dict.fromkeys(first["quantity"]))
    curves = []
    for solver, (color, dashes) in style.strokes(solvers).items():
        dash = DASHES[dashes] if isinstance(dashes, str) else " ".join(map(str, dashes[1]))
        curves.append({"name": style.solver_label(solver), "color": color, "dash": dash})
    axes = []
    for axis, table in shown.tables.items():
        log = is_log_x(table, axis)
        drawn = table[["x", *HEIGHTS]].astype(float)
        drawn["x"] = _drawn(drawn["x"].to_numpy(), log)
        drawn[HEIGHTS] = _drawn(drawn[HEIGHTS].to_numpy(), shown.log)
        ends_x = _ends(drawn["x"].to_numpy())
        ends_y = [
            _ends(drawn.loc[table["quantity"] == of, HEIGHTS].to_numpy()) for of in quantities
        ]
        of_curves = dict(iter(drawn.groupby([table["solver"], table["quantity"]], sort=False)))
        of_solvers = ([of_curves.get((solver, of)) for of in quantities] for solver in solvers)
        packed = [_curve(of_solver, ends_x, ends_y) for of_solver in of_solvers]
        about = {"button": AXES[axis].button, "label": shown.labels[axis], "log": log}
        axes.append({**about, "x": ends_x, "y": ends_y, "curves": packed})
    for k, of_axis in reversed([*enumerate(axes)]):  # those before it are still whole
        _say_once(of_axis, axes[:k])
    empty = [why_empty(first[first["quantity"] == quantity]) for quantity in quantities]
    return {"panels": quantities, "empty": empty, "log": shown.log, "curves": curves, "axes": axes}


def _curve(
    curves: Sequence[pd.DataFrame | None], ends_x: Ends, ends_y: Sequence[Ends]
) -> tuple[str | None, list[list[str] | None]]:
    """Return a curve's x, the same in all panels, and its heights in each panel."""
    x: str | None = None
    panels: list[list[str] | None] = []
    for curve, ends in zip(curves, ends_y, strict=True):
        if curve is None or curve["median"].isna().all():
            panels.append(None)
            continue
        x = _packed(curve["x"].to_numpy(), ends_x)
        shown = HEIGHTS if (curve["max"] > curve["min"]).any() else HEIGHTS[:1]
        panels.append([_packed(curve[name].to_numpy(), ends) for name in shown])
    return x, panels


def _say_once(axis: dict[str, Any], earlier: Sequence[dict[str, Any]]) -> None:
    """Replace the heights that a curve has on an earlier axis by the number of that axis."""
    for k, (_, panels) in enumerate(axis["curves"]):
        for p, heights in enumerate(panels):
            for j, other in enumerate(earlier):
                same = other["curves"][k][1][p] == heights and other["y"][p] == axis["y"][p]
                if heights is not None and same:
                    panels[p] = j
                    break


def _drawn(values: np.ndarray, log: bool) -> np.ndarray:
    """Return values as their axis shows them."""
    return np.log10(values, out=np.full_like(values, np.nan), where=values > 0) if log else values


def _ends(values: np.ndarray) -> Ends:
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)


def _packed(values: np.ndarray, ends: Ends) -> str:
    low, high = ends
    share = np.where(np.isfinite(values), (values - low) / ((high - low) or 1.0), 0.0)
    codes = np.where(np.isfinite(values), np.round(share * STEPS), GONE)
    return base64.b64encode(codes.astype("<u2").tobytes()).decode()
