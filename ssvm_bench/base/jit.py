"""Kernels: functions that are compiled, and dispatch on a type while their callers are compiled.

``@kernel`` is ``numba.njit`` with a disk cache. The first of these that applies makes kernels:

========================================  ==========================================================
:mod:`~ssvm_bench.base.interpreted`       with ``NUMBA_DISABLE_JIT=1``: plain Python
:mod:`~ssvm_bench.base.compiler`          numba's internals, if they are as expected
:mod:`~ssvm_bench.base.public_interface`  numba's public interface: slower to compile, and not kept
========================================  ==========================================================

All give the same bits: nothing here uses ``fastmath``, so sums keep their order, and a run that is
repeated or resumed on one machine has the same bits. Other processors have other exponentials, and
other sums in BLAS.

``@generic`` and ``@implements`` are ``functools.singledispatch`` for kernels: the type of the
first argument, a ``NamedTuple`` of arrays, selects the implementation while the caller is being
compiled, so that a call costs nothing at run time and can be inlined. The body of a generic
operation is the implementation for all types that have none of their own. An ``@abstract``
operation has no body but a docstring: every type needs an implementation of its own.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types

from ssvm_bench.base import kernel_folder
from ssvm_bench.base.errors import shown

F = TypeVar("F", bound=Callable[..., Any])

logger = logging.getLogger(__name__)

_KNOWN = 0, 68
"""The newest numba with which the tests have passed: newer ones are tried before they are used."""

_SAID = "SSVM_BENCH_NUMBA_UNKNOWN"
"""Environment variable with the version that a process has named: its children do not repeat it."""

_INTERPRETED = bool(numba.config.DISABLE_JIT)
_way: Any = None
"""The module that makes kernels."""


def kernel(function: F) -> F:
    """Compile a function on its first call, and keep the machine code on disk.

    The function must not allocate arrays: it is compiled without reference counts, which cost more
    than the arithmetic for structs of many arrays.
    """
    return _way.compiled(function)


def shared_kernel(function: F) -> F:
    """Compile like `kernel`; kernels call its machine code, which is generated once for all.

    For most of the work of a term, in one call: eight calls a visit took a tenth of the passes over
    USPS, whose visits take a microsecond.
    """
    return _way.compiled(function, shared=True)


def allocating_kernel(function: F) -> F:
    """Compile like `kernel`, for a function that allocates arrays; not for inner loops."""
    return _way.compiled(function, allocates=True)


def unrolled_kernel(function: F) -> F:
    """Compile like `allocating_kernel`, with unrolled loops, which take longer to compile.

    For what every evaluation does: without unrolling, planes of USPS took an eighth longer.
    """
    return _way.compiled(function, allocates=True, unrolled=True)


# ---- operations ---------------------------------------------------------------------------------


class Operation:
    """A function with a kernel for each type of its first argument.

    Attributes
    ----------
    name : str
        The full name of the function.
    implementations : dict
        ``NamedTuple`` type → the kernel for it and for classes derived from it.
    """

    def __init__(self, function: Callable[..., Any], default: Any = None) -> None:
        functools.update_wrapper(self, function)
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.implementations: dict[Any, Any] = {}
        self._default = default
        _way.declare(self)

    def __call__(self, first: Any, *args: Any) -> Any:
        """Call the kernel for the type of the first argument."""
        return self.chosen(type(first))(first, *args)

    def chosen(self, kind: type) -> Any:
        """Return the kernel for a type."""
        known = (self.implementations.get(each) for each in kind.__mro__)
        chosen = next(filter(None, known), self._default)
        if chosen is None:
            raise numba.errors.TypingError(f"{self.name} is not implemented for {kind.__name__}")
        return chosen


def generic(function: F) -> F:
    """Declare an operation; the function serves types without an implementation of their own."""
    return Operation(function, kernel(function))  # type: ignore[return-value]


def abstract(function: F) -> F:
    """Declare an operation that every type implements; the body is its documentation only."""
    return Operation(function)  # type: ignore[return-value]


def implements(operation: Callable[..., Any], kind: type, shared: bool = False) -> Callable[[F], F]:
    """Compile a function as the implementation of an operation for a ``NamedTuple`` type.

    With ``shared``, it is a `shared_kernel`.
    """

    def register(function: F) -> F:
        compiled = shared_kernel(function) if shared else kernel(function)
        operation.implementations[kind] = compiled  # type: ignore[attr-defined]
        return function

    return register


def is_implemented(operation: Callable[..., Any], kind: type) -> bool:
    """Return whether an operation has an implementation for exactly this ``NamedTuple`` type."""
    return kind in operation.implementations  # type: ignore[attr-defined]


# ---- what makes kernels -------------------------------------------------------------------------


class _Inner(NamedTuple):
    values: np.ndarray


class _Outer(NamedTuple):
    inner: _Inner
    factor: float


def _try_kernels() -> None:
    """Compile one kernel of each kind, and raise an exception if a call does not return 5."""

    @generic
    def value(inner, k):  # type: ignore[no-untyped-def]
        return 0.0

    @implements(value, _Inner)
    def _(inner, k):  # type: ignore[no-untyped-def]
        return inner.values[k]

    @shared_kernel
    def scaled(outer, k):  # type: ignore[no-untyped-def]
        return outer.factor * value(outer.inner, k)

    @allocating_kernel
    def total(outer):  # type: ignore[no-untyped-def]
        terms = np.zeros(2)
        for k in range(terms.size):
            terms[k] = scaled(outer, k) + value(outer, k)
        return terms[0] + terms[1]

    if (found := total(_Outer(_Inner(np.array([0.5, 2.0])), 2.0))) != 5.0:
        raise ArithmeticError(f"a kernel returned {found}, not 5")


def _say(error: Exception) -> None:
    if os.environ.get(_SAID) != numba.__version__:
        os.environ[_SAID] = numba.__version__
        text = (
            f"numba {numba.__version__} is not as expected here ({shown(str(error))}): each "
            "process compiles kernels by its public interface, which takes longer."
        )
        if numba.version_info[:2] > _KNOWN:
            newest = f"{_KNOWN[0]}.{_KNOWN[1] + 1}"
            text += f" `pip install 'numba<{newest}'` is much faster."
        logger.warning(text)


def _choose() -> None:
    """Choose what makes kernels; the other modules are not imported."""
    global _way
    if _INTERPRETED:
        from ssvm_bench.base import interpreted

        _way = interpreted
        return
    try:
        from ssvm_bench.base import compiler

        _way = compiler
        if numba.version_info[:2] > _KNOWN:
            _try_kernels()
    except Exception as error:  # the internals of a newer numba may do anything
        from ssvm_bench.base import public_interface

        _way = public_interface
        _say(error)


_choose()
CACHE_FOLDER = kernel_folder.FOLDER if _way.KEEPS else None
"""It contains the kernels that are compiled; None if they are not kept."""
CACHE_ROOT = None if CACHE_FOLDER is None else CACHE_FOLDER.parent
"""It contains one folder for each version of the kernels."""


# ---- what numba has no function for --------------------------------------------------------------


def intrinsic(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Declare an intrinsic of numba, and a plain function of the same bits.

    The plain one is a kernel in its place where only the public interface is used, or nothing is
    compiled.
    """
    return lambda code: _way.intrinsic(code, plain)


