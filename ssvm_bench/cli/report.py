"""The ``report`` command: one HTML file over a results folder."""

from __future__ import annotations

import click

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.cli import help_texts
from ssvm_bench.cli.options import Settings, common_options


@click.command("report", epilog=help_texts.REPORT)
@click.argument("overrides", metavar="[results_dir=DIR]", nargs=-1)
@common_options
@click.pass_obj
def report_command(settings: Settings, overrides: tuple[str, ...]) -> None:
    """Write one HTML page over all runs in a results folder.

    It has the figures to zoom and switch, the claims, the time to several gaps, what each run is,
    and what failed. The page needs no network and no other file.
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
