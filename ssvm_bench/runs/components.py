"""Builds what a run needs from its config: dataset, oracle and solver, with compiled kernels.

Oracle calls are executed by the oracle itself, by this process in batches, in one thread or
several, by other processes, or by the workers of a dask scheduler.
"""

from __future__ import annotations

import functools
import logging
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.threads import Team, available, usual
from ssvm_bench.config import registry
from ssvm_bench.config.schema import Parallel, PriorConfig, RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.oracles.objective import Objective, Terms
from ssvm_bench.results.provenance import THREAD_VARIABLES
from ssvm_bench.runs.compiling import in_turn, kernels_for
from ssvm_bench.solvers.base import Solver, SolverConfig

if TYPE_CHECKING:
    from ssvm_bench.datasets.stream import DataStream
    from ssvm_bench.oracles.caller import Caller
    from ssvm_bench.oracles.prior import Prior

logger = logging.getLogger(__name__)

T = TypeVar("T")

_VECTORS = 4
"""Vectors of d numbers that every run needs: w, a gradient, and those of evaluations."""

_WARM_UP_ITERATIONS = 11  # one more than the solvers' longest period


def chunk_rows(config: RunConfig) -> int | None:
    """Return how many examples a run holds in memory at a time; None: all.

    It is None unless the solver trains on streams, and the dataset's module opens one.
    """
    opens = hasattr(registry.module("dataset", config.dataset.kind), "open")
    rows: int | None = config.solver.chunk_rows
    return rows if opens else None


@functools.lru_cache(maxsize=1)
def load_dataset(config: Any, rows: int | None = None) -> Dataset | DataStream:
    """Load a dataset, or open it for reading in chunks of ``rows`` examples; cache the last one."""
    module = registry.module("dataset", config.kind)
    with registry.blamed("dataset", config.kind):
        found = module.load(config) if rows is None else module.open(config)
    if not (isinstance(found, Dataset) if rows is None else hasattr(found, "chunks")):
        raise RunFailedError(
            f"The loader of dataset={config.name} returned {type(found).__name__}, not a Dataset: "
            "see ssvm_bench/datasets/base.py for what it has to return."
        )
    return found


def build_oracle(config: Any, dataset_config: Any, rows: int | None = None) -> Any:
    """Load a dataset and build its oracle; cache the last one for the next run of a sweep.

    An oracle writes to scratch, so each thread that makes runs has one of its own.
    """
    return oracle_of_thread(threading.get_ident(), config, dataset_config, rows)


@functools.lru_cache(maxsize=1)
def oracle_of_thread(_: int, config: Any, dataset_config: Any, rows: int | None) -> Any:
    """Return what `build_oracle` does, for a thread."""
    return oracle_of(config, load_dataset(dataset_config, rows), rows)


def oracle_of(config: Any, dataset: Any, rows: int | None = None, predicts: bool = False) -> Any:
    """Build the `Terms` of a problem: an oracle, or the terms of another family.

    With ``predicts``, it is for predictions alone.
    """
    module = registry.module("oracle", config.kind)
    make = getattr(module, "predictor", module.build) if predicts else module.build
    build = functools.partial(make, config)
    with registry.blamed("oracle", config.kind):
        if rows is None:
            built = build(dataset)
        else:
            from ssvm_bench.oracles.chunked import ChunkedOracle

            built = ChunkedOracle(dataset, build, rows)
    sizes = [getattr(built, name, None) for name in ("n", "d")]
    if not isinstance(built, Terms) or not all(
        isinstance(size, int | np.integer) and size > 0 for size in sizes
    ):
        raise RunFailedError(
            f"oracle={config.name} built {type(built).__name__} with n = {sizes[0]} and d = "
            f"{sizes[1]}, not an Oracle with two numbers above 0: see ssvm_bench/oracles/base.py."
        )
    check_room(
        (0.0 if predicts else _VECTORS) * 8.0 * built.d,
        f"A run with d = {built.d} weights",
        "Use fewer features or labels: one index that is too large is enough for so many.",
    )
    return built


def prior_of(options: PriorConfig, d: int) -> Prior | None:
    """Return the prior of d weights; None if the run sets none. Raises as `build` does."""
    if options == PriorConfig():
        return None
    from ssvm_bench.oracles.prior import build

    return build(options, d)


def problem_of(terms: Terms, lam: float, prior: Prior | None) -> Objective:
    """Return the problem of these terms with λ and a prior."""
    if prior is None:
        return terms.problem(lam)
    from ssvm_bench.oracles.prior import with_prior

    return with_prior(terms, lam, prior)


def build_solver(config: RunConfig, problem: Objective, clock: Clock) -> Solver:
    """Build the solver of a run, at its start, with a `fresh` problem."""
    module = registry.module("solver", config.solver.kind)
    with registry.blamed("solver", config.solver.kind):
        built = module.build(config.solver, problem.fresh(), clock, config.seed)
        if not isinstance(built, Solver):
            wrong = f"solver={config.solver.name} built {type(built).__name__}, not a Solver"
            raise TypeError(f"{wrong}: see ssvm_bench/solvers/base.py")
    return built


