"""Curves as arrays: where one reaches a target, and medians and bands of repeats.

.. code-block:: text

    first(x, y, target), crossing(x, y, target) where a curve first reaches a target
    bands(xs, ys, log)                          medians and bands of repeats
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class UnmeasurableError(Exception):
    """The runs do not answer a question; the message gives the reason."""


def ensure(known: object, why_not: str) -> None:
    """Raise `UnmeasurableError` with the message ``why_not`` unless ``known`` is true."""
    if not known:
        raise UnmeasurableError(why_not)


def first(x: np.ndarray, y: np.ndarray, target: float) -> float:
    """Return the first x of a row whose y is at most a target; infinite if there is none."""
    below = x[y <= target]
    return float(below[0]) if below.size else math.inf


def crossing(x: np.ndarray, y: np.ndarray, target: float) -> float:
    """Return the x where a curve on a log axis is first at most a target; else infinity."""
    below = np.flatnonzero(y <= target)
    if not below.size:
        return math.inf
    k = int(below[0])
    if k == 0 or not (y[k] > 0 and y[k - 1] > 0):
        return float(x[k])
    before, here = math.log(y[k - 1]), math.log(y[k])
    part = (before - math.log(target)) / (before - here)
    return float(x[k - 1] + part * (x[k] - x[k - 1]))


def read_off(grid: np.ndarray, x: np.ndarray, y: np.ndarray, log: bool) -> np.ndarray:
    """Interpolate a curve as its axis shows it; NaN where it is not drawn.

    Parameters
    ----------
    grid : ndarray
        The x at which to interpolate.
    x, y : ndarray
        The points of the curve, x ascending.
    log : bool
        Whether y is drawn on a log axis; then log y is returned.
    """
    y = np.where(np.isfinite(y) & ((y > 0) | (not log)), y, np.nan)
    if log:
        y = np.log(y)
    if x.size == 1:
        return np.where(grid == x[0], y[0], np.nan)
    left = np.clip(np.searchsorted(x, grid, side="right") - 1, 0, x.size - 2)
    width = x[left + 1] - x[left]
    share = np.where(width > 0, (grid - x[left]) / np.where(width > 0, width, 1.0), 1.0)
    between = y[left] + share * (y[left + 1] - y[left])
    # A measured point next to an interrupted one keeps its value.
    between = np.where(share == 0, y[left], np.where(share == 1, y[left + 1], between))
    return np.where((grid < x[0]) | (grid > x[-1]), np.nan, between)


def least_positive(values: np.ndarray, what: str = "duality gap") -> float:
    """Return the smallest positive value; raise `UnmeasurableError` if there is none."""
    ensure((values > 0).any(), f"no positive {what}")
    return float(values[values > 0].min())


def band(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """Return the median of some repeats, their minimum and their maximum."""
    return float(np.median(values)), float(np.min(values)), float(np.max(values))


class Bands(NamedTuple):
    """A curve of repeats: grid, median, minimum, maximum, and how many values are behind each.

    Each has shape (points,). A NaN median interrupts the curve.
    """

    x: np.ndarray
    median: np.ndarray
    low: np.ndarray
    high: np.ndarray
    repeats: np.ndarray


def bands(
    xs: Sequence[np.ndarray],
    ys: Sequence[np.ndarray],
    log: bool,
    points: int | None = None,
    held: bool = False,
    log_x: bool = False,
) -> Bands:
    """Return the median and the band of the y values of repeats, on a common grid of x.

    Between two evaluations, a repeat has the value of the line that is drawn (`read_off`); outside
    its evaluations, none. The curve continues while more than half of the repeats do. A value that
    cannot be drawn (one that is not finite, and on a log axis one that is not positive) counts as
    lower than all others, and the band covers the rest.

    Parameters
    ----------
    xs, ys : sequence of ndarray, one per repeat
    log : bool
        Whether y is drawn on a log axis.
    points : int, optional
        Number of points of an even grid; by default the grid is every x of every repeat.
    held : bool
        Whether a repeat that has ended keeps its last value until the last one ends.
    log_x : bool
        Whether the grid is even on a log axis, from the first positive x on.
    """
    if held:
        end = max(x[-1] for x in xs)
        xs = [np.append(x, end) if x[-1] < end else x for x in xs]
        ys = [np.append(y, y[-1]) if y.size < x.size else y for x, y in zip(xs, ys, strict=True)]
    half = len(xs) // 2
    grid = np.unique(np.concatenate(xs))
    if points is not None:
        begin, end = np.sort([x[0] for x in xs])[half], np.sort([x[-1] for x in xs])[-1 - half]
        if log_x and end > 0:
            begin = max(begin, grid[grid > 0][0])
            grid = np.unique(np.geomspace(begin, max(begin, end), points))
        else:
            grid = np.unique(np.linspace(begin, end, points))
    spans = np.array([(x[0] <= grid) & (grid <= x[-1]) for x in xs])
    drawn = spans.sum(axis=0) > half
    grid, spans = grid[drawn], spans[:, drawn]
    if not grid.size:
        return Bands(*(np.zeros(0) for _ in Bands._fields))
    on_grid = np.array([read_off(grid, x, y, log) for x, y in zip(xs, ys, strict=True)])
    has_value = ~np.isnan(on_grid)
    count = has_value.sum(axis=0)
    any_value = count > 0
    # Values that cannot be drawn count as the lowest.
    median_known = any_value & ((spans & ~has_value).sum(axis=0) <= (spans.sum(axis=0) - 1) // 2)
    values = np.exp(on_grid) if log else on_grid
    # the middle value, or both, of those in order
    ordered = np.sort(np.where(spans & ~has_value, -np.inf, values), axis=0)
    number = spans.sum(axis=0)
    middle_values = (
        np.take_along_axis(ordered, at[None], axis=0)[0] for at in ((number - 1) // 2, number // 2)
    )
    median = np.where(median_known, sum(middle_values) / 2, np.nan)
    low = np.where(has_value, values, np.inf).min(axis=0)
    high = np.where(has_value, values, -np.inf).max(axis=0)
    low, high = (np.where(any_value, end, np.nan) for end in (low, high))
    return Bands(grid, median, low, high, count)
