"""From overrides of the command line to run configs.

Hydra parses the overrides (:mod:`ssvm_bench.config.overrides`). The chosen files have the values
that differ from the options' defaults (:mod:`ssvm_bench.config.catalog`). The names of options are
checked first, then the runs are counted, and only then are they built: so a mistake is reported as
fast in a long sweep as in a short one. Nothing is interpolated, and no message advises features of
Hydra that this project does not have.

A config is composed from YAML files only. After that, the files that its dataset and its oracle
name are read, as their content belongs to the run (the method ``read_files`` of a config). The
files of a dataset may decide which oracle it needs (`DatasetConfig.default_oracles`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ssvm_bench.base.errors import ConfigError, SsvmBenchError, nearest, shown
from ssvm_bench.config import catalog, overrides, registry, validation
from ssvm_bench.config.schema import RunConfig

_HINTS = validation.hints(RunConfig)

_FIXED = {f"{group}.{key}": group for group in catalog.COMPONENTS for key in ("name", "kind")}
"""Options that only a choice's own file can set → their group."""

Choices: TypeAlias = Mapping[str, str]
"""Group → the chosen name."""


def compose_runs(
    words: Iterable[str], multirun: bool = False, config_dirs: Iterable[str | Path] = ()
) -> list[RunConfig]:
    """Return the runs that the overrides describe, in the order of their sweeps.

    Parameters
    ----------
    words : iterable of str
        ``option=value`` or ``group=name``; if a key is set several times, the last one counts.
    multirun : bool
        Accept sweeps: ``seed=range(10)``, ``solver=bcfw,mpbcfw``. The last sweep varies fastest.
    config_dirs : iterable of path
        Further folders of config files, and of components in files, besides the project's own.

    Returns
    -------
    list of RunConfig
        One for each combination of the swept values; just one without a sweep.

    Raises
    ------
    ConfigError
        If an override cannot be read, names nothing that exists, or has a bad value; or if there
        are too many runs.
    """
    return Composer(config_dirs).runs(words, multirun)


class Composer:
    """Composes runs from overrides; caches the files and sections for later calls.

    Parameters
    ----------
    config_dirs : iterable of path
        Further folders of config files, besides the project's own.
    """

    def __init__(self, config_dirs: Iterable[str | Path] = ()) -> None:
        folders = catalog.check_folders(config_dirs)
        registry.use(folders)
        self._files = {group: catalog.entries(group, folders) for group in catalog.GROUPS}
        self._read: dict[tuple[str, str], catalog.Choice] = {}
        self._sections: dict[tuple[str, str], Any] = {}

    def runs(
        self,
        words: Iterable[str],
        multirun: bool = False,
        each: Mapping[str, Sequence[str]] | None = None,
    ) -> list[RunConfig]:
        """Return the runs that the overrides describe, see `compose_runs`.

        ``each`` is dataset → ``option=value`` for the runs on it; these override ``words``.
        """
        settings: dict[str, overrides.Override] = {}
        for setting in overrides.read(words):
            settings.pop(setting.key, None)
            settings[setting.key] = setting if multirun else overrides.single(setting)
        chosen = {key: self._choices(settings[key]) for key in settings if key in self._files}
        own = {dataset: self._options(mine) for dataset, mine in (each or {}).items()}
        first = self._contents({key: names[0] for key, names in chosen.items()})
        for key in settings:
            if key not in chosen:
                try:
                    _check_option(key, first)
                except ConfigError:
                    # the dataset's files may decide for another oracle: each run is checked
                    if key in _FIXED or not key.startswith("oracle.") or "oracle" in chosen:
                        raise
        for setting in settings.values():  # after unknown options were reported
            if setting.added:
                plain = setting.text.lstrip("+")
                raise ConfigError(f"{setting.text}: an option cannot be added, only set: {plain}")
        swept = {key: chosen.get(key) or setting.values() for key, setting in settings.items()}
        overrides.check_count(math.prod(map(len, swept.values())))
        return [
            self._run(dict(zip(swept, combination, strict=True)), own)
            for combination in itertools.product(*swept.values())
        ]

    def choices(self, words: Iterable[str]) -> dict[str, list[Any]]:
        """Return group → the names that the overrides choose; the last override counts."""
        return {of.key: self._choices(of) for of in overrides.read(words) if of.key in self._files}

    def _choices(self, setting: overrides.Override) -> list[Any]:
        """Return the names that an override chooses of its group."""
        known = self._files[setting.key]
        found = setting.values(tuple(known))
        for name in found:
            _check_choice(setting.key, name, known)
        return found

    def _options(self, words: Iterable[str]) -> dict[str, Any]:
        """Return option → value of overrides that must neither choose a file nor sweep."""
        options = {}
        for setting in overrides.read(words):
            if setting.key in self._files:
                raise ConfigError(f"{setting.text}: only options can differ between datasets.")
            if setting.is_sweep:
                raise ConfigError(f"{setting.text}: what varies belongs into the grid.")
            options[setting.key] = setting.value
        return options

    def _contents(self, choices: Choices) -> dict[str, dict[str, Any]]:
        """Return group → options in the chosen file; the dataset's file names the default oracle.

        Without a chosen budget, the options that dataset and solver bring count.
        """
        dataset = self._content("dataset", choices.get("dataset", catalog.DEFAULTS["dataset"]))
        default = {**catalog.DEFAULTS, **({"oracle": dataset.oracle} if dataset.oracle else {})}
        names = {**default, **choices}
        found = {group: self._content(group, names[group]) for group in catalog.GROUPS}
        contents = {group: each.options for group, each in found.items()}
        if "budget" not in choices:
            contents["budget"] = {**dataset.budget, **found["solver"].budget}
        return contents

    def _content(self, group: str, name: str) -> catalog.Choice:
        """Return the content of a choice's file, which is read once."""
        if (group, name) not in self._read:
            _check_choice(group, name, self._files[group])
            self._read[group, name] = catalog.read(group, name, self._files[group])
        return self._read[group, name]

    def _run(self, settings: Mapping[str, Any], own: Mapping[str, dict[str, Any]]) -> RunConfig:
        """Return the run of one value per setting; the dataset's files may decide the oracle.

        ``own`` overrides options by dataset.
        """
        choices = {key: settings[key] for key in settings if key in self._files}
        options = {key: val for key, val in settings.items() if key not in self._files}
        contents: dict[str, Any] = dict(self._contents(choices))
        options |= own.get(contents["dataset"]["name"], {})
        of_oracle = {key: options.pop(key) for key in [*options] if key.startswith("oracle.")}
        _set(contents, options)
        dataset, unread = self._section("dataset", contents["dataset"]), None
        try:
            if "oracle" not in choices:
                fitting: Sequence[str] = getattr(dataset, "default_oracles", tuple)()
                contents["oracle"] = self._with_options(fitting, of_oracle) or contents["oracle"]
            known = _options_of("oracle", contents)
            defaults: dict[str, Any] = getattr(dataset, "oracle_options", dict)()
            its = {name: value for name, value in defaults.items() if name in known}
            contents["oracle"] = {**contents["oracle"], **its}
        except SsvmBenchError as error:  # which the loader reports, unless an option needs it here
            unread = error
        try:
            _set(contents, of_oracle)
        except ConfigError:
            if unread is not None:
                raise unread from None
            raise
        return RunConfig(**{name: self._section(name, val) for name, val in contents.items()})

    def _with_options(self, oracles: Sequence[str], options: Iterable[str]) -> Any:
        """Return the content of the first oracle that has all options, else of the first."""
        found = [self._content("oracle", name).options for name in oracles]
        names = {option.removeprefix("oracle.") for option in options}
        able = (of for of in found if names.issubset(registry.options("oracle", of["kind"])))
        return next(able, found[0] if found else None)

    def _section(self, name: str, value: Any) -> Any:
        """Return a typed section, or an option outside of sections; runs of a sweep share it."""
        key = name, repr(value)
        if key not in self._sections:
            if name in catalog.COMPONENTS:
                self._sections[key] = registry.config(name, value)
                if hasattr(self._sections[key], "read_files"):
                    self._sections[key] = self._sections[key].read_files()
            else:
                self._sections[key] = validation.convert(_HINTS[name], value, name)
        return self._sections[key]


