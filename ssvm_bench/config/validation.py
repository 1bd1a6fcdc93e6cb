"""Ranges of options: as checks, and as annotations of the fields of a ``Config``.

Types are the business of :mod:`ssvm_bench.config.typed`; a range says what a type cannot. A check
takes the option's full name, so that one message tells what to change.

>>> check_at_least("solver.T", 10, 1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from ssvm_bench.base.errors import ConfigError, nearest, shown

Check = Callable[[str, Any], None]
"""Takes an option's full name and its value, and raises ``ConfigError`` if that is out of range."""


def check_choice(option: str, value: object, valid: Iterable[str]) -> None:
    """Raise ``ConfigError`` unless ``value`` is one of the ``valid`` names."""
    valid = tuple(valid)
    if value not in valid:
        raise ConfigError(f"{option}={shown(value)} is not known. {nearest(str(value), valid)}")


def check_at_least(option: str, value: float, minimum: float) -> None:
    """Raise ``ConfigError`` unless ``value`` is a finite number ≥ ``minimum``."""
    if not (math.isfinite(value) and value >= minimum):
        raise ConfigError(f"{option} must be ≥ {minimum:g}, got {value}.")


def check_positive(option: str, value: float) -> None:
    """Raise ``ConfigError`` unless ``value`` is a finite number > 0."""
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"{option} must be a positive number, got {value}.")


def check_share(option: str, value: float) -> None:
    """Raise ``ConfigError`` unless ``value`` is a number strictly between 0 and 1."""
    if not 0 < value < 1:
        raise ConfigError(f"{option} must be above 0 and below 1, got {value}.")


def one_of(valid: Iterable[str]) -> Check:
    """Return the check of a choice, for ``Annotated[str, one_of(…)]``."""
    return partial(check_choice, valid=valid)


def at_least(minimum: float) -> Check:
    """Return the check of a number with a minimum, for ``Annotated[float, at_least(…)]``."""
    return partial(check_at_least, minimum=minimum)


Natural = Annotated[int, at_least(0)]
Count = Annotated[int, at_least(1)]
NotNegative = Annotated[float, at_least(0)]
Positive = Annotated[float, check_positive]
Share = Annotated[float, check_share]


class Options:
    """A section of options, whose fields are checked as their annotations say; null always fits.

    Attributes
    ----------
    section : str
        What the options' full names begin with: ``"solver"`` of ``solver.T``.
    """

    section: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Check the ranges."""
        cls: Any = type(self)
        for name, check in _checks(cls):
            value = getattr(self, name)
            if value is not None:
                check(f"{self.section}.{name}".lstrip("."), value)


@cache
def _checks(cls: Any) -> tuple[tuple[str, Check], ...]:
    """Return the fields of a class that have a check, with it, in their order."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple((name, check) for name, hint in hints.items() for check in _of(hint))


def _of(hint: Any) -> Iterator[Check]:
    """Yield the checks in an annotation, or in the members of a union."""
    yield from (extra for extra in getattr(hint, "__metadata__", ()) if callable(extra))
    for member in get_args(hint) if not hasattr(hint, "__metadata__") else ():
        yield from _of(member)
