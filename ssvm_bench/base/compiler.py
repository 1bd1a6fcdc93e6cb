"""Kernels compiled by numba's internals: fast to compile, checked when they are loaded.

**What is compiled to what.** LLVM takes most of the time, and longer than in proportion to the size
of a function. A ``@kernel`` is inlined in the kernels that call it: it has machine code of its own
only if Python calls it. A ``@shared_kernel`` has machine code of its own, which all kernels call.
So the work of a term is compiled once, not once in each pass that does it, and the passes are short
functions. A file in the cache that calls shared kernels names them, and they are loaded before it.

**What is kept.** Numba's cache does not check what it loads, and if it cannot write to its folder,
it writes beside the source. Here each file has a checksum. If a file is damaged, or the folder
cannot be used, the kernel is only compiled again (`KernelCache`). What is installed compiled
already is looked at first (:mod:`ssvm_bench.base.precompiled`).

These **internals of numba** are used. They may change between releases: where they are not as
`_CALLED` says, and where a newer numba does not compile rightly by them, :mod:`ssvm_bench.base.jit`
takes numba's public interface. ``CPUDispatcher`` with the options ``_nrt``, ``forceinline`` and the
two that leave out wrappers; ``types.Dispatcher``, which calls ``get_call_template`` and
``get_overload`` of a dispatcher; ``FunctionCache._index_key``; ``CompileResult._reduce`` and
``_rebuild``; the flag ``no_compile``; ``rtsys.initialize``; ``_optimize_functions``,
``_optimize_final_module``, ``_finalize_final_module`` and ``add_linking_library`` of
``JITCodeLibrary``, which optimise and link code and generate machine code; that one engine of LLVM
has all machine code, so that code finds other code by its symbol; and the data models, casts and
names of types of `Struct`, as which kernels pass named tuples on.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import inspect
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar

import numba
from llvmlite import binding
from numba import extending, types
from numba.core import cgutils, compiler
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed, lower_cast, lower_getattr_generic
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.extending import register_model

from ssvm_bench.base import files, precompiled
from ssvm_bench.base.kernel_folder import DIGEST, FOLDER

_CALLED: tuple[tuple[Any, int, tuple[str, ...]], ...] = (
    (CPUDispatcher, 1, ("targetoptions", "pipeline_class")),
    (CPUDispatcher.get_call_template, 3, ()),
    (CPUDispatcher.get_overload, 2, ()),
    (CPUDispatcher.add_overload, 2, ()),
    (CPUDispatcher.compile, 2, ()),
    (FunctionCache._index_key, 3, ()),
    (FunctionCache.load_overload, 3, ()),
    (FunctionCache.save_overload, 3, ()),
    (CompileResult._reduce, 1, ()),
    (CompileResult._find_referenced_environments, 1, ()),
    (JITCodeLibrary, 2, ()),
    (JITCodeLibrary._optimize_functions, 2, ()),
    (JITCodeLibrary._optimize_final_module, 1, ()),
    (JITCodeLibrary._finalize_final_module, 1, ()),
    (JITCodeLibrary._finalize_dynamic_globals, 1, ()),
    (JITCodeLibrary.add_linking_library, 2, ()),
    (JITCodeLibrary.serialize_using_bitcode, 1, ()),
    (JITCodeLibrary.enable_object_caching, 1, ()),
    (rtsys.initialize, 1, ()),
    (types.Dispatcher, 1, ()),
    (binding.create_pipeline_tuning_options, 1, ()),
    (binding.create_pass_builder, 2, ()),
)
"""What is called or replaced: with how many arguments in order, and with which by name."""

for _called, _count, _names in _CALLED:
    inspect.signature(_called).bind(*range(_count), **dict.fromkeys(_names))

KEEPS = True
"""See :mod:`ssvm_bench.base.interpreted`."""

PRECOMPILED = precompiled.adopted(DIGEST)  # sets the target, so before any kernel


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
        for folder, read in ((PRECOMPILED.folder, PRECOMPILED.read), (FOLDER, _cached)):
            # the checksum shows that the file is intact; only its use can show that it still fits
            with suppress(Exception):
                path = self._path(folder, sig, target_context.codegen())
                content = memoryview(read(path))
                if content[:_DIGEST] == _checksum(path, content[_DIGEST:]):
                    types_of, calls, compiled = pickle.loads(content[_DIGEST:])
                    if types_of == sig and all(map(_is_ready, calls, calls.values())):
                        found = self._dispatcher.rebuild(target_context, *compiled)
                        found.library.calls = calls
                        return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled function, if possible."""
        with suppress(OSError):
            path = self._path(FOLDER, sig, data.codegen)
            if not data.library.has_dynamic_globals:  # addresses of this process
                content = dumps((sig, data.library.calls, data._reduce()))
                files.write(path, _checksum(path, content) + content)

    def _path(self, folder: Path | None, sig: Any, codegen: Any) -> Path:
        if folder is None:
            raise FileNotFoundError
        kind = type(self._dispatcher).__name__
        # numba's key has the bytecode, which refers to constants by their index only
        constants = [c for c in self._py_func.__code__.co_consts if not isinstance(c, CodeType)]
        key = self._index_key(sig, codegen), _source_of(self._source), kind, constants
        digest = hashlib.sha256(repr(key).encode()).hexdigest()
        name = f"{self._source.stem}.{self._py_func.__qualname__}"
        return folder / f"{name.replace('<locals>', '')[-60:]}-{digest[:24]}"


_DIGEST = hashlib.sha256().digest_size


def _cached(path: Path) -> bytes:
    return files.read(path, within=path.parent)


def _checksum(path: Path, content: Any) -> bytes:
    digest = hashlib.sha256(f"{path.parent.name}/{path.name}".encode())
    digest.update(content)
    return digest.digest()


@functools.cache
def _source_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


# ---- kernels ------------------------------------------------------------------------------------


class Code(JITCodeLibrary):
    """The code of a kernel, and the shared kernels that it calls.

    Attributes
    ----------
    calls : dict
        Symbol → name and types of a shared kernel. LLVM ends the process if it loads machine code
        whose symbols are not there, so these kernels are loaded before.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.calls: dict[str, tuple[str, Any]] = {}

    def add_linking_library(self, library: Any) -> None:
        """Link other code with this, unless it is that of a shared kernel, which is only called."""
        shared = getattr(library, "shared", None)
        self.calls |= shared or getattr(library, "calls", {})
        if not shared:
            super().add_linking_library(library)


class InlinedCode(Code):
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


class MachineCode(Code):
    """Machine code, of which LLVM unrolls no loop, and which it optimises once.

    The loops of kernels are short: parts of an example, labels seen, planes of a term. Unrolling
    doubled the machine code and took most of the compile time, for passes that were no faster.
    """

    unrolls = False

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self.enable_object_caching()

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        options = binding.create_pipeline_tuning_options(int(numba.config.OPT))
        options.loop_vectorization = bool(numba.config.LOOP_VECTORIZE)
        options.slp_vectorization = bool(numba.config.SLP_VECTORIZE)
        options.loop_unrolling = self.unrolls
        builder = binding.create_pass_builder(self._codegen._tm, options)
        passes = builder.getModulePassManager()
        passes.add_refprune_pass()
        passes.run(self._final_module, builder)


class UnrolledCode(MachineCode):
    """Machine code of a kernel whose loops are over all features or all terms."""

    unrolls = True


class _Compiler(compiler.Compiler):
    """Numba's compiler, with `MachineCode` for its output."""

    output: ClassVar[type[MachineCode]] = MachineCode

    def __init__(self, typing: Any, target: Any, _: Any, *rest: Any) -> None:
        super().__init__(typing, target, self.output(target.codegen(), "kernel"), *rest)


