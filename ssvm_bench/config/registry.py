"""From the kind in a YAML file to the module that implements it.

``kind: viterbi`` of the group ``oracle`` is implemented by a module ``viterbi.py``. It is in
``ssvm_bench/oracles`` or a folder of it, in ``ssvm_bench/papers/NAME/oracles``, or in
``DIR/oracle`` of a folder given with ``--config-dir DIR``; or another package declares it as the
entry point ``viterbi`` of the group ``ssvm_bench.oracles``. Every such module has a ``Config`` and
a ``load`` (datasets) or ``build`` (oracles, solvers). A module may have several kinds, whose names
begin with its own, as ``ssl.py`` has ``ssl_bci``: its ``KINDS`` maps each kind to an object with
these attributes. A paper is a folder, ``DIR/paper/mine``, with a module ``paper.py``.

The folders of ``--config-dir`` belong to the process, as installed packages do. Whoever composes
runs adds them (`use`); workers get them from the process that starts them. They are the path of a
package, ``ssvm_bench_plug_in``, so that ``DIR/solver/mine.py`` is
``ssvm_bench_plug_in.solver.mine`` in every process. ``sys.path`` does not change.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from ssvm_bench.base.errors import (
    ConfigError,
    RunFailedError,
    SsvmBenchError,
    nearest,
    place_of,
    shown,
)
from ssvm_bench.config import validation
from ssvm_bench.config.catalog import COMPONENTS

PAPERS = Path(__file__).parents[1] / "papers"
"""Has one folder per paper; some of them have components."""

_PAPER = "paper"
"""The group of papers, and the module of each."""

_PLUG_INS = ModuleType("ssvm_bench_plug_in", "What lies in folders of ``--config-dir``.")
_PLUG_INS.__path__ = []
sys.modules[_PLUG_INS.__name__] = _PLUG_INS


# ---- folders of --config-dir -----------------------------------------------------------------


def use(folders: Iterable[Path]) -> None:
    """Search these folders for components, too, from now on."""
    if not (folders := [*folders]):
        return
    _PLUG_INS.__path__ += [name for name in map(str, folders) if name not in _PLUG_INS.__path__]
    importlib.invalidate_caches()  # files may have been written a moment ago


def folders() -> tuple[Path, ...]:
    """Return the folders in use."""
    return tuple(map(Path, _PLUG_INS.__path__))


def folder_beside(file: str) -> str:
    """Return the option that names the folder of a plug-in's file that lies here; else empty.

    ``file`` is as ``solver/mine.py``. It is searched for in the working folder, and in the folders
    below it and below these. A name with other characters, as ``../mine`` or ``*``, is none.
    """
    if not re.fullmatch(r"\w+/[\w-]+\.\w+", file):
        return ""
    with suppress(OSError, ValueError):
        for pattern in (file, f"*/{file}", f"*/*/{file}"):
            for found in sorted(Path().glob(pattern)):
                return f"--config-dir {shown(found.parents[1])}"
    return ""


def forget() -> None:
    """Use no folders any more; what is in them will be imported again."""
    _PLUG_INS.__path__ = []
    for name in _imported_names():
        del sys.modules[name]


def digests() -> dict[str, str]:
    """Return the digest of the file of each imported module of others that has a component."""
    groups = (entry_points(group=f"ssvm_bench.{group}s") for group in COMPONENTS)
    names = {entry.module for group in groups for entry in group}
    found = {}
    for name in [*(names & sys.modules.keys()), *_imported_names()]:
        with suppress(OSError, TypeError):  # packages of folders have no file
            found[name] = _digest(sys.modules[name])
    return found


def _imported_names() -> list[str]:
    """Return the names of the modules that were imported from folders."""
    return [name for name in sys.modules if name.startswith(f"{_PLUG_INS.__name__}.")]


def _files(group: str) -> dict[str, Path]:
    """Return kind → file in the folders in use, of the components of a group or of papers."""
    pattern = f"*/{_PAPER}.py" if group == _PAPER else "*.py"
    found: dict[str, Path] = {}
    for folder in (folder / group for folder in folders()):
        for file in sorted(folder.glob(pattern)):
            found.setdefault(file.relative_to(folder).parts[0].removesuffix(".py"), file)
    return {kind: file for kind, file in found.items() if kind.isidentifier()}


def _imported(group: str, kind: str) -> Any:
    """Import the module of a component or a paper from the folders in use."""
    below = f".{_PAPER}" if group == _PAPER else ""
    return import_module(f"{_PLUG_INS.__name__}.{group}.{kind}{below}")


# ---- components ------------------------------------------------------------------------------


def module(group: str, kind: str) -> Any:
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
    file, found = _files(group).get(kind), _own(group, kind)
    if found:
        if file is not None:
            raise ConfigError(f"{file} has the kind of a {group} of ours. Rename it.")
        return found
    entries = tuple(entry_points(group=f"ssvm_bench.{group}s", name=kind))
    if file is None and not entries:
        if beside := folder_beside(f"{group}/{kind}.py"):
            raise ConfigError(
                f"The {group} {kind!r} is a plug-in that lies here: add {beside} to the call."
            )
        where, how = f": no folder of --config-dir has {group}/{kind}.py", ""
        if not folders():
            where, how = "", " If it is a plug-in, give the folder it lies in with --config-dir."
        known = nearest(kind, kinds(group))
        raise ConfigError(f"Unknown {group} kind {kind!r}{where}. {known}{how}")
    with blamed(group, kind):
        found = entries[0].load() if file is None else _imported(group, kind)
        if lacks := _lacks(group, found):
            raise TypeError(f"it has no {' and no '.join(lacks)}")
        return found


def _lacks(group: str, found: Any) -> list[str]:
    """Return what a component from elsewhere lacks."""
    function = "load" if group == "dataset" else "build"
    lacks = [] if callable(getattr(found, function, None)) else [f"function {function}"]
    cls: Any = getattr(found, "Config", None)
    if not is_dataclass(cls):
        lacks.append(f"dataclass Config, derived from {group.title()}Config")
    elif "__dataclass_fields__" not in vars(cls) and vars(cls).get("__annotations__"):
        lacks.append("@dataclass(frozen=True) above its Config, whose options would be passed over")
    elif not {"name", "kind"} <= {each.name for each in fields(cls)}:
        lacks.append(f"name and kind in its Config, as one derived from {group.title()}Config has")
    elif group != "dataset" and getattr(cls, "section", "") != group:  # runs ask it for facts
        lacks.append(f"Config that is derived from {group.title()}Config")
    return lacks


def config(group: str, values: Mapping[str, Any]) -> Any:
    """Return the ``Config`` of a component with the values of its section.

    Raises
    ------
    ConfigError
        A value is wrong.
    RunFailedError
        The component belongs to another package and fails.
    """
    kind = values["kind"]
    with blamed(group, kind):
        return validation.convert(module(group, kind).Config, values, group)


def options(group: str, kind: str) -> list[str]:
    """Return the names of the options of a component; raises as `config`."""
    with blamed(group, kind):
        return [*validation.hints(module(group, kind).Config)]


def defaults(group: str, kind: str) -> dict[str, Any]:
    """Return option → default of a component; raises as `config`."""
    return validation.defaults(module(group, kind).Config)


@contextmanager
def blamed(group: str, kind: str) -> Iterator[None]:
    """Raise ``RunFailedError`` that names the component if code of another package fails."""
    try:
        yield
    except SsvmBenchError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        if group in COMPONENTS and is_own(group, kind):
            raise
        file, place = _files(group).get(kind), place_of(error)
        text = f"{type(error).__name__}: {shown(error, 300)}"
        if file is None:
            whose, what = "is that of another installed package", "Repair or uninstall that package"
            text += f" ({place})" if place else ""
        else:
            whose, what = f"is in {place or file}", "Repair it"
        raise RunFailedError(
            f"The {group} kind {kind!r} {whose}, which failed: {text}. {what}."
        ) from error


def code_version(group: str, kind: str) -> int | str:
    """Return the ``CODE_VERSION`` of a component, or a digest of its file."""
    found = module(group, kind)
    return getattr(found, "CODE_VERSION", None) or _digest(found)


def source_of(group: str, kind: str) -> tuple[str, str]:
    """Return the file of a component of others, without the folder it lies in, and its digest.

    That of a folder is ``solver/mine.py``, that of a package ``package/solver/mine.py``.
    """
    found = module(group, kind)
    name = found.__name__.removeprefix(f"{_PLUG_INS.__name__}.")
    return f"{name.replace('.', '/')}.py", _digest(found)


def _digest(module: Any) -> str:
    return hashlib.sha256(Path(module.__file__).read_bytes()).hexdigest()[:12]


def kinds(group: str) -> list[str]:
    """Return every kind of a group, the project's own and those of other packages, sorted."""
    own: list[str] = []
    for kind, name in _own_modules(group).items():
        found = import_module(name)
        own += [kind] if hasattr(found, "Config") else getattr(found, "KINDS", ())
    installed = (entry.name for entry in entry_points(group=f"ssvm_bench.{group}s"))
    return sorted({*own, *_files(group), *installed})


