"""``ssvm-bench recommend``: which solver for a problem, by what the crossover found on others.

The experiment ``crossover`` says how many passes each solver makes to some relative gaps, and how
long it computes besides, at several costs of a call. Its table is part of the package (`FOLDER`;
``docs/which_solver.py`` writes it). A problem is compared with the *nearest* one of the table: of
the same oracle if there is one, else of the same structure of labels, else of any; and of these
with the least sum of ``|log₁₀|`` of the ratios of n, d and λn.

.. code-block:: text

    c, v    seconds of a call of the oracle, and of the rest of a visit of bcfw, on the problem
    v₀      the same of the nearest problem, with n₀ terms
    c₀      c · v₀/v, a call that costs as many visits there as c does here
    T₀(c₀)  passes · n₀ · c₀ + seconds outside the oracle, of a run at the cost nearest to c₀
    T       T₀(c₀) · nv/(n₀v₀), which is passes · n · c + seconds outside · nv/(n₀v₀)

T is an estimate: that n and v scale all that a solver computes besides calls is true of visits, and
a guess for inner QPs. It leaves the order of solvers as it is. Densities of planes, which decide v,
are measured with it.

A preset that takes at most `CLOSE` times as long as the first solver is named before others. Only
solvers that can run on the problem count.
"""

from __future__ import annotations

import csv
import io
import logging
import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

from threadpoolctl import threadpool_limits

from ssvm_bench.base import files
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError, RunFailedError, SsvmBenchError, described, shown
from ssvm_bench.config import catalog, registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.objective import STRUCTURAL_SVM
from ssvm_bench.results import words
from ssvm_bench.results.table import TINY, relative_gap
from ssvm_bench.results.trace import read_metadata
from ssvm_bench.runs import Outcome, components
from ssvm_bench.runs.resolved import check_requirements, resolve
from ssvm_bench.solvers.base import SolverConfig

logger = logging.getLogger(__name__)

Row = TypeVar("Row", bound=NamedTuple)

FOLDER = Path(__file__).with_name("crossover")
"""The table: ``problems.csv`` and ``times.csv``, with the fields of `Problem` and `Times`."""

PRESETS = ("mpbcfw_fast", "mpbcfw_costly", "mpbcfw_newton")
"""Solvers that are named before others, in this order."""

CLOSE = 1.2
"""A preset is named if it takes at most so many times as long as the first solver."""

MUCH_SOONER, LEAST_SECONDS = 2.0, 1.0
"""After a run of at least so many seconds, a solver that is so many times as fast is named."""

SECONDS, PASSES = 1.0, 10
"""How long calls and visits are measured, and over how many passes of bcfw from its start."""

_FEW, _SHARE = 2, 0.1
"""Examples that are measured first; there are more, while a pass takes less of `SECONDS`."""

FAR = 10.0
"""Ratio of λn to that of the nearest problem, or its inverse, from which on a line says so."""

DISAGREE = 1.1
"""Ratio of wall to processor time above which a warning says so."""


# ---- the table of the crossover -----------------------------------------------------------------


class Problem(NamedTuple):
    """A problem, as far as solvers are chosen by it.

    Attributes
    ----------
    name : str
        Dataset, n and λ.
    dataset, oracle, structure : str
        The dataset, the kind of its oracle, and the structure of its labels.
    n, d : int
        Numbers of terms and of weights.
    lam_n : float
        λn.
    call, visit : float
        Seconds of a call of the oracle, and of the rest of a visit in the first passes of bcfw.
    """

    name: str
    dataset: str
    oracle: str
    structure: str
    n: int
    d: int
    lam_n: float
    call: float
    visit: float

    def distance(self, other: Problem) -> tuple[bool, bool, float]:
        """Return how far another problem is, to be compared with that of a third one."""
        sizes = zip((self.n, self.d, self.lam_n), (other.n, other.d, other.lam_n), strict=True)
        far = sum(abs(math.log10(one / two)) for one, two in sizes)
        return self.oracle != other.oracle, self.structure != other.structure, far

    def text(self) -> str:
        """Return what it is, in words."""
        lam = words.lam(self.lam_n / self.n, self.n)
        return f"{self.dataset}, n = {self.n:,}, d = {self.d:,}, λ = {lam}"


