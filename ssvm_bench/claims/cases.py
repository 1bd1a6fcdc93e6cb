"""The runs that claims are judged by.

A `Case` is one problem instance with all its runs of one `Variant`. A measure takes the runs of one
solver, which may differ in the seed only. Where a solver was run with several sets of options,
`Selection` selects one of them. Claims are judged separately for each variant:

========  =========================================================================================
start     where a solver begins. ``truth``: φ^i = φ^{i y_i} = 0; ``oracle``: the plane of the
          oracle's labeling at w = 0
counted   whether time is counted at a paper's costs (``clock=work`` with ``oracle.cost_visit``)
          instead of measured
========  =========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.config import shown_as
from ssvm_bench.figures.style import solver_label
from ssvm_bench.results.curves import UnmeasurableError, ensure
from ssvm_bench.results.measurements import Measurement
from ssvm_bench.results.table import (
    STARTS,
    Best,
    BestValues,
    ProblemInstance,
    Run,
    Runs,
    grouped,
    labels,
    named_in,
)


class Variant(NamedTuple):
    """Where the runs begin, and whether their time is counted at the costs of a paper."""

    start: str = STARTS[0]
    counted: bool = False

    @property
    def suffix(self) -> str:
        """What follows the dataset's name in the keys of remarks on this variant."""
        return f" start={self.start}" * (self.start != USUAL.start) + " counted" * self.counted

    @property
    def order(self) -> tuple[bool, bool, str]:
        """A sort key: measured times first, and the start of the authors' program first."""
        return self.counted, self.start == USUAL.start, self.start


USUAL = Variant()
"""Runs that begin at the truth and whose time was measured."""


class Costs(NamedTuple):
    """Seconds of an oracle call, of a plane's evaluation, and of the rest of a visit."""

    call: float
    plane: float
    visit: float

    @property
    def share(self) -> float:
        """The oracle's share of BCFW's time, where each visit makes one call."""
        return self.call / (self.call + self.visit)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Costs:
        """Return the costs in the options ``cost_call``, ``cost_plane`` and ``cost_visit``."""
        return cls(*(float(options[f"cost_{name}"]) for name in cls._fields))


def variant_of(run: Run) -> Variant:
    """Return the variant of a run."""
    return Variant(run.start, run.counted)


