"""λ as it is written: a number, ``K/n`` for K times 1/n, or null for 1/n itself.

The bundle paper's risk is a sum over the n examples, not a mean, so that its λ is n times ours: its
λ = 1000 is ``1000/n`` here, on a dataset of any size.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Annotated

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.config.validation import check_positive

OverN = Annotated[str, "K/n (as 10/n)"]
"""A text that stands for K/n."""

_OVER_N = "/n"
_FORM = re.compile(r"[\d.eE+-]+/n")


def number(lam: float | str | None, n: int) -> float:
    """Return λ for n examples.

    >>> number("1000/n", 50), number(0.1, 50), number(None, 50)
    (20.0, 0.1, 0.02)
    """
    if lam is None:
        return 1 / n
    return float(lam.removesuffix(_OVER_N)) / n if isinstance(lam, str) else lam


def checked(option: str, lam: float | str | None) -> float | str | None:
    """Return λ in the one form in which equal values are equal: ``1e1/n`` is ``10/n``.

    Raises
    ------
    ConfigError
        If it is not positive and finite, or not of the form ``K/n``.
    """
    if not isinstance(lam, str):
        if lam is not None:
            check_positive(option, lam)
        return lam
    try:
        factor = number(lam, 1) if _FORM.fullmatch(lam) else math.nan
    except ValueError:  # such as 1-1/n
        factor = math.nan
    if not 0 < factor < math.inf:
        raise ConfigError(
            f"{option} must be a number or K/n (as 10/n), K a positive number, "
            f"got {shown(repr(lam))}."
        )
    return f"{repr(factor).removesuffix('.0')}{_OVER_N}"


def check_falling(option: str, lams: Sequence[float | str | None], n: int | None = None) -> None:
    """Raise ``ConfigError`` unless λ falls from one to the next.

    Without n, numbers are compared with numbers and ``K/n`` with ``K/n`` only.
    """
    if n is not None:
        comparable = [[number(lam, n) for lam in lams]]
    else:
        texts = [number(lam, 1) for lam in lams if isinstance(lam, str)]
        comparable = [[lam for lam in lams if isinstance(lam, float)], texts]
    for values in comparable:
        if any(after >= before for before, after in itertools.pairwise(values)):
            shown = ", ".join(_shown(lam) for lam in lams)
            where = "" if n is None else f" with n = {n}"
            raise ConfigError(f"{option} must fall from one λ to the next, got {shown}{where}.")


def _shown(lam: float | str | None) -> str:
    if lam is None:
        return "1/n"
    return lam if isinstance(lam, str) else f"{lam:g}"