class Times(NamedTuple):
    """What a solver takes to a relative gap on a problem of the crossover.

    Attributes
    ----------
    problem : str
        Its name.
    gap : float
    solver, options : str
        The solver, and its options other than the defaults, as on the command line.
    cost : float
        Seconds of a call for which the run was made; NaN: it is the same at all costs.
    passes, outside : float
        Calls/n, and CPU seconds outside the oracle, until the gap; infinite: it is not reached.
    """

    problem: str
    gap: float
    solver: str
    options: str
    cost: float
    passes: float
    outside: float

    def seconds(self, n: int, cost: float) -> float:
        """Return T₀ at a cost of a call."""
        return self.passes * n * cost + self.outside

    def off(self, cost: float) -> float:
        """Return how far its cost is from another one."""
        return 0.0 if math.isnan(self.cost) else abs(math.log(self.cost / cost))


class Ranked(NamedTuple):
    """A solver among others: its times, T₀, and T₀ over the least one."""

    times: Times
    seconds: float
    ratio: float

    @property
    def solver(self) -> str:
        """Its name."""
        return self.times.solver

    def over(self, least: float) -> Ranked:
        """Return it with another time as the least one."""
        return self._replace(ratio=self.seconds / least)


class Table(NamedTuple):
    """The table of the crossover."""

    problems: Sequence[Problem]
    times: Sequence[Times]

    def nearest(self, problem: Problem) -> Problem:
        """Return the nearest problem, as the module says."""
        return min(self.problems, key=problem.distance)

    def gaps(self, problem: Problem) -> list[float]:
        """Return the relative gaps of a problem of the table, the largest first."""
        return sorted({each.gap for each in self.times if each.problem == problem.name})[::-1]

    def costs(self, problem: Problem) -> list[float]:
        """Return the costs of a call for which runs on a problem were made, and that of a call."""
        made = {each.cost for each in self.times if each.problem == problem.name}
        return sorted({cost for cost in made if not math.isnan(cost)} | {problem.call})

    def ranked(self, problem: Problem, gap: float, cost: float) -> list[Ranked]:
        """Return all solvers by T₀ to a gap, infinite if they do not reach it."""
        of: dict[tuple[str, str], Times] = {}
        for each in self.times:
            if (each.problem, each.gap) == (problem.name, gap):
                of_solver = of.setdefault((each.solver, each.options), each)
                if each.off(cost) < of_solver.off(cost):
                    of[each.solver, each.options] = each
        timed = sorted(
            ((each.seconds(problem.n, cost), each) for each in of.values()), key=itemgetter(0)
        )
        return [Ranked(each, t, t / timed[0][0] if t < math.inf else t) for t, each in timed]


def named(ranked: Sequence[Ranked]) -> Ranked:
    """Return the solver to name: the first preset that is close to the best solver, or that one."""
    close = {one.solver: one for one in reversed(ranked) if one.ratio <= CLOSE}
    return next((close[name] for name in PRESETS if name in close), ranked[0])


@cache
def table() -> Table | None:
    """Return the table that is part of the package; None if it has none.

    Raises
    ------
    RunFailedError
        If it cannot be read.
    """
    if not FOLDER.is_dir():
        return None
    try:
        return Table(_rows("problems.csv", Problem), _rows("times.csv", Times))
    except (OSError, ValueError) as error:
        raise RunFailedError(
            f"The table of the crossover in {FOLDER} cannot be read: {error}. Install again."
        ) from error


def _rows(name: str, cls: type[Row]) -> list[Row]:
    """Return the rows of a file, whose columns are the fields of a class."""
    head, *rows = csv.reader(io.StringIO(files.read(FOLDER / name).decode()))
    types = get_type_hints(cls)
    if head != [*types]:
        raise ValueError(f"the first line of {name} is not {','.join(types)}")
    made = (zip(types.values(), row, strict=True) for row in rows)
    return [cls(*(of(cell) for of, cell in row)) for row in made]


