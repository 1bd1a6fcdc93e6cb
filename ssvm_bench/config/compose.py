"""Overrides of the command line into run configs (the only module that imports Hydra).

Hydra is asked for what it does well: its override grammar, and the composition of the chosen
files. Values are set by this module on the composed tree, and typed by
:mod:`ssvm_bench.config.typed`. Thus an option that does not exist is an error however it is
written (Hydra would add it for a ``+``), a message never advises something that this project
does not have, and a sweep composes once for each combination of *choices*, not for each run
(composing takes 0.1 s).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override, Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ssvm_bench.config import catalog, registry, typed
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.config.validation import check_choice
from ssvm_bench.errors import ConfigError, nearest


def compose_runs(
    overrides: Iterable[str],
    multirun: bool = False,
    config_dirs: Sequence[Path] = (),
    each: Mapping[str, Sequence[str]] | None = None,
) -> list[RunConfig]:
    """Return the runs that the overrides ask for, in the order of their sweeps.

    Parameters
    ----------
    overrides : iterable of str
        ``option=value`` or ``group=name``; of several for the same key, the last one counts.
    multirun : bool
        Accept sweeps: ``seed=range(10)``, ``solver=bcfw,mpbcfw``. The last sweep varies fastest.
    config_dirs : sequence of Path
        Further folders of config files, beside the project's own.
    each : mapping, optional
        Dataset → ``option=value`` for the runs on it, which count more than ``overrides``.

    Returns
    -------
    list of RunConfig
        One for each combination of the swept values; just one without a sweep.

    Raises
    ------
    ConfigError
        If an override cannot be read, names nothing that exists, or has a bad value.
    """
    config_dirs = catalog.check_folders(config_dirs)
    names = {group: catalog.entries(group, config_dirs) for group in catalog.GROUPS}
    swept: dict[str, list[Any]] = {}
    added = []
    for override in map(_parse, overrides):
        key = override.key_or_group
        if override.is_add() or override.is_force_add():
            added.append(override)
        swept.pop(key, None)
        swept[key] = _values(override, names.get(key, ()), multirun)
        for name in swept[key] if key in names else ():
            check_choice(key, name, names[key])
    own = {dataset: _options(mine, names) for dataset, mine in (each or {}).items()}
    trees: dict[tuple[tuple[str, str], ...], DictConfig] = {}
    runs = []
    for combination in itertools.product(*swept.values()):
        settings = dict(zip(swept, combination, strict=True))
        choices = tuple((key, val) for key, val in settings.items() if key in names)
        if choices not in trees:
            trees[choices] = _compose(choices, config_dirs)
        tree = trees[choices]
        options = {key: val for key, val in settings.items() if key not in names}
        runs.append(_typed(tree, {**options, **own.get(tree.dataset.name, {})}))
    for override in added:  # last, so that an option that does not exist is named as such
        text, plain = override.input_line, str(override.input_line).lstrip("+")
        raise ConfigError(f"{text}: an option cannot be added, only set: {plain}")
    return runs


def _parse(text: str) -> Override:
    """Parse one override; refuse the parts of Hydra's grammar that remove or move options.

    A value that is no word of Hydra's grammar is taken as it stands: ``2n/(k+2n)``, ``~/results``.
    """
    parser = OverridesParser.create()
    try:
        override = parser.parse_override(text)
    except HydraException:
        key, equals, value = text.partition("=")
        if not (equals and re.fullmatch(r"\+{0,2}\w+(\.\w+)*", key)):
            raise ConfigError(
                f"Cannot read {text!r}. Write option=value, without spaces around '='."
            ) from None
        quoted = QuotedString(value, Quote.single).with_quotes()
        override = parser.parse_override(f"{key}={quoted}")
    key = override.key_or_group
    if override.is_delete():
        raise ConfigError(f"{text}: an option cannot be removed. Set {key} to a value.")
    if override.package is not None or not key:
        raise ConfigError(f"Cannot read {text!r}. Write option=value or group=name.")
    return override


def _values(override: Override, names: Iterable[str], multirun: bool) -> list[Any]:
    """Return the values of one override: several if it is a sweep."""
    text, key = override.input_line, override.key_or_group
    if not override.is_sweep_override():
        return [override.value()]
    if not multirun:
        raise ConfigError(f"{text} asks for several runs. Add -m to make them all.")
    sweep: Any = override._value
    values: list[Any]
    if isinstance(sweep, Glob):
        values = sweep.filter(sorted(names))
    elif override.is_discrete_sweep():
        try:
            values = [Override._convert_value(value) for value in override.sweep_iterator()]
        except HydraException as error:
            raise ConfigError(f"{text}: {error}") from None
    else:
        raise ConfigError(f"{text}: an interval has no end of values. Write {key}=range(…).")
    if not values:
        raise ConfigError(f"{text} has no values, so there is nothing to run.")
    return values


def _options(overrides: Iterable[str], names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of overrides that set options and choose nothing."""
    options = {}
    for override in map(_parse, overrides):
        key = override.key_or_group
        if key in names:
            raise ConfigError(f"{override.input_line}: only options can differ between datasets.")
        (options[key],) = _values(override, (), False)
    return options


