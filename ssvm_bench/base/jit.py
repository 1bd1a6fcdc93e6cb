"""How kernels are compiled: one decorator, and dispatch on a type at compile time.

``@kernel`` is ``numba.njit`` with a disk cache. Numba's own checks only a kernel's own file when it
decides whether a cached kernel is still valid, so a kernel could go on calling the old code of an
edited neighbour. Here the cache folder is named after the contents of all modules with kernels: an
edit in any of them gives a new, empty folder. Numba's loads whatever its files hold, and where it
cannot write them, it writes beside the source; here each file has a checksum, and one that is
damaged, or a folder that cannot be used, only means to compile again (`Kept`).

``@generic`` and ``@implements`` are ``functools.singledispatch`` for kernels: the type of the
first argument, a ``NamedTuple`` of arrays, selects the implementation while the caller is being
compiled, so that a call costs nothing at run time and can be inlined
(:mod:`ssvm_bench.base.inlining`).

Nothing here uses ``fastmath``: sums keep their order, and a run gives the same bits on every
machine.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps
from numba.extending import intrinsic

from ssvm_bench.base import files, places
from ssvm_bench.base.inlining import Inlined, Kernel, Operation

F = TypeVar("F", bound=Callable[..., Any])

_OLD_CACHES_KEPT = 3
_NO_COUNTS: Any = {"_nrt": False, "forceinline": True}


def source_digest(package: Path) -> str:
    """Return 16 hexadecimal digits over the compilers' versions and the modules with kernels."""
    versions = numba.__version__, llvmlite.__version__, sys.implementation.cache_tag
    digest = hashlib.sha256(" ".join(versions).encode())
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if b"ssvm_bench.base.jit" in source or path.name == "jit.py":
            digest.update(path.relative_to(package).as_posix().encode() + source)
    return digest.hexdigest()[:16]


def _cache_folder() -> Path | None:
    """Return the folder for this version of the kernels; None if there is no place for any."""
    name = f"kernels-{source_digest(Path(__file__).parents[1])}"
    with suppress(OSError):
        given = os.environ.get("NUMBA_CACHE_DIR")
        folder = Path(given or places.user_folder() / "numba").absolute() / name
        if not folder.exists():
            _remove_old(folder.parent)
        if reason := places.why_unusable(folder):
            folder = places.temporary(f"Cannot use {folder.parent}: {reason}") / name
            folder.mkdir(exist_ok=True)
        return folder
    return None


def _remove_old(root: Path) -> None:
    others = sorted(root.glob("kernels-*"), key=lambda path: path.stat().st_mtime)
    for old in others[: -_OLD_CACHES_KEPT or None]:
        shutil.rmtree(old, ignore_errors=True)


CACHE_FOLDER = _cache_folder()
CACHE_ROOT = None if CACHE_FOLDER is None else CACHE_FOLDER.parent
"""Below it lies one cache folder for each version of the kernels."""

numba.config.CACHE_DIR = str(CACHE_FOLDER or "")  # for functions that others compile


class Kept(FunctionCache):
    """The compiled versions of a function, one file for each type of its arguments.

    A file begins with the checksum of the rest and of its own name, which stands for the function,
    its source and the types. One that cannot be used in any way is as good as none: then the
    function is compiled, as it is where none can be written.
    """

    def __init__(self, dispatcher: Kernel | Inlined) -> None:  # numba's looks for its own place
        self._dispatcher = dispatcher
        self._py_func = dispatcher.py_func
        self._source = Path(self._py_func.__code__.co_filename)
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(CACHE_FOLDER)

    def flush(self) -> None:
        """Forget nothing: another source has another folder."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the function compiled for these types, or None."""
        target_context.refresh()
        # a checksum tells that this is what was written; that it still fits, only the use of it
        with suppress(Exception):
            path = self._path(sig, target_context.codegen())
            content = memoryview(files.read(path))
            if content[:_DIGEST] == _checksum(path, content[_DIGEST:]):
                types_of, compiled = pickle.loads(content[_DIGEST:])
                if types_of == sig:
                    return self._dispatcher.rebuild(target_context, *compiled)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if it can be."""
        with suppress(OSError):
            path = self._path(sig, data.codegen)
            if not data.library.has_dynamic_globals:  # addresses of this process
                content = dumps((sig, data._reduce()))
                files.write(path, _checksum(path, content) + content)

    def _path(self, sig: Any, codegen: Any) -> Path:
        if CACHE_FOLDER is None:
            raise FileNotFoundError
        kind = type(self._dispatcher).__name__
        key = self._index_key(sig, codegen), _source_of(self._source), kind
        digest = hashlib.sha256(repr(key).encode()).hexdigest()
        name = f"{self._source.stem}.{self._py_func.__qualname__}"
        return CACHE_FOLDER / f"{name.replace('<locals>', '')[-60:]}-{digest[:24]}"


_DIGEST = hashlib.sha256().digest_size


def _checksum(path: Path, content: Any) -> bytes:
    digest = hashlib.sha256(f"{path.parent.name}/{path.name}".encode())
    digest.update(content)
    return digest.digest()


@functools.cache
def _source_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


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
    made = Kernel(function, {"nopython": True, "no_cfunc_wrapper": True, **options})
    for dispatcher in (made, made.inlined):
        dispatcher._cache = Kept(dispatcher)
    return made


def generic(function: F) -> F:
    """Declare an operation that is implemented per type of its first argument.

    The body of the declared function is its documentation only.
    """
    return Operation(function)  # type: ignore[return-value]


def implements(operation: Callable[..., Any], kind: type) -> Callable[[F], F]:
    """Compile a function as the implementation of a generic operation for a ``NamedTuple`` type."""

    def register(function: F) -> F:
        operation.implementations[kind] = kernel(function)  # type: ignore[attr-defined]
        return function

    return register


def is_implemented(operation: Callable[..., Any], kind: type) -> bool:
    """Tell whether a generic operation is implemented for a ``NamedTuple`` type."""
    return kind in operation.implementations  # type: ignore[attr-defined]


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