# ---- what a call and a visit take ---------------------------------------------------------------


def measure(config: RunConfig, dataset: Dataset) -> tuple[float, float]:
    """Measure what a call and the rest of a visit take, for a second.

    These are means over the first passes of bcfw, on as many of the first examples as take little
    time, with λ = 1/n. The passes are repeated, and the least disturbed ones count. The clock is
    the run's, wall or cpu. A warning says if the two disagree.

    Parameters
    ----------
    config : RunConfig
        Its solver is bcfw.
    dataset : Dataset

    Returns
    -------
    call, visit : float
        Seconds; ``oracle.delay`` is part of a call.
    """
    try:
        components.warm_up(config, dataset)
        clocks, found = Clock("wall"), list[tuple[float, float]]()
        size = min(_FEW, dataset.n)
        with threadpool_limits(1):
            while not found or clocks.wall() < SECONDS:
                means = _first_passes(config, dataset.head(size))
                if size < dataset.n and sum(means) * size < SECONDS * _SHARE:
                    size = min(4 * size, dataset.n)
                else:
                    found.append(means)
    except SsvmBenchError:
        raise
    except Exception as error:
        raise RunFailedError(
            f"oracle={config.oracle.name} failed while its calls were measured: "
            f"{described(error)}. `ssvm-bench check oracle {config.oracle.name}` says more."
        ) from error
    wall, cpu = clocks.wall(), clocks.cpu()
    if config.clock != "cpu" and wall > DISAGREE * cpu:
        logger.warning(
            "%.2g s of measuring were %.2g s of processor time. If other programs run here, "
            "measure again with clock=cpu, which is processor time. If the oracle waits (for a "
            "device, another process, a network), keep this clock: clock=cpu leaves waiting out.",
            *(wall, cpu),
        )
    call, visit = min(found, key=sum)
    return call + config.oracle.delay, visit


def _first_passes(config: RunConfig, dataset: Dataset) -> tuple[float, float]:
    """Return the mean seconds of a call, and of the rest of a visit, over passes of a new run."""
    terms = components.oracle_of(config.oracle, dataset)
    prior = components.prior_of(config.prior, terms.d)
    clock = Clock("cpu" if config.clock == "cpu" else "wall")
    with clock.paused():
        problem = components.problem_of(terms, 1.0 / dataset.n, prior)
        solver = components.build_solver(config, problem, clock)
    for k in range(PASSES):
        solver.iterate()
        if k > 0 and clock.wall() > SECONDS:
            break
    inside = clock.oracle_time
    return inside / clock.oracle_calls, (clock.now() - inside) / clock.oracle_calls


# ---- the recommendation -------------------------------------------------------------------------


class Target(NamedTuple):
    """What the named solver is expected to take to a relative gap; infinite: it is not reached."""

    gap: float
    passes: float
    seconds: float


