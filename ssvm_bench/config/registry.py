"""From the kind in a YAML file to the module that implements it.

``kind: viterbi`` of the group ``oracle`` is the module ``viterbi.py`` in ``ssvm_bench/oracles``, or
in a folder of it, or that of another package which declares the entry point ``viterbi`` in the
group ``ssvm_bench.oracles``. Every such module has a ``Config`` and a ``load`` (datasets) or
``build`` (oracles, solvers).
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from ssvm_bench.config import typed
from ssvm_bench.errors import ConfigError, RunFailedError, SsvmBenchError, nearest, shown

GROUPS = ("dataset", "oracle", "solver")

_KINDS = {
    "ssvm_bench.solvers.block.mpbcfw": "block",
    "ssvm_bench.solvers.block.beyond": "cached",
    "ssvm_bench.solvers.bundle.bundle_method": "bundle",
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
    own = _own_modules(group)
    if kind in own:
        found = import_module(own[kind])
        if hasattr(found, "Config"):
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
        raise RunFailedError(
            f"The {group} kind {kind!r} is that of another installed package, which failed: "
            f"{type(error).__name__}: {shown(error, 300)}. Repair or uninstall that package."
        ) from error


def _check(group: str, found: ModuleType) -> None:
    """Raise an error unless a module of another package has what each of its group must have."""
    needed = ("load",) if group == "dataset" else ("build", "CODE_VERSION")
    missing = [name for name in needed if not hasattr(found, name)]
    if missing or not is_dataclass(found.Config):
        raise TypeError(f"it has no {missing[0] if missing else 'dataclass Config'}")


def kinds(group: str) -> list[str]:
    """Return every kind of a group, the project's own and those of other packages, sorted."""
    own = [
        kind for kind, name in _own_modules(group).items() if hasattr(import_module(name), "Config")
    ]
    return sorted({*own, *(entry.name for entry in entry_points(group=f"ssvm_bench.{group}s"))})


def is_own(group: str, kind: str) -> bool:
    """Tell whether a kind is the project's own, not that of another package."""
    return kind in _own_modules(group)


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
