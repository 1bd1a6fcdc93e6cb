"""``ssvm-bench new``: writes a plug-in to start from, a copy of an example with a new name.

With ``--package``, the plug-in is in a package that can be installed, tested and published.
"""

from __future__ import annotations

import keyword
import os
from collections.abc import Iterator
from pathlib import Path

import click

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.cli import PROGRAM, Command, Settings

_RANKING = "ranking/ranking", {"oracle": "ranking", "dataset": "queries"}

EXAMPLES = {"solver": ("bcfw", {"solver": "plain_bcfw"}), "oracle": _RANKING, "dataset": _RANKING}
"""What is copied: a folder below ``examples``, and group → name of the components in it."""


PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"

[project]
name = "ssvm-bench-{dashed}"
version = "0.1.0"
description = "{what} for ssvm-bench"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["ssvm-bench"]

[project.optional-dependencies]
test = ["pytest>=8.0"]

{entries}
[tool.hatch.build.targets.wheel]
packages = ["{name}"]
"""

ENTRY = """\
[project.entry-points."ssvm_bench.{group}s"]
{new} = "{name}.{group}.{new}"
"""

README = """\
# {what} for ssvm-bench

```sh
pip install -e '.[test]'
ssvm-bench check {kind} {name}{on}
ssvm-bench run {run}
pytest
```

Modules are in `{name}/`, each beside a YAML file that says what it is and sets its options.
Entry points in `pyproject.toml` tell ssvm-bench where they are.
"""

TEST = '''\
"""{what} keeps the contract of ssvm-bench, on small instances."""

import subprocess
import sys


def test_the_contract_is_kept():
    command = [sys.executable, "-m", "ssvm_bench", "check", "{kind}", "{name}"{on}]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
'''

WORKFLOW = """\
name: tests
on: [push, pull_request]
permissions: {contents: read}
jobs:
  tests:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python: ["3.11", "3.14"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "${{ matrix.python }}", cache: pip}
      - run: pip install -e '.[test]'
      - run: pytest
"""


@click.command("new", cls=Command)
@click.argument("kind", type=click.Choice(tuple(EXAMPLES)))
@click.argument("name")
@click.option(
    "--package",
    is_flag=True,
    help="Also write what makes a package of it: pyproject.toml, a test, a workflow that runs it.",
)
@click.pass_obj
def new_command(settings: Settings, kind: str, name: str, package: bool) -> None:
    """Write a working solver, oracle or dataset to begin with.

    It goes to the folder NAME. One folder may have a solver, an oracle and a dataset of that name.

    The solver is block-coordinate Frank–Wolfe. The oracle ranks documents, and comes with a dataset
    of queries. The dataset is that one, and comes with the oracle.

    .. code-block:: console

        ssvm-bench new solver mine
        ssvm-bench check solver mine --config-dir mine
        ssvm-bench run solver=mine dataset=optdigits --config-dir mine
        ssvm-bench new oracle matching --package
        pip install -e 'matching[test]' && pytest matching
    """
    for path in write(kind, name, Path(), settings.config_dirs(), package):
        click.echo(f"file: {path}")
    click.echo("\nNext:")
    if package:
        click.echo(f"  pip install -e '{name}[test]'\n  pytest {name}")
    at = "" if package else f" --config-dir {name}"
    check, run = _options(kind, name, _renamed(kind, name, package))
    click.echo(f"  {PROGRAM} check {kind} {name}{check}{at}")
    click.echo(f"  {PROGRAM} run {run}{at}")


def _renamed(kind: str, name: str, package: bool) -> dict[str, str]:
    """Return group → name of the new components; those of a package are like no other's."""
    others = {
        group: f"{name}_{old}" if package else old for group, old in EXAMPLES[kind][1].items()
    }
    return {**others, kind: name}


def _options(kind: str, name: str, components: dict[str, str]) -> tuple[str, str]:
    """Return what ``check`` and ``run`` need to use a new component."""
    if kind == "solver":
        return "", f"solver={name} dataset=optdigits"
    data = f"dataset={components['dataset']}"
    return (f" {data}", f"{data} oracle={name}") if kind == "oracle" else ("", data)


def write(
    kind: str, name: str, where: Path, config_dirs: list[Path], package: bool = False
) -> list[Path]:
    """Write the files of a new component, alone or in a package; return their paths.

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
    within = folder / name if package else folder
    renamed = _renamed(kind, name, package)
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
            contents[within / group / f"{renamed[group]}{file.suffix}"] = text.encode()
    if package:
        contents |= {folder / path: text.encode() for path, text in _around(kind, name, renamed)}
    # a plug-in may have all groups, a package begins as a new folder
    is_plug_in = not package and any((folder / group).is_dir() for group in EXAMPLES)
    for path in contents if is_plug_in else [folder]:
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


def _around(kind: str, name: str, components: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield path and content of each file of a package but the components."""
    entries = "\n".join(
        ENTRY.format(group=group, new=new, name=name) for group, new in components.items()
    )
    words = {"kind": kind, "name": name, "what": f"The {kind} {name}"}
    yield (
        "pyproject.toml",
        PYPROJECT.format(dashed=name.replace("_", "-"), entries=entries, **words),
    )
    check, run = _options(kind, name, components)
    yield f"{name}/__init__.py", f'"""{words["what"]} for ssvm-bench."""\n'
    yield "README.md", README.format(on=check, run=run, **words)
    on = "".join(f', "{word}"' for word in check.split())
    yield f"tests/test_{name}.py", TEST.format(on=on, **words)
    yield ".github/workflows/tests.yml", WORKFLOW
    yield ".gitignore", "__pycache__/\ndist/\nresults/\n"
