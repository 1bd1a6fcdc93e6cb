"""Kernels that Python interprets: with ``NUMBA_DISABLE_JIT=1``, to step through them.

A kernel means the same to Python as to numba, except for the numbers in arrays. Numba computes with
integers of any type as int64, and with a float32 as float64 unless both operands are float32.
numpy's own numbers would overflow as bytes, and stay float32 beside a number of Python. So an
interpreted kernel gets its arrays as `Numbers`, whose items compute as compiled ones do. (But numba
wraps a difference of two unsigned integers that is below 0; kernels convert such operands first.)
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

KEEPS = False
"""Whether kernels are kept in the folder of kernels."""


class Single(float):
    """A float32: an operation with another one is rounded to float32, any other is of float64."""


def _rounding(operate: Callable[[float, float], float]) -> Callable[[Single, float], float]:
    def call(one: Single, other: float) -> float:
        found = operate(float(one), other)
        return Single(np.float32(found)) if isinstance(other, Single) else found

    return call


for _operate in (operator.add, operator.sub, operator.mul, operator.truediv):
    setattr(Single, f"__{_operate.__name__}__", _rounding(_operate))


class Numbers(np.ndarray):
    """An array whose items are numbers of Python, or `Single`."""

    def __getitem__(self, key: Any) -> Any:
        """Return an item as a number, anything else as a view."""
        found = super().__getitem__(key)
        return _given(found) if isinstance(found, np.generic) else found


def _given(argument: Any) -> Any:
    """Return an argument as an interpreted kernel gets it, with all that is in a tuple."""
    if isinstance(argument, np.ndarray):
        return argument.view(Numbers)
    if isinstance(argument, np.generic):
        return Single(argument) if isinstance(argument, np.float32) else argument.item()
    if isinstance(argument, tuple):
        fields = map(_given, argument)
        kind: Any = type(argument)
        return kind._make(fields) if hasattr(kind, "_make") else kind(fields)
    return argument


def compiled(function: Callable[..., Any], **_: bool) -> Callable[..., Any]:
    """Return a kernel that is not compiled, whatever its options are."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        given = {name: _given(argument) for name, argument in named.items()}
        return function(*map(_given, arguments), **given)

    return call


def declare(operation: Any) -> None:
    """Let kernels call an operation: they do so as any caller does."""


def intrinsic(code: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return the plain function."""
    return compiled(plain)
