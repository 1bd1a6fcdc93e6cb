"""``ssvm-bench recommend``: which solver for a problem, and why."""

from __future__ import annotations

import click

from ssvm_bench import cli
from ssvm_bench.cli import Command, Settings, completed


@click.command("recommend", cls=Command)
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@click.option(
    "--gap",
    metavar="G",
    type=click.FloatRange(min=0, min_open=True, max=1),
    help="Relative gap to reach. [default: budget.gap_tol, if that is set, else 0.01]",
)
@cli.json_option
@click.pass_obj
def recommend_command(
    settings: Settings, overrides: tuple[str, ...], gap: float | None, as_json: bool
) -> None:
    """Name the solver for a problem, and why.

    A call of the oracle and a visit of a term are measured, for a second. How many passes the
    solver will make, and how long that takes, is estimated by the nearest problem of the experiment
    crossover. OVERRIDES are those of a run, without a solver.

    .. code-block:: console

        ssvm-bench recommend dataset=ocr
        ssvm-bench recommend dataset=usps lam=100/n --gap 0.001
        ssvm-bench recommend dataset=usps oracle.delay=0.01 --json
        ssvm-bench new oracle mine
        ssvm-bench recommend dataset=queries oracle=mine --config-dir mine
    """
    from ssvm_bench.runs.recommendation import recommend

    found = recommend(overrides, gap, settings.config_dirs())
    if as_json:
        cli.print_json(found.as_plain())
    else:
        click.echo("\n".join(found.lines()))
