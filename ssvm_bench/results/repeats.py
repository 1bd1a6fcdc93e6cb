"""Which runs are repeats of one another, i.e. one curve, and what that curve is called."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import registry
from ssvm_bench.results.trace import DUAL_OF_AVERAGE, ProblemInstance, Trace, flatten

Item = TypeVar("Item")
Key = TypeVar("Key")

NOT_A_CURVE = frozenset(
    {
        *("seed", "results_dir", "force", "quiet", "dataset.source", "dataset.trust", "lam"),
        *("prior.mean", "prior.variance"),
        *("checkpoint", "checkpoint.every", "checkpoint.keep"),
    }
)
"""Options that do not separate curves: seed, way of execution, parts of a problem instance."""


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return key → the items with that key, both in the order of appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def band(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    """Return the median of some repeats, their minimum and their maximum."""
    return float(np.median(values)), float(np.min(values)), float(np.max(values))


def repeats_of(
    traces: Sequence[Trace], names: Sequence[str] | None = None
) -> dict[tuple[ProblemInstance, str], list[Trace]]:
    """Return the runs of each curve on each problem instance; names are by default `labels`."""
    named = zip(traces, names or labels(traces), strict=True)
    groups = grouped(named, lambda pair: (pair[0].problem, pair[1]))
    return {key: [trace for trace, _ in pairs] for key, pairs in groups.items()}


def labels(traces: Sequence[Trace]) -> list[str]:
    """Name each run's curve: its solver, and the options in which runs of that solver differ.

    So a sweep over ``solver.T`` gives the curves ``mpbcfw T=5`` and ``mpbcfw T=10``, which are not
    taken for repeats of one another. An option of the solver that differs on one problem instance
    is named on all: a curve has one name per figure. Other options are named where they differ.
    """
    names = [str(trace.solver["name"]) for trace in traces]
    groups = [(trace.problem, name) for trace, name in zip(traces, names, strict=True)]
    around, within = differing_options(traces, groups)
    parts = names, around, within
    return [" ".join(filter(None, of_run)) for of_run in zip(*parts, strict=True)]


def differing_options(
    traces: Sequence[Trace],
    groups: Sequence[Hashable],
    hidden: Callable[[str], bool] = lambda _: False,
) -> tuple[list[str], list[str]]:
    """Return, for each run, its differing options outside the solver, and those of the solver.

    Parameters
    ----------
    traces : sequence of Trace
    groups : sequence
        The group of each run; options outside the solver are compared within a group.
    hidden : callable
        Tells which options, besides `NOT_A_CURVE`, do not separate curves: ``budget.max_seconds``.
    """
    options = _of_today([trace.options for trace in traces])
    names = [str(of_run["solver.name"]) for of_run in options]
    named = zip(traces, options, strict=True)
    duals = [{"solver.dual": _dual_of(trace), **of_run} for trace, of_run in named]
    of_solver = {key for of_run in duals for key in of_run if key.startswith("solver.")}
    others = {key for of_run in options for key in of_run} - of_solver
    unseen = {key for key in of_solver | others if hidden(key)} | NOT_A_CURVE
    around = differences(options, groups, unseen | of_solver)
    return around, differences(duals, names, unseen | others)


def labels_within(traces: Sequence[Trace], key: Callable[[Trace], Hashable]) -> list[str]:
    """Name each run's curve by the options in which it differs from runs with the same key."""
    groups = grouped(range(len(traces)), lambda k: key(traces[k]))
    named = ((ks, labels([traces[k] for k in ks])) for ks in groups.values())
    found = {k: label for ks, names in named for k, label in zip(ks, names, strict=True)}
    return [found[k] for k in range(len(traces))]


def _of_today(options: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the options of runs; older runs get those added since, with their defaults."""
    made = list(options)
    if len({frozenset(of_run) for of_run in options}) == 1:
        return made
    for group in ("dataset", "oracle", "solver"):
        kinds = [of_run.get(f"{group}.kind") for of_run in made]
        for kind, runs in grouped(range(len(made)), kinds.__getitem__).items():
            own = {frozenset(key for key in made[k] if key.startswith(f"{group}.")) for k in runs}
            if kind is not None and len(own) > 1:
                with suppress(ConfigError, RunFailedError):  # a plug-in may be missing
                    known = flatten({group: registry.defaults(group, kind)})
                    for k in runs:
                        made[k] = known | made[k]
    return made


def _dual_of(trace: Trace) -> str:
    """Return which dual value a run logs, as an option: older runs log that of their averages."""
    averaged = trace.options.get("solver.average") is True
    return "own" if averaged and DUAL_OF_AVERAGE not in trace.frame else "best"


def differences(
    options: Sequence[Mapping[str, Any]], groups: Sequence[Hashable], hidden: AbstractSet[str]
) -> list[str]:
    """Return, for each run, the options in which runs of its group differ, as ``T=5 step=…``.

    They identify runs in a legend or a table.

    Parameters
    ----------
    options : sequence of mapping
        Options of each run, as `flatten` returns them.
    groups : sequence
        The group of each run.
    hidden : set of str
        Options that are not shown.
    """
    differing: dict[Hashable, list[str]] = {}
    for group, pairs in grouped(zip(groups, options, strict=True), lambda pair: pair[0]).items():
        peers = [of_run for _, of_run in pairs]
        seen = {key for of_run in peers for key in of_run} - hidden
        alike = {key for key in seen if all(of.get(key) == peers[0].get(key) for of in peers)}
        differing[group] = sorted(seen - alike)

    def said(of_run: Mapping[str, Any], group: Hashable) -> str:
        names = ((key, key.removeprefix("solver.")) for key in differing[group])
        return " ".join(f"{name}={_shown(of_run.get(key))}" for key, name in names)

    return [*map(said, options, groups)]


def _shown(value: Any) -> str:
    """Return the value of an option as on the command line."""
    if value is None:
        return "null"
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)
