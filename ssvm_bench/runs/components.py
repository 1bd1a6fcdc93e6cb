"""From a config to what a run works with: dataset, oracle and solver, with compiled kernels.

The oracle of a run is called by itself, by this process batch by batch, by other processes, or by
the workers of a dask scheduler.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.memory import check_room
from ssvm_bench.config import registry
from ssvm_bench.config.prior import PriorConfig
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Oracle, OracleConfig
from ssvm_bench.oracles.objective import STRUCTURAL_SVM, Objective, Terms
from ssvm_bench.results.provenance import THREAD_VARIABLES
from ssvm_bench.runs.compiling import in_turn
from ssvm_bench.solvers.base import Solver, SolverConfig

if TYPE_CHECKING:
    from ssvm_bench.datasets.stream import DataStream
    from ssvm_bench.oracles.caller import Caller
    from ssvm_bench.oracles.prior import Prior

_LARGEST = 1e300
"""A bound of what float64 holds, with room for sums."""

_VECTORS = 4
"""Of d numbers that any run has at least: w, a gradient, and what evaluations take."""

_WARM_UP_ITERATIONS = 11  # one more than the solvers' longest period


def chunk_rows(config: RunConfig) -> int | None:
    """Return how many examples a run has in memory at a time; None: all.

    All, unless the solver trains on streams, and the dataset's module opens one.
    """
    opens = hasattr(registry.module("dataset", config.dataset.kind), "open")
    return getattr(config.solver, "chunk_rows", None) if opens else None


@functools.lru_cache(maxsize=1)
def load_dataset(config: Any, rows: int | None = None) -> Dataset | DataStream:
    """Load a dataset, or open it to be read in chunks of so many rows; the last one is kept."""
    module = registry.module("dataset", config.kind)
    with registry.blamed("dataset", config.kind):
        found = module.load(config) if rows is None else module.open(config)
    if not (isinstance(found, Dataset) if rows is None else hasattr(found, "chunks")):
        raise RunFailedError(
            f"The loader of dataset={config.name} returned {type(found).__name__}, not a Dataset: "
            "see ssvm_bench/datasets/base.py for what it has to return."
        )
    return found


@functools.lru_cache(maxsize=1)
def build_oracle(config: Any, dataset_config: Any, rows: int | None = None) -> Any:
    """Do `oracle_of` for a dataset; the last terms are kept for the next run of a sweep."""
    return oracle_of(config, load_dataset(dataset_config, rows), rows)


def oracle_of(config: Any, dataset: Any, rows: int | None = None) -> Any:
    """Build what a problem is made of, its `Terms`: an oracle, or those of another family."""
    build = functools.partial(registry.module("oracle", config.kind).build, config)
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
        _VECTORS * 8.0 * built.d,
        f"A run with d = {built.d} weights",
        "Use fewer features or labels: one index that is too large is enough for so many.",
    )
    return built


def prior_of(config: RunConfig, d: int) -> Prior | None:
    """Return the prior of d weights; None: nothing is said of it. Raises what `build` does."""
    if config.prior == PriorConfig():
        return None
    from ssvm_bench.oracles.prior import build

    return build(config.prior, d)


def problem_of(terms: Terms, lam: float, prior: Prior | None) -> Objective:
    """Return the problem of these terms with λ and a prior."""
    if prior is None:
        return terms.problem(lam)
    from ssvm_bench.oracles.prior import with_prior

    return with_prior(terms, lam, prior)


def held_out_loss(config: Any, trained: Any, examples: Dataset, w: np.ndarray) -> float:
    """Return the mean loss of predictions for held-out examples, by terms made for that."""
    oracle = registry.module("oracle", config.kind).build(config, examples)
    if getattr(config, "has_kernel", False):
        oracle = oracle.over(trained.x)
    if examples.unseen is None:
        return float(oracle.mean_loss(w))
    return loss_of_labels(getattr(oracle, "loss_matrix", None), examples, oracle.predictions(w))


def loss_of_labels(matrix: np.ndarray | None, examples: Dataset, predicted: np.ndarray) -> float:
    """Return the mean loss of predicted labels of parts: by a matrix, or the share of wrong ones.

    A part whose true label training does not know has the largest loss that there is.
    """
    losses = predicted != examples.y if matrix is None else matrix[examples.y, predicted]
    if examples.unseen is not None:
        losses = np.where(examples.unseen.mask, 1.0 if matrix is None else matrix.max(), losses)
    shares = np.add.reduceat(losses, examples.offsets[:-1]) / np.diff(examples.offsets)
    return float(shares.mean())


def build_solver(config: RunConfig, problem: Objective, clock: Clock) -> Solver:
    """Build the solver of a run, at its start, with a problem of its own."""
    module = registry.module("solver", config.solver.kind)
    own = problem.fresh()
    with registry.blamed("solver", config.solver.kind):
        built = module.build(config.solver, own, clock, config.seed)
        if not isinstance(built, Solver):
            wrong = f"solver={config.solver.name} built {type(built).__name__}, not a Solver"
            raise TypeError(f"{wrong}: see ssvm_bench/solvers/base.py")
    return built


def started(config: RunConfig, problem: Objective, before: Solver | None) -> Solver:
    """Return the solver of a run, on its clock: a new one, or that which has solved another λ."""
    clock = Clock(config.clock, *config.oracle.costs)
    clock.caller = problem.caller
    with clock.paused():
        if before is None:
            return build_solver(config, problem, clock)
        before.warm_start(problem.lam, clock)
        return before


def check_requirements(config: RunConfig) -> None:
    """Check what solver, oracle and budget need of each other, before anything is loaded.

    Raises
    ------
    ConfigError
        If they do not fit together.
    """
    solver, oracle, budget = config.solver, config.oracle, config.budget
    if isinstance(oracle, OracleConfig):
        stated = config.lam is not None or config.path or config.prior.text()
        oracle.check_regulariser(bool(stated))
    if not isinstance(solver, SolverConfig):  # of another package, and says nothing of itself
        return
    solver.check_path(bool(config.path))
    solver.check_latent(getattr(config.oracle, "has_latent", False), bool(config.path))
    if not solver.has_dual and budget.max_iterations is None and budget.max_seconds is None:
        raise ConfigError(
            f"solver={solver.name} has no dual value, so that budget.gap_tol never ends the run. "
            "Set budget.max_iterations or budget.max_seconds."
        )
    solver.check_family(oracle.family, oracle.name)
    solver.check_oracle(oracle.has_expectations)
    solver.check_kernel(oracle.has_kernel)
    if oracle.has_kernel and config.prior != PriorConfig():
        raise ConfigError(
            "prior is one of the weights of features, which oracle.kernel has not. Leave it out."
        )
    solver.check_nonnegative(oracle.needs_nonnegative)
    if oracle.needs_nonnegative and not config.prior.is_another_lam():
        raise ConfigError(
            "oracle.potts=learned needs prior.mean=0, and as prior.variance one number: leave the "
            "prior out."
        )
    if chunk_rows(config) is not None:
        solver.check_chunks()
        if oracle.needs_all_examples:
            raise ConfigError(
                "oracle.class_weight=balanced counts the examples of each class, and those of a "
                "stream are read in chunks. Give a weight for each label, as "
                "oracle.class_weight={0:1,1:2}, or choose a solver that loads them all."
            )
    solver.check_prior(*config.prior.moments())
    if solver.needs_expectations and not config.prior.is_another_lam():
        raise ConfigError(
            f"solver={solver.name} needs the expectations of a distribution over labelings, which "
            "no oracle has under a prior other than prior.mean=0 and one variance for all weights. "
            "Choose another solver."
        )


def check_data(config: RunConfig, examples: Dataset | DataStream) -> None:
    """Check what solver and λ need of the data, before anything is compiled.

    Of examples that are read in chunks, those of the first one stand for all.

    Raises
    ------
    ConfigError
        If there are too few examples, or they are of another structure; or numbers of this size
        would overflow.
    """
    dataset = examples
    if not isinstance(dataset, Dataset):
        dataset = next(examples.chunks(chunk_rows(config) or 1))
    values = dataset.x if isinstance(dataset.x, np.ndarray) else dataset.x.data
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    largest *= config.oracle.largest_cost(dataset)
    parts = math.ceil(dataset.y.size / dataset.n * examples.n)
    _check_sizes(config, examples.n, largest, parts)
    if getattr(config.oracle, "has_kernel", False):
        config.oracle.made().rows_kept(parts)
    if isinstance(config.solver, SolverConfig):
        config.solver.check_data(examples.n, dataset.structure)


def _check_sizes(config: RunConfig, n: int, largest: float, parts: int) -> None:
    """Raise ``ConfigError`` if numbers can overflow with features of up to ``largest``."""
    bound = max(largest, 1.0) * parts  # of ‖φ⋆‖, generously
    mean, variance = config.prior.moments()
    widest = float(np.trace(variance) if variance.ndim == 2 else variance.max())
    of = f"features of up to {largest:g}" + f" and variances of up to {widest:g}" * (widest != 1.0)
    for stage in config.path_steps():
        lam = stage.lam_of(n)
        if not bound * bound * widest / lam < _LARGEST:
            raise ConfigError(
                f"lam={lam:g} is too small for {of}: ‖φ⋆‖²/λ can overflow. "
                "Use a larger lam, or scale the features."
            )
        if not lam / float(variance.max()) < _LARGEST:
            if variance.max() < 1:
                raise ConfigError(
                    f"prior.variance={widest:g} is too small: λ/σ² can overflow. Use a larger one."
                )
            raise ConfigError(f"lam={lam:g} is too large: λ/σ² can overflow. Use a smaller lam.")
    if not bound * float(np.abs(mean).max()) < _LARGEST:
        raise ConfigError(
            f"prior.mean is too large for {of}: ⟨μ, φ⋆⟩ can overflow. Use a smaller one."
        )


def warm_up(
    config: RunConfig,
    dataset: Dataset | DataStream,
    prior: Prior | None = None,
    called: bool = False,
) -> None:
    """Compile, or load from the disk cache, every kernel of the run on its first examples.

    Two are enough, unless the solver's config has a larger ``least_n``. One process at a time
    compiles (:mod:`ssvm_bench.runs.compiling`). Of an oracle that is ``called`` by others, compiled
    are what is done with its answers, and the maximisation itself.
    """
    head = dataset.head(max(2, getattr(config.solver, "least_n", 2)))
    in_turn(functools.partial(_warm_up, config, head, prior, called))


def _warm_up(config: RunConfig, head: Any, prior: Prior | None, called: bool) -> None:
    kind = config.solver.kind
    with registry.blamed("oracle", config.oracle.kind), registry.blamed("solver", kind):
        terms = registry.module("oracle", config.oracle.kind).build(config.oracle, head)
        if called:
            from ssvm_bench.oracles.caller import SerialCaller

            terms = terms.called_by(SerialCaller(batch=config.parallel.batch))
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
        if getattr(config.solver, "latent_rounds", 1) > 1:
            better, _ = problem.update_latent(np.ones(problem.d))
            solver.update_latent(better)


# ---- who calls the oracle ---------------------------------------------------------------------


def caller_of(config: RunConfig, fingerprint: str, dataset: Dataset | None = None) -> Caller | None:
    """Return who is to call the oracle; None: it calls itself. Nothing is started yet.

    Parameters
    ----------
    config : RunConfig
        Whose dataset's source is known.
    fingerprint : str
        Of the dataset.
    dataset : Dataset, optional
        Examples that are in no files, and are sent to the processes that call.
    """
    parallel, how = config.parallel, _how(config)
    named: dict[str, Any] = dict(zip(("batch", "delay"), how, strict=True))
    if not parallel.elsewhere:
        if how == _AT_ONCE:
            return None
        from ssvm_bench.oracles.caller import SerialCaller

        return SerialCaller(**named)
    if dataset is None:
        build = functools.partial(oracle_elsewhere, config.oracle, config.dataset, fingerprint)
    else:
        build = functools.partial(oracle_of, config.oracle, dataset)
    from ssvm_bench.oracles.workers import Cluster, Pool

    if parallel.address is not None:
        return Cluster(build, parallel.workers, parallel.address, **named)
    return Pool(build, parallel.workers, dict.fromkeys(THREAD_VARIABLES, "1"), **named)


def oracle_elsewhere(oracle: Any, dataset: Any, fingerprint: str) -> Oracle:
    """Build the oracle of a run in the process of a worker.

    Raises
    ------
    RunFailedError
        If the data there are others.
    """
    found = load_dataset(dataset).fingerprint
    if found != fingerprint:
        raise RunFailedError(
            f"A worker has other data of {dataset.name} than the run: their fingerprint is "
            f"{found}, not {fingerprint}. Give all machines the same files."
        )
    return build_oracle(oracle, dataset)


def check_calls(config: RunConfig) -> None:
    """Check that others can make the oracle calls of a run, and slow ones, before data are loaded.

    Raises
    ------
    ConfigError
        If they cannot.
    """
    solver, parallel, how = config.solver, config.parallel, _how(config)
    asked = "parallel" if parallel.elsewhere or parallel.batch > 1 else "oracle.delay"
    if not parallel.elsewhere and how == _AT_ONCE:
        return
    if getattr(config.oracle, "family", STRUCTURAL_SVM) != STRUCTURAL_SVM:
        raise ConfigError(
            f"{asked} is for the max-oracle of a structural SVM, and oracle={config.oracle.name} "
            "makes a problem without one. Leave it out."
        )
    if getattr(config.oracle, "has_kernel", False):
        raise ConfigError(
            f"{asked} is for oracles whose calls take long. With oracle.kernel it is "
            "kernel values that do, and the solver computes them. Leave it out."
        )
    if config.clock == "cpu":
        raise ConfigError(
            f"clock=cpu counts the seconds of this process, in which {asked} takes none. "
            "Use clock=wall or clock=work."
        )
    if getattr(solver, "needs_expectations", False) and asked == "parallel":
        raise ConfigError(
            f"solver={solver.name} asks the oracle for expectations, all at once and in this "
            "process. Leave parallel out, or choose another solver."
        )
    if not parallel.elsewhere:
        return
    why = None
    if chunk_rows(config) is not None:
        why = f"Workers load all examples, and solver={solver.name} reads them in chunks."
    elif getattr(solver, "latent_rounds", 1) > 1:
        why = (
            "Workers do not know of latent values that change, as solver.latent_rounds > 1 has it."
        )
    if why is not None:
        raise ConfigError(f"parallel.workers and parallel.address cannot be used. {why}")


def check_oracle(config: RunConfig, terms: Any) -> None:
    """Raise ``ConfigError`` if answers depend on who was asked before, and there are several."""
    if config.parallel.elsewhere and isinstance(terms, Oracle) and terms.fresh() is not terms:
        raise ConfigError(
            f"The answers of oracle={config.oracle.name} depend on its earlier calls, so that "
            "workers would not find what one oracle finds. Set oracle.warm_start=false, or "
            "parallel.workers=1 without an address."
        )


_AT_ONCE = 1, 0.0


def _how(config: RunConfig) -> tuple[int, float]:
    """Return how many terms are asked for at one w, and the seconds that are waited before each."""
    return config.parallel.batch, float(getattr(config.oracle, "delay", 0.0))
