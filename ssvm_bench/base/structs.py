"""Named tuples of arrays as arguments that kernels pass on: by reference.

Numba passes a ``NamedTuple`` by value: a call takes every field of every array apart, and the
callee puts them together again. For a storage of planes these are 300 numbers, and the code for it
was over a third of what the compiler read. A `Struct` is a pointer to a copy of the fields. Calls
between kernels are inlined, so that LLVM resolves the pointer: the machine code is as fast.

A kernel that Python calls has its arguments by value; they become structs when it calls others.
"""

from __future__ import annotations

import hashlib
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_borrowed, lower_cast, lower_getattr_generic
from numba.extending import register_model


class Struct(types.NamedTuple):
    """The numba type of a ``NamedTuple`` by reference.

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
