"""From the kind in a YAML file to the module that implements it.

``kind: viterbi`` of the group ``oracle`` is the module ``viterbi.py`` in ``ssvm_bench/oracles``, or
in a folder of it; or that in ``DIR/oracle`` of a folder given with ``--config-dir DIR``
(:mod:`ssvm_bench.config.plug_ins`); or that of another package which declares the entry point
``viterbi`` in the group ``ssvm_bench.oracles``. Every such module has a ``Config`` and a ``load``
(datasets) or ``build`` (oracles, solvers).
"""

from __future__ import annotations

import functools
import pkgutil
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from ssvm_bench.base.errors import ConfigError, RunFailedError, SsvmBenchError, nearest, shown
from ssvm_bench.config import plug_ins, typed

GROUPS = ("dataset", "oracle", "solver")

_KINDS = {
    "ssvm_bench.solvers.block.mpbcfw": "block",
    "ssvm_bench.solvers.block.mpbcfw_beyond": "cached",
    "ssvm_bench.solvers.bundle.bmrm": "bundle",
    "ssvm_bench.solvers.cutting_plane.n_slack": "cutting_plane",
}
"""Kinds that the hashes of runs know by an older name than that of their module."""


def module(group: str, kind: str) -> ModuleType:
    """Import the module of a component.

    Parameters
    ----------
    group : str
        ``"dataset"``, ``"oracle"`` or ``"solver"``.
    kind : str
        The ``kind`` of the component's YAML file.

    Raises
    ------
    ConfigError
        Nothing of that kind is installed.
    RunFailedError
        A package declares the kind, but cannot be imported.
    """
    own, file = _own_modules(group), plug_ins.file_of(group, kind)
    if kind in own:
        found = import_module(own[kind])
        if hasattr(found, "Config"):
            if file is not None:
                raise ConfigError(f"{file} has the kind of a {group} of ours. Rename it.")
            return found
    if file is not None:
        with blamed(group, kind):
            found = plug_ins.module(group, kind)
            _check(group, found)
            return found
    for entry in entry_points(group=f"ssvm_bench.{group}s", name=kind):
        with blamed(group, kind):
            found = entry.load()
            _check(group, found)
            return found
    raise ConfigError(f"Unknown {group} kind {kind!r}. {nearest(kind, kinds(group))}")


def config(group: str, values: Mapping[str, Any]) -> Any:
    """Return the ``Config`` of a component, of the values in its section.

    Raises
    ------
    ConfigError
        A value is wrong.
    RunFailedError
        The component is of another package, and fails.
    """
    found = module(group, values["kind"])
    with blamed(group, values["kind"]):
        return typed.convert(found.Config, values, group)


@contextmanager
def blamed(group: str, kind: str) -> Iterator[None]:
    """Tell whose failure it is if the code of another package does something unforeseen."""
    try:
        yield
    except SsvmBenchError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if is_own(group, kind):
            raise
        file = plug_ins.file_of(group, kind)
        if file is None:
            whose, what = "is that of another installed package", "Repair or uninstall that package"
        else:
            whose, what = f"is in {_place(file, error)}", "Repair it"
        raise RunFailedError(
            f"The {group} kind {kind!r} {whose}, which failed: {type(error).__name__}: "
            f"{shown(error, 300)}. {what}."
        ) from error


def _place(file: Path, error: BaseException) -> str:
    """Return a file, and the last line of it that was at work when an error was raised."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(file)
    ]
    if isinstance(error, SyntaxError) and error.filename == str(file):
        lines.append(error.lineno)
    return f"{file}, line {lines[-1]}" if lines else str(file)


def _check(group: str, found: ModuleType) -> None:
    """Raise an error unless a module of another package has what each of its group must have."""
    needed = "load" if group == "dataset" else "build"
    if not callable(getattr(found, needed, None)):
        raise TypeError(f"it has no function {needed}")
    if not is_dataclass(getattr(found, "Config", None)):
        raise TypeError("it has no dataclass Config")


def code_version(group: str, kind: str) -> int | str:
    """Return the ``CODE_VERSION`` of a component, or what stands for it."""
    found = module(group, kind)
    return getattr(found, "CODE_VERSION", None) or plug_ins.version(found)


def kinds(group: str) -> list[str]:
    """Return every kind of a group, the project's own and those of other packages, sorted."""
    own = [
        kind for kind, name in _own_modules(group).items() if hasattr(import_module(name), "Config")
    ]
    installed = (entry.name for entry in entry_points(group=f"ssvm_bench.{group}s"))
    return sorted({*own, *plug_ins.kinds(group), *installed})


def is_own(group: str, kind: str) -> bool:
    """Tell whether a kind is the project's own, not that of another package."""
    return kind in _own_modules(group)


def other_packages(config: Any) -> set[str]:
    """Return the names of the packages, not this one, that the components of a run are in."""
    modules = (module(group, getattr(config, group).kind) for group in GROUPS)
    return {found.__name__.partition(".")[0] for found in modules} - {"ssvm_bench"}


def _own_modules(group: str) -> dict[str, str]:
    """Return kind → dotted name of all modules that may implement one."""
    package = f"ssvm_bench.{group}s"
    return _modules_below(package, *import_module(package).__path__)


@functools.cache
def _modules_below(package: str, *paths: str) -> dict[str, str]:
    """Return the modules of a package, and of the packages in it."""
    names: dict[str, str] = {}
    for info in pkgutil.iter_modules(paths, f"{package}."):
        name = info.name.rpartition(".")[2]
        if info.ispkg:
            names |= _modules_below(info.name, *(str(Path(path, name)) for path in paths))
        else:
            names[_KINDS.get(info.name, name)] = info.name
    return names
