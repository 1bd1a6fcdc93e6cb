"""A run is resolved once: what its config and its data determine, for everything behind.

`resolve` checks that the parts of a run fit together, loads the data and builds the oracle. Its
result has a `ResolvedRun` for each λ of the path, with the problem, λ, the hashes and the folders.
Nothing behind asks the config for them again.

Packages that runs take are looked for without importing them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError, check_installed, shown
from ssvm_bench.config.schema import PriorConfig, RunConfig
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.progress import silence
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.oracles.objective import STRUCTURAL_SVM, Objective, Terms
from ssvm_bench.runs import components
from ssvm_bench.runs.components import chunk_rows
from ssvm_bench.solvers.base import Solver

if TYPE_CHECKING:
    from ssvm_bench.datasets.stream import DataStream
    from ssvm_bench.oracles.caller import Caller
    from ssvm_bench.oracles.prior import Prior


@dataclass(frozen=True, eq=False)
class ResolvedRun:
    """One run of a path; most paths have one.

    Attributes
    ----------
    config : RunConfig
        Its options, as ``config.yaml`` stores them; the source of the data is known.
    lam : float
        λ, or the weight of the regulariser that the oracle has instead.
    problem : Objective
    terms : Terms
        Those of the problem, called by the ``caller`` if there is one.
    prior : Prior or None
    caller : Caller or None
        Makes the oracle calls; not started yet.
    dataset : Dataset or DataStream
    """

    config: RunConfig
    lam: float
    problem: Objective
    terms: Terms
    prior: Prior | None
    caller: Caller | None
    dataset: Dataset | DataStream

    @cached_property
    def hash(self) -> str:
        """Hash of all that changes the computation; see `RunConfig.hash`."""
        return self.config.hash()

    @cached_property
    def own_hash(self) -> str:
        """Hash that covers the budget, too; see `RunConfig.own_hash`."""
        return self.config.own_hash()

    @cached_property
    def folder(self) -> Path:
        """Folder of the run's files, for any budget."""
        return self.config.folder_of(self.hash)

    @cached_property
    def own_folder(self) -> Path:
        """Folder of the run of this budget alone."""
        return self.config.folder_of(self.own_hash)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders where the run may be; that of its own budget comes first."""
        return tuple(dict.fromkeys((self.own_folder, self.folder)))

    def started(self, before: Solver | None = None, problem: Objective | None = None) -> Solver:
        """Return the run's solver, on its clock: a new one, or one warm-started from another λ.

        Parameters
        ----------
        before : Solver, optional
            Has solved another λ.
        problem : Objective, optional
            The run's own by default, or one with other latent values.
        """
        problem = self.problem if problem is None else problem
        clock = Clock(self.config.clock, *self.config.oracle.costs)
        clock.caller = problem.caller
        with clock.paused():
            if before is None:
                return components.build_solver(self.config, problem, clock)
            before.warm_start(problem.lam, clock)
            return before


def resolve(config: RunConfig, given: Dataset | None = None) -> list[ResolvedRun]:
    """Resolve a run and those of its path before it; the last one is the run itself.

    Parameters
    ----------
    config : RunConfig
    given : Dataset, optional
        The examples of a Python program, in place of those that the config names.

    Raises
    ------
    ConfigError
        If dataset, oracle, solver, budget and workers do not fit together.
    RunFailedError
        If the data cannot be loaded, or the oracle cannot be built.
    """
    check_requirements(config)
    dataset: Any = given
    if given is None:
        check_extras([config])
        rows = components.chunk_rows(config)
        with silence(config.quiet):
            dataset = components.load_dataset(config.dataset, rows)
    check_data(config, dataset)
    if given is None:
        terms = components.build_oracle(config.oracle, config.dataset, rows)
    else:
        terms = components.oracle_of(config.oracle, given)
    if config.parallel.elsewhere:
        check_for_workers(terms, config.oracle.name)
    if config.parallel.in_threads:
        check_for_threads(terms, config.oracle.name)
    prior = components.prior_of(config.prior, terms.d)
    config = config.with_source(dataset.source)
    fingerprint = dataset.fingerprint if given is None else ""  # who is given them need not compare
    caller = components.caller_of(config, fingerprint, given)
    if caller is not None:
        terms = terms.called_by(caller)
    found = []
    for stage in config.path_steps():
        lam = stage.lam_of(dataset.n)
        problem = components.problem_of(terms, lam, prior)
        found.append(ResolvedRun(stage, lam, problem, terms, prior, caller, dataset))
    return found


# ---- What goes together -----------------------------------------------------------------------

_LARGEST = 1e300
"""A bound on values in float64, with a margin for sums."""


_TOGETHER: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(facts), sentence)
    for facts, sentence in (
        (
            ("rounds", "latent", "path"),
            "solver.latent_rounds={rounds} take a path of λ: leave path empty, or set it to 1.",
        ),
        (
            ("rounds", "no latent"),
            "solver.latent_rounds={rounds} are for oracles with latent values, as oracle=latent, "
            "without example weights, or set it to 1.",
        ),
        (
            ("no dual", "gap alone"),
            "solver={solver} has no dual value, so that budget.gap_tol never ends the run. "
            "Set budget.max_iterations or budget.max_seconds.",
        ),
        (
            ("families",),
            "solver={solver} solves problems of the family {family}, and oracle={oracle} makes one "
            "of the family {of_oracle}. Choose another solver, or a dataset of the solver's family "
            "(`ssvm-bench list` shows them).",
        ),
        (
            ("kernel", "no kernels"),
            "solver={solver} needs weights of features, and oracle.kernel has none. Choose bcfw, "
            "mpbcfw or one of their variants, or oracle.kernel=linear.",
        ),
        (
            ("kernel", "prior"),
            "prior is one of the weights of features, and oracle.kernel has none. Leave it out.",
        ),
        (
            ("nonnegative", "any sign"),
            "solver={solver} does not keep a weight ≥ 0, as oracle.potts=learned needs: choose "
            "bcfw, mpbcfw or one of its variants, or dcd; or give a number for potts, as "
            "oracle.potts=1 does.",
        ),
        (
            ("nonnegative", "other scales"),
            "oracle.potts=learned needs prior.mean=0, and as prior.variance one number: leave the "
            "prior out.",
        ),
        (
            ("chunks", "all examples"),
            "oracle.class_weight=balanced counts the examples of each class, and those of a stream "
            "are read in chunks. Give a weight for each label, as oracle.class_weight={{0:1,1:2}}, "
            "or choose a solver that loads them all.",
        ),
        (
            ("constraint", "other signs"),
            "solver={solver} with {constraint} needs prior.mean=0, and as prior.variance a number "
            "or one per weight: under another prior, the sign of a weight is not that of a "
            "variable of the solver.",
        ),
        (
            ("expectations", "other scales"),
            "solver={solver} needs the expectations of a distribution over labelings, which no "
            "oracle has under a prior other than prior.mean=0 and one variance for all weights. "
            "Choose another solver.",
        ),
        (
            ("threads", "cpu"),
            "clock=cpu adds up the seconds of all threads, so that parallel.threads would seem to "
            "gain nothing. Use clock=wall or clock=work.",
        ),
        (
            ("threads", "workers"),
            "parallel.threads are for an oracle in this process, and parallel.workers and "
            "parallel.address for one in others. Leave one of them out.",
        ),
        (
            ("calls", "no max-oracle"),
            "{calls} is for the max-oracle of a structural SVM, and oracle={oracle} makes a "
            "problem without one. Leave it out.",
        ),
        (
            ("calls", "kernel"),
            "{calls} is for oracles whose calls take long. With oracle.kernel it is kernel values "
            "that do, and the solver computes them. Leave it out.",
        ),
        (
            ("calls", "cpu"),
            "clock=cpu counts the seconds of this process, in which {calls} takes none. Use "
            "clock=wall or clock=work.",
        ),
        (
            ("parallel", "expectations"),
            "solver={solver} asks the oracle for expectations, all at once and in this process. "
            "Leave parallel out, or choose another solver.",
        ),
        (
            ("workers", "chunks"),
            "parallel.workers and parallel.address cannot be used. Workers load all examples, and "
            "solver={solver} reads them in chunks.",
        ),
        (
            ("workers", "rounds"),
            "parallel.workers and parallel.address cannot be used. Latent values change with "
            "solver.latent_rounds > 1, and workers keep the first ones.",
        ),
    )
)
"""What does not go together: facts about a run, as `check_requirements` names them, and why."""


def check_requirements(config: RunConfig) -> None:
    """Check that solver, oracle, budget and workers fit together, before anything is loaded.

    What a solver needs and what an oracle offers are data on the classes of their configs.

    Raises
    ------
    ConfigError
        If they do not fit together.
    """
    solver, oracle, prior, parallel = config.solver, config.oracle, config.prior, config.parallel
    oracle.check_regulariser(config.lam is not None or bool(config.path or prior.text()))
    solver.check_path(bool(config.path))
    solver.check_oracle(oracle.has_expectations)
    mean, variance = prior.moments()
    chunks = chunk_rows(config) is not None
    if chunks:
        solver.check_chunks()
    asked = parallel.elsewhere or parallel.in_threads or parallel.batch > 1
    facts = {
        "path": bool(config.path),
        "rounds": solver.latent_rounds > 1,
        "latent": oracle.has_latent,
        "no latent": not oracle.has_latent,
        "no dual": not solver.has_dual,
        "gap alone": config.budget.max_iterations is None and config.budget.max_seconds is None,
        "families": oracle.family != solver.family,
        "no max-oracle": oracle.family != STRUCTURAL_SVM,
        "expectations": solver.needs_expectations,
        "kernel": oracle.has_kernel,
        "no kernels": not solver.takes_kernels,
        "nonnegative": oracle.needs_nonnegative,
        "any sign": not solver.keeps_nonnegative,
        "constraint": bool(solver.constraint),
        "prior": prior != PriorConfig(),
        "other scales": not prior.is_another_lam(),
        "other signs": bool(mean.any()) or variance.ndim == 2,
        "chunks": chunks,
        "all examples": oracle.needs_all_examples,
        "cpu": config.clock == "cpu",
        "calls": asked or oracle.delay > 0,
        "parallel": asked,
        "workers": parallel.elsewhere,
        "threads": parallel.in_threads,
    }
    held = {fact for fact, holds in facts.items() if holds}
    for together, sentence in _TOGETHER:
        if together <= held:
            raise ConfigError(
                sentence.format(
                    solver=solver.name,
                    oracle=oracle.name,
                    family=solver.family,
                    of_oracle=oracle.family,
                    rounds=solver.latent_rounds,
                    constraint=solver.constraint,
                    calls="parallel" if asked else "oracle.delay",
                )
            )


def check_data(config: RunConfig, examples: Dataset | DataStream) -> None:
    """Check that solver and λ fit the data, before anything is compiled.

    If examples are read in chunks, the first chunk represents all of them.

    Raises
    ------
    ConfigError
        If there are too few examples, if their structure does not fit the solver, or if numbers of
        this size would overflow.
    """
    dataset = examples
    if not isinstance(dataset, Dataset):
        dataset = next(examples.chunks(config.solver.chunk_rows or 1))
    values = dataset.x if isinstance(dataset.x, np.ndarray) else dataset.x.data
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    largest *= config.oracle.largest_cost(dataset)
    parts = math.ceil(dataset.y.size / dataset.n * examples.n)
    lams = [stage.lam_of(examples.n) for stage in config.path_steps()]
    _check_sizes(lams, config.prior, largest, parts)
    if config.oracle.has_kernel:
        config.oracle.made().rows_kept(parts)
    config.solver.check_data(examples.n, dataset.structure)


def _check_sizes(lams: list[float], prior: PriorConfig, largest: float, parts: int) -> None:
    """Raise ``ConfigError`` if numbers can overflow with features of up to ``largest``."""
    bound = max(largest, 1.0) * parts  # a generous bound on ‖φ⋆‖
    mean, variance = prior.moments()
    widest = float(np.trace(variance) if variance.ndim == 2 else variance.max())
    of = f"features of up to {largest:g}" + f" and variances of up to {widest:g}" * (widest != 1.0)
    for lam in lams:
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


def check_for_workers(terms: Any, name: str) -> None:
    """Raise ``ConfigError`` if results of an oracle, which workers are to call, depend on others.

    ``name`` is that of the oracle.
    """
    if isinstance(terms, Oracle) and terms.fresh() is not terms:
        raise ConfigError(
            f"The answers of oracle={name} depend on its earlier calls, so that "
            "workers would not find what one oracle finds. Set oracle.warm_start=false, or "
            "parallel.workers=1 without an address."
        )


def check_for_threads(terms: Any, name: str) -> None:
    """Raise ``ConfigError`` unless an oracle can be called by several threads at a time.

    ``name`` is that of the oracle.
    """
    if not getattr(terms, "takes_threads", False):
        raise ConfigError(
            f"oracle={name} cannot be called by several threads: its calls are not compiled "
            "kernels, or depend on earlier ones (oracle.engine=pymaxflow, oracle.warm_start). Use "
            "parallel.workers, which are processes, or leave parallel.threads out."
        )


# ---- Packages ---------------------------------------------------------------------------------


def check_extras(configs: Iterable[RunConfig]) -> None:
    """Check that the packages that runs take are installed, before any of the runs begins.

    Raises
    ------
    ConfigError
        Names what takes the first one that is missing, and how to install it.
    """
    asked: dict[tuple[str, str], None] = {}
    for config in configs:
        if extra := sources.extra_of(config.dataset):
            asked[extra, f"dataset={shown(config.dataset.name)}"] = None
        if extra := config.oracle.extra:
            asked[extra, f"oracle.engine={shown(config.oracle.engine)}"] = None
        if config.parallel.address is not None:
            asked["dask", f"The dask scheduler at {shown(config.parallel.address)}"] = None
    for extra, by in asked:
        check_installed(extra, by)
