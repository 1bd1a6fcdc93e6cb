"""Overrides of the command line into run configs.

Hydra is asked for what it does well: its override grammar (:mod:`ssvm_bench.config.overrides`), and
the composition of the chosen files. Values are set by this module on the composed tree, and typed
by :mod:`ssvm_bench.config.typed`. Thus an option that does not exist is an error however it is
written (Hydra would add it for a ``+``), a message never advises something that this project
does not have, nothing is ever interpolated, and a sweep composes once for each *choice*, not for
each run (composing takes 0.1 s).

First the names of options are checked, then the runs are counted, and only then is there any: a
mistake costs the same however long the sweep is.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import yaml
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ssvm_bench.base.errors import ConfigError, nearest, shown
from ssvm_bench.config import catalog, overrides, plug_ins, registry, typed, yaml_files
from ssvm_bench.config.overrides import Setting
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.config.validation import check_choice

_ORACLE = "override /oracle@_global_.oracle"
_FIXED = {f"{group}.{key}": group for group in catalog.COMPONENTS for key in ("name", "kind")}
"""What a choice says of itself → its group."""

_HINTS = typed.hints(RunConfig)

_UNREADABLE = (
    *(ConfigError, HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError),
    RecursionError,  # files that inherit from one another
)

_TOGETHER = (("dataset", "oracle"), ("solver",), ("budget",))
"""Groups whose files know of each other: a dataset brings its oracle."""

Choices: TypeAlias = tuple[tuple[str, str], ...]
"""Groups and what is chosen of them."""


class _Tree(NamedTuple):
    """What the chosen files say.

    Attributes
    ----------
    values : dict
        Nested plain values.
    paths : dict
        The full name of each option → the keys that lead to it.
    parts : dict
        Sections, and options of none, that have been typed.
    """

    values: dict[str, Any]
    paths: dict[str, tuple[str, ...]]
    parts: dict[str, Any]


def compose_runs(
    words: Iterable[str],
    multirun: bool = False,
    config_dirs: Sequence[Path] = (),
    each: Mapping[str, Sequence[str]] | None = None,
) -> list[RunConfig]:
    """Return the runs that the overrides ask for, in the order of their sweeps.

    Parameters
    ----------
    words : iterable of str
        ``option=value`` or ``group=name``; of several for the same key, the last one counts.
    multirun : bool
        Accept sweeps: ``seed=range(10)``, ``solver=bcfw,mpbcfw``. The last sweep varies fastest.
    config_dirs : sequence of Path
        Further folders of config files, beside the project's own.
    each : mapping, optional
        Dataset → ``option=value`` for the runs on it, which count more than ``words``.

    Returns
    -------
    list of RunConfig
        One for each combination of the swept values; just one without a sweep.

    Raises
    ------
    ConfigError
        If an override cannot be read, names nothing that exists, or has a bad value; or if they
        ask for too many runs.
    """
    return Composer(config_dirs).runs(words, multirun, each)


class Composer:
    """Makes runs of overrides; what one call has composed, the next one finds.

    Parameters
    ----------
    config_dirs : sequence of Path
        Further folders of config files, beside the project's own.
    """

    def __init__(self, config_dirs: Sequence[Path] = ()) -> None:
        self._config_dirs = catalog.check_folders(config_dirs)
        plug_ins.use(self._config_dirs)
        self._names = {g: catalog.entries(g, self._config_dirs) for g in catalog.GROUPS}
        self._composed: dict[Choices, dict[str, Any]] = {}
        self._first: Choices | None = None
        self._trees: dict[Choices, _Tree] = {}
        self._parts: dict[str, Any] = {}

    def runs(
        self,
        words: Iterable[str],
        multirun: bool = False,
        each: Mapping[str, Sequence[str]] | None = None,
    ) -> list[RunConfig]:
        """Return the runs that the overrides ask for, see `compose_runs`."""
        settings: dict[str, Setting] = {}
        for setting in overrides.read(words):
            settings.pop(setting.key, None)
            settings[setting.key] = setting
            if setting.is_sweep and not multirun:
                raise ConfigError(f"{setting.text} asks for several runs. Add -m to make them all.")
        chosen = {key: self._choices(settings[key]) for key in settings if key in self._names}
        own = {dataset: self._options(mine) for dataset, mine in (each or {}).items()}
        first = self._tree(tuple((key, names[0]) for key, names in chosen.items()))
        for key in settings:
            if key not in chosen:
                _check_option(key, first)
        for setting in settings.values():  # after what does not exist has been named as such
            if setting.added:
                plain = setting.text.lstrip("+")
                raise ConfigError(f"{setting.text}: an option cannot be added, only set: {plain}")
        counts = [len(chosen.get(key, ())) or setting.count() for key, setting in settings.items()]
        overrides.check_count(math.prod(counts))
        swept = {key: chosen.get(key) or setting.values() for key, setting in settings.items()}
        return [
            self._run(dict(zip(swept, combination, strict=True)), own)
            for combination in itertools.product(*swept.values())
        ]

    def _choices(self, setting: Setting) -> list[Any]:
        """Return what is chosen of a group."""
        known = self._names[setting.key]
        found = setting.values(tuple(known))
        for name in found:
            check_choice(setting.key, name, known)
        return found

    def _options(self, words: Iterable[str]) -> dict[str, Any]:
        """Return the values of overrides that set options and choose nothing."""
        options = {}
        for setting in overrides.read(words):
            if setting.key in self._names:
                raise ConfigError(f"{setting.text}: only options can differ between datasets.")
            if setting.is_sweep:
                raise ConfigError(f"{setting.text}: what varies belongs into the grid.")
            options[setting.key] = setting.value
        return options

    def _tree(self, choices: Choices) -> _Tree:
        """Return what the files say that are chosen: the first all at once, the others by parts."""
        if choices not in self._trees:
            self._first = choices if self._first is None else self._first
            tree = dict(self._compose(self._first))
            for groups in _TOGETHER:
                mine, its = (
                    tuple(c for c in of if c[0] in groups) for of in (choices, self._first)
                )
                if mine != its:
                    composed = self._compose(mine)
                    tree |= {group: composed[group] for group in groups}
            for key in tree:
                if key not in _HINTS:
                    raise typed.unknown_option(key, _HINTS)
            self._trees[choices] = _Tree(tree, {".".join(path): path for path in _paths(tree)}, {})
        return self._trees[choices]

    def _compose(self, choices: Choices) -> dict[str, Any]:
        """Return the values of the files that Hydra composes."""
        if choices not in self._composed:
            self._composed[choices] = _compose(choices, self._config_dirs)
        return self._composed[choices]

    def _run(self, settings: Mapping[str, Any], own: Mapping[str, dict[str, Any]]) -> RunConfig:
        """Return the run of one value of each setting.

        A dataset may know only by its options which oracle it brings: ``brings`` of its config.
        """
        choices = {key: settings[key] for key in settings if key in self._names}
        options = {key: val for key, val in settings.items() if key not in self._names}
        config = self._config(choices, options, own)
        brought = getattr(config.dataset, "brings", None)
        if "oracle" not in choices and brought not in (None, config.oracle.name):
            check_choice("oracle", brought, self._names["oracle"])
            config = self._config({**choices, "oracle": brought}, options, own)
        return config

    def _config(
        self,
        choices: Mapping[str, str],
        options: Mapping[str, Any],
        own: Mapping[str, dict[str, Any]],
    ) -> RunConfig:
        """Return the run of these files and options."""
        tree = self._tree(tuple(choices.items()))
        values: Any = tree.values
        for option, value in {**options, **own.get(values["dataset"]["name"], {})}.items():
            _check_option(option, tree)
            values = _with(values, tree.paths[option], value)
        return RunConfig(**{name: self._part(tree, name, val) for name, val in values.items()})

    def _part(self, tree: _Tree, name: str, value: Any) -> Any:
        """Return a section, or an option of none, with its type; the runs of a sweep share it."""
        if value is tree.values[name]:
            parts, key = tree.parts, name
        else:
            parts, key = self._parts, f"{name}={value!r}"
        if key not in parts:
            if name in catalog.COMPONENTS:
                parts[key] = registry.config(name, value)
            else:
                parts[key] = typed.convert(_HINTS[name], value, name)
        return parts[key]


class _Checked(FileConfigSource):
    """Files of the user's folders, which are read strictly before Hydra reads them."""

    @staticmethod
    def scheme() -> str:
        """Return what their folders' addresses begin with."""
        return "checked"

    def load_config(self, config_path: str) -> ConfigResult:
        """Check a file, then read it."""
        file = Path(self.path, self._normalize_file_name(config_path))
        content = yaml_files.read(file)
        defaults = content.get("defaults", []) if isinstance(content, dict) else None
        listed = defaults if isinstance(defaults, list) else [None]
        others = [each for each in listed if each != "_self_" and not _is_oracle(each)]
        if len(others) > 1 or not all(map(_is_word, others)):
            raise ConfigError(
                f"{file} must be a mapping of options to values. Its defaults can be one other "
                f"file of its folder, and of a dataset `{_ORACLE}: NAME`."
            )
        result = super().load_config(config_path)
        if file.parent.name in catalog.COMPONENTS:  # a file need not say what its name says
            named = {"name": file.stem} if "name" not in content else {}
            if "kind" not in content and not others:
                named["kind"] = file.stem
            result.config = OmegaConf.merge(result.config, named)
        return result


