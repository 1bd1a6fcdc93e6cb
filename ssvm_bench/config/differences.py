"""In which options runs differ: what tells them apart in a legend or a table.

An option that a config leaves out has the neutral value that its component gives it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any


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
    flat = [_flatten(config) for config in configs]
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
