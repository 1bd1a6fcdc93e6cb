"""How kernels are compiled: one decorator, and dispatch on a type at compile time.

``@kernel`` is ``numba.njit`` with a disk cache. Numba checks only a kernel's own file when it
decides whether a cached kernel is still valid, so a kernel could go on calling the old code of an
edited neighbour. Here the cache folder is named after the contents of all modules with kernels: an
edit in any of them gives a new, empty folder.

``@generic`` and ``@implements`` are ``functools.singledispatch`` for kernels: the type of the
first argument, a ``NamedTuple`` of arrays, selects the implementation while the caller is being
compiled, so that a call costs nothing at run time and can be inlined.

Nothing here uses ``fastmath``: sums keep their order, and a run gives the same bits on every
machine.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import platformdirs
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

F = TypeVar("F", bound=Callable[..., Any])

_OLD_CACHES_KEPT = 3
_IMPLEMENTED: set[tuple[Callable[..., Any], type]] = set()
_NO_COUNTS: Any = {"_nrt": False, "forceinline": True}


def source_digest(package: Path) -> str:
    """Return 16 hexadecimal digits over numba's version and the modules with kernels."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"ssvm_bench.jit" in source or path.name == "jit.py":
            digest.update(path.relative_to(package).as_posix().encode() + source)
    return digest.hexdigest()[:16]


def _cache_folder(root: Path) -> Path:
    folder = root / f"kernels-{source_digest(Path(__file__).parent)}"
    if not folder.exists():
        others = sorted(root.glob("kernels-*"), key=lambda path: path.stat().st_mtime)
        for old in others[: -_OLD_CACHES_KEPT or None]:
            shutil.rmtree(old, ignore_errors=True)
    return folder


CACHE_ROOT = Path(
    os.environ.get("NUMBA_CACHE_DIR") or Path(platformdirs.user_cache_dir("ssvm-bench"), "numba")
).resolve()
"""Below it lies one cache folder for each version of the kernels."""

numba.config.CACHE_DIR = str(_cache_folder(CACHE_ROOT))


def kernel(function: F) -> F:
    """Compile a function on its first call, and keep the machine code on disk.

    The function must not allocate arrays: it is compiled without reference counts, which for
    structs of many arrays cost more than the arithmetic.
    """
    return _compiled(function, **_NO_COUNTS)


def allocating_kernel(function: F) -> F:
    """Compile like `kernel`, for a function that allocates arrays: an outer loop, not an inner."""
    return _compiled(function)


def _compiled(function: Any, **options: bool) -> Any:
    return numba.njit(cache=True, **options)(function)


def generic(function: F) -> F:
    """Declare an operation that is implemented per type of its first argument.

    The body of the declared function is its documentation only.
    """
    return function


def implements(operation: Callable[..., Any], kind: type) -> Callable[[F], F]:
    """Register a kernel as the implementation of a generic operation for a ``NamedTuple`` type."""

    def register(function: F) -> F:
        def select(first: Any, *rest: Any) -> Any:
            return function if getattr(first, "instance_class", None) is kind else None

        # numba compares the argument names of the two
        select.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        overload(operation, jit_options=_NO_COUNTS)(select)
        _IMPLEMENTED.add((operation, kind))
        return function

    return register


def is_implemented(operation: Callable[..., Any], kind: type) -> bool:
    """Tell whether a generic operation is implemented for a ``NamedTuple`` type."""
    return (operation, kind) in _IMPLEMENTED


_MONOTONIC = 6 if sys.platform == "darwin" else 1
_int32: Any = types.int32
_clock_gettime = types.ExternalFunction("clock_gettime", _int32(_int32, types.uintp))


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


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask the processor to fetch ``array[index]`` (one-dimensional) while it does other work."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (cgutils.voidptr_t,), kind)
        to_read, to_keep, data_cache = word(0), word(3), word(1)
        builder.call(fetch, [address, to_read, to_keep, data_cache])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen
