"""How kernels are compiled: one decorator, and dispatch on a type at compile time.

``@kernel`` is ``numba.njit`` with a disk cache. Numba's cache checks only a kernel's own file when
it decides whether a cached kernel is valid, so a kernel could still call old code of another edited
module. Here the name of the cache folder depends on the contents of all modules with kernels: an
edit in any of them gives a new, empty folder. Numba's cache does not check what it loads, and if it
cannot write to its folder, it writes beside the source. Here each file has a checksum. If a file is
damaged, or the folder cannot be used, the kernel is only compiled again (`KernelCache`).

``@generic`` and ``@implements`` are ``functools.singledispatch`` for kernels: the type of the
first argument, a ``NamedTuple`` of arrays, selects the implementation while the caller is being
compiled, so that a call costs nothing at run time and can be inlined. The body of a generic
operation is the implementation for all types that have none of their own. An ``@abstract``
operation has no body but a docstring: every type needs an implementation of its own.

These **internals of numba** are used. They may change between releases; ``tests/base/test_jit.py``
shows what breaks. ``CPUDispatcher`` with the options ``_nrt``, ``forceinline`` and the two that
leave out wrappers; ``types.Dispatcher``, which calls ``get_call_template`` and ``get_overload`` of
a dispatcher; ``FunctionCache._index_key``; ``CompileResult._reduce`` and ``_rebuild``; the flag
``no_compile``; ``rtsys.initialize``; ``_optimize_final_module`` and ``_finalize_final_module`` of
``JITCodeLibrary``, which optimise code and generate machine code; and the data models, casts and
names of types of `Struct`, as which kernels pass named tuples on.

Nothing here uses ``fastmath``: sums keep their order, so that a run that is repeated or resumed on
one machine has the same bits. Other processors have other exponentials, and other sums in BLAS.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import llvmlite
import numba
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, compiler
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed, lower_cast, lower_getattr_generic
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.extending import intrinsic, register_model

from ssvm_bench.base import files

F = TypeVar("F", bound=Callable[..., Any])

_OLD_CACHES_KEPT = 3
_KERNELS = "kernels-[0-9a-f]{16}"
_OWN = r"[^/]+-[0-9a-f]{24}|[^/]+/[^/]+\.nb[ic]"
"""Names of the files in a folder of kernels; the second are numba's, for other packages."""


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
    """Return the cache folder for this version of the kernels; None if there cannot be one."""
    name = f"kernels-{source_digest(Path(__file__).parents[1])}"
    with suppress(OSError):
        given = os.environ.get("NUMBA_CACHE_DIR")
        folder = Path(given or files.user_folder() / "numba").absolute() / name
        if not folder.exists():
            _remove_old(folder.parent)
        if reason := files.why_unusable(folder):
            folder = files.temporary_cache(f"Cannot use {folder.parent}: {reason}") / name
            files.make(folder)
        return folder
    return None


def _remove_old(root: Path) -> None:
    found = [path for path in root.glob("kernels-*") if re.fullmatch(_KERNELS, path.name)]
    others = [path for path in found if path.is_dir() and not path.is_symlink()]
    others.sort(key=lambda path: path.lstat().st_mtime)
    for old in others[: -_OLD_CACHES_KEPT or None]:
        files.remove(old, _OWN)


CACHE_FOLDER = _cache_folder()
CACHE_ROOT = None if CACHE_FOLDER is None else CACHE_FOLDER.parent
"""It contains one cache folder for each version of the kernels."""

numba.config.CACHE_DIR = str(CACHE_FOLDER or "")  # for functions that other packages compile


class KernelCache(FunctionCache):
    """The compiled versions of a function, one file for each type of its arguments.

    A file begins with the checksum of the rest and of its own name, which identifies the function,
    its source and the types. If a file cannot be used for any reason, the function is compiled. If
    a file cannot be written, the function is only not cached.
    """

    def __init__(self, dispatcher: CPUDispatcher) -> None:  # numba's chooses a folder of its own
        self._dispatcher = dispatcher
        self._py_func = dispatcher.py_func
        self._source = Path(self._py_func.__code__.co_filename)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the function compiled for these types, or None."""
        rtsys.initialize(target_context)  # machine code needs only this; compiling loads more
        # the checksum shows that the file is intact; only its use can show that it still fits
        with suppress(Exception):
            path = self._path(sig, target_context.codegen())
            content = memoryview(files.read(path, within=path.parent))
            if content[:_DIGEST] == _checksum(path, content[_DIGEST:]):
                types_of, compiled = pickle.loads(content[_DIGEST:])
                if types_of == sig:
                    return self._dispatcher.rebuild(target_context, *compiled)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled function, if possible."""
        with suppress(OSError):
            path = self._path(sig, data.codegen)
            if not data.library.has_dynamic_globals:  # addresses of this process
                content = dumps((sig, data._reduce()))
                files.write(path, _checksum(path, content) + content)

    def _path(self, sig: Any, codegen: Any) -> Path:
        if CACHE_FOLDER is None:
            raise FileNotFoundError
        kind = type(self._dispatcher).__name__
        # numba's key has the bytecode, which refers to constants by their index only
        constants = [c for c in self._py_func.__code__.co_consts if not isinstance(c, CodeType)]
        key = self._index_key(sig, codegen), _source_of(self._source), kind, constants
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