@dataclass(frozen=True)
class Recommendation:
    """A solver, with its reason.

    Attributes
    ----------
    problem, source : Problem, str
        The problem, and the source of its data.
    nearest : Problem
        The nearest problem of the crossover.
    cost : float
        c₀, the seconds of a call there.
    asked, gap : float
        The relative gap that was asked for, and the one of the table that decides.
    ranking : sequence of Ranked
        The solvers that can run on the problem, by their times to that gap.
    targets : sequence of Target
        What the named solver is expected to take.
    words : sequence of str
        Overrides and folders, as a run gets them.
    has_dual : bool
        Whether the named solver has a gap that can end the run.
    """

    problem: Problem
    source: str
    nearest: Problem
    cost: float
    asked: float
    gap: float
    ranking: Sequence[Ranked]
    targets: Sequence[Target]
    words: Sequence[str]
    has_dual: bool

    @property
    def named(self) -> Ranked:
        """The solver to run."""
        return named(self.ranking)

    @property
    def command(self) -> str:
        """The command that runs it to the gap."""
        of, budget = self.named.times, []
        if not any(word.partition("=")[0].startswith("budget") for word in self.words):
            budget = [f"budget.gap_tol={self.asked:g}", "budget.max_iterations=null"]
            if not self.has_dual:
                budget = [f"budget.max_iterations={math.ceil(of.passes)}"]
        solver = [f"solver={of.solver}", *of.options.split()]
        return shlex.join(["ssvm-bench", "run", *solver, *self.words, *budget])

    @property
    def lam_ratio(self) -> float:
        """λn over that of the nearest problem: the larger λ, the fewer passes."""
        return self.problem.lam_n / self.nearest.lam_n

    @property
    def likeness(self) -> str:
        """How far the nearest problem is one of the same kind."""
        other_oracle, other_structure, _ = self.problem.distance(self.nearest)
        if other_structure:
            return f"none has {self.problem.structure} labels, so that it is a weak guide"
        return f"it has {'another' if other_oracle else 'the same'} oracle"

    @property
    def reason(self) -> str:
        """Why this solver, in a sentence or two."""
        first, it = self.ranking[0], self.named
        others = [one for one in self.ranking if one is not it]
        rivals = [one for one in others if one.ratio < math.inf]
        if it is not first:
            text = f"it takes {words.factor(it.ratio)} the time of the first, {first.solver}"
        elif rivals:
            behind = words.factor(rivals[0].ratio)
            text = f"it is first; the next, {rivals[0].solver}, takes {behind}"
        else:
            text = f"it is the only one of {len(self.ranking)} that gets there"
        if it.solver in PRESETS:
            return f"{text}."
        better = [one for one in rivals if one.solver in PRESETS][:1]
        best = (f": {one.solver} takes {words.factor(one.ratio)}" for one in better)
        return f"{text}. No preset is within {words.times(CLOSE)}{''.join(best)}."

    def lines(self) -> Iterator[str]:
        """Yield what a reader needs to know."""
        mine, there = self.problem, self.nearest
        source = words.source(self.source)
        yield f"{mine.text()} ({source} data): {mine.structure} labels, oracle {mine.oracle}."
        visits = float(words.figures(mine.call / mine.visit))
        yield (
            f"A call takes {words.seconds(mine.call)}, and the rest of a visit "
            f"{words.seconds(mine.visit)}: a call costs {visits:,g} visits."
        )
        yield f"The nearest problem of the crossover is {there.text()}: {self.likeness}."
        yield f"A call that costs as many visits takes {words.seconds(self.cost)} there."
        yield ""
        of = self.named.times
        yield " ".join(filter(None, (f"solver={of.solver}", of.options)))
        yield f"To a relative gap of {self.gap:g} there, {self.reason}"
        if self.gap != self.asked:
            yield f"Of {self.asked:g} itself, the crossover knows no time."
        yield ""
        yield f"{'to a gap of':>11}  {'passes':>7}  {'time, estimated':>15}"
        for target in self.targets:
            passes = words.reached(target.passes, "{:.0f}".format)
            if math.isinf(target.passes):
                yield f"{target.gap:>11g}  {passes}"
            else:
                yield f"{target.gap:>11g}  {passes:>7}  {words.duration(target.seconds):>15}"
        yield (
            "The passes are those of the nearest problem; this one may take several times as many, "
            "or a fraction of them."
        )
        if not 1 / FAR < self.lam_ratio < FAR:
            mine_lam, its_lam = (words.lam(one.lam_n / one.n, one.n) for one in (mine, there))
            far = "fewer" if self.lam_ratio > 1 else "more"
            yield f"Its λ is {mine_lam}, and there {its_lam}: the passes may be far {far}."
        if (each := mine.n * mine.call) >= LEAST_SECONDS:
            yield (
                "Evaluations are not in that time: each calls the oracle for every example, for "
                f"{words.duration(each)}. eval.every=10 makes fewer."
            )
        if any(word.startswith("parallel.") for word in self.words):
            yield "The time is that of one process: options of parallel are not in it."
        yield ""
        yield self.command

    def as_plain(self) -> dict[str, Any]:
        """Return the same as plain values; a number that is infinite, or none, is null."""

        def known(values: NamedTuple) -> dict[str, Any]:
            return {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in values._asdict().items()
            }

        of = self.named.times
        return {
            "problem": {**known(self.problem), "source": self.source},
            "nearest": known(self.nearest),
            "likeness": self.likeness,
            "lam_ratio": self.lam_ratio,
            "cost": self.cost,
            "gap": self.gap,
            "solver": of.solver,
            "options": of.options.split(),
            "reason": self.reason,
            "targets": [known(target) for target in self.targets],
            "ranking": [
                {"solver": one.solver, "ratio": one.ratio if one.ratio < math.inf else None}
                for one in self.ranking
            ],
            "command": self.command,
        }


