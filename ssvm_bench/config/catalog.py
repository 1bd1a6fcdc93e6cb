"""Which datasets, oracles, solvers, budgets and experiments there are: one YAML file each.

The project's own files lie in ``configs/`` and ``experiments/`` beside the package in a checkout,
and inside the package in a wheel. A folder given with ``--config-dir`` adds to them:
``DIR/solver/mine.yaml`` is chosen by ``solver=mine``, ``DIR/experiments/mine.yaml`` is an
experiment. The first comment line of a file is its description.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ssvm_bench.base.errors import ConfigError, shown

COMPONENTS = ("dataset", "oracle", "solver")
"""Config groups whose choice is an implementation, named by its ``kind``."""

GROUPS = (*COMPONENTS, "budget")
"""All config groups."""

_HEAD = 4_000  # characters in which a file's description is looked for

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(folder: str) -> Path:
    """Return the project's own ``configs`` or ``experiments`` folder.

    A wheel carries it inside the package under a leading underscore; a checkout never does.
    """
    bundled = _PACKAGE / f"_{folder}"
    return bundled if bundled.is_dir() else _PACKAGE.parent / folder


def entries(kind: str, config_dirs: Iterable[Path] = ()) -> dict[str, Path]:
    """Return name → YAML file of a config group, or of ``"experiments"``, sorted by name.

    What is no regular file, as a pipe, is left out.

    Raises
    ------
    ConfigError
        If two files claim the same name: which one is meant would depend on the search order.
    """
    if kind == "experiments":
        folders = [shipped("experiments")]
    else:
        folders = [shipped("configs") / kind]
    folders += [Path(folder) / kind for folder in config_dirs]
    found: dict[str, Path] = {}
    for file in (file for folder in folders for file in sorted(folder.glob("*.yaml"))):
        if not file.is_file():
            continue
        if found.setdefault(file.stem, file) != file:
            raise ConfigError(f"{file} has the name of {found[file.stem]}. Rename one of them.")
    return dict(sorted(found.items()))


def description(file: Path) -> str:
    """Return the first comment line of a YAML file without its ``#``; empty if there is none."""
    with file.open(encoding="utf-8", errors="replace") as content:
        first = next((line for line in content.read(_HEAD).splitlines() if line.strip()), "")
    return shown(first.lstrip("#").strip(), 200) if first.startswith("#") else ""


def check_folders(config_dirs: Sequence[Path]) -> list[Path]:
    """Return the absolute paths of the user's config folders.

    Raises
    ------
    ConfigError
        If one of them is not a folder, or its name cannot be given to Hydra.
    """
    for folder in config_dirs:
        if not Path(folder).is_dir():
            raise ConfigError(f"--config-dir {shown(folder, 200)}: there is no such folder.")
    folders = list(dict.fromkeys(Path(folder).resolve() for folder in config_dirs))
    for folder in folders:
        if "${" in str(folder) or not str(folder).isprintable():  # Hydra would interpolate it
            raise ConfigError(f"--config-dir {shown(folder, 200)}: give it another name.")
    return folders
