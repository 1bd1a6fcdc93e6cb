"""The state of a run as bytes, and back in another process.

What a problem consists of before anything was asked of it (examples, features, graphs) is the same
wherever it is built from the same files. So a snapshot only names such a part, by the way from the
problem to it (``oracle.features.3``), and pickles all else that can be reached: the solver with its
planes, random streams and clock, and the trace. Arrays that share memory share it again.

To read a pickle is to call what it names. Here that can be classes of this program and of the run's
own components, and what makes numpy's arrays; a snapshot that names anything else is refused.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Collection, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, BinaryIO

import numpy as np

from ssvm_bench.oracles.objective import Objective

_ATOMS = (int, float, complex, str, bytes, type, type(None), np.generic)
_CODE = (FunctionType, BuiltinFunctionType, MethodType, ModuleType)
_OWN = __name__.partition(".")[0]
_OTHERS = {
    "builtins": ("bytearray", "complex", "frozenset", "range", "set", "slice"),
    "collections": ("OrderedDict", "defaultdict", "deque"),
    "pathlib": ("PosixPath", "PurePosixPath"),
    "time": ("perf_counter", "process_time"),
    "numpy": ("dtype", "ndarray"),
    **dict.fromkeys(
        ("numpy.core.multiarray", "numpy._core.multiarray"), ("_reconstruct", "scalar")
    ),
    **dict.fromkeys(("numpy.core.numeric", "numpy._core.numeric"), ("_frombuffer",)),
    "numpy.random._pcg64": ("PCG64",),
    "numpy.random._pickle": ("__bit_generator_ctor",),
    "numpy.random.bit_generator": ("SeedSequence", "__pyx_unpickle_SeedSequence"),
}
"""Names of other packages that a snapshot may have in it."""


def parts(problem: Objective) -> dict[str, Any]:
    """Return all of a problem that a snapshot only names: name → object.

    Parameters
    ----------
    problem : Objective
        As built, before anything was asked of it.
    """
    found = {"problem": problem}
    seen = {id(problem)}
    waiting = ["problem"]
    while waiting:
        name = waiting.pop()
        for step, part in _inside(found[name]):
            if id(part) not in seen and not isinstance(part, (*_ATOMS, *_CODE)):
                seen.add(id(part))
                found[f"{name}.{step}"] = part
                waiting.append(f"{name}.{step}")
    return found


def _inside(whole: Any) -> Iterator[tuple[object, Any]]:
    """Yield what an object holds, and how to get there."""
    if isinstance(whole, Mapping):
        yield from whole.items()
    elif isinstance(whole, (tuple, list)):
        yield from enumerate(whole)
    elif not isinstance(whole, np.ndarray):
        yield from getattr(whole, "__dict__", {}).items()


def dump(state: Any, parts: Mapping[str, Any], file: BinaryIO) -> None:
    """Write a state.

    Parameters
    ----------
    state : object
        What can be pickled, and parts of the problem.
    parts : mapping
        Of the problem that the run began with.
    file : binary file

    Raises
    ------
    TypeError, AttributeError, pickle.PicklingError
        If something cannot be pickled: a generator, an open file, a function without a name.
    """
    _Pickler(file, parts).dump(state)


def load(file: BinaryIO, parts: Mapping[str, Any], packages: Collection[str] = ()) -> Any:
    """Return a state, which `dump` wrote for an equal problem.

    Parameters
    ----------
    file : binary file
    parts : mapping
        Of the problem as it is built here.
    packages : collection of str
        Further packages whose names may be looked up: of components that are not this program's.

    Raises
    ------
    pickle.UnpicklingError
        If it names a part that is not there, or something that it must not.
    """
    return _Unpickler(file, parts, packages).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: BinaryIO, parts: Mapping[str, Any]) -> None:
        super().__init__(file, protocol=5)
        self._names = {id(part): name for name, part in parts.items()}

    def persistent_id(self, obj: Any) -> str | None:
        return self._names.get(id(obj))

    def reducer_override(self, obj: Any) -> Any:
        """Let an array that looks into another one do so again."""
        if type(obj) is not np.ndarray or not isinstance(obj.base, np.ndarray):
            return NotImplemented
        whole = obj.base
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if whole.dtype.hasobject or not (whole.flags.c_contiguous or whole.flags.f_contiguous):
            return NotImplemented
        first = obj.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        return _view, (whole, obj.shape, obj.dtype, first, obj.strides)


def _view(
    whole: np.ndarray,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    first: int,
    strides: tuple[int, ...],
) -> np.ndarray:
    """Return the array that looks into another one, from its byte ``first`` on."""
    memory: Any = whole.reshape(-1, order="A").view(np.uint8)
    return np.ndarray(shape, dtype, memory, first, strides)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, parts: Mapping[str, Any], packages: Collection[str]) -> None:
        super().__init__(file)
        self._parts, self._packages = parts, packages

    def persistent_load(self, name: Any) -> Any:
        if name not in self._parts:
            raise pickle.UnpicklingError(f"the problem has no part {name}")
        return self._parts[name]

    def find_class(self, module: str, name: str) -> Any:
        package = module.partition(".")[0]
        if package in self._packages or name in _OTHERS.get(module, ()):
            return super().find_class(module, name)
        if package == _OWN and module in sys.modules:
            found = super().find_class(module, name)
            if isinstance(found, type) or found is _view:
                return found
        raise pickle.UnpicklingError(f"it names {module}.{name}")
