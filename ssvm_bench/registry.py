"""From the kind in a YAML file to the module that implements it.

``kind: chain`` of the group ``oracle`` is the module ``ssvm_bench/oracles/chain.py``, or that of
another package which declares the entry point ``chain`` in the group ``ssvm_bench.oracles``.
Every such module has a ``Config`` and a ``load`` (datasets) or ``build`` (oracles, solvers).
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from ssvm_bench.errors import ConfigError, RunFailedError, nearest

GROUPS = ("dataset", "oracle", "solver")


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
    if kind in _own_modules(group):
        found = import_module(f"ssvm_bench.{group}s.{kind}")
        if hasattr(found, "Config"):
            return found
    for entry in entry_points(group=f"ssvm_bench.{group}s", name=kind):
        try:
            return entry.load()
        except Exception as error:  # whatever somebody else's module does when it is imported
            raise RunFailedError(
                f"The {group} kind {kind!r} is declared as {entry.value!r} by an installed "
                f"package, but importing it failed: {type(error).__name__}: {error}. "
                "Repair or uninstall that package."
            ) from error
    raise ConfigError(f"Unknown {group} kind {kind!r}. {nearest(kind, kinds(group))}")


def kinds(group: str) -> list[str]:
    """Return every kind of a group, the project's own and those of other packages, sorted."""
    own = [
        name
        for name in _own_modules(group)
        if hasattr(import_module(f"ssvm_bench.{group}s.{name}"), "Config")
    ]
    return sorted({*own, *(entry.name for entry in entry_points(group=f"ssvm_bench.{group}s"))})


def _own_modules(group: str) -> list[str]:
    package = import_module(f"ssvm_bench.{group}s")
    return [info.name for info in pkgutil.iter_modules(package.__path__)]
