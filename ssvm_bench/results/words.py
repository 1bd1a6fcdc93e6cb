"""How numbers are written, in figures, tables and messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ssvm_bench.config import SIMULATED

NONE = "–"
"""Text for a number that does not exist."""


def number(value: float | None, form: str = ".3g", none: str = NONE) -> str:
    """Return a number, if it exists.

    >>> number(0.123456), number(None), number(math.nan, none="-")
    ('0.123', '–', '-')
    """
    return none if value is None or math.isnan(value) else format(value, form)


def source(name: str) -> str:
    """Return a source of data as texts call it.

    >>> source("drawn"), source("real")
    ('simulated', 'real')
    """
    return "simulated" if name == SIMULATED else name


def figures(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits at most."""
    return format(value, f".{digits}g")


def percent(share: float, digits: int = 3) -> str:
    """Return a share."""
    return f"{figures(100 * share, digits)} %"


def share(value: float) -> str:
    """Return a share in whole percent, if it exists."""
    return NONE if math.isnan(value) else f"{100 * value:.0f} %"


def times(factor: float, digits: int = 2) -> str:
    """Return a factor."""
    return f"{figures(factor, digits)}×"


def factor(value: float, digits: int = 3) -> str:
    """Return a factor with a digit more than `times`."""
    return times(value, digits)


def seconds(value: float, digits: int = 3) -> str:
    """Return a duration in the unit that fits: s, ms or µs.

    >>> seconds(0.0009999), seconds(0.00099)
    ('1 ms', '990 µs')
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if float(figures(value, digits)) >= size:
            return f"{figures(value / size, digits)} {unit}"
    return f"{figures(value / 1e-6, digits)} µs"


def beside(limits: Iterable[float], text: Callable[..., str]) -> Callable[[float], str]:
    """Return what writes a number with more digits where it would read as a limit that it is not.

    >>> text = beside([10.0, 15.0], figures)
    >>> text(14.8), text(15.04), text(15.0)
    ('14.8', '15.04', '15')
    """
    known = [limit for limit in limits if math.isfinite(limit)]

    def written(value: float) -> str:
        forms: list[Callable[..., str]] = [text]
        forms += [partial(text, digits=digits) for digits in range(4, 8)]
        for form in forms:
            if all(value == limit or form(value) != form(limit) for limit in known):
                return form(value)
        return text(value)

    return written


def duration(value: float | None) -> str:
    """Return a duration in seconds with three digits, or in minutes.

    >>> duration(0.00012345), duration(0.0042), duration(12.345), duration(75)
    ('1.2e-04 s', '0.0042 s', '12.3 s', '1:15')
    """
    if value is None or math.isnan(value):
        return "-"
    if 0 < value < 1e-3:
        return f"{value:.1e} s"
    return f"{value:.3g} s" if value < 60 else minutes(value)


def minutes(value: float) -> str:
    """Return a duration in whole seconds, minutes and hours.

    >>> minutes(7.2), minutes(3725)
    ('0:07', '1:02:05')
    """
    whole, rest = divmod(round(value), 60)
    hours, whole = divmod(whole, 60)
    return f"{hours}:{whole:02}:{rest:02}" if hours else f"{whole}:{rest:02}"


def tick_label(value: float) -> str:
    """Return a number as a label of an axis: 0.02, 5,000, 20k, 1M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= max(size, 1e4):
            return f"{value / size:.4g}{letter}"
    return f"{value:,.4g}"


def lam(value: float, n: int) -> str:
    """Return λ, as K/n where K is whole.

    >>> lam(0.02, 50), lam(20.0, 50), lam(0.01, 50)
    ('1/n', '1000/n', '0.01')
    """
    factor = round(value * n)
    return f"{factor}/n" if factor >= 1 and abs(value * n - factor) < 1e-9 else f"{value:.3g}"


def rule(value: float, n: int) -> str:
    """Return λ with its rule, if it has one.

    >>> rule(1 / 533, 533), rule(20.0, 50), rule(0.01, 50)
    ('1/n = 0.001876', '1000/n = 20', '0.01')
    """
    text = lam(value, n)
    return f"{text} = {value:.4g}" if "/" in text else f"{value:.4g}"


def span(ends: tuple[float, float], text: Callable[[float], str] = seconds) -> str:
    """Return a range, or one value where both ends read the same."""
    return "–".join(dict.fromkeys(text(end) for end in ends))


def reached(value: float, text: Callable[[float], str]) -> str:
    """Return what it took to reach a gap; infinite: the run did not reach it."""
    return "not reached" if math.isinf(value) else text(value)


def median(ends: Sequence[float], repeats: int, text: Callable[[float], str]) -> str:
    """Return a median, followed by minimum and maximum if there are several repeats.

    >>> median((2.0, 1.0, math.inf), 3, times), median((2.0, 2.0, 2.0), 1, times)
    ('2× (1× – not reached)', '2×')
    >>> median((math.inf, math.inf, math.inf), 3, times)
    'not reached'
    """
    middle, low, high = (reached(value, text) for value in ends)
    return f"{middle} ({low} – {high})" if repeats > 1 and math.isfinite(min(ends)) else middle


def counts(values: Sequence[int]) -> str:
    """Return the range of whole numbers."""
    return span((min(values), max(values)), "{:.0f}".format)


def repeats(numbers: Iterable[int]) -> str:
    """Return how many repeats there are of several curves.

    >>> repeats([1]), repeats([3, 1]), repeats([])
    ('1 repeat', '1 to 3 repeats', '0 repeat')
    """
    found = [int(number) for number in numbers] or [0]
    ends = dict.fromkeys((min(found), max(found)))
    return f"{' to '.join(map(str, ends))} repeat{'s' * (max(found) > 1)}"


def spread(line: str, band: str, numbers: Iterable[int]) -> str:
    """Return what lines and bands of several curves show, given how many repeats each has.

    >>> spread("Lines", "bands", [3, 3])
    'Lines: median; bands: minimum to maximum; 3 repeats'
    >>> spread("Lines", "bands", [1, 1])
    'Lines: one run each'
    """
    if max(found := [*numbers], default=1) == 1:
        return f"{line}: one run each"
    return f"{line}: median; {band}: minimum to maximum; {repeats(found)}"


def runs(count: int) -> str:
    """Return ``1 run``, ``2 runs``."""
    return f"{count} run{'s' * (count != 1)}"
