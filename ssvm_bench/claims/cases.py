"""The runs that claims are judged by.

A `Case` is one problem instance with all its runs of one `Variant`. A measure asks for those of one
solver, which have to differ in the seed only; options of the solver tell more of its configurations
apart, and `Runs` says which ones are meant. Claims are judged apart for each variant:

========  =========================================================================================
start     where a solver begins. ``truth``: φ^i = φ^{i y_i} = 0; ``oracle``: the plane of the
          labeling at w = 0
counted   whether time is counted at a paper's costs: ``clock=work`` with ``oracle.cost_visit``,
          in place of seconds that were measured
========  =========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.claims.claim import UnmeasurableError, ensure
from ssvm_bench.config import shown_as
from ssvm_bench.figures.style import solver_label
from ssvm_bench.results import problem_instance
from ssvm_bench.results.measurements import Measurement
from ssvm_bench.results.problem_instance import Best, BestValues, ProblemInstance
from ssvm_bench.results.repeats import grouped, labels
from ssvm_bench.results.trace import Trace

STARTS = ("truth", "oracle")


class Variant(NamedTuple):
    """Where the runs begin, and whether their time is counted at the costs of a paper."""

    start: str = STARTS[0]
    counted: bool = False

    @property
    def suffix(self) -> str:
        """What remarks on this variant have behind the dataset's name."""
        return f" start={self.start}" * (self.start != USUAL.start) + " counted" * self.counted


USUAL = Variant()
"""Runs that begin at the truth, and whose time was measured."""


class Costs(NamedTuple):
    """Seconds of an exact call, of a plane's evaluation, and of what else a visit takes."""

    call: float
    plane: float
    visit: float

    @property
    def share(self) -> float:
        """The oracle's share of BCFW's time, where each visit makes one call."""
        return self.call / (self.call + self.visit)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Costs:
        """Return what options name ``cost_call``, ``cost_plane`` and ``cost_visit``."""
        return cls(*(float(options[f"cost_{name}"]) for name in cls._fields))