def _compose(choices: tuple[tuple[str, str], ...], config_dirs: Sequence[Path]) -> DictConfig:
    """Return the composed tree of the chosen files with the values written in them."""
    folders = [QuotedString(f"file://{folder}", Quote.single) for folder in config_dirs]
    search = ",".join(folder.with_quotes() for folder in folders)
    overrides = [f"hydra.searchpath=[{search}]"] if config_dirs else []
    overrides += [f"{group}={name}" for group, name in choices]
    chosen = dict(choices)
    try:
        root = str(catalog.shipped("configs"))
        with initialize_config_dir(config_dir=root, version_base="1.3"):
            tree = compose("config", overrides=overrides)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError) as error:
        files = " ".join(["config.yaml", *(f"{group}={name}" for group, name in choices)])
        reason = " ".join(str(error).split())
        raise ConfigError(f"Cannot read the config files of {files}: {reason}") from error
    for group in catalog.COMPONENTS:
        node = tree.get(group)
        for key in ("name", "kind"):
            if not isinstance(node, DictConfig) or not isinstance(node.get(key), str):
                raise ConfigError(f"The config file of {group}={chosen.get(group)} sets no {key}.")
        if node.name != chosen.get(group, node.name):
            raise ConfigError(f"{group}/{chosen[group]}.yaml calls itself name: {node.name}.")
    return tree


def _typed(tree: DictConfig, options: Mapping[str, Any]) -> RunConfig:
    """Return the run config of a composed tree in which some options are set."""
    tree = tree.copy()
    fixed = {f"{group}.{key}": group for group in catalog.COMPONENTS for key in ("name", "kind")}
    leaves = [leaf for leaf in _leaves(OmegaConf.to_container(tree)) if leaf not in fixed]
    for option in options:
        if option in fixed:
            group = fixed[option]
            raise ConfigError(f"{option} cannot be set. Choose a {group} with {group}=NAME.")
        if option not in leaves:
            raise _not_an_option(option, leaves, tree)
    try:
        for option, value in options.items():
            OmegaConf.update(tree, option, value, merge=False)
        values = OmegaConf.to_container(tree, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:  # such as an interpolation, ${…}, without an end
        raise ConfigError(f"{error.full_key}: {str(error).splitlines()[0]}.") from error
    assert isinstance(values, dict)
    for group in catalog.COMPONENTS:
        config = registry.module(group, values[group]["kind"]).Config
        values[group] = typed.convert(config, values[group], group)
    return typed.build(RunConfig, {str(key): value for key, value in values.items()})


def _leaves(tree: Any, prefix: str = "") -> list[str]:
    """Return the full names of all options of a nested dict."""
    if not isinstance(tree, dict) or not tree:
        return [prefix]
    parts = [(f"{prefix}.{key}" if prefix else str(key), value) for key, value in tree.items()]
    return [leaf for name, value in parts for leaf in _leaves(value, name)]


def _not_an_option(option: str, leaves: list[str], tree: DictConfig) -> ConfigError:
    """Return the error for a key that is no option: unknown, or a whole section."""
    section = option.partition(".")[0]
    below = [leaf for leaf in leaves if leaf.startswith(f"{option}.")]
    if below:
        return ConfigError(f"{option} is a section. Its options: {', '.join(below)}.")
    choosable = sorted({*leaves, *map(str, tree)}) if "." not in option else leaves
    if section in catalog.COMPONENTS:
        return typed.unknown_option(option, choosable, f"{section}={tree[section].name}")
    if "." in option and section not in tree:
        return ConfigError(f"There is no option {option}. {nearest(section, map(str, tree))}")
    return typed.unknown_option(option, choosable)
