"""Commands on results folders: verify one, compare two, write a report, publish."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ssvm_bench import cli
from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.cli import FILE, NATURAL, Command, Settings, completed

if TYPE_CHECKING:
    from ssvm_bench.results.folder import ResultsFolder


@click.command("verify", cls=Command)
@click.argument("overrides", metavar="[results_dir=DIR]", nargs=-1)
@click.option(
    "--rerun",
    metavar="K",
    type=NATURAL,
    default=0,
    help="Also repeat K stored runs, under clock=work, and compare their curves.",
)
@click.option(
    "--seed", type=NATURAL, default=0, show_default=True, help="Seed of the choice of these runs."
)
@cli.json_option
@click.pass_context
def verify_command(
    context: click.Context, overrides: tuple[str, ...], rerun: int, seed: int, as_json: bool
) -> None:
    """Check that the files of a results folder agree with its runs.

    It checks checksums, weak duality, summaries and best values of stored traces and of runs;
    claims, tables and the numbers of figures, computed again; fingerprints of the data on this
    machine; primal values at stored weights. Nothing is changed or downloaded. What cannot be
    checked is reported as skipped. Exit status 1 if anything differs.

    .. code-block:: console

        ssvm-bench verify
        ssvm-bench verify --rerun 5
        ssvm-bench verify results_dir=/scratch/results
        ssvm-bench verify --json | jq '.checks[].differences'

        ✓ the same   ✗ different   – nothing of it could be checked
    """
    cli.collect_rarely()
    from ssvm_bench import verification
    from ssvm_bench.results.words import minutes

    where = _folder(context.obj, overrides, asked=True)
    checks = []
    if not as_json:
        click.echo(verification.HEADING)
    for check in verification.verify(where, rerun, seed, context.obj.config_dirs()):
        checks.append(check)
        if not as_json:
            click.echo("\n".join(verification.lines(check)))
    counts = {key: sum(check.counts[key] for check in checks) for key in verification.MARKS}
    seconds, (same, different, skipped) = sum(check.seconds for check in checks), counts.values()
    if as_json:
        each = [check.as_plain() for check in checks]
        cli.print_json({"folder": str(where.root), **counts, "seconds": seconds, "checks": each})
    else:
        told = f"{same:,} the same, {different:,} different, {skipped:,} skipped"
        click.echo(f"{where.root}: {told}, {minutes(seconds)}")
    context.exit(int(different > 0))


def _folder(settings: Settings, overrides: tuple[str, ...], asked: bool) -> ResultsFolder:
    """Return the named results folder, or the default one; if ``asked``, nothing is protected."""
    from ssvm_bench.config.compose import compose_runs
    from ssvm_bench.results.folder import OPTION, existing_folder, results_folder

    for override in overrides:
        if not override.startswith(OPTION):
            raise ConfigError(
                f"This takes only {OPTION}…, a results folder, got {shown(repr(override))}."
            )
    (config,) = compose_runs(overrides, config_dirs=settings.config_dirs())
    where = existing_folder(config.results_dir, overrides)
    return results_folder(where.root, (OPTION,)) if asked else where


@click.command("compare", cls=Command)
@click.argument("a")
@click.argument("b")
@click.argument("overrides", metavar="[results_dir=DIR]", nargs=-1)
@click.option(
    "--dataset", "datasets", metavar="NAME", multiple=True, help="Dataset; may be repeated."
)
@click.option(
    "--experiment", metavar="NAME", default="*", help="Only traces stored with this experiment."
)
@cli.runs_option
@click.option(
    "--gap",
    "gaps",
    metavar="G",
    type=click.FloatRange(min=0, min_open=True),
    multiple=True,
    help="Relative gap; may be repeated. [default: chosen from those that the runs reached]",
)
@click.option("--seconds", is_flag=True, help="Compare seconds also between different processors.")
@click.option(
    "--out",
    metavar="STEM",
    type=FILE,
    help="Path of the files, without suffix. [default: in the folder comparisons/ of the results]",
)
@cli.format_option("Format of the figure; may be repeated. [default: png and pdf]")
@cli.json_option
@click.pass_obj
def compare_command(
    settings: Settings,
    a: str,
    b: str,
    overrides: tuple[str, ...],
    gaps: tuple[float, ...],
    out: Path | None,
    formats: tuple[str, ...],
    as_json: bool,
    **chosen: Any,
) -> None:
    """Compare two results folders, or two solvers of one.

    Runs are paired by problem and seed. The ratios B ÷ A of time and of oracle calls to relative
    gaps, as medians with bands and tests, go to a figure, a text, a CSV file and LaTeX tables.
    Seconds of different processors are left out without --seconds.

    A and B are folders, where `mine` is what this machine ran and `committed` what came with the
    results folder; or solvers, as legends name them. Beside a solver, `mine` is the solver of that
    name, if there is one.

    .. code-block:: console

        ssvm-bench compare bcfw mpbcfw --experiment mpbcfw_start
        ssvm-bench compare committed mine
        ssvm-bench compare mine mpbcfw
        ssvm-bench compare results /scratch/results --dataset ocr --gap 0.05
        ssvm-bench compare 'mpbcfw T=5' 'mpbcfw T=10' results_dir=/scratch/results
    """
    from ssvm_bench.figures.document import List
    from ssvm_bench.report import compare

    for gap in gaps:
        if not math.isfinite(gap):
            raise ConfigError(f"--gap must be a number above 0, got {gap}.")
    where = _folder(settings, overrides, asked=False)
    made = compare.compare(a, b, where, sorted(set(gaps), reverse=True), **chosen)
    stem, within = (out, None) if out else (where.made / "comparisons" / made.name, where.root)
    files = compare.save(made, stem, formats, within)
    if as_json:
        rows = made.table.to_dict("records")
        cli.print_json({"title": made.title, "comparisons": rows, "files": files})
        return
    for block in made.blocks:
        if isinstance(block, (str, List)):
            click.echo("\n".join(block.texts) if isinstance(block, List) else block)
    for path in files:
        click.echo(f"file: {path}")


@click.command("report", cls=Command)
@click.argument("overrides", metavar="[results_dir=DIR]", nargs=-1)
@click.option(
    "--experiment",
    metavar="NAME",
    shell_complete=completed("experiments"),
    help="Show the runs of an experiment, including stored ones.",
)
@click.option("--all", "every", is_flag=True, help="A page for each experiment, and an index.")
@cli.runs_option
@cli.json_option
@click.pass_obj
def report_command(
    settings: Settings,
    overrides: tuple[str, ...],
    experiment: str | None,
    every: bool,
    whose: str,
    as_json: bool,
) -> None:
    """Write an HTML page about your own runs.

    It contains a summary, figures to zoom and switch, time and oracle calls to several gaps, a
    description of each run, and the failures. A page needs no network; pictures of an experiment
    are shown from their folder.

    .. code-block:: console

        ssvm-bench report
        ssvm-bench report results_dir=/scratch/results
        ssvm-bench report --experiment mpbcfw_fig4
        ssvm-bench report --all
        ssvm-bench report --all --json | jq '.pages[] | select(.failures != [])'
    """
    cli.collect_rarely()
    from ssvm_bench.report import pages

    if experiment and every:
        raise ConfigError("--all has the page of every experiment; leave --experiment out.")
    if whose and not (experiment or every):
        raise ConfigError(
            "--runs is for the pages of experiments: without --all and --experiment, the page is "
            "about your own runs."
        )
    where = _folder(settings, overrides, asked=False)
    made = pages.report(where, experiment or "", every, settings.config_dirs(), whose)
    if as_json:
        cli.print_json(made.as_plain())
    else:
        click.echo(f"report: {made.path}")


@click.command("publish", cls=Command)
@click.argument("folder", type=FILE)
@click.argument("overrides", metavar="[results_dir=DIR]", nargs=-1)
@click.option(
    "--experiment",
    "experiments",
    metavar="NAME",
    multiple=True,
    shell_complete=completed("experiments"),
    help="Only the runs of an experiment; may be repeated.",
)
@cli.runs_option
@click.option(
    "--replace",
    is_flag=True,
    help="Delete the runs in FOLDER that are not among these.",
)
@click.pass_obj
def publish_command(
    settings: Settings,
    folder: Path,
    overrides: tuple[str, ...],
    experiments: tuple[str, ...],
    whose: str,
    replace: bool,
) -> None:
    """Write your runs and their pages into a folder to show.

    Others can compare their runs with it. FOLDER is new, empty, or what an earlier call has
    written; runs there that are not among these stay, unless --replace is given. It has pages for
    any web server (or a zip), thinned traces, which `compare` reads on another machine, and where
    the numbers come from. It names no path, no user and no computer. Code that is no part of the
    program is named with the beginning of its SHA-256, and not included.

    .. code-block:: console

        ssvm-bench publish public
        ssvm-bench publish public results_dir=/scratch/results
        ssvm-bench publish public --experiment mpbcfw_fig4 --runs committed
        ssvm-bench compare public mine
    """
    cli.collect_rarely()
    from ssvm_bench.report.publishing import publish
    from ssvm_bench.results.folder import OPTION

    if str(folder).startswith(OPTION):
        raise ConfigError(f"Name the folder to write before {OPTION}…: ssvm-bench publish FOLDER")
    where = _folder(settings, overrides, asked=False)
    chosen = experiments, whose, replace
    click.echo(f"published: {publish(folder, where, settings.config_dirs(), *chosen)}")