def variant_of(trace: Trace) -> Variant:
    """Return the variant that a run is of."""
    config = trace.config
    visits = config.get("oracle", {}).get("cost_visit", 0.0)
    counted = trace.metadata.get("clock") == "work" and visits > 0
    start = config["solver"].get("start")  # that of `eg` is a number
    return Variant(start if start in STARTS else USUAL.start, counted)


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
        Label of a curve, which starts with the solver → seed → trace.
    best : Best, optional
        Reference optima of the instance.
    others : sequence of Case
        All cases of the same variant whose source is shown together with its own.
    variant : Variant
        Where the runs begin, and what their time is.
    bench : sequence of Measurement
        What the bench has measured on the dataset.
    """

    dataset: str
    source: str
    problem: ProblemInstance
    runs: Mapping[str, Mapping[int, Trace]]
    best: Best | None = None
    others: Sequence[Case] = ()
    variant: Variant = USUAL
    bench: Sequence[Measurement] = ()

    @property
    def solvers(self) -> frozenset[str]:
        """The solvers that there are runs of."""
        return frozenset(label.split(" ")[0] for label in self.runs)

    @property
    def data(self) -> Mapping[str, Any]:
        """What the traces say of the data: ``n`` and so on."""
        return next(self.traces()).data

    @property
    def radius(self) -> float:
        """R, the largest ‖ϕ(x_i,y) − ϕ(x_i,y_i)‖, or a bound of it, which is one for all runs."""
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

    def traces(self) -> Iterator[Trace]:
        """Yield all runs."""
        return (run for repeats in self.runs.values() for run in repeats.values())

    def has(self, options: Mapping[str, Any]) -> bool:
        """Tell whether its runs have these options, as ``oracle.kernel``, or no runs."""
        first = islice(self.traces(), 1)
        return all(run.options.get(of) == value for run in first for of, value in options.items())

    def is_part_of(self, other: Case) -> bool:
        """Tell whether it is made of the first examples of another case, all else equal."""

        def about(case: Case) -> tuple[Any, ...]:
            data = {**next(case.traces()).config.get("dataset", {}), "n_samples": None}
            (fingerprint, lam), source = case.problem, case.source
            return case.dataset, source, lam, problem_instance.named_in(fingerprint), data

        return about(self) == about(other) and self.data["n"] < other.data["n"]

    def repeats(self, solver: str) -> list[Trace]:
        """Return the runs of a solver; raises as `Runs.by_seed`."""
        return Runs(solver).of(self)

    def timed(self, *kinds: Runs) -> list[Mapping[int, Trace]]:
        """Return the runs of some kinds by seed, whose times may be compared."""
        found = [runs.by_seed(self) for runs in kinds]
        clocks = check_clocks(run for of in found for run in of.values())
        counts = "work" in clocks and not self.variant.counted
        ensure(not counts, "clock=work counts work, it measures no time")
        return found


def check_clocks(runs: Iterable[Trace]) -> set[str]:
    """Return the clock of all runs; raise `UnmeasurableError` if there are several."""
    clocks = {str(run.metadata.get("clock")) for run in runs}
    ensure(len(clocks) < 2, f"runs were timed by different clocks ({', '.join(sorted(clocks))})")
    return clocks


def same_seed(
    here: Mapping[int, Trace],
    there: Mapping[int, Trace],
    otherwise: str = "no two runs with the same seed",
) -> list[tuple[Trace, Trace]]:
    """Return the runs of both that have the same seed; raise `UnmeasurableError` without any."""
    pairs = [(here[seed], there[seed]) for seed in here if seed in there]
    ensure(pairs, otherwise)
    return pairs


def least_positive(values: np.ndarray, what: str = "duality gap") -> float:
    """Return the smallest positive value; raise `UnmeasurableError` without any."""
    ensure((values > 0).any(), f"no positive {what}")
    return float(values[values > 0].min())


def column(run: Trace, name: str) -> np.ndarray:
    """Return a column of a run; raise `UnmeasurableError` without it."""
    ensure(name in run.frame, f"a run has no column {name}")
    return run.values(name)


def ends(pairs: Sequence[Sequence[Trace]], name: str) -> np.ndarray:
    """Return the last value of a column in the runs of each pair, shape (pairs, 2)."""
    return np.array([[column(run, name)[-1] for run in pair] for pair in pairs])


def relative_gap(run: Trace) -> np.ndarray:
    """Return (P − F)/|P| of each row; NaN where P is not known."""
    primal, dual = (run.values(name) for name in ("primal", "dual"))
    return (primal - dual) / np.maximum(np.abs(primal), 1e-12)


class Runs(NamedTuple):
    """Runs to compare: a solver, and those of its options that have to be so.

    ``warm_start`` is whether they went on from the solution of a larger λ; None: whatever they did.
    """

    solver: str
    options: Mapping[str, Any] = {}
    warm_start: bool | None = None

    @property
    def name(self) -> str:
        """What a reader calls them."""
        options = (f"{key}={value}" for key, value in self.options.items())
        name = solver_label(" ".join([self.solver, *options]))
        return name + " from the solution of a larger λ" * bool(self.warm_start)

    def has(self, run: Trace) -> bool:
        """Tell whether a run is one of them."""
        is_so = run.solver["name"] == self.solver and self.options.items() <= run.solver.items()
        return is_so and self.warm_start in (None, bool(run.config.get("path")))

    def of(self, case: Case) -> list[Trace]:
        """Return the repeats on a problem instance; raises as `by_seed`."""
        return list(self.by_seed(case).values())

    def by_seed(self, case: Case) -> Mapping[int, Trace]:
        """Return seed → run on a problem instance, in the order of the seeds.

        Raises
        ------
        UnmeasurableError
            If there are none, or they differ in more than the seed.
        """
        found = [runs for runs in case.runs.values() if self.has(next(iter(runs.values())))]
        ensure(found, f"no finished runs of {self.name}")
        ensure(len(found) == 1, f"runs of {self.name} differ in more than the seed")
        return dict(sorted(found[0].items()))


def cases(
    traces: Sequence[Trace], best: BestValues, draws: Mapping[str, str] = MappingProxyType({})
) -> list[Case]:
    """Group runs by problem instance and variant.

    What papers use comes first; then the start at the truth, and times that were measured; then the
    names of the datasets decide. ``draws`` is as of `Paper`.
    """

    def key(trace: Trace) -> tuple[str, bool, bool, str, str, ProblemInstance, str]:
        data, variant = trace.data, variant_of(trace)
        away, source = variant.start != USUAL.start, str(data["source"])
        where = str(data["name"]), _repeat(trace, draws)[0], source
        return shown_as(source), variant.counted, away, variant.start, *where

    groups, found = grouped(traces, key), []
    for group in sorted(groups):  # "real" < "real (altered)" < "synthetic"
        members = groups[group]
        _, counted, _, start, dataset, problem, source = group
        runs: dict[str, dict[int, Trace]] = {}
        for trace, label in zip(members, labels(members), strict=True):
            runs.setdefault(label, {})[_repeat(trace, draws)[1]] = trace
        variant = Variant(start, counted)
        found.append(Case(dataset, source, problem, runs, best.get(problem), variant=variant))
    return found


def _repeat(trace: Trace, draws: Mapping[str, str]) -> tuple[ProblemInstance, int]:
    """Return the problem instance of a run, and its number among the repeats on it.

    Data that are drawn anew for each repeat are one instance, named by their other options.
    """
    config, instance = trace.config, trace.problem
    option = draws.get(str(trace.data["name"]))
    if option is None:
        return instance, int(config["seed"])
    said = (option, "trust")  # the source says whether the data are to be trusted
    others = (f"{name}={val}" for name, val in config["dataset"].items() if name not in said)
    options = ",".join(others).replace(" ", "")
    named = instance.fingerprint.partition(" ")[2]
    fingerprint = " ".join(filter(None, (options, named)))
    return instance._replace(fingerprint=fingerprint), int(config["dataset"][option])
