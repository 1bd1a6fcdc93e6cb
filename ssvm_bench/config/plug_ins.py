"""Components in files of ``--config-dir DIR``: ``DIR/solver/mine.py`` beside its ``mine.yaml``.

A paper is a folder ``DIR/paper/mine`` with a module ``paper.py``.

The folders are those of the process, as installed packages are: whoever composes runs names them,
and workers get theirs from who starts them. A module is imported under a name of its own, by which
its classes can be sent to a worker; nothing is put on ``sys.path``.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

PAPER = "paper"
"""The group of papers, and the module of each."""

_PREFIX = "ssvm_bench_plug_in"
_folders: list[Path] = []


def use(folders: Iterable[Path]) -> None:
    """Look for components in these folders, too, from now on."""
    _folders.extend(folder for folder in map(Path, folders) if folder not in _folders)


def folders() -> tuple[Path, ...]:
    """Return the folders in use."""
    return tuple(_folders)


def file_of(group: str, kind: str) -> Path | None:
    """Return the file of a component, if there is one."""
    if not kind.isidentifier():
        return None
    name = f"{kind}/{PAPER}.py" if group == PAPER else f"{kind}.py"
    files = (folder / group / name for folder in _folders)
    return next((file for file in files if file.is_file()), None)


def kinds(group: str) -> list[str]:
    """Return the kinds of a group that are in files."""
    if group == PAPER:
        files = (sorted(folder.glob(f"{PAPER}/*/{PAPER}.py")) for folder in _folders)
        return [file.parent.name for found in files for file in found]
    return [file.stem for folder in _folders for file in sorted((folder / group).glob("*.py"))]


def module(group: str, kind: str) -> ModuleType:
    """Import the module of a component that is in a file, or the module of a paper."""
    name = f"{_PREFIX}_{group}_{kind}"
    return importlib.import_module(f"{name}.{PAPER}" if group == PAPER else name)


def version(module: ModuleType) -> str:
    """Return what stands for the ``CODE_VERSION`` of a module without one: a digest of its file."""
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()[:12]


class _Finder(MetaPathFinder):
    """Finds modules by the names that `module` gives them, in whatever process."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is."""
        prefix, _, rest = fullname.partition(f"{_PREFIX}_")
        group, _, kind = rest.partition("_")
        if prefix or (file := file_of(group, kind)) is None:
            return None
        if group == PAPER:
            spec = ModuleSpec(fullname, None, is_package=True)
            spec.submodule_search_locations = [str(file.parent)]
            return spec
        return spec_from_file_location(fullname, file)


sys.meta_path.append(_Finder())