def has_foreign(group: str, kind: str) -> bool:
    """Return whether a package, or a folder in use, has a module of this kind."""
    return kind in _files(group) or bool(entry_points(group=f"ssvm_bench.{group}s", name=kind))


def is_own(group: str, kind: str) -> bool:
    """Return whether a kind is the project's own, not that of another package."""
    return kind in _own_modules(group) or _own(group, kind) is not None


def _own(group: str, kind: str) -> Any:
    """Return the implementation of one of the project's kinds; None if there is no such kind."""
    names = _own_modules(group)
    if kind in names:
        found = import_module(names[kind])
        return found if hasattr(found, "Config") else None
    several = names.get(kind.partition("_")[0])
    return getattr(import_module(several), "KINDS", {}).get(kind) if several else None


@functools.cache
def _own_modules(group: str) -> dict[str, str]:
    """Return kind → dotted name of all modules that may implement one."""
    root, folder = PAPERS.parents[1], f"{group}s"
    places = PAPERS.parent / folder, *(PAPERS / paper / folder for paper in own_papers())
    files = (file for place in places for file in sorted(place.rglob("[!_]*.py")))
    return {file.stem: ".".join(file.relative_to(root).with_suffix("").parts) for file in files}


def papers() -> dict[str, Any]:
    """Return name → `ssvm_bench.claims.paper.Paper`, the project's own and those of others.

    They are the folders in ``ssvm_bench/papers``, those in ``DIR/paper`` of a folder given with
    ``--config-dir DIR``, and the modules with a ``PAPER`` that packages declare as entry points of
    the group ``ssvm_bench.papers``.

    Raises
    ------
    ConfigError, RunFailedError
        A paper of others has a mistake, or fails; not within `readable_papers`.
    """
    known = _READABLE.get()
    return dict(_papers(folders()) if known is None else known)