def recommend(
    overrides: Sequence[str], gap: float | None = None, config_dirs: Sequence[Path] = ()
) -> Recommendation:
    """Measure a problem, and return the solver that the crossover recommends for it.

    Parameters
    ----------
    overrides : sequence of str
        Those of a run, without a solver.
    gap : float, optional
        The relative gap to reach; by default, ``budget.gap_tol`` if that is set, else 0.01.
    config_dirs : sequence of Path

    Raises
    ------
    ConfigError
        If the overrides name a solver, describe no run, or one of another family of problems.
    RunFailedError
        If the package has no table, the data cannot be loaded, the oracle fails, or no solver of
        the table can run on the problem.
    """
    for word in overrides:
        if word.lstrip("+~").partition("=")[0].partition(".")[0] == "solver":
            raise ConfigError(f"{shown(word)}: the solver is what is recommended. Leave it out.")
    (config,) = compose_runs([*overrides, "solver=bcfw"], config_dirs=config_dirs)
    _check_family(config)
    if (known := table()) is None:
        raise RunFailedError(
            "There is no crossover table in this package. In a checkout, `make answer` makes it "
            "from the stored runs of the experiment crossover."
        )
    resolved = resolve(config)[-1]
    dataset, terms = resolved.dataset, resolved.terms
    assert isinstance(dataset, Dataset)  # bcfw reads no streams
    call, visit = measure(config, dataset)
    kinds = config.dataset.name, config.oracle.kind, dataset.structure
    sizes = dataset.n, terms.d, resolved.lam * dataset.n
    problem = Problem(config.dataset.name, *kinds, *sizes, call, visit)
    nearest = known.nearest(problem)
    cost = call * nearest.visit / visit
    asked = gap or config.budget.gap_tol or 0.01
    decides, ranking = _deciding(config, dataset, known, nearest, cost, asked)
    of = named(ranking).times
    scale = problem.n * visit / (nearest.n * nearest.visit)
    targets = [
        Target(to, one.times.passes, one.seconds * scale)
        for to in known.gaps(nearest)
        for one in known.ranked(nearest, to, cost)
        if (one.solver, one.times.options) == (of.solver, of.options)
    ]
    follow = [*overrides, *(f"--config-dir={folder}" for folder in config_dirs)]
    about = asked, decides, ranking, targets, follow, _solver_of(of).has_dual
    return Recommendation(problem, dataset.source, nearest, cost, *about)


def _check_family(config: RunConfig) -> None:
    """Raise ``ConfigError`` for a problem of a family that the crossover knows nothing of."""
    family = config.oracle.family
    if family == STRUCTURAL_SVM:
        return
    files = catalog.entries("solver")
    kinds = {name: catalog.read("solver", name, files).options["kind"] for name in files}
    able = [
        name
        for name, kind in kinds.items()
        if registry.module("solver", kind).Config.family == family
    ]
    raise ConfigError(
        f"oracle={config.oracle.name} makes a problem of the family {family}, and the crossover is "
        f"of the family {STRUCTURAL_SVM}. Solvers of {family}: {', '.join(able)}."
    )


