"""What commands share: options before and after a command's name, the nearest name, the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ssvm_bench.base.errors import ConfigError, nearest, shown
from ssvm_bench.config import catalog, plug_ins

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.runs.outcome import Outcome

PROGRAM = "ssvm-bench"

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass
class Settings:
    """Options that are accepted before and after the command's name (click's ``obj``)."""

    debug: bool = False
    folders: list[Path] = field(default_factory=list)

    def config_dirs(self) -> list[Path]:
        """Return the folders of ``--config-dir``, checked; components in them can be imported."""
        found = catalog.check_folders(self.folders)
        plug_ins.use(found)
        return found


class Commands(click.Group):
    """A group of commands that names the nearest one where there is none of a name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the nearest one."""
        names = self.list_commands(ctx)
        if args and args[0] not in names and not args[0].startswith("-"):
            inside = "" if ctx.parent is None else f"{self.name} "
            raise ConfigError(
                f"There is no command '{inside}{shown(args[0])}'. {nearest(args[0], names)}"
            )
        return super().resolve_command(ctx, args)


def common_options(command: Command) -> Command:
    """Add the options of :class:`Settings` to a command."""

    def set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.obj.debug |= value

    def add_folders(ctx: click.Context, _: click.Parameter, value: tuple[Path, ...]) -> None:
        ctx.obj.folders.extend(value)

    command = click.option(
        "--debug",
        is_flag=True,
        callback=set_debug,
        expose_value=False,
        help="Show the traceback of an error.",
    )(command)
    return click.option(
        "--config-dir",
        metavar="DIR",
        multiple=True,
        type=click.Path(path_type=Path),
        callback=add_folders,
        expose_value=False,
        help="Further config files: DIR/solver/mine.yaml is solver=mine. May be repeated.",
    )(command)


def print_outcomes(outcomes: list[tuple[RunConfig, Outcome]]) -> None:
    """Print the closing table of the runs that are not quiet."""
    from ssvm_bench.runs.terminal import print_results

    shown = [(config, outcome) for config, outcome in outcomes if not config.quiet]
    if shown:
        rows = [(config, outcome.status, outcome.summary) for config, outcome in shown]
        print_results(rows, [outcome.folder for _, outcome in shown])