@dataclass(frozen=True)
class Case:
    """A problem instance and its runs.

    Attributes
    ----------
    dataset, source : str
        As the traces name them.
    problem : ProblemInstance
        Fingerprint and λ.
    runs : dict
        Label of a curve, whose first word is the solver → seed → trace.
    best : Best, optional
        Reference optima of the instance.
    others : sequence of Case
        All cases of the same variant whose source is shown under the same heading.
    variant : Variant
        Where the runs begin, and whether their time was measured or counted.
    bench : sequence of Measurement
        The bench's measurements on the dataset.
    """

    dataset: str
    source: str
    problem: ProblemInstance
    runs: Mapping[str, Mapping[int, Run]]
    best: Best | None = None
    others: Sequence[Case] = ()
    variant: Variant = USUAL
    bench: Sequence[Measurement] = ()

    @property
    def solvers(self) -> frozenset[str]:
        """The solvers with runs."""
        return frozenset(label.split(" ")[0] for label in self.runs)

    @property
    def data(self) -> Mapping[str, Any]:
        """What the traces say of the data: ``n`` and so on."""
        return next(self.traces()).data

    @property
    def radius(self) -> float:
        """R, the largest ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖, or a bound of it; all runs have the same."""
        known = (run.data.get("radius") for run in self.traces())
        found = next((float(radius) for radius in known if radius), math.nan)
        ensure(found > 0, "no run tells R, the largest ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖")
        return found

    @property
    def reference(self) -> Best:
        """The best values known."""
        if self.best is None or math.isnan(self.best.dual):
            raise UnmeasurableError("no reference optimum")
        return self.best

    def traces(self) -> Iterator[Run]:
        """Yield all runs."""
        return (run for repeats in self.runs.values() for run in repeats.values())

    def has(self, options: Mapping[str, Any]) -> bool:
        """Return whether the runs, if any, have these options, as ``oracle.kernel``."""
        first = islice(self.traces(), 1)
        return all(run.options.get(of) == value for run in first for of, value in options.items())

    def is_part_of(self, other: Case) -> bool:
        """Return whether this case has the first examples of another one, all else equal."""

        def about(case: Case) -> tuple[Any, ...]:
            data = {**next(case.traces()).config.get("dataset", {}), "n_samples": None}
            (fingerprint, lam), source = case.problem, case.source
            return case.dataset, source, lam, named_in(fingerprint), data

        return about(self) == about(other) and self.data["n"] < other.data["n"]

    @property
    def half(self) -> Case:
        """The case on a part of the examples whose size is nearest to one half."""
        parts = [other for other in self.others if other.is_part_of(self)]
        ensure(parts, "no finished runs on a part of the examples")
        return min(parts, key=lambda part: abs(2 * int(part.data["n"]) - int(self.data["n"])))

    def repeats(self, solver: str) -> list[Run]:
        """Return the runs of a solver; raises as `Selection.by_seed`."""
        return Selection(solver).of(self)

    def timed(self, runs: Iterable[Run]) -> None:
        """Raise `UnmeasurableError` unless the times of these runs can be compared."""
        counts = "work" in check_clocks(runs) and not self.variant.counted
        ensure(not counts, "clock=work counts work, it measures no time")

    def noise(self, kinds: Iterable[Selection | Family]) -> Noise:
        """Return the noise of the times of some kinds of runs: that of the noisiest.

        NaN if none has repeats, or if time was counted and not measured.
        """
        found, named = [], dict[str, list[Run]]()
        for kind in () if self.variant.counted else kinds:
            with suppress(UnmeasurableError):  # a measure may do without one of its kinds
                named |= kind.by_name(self)
        for name, runs in named.items():
            low, middle, high = np.quantile(seconds_an_iteration(runs), (0.25, 0.5, 0.75))
            if len(runs) > 1 and middle > 0:
                found.append(Noise(float((high - low) / middle), name))
        return max(found, default=Noise(math.nan, ""))


class Noise(NamedTuple):
    """How much the seconds of an iteration differ over the repeats of a kind of runs.

    ``spread`` is the interquartile range over the median; ``name`` is that of the kind.
    """

    spread: float
    name: str


def seconds_an_iteration(runs: Sequence[Run]) -> np.ndarray:
    """Return the seconds of an iteration of each run, up to the last one that all have."""
    last = min(run["iteration"][-1] for run in runs)
    rows = [int(np.searchsorted(run["iteration"], last, side="right")) - 1 for run in runs]
    pairs = zip(runs, rows, strict=True)
    return np.array([run["time"][row] / max(run["iteration"][row], 1) for run, row in pairs])


def check_clocks(runs: Iterable[Run]) -> set[str]:
    """Return the set of the runs' clocks; raise `UnmeasurableError` if there are several."""
    clocks = {run.clock for run in runs}
    ensure(len(clocks) < 2, f"runs were timed by different clocks ({', '.join(sorted(clocks))})")
    return clocks


def column(run: Run, name: str) -> np.ndarray:
    """Return a column of a run; raise `UnmeasurableError` if the run does not have it."""
    ensure(name in run, f"a run has no column {name}")
    return run[name]


def ends(pairs: Sequence[Sequence[Run]], name: str) -> np.ndarray:
    """Return the last value of a column in the runs of each pair, shape (pairs, 2)."""
    return np.array([[column(run, name)[-1] for run in pair] for pair in pairs])


