"""What a claim of a paper is: a statement, how it is measured, and when it holds."""

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
    """The traces do not say; the message says why."""


def ensure(known: object, why_not: str) -> None:
    """Raise `UnmeasurableError` with this message unless something is known."""
    if not known:
        raise UnmeasurableError(why_not)


class Measured(NamedTuple):
    """One number per repeat, and the range in which the median must be for the claim to hold.

    Attributes
    ----------
    values : ndarray
        One per repeat; infinite where a run did not get there in the time it had.
    low, high : float
        Both ends belong to the range; a claim may have a smaller one.
    note : str
        What else the traces say.
    text : str
        What was found, where the values do not show it.
    bounds : ndarray, optional
        What infinite values are known to exceed: what had been spent when a run ended.
    ended : str
        What is said where these bounds are within the range, so that nothing is known.
    """

    values: np.ndarray
    low: float = -math.inf
    high: float = math.inf
    note: str = ""
    text: str = ""
    bounds: np.ndarray | None = None
    ended: str = ""

    def within(self, low: float, high: float) -> Measured:
        """Return it with a smaller range; raise `UnmeasurableError` if that is not decided."""
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
    """Return what a comparison of numbers found: whether it holds, if that is known, and them."""
    return Measured(np.array([math.nan if holds is None else float(holds)]), low=1.0, text=text)


Measure: TypeAlias = Callable[[Any], Measured]
"""What a claim is judged by → what was measured, or `UnmeasurableError`.

For a claim about a problem instance, that is its `Case`; for one about several λ, the table of what
the methods cost there.
"""

TEXTS = ("section", "text", "measured")
MORE = ("timed", "lam", "given", "variants", "beside")
Options = ParamSpec("Options")


def measure(
    function: Callable[Concatenate[Any, Options], Measured],
    of: Callable[[Any], Any] = lambda case: case,
) -> Callable[Options, Measure]:
    """Let ``function(of(case), *options)`` be called as ``function(*options)``: a measure."""

    def chosen(*options: Options.args, **more: Options.kwargs) -> Measure:
        return lambda case: function(of(case), *options, **more)

    return wraps(function)(chosen)


class Claim(NamedTuple):
    r"""A statement of a paper: what it says of which dataset, and how it is measured.

    Attributes
    ----------
    key, section, text : str
        Its name here, where the paper makes it, and the statement in one sentence.
    measured : str
        How it is measured, and when it holds.
    paper : dict
        Dataset → what the paper says of it.
    measure : callable
        One number per repeat.
    show : callable
        Such a number as text.
    low, high : float
        The claim holds if the median is within; both ends belong to it.
    timed : bool
        Whether it is about time.
    lam : float, optional
        The only λ that it is judged at.
    given : bool
        Whether a paper's costs are set by it, so that runs at these costs say nothing about it, and
        other runs only how our program and machine compare with the paper's.
    variants : sequence of str
        The `Variant`\ s that it is judged by, as ``start=oracle counted``; all if there are none.
        Where they have no such runs, it is not shown.
    only : dict
        Options, as ``oracle.kernel``, of the runs that it is about, where it is not about all.
    beside : str
        Of a row that is not counted as a claim of the paper: what kind it is of
        (`Paper.beside`).
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
    """What a paper says, as the file ``claims.yaml`` beside a module has it: name → statement.

    Texts in braces are filled in; ``{low}`` and ``{high}`` are the ends of the range.
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
        """Return a statement with its measure; its key is the name unless there is another.

        ``more`` are fields of a `Claim` that stand in place of the file's.
        """
        said, shown = self._said[name], percent if show is percent else "{:.3g}".format
        words = {**words, "low": shown(low), "high": shown(high)}
        fields: dict[str, Any] = {part: said[part].format(**words) for part in TEXTS}
        fields["paper"] = {of: text.format(**words) for of, text in said.get("paper", {}).items()}
        fields |= {part: said[part] for part in MORE if part in said}
        measuring = {"measure": measure, "show": show, "low": low, "high": high}
        return Claim(**{"key": key or name, **fields, **measuring, **more})
