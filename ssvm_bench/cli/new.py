"""``ssvm-bench new``: writes a plug-in to start from, a copy of an example with a new name."""

from __future__ import annotations

import keyword
import os
from pathlib import Path

import click

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.cli import PROGRAM, Command, Settings

_RANKING = "ranking/ranking", {"oracle": "ranking", "dataset": "queries"}

EXAMPLES = {"solver": ("bcfw", {"solver": "plain_bcfw"}), "oracle": _RANKING, "dataset": _RANKING}
"""What is copied: a folder below ``examples``, and group → name of the components in it."""


@click.command("new", cls=Command)
@click.argument("kind", type=click.Choice(tuple(EXAMPLES)))
@click.argument("name")
@click.pass_obj
def new_command(settings: Settings, kind: str, name: str) -> None:
    """Write a working solver, oracle or dataset to begin with.

    It goes to the folder NAME. One folder may have a solver, an oracle and a dataset of that name.

    The solver is block-coordinate Frank–Wolfe. The oracle ranks documents, and comes with a dataset
    of queries. The dataset is that one, and comes with the oracle.

    .. code-block:: console

        ssvm-bench new solver mine
        ssvm-bench check solver mine --config-dir mine
        ssvm-bench run solver=mine dataset=usps --config-dir mine
    """
    for path in write(kind, name, Path(), settings.config_dirs()):
        click.echo(f"file: {path}")
    at, on = f"--config-dir {name}", " dataset=queries" * (kind == "oracle")
    click.echo(f"\nNext:\n  {PROGRAM} check {kind} {name}{on} {at}")
    data = {"solver": f"solver={name} dataset=usps", "dataset": f"dataset={name}"}
    click.echo(f"  {PROGRAM} run {data.get(kind, f'dataset=queries oracle={name}')} {at}")


def write(kind: str, name: str, where: Path, config_dirs: list[Path]) -> list[Path]:
    """Write the files of a new component; return their paths.

    Raises
    ------
    ConfigError
        If the name cannot be that of a module, or is taken; or if the folder exists and is not that
        of a plug-in without these files.
    RunFailedError
        If the folder cannot be written; nothing is left of it then.
    """
    from ssvm_bench.config import catalog

    if not (name.isascii() and name.isidentifier()) or keyword.iskeyword(name):
        raise ConfigError(
            f"{shown(repr(name))} cannot be the name of a Python module. Use letters, digits and _."
        )
    (place, components), folder = EXAMPLES[kind], where / name
    renamed = {group: name if group == kind else old for group, old in components.items()}
    for group, new in renamed.items():
        if new in catalog.entries(group, config_dirs):
            raise ConfigError(f"There is a {group} of the name {new}. Choose another name.")
    source, contents = catalog.shipped("examples") / place, dict[Path, bytes]()
    for group, old in components.items():
        for file in sorted((source / group).glob(f"{old}.*")):
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".yaml":  # a dataset names its oracle
                its, new = (f"\noracle: {of.get('oracle')}\n" for of in (components, renamed))
                text = text.replace(its, new)
            contents[folder / group / f"{renamed[group]}{file.suffix}"] = text.encode()
    is_plug_in = any((folder / group).is_dir() for group in EXAMPLES)  # it may have all groups
    for path in (*contents, *[folder] * (not is_plug_in)):
        if os.path.lexists(path):
            raise ConfigError(f"{path} is there already. Remove it, or choose another name.")
    try:
        if is_plug_in:
            files.write_together(contents, folder)
        else:
            with files.temporary_folder(folder) as temporary:
                for path, content in contents.items():
                    files.write(temporary / path.relative_to(folder), content)
                temporary.rename(folder)
    except OSError as error:
        raise RunFailedError(
            f"Cannot write {folder}: {error.strerror or error}. Choose another folder to work in."
        ) from error
    return [*contents]
