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
from pathlib import Path
from typing import Any

from ssvm_bench.base.errors import ConfigError, RunFailedError, nearest
from ssvm_bench.config import overrides
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.results import loading, optima, stored_traces
from ssvm_bench.results.budgets import truncate
from ssvm_bench.results.folder import ResultsFolder, results_folder
from ssvm_bench.results.table import Run, Runs
from ssvm_bench.results.trace import find_runs, read_run, read_when_asked
from ssvm_bench.runs import runner
from ssvm_bench.runs.resolved import check_extras
from ssvm_bench.runs.terminal import make_display_in_python


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
) -> Runs:
    """Execute all runs of a sweep, ``"seed=range(10)"`` or ``"solver=bcfw,mpbcfw"``; see `run`."""
    configs = compose_runs([*words, *overrides.words(options)], True, config_dirs)
    check_extras(configs)
    return Runs([_made(config, progress) for config in configs])


def load_runs(
    results_dir: str | Path = "results", dataset: str = "*", solver: str = "*", experiment: str = ""
) -> Runs:
    """Return the finished runs of a results folder, sorted by their folders.

    They are a sequence, which can also be filtered, grouped and plotted:
    `ssvm_bench.results.table.Runs`. The files of a run are read, and checked, when its columns are
    asked for. Runs of older code are among them, and no repeats of newer ones.

    Parameters
    ----------
    results_dir : path
    dataset, solver : str
        Return only the runs on this dataset and of this solver.
    experiment : str
        Return the traces that are stored with this experiment, as those of the papers are, with the
        best values known, from which ``suboptimality`` is measured. In a folder with committed
        results, your own runs come first, and committed ones where you have none.

    Raises
    ------
    ConfigError
        No traces are stored with this experiment.
    RunFailedError
        A run's files are not what was written; also when its columns are asked for.
    """
    if experiment:
        where = results_folder(Path(results_dir), ())
        stored = _stored(where, experiment)
        runs = Runs(stored, optima.known(stored, where))
        return runs.where(lambda run: dataset in ("*", run.dataset) and solver in ("*", run.solver))
    return Runs(map(read_when_asked, find_runs(Path(results_dir), dataset, solver)))


def _stored(where: ResultsFolder, experiment: str) -> list[Run]:
    """Return the traces of an experiment from the first side of a results folder that has some."""
    for side in where.sides():
        if runs := loading.stored(side, experiment):
            return runs
    names = stored_traces.names(where)
    raise ConfigError(
        f"{where.root} has no traces stored with {experiment}. {nearest(experiment, names)}"
    )


def _made(config: RunConfig, progress: bool) -> Run:
    with make_display_in_python(progress, config.quiet) as display:
        outcome = runner.run(config, display)
    if outcome.status == "interrupted":
        raise RunFailedError(f"The run was interrupted; its trace so far is in {outcome.folder}.")
    found = truncate(read_run(outcome.folder), config.with_source(outcome.summary["source"]))
    assert found is not None  # a finished run covers its budget
    return found
