"""Commands for many runs: those of an experiment, here or elsewhere, and what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.cli.options import FILE, PROGRAM, Command, Settings, completed, print_outcomes
from ssvm_bench.config.grid import Shard
from ssvm_bench.jobs.options import MEANT, Options, chosen
from ssvm_bench.results.provenance import LOCAL

FORMATS = ("png", "pdf", "svg")


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
    callback=lambda _, __, text: None if text is None else Shard.parsed(text),
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


@click.command("plot", cls=Command)
@click.argument("name", shell_complete=completed("names", "experiments"))
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    help="File format; may be repeated. [default: png and pdf; of photographs png]",
)
@click.pass_obj
def plot_command(
    settings: Settings, name: str, overrides: tuple[str, ...], formats: tuple[str, ...]
) -> None:
    """Draw an experiment's figures from its finished runs.

    .. code-block:: console

        ssvm-bench plot quickstart
        ssvm-bench plot quickstart --format svg
    """
    from ssvm_bench.report import experiment_files

    for figure in experiment_files.plot(name, formats, overrides, settings.config_dirs()):
        click.echo(f"figure: {figure}")


@click.command("merge", cls=Command)
@click.argument("folders", nargs=-1, type=FILE)
@click.option(
    "--into",
    metavar="DIR",
    required=True,
    type=FILE,
    help="The results folder to copy to; it may have runs.",
)
@click.option(
    "--source",
    type=click.Choice(("real", "synthetic")),
    help="Only runs on real data, or on synthetic data. [default: all, if they are of one kind]",
)
def merge_command(folders: tuple[Path, ...], into: Path, source: str | None) -> None:
    """Copy the runs of results folders into one.

    Of a run that is in several, the finished one goes, then the longer one. `ssvm-bench plot`
    then draws the figures.

    .. code-block:: console

        ssvm-bench merge part-1 part-2 part-3 part-4 --into results
        ssvm-bench plot mpbcfw_fig4
    """
    from ssvm_bench.results.merging import merge
    from ssvm_bench.results.words import runs

    if not folders:
        raise ConfigError("Name the results folders to merge: ssvm-bench merge A B --into C.")
    merged = merge(folders, into, source)
    copied = f"{runs(merged.copied)} copied to {into}, {merged.there} as good there"
    if merged.damaged:
        copied += f"; {merged.damaged} could not be read"
    click.echo(f"{copied}.")


@click.command("report", cls=Command)
@click.argument("overrides", metavar="[results_dir=DIR]", nargs=-1)
@click.pass_obj
def report_command(settings: Settings, overrides: tuple[str, ...]) -> None:
    """Write one HTML page over all runs in a results folder.

    It has the figures to zoom and switch, the claims, the time to several gaps, what each run is,
    and what failed. The page needs no network and no other file.

    .. code-block:: console

        ssvm-bench report
        ssvm-bench report results_dir=/scratch/results
    """
    from ssvm_bench.config.compose import compose_runs
    from ssvm_bench.report.page import build
    from ssvm_bench.results.folder import OPTION, results_folder

    for override in overrides:
        if not override.startswith(OPTION):
            raise ConfigError(
                f"A report is over everything in a results folder; it takes only {OPTION}…, "
                f"got {shown(repr(override))}."
            )
    (config,) = compose_runs(overrides, config_dirs=settings.config_dirs())
    click.echo(f"report: {build(results_folder(config.results_dir, overrides))}")
