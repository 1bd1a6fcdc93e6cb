"""Checks that solver, oracle, budget, data and workers fit together, before a run begins.

Packages that runs take are looked for without importing them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ssvm_bench.base.errors import ConfigError, check_installed, shown
from ssvm_bench.config.prior import PriorConfig
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Oracle, OracleConfig
from ssvm_bench.oracles.objective import STRUCTURAL_SVM
from ssvm_bench.runs.components import AT_ONCE, batch_and_delay, chunk_rows
from ssvm_bench.solvers.base import SolverConfig

if TYPE_CHECKING:
    from ssvm_bench.datasets.stream import DataStream

_LARGEST = 1e300
"""A bound on values in float64, with a margin for sums."""


def check_requirements(config: RunConfig) -> None:
    """Check that solver, oracle, budget and workers fit together, before anything is loaded.

    Raises
    ------
    ConfigError
        If they do not fit together.
    """
    if isinstance(config.oracle, OracleConfig):
        has_lam = config.lam is not None or bool(config.path or config.prior.text())
        config.oracle.check_regulariser(has_lam)
    if isinstance(config.solver, SolverConfig):  # one of another package may declare nothing
        _check_solver(config, config.solver, config.oracle)
    _check_calls(config)


def _check_solver(config: RunConfig, solver: SolverConfig, oracle: Any) -> None:
    budget, prior = config.budget, config.prior
    solver.check_path(bool(config.path))
    has_latent = getattr(oracle, "has_latent", False)
    if solver.latent_rounds > 1 and (config.path or not has_latent):
        why = (
            "take a path of λ: leave path empty"
            if has_latent
            else "are for oracles with latent values, as oracle=latent, without example weights"
        )
        raise ConfigError(f"solver.latent_rounds={solver.latent_rounds} {why}, or set it to 1.")
    if not solver.has_dual and budget.max_iterations is None and budget.max_seconds is None:
        raise ConfigError(
            f"solver={solver.name} has no dual value, so that budget.gap_tol never ends the run. "
            "Set budget.max_iterations or budget.max_seconds."
        )
    if oracle.family != solver.family:
        raise ConfigError(
            f"solver={solver.name} solves problems of the family {solver.family}, and "
            f"oracle={oracle.name} makes one of the family {oracle.family}. Choose another solver, "
            "or a dataset of the solver's family (`ssvm-bench list` shows them)."
        )
    solver.check_oracle(oracle.has_expectations)
    if oracle.has_kernel and not solver.takes_kernels:
        raise ConfigError(
            f"solver={solver.name} needs weights of features, and oracle.kernel has none. "
            "Choose bcfw, mpbcfw or one of their variants, or oracle.kernel=linear."
        )
    if oracle.has_kernel and prior != PriorConfig():
        raise ConfigError(
            "prior is one of the weights of features, and oracle.kernel has none. Leave it out."
        )
    if oracle.needs_nonnegative and not solver.keeps_nonnegative:
        raise ConfigError(
            f"solver={solver.name} does not keep a weight ≥ 0, as oracle.potts=learned needs: "
            "choose bcfw, mpbcfw or one of its variants, or dcd; or give a number for "
            "potts, as oracle.potts=1 does."
        )
    if oracle.needs_nonnegative and not prior.is_another_lam():
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
    mean, variance = prior.moments()
    if solver.constraint and (mean.any() or variance.ndim == 2):  # signs that it does not preserve
        raise ConfigError(
            f"solver={solver.name} with {solver.constraint} needs prior.mean=0, and as "
            "prior.variance a number or one per weight: under another prior, the sign of a "
            "weight is not that of a variable of the solver."
        )
    if solver.needs_expectations and not prior.is_another_lam():
        raise ConfigError(
            f"solver={solver.name} needs the expectations of a distribution over labelings, which "
            "no oracle has under a prior other than prior.mean=0 and one variance for all weights. "
            "Choose another solver."
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
    bound = max(largest, 1.0) * parts  # a generous bound on ‖φ⋆‖
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


def _check_calls(config: RunConfig) -> None:
    """Raise ``ConfigError`` unless the run allows its workers, batches and delays of calls."""
    solver, parallel, how = config.solver, config.parallel, batch_and_delay(config)
    asked = "parallel" if parallel.elsewhere or parallel.batch > 1 else "oracle.delay"
    if not parallel.elsewhere and how == AT_ONCE:
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
        why = "Latent values change with solver.latent_rounds > 1, and workers keep the first ones."
    if why is not None:
        raise ConfigError(f"parallel.workers and parallel.address cannot be used. {why}")


def check_oracle(config: RunConfig, terms: Any) -> None:
    """Raise ``ConfigError`` if workers call an oracle whose results depend on earlier calls."""
    if config.parallel.elsewhere and isinstance(terms, Oracle) and terms.fresh() is not terms:
        raise ConfigError(
            f"The answers of oracle={config.oracle.name} depend on its earlier calls, so that "
            "workers would not find what one oracle finds. Set oracle.warm_start=false, or "
            "parallel.workers=1 without an address."
        )


# ---- Packages ---------------------------------------------------------------------------------


def check_extras(configs: Iterable[RunConfig]) -> None:
    """Check that the packages that runs take are installed, before any of the runs begins.

    Raises
    ------
    ConfigError
        Names what takes the first one that is missing, and how to install it.
    """
    asked = dict.fromkeys(need for config in configs for need in _needs(config))
    for extra, by in asked:
        check_installed(extra, by)


def _needs(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield the extras that a run takes, each with what takes it."""
    if extra := sources.extra_of(config.dataset):
        yield extra, f"dataset={shown(config.dataset.name)}"
    if extra := getattr(config.oracle, "extra", ""):
        yield extra, f"oracle.engine={shown(config.oracle.engine)}"
    if config.parallel.address is not None:
        yield "dask", f"The dask scheduler at {shown(config.parallel.address)}"
