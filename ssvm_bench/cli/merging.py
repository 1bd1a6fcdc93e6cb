"""``merge``: the runs of several results folders in one."""

from __future__ import annotations

from pathlib import Path

import click

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.cli import help_texts
from ssvm_bench.cli.options import common_options


@click.command("merge", epilog=help_texts.MERGE)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--into",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="The results folder to copy to; it may have runs.",
)
@click.option(
    "--source",
    type=click.Choice(("real", "synthetic")),
    help="Only runs on real data, or on stand-ins. [default: all, if they are of one kind]",
)
@common_options
def merge_command(folders: tuple[Path, ...], into: Path, source: str | None) -> None:
    """Copy the runs of results folders into one.

    Of a run that is in several, the finished one goes, then the longer one. Figures are drawn anew,
    by `ssvm-bench plot`.
    """
    from ssvm_bench.jobs.experiments import to_stderr
    from ssvm_bench.results.merging import merge
    from ssvm_bench.results.words import runs

    if not folders:
        raise ConfigError("Name the results folders to merge: ssvm-bench merge A B --into C.")
    merged = merge(folders, into, source, to_stderr)
    told = f"{runs(merged.copied)} copied to {into}, {merged.there} as good there"
    if merged.damaged:
        told += f"; {merged.damaged} could not be read"
    click.echo(f"{told}.")
