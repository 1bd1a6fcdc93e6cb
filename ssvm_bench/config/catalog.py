"""The available datasets, oracles, solvers, budgets and experiments: one YAML file each.

The project's own files are in ``configs/`` and ``experiments/`` beside the package in a checkout,
and inside the package in a wheel. A folder given with ``--config-dir`` adds to them:
``DIR/solver/mine.yaml`` is chosen by ``solver=mine``, ``DIR/experiments/mine.yaml`` is an
experiment. So does an installed package with an entry point for a module ``….solver.mine``: the
YAML files beside this module are choices. The first comment line of a file is its description.

The file of a component sets the options that differ from the defaults in its ``Config``. It may set
its ``kind`` (without: the name of the file), begin with another file of its folder, and bring its
own budget where 50 iterations are not enough. The file of a dataset names its default oracle:

.. code-block:: yaml

    defaults: [other]
    kind: mine
    oracle: viterbi
    T: 5
    budget: {max_iterations: 20000}

The solver's budget overrides the dataset's, and a chosen budget replaces both.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ssvm_bench.base.errors import ConfigError, nearest, shown

logger = logging.getLogger(__name__)

COMPONENTS = ("dataset", "oracle", "solver")
"""Config groups whose choice is an implementation, named by its ``kind``."""

GROUPS = (*COMPONENTS, "budget")
"""All config groups."""

DEFAULTS = {"dataset": "ocr", "oracle": "viterbi", "solver": "mpbcfw", "budget": "default"}
"""The default choice of each group."""

_ORACLE = "override /oracle@_global_.oracle"
"""How a dataset's file named its oracle in version 1.0, among its ``defaults``."""

_HEAD = 4_000  # characters that are searched for a file's description

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped(folder: str) -> Path:
    """Return the project's own folder ``configs``, ``experiments``, ``examples`` or ``docs``.

    A wheel carries it inside the package under a leading underscore; a checkout never does.
    """
    bundled = _PACKAGE / f"_{folder}"
    return bundled if bundled.is_dir() else _PACKAGE.parent / folder


def entries(kind: str, config_dirs: Iterable[Path] = ()) -> dict[str, Path]:
    """Return name → YAML file of a config group, or of ``"experiments"``, sorted by name.

    Only regular files count, no pipes.

    Raises
    ------
    ConfigError
        If two files have the same name: the search order would decide between them.
    """
    own = shipped("experiments") if kind == "experiments" else shipped("configs") / kind
    folders = [own, *(Path(folder) / kind for folder in config_dirs)]
    known = {folder.resolve() for folder in folders}
    folders += [folder for folder in _installed(kind, tuple(sys.path)) if folder not in known]
    found: dict[str, Path] = {}
    for file in (file for folder in folders for file in sorted(folder.glob("*.yaml"))):
        if file.is_file() and found.setdefault(file.stem, file) != file:
            raise ConfigError(f"{file} has the name of {found[file.stem]}. Rename one of them.")
    return dict(sorted(found.items()))


@functools.cache
def _installed(group: str, _: tuple[str, ...]) -> list[Path]:
    """Return the folders of a group in installed packages, without importing these.

    They depend on ``sys.path``.
    """
    from importlib.metadata import entry_points  # slow to import, and --help does without

    found = {}
    for entry in entry_points(group=f"ssvm_bench.{group}s") if group in COMPONENTS else ():
        top, *below = entry.module.split(".")
        spec = find_spec(top)
        for place in (spec and spec.submodule_search_locations) or ():
            folder = Path(place, *below).parent.resolve()
            if folder.name == group and folder.is_dir():
                found[folder] = True
    return [*found]


class Choice(NamedTuple):
    """The content of a choice's file.

    Attributes
    ----------
    options : dict
        Option → value; ``name`` and ``kind`` as well if it is a component.
    oracle : str or None
        The default oracle, if it is a dataset.
    budget : dict
        Options of the budget that a component brings.
    """

    options: dict[str, Any]
    oracle: str | None
    budget: Mapping[str, Any] = {}


def read(group: str, name: str, files: Mapping[str, Path]) -> Choice:
    """Return the content of a choice's file; ``files`` are the `entries` of its group.

    Raises
    ------
    ConfigError
        If a file cannot be read, or does not follow the module's docstring.
    """
    found = _read(name, files, ())
    logger.debug("%s=%s is in %s", group, name, files[name])
    if group not in COMPONENTS:
        return Choice({key: val for key, val in found.items() if key != "kind"}, None)
    options = {"name": name, **found}
    budget = options.pop("budget", {})
    if not isinstance(budget, dict):
        raise ConfigError(f"The budget of {group}={name} must be a mapping of options to values.")
    for key in ("name", "kind"):
        if not _is_word(options[key]):
            raise ConfigError(f"The config file of {group}={name} sets no {key}.")
    if options["name"] != name:
        raise ConfigError(f"{group}/{name}.yaml calls itself name: {options['name']}.")
    oracle = options.pop("oracle", None) if group == "dataset" else None
    if oracle is not None and not _is_word(oracle):
        raise ConfigError(f"The config file of dataset={name}: oracle must be a name.")
    return Choice(options, oracle, budget)


