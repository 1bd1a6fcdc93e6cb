"""In which options runs differ: what tells them apart in a legend or a table.

An option that a config leaves out has the neutral value that its component gives it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any

from ssvm_bench.base.errors import SsvmBenchError
from ssvm_bench.config import registry
from ssvm_bench.config.prior import PriorConfig
from ssvm_bench.config.schema import RunConfig


def differences(
    configs: Sequence[Mapping[str, Any]], groups: Sequence[Hashable], hidden: AbstractSet[str]
) -> list[str]:
    """Return of each run the options in which runs of its group differ, as ``T=5 step=…``.

    Parameters
    ----------
    configs : sequence of mapping
        As `RunConfig.resolved` gives them.
    groups : sequence
        The group of each run.
    hidden : set of str
        Options that are not shown.
    """
    flat = [_flatten(_with_neutral(config)) for config in configs]
    differing: dict[Hashable, list[str]] = {}
    for group in dict.fromkeys(groups):
        peers = [config for config, other in zip(flat, groups, strict=True) if other == group]
        options = {key for config in peers for key in config} - hidden
        differing[group] = sorted(
            key for key in options if len({repr(config.get(key)) for config in peers}) > 1
        )
    return [
        " ".join(
            f"{key.removeprefix('solver.')}={_shown(config.get(key))}" for key in differing[of]
        )
        for config, of in zip(flat, groups, strict=True)
    ]


def _with_neutral(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config with the options that it leaves out because they are neutral."""
    prior = {**PriorConfig.NEUTRAL, **config.get("prior", {})}
    filled = {**RunConfig.NEUTRAL, **config, "prior": prior}
    for group in registry.GROUPS:
        if "kind" in config.get(group, {}):
            component = _component(group, config[group]["kind"])
            filled[group] = {**getattr(component, "NEUTRAL", {}), **config[group]}
    return filled


@cache
def _component(group: str, kind: str) -> type | None:
    """Return the ``Config`` of a component; None if it is not installed."""
    try:
        return registry.module(group, kind).Config
    except SsvmBenchError:
        return None


def _shown(value: Any) -> str:
    """Return a value of an option as the command line has it."""
    if value is None:
        return "null"
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat
