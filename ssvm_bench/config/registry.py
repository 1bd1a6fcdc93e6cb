"""From the kind in a YAML file to the module that implements it.

``kind: viterbi`` of the group ``oracle`` is the module ``viterbi.py`` in ``ssvm_bench/oracles``, or
in a folder of it, or that of another package which declares the entry point ``viterbi`` in the
group ``ssvm_bench.oracles``. Every such module has a ``Config`` and a ``load`` (datasets) or
``build`` (oracles, solvers).
"""

from __future__ import annotations

import functools
import pkgutil
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from ssvm_bench.errors import ConfigError, RunFailedError, nearest

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
        try:
            return entry.load()
        except BaseException as error:  # whatever somebody else's module does on import
            raise RunFailedError(
                f"The {group} kind {kind!r} is declared as {entry.value!r} by an installed "
                f"package, but importing it failed: {type(error).__name__}: {error}. "
                "Repair or uninstall that package."
            ) from error
    raise ConfigError(f"Unknown {group} kind {kind!r}. {nearest(kind, kinds(group))}")


def kinds(group: str) -> list[str]:
    """Return every kind of a group, the project's own and those of other packages, sorted."""
    own = [
        kind for kind, name in _own_modules(group).items() if hasattr(import_module(name), "Config")
    ]
    return sorted({*own, *(entry.name for entry in entry_points(group=f"ssvm_bench.{group}s"))})


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
