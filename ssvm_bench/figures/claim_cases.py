"""The runs that claims are judged by, and how their numbers are written.

A `Case` is one problem instance with all its runs; the runs of a solver differ in the seed only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ssvm_bench.figures.curves import Best, Problem, labels, problem_of
from ssvm_bench.trace import Trace

PAIRS = {"plain": ("bcfw", "mpbcfw"), "avg": ("bcfw_avg", "mpbcfw_avg")}
"""The pairs that the paper compares: single-plane and multi-plane solver."""

PAPER = {"bcfw": "BCFW", "bcfw_avg": "BCFW-avg", "mpbcfw": "MP-BCFW", "mpbcfw_avg": "MP-BCFW-avg"}
"""Names of the solvers in the paper."""


class UnmeasurableError(Exception):
    """The traces do not say; the message says why."""


@dataclass(frozen=True)
class Case:
    """A problem instance and its runs.

    Attributes
    ----------
    dataset, source : str
        As the traces name them.
    problem : Problem
        Fingerprint and λ.
    runs : dict
        Solver → seed → trace.
    mixed : frozenset of str
        Solvers whose runs differ in more than the seed; they are not in ``runs``.
    best : Best, optional
        Reference optima of the instance.
    """

    dataset: str
    source: str
    problem: Problem
    runs: Mapping[str, Mapping[int, Trace]]
    mixed: frozenset[str] = field(default_factory=frozenset)
    best: Best | None = None

    def repeats(self, solver: str) -> list[Trace]:
        """Return the runs of a solver by seed; raise `UnmeasurableError` where there are none."""
        if solver in self.mixed:
            raise UnmeasurableError(f"runs of {PAPER[solver]} differ in more than the seed")
        runs = self.runs.get(solver)
        if not runs:
            raise UnmeasurableError(f"no finished runs of {PAPER[solver]}")
        return [runs[seed] for seed in sorted(runs)]

    def timed(self, *solvers: str) -> list[list[Trace]]:
        """Return the runs of solvers whose times may be compared."""
        found = [self.repeats(solver) for solver in solvers]
        clocks = {str(trace.metadata.get("clock")) for runs in found for trace in runs}
        if "work" in clocks:
            raise UnmeasurableError("clock=work counts work, it measures no time")
        if len(clocks) > 1:
            raise UnmeasurableError(
                f"runs were timed by different clocks ({', '.join(sorted(clocks))})"
            )
        return found


def cases(traces: Sequence[Trace], best: Mapping[Problem, Best]) -> list[Case]:
    """Group runs by problem instance: real data first, then by name of the dataset.

    Parameters
    ----------
    traces : sequence of Trace
        Finished runs.
    best : dict
        Best values per problem instance.
    """
    groups: dict[tuple[str, str, Problem], list[Trace]] = {}
    for trace in traces:
        data, problem = trace.metadata["dataset"], problem_of(trace.metadata)
        groups.setdefault((str(data["source"]), str(data["name"]), problem), []).append(trace)
    found = []
    for source, dataset, problem in sorted(groups):  # "real" < "synthetic"
        members = groups[source, dataset, problem]
        runs: dict[str, dict[int, Trace]] = {}
        for trace, label in zip(members, labels(members), strict=True):
            runs.setdefault(label, {})[int(trace.metadata["config"]["seed"])] = trace
        # A label is more than the solver's name where its runs differ in further options.
        mixed = frozenset(label.split(" ")[0] for label in runs if " " in label)
        found.append(Case(dataset, source, problem, runs, mixed, best.get(problem)))
    return found


# ---- words ------------------------------------------------------------------------------------


def percent(value: float) -> str:
    """Return a share as text."""
    return f"{100 * value:.3g} %"


def number(value: float) -> str:
    """Return a number as text."""
    return f"{value:.3g}"


def times(value: float) -> str:
    """Return a factor as text."""
    return f"{value:.2g}×"


def seconds(value: float) -> str:
    """Return a duration as text."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def span(ends: tuple[float, float], text: Callable[[float], str] = seconds) -> str:
    """Return a range as text, or one value where both ends read the same."""
    return "–".join(dict.fromkeys(text(end) for end in ends))


def counts(values: Sequence[int]) -> str:
    """Return the range of whole numbers as text."""
    return span((min(values), max(values)), lambda value: f"{value:.0f}")
