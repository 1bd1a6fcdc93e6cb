"""A claim of a paper: a statement, how it is measured, and when it holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import MappingProxyType
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeAlias

import numpy as np

from ssvm_bench.figures.document import beside
from ssvm_bench.results.words import number, percent


class UnmeasurableError(Exception):
    """The traces do not decide a claim; the message gives the reason."""


def ensure(known: object, why_not: str) -> None:
    """Raise `UnmeasurableError` with the message ``why_not`` unless ``known`` is true."""
    if not known:
        raise UnmeasurableError(why_not)


class Measured(NamedTuple):
    """One number per repeat, and the range that must contain the median for the claim to hold.

    Attributes
    ----------
    values : ndarray
        One per repeat; infinite where a run ended before it reached the target.
    low, high : float
        Both ends belong to the range; a claim may have a smaller range.
    note : str
        What else the traces show.
    text : str
        The result as text, where the values alone do not show it.
    bounds : ndarray, optional
        Lower bounds of infinite values: what had been spent when the run ended.
    ended : str
        The error's message where such a bound is too low to decide the claim.
    """

    values: np.ndarray
    low: float = -math.inf
    high: float = math.inf
    note: str = ""
    text: str = ""
    bounds: np.ndarray | None = None
    ended: str = ""

    def within(self, low: float, high: float) -> Measured:
        """Return this with the range cut to low–high; raise `UnmeasurableError` if undecided."""
        found = self._replace(low=max(self.low, low), high=min(self.high, high))
        if np.isnan(self.values).any():
            raise UnmeasurableError(self.text or "a run has no value")
        limit = found.high if math.isfinite(found.high) else found.low
        if self.bounds is not None and (np.isinf(self.values) & (self.bounds < limit)).any():
            raise UnmeasurableError(self.ended)
        return found

    def holds(self, value: float) -> bool:
        """Return whether a value is in the range."""
        return self.low <= value <= self.high


def above(value: float) -> float:
    """Return the smallest number above a value."""
    return math.nextafter(value, math.inf)


def below(value: float) -> float:
    """Return the largest number below a value."""
    return math.nextafter(value, -math.inf)


def compared(holds: bool | None, text: str) -> Measured:
    """Return the result of a comparison: whether it holds (None: unknown), and its numbers."""
    return Measured(np.array([math.nan if holds is None else float(holds)]), low=1.0, text=text)


Measure: TypeAlias = Callable[[Any], Measured]
"""Function of a claim's subject: returns what was measured or raises `UnmeasurableError`.

The subject of a claim about one problem instance is its `Case`. The subject of a claim about
several λ is the table of the methods' costs at these λ.
"""

TEXTS = ("section", "text", "measured")
MORE = ("timed", "lam", "given", "variants", "beside")
Options = ParamSpec("Options")


def measure(
    function: Callable[Concatenate[Any, Options], Measured],
    of: Callable[[Any], Any] = lambda case: case,
) -> Callable[Options, Measure]:
    """Decorate ``function(of(case), *options)``: then ``function(*options)`` is a measure."""

    def chosen(*options: Options.args, **more: Options.kwargs) -> Measure:
        return lambda case: function(of(case), *options, **more)

    return wraps(function)(chosen)


class Claim(NamedTuple):
    r"""A statement of a paper: what it says of which dataset, and how it is measured.

    Attributes
    ----------
    key, section, text : str
        Its name, the section of the paper that makes it, and the statement in one sentence.
    measured : str
        How it is measured, and when it holds.
    paper : dict
        Dataset → what the paper says of it.
    measure : callable
        Measures one number per repeat.
    show : callable
        Formats such a number.
    low, high : float
        The claim holds if the median is in this range, ends included.
    timed : bool
        Whether it is about time.
    lam : float, optional
        The only λ that it is judged at.
    given : bool
        Whether the paper's costs are derived from it. Runs at these costs then say nothing about
        it, and other runs only compare our program and machine with the paper's.
    variants : sequence of str
        The `Variant`\ s that it is judged by, as ``start=oracle counted``; empty: all. If not
        empty, the claim is shown only where it could be measured.
    only : dict
        Options, as ``oracle.kernel``, of the runs that it is about; empty: all runs.
    beside : str
        The kind (`Paper.beside`) of a row that is not counted as a claim of the paper, else empty.
    """

    key: str
    section: str
    text: str
    measured: str
    paper: Mapping[str, str]
    measure: Measure
    show: Callable[[float], str] = number
    low: float = -math.inf
    high: float = math.inf
    timed: bool = False
    lam: float | None = None
    given: bool = False
    variants: Sequence[str] = ()
    only: Mapping[str, Any] = {}
    beside: str = ""


class Statements:
    """The statements of a paper in the file ``claims.yaml`` beside a module: name → statement.

    Placeholders in braces are filled in; ``{low}`` and ``{high}`` are the ends of the range.
    """

    def __init__(self, module: str) -> None:
        self._said = beside(module, "claims")

    def claim(
        self,
        name: str,
        measure: Measure,
        show: Callable[[float], str] = number,
        key: str = "",
        low: float = -math.inf,
        high: float = math.inf,
        words: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> Claim:
        """Return the claim of a statement and a measure; without ``key``, the name is its key.

        ``more`` has fields of a `Claim` that override the file's.
        """
        said, shown = self._said[name], percent if show is percent else "{:.3g}".format
        words = {**words, "low": shown(low), "high": shown(high)}
        fields: dict[str, Any] = {part: said[part].format(**words) for part in TEXTS}
        fields["paper"] = {of: text.format(**words) for of, text in said.get("paper", {}).items()}
        fields |= {part: said[part] for part in MORE if part in said}
        measuring = {"measure": measure, "show": show, "low": low, "high": high}
        return Claim(**{"key": key or name, **fields, **measuring, **more})
