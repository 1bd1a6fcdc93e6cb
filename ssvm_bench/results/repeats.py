"""Which runs are repeats of one another, i.e. one curve, and what that curve is called."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, TypeVar

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import registry
from ssvm_bench.results.problem_instance import ProblemInstance, instance_of
from ssvm_bench.results.trace import DUAL_OF_AVERAGE, Trace

Item = TypeVar("Item")
Key = TypeVar("Key")

NOT_A_CURVE = frozenset(
    {
        *("seed", "results_dir", "force", "quiet", "dataset.source", "dataset.trust", "lam"),
        *("prior.mean", "prior.variance"),
        *("checkpoint", "checkpoint.every", "checkpoint.keep"),
    }
)
"""Options that make no other curve: repeats, how to run, and what a problem instance covers."""


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items that agree in a key, in the order in which they come."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def repeats_of(
    traces: Sequence[Trace], names: Sequence[str] | None = None
) -> dict[tuple[ProblemInstance, str], list[Trace]]:
    """Return the runs of each curve on each problem instance; names are by default `labels`."""
    named = zip(traces, names or labels(traces), strict=True)
    groups = grouped(named, lambda pair: (instance_of(pair[0].metadata), pair[1]))
    return {key: [trace for trace, _ in pairs] for key, pairs in groups.items()}


def labels(traces: Sequence[Trace]) -> list[str]:
    """Name each run's curve: its solver, and the options in which runs of that solver differ.

    So a sweep over ``solver.T`` gives the curves ``mpbcfw T=5`` and ``mpbcfw T=10``, which are
    not taken for repeats of one another. Options of the solver itself are named on all problem
    instances if they differ on one, so that one thing has one name in a figure; others only there.
    """
    names = [str(trace.metadata["config"]["solver"]["name"]) for trace in traces]
    groups = [
        (instance_of(trace.metadata), name) for trace, name in zip(traces, names, strict=True)
    ]
    around, within = differing_options(traces, groups)
    parts = names, around, within
    return [" ".join(filter(None, of_run)) for of_run in zip(*parts, strict=True)]


def differing_options(
    traces: Sequence[Trace],
    groups: Sequence[Hashable],
    hidden: Callable[[str], bool] = lambda _: False,
) -> tuple[list[str], list[str]]:
    """Return of each run the options around its solver, and those of it, in which runs differ.

    Parameters
    ----------
    traces : sequence of Trace
    groups : sequence
        The group of each run within which options around the solver are looked at.
    hidden : callable
        Tells which options, as ``budget.max_seconds``, make no other curve, beside `NOT_A_CURVE`.
    """
    configs = _of_today([trace.metadata["config"] for trace in traces])
    names = [str(config["solver"]["name"]) for config in configs]
    around = [{key: config[key] for key in config if key != "solver"} for config in configs]
    within = [
        {"solver": {**_dual_of(trace), **config["solver"]}}
        for trace, config in zip(traces, configs, strict=True)
    ]
    unseen = {key for config in configs for key in flatten(config) if hidden(key)} | NOT_A_CURVE
    return differences(around, groups, unseen), differences(within, names, unseen)


def labels_within(traces: Sequence[Trace], key: Callable[[Trace], Hashable]) -> list[str]:
    """Name each run's curve by the options in which runs differ that agree in a key."""
    groups = grouped(range(len(traces)), lambda k: key(traces[k]))
    named = ((ks, labels([traces[k] for k in ks])) for ks in groups.values())
    found = {k: label for ks, names in named for k, label in zip(ks, names, strict=True)}
    return [found[k] for k in range(len(traces))]


def _of_today(configs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return configs in which older runs have the options added since, at their defaults."""
    made = [dict(config) for config in configs]
    kinds = [
        (group, config[group]["kind"])
        for group in ("dataset", "oracle", "solver")
        for config in made
        if "kind" in config.get(group, {})
    ]
    for group, kind in dict.fromkeys(kinds):
        peers = [config for config in made if config.get(group, {}).get("kind") == kind]
        if len({frozenset(config[group]) for config in peers}) > 1:
            with suppress(ConfigError, RunFailedError):  # a plug-in may have gone
                known = registry.defaults(group, kind)
                for config in peers:
                    config[group] = {**known, **config[group]}
    return made


def _dual_of(trace: Trace) -> dict[str, str]:
    """Return, as if it were an option, what a run's dual is: of averages, it once was their own."""
    averaged = trace.metadata["config"]["solver"].get("average") is True
    return {"dual": "own" if averaged and DUAL_OF_AVERAGE not in trace.frame else "best"}


def differences(
    configs: Sequence[Mapping[str, Any]], groups: Sequence[Hashable], hidden: AbstractSet[str]
) -> list[str]:
    """Return of each run the options in which runs of its group differ, as ``T=5 step=…``.

    They tell runs apart in a legend or a table.

    Parameters
    ----------
    configs : sequence of mapping
        As `RunConfig.resolved` gives them.
    groups : sequence
        The group of each run.
    hidden : set of str
        Options that are not shown.
    """
    flat = [flatten(config) for config in configs]
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


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return options, also those of sections, by their full names."""
    flat = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat
