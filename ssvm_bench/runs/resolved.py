"""A run is resolved once: what its config and its data determine, for everything behind.

`resolve` checks that the parts of a run fit together, loads the data and builds the oracle. Its
result has a `ResolvedRun` for each λ of the path, with the problem, λ, the hashes and the folders.
Nothing behind asks the config for them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssvm_bench.base.clock import Clock
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.progress import silence
from ssvm_bench.oracles.objective import Objective, Terms
from ssvm_bench.runs import components
from ssvm_bench.runs.requirements import (
    check_data,
    check_extras,
    check_for_workers,
    check_requirements,
)
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
    prior = components.prior_of(config.prior, terms.d)
    config = config.with_source(dataset.source)
    caller = components.caller_of(config, dataset.fingerprint, given)
    if caller is not None:
        terms = terms.called_by(caller)
    found = []
    for stage in config.path_steps():
        lam = stage.lam_of(dataset.n)
        problem = components.problem_of(terms, lam, prior)
        found.append(ResolvedRun(stage, lam, problem, terms, prior, caller, dataset))
    return found
