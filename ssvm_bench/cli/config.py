"""The ``config`` commands: what the options of a run would be."""

from __future__ import annotations

import click

from ssvm_bench.cli.options import Commands, Settings, completed, json_option, print_json


@click.group("config", cls=Commands, no_args_is_help=False)
def config_command() -> None:
    """Show the options of runs."""


@config_command.command("show")
@click.option("-m", "--multirun", is_flag=True, help="Accept sweeps; show all their runs.")
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@json_option
@click.pass_obj
def show_command(
    settings: Settings, multirun: bool, overrides: tuple[str, ...], as_json: bool
) -> None:
    """Show every option that `run` would have with these overrides, as its config.yaml does.

    Nothing is run, and no data are loaded.

    .. code-block:: console

        ssvm-bench config show solver=mpbcfw dataset=ocr
        ssvm-bench config show -m solver=bcfw,mpbcfw lam=1/n,10/n --json
    """
    import yaml

    from ssvm_bench.config.compose import compose_runs
    from ssvm_bench.results.trace import plain

    configs = compose_runs(overrides, multirun, settings.config_dirs())
    found = [plain(config.resolved()) for config in configs]
    if as_json:
        print_json(found if multirun else found[0])
        return
    texts = [yaml.safe_dump(each, sort_keys=False, allow_unicode=True) for each in found]
    click.echo("---\n".join(texts), nl=False)