def _read(name: str, files: Mapping[str, Path], above: tuple[str, ...]) -> dict[str, Any]:
    """Return the options in a file, merged with those of the file it begins with."""
    file = files[name]
    content = {} if (found := read_yaml(file)) is None else found
    listed = content.pop("defaults", []) if isinstance(content, dict) else None
    listed = listed if isinstance(listed, list) else [None]
    oracles = [each[_ORACLE] for each in listed if isinstance(each, dict) and [*each] == [_ORACLE]]
    others = [each for each in listed if _is_word(each) and each != "_self_"]
    if len(listed) - listed.count("_self_") > len(oracles) + len(others) or not (
        len(others) <= 1 and all(map(_is_word, oracles))
    ):
        raise ConfigError(
            f"{file} must be a mapping of options to values. Its defaults can be one other "
            "file of its folder; a dataset names its oracle by `oracle: NAME`."
        )
    for oracle in oracles:
        content.setdefault("oracle", oracle)
    if not others:
        return {"kind": name, **content}
    (other,) = others
    if other in (*above, name):
        raise ConfigError(f"{file} begins with {other}, which begins with it.")
    if other not in files:
        raise ConfigError(f"{file} begins with {other!r}. {nearest(other, files)}")
    first = _read(other, files, (*above, name))
    inherited = {key: value for key, value in first.items() if key != "name"}
    mine_first = "_self_" in listed and listed.index("_self_") < listed.index(other)
    return {**content, **inherited} if mine_first else {**inherited, **content}


def _is_word(text: Any) -> bool:
    return isinstance(text, str) and bool(re.fullmatch(r"\w[\w.+-]{0,99}", text))


def description(file: Path) -> str:
    """Return the first comment line of a YAML file without its ``#``; empty if there is none."""
    with file.open(encoding="utf-8", errors="replace") as content:
        first = next((line for line in content.read(_HEAD).splitlines() if line.strip()), "")
    return shown(first.lstrip("#").strip(), 200) if first.startswith("#") else ""


def check_folders(config_dirs: Iterable[str | Path]) -> list[Path]:
    """Return the absolute paths of the user's config folders.

    Raises
    ------
    ConfigError
        If one of them is not a folder, or its name cannot be given to Hydra.
    """
    folders = {}
    for given in config_dirs:
        folder = Path(os.path.realpath(given))  # resolve() raises at circular links
        if not folder.is_dir():
            raise ConfigError(f"--config-dir {shown(given, 200)}: there is no such folder.")
        if "${" in str(folder) or not str(folder).isprintable():  # Hydra would interpolate it
            raise ConfigError(f"--config-dir {shown(folder, 200)}: give it another name.")
        folders[folder] = True
    return [*folders]


# ---- YAML ------------------------------------------------------------------------------------

LARGEST = 50_000
"""The largest number of bytes of a file."""

DEEPEST = 8
"""The largest number of nested levels."""

_LONGEST_INTEGER = 80  # characters: enough for 64 bits in binary notation

_TEXT = "tag:yaml.org,2002:str"


def read_yaml(file: Path) -> Any:
    """Return the content of a YAML file: plain values, lists, and mappings with text as keys.

    Reading takes little time and memory whatever the file has: size and nesting are bounded, and
    aliases and tags, by which YAML could expand or build objects, are refused. So are repeated keys
    and interpolations, which could insert variables of the environment.

    Raises
    ------
    ConfigError
        If it cannot be read, is too large, or holds something else.
    """
    if not file.is_file():  # a pipe would never end
        raise ConfigError(f"{shown(file, 200)} is no regular file.")
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ConfigError(f"{file} is too large: a YAML file has at most {LARGEST} bytes.")
        return yaml.load(content.decode(), _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"Cannot read {file}: {line}{error.problem}.") from error
    except (OSError, ValueError, yaml.YAMLError) as error:  # such as bytes that are no text
        raise ConfigError(f"Cannot read {file}: {error}.") from error


class _Loader(yaml.SafeLoader):
    """Reads plain values only."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Check the next event before its node is built."""
        event: Any = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _refused("anchors and aliases (&, *) are not accepted", event)
        if event.tag is not None:
            raise _refused("tags (!) are not accepted", event)
        if isinstance(event, yaml.ScalarEvent) and "${" in event.value:
            raise _refused("interpolations, ${…}, are not accepted", event)
        if self.depth == DEEPEST:
            raise _refused(f"nested deeper than {DEEPEST} levels", event)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check the keys of a mapping; PyYAML's merge keys are refused as well."""
        seen = set()
        for key, _ in node.value:
            if key.tag != _TEXT:
                raise _refused("a key has to be text", key)
            if key.value in seen:
                raise _refused(f"the key {shown(key.value)} stands twice", key)
            seen.add(key.value)


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    """Return an integer; refuse thousands of digits before they are converted."""
    if len(node.value) > _LONGEST_INTEGER:
        raise _refused("an integer has at most 64 bits", node)
    return yaml.SafeLoader.construct_yaml_int(loader, node)


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_implicit_resolver(  # 1e-3 is a number, as in YAML 1.2
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+$", re.ASCII), list("-+0123456789")
)


def _refused(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)
