"""Who calls a run's oracle: itself, this process batch by batch, others, or a dask scheduler's."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.oracles.objective import STRUCTURAL_SVM
from ssvm_bench.results.provenance import THREAD_VARIABLES
from ssvm_bench.runs.components import build_oracle, chunk_rows, load_dataset

if TYPE_CHECKING:
    from ssvm_bench.oracles.caller import Caller


def caller_of(config: RunConfig, fingerprint: str) -> Caller | None:
    """Return who is to call the oracle; None: it calls itself. Nothing is started yet.

    Parameters
    ----------
    config : RunConfig
        Whose dataset's source is known.
    fingerprint : str
        Of the dataset.
    """
    parallel, delay = config.parallel, _delay(config)
    how = parallel.batch, delay
    build = functools.partial(oracle_elsewhere, config.oracle, config.dataset, fingerprint)
    if not parallel.elsewhere:
        if parallel.batch == 1 and delay == 0:
            return None
        from ssvm_bench.oracles.caller import SerialCaller

        return SerialCaller(*how)
    from ssvm_bench.oracles.workers import Cluster, Pool

    if parallel.address is not None:
        return Cluster(parallel.address, build, parallel.workers, *how)
    return Pool(build, parallel.workers, *how, dict.fromkeys(THREAD_VARIABLES, "1"))


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


def check_calls(config: RunConfig, in_memory: bool = False) -> None:
    """Check that others can make the oracle calls of a run, and slow ones, before data are loaded.

    Parameters
    ----------
    config : RunConfig
    in_memory : bool
        Whether there are examples of which no other process knows.

    Raises
    ------
    ConfigError
        If they cannot.
    """
    parallel, delay = config.parallel, _delay(config)
    solver, elsewhere = config.solver, parallel.elsewhere
    asked = "parallel" if elsewhere or parallel.batch > 1 else "oracle.delay"
    if not elsewhere and parallel.batch == 1 and delay == 0:
        return
    if getattr(config.oracle, "family", STRUCTURAL_SVM) != STRUCTURAL_SVM:
        raise ConfigError(
            f"{asked} is for the max-oracle of a structural SVM, and oracle={config.oracle.name} "
            "makes a problem without one. Leave it out."
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
    if not elsewhere:
        return
    why = None
    if in_memory:
        why = "Workers load data from a file; examples given in memory cannot be shared with them."
    elif chunk_rows(config) is not None:
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


def _delay(config: RunConfig) -> float:
    return float(getattr(config.oracle, "delay", 0.0))