def _deciding(
    config: RunConfig, dataset: Dataset, known: Table, nearest: Problem, cost: float, asked: float
) -> tuple[float, list[Ranked]]:
    """Return the gap of the table that decides, and the solvers that can run, by their times to it.

    It is the largest one that is at most the one that was asked for, or else the smallest; if no
    solver reaches it, the smallest that one does.
    """
    gaps = known.gaps(nearest)
    at_most = [gap for gap in gaps if gap <= asked * (1 + 1e-9)] or gaps[-1:]
    for gap in [*at_most[:1], *(gap for gap in gaps[::-1] if gap > at_most[0])]:
        ranked = known.ranked(nearest, gap, cost)
        able = [one for one in ranked if _can_run(one.times, config, dataset)]
        if not able:
            raise ConfigError(
                f"No solver of the crossover can run on dataset={config.dataset.name} with these "
                "options. `ssvm-bench list solvers` shows all others."
            )
        if math.isfinite(able[0].seconds):
            return gap, [one.over(able[0].seconds) for one in able]
    raise RunFailedError(
        f"No solver that can run on dataset={config.dataset.name} with these options reached a gap "
        f"of the crossover on {nearest.text()}."
    )


def _solver_of(times: Times) -> SolverConfig:
    """Return the options of a solver of the table; raise ``ConfigError`` if there is none now."""
    (config,) = compose_runs([f"solver={times.solver}", *times.options.split()])
    return config.solver


def _can_run(times: Times, config: RunConfig, dataset: Dataset | None = None) -> bool:
    """Return whether a solver of the table can take the place of another one, as contracts say."""
    try:
        solver = _solver_of(times)
        check_requirements(replace(config, solver=solver))
        if dataset is not None:
            solver.check_data(dataset.n, dataset.structure)
    except ConfigError:
        return False
    return True


# ---- after a run --------------------------------------------------------------------------------


def sooner(config: RunConfig, outcome: Outcome) -> str | None:
    """Return a sentence if another solver would have ended a run much sooner, by the crossover.

    What counts is the smallest gap of the table that the run has reached, or else the largest; on
    the nearest problem, if that has the same oracle; at the run's own mean time of a call. Runs of
    less than `LEAST_SECONDS`, with counted time, along a path or without a gap are told nothing.

    Parameters
    ----------
    config : RunConfig
    outcome : Outcome
        Of that run.
    """
    end = outcome.summary
    if outcome.status != "finished" or end.get("time", 0.0) < LEAST_SECONDS:
        return None
    if config.clock == "work" or config.path:
        return None
    reached = float(relative_gap(end["primal"], end["gap"]))
    if (known := table()) is None or math.isnan(reached) or not end["oracle_calls"]:
        return None
    of_run = read_metadata(outcome.folder)
    n, d, kind = of_run["dataset"]["n"], of_run["dataset"]["d"], config.oracle.kind
    call = end["oracle_time"] / end["oracle_calls"]
    sizes = n, d, of_run["lam"] * n
    nearest = known.nearest(Problem("", config.dataset.name, kind, "", *sizes, call, 0.0))
    gaps = known.gaps(nearest)
    gap = min((gap for gap in gaps if reached <= gap), default=gaps[0])
    ranked = known.ranked(nearest, gap, max(call, TINY))
    mine = [one for one in ranked if one.solver == config.solver.name]
    if nearest.oracle != kind or not mine or _solver_of(mine[0].times) != config.solver:
        return None
    others = [one for one in ranked if one.ratio < math.inf and _can_run(one.times, config)]
    if not others or mine[0].seconds <= MUCH_SOONER * named(others).seconds:
        return None
    best = named(others)
    text = f"On {nearest.text()}, with such calls, {best.solver} reaches a relative gap of {gap:g} "
    if math.isinf(mine[0].seconds):
        text += f"where {config.solver.name} does not"
    else:
        share = words.share(best.seconds / mine[0].seconds)
        text += f"in {share} of the time of {config.solver.name}"
    return f"{text}: see `ssvm-bench recommend dataset={config.dataset.name}`."
