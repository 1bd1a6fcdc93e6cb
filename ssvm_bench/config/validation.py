"""Range checks of options, shared by every ``Config`` class.

Types are the business of the typed merge in :mod:`ssvm_bench.config`; these functions check what
a type cannot say. Each takes the option's full name, so that one message tells what to change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ssvm_bench.errors import ConfigError, nearest


def check_choice(option: str, value: object, valid: Iterable[str]) -> None:
    """Raise ``ConfigError`` unless ``value`` is one of the ``valid`` names.

    >>> check_choice("clock", "work", ("wall", "cpu", "work"))
    """
    valid = tuple(valid)
    if value not in valid:
        raise ConfigError(f"{option}={value} is not known. {nearest(str(value), valid)}")


def check_at_least(option: str, value: float, minimum: float) -> None:
    """Raise ``ConfigError`` unless ``value`` is a finite number ≥ ``minimum``.

    >>> check_at_least("solver.T", 10, 1)
    """
    if not (math.isfinite(value) and value >= minimum):
        raise ConfigError(f"{option} must be ≥ {minimum:g}, got {value}.")


def check_positive(option: str, value: float) -> None:
    """Raise ``ConfigError`` unless ``value`` is a finite number > 0.

    >>> check_positive("lam", 1e-4)
    """
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"{option} must be a positive number, got {value}.")


def check_share(option: str, value: float) -> None:
    """Raise ``ConfigError`` unless ``value`` is a number strictly between 0 and 1.

    >>> check_share("solver.epsilon", 0.01)
    """
    if not 0 < value < 1:
        raise ConfigError(f"{option} must be above 0 and below 1, got {value}.")