class _UnrollingCompiler(_Compiler):
    output = UnrolledCode


class _InliningCompiler(compiler.Compiler):
    """Numba's compiler, with `InlinedCode` for its output."""

    def __init__(self, typing: Any, target: Any, _: Any, *rest: Any) -> None:
        super().__init__(typing, target, InlinedCode(target.codegen(), "inlined"), *rest)
        self.state.flags.no_compile = True


class Inlined(CPUDispatcher):
    """A kernel as other kernels call it: inlined, and without a wrapper for Python."""

    def __init__(self, function: Callable[..., Any], options: dict[str, bool]) -> None:
        bare = {**options, "no_cpython_wrapper": True}
        super().__init__(function, targetoptions=bare, pipeline_class=_InliningCompiler)
        self._cache = KernelCache(self)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the template by which numba infers the types of a call."""
        return CPUDispatcher.get_call_template(self, tuple(map(by_reference, args)), kws)

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


class Entry(CPUDispatcher):
    """The machine code of a kernel: that of a function that only calls the inlined kernel.

    Parameters
    ----------
    inlined : Inlined
    options : dict
        Numba's.
    argument : str
        The expression by which an argument is passed on.
    unrolled : bool
        Whether the code is `UnrolledCode`.
    """

    rebuild = staticmethod(compiler.CompileResult._rebuild)

    def __init__(
        self,
        inlined: Inlined,
        options: dict[str, bool],
        argument: str = "{}",
        unrolled: bool = False,
    ) -> None:
        entry, pipeline = _entry(inlined, argument), _UnrollingCompiler if unrolled else _Compiler
        super().__init__(entry, targetoptions=options, pipeline_class=pipeline)
        self.py_func = inlined.py_func
        self._cache = KernelCache(self)

    def add_overload(self, cres: Any) -> None:
        """Store a compile result, and register the environments of the code inlined in it."""
        super().add_overload(cres)
        for environment in cres._find_referenced_environments():
            cres.codegen.set_env(environment.env_name, environment)


def _entry(inlined: Inlined, argument: str) -> Callable[..., Any]:
    """Return a function of the same arguments that only calls the inlined kernel.

    So named tuples by value become structs once, not in each call that the kernel makes.
    """
    function = inlined.py_func
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    passed = ", ".join(map(argument.format, names))
    source = f"lambda {', '.join(names)}: inlined({passed})"
    entry = eval(source, {"inlined": inlined, "local": _local})
    entry.__code__ = entry.__code__.replace(
        co_filename=code.co_filename, co_firstlineno=code.co_firstlineno
    )
    entry.__defaults__ = function.__defaults__
    return functools.update_wrapper(entry, function)


class Shared(Entry):
    """A kernel as other kernels call it: machine code of its own, which all callers share.

    It copies its structs: LLVM would read fields of a caller's again after each write to an array.
    So it must not return a struct, nor what refers to one.

    Attributes
    ----------
    known : dict
        Full name of the function → its kernel.
    """

    known: ClassVar[dict[str, Shared]] = {}

    def __init__(self, inlined: Inlined, options: dict[str, bool]) -> None:
        bare = {**options, "no_cpython_wrapper": True, "forceinline": False}
        super().__init__(inlined, bare, "local({})")
        self.name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        self.known[self.name] = self

    get_call_template = Inlined.get_call_template

    def add_overload(self, cres: Any) -> None:
        """Store a compile result, and the symbol by which callers refer to it."""
        super().add_overload(cres)
        called = self.name, tuple(cres.signature.args)
        cres.library.shared = {cres.fndesc.mangled_name: called}


def _is_ready(symbol: str, called: tuple[str, Any]) -> bool:
    """Load or compile a shared kernel; return whether it is the one that has this symbol."""
    name, kinds = called
    shared = Shared.known[name]
    shared.compile(kinds)
    return bool(shared.overloads[kinds].fndesc.mangled_name == symbol)


class CompiledKernel(Entry):
    """A kernel as Python calls it.

    Attributes
    ----------
    inlined : Inlined
        The same function, inlined in other kernels.
    called : Inlined or Shared
        The same function, as other kernels call it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        shared: bool = False,
        unrolled: bool = False,
        **options: bool,
    ) -> None:
        always = {"nopython": True, "nogil": True, "no_cfunc_wrapper": True, "forceinline": True}
        options = {**always, **options}
        self.inlined = Inlined(function, options)
        self.called = Shared(self.inlined, options) if shared else self.inlined
        super().__init__(self.inlined, options, unrolled=unrolled)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.called)

    def compile(self, sig: Any) -> Any:
        """Return the machine code for these types, from the cache or new.

        Python's collector of cycles is off meanwhile. What numba makes stays until the end, and to
        look through it again and again took an eighth of the time.
        """
        was_on = gc.isenabled()
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            if was_on:
                gc.enable()