_READABLE: ContextVar[dict[str, Any] | None] = ContextVar("readable", default=None)
"""What `papers` returns within `readable_papers`."""


@contextmanager
def readable_papers() -> Iterator[list[SsvmBenchError]]:
    """Let `papers` leave out papers that cannot be read; yield why they cannot."""
    found, unreadable = _read_papers()
    token = _READABLE.set(found)
    try:
        yield unreadable
    finally:
        _READABLE.reset(token)


@functools.cache
def _papers(folders: tuple[Path, ...]) -> dict[str, Any]:
    found, unreadable = _read_papers()
    if unreadable:
        raise unreadable[0]
    return found


def _read_papers() -> tuple[dict[str, Any], list[SsvmBenchError]]:
    """Return the papers by name, and an error for each one of others that cannot be read."""
    found = [import_module(f"ssvm_bench.papers.{name}.paper").PAPER for name in own_papers()]
    found.sort(key=lambda paper: paper.order)
    unreadable: list[SsvmBenchError] = []
    others: list[tuple[str, Callable[[], Any]]] = [
        (name, functools.partial(_imported, _PAPER, name)) for name in _files(_PAPER)
    ]
    others += [(entry.name, entry.load) for entry in entry_points(group="ssvm_bench.papers")]
    for name, imported in others:
        try:
            with blamed(_PAPER, name):
                found.append(_paper_of(imported()))
        except SsvmBenchError as error:
            unreadable.append(error)
    if len(names := {paper.name: paper for paper in found}) < len(found):
        raise ConfigError("Two papers have the same name. Rename the folder of one.")
    return names, unreadable


def _paper_of(module: ModuleType) -> Any:
    """Return the ``PAPER`` of a module of others."""
    paper: Any = getattr(module, "PAPER", None)
    said = {each.name for each in fields(paper)} if is_dataclass(paper) else set()
    if isinstance(paper, type) or not {"folder", "title", "measures"} <= said:
        raise TypeError(f"its PAPER has to be a Paper, but is {shown(paper)}")
    return paper


@functools.cache
def own_papers() -> tuple[str, ...]:
    """Return the names of the folders of papers, sorted."""
    return tuple(sorted(file.parent.name for file in PAPERS.glob("*/paper.py")))