def warm_up(
    config: RunConfig,
    dataset: Dataset | DataStream,
    prior: Prior | None = None,
    called: bool = False,
) -> None:
    """Compile, or load from the disk cache, every kernel of the run on its first examples.

    Two examples are enough, unless the solver's config has a larger ``least_n``. One process at a
    time compiles (`in_turn`). With ``called``, others call the oracle: the kernels that take the
    returned labelings are compiled, and so is the maximisation itself.
    """
    head = dataset.head(max(2, config.solver.least_n))
    what = kernels_for(head.structure, f" of solver={config.solver.name}")
    in_turn(functools.partial(_warm_up, config, head, prior, called), what)


def _warm_up(config: RunConfig, head: Any, prior: Prior | None, called: bool) -> None:
    kind = config.solver.kind
    with registry.blamed("oracle", config.oracle.kind), registry.blamed("solver", kind):
        terms = registry.module("oracle", config.oracle.kind).build(config.oracle, head)
        if called:
            from ssvm_bench.oracles.caller import Caller

            team = Team(2 if config.parallel.in_threads else 1)
            terms = terms.called_by(Caller(batch=config.parallel.batch, team=team))
        fits = prior is not None and prior.mean.size == terms.d
        problem = problem_of(terms, 1.0, prior if fits else None)
        # a clock of work that costs nothing: no approximate pass seems to pay, so one is done
        solver = build_solver(config, problem, Clock("work"))
        solver.begin()
        for _ in range(_WARM_UP_ITERATIONS):
            solver.iterate()
        problem.measured(solver.reported().w)
        if config.path:
            solver.warm_start(0.5, Clock("work"))
        if config.solver.latent_rounds > 1:
            better, _ = problem.update_latent(np.ones(problem.d))
            solver.update_latent(better)
        if called:
            team.close()


# ---- callers of the oracle --------------------------------------------------------------------


def caller_of(config: RunConfig, fingerprint: str, dataset: Dataset | None = None) -> Caller | None:
    """Return the caller of the oracle, not started yet; None if the oracle makes its own calls.

    Parameters
    ----------
    config : RunConfig
        Its dataset's source is known.
    fingerprint : str
        Of the dataset.
    dataset : Dataset, optional
        Examples that are in no file: they are sent to the workers.
    """
    parallel = config.parallel
    how: dict[str, Any] = {"batch": parallel.batch, "delay": float(config.oracle.delay)}
    if parallel.in_threads:
        assert parallel.threads is not None
        how["team"] = team_of(parallel)
        if how["team"].size < parallel.threads:
            logger.warning(
                "parallel.threads=%s: there are %s, as this process may use no more cores.",
                *(parallel.threads, how["team"].size),
            )
        _warn_of_idle(config.solver, "threads", how["team"].size, parallel.batch)
    if not parallel.elsewhere:
        if how == {"batch": 1, "delay": 0.0}:
            return None
        from ssvm_bench.oracles.caller import Caller

        return Caller(**how)
    _warn_of_idle(config.solver, "workers", parallel.workers, parallel.batch)
    if dataset is None:
        build = functools.partial(oracle_elsewhere, config.oracle, config.dataset, fingerprint)
    else:
        build = functools.partial(oracle_of, config.oracle, dataset)
    from ssvm_bench.oracles.workers import Cluster, Pool

    if parallel.address is not None:
        return Cluster(build, parallel.workers, parallel.address, **how)
    return Pool(build, parallel.workers, dict.fromkeys(THREAD_VARIABLES, "1"), **how)


def team_of(parallel: Parallel) -> Team:
    """Return the threads of a run, at most one for each core that this process may use."""
    return Team(usual() if parallel.threads is None else min(parallel.threads, available()))


def _warn_of_idle(solver: SolverConfig, who: str, P: int, batch: int) -> None:
    """Warn if the solver calls the oracle for fewer terms at one w than there are callers."""
    if P > 1 and solver.at_one_w == "one":
        logger.warning(
            "solver=%s calls the oracle for one term at a time: parallel.%s=%s has little effect.",
            *(solver.name, who, P),
        )
    elif batch < P and solver.at_one_w == "batch":
        logger.warning(
            "With parallel.batch=%s, solver=%s has work for at most %s of %s %s at a time. "
            "Set parallel.batch=%s, for instance, which makes another run.",
            *(batch, solver.name, batch, P, who, 4 * P),
        )


def oracle_elsewhere(oracle: Any, dataset: Any, fingerprint: str) -> Oracle:
    """Build the oracle of a run in the process of a worker.

    Raises
    ------
    RunFailedError
        If the worker's data differ from the run's.
    """
    found = load_dataset(dataset).fingerprint
    if found != fingerprint:
        raise RunFailedError(
            f"A worker has other data of {dataset.name} than the run: their fingerprint is "
            f"{found}, not {fingerprint}. Give all machines the same files."
        )
    return build_oracle(oracle, dataset)
