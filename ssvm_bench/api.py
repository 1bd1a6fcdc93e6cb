"""Runs from Python: execute them as ``ssvm-bench run`` does, read their files as pandas objects.

.. code-block:: python

    import ssvm_bench

    made = ssvm_bench.run("solver=mpbcfw", "dataset=usps", lam=0.01, progress=True)
    made.trace.plot("oracle_calls", ["primal", "dual"], logy=True)
    pd.DataFrame({str(made.folder): made.summary for made in ssvm_bench.load_runs("results")})

Options are those of the command line. Mistakes raise `ConfigError`, and failures `RunFailedError`
(:mod:`ssvm_bench.base.errors`). Warnings are printed on stderr, and one line if kernels must be
compiled, which is cached; all else if ``progress`` is set, and nothing with ``quiet=True``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import overrides
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.results.budgets import truncate
from ssvm_bench.results.reading import find_runs, read_run, read_weights
from ssvm_bench.results.trace import Trace
from ssvm_bench.runs import runner
from ssvm_bench.runs.requirements import check_extras
from ssvm_bench.runs.terminal import make_display_in_python


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    folder : Path
        Where its files are.
    trace : DataFrame
        A row for each evaluated iteration; docs/files.md says what is in the columns.
    summary : Series
        The last row, the best values, the stop reason and the mean losses.
    about : dict
        Its configuration, dataset, λ, versions and machine.
    """

    folder: Path
    trace: pd.DataFrame
    summary: pd.Series
    about: dict[str, Any]

    @property
    def weights(self) -> np.ndarray:
        """The weights w of the last iterate, float64, shape (d,); read on access.

        Raises
        ------
        RunFailedError
            If they cannot be read, or belong to a later iterate, as the run had a larger budget.
        """
        if "cut_from" in self.about:
            raise RunFailedError(
                f"{self.folder} has the weights after {self.about['cut_from']['iteration']} "
                f"iterations, not those after {self.summary['iteration']}. With force=True, the "
                "run is made by itself."
            )
        return read_weights(self.folder)[0]


def run(
    *words: str,
    config_dirs: Iterable[str | Path] = (),
    progress: bool = False,
    **options: Any,
) -> Run:
    """Execute a run, unless it or a longer one has finished before, and return it.

    Parameters
    ----------
    *words : str
        As on the command line: ``"solver=mpbcfw"``, ``"budget.gap_tol=0.01"``.
    config_dirs : iterable of path
        Further folders of config files, and of components in files.
    progress : bool
        Show the progress on stderr.
    **options
        Options as keywords, as ``lam=0.01``; a name with a dot is given as
        ``**{"dataset.n_samples": 100}``.

    Raises
    ------
    ConfigError
        A mistake in the options.
    RunFailedError
        The data are not available, or the run failed or was interrupted.
    """
    (config,) = compose_runs([*words, *overrides.words(options)], config_dirs=config_dirs)
    return _made(config, progress)


def sweep(
    *words: str,
    config_dirs: Iterable[str | Path] = (),
    progress: bool = False,
    **options: Any,
) -> list[Run]:
    """Execute all runs of a sweep, ``"seed=range(10)"`` or ``"solver=bcfw,mpbcfw"``; see `run`."""
    configs = compose_runs([*words, *overrides.words(options)], True, config_dirs)
    check_extras(configs)
    return [_made(config, progress) for config in configs]


def load_runs(
    results_dir: str | Path = "results", dataset: str = "*", solver: str = "*"
) -> list[Run]:
    """Return the finished runs of a results folder, sorted by their folders.

    Parameters
    ----------
    results_dir : path
    dataset, solver : str
        Return only the runs on this dataset and of this solver.

    Raises
    ------
    RunFailedError
        A run's files are not what was written.
    """
    folders = find_runs(Path(results_dir), dataset, solver)
    return [_run(read_run(folder)) for folder in folders]


def _made(config: RunConfig, progress: bool) -> Run:
    with make_display_in_python(progress, config.quiet) as display:
        outcome = runner.run(config, display)
    if outcome.status == "interrupted":
        raise RunFailedError(f"The run was interrupted; its trace so far is in {outcome.folder}.")
    found = truncate(read_run(outcome.folder), config.with_source(outcome.summary["source"]))
    assert found is not None  # a finished run covers its budget
    return _run(found)


def _run(found: Trace) -> Run:
    summary = pd.Series(found.summary, name=str(found.folder))
    return Run(found.folder, found.frame, summary, found.metadata)
