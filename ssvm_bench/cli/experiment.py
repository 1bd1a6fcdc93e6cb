"""``ssvm-bench experiment``: all runs of an experiment, here or elsewhere; where they stand."""

from __future__ import annotations

from typing import Any

import click

from ssvm_bench.cli.options import PROGRAM, Command, Settings, completed, print_outcomes
from ssvm_bench.config.grid import Shard
from ssvm_bench.jobs.options import MEANT, Options, chosen
from ssvm_bench.results.provenance import LOCAL


def _shard(_: click.Context, __: click.Parameter, text: str | None) -> Shard | None:
    """Return what ``--shard`` says."""
    return None if text is None else Shard.parsed(text)


@click.command("experiment", cls=Command)
@click.argument("name", shell_complete=completed("names", "experiments"))
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Runs at once, each in a process with one thread, pinned to a core. [default: 1]",
)
@click.option(
    "--backend",
    type=click.Choice(tuple(MEANT)),
    default=LOCAL,
    help="Processes here, workers of dask or ray, or jobs of SLURM. [default: local]",
)
@click.option("--address", help="Of a scheduler of dask or ray; else a cluster of --jobs workers.")
@click.option("--partition", help="Of SLURM.")
@click.option(
    "--time-limit",
    metavar="MINUTES",
    type=click.IntRange(min=2),
    help="Of a job of SLURM, which then goes on as another one. [default: 60]",
)
@click.option("--memory", metavar="SIZE", help="Of a job of SLURM: 4G.")
@click.option(
    "--parallel", metavar="N", type=click.IntRange(min=1), help="Most jobs of SLURM at once."
)
@click.option(
    "--shard",
    metavar="I/K",
    callback=_shard,
    help="Make the I-th of K parts of the runs, for machines that share nothing; see merge.",
)
@click.option(
    "--status",
    is_flag=True,
    help="Show which runs are done, running, failed or missing, and SLURM's queue; make nothing.",
)
@click.pass_obj
def experiment_command(
    settings: Settings,
    name: str,
    overrides: tuple[str, ...],
    backend: str,
    shard: Shard | None,
    status: bool,
    **asked: Any,
) -> int:
    """Make all missing runs of an experiment, then its figures; of a shard, the runs alone.

    .. code-block:: console

        ssvm-bench experiment quickstart
        ssvm-bench experiment quickstart dataset.source=synthetic budget.max_iterations=5
        ssvm-bench experiment mpbcfw_fig4 --jobs 2
        ssvm-bench experiment mpbcfw_fig4 --status
        ssvm-bench experiment mpbcfw_fig4 --shard 2/4 results_dir=part-2
        ssvm-bench experiment mpbcfw_fig4 --backend dask --address tcp://127.0.0.1:8786
        ssvm-bench experiment mpbcfw_fig4 --backend submitit --parallel 20 --time-limit 120
    """
    options = Options(**asked)
    if status:
        options.check(backend)
        return _show_status(name, overrides, backend, options, shard, settings)
    dispatcher = chosen(backend, options)
    from ssvm_bench.report import experiment_files
    from ssvm_bench.results.words import runs

    folders = settings.config_dirs()
    outcome = experiment_files.make(name, overrides, folders, shard=shard, dispatcher=dispatcher)
    print_outcomes(outcome.runs)
    for figure in outcome.figures:
        click.echo(f"figure: {figure}")
    if settings.debug:
        for text in filter(None, outcome.tracebacks.values()):
            click.echo(text.rstrip(), err=True)
    if outcome.failures:
        click.echo(f"{PROGRAM}: {runs(len(outcome.failures))} failed.", err=True)
    return int(outcome.failed > 0)


def _show_status(
    name: str,
    overrides: tuple[str, ...],
    backend: str,
    options: Options,
    shard: Shard | None,
    settings: Settings,
) -> int:
    """Print where an experiment stands."""
    from ssvm_bench.report.kinds import load
    from ssvm_bench.results.files import SkippedFiles
    from ssvm_bench.runs import experiment_status

    folders = settings.config_dirs()
    configs = load(name, folders).configs(overrides, folders)
    found = experiment_status.survey(configs if shard is None else shard.of(configs))
    with SkippedFiles() as skipped:
        for damaged in filter(None, (run.damage for run in found)):
            skipped.add(f"{damaged} The next `ssvm-bench experiment {name}` makes it again.")
    for line in experiment_status.lines(found, options.jobs or options.parallel or 1):
        click.echo(line)
    if backend == "submitit":
        from ssvm_bench.jobs import submitit

        click.echo("\n".join(submitit.lines(configs[0].results_dir)))
    return 0