_MONOTONIC = 6 if sys.platform == "darwin" else 1
_int32: Any = types.int32
if _way.KEEPS:
    _clock_gettime: Any = types.ExternalFunction("clock_gettime", _int32(_int32, types.uintp))
else:  # which numba can call, too, but then it keeps no kernel
    _clock_gettime = ctypes.CDLL(None).clock_gettime
    _clock_gettime.argtypes = ctypes.c_int32, ctypes.c_size_t


@kernel
def nanoseconds(timespec: np.ndarray) -> int:
    """Read the monotonic clock from inside a kernel.

    Parameters
    ----------
    timespec : ndarray of int64, shape (2,)
        Scratch space that the C library writes to.

    Returns
    -------
    int
        Nanoseconds since an arbitrary moment (about 20 ns a call, without leaving the kernel).
    """
    _clock_gettime(_MONOTONIC, timespec.ctypes.data)
    return timespec[0] * 1_000_000_000 + timespec[1]


def _no_prefetch(array: Any, index: Any) -> None:
    pass


@intrinsic(_no_prefetch)
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask the processor to fetch ``array[index]`` (one-dimensional) while it does other work."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [address.type, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (address.type,), kind)
        to_read, to_keep, data_cache = word(0), word(3), word(1)
        builder.call(fetch, [address, to_read, to_keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@kernel
def prefetch_range(array: Any, begin: int, end: int) -> None:
    """Do `prefetch` for all cache lines of ``array[begin:end]``."""
    for k in range(begin, end, 64 // array.itemsize):
        prefetch(array, k)
