"""Kernels inside kernels: compiled to be inlined, and to nothing else.

What Python calls needs machine code, and wrappers that unpack its arguments. Numba makes both of
every function, and of all that this calls, each for itself; of these only the optimised
intermediate code is used, as they are inlined. So a kernel (:mod:`ssvm_bench.base.jit`) has two
dispatchers: `Kernel`, which Python calls, as numba's, and `Inlined`, which other kernels call, and
which compiles no further than that code.

An `Operation`, which is implemented per type of its first argument, is no function at all: it
stands for the kernel that is called, and adds nothing to what is compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import binding
from numba.core import compiler, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel import register_default
from numba.core.datamodel.models import OpaqueModel
from numba.core.imputils import lower_constant
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

# ---- code that is inlined -----------------------------------------------------------------------


class InlinedCode(JITCodeLibrary):
    """Code that is linked into its callers', and never loaded."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def serialize_using_object_code(self) -> Any:
        """Return the intermediate code: there is no other."""
        return self.serialize_using_bitcode()


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """From typed code to `InlinedCode`."""

    _name = "lowering_of_inlined_code"

    def run_pass(self, state: Any) -> bool:
        state.library = InlinedCode(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        key = object()  # numba finds the code by it
        state.targetctx.insert_user_function(key, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=key)
        return True


class _Compiler(compiler.CompilerBase):
    """Numba's passes, but for the lowering."""

    def define_pipelines(self) -> list[Any]:
        manager = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [
            (_Lowering if each is NativeLowering else each, text) for each, text in manager.passes
        ]
        return [manager]


# ---- dispatchers --------------------------------------------------------------------------------


class Inlined(CPUDispatcher):
    """A kernel as other kernels call it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        bare = {**options, "no_cpython_wrapper": True}
        super().__init__(function, targetoptions=bare, pipeline_class=_Compiler)

    def add_overload(self, cres: Any) -> None:
        """Keep it for callers; Python cannot call it."""
        self.overloads[tuple(cres.signature.args)] = cres

    def rebuild(
        self,
        target: Any,
        code: tuple[str, str, bytes],
        description: Any,
        environment: Any,
        signature: Any,
        *rest: Any,
    ) -> Any:
        """Return what was compiled from what numba keeps of it."""
        name, _, intermediate = code
        library = InlinedCode(target.codegen(), name)
        library._final_module = binding.parse_bitcode(intermediate)
        library._finalize_final_module()
        return compiler.compile_result(
            target_context=target,
            typing_context=target.typing_context,
            library=library,
            environment=environment,
            entry_point=object(),
            fndesc=description,
            signature=signature,
            objectmode=False,
        )


class Kernel(CPUDispatcher):
    """A kernel as Python calls it.

    Attributes
    ----------
    inlined : Inlined
        The same for other kernels.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, targetoptions=options)
        self.inlined = Inlined(function, options)

    @property
    def _numba_type_(self) -> Any:
        return types.Dispatcher(self.inlined)

    def add_overload(self, cres: Any) -> None:
        """Keep it, and have the environments of what has been inlined at hand."""
        super().add_overload(cres)
        for environment in cres._find_referenced_environments():
            cres.codegen.set_env(environment.env_name, environment)

    def rebuild(self, target: Any, *parts: Any) -> Any:
        """Return what was compiled from what numba keeps of it."""
        return compiler.CompileResult._rebuild(target, *parts)


# ---- operations ---------------------------------------------------------------------------------


class Operation:
    """A function of which there is an implementation for each type of its first argument.

    Attributes
    ----------
    name : str
        Its full name.
    implementations : dict
        A ``NamedTuple`` type → its kernel.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.implementations: dict[Any, Kernel] = {}
        self._numba_type_ = _OperationType(self)

    def __call__(self, *args: Any) -> Any:
        """Raise ``TypeError``: only kernels can call it."""
        raise TypeError(f"{self.name} can only be called by kernels")


class _OperationType(types.Callable, types.Opaque):
    """Numba's type of one operation."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        super().__init__(operation.name)

    def _chosen(self, first: Any) -> Any:
        kind = getattr(first, "instance_class", None)
        kernel = self.operation.implementations.get(kind)
        return None if kernel is None else types.Dispatcher(kernel.inlined)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        chosen = self._chosen(args[0])
        return None if chosen is None else chosen.get_call_type(context, args, kws)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return self._chosen(sig.args[0]).get_impl_key(sig)


register_default(_OperationType)(OpaqueModel)


@lower_constant(_OperationType)
def _constant(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.get_dummy_value()