class Selection(NamedTuple):
    """Selects the runs to compare: by solver, and by some of its options.

    ``prefer`` are options that runs must have if some of the solver's runs do, or do not know them.
    ``warm_start``: whether they started from the solution of a larger λ; None selects both.
    """

    solver: str
    options: Mapping[str, Any] = {}
    warm_start: bool | None = None
    prefer: Mapping[str, Any] = {}
    title: str = ""

    @property
    def name(self) -> str:
        """The name of these runs in texts."""
        if self.title:
            return self.title
        options = (f"{key}={value}" for key, value in self.options.items())
        name = solver_label(" ".join([self.solver, *options]))
        return name + " from the solution of a larger λ" * bool(self.warm_start)

    def __str__(self) -> str:
        """Return the name, as texts of claims have it."""
        return self.name

    @property
    def median(self) -> str:
        """What their curve is in texts."""
        return f"the median of {self.name}"

    def has(self, run: Run) -> bool:
        """Return whether a run is one of them."""
        is_so = run.solver == self.solver and self.options.items() <= run.solver_options.items()
        return is_so and self.warm_start in (None, bool(run.config.get("path")))

    def of(self, case: Case) -> list[Run]:
        """Return the repeats on a problem instance; raises as `by_seed`."""
        return list(self.by_seed(case).values())

    def by_name(self, case: Case) -> dict[str, list[Run]]:
        """Return their name → the repeats on a problem instance, as a `Family` does."""
        return {self.name: self.of(case)}

    def by_seed(self, case: Case) -> Mapping[int, Run]:
        """Return seed → run on a problem instance, in the order of the seeds.

        Raises
        ------
        UnmeasurableError
            If there are none, or they differ in more than the seed.
        """
        found = [(next(iter(runs.values())), runs) for runs in case.runs.values()]
        found = [(first, runs) for first, runs in found if self.has(first)]
        if self.prefer:
            usual = [
                (first, runs)
                for first, runs in found
                if {**self.prefer, **first.solver_options}.items() >= self.prefer.items()
            ]
            found = usual or found
        ensure(found, f"no finished runs of {self.name}")
        ensure(len(found) == 1, f"runs of {self.name} differ in more than the seed")
        return dict(sorted(found[0][1].items()))


class Family(NamedTuple):
    """Kinds of runs that are compared as one: the lowest of their curves counts."""

    name: str
    members: Sequence[Selection]

    def __str__(self) -> str:
        """Return the name, as texts of claims have it."""
        return self.name

    def has(self, run: Run) -> bool:
        """Return whether a run is one of them."""
        return any(kind.has(run) for kind in self.members)

    @property
    def median(self) -> str:
        """What their curve is in texts."""
        return f"the lowest median of {self.name}"

    def by_name(self, case: Case) -> dict[str, list[Run]]:
        """Return name → repeats of those members that have runs; raise if none has."""
        found = {kind.name: kind.of(case) for kind in self.members if kind.solver in case.solvers}
        ensure(found, f"no finished runs of {' or '.join(kind.name for kind in self.members)}")
        return found


def cases(
    traces: Sequence[Run], best: BestValues, draws: Mapping[str, str] = MappingProxyType({})
) -> list[Case]:
    """Group runs by problem instance and variant.

    Cases are sorted by source (real data first), costs (measured times first), start (the truth
    last) and name of the dataset. ``draws`` is that of a `Paper`.
    """

    def key(trace: Run) -> tuple[Any, ...]:
        data, source = trace.data, trace.source
        where = str(data["name"]), _repeat(trace, draws)[0], source
        return shown_as(source), variant_of(trace).order, *where

    groups, found = grouped(traces, key), []
    for group in sorted(groups):  # "real" < "real (altered)" < "synthetic"
        _, (counted, _, start), dataset, problem, source = group
        runs: dict[str, dict[int, Run]] = {}
        members = Runs(groups[group], {problem: best[problem]} if problem in best else None)
        for trace, label in zip(members, labels(members), strict=True):
            runs.setdefault(label, {})[_repeat(trace, draws)[1]] = trace
        variant = Variant(start, counted)
        found.append(Case(dataset, source, problem, runs, best.get(problem), variant=variant))
    return found


def _repeat(trace: Run, draws: Mapping[str, str]) -> tuple[ProblemInstance, int]:
    """Return the problem instance of a run, and the number of the repeat.

    Data that are drawn anew for each repeat count as one instance, named by their other options.
    """
    config, instance = trace.config, trace.problem
    option = draws.get(trace.dataset)
    if option is None:
        return instance, int(config["seed"])
    said = (option, "trust")  # the source says whether the data are to be trusted
    others = (f"{name}={val}" for name, val in config["dataset"].items() if name not in said)
    options = ",".join(others).replace(" ", "")
    named = instance.fingerprint.partition(" ")[2]
    fingerprint = " ".join(filter(None, (options, named)))
    return instance._replace(fingerprint=fingerprint), int(config["dataset"][option])