# ---- kernels ------------------------------------------------------------------------------------


class InlinedCode(JITCodeLibrary):
    """Intermediate code, from which no machine code is generated.

    Generating it takes time and rewrites the intermediate code for the processor, so that callers
    that inline this code become slower. Inlined code is optimised in its callers only: optimising
    it here, too, took an eighth of the compile time.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """Return the intermediate code: there is no other."""
        return self.serialize_using_bitcode()


class _Compiler(compiler.Compiler):
    """Numba's compiler, with an `InlinedCode` for its output."""

    def __init__(self, typing: Any, target: Any, _: Any, *rest: Any) -> None:
        super().__init__(typing, target, InlinedCode(target.codegen(), "inlined"), *rest)
        self.state.flags.no_compile = True


class Inlined(CPUDispatcher):
    """A kernel as other kernels call it: inlined, and without a wrapper for Python."""

    def __init__(self, function: Callable[..., Any], options: dict[str, bool]) -> None:
        bare = {**options, "no_cpython_wrapper": True}
        super().__init__(function, targetoptions=bare, pipeline_class=_Compiler)
        self._cache = KernelCache(self)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the template by which numba infers the types of a call."""
        return super().get_call_template(tuple(map(by_reference, args)), kws)

    def add_overload(self, cres: Any) -> None:
        """Store a compile result under a key by which numba finds the code."""
        cres = cres._replace(entry_point=object())
        self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
        self.overloads[tuple(cres.signature.args)] = cres

    def rebuild(
        self, target: Any, code: Any, fndesc: Any, environment: Any, signature: Any, *_: Any
    ) -> Any:
        """Return the compile result from the parts of it that numba stores."""
        name, _, intermediate = code
        library = InlinedCode(target.codegen(), name)
        library._final_module = binding.parse_bitcode(intermediate)
        library._finalize_final_module()
        return compiler.compile_result(
            typing_context=target.typing_context,
            target_context=target,
            library=library,
            environment=environment,
            entry_point=None,
            fndesc=fndesc,
            signature=signature,
            objectmode=False,
        )


class CompiledKernel(CPUDispatcher):
    """A kernel as Python calls it.

    Attributes
    ----------
    inlined : Inlined
        The same function, as other kernels call it.
    """

    def __init__(self, function: Callable[..., Any], **options: bool) -> None:
        options = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True, **options}
        super().__init__(function, targetoptions=options)
        self._cache = KernelCache(self)
        self.inlined = Inlined(function, options)
        self.rebuild = compiler.CompileResult._rebuild

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.inlined)

    def add_overload(self, cres: Any) -> None:
        """Store a compile result, and register the environments of the code inlined in it."""
        super().add_overload(cres)
        for environment in cres._find_referenced_environments():
            cres.codegen.set_env(environment.env_name, environment)


def kernel(function: F) -> F:
    """Compile a function on its first call, and keep the machine code on disk.

    The function must not allocate arrays: it is compiled without reference counts, which cost more
    than the arithmetic for structs of many arrays.
    """
    return CompiledKernel(function, _nrt=False, forceinline=True)


def allocating_kernel(function: F) -> F:
    """Compile like `kernel`, for a function that allocates arrays; not for inner loops."""
    return CompiledKernel(function)


# ---- named tuples as arguments that kernels pass on: by reference --------------------------------


class Struct(types.NamedTuple):
    """The numba type of a ``NamedTuple`` by reference.

    Numba passes a ``NamedTuple`` by value: a call takes every field of every array apart, and the
    callee puts them together again. For a storage of planes these are 300 numbers, and the code for
    it was over a third of what the compiler read. A struct is a pointer to a copy of the fields.
    Calls between kernels are inlined, so that LLVM resolves the pointer: the machine code is as
    fast. A kernel that Python calls has its arguments by value; they become structs when it calls
    others.

    Attributes
    ----------
    value : numba.types.NamedTuple
        The type of what it refers to; named tuples in it are structs.
    """

    def __init__(self, fields: tuple[Any, ...], kind: type) -> None:
        super().__init__(fields, kind)
        self.value = types.NamedTuple(fields, kind)
        # a function's name has those of its arguments' types: with all fields, thousands of letters
        digest = hashlib.sha256(f"{kind.__module__}.{self.value}".encode()).hexdigest()[:16]
        self.name = f"{kind.__name__}_{digest}"


def by_reference(kind: Any) -> Any:
    """Return the type of an argument, with structs in place of named tuples."""
    if isinstance(kind, Struct) or not isinstance(kind, types.BaseNamedTuple):
        return kind
    return Struct(tuple(map(by_reference, kind)), kind.instance_class)


@register_model(Struct)
class _Pointer(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Struct) -> None:
        super().__init__(manager, kind, manager[kind.value].get_value_type().as_pointer())


@lower_cast(types.BaseNamedTuple, Struct)
def _refer(context: Any, builder: Any, given: Any, wanted: Struct, value: Any) -> Any:
    fields = [
        context.cast(builder, builder.extract_value(value, k), *kinds)
        for k, kinds in enumerate(zip(given, wanted, strict=True))
    ]
    copy = context.make_tuple(builder, wanted.value, fields)
    return cgutils.alloca_once_value(builder, copy)


@lower_getattr_generic(Struct)
def _read(context: Any, builder: Any, kind: Struct, pointer: Any, name: str) -> Any:
    k = kind.fields.index(name)
    field = builder.load(cgutils.gep_inbounds(builder, pointer, 0, k))
    return impl_ret_borrowed(context, builder, kind[k], field)


# ---- operations ---------------------------------------------------------------------------------


class Operation:
    """A function with a kernel for each type of its first argument.

    Numba sees it as a dispatcher, whose overloads are those of the kernel that is called.

    Attributes
    ----------
    name : str
        The full name of the function.
    implementations : dict
        ``NamedTuple`` type → the kernel for it and for classes derived from it.
    """

    is_compiling, nopython_signatures = False, ()

    def __init__(self, function: Callable[..., Any], default: Any = None) -> None:
        functools.update_wrapper(self, function)
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.implementations: dict[Any, Any] = {}
        self._default = default
        self._numba_type_ = types.Dispatcher(self)

    def __call__(self, first: Any, *args: Any) -> Any:
        """Call the kernel for the type of the first argument."""
        return self._chosen(type(first))(first, *args)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the template by which numba infers the types of a call."""
        return self._chosen(_class(args[0])).inlined.get_call_template(args, kws)

    def get_overload(self, args: Any) -> Any:
        """Return the key by which numba finds the code for these types."""
        return self._chosen(_class(args[0])).inlined.get_overload(args)

    def _chosen(self, kind: type) -> Any:
        known = (self.implementations.get(each) for each in kind.__mro__)
        chosen = next(filter(None, known), self._default)
        if chosen is None:
            raise numba.errors.TypingError(f"{self.name} is not implemented for {kind.__name__}")
        return chosen


def _class(argument: Any) -> type:
    """Return the ``NamedTuple`` class of an argument's numba type; else the class of the type."""
    return getattr(argument, "instance_class", type(argument))


def generic(function: F) -> F:
    """Declare an operation; the function serves types without an implementation of their own."""
    return Operation(function, kernel(function))  # type: ignore[return-value]


def abstract(function: F) -> F:
    """Declare an operation that every type implements; the body is its documentation only."""
    return Operation(function)  # type: ignore[return-value]


def implements(operation: Callable[..., Any], kind: type) -> Callable[[F], F]:
    """Compile a function as the implementation of an operation for a ``NamedTuple`` type."""

    def register(function: F) -> F:
        operation.implementations[kind] = kernel(function)  # type: ignore[attr-defined]
        return function

    return register


def is_implemented(operation: Callable[..., Any], kind: type) -> bool:
    """Return whether an operation has an implementation for exactly this ``NamedTuple`` type."""
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


@kernel
def prefetch_range(array: Any, begin: int, end: int) -> None:
    """Do `prefetch` for all cache lines of ``array[begin:end]``."""
    for k in range(begin, end, 64 // array.itemsize):
        prefetch(array, k)
