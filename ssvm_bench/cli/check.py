"""``ssvm-bench check``: whether a component keeps its contract."""

from __future__ import annotations

import click

from ssvm_bench.cli import help_texts
from ssvm_bench.cli.options import Settings, common_options


@click.command("check", epilog=help_texts.CHECK)
@click.argument("kind", type=click.Choice(("oracle", "solver", "dataset")))
@click.argument("name")
@click.argument("overrides", nargs=-1)
@common_options
@click.pass_context
def check_command(context: click.Context, kind: str, name: str, overrides: tuple[str, ...]) -> None:
    """Check the contract of an oracle, a solver or a dataset on small instances.

    OVERRIDES are options of a run; with dataset=…, its first examples are the instance. Exit status
    1 if something is broken.
    """
    from ssvm_bench.runs.contracts.check import check

    settings: Settings = context.obj
    broken = 0
    for found in check(kind, name, overrides, settings.config_dirs()):
        click.echo(found.of)
        for line in found.findings.shown():
            click.echo(line)
        broken += found.findings.broken
    click.echo(f"{broken or 'no'} claim{'s' * (broken != 1)} of the contract broken")
    context.exit(min(broken, 1))