def _check_choice(group: str, name: Any, known: Mapping[str, Path]) -> None:
    """Raise ``ConfigError`` unless a name is that of a file; a module alone is not enough."""
    is_name = isinstance(name, str) and group in catalog.COMPONENTS and name not in known
    if is_name and registry.has_foreign(group, name):
        raise ConfigError(
            f"{group}={name} has a module, but no config file. Write {group}/{name}.yaml, with the "
            f"line `kind: {name}`, into a folder that you give with --config-dir."
        )
    if group == "dataset" and isinstance(name, str) and Path(name).is_file():
        file = shown(name)
        raise ConfigError(
            f"dataset={file} is a file. dataset=file dataset.path={file} trains on it."
        )
    beside = registry.folder_beside(f"{group}/{name}.yaml") if is_name else ""
    if beside:
        raise ConfigError(f"{group}={name} is a plug-in that lies here: add {beside} to the call.")
    validation.check_choice(group, name, known)


def _set(contents: dict[str, Any], options: Mapping[str, Any]) -> None:
    """Set options in the contents of sections; raise ``ConfigError`` if there is no such option."""
    for option, value in options.items():
        _check_option(option, contents)
        section, _, name = option.partition(".")
        contents[section] = {**contents.get(section, {}), name: value} if name else value


def _options_of(section: str, contents: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the options of a section, without its name; none if this is no section."""
    if section in catalog.COMPONENTS:
        return registry.options(section, contents[section]["kind"])
    return [*validation.hints(_HINTS[section])] if is_dataclass(_HINTS.get(section)) else []


def _owners(group: str, option: str) -> list[str]:
    """Return the project's own components that have an option of that name."""
    files = catalog.entries(group)
    kinds = {name: catalog.read(group, name, files).options["kind"] for name in files}
    return [
        f"{group}={name}"
        for name, kind in kinds.items()
        if option.removeprefix(f"{group}.") in registry.options(group, kind)
    ]


def _check_option(option: str, contents: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ``ConfigError`` unless the option exists and can be set."""
    if option in _FIXED:
        group = _FIXED[option]
        raise ConfigError(f"{option} cannot be set. Choose a {group} with {group}=NAME.")
    section, _, name = option.partition(".")
    here = _options_of(section, contents)
    if (name in here) if name else (option in _HINTS and not here):
        return
    if not name and here:
        below = ", ".join(f"{section}.{other}" for other in here)
        raise ConfigError(f"{option} is a section. Its options: {below}.")
    options = [
        f"{other}.{each}" if each else other
        for other in _HINTS
        for each in _options_of(other, contents) or [""]
        if f"{other}.{each}" not in _FIXED
    ]
    choosable = options if name else sorted({*options, *_HINTS})
    if section in catalog.COMPONENTS:
        where = f"{section}={contents[section]['name']}"
        raise validation.unknown_option(option, choosable, where, _owners(section, option))
    if name and section not in _HINTS:
        raise ConfigError(f"There is no option {shown(option)}. {nearest(section, _HINTS)}")
    raise validation.unknown_option(option, choosable)