def compiled(
    function: Callable[..., Any],
    allocates: bool = False,
    shared: bool = False,
    unrolled: bool = False,
) -> CompiledKernel:
    """Return a kernel; see the decorators in :mod:`ssvm_bench.base.jit`."""
    options = {} if allocates else {"_nrt": False}
    return CompiledKernel(function, shared=shared, unrolled=unrolled, **options)


# ---- named tuples as arguments that kernels pass on: by reference --------------------------------


class Struct(types.NamedTuple):
    """The numba type of a ``NamedTuple`` by reference.

    Numba passes a ``NamedTuple`` by value: a call takes every field of every array apart, and the
    callee puts them together again. For a storage of planes these are 300 numbers, and the code for
    it was over a third of what the compiler read. A struct is a pointer to a copy of the fields.
    Calls between kernels are inlined, so that LLVM resolves the pointer: the machine code is as
    fast. A shared kernel copies its structs for the same reason. A kernel that Python calls has its
    arguments by value, and passes them on as structs.

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
    """Return the type of an argument, with structs in place of named tuples.

    A literal has the type of its value: LLVM sees the constant in what is inlined, and a variant of
    its own for each would only be compiled besides.
    """
    kind = types.unliteral(kind)
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


@extending.intrinsic
def _local(typing: Any, argument: Any) -> Any:
    """Return a copy of a struct, with copies of those in it; other arguments as they are."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _copied(context, builder, signature.args[0], arguments[0])

    return argument(argument), codegen


def _copied(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if not isinstance(kind, Struct):
        return value
    size = cgutils.intp_t(context.get_abi_sizeof(value.type.pointee))
    copy = cgutils.alloca_once(builder, value.type.pointee)
    cgutils.raw_memcpy(builder, copy, value, size, 1)
    for k, field in enumerate(kind):
        if isinstance(field, Struct):
            place = cgutils.gep_inbounds(builder, copy, 0, k)
            builder.store(_copied(context, builder, field, builder.load(place)), place)
    return copy


# ---- operations ---------------------------------------------------------------------------------


class Overloads:
    """An operation as numba sees it: a dispatcher, whose overloads are those of its kernels."""

    is_compiling, nopython_signatures = False, ()

    def __init__(self, operation: Any) -> None:
        self._operation = operation
        self.__name__ = operation.__name__

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return the template by which numba infers the types of a call."""
        return self._called(args).get_call_template(args, kws)

    def get_overload(self, args: Any) -> Any:
        """Return the key by which numba finds the code for these types."""
        return self._called(args).get_overload(args)

    def _called(self, args: Any) -> Any:
        kind = getattr(args[0], "instance_class", type(args[0]))
        return self._operation.chosen(kind).called


def declare(operation: Any) -> None:
    """Let kernels call an operation."""
    operation.overloads = Overloads(operation)  # numba keeps no reference
    operation._numba_type_ = types.Dispatcher(operation.overloads)


def intrinsic(code: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    """Return an intrinsic, which generates code for LLVM."""
    return extending.intrinsic(code)
