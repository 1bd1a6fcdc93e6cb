"""Which runs are repeats of one another, i.e. one curve, and what that curve is called."""

from __future__ import annotations

from collections.abc import Sequence

from ssvm_bench.config.differences import differences
from ssvm_bench.results.problem_instance import ProblemInstance, instance_of
from ssvm_bench.results.trace import Trace

NOT_A_CURVE = frozenset({"seed", "results_dir", "force", "quiet", "dataset.source", "lam"})
"""Options that make no other curve: repeats, verbosity, and what a problem instance covers."""


def repeats_of(
    traces: Sequence[Trace], names: Sequence[str] | None = None
) -> dict[tuple[ProblemInstance, str], list[Trace]]:
    """Return the runs of each curve on each problem instance; names are by default `labels`."""
    groups: dict[tuple[ProblemInstance, str], list[Trace]] = {}
    for trace, label in zip(traces, names or labels(traces), strict=True):
        groups.setdefault((instance_of(trace.metadata), label), []).append(trace)
    return groups


def labels(traces: Sequence[Trace]) -> list[str]:
    """Name each run's curve: its solver, and the options in which runs of that solver differ.

    So a sweep over ``solver.T`` gives the curves ``mpbcfw T=5`` and ``mpbcfw T=10``, which are
    not taken for repeats of one another. Options of the solver itself are named on all problem
    instances if they differ on one, so that one thing has one name in a figure; others only there.
    """
    configs = [trace.metadata["config"] for trace in traces]
    names = [str(config["solver"]["name"]) for config in configs]
    groups = [
        (instance_of(trace.metadata), name) for trace, name in zip(traces, names, strict=True)
    ]
    around = [{key: config[key] for key in config if key != "solver"} for config in configs]
    within = [{"solver": config["solver"]} for config in configs]
    parts = (
        names,
        differences(around, groups, NOT_A_CURVE),
        differences(within, names, NOT_A_CURVE),
    )
    return [" ".join(filter(None, of_run)) for of_run in zip(*parts, strict=True)]