def _is_oracle(entry: Any) -> bool:
    return isinstance(entry, dict) and list(entry) == [_ORACLE] and _is_word(entry[_ORACLE])


def _is_word(text: Any) -> bool:
    return isinstance(text, str) and bool(re.fullmatch(r"\w[\w.+-]{0,99}", text))


def _compose(choices: Choices, config_dirs: Sequence[Path]) -> dict[str, Any]:
    """Return the values of the chosen files, nested."""
    Plugins.instance().register(_Checked)
    search = ",".join(overrides.quoted(f"checked://{folder}") for folder in config_dirs)
    words = [f"hydra.searchpath=[{search}]"] if config_dirs else []
    words += [f"{group}={name}" for group, name in choices]
    try:
        root = str(catalog.shipped("configs"))
        with initialize_config_dir(config_dir=root, version_base="1.3"):
            tree = OmegaConf.to_container(compose("config", overrides=words))
    except _UNREADABLE as error:
        files = " ".join(["config.yaml", *(f"{group}={name}" for group, name in choices)])
        raise ConfigError(f"Cannot read the config files of {files}: {error}") from error
    assert isinstance(tree, dict)
    chosen = dict(choices)
    for group in catalog.COMPONENTS:
        node: Any = tree.get(group)
        for key in ("name", "kind"):
            if not isinstance(node, dict) or not _is_word(node.get(key)):
                raise ConfigError(f"The config file of {group}={chosen.get(group)} sets no {key}.")
        if node["name"] != chosen.get(group, node["name"]):
            raise ConfigError(f"{group}/{chosen[group]}.yaml calls itself name: {node['name']}.")
    return {str(key): value for key, value in tree.items()}


def _paths(tree: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all options of a nested dict."""
    if not isinstance(tree, dict) or not tree:
        yield above
        return
    for key, value in tree.items():
        yield from _paths(value, (*above, str(key)))


def _with(tree: Any, path: Sequence[str], value: Any) -> Any:
    """Return a nested dict in which one value is another one."""
    if not path:
        return value
    return {**tree, path[0]: _with(tree[path[0]], path[1:], value)}


def _owners(group: str, option: str) -> list[str]:
    """Return which of the project's own components have an option of that name."""
    word = option.removeprefix(f"{group}.")
    files = catalog.entries(group).items()
    return [f"{group}={name}" for name, file in files if word in yaml_files.read(file)]


def _check_option(option: str, tree: _Tree) -> None:
    """Raise ``ConfigError`` unless there is an option that can be set: no section, no name."""
    if option in _FIXED:
        group = _FIXED[option]
        raise ConfigError(f"{option} cannot be set. Choose a {group} with {group}=NAME.")
    if option in tree.paths:
        return
    values, options = tree.values, [name for name in tree.paths if name not in _FIXED]
    section = option.partition(".")[0]
    below = [name for name in options if name.startswith(f"{option}.")]
    if below:
        raise ConfigError(f"{option} is a section. Its options: {', '.join(below)}.")
    choosable = options if "." in option else sorted({*options, *values})
    if section in catalog.COMPONENTS:
        where = f"{section}={values[section]['name']}"
        raise typed.unknown_option(option, choosable, where, _owners(section, option))
    if "." in option and section not in values:
        raise ConfigError(f"There is no option {shown(option)}. {nearest(section, values)}")
    raise typed.unknown_option(option, choosable)
