"""The command line. Here: what commands share, such as options and the closing table."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ssvm_bench.base.errors import ConfigError, nearest, shown

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.runs import Outcome

PROGRAM = "ssvm-bench"

FILE = click.Path(path_type=Path)

NATURAL, COUNT = click.IntRange(min=0), click.IntRange(min=1)

FORMATS = ("png", "pdf", "svg", "pgf", "tex")
"""Formats of a figure (``pgf`` for LaTeX), and of its tables (``tex``)."""


def format_option(text: str) -> Callable[[Any], Any]:
    """Return the option of the formats of figures, with its help."""
    formats = click.Choice(FORMATS)
    return click.option("--format", "formats", type=formats, multiple=True, help=text)


runs_option = click.option(
    "--runs",
    "whose",
    type=click.Choice(("mine", "committed")),
    callback=lambda _, __, whose: whose or "",
    help="Whose runs: yours, or those that came with the folder. [default: yours, if there "
    "are any]",
)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON to stdout, and nothing else."
)


def dry_run_options(command: Any) -> Any:
    """Add ``--dry-run`` and ``--cfg job``, its name in Hydra, to a command that runs."""
    dry = click.option(
        "--dry-run", is_flag=True, help="Show every option, as `config show` does, and run nothing."
    )
    cfg = click.option(
        "--cfg", type=click.Choice(("job",)), help="job: another name of --dry-run, Hydra's."
    )
    return dry(cfg(command))


_EXAMPLES = "\n.. code-block:: console\n\n"


@dataclass
class Settings:
    """Options that are accepted before and after the command's name (click's ``obj``)."""

    debug: bool = False
    verbose: bool = False
    folders: list[Path] = field(default_factory=list)

    def config_dirs(self) -> list[Path]:
        """Return the folders of ``--config-dir``, checked; components in them can be imported."""
        from ssvm_bench.config import catalog, registry

        found = catalog.check_folders(self.folders)
        registry.use(found)
        return found


def collect_rarely() -> None:
    """Collect garbage rarely: figures are many small objects, all in use."""
    gc.set_threshold(50_000)


def completed(what: str) -> Callable[..., list[str]]:
    """Return the callback that completes a parameter: ``"overrides"``, or names of a group.

    ``"kind"``: the group that another parameter names. It imports `completion` when it is called.
    """

    def complete(context: click.Context, _: Any, incomplete: str) -> list[str]:
        from ssvm_bench.cli.completion import completions

        return completions(what, context, incomplete)

    return complete


def _settings(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Add an option before or after a command's name to the settings."""
    if param.name == "debug":
        ctx.obj.debug |= value
    elif param.name == "verbose":
        ctx.obj.verbose |= value
        if value and ctx.parent is not None:
            from ssvm_bench.base import messages

            messages.show_details()
    else:
        ctx.obj.folders.extend(value)


def _common(*names: str, **how: Any) -> click.Option:
    return click.Option(names, callback=_settings, expose_value=False, **how)


_COMMON = (
    _common(
        "--config-dir",
        metavar="DIR",
        multiple=True,
        type=FILE,
        help="Further config files: DIR/solver/mine.yaml is solver=mine. May be repeated.",
    ),
    _common(
        *("-v", "--verbose"),
        is_flag=True,
        help="Also show which files are read, and what is compiled and cached.",
    ),
    _common("--debug", is_flag=True, help="Show the traceback of an error."),
)


class Command(click.Command):
    """A command with the options of :class:`Settings`.

    Its docstring may end in a ``.. code-block:: console``, which is shown below the options.
    """

    def __init__(self, name: str, *, help: Any, params: Any = (), **extra: Any) -> None:
        text, _, examples = inspect.cleandoc(help or "").partition(_EXAMPLES)
        if examples:
            lines = f"Examples:\n{inspect.cleandoc(examples)}".replace("\n", "\n  ")
            extra["epilog"] = "\b\n" + lines.replace("\n  \n", "\n\n\b\n")
        super().__init__(name, help=text, params=[*(params or ()), *_COMMON], **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command, if its libraries can be loaded."""
        from ssvm_bench.base import memory

        memory.check_address_space()
        return super().invoke(ctx)


class Commands(Command, click.Group):
    """A group of commands that suggests the nearest name for an unknown one."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or raise an error that suggests the nearest one."""
        names, asked = self.list_commands(ctx), ctx.resilient_parsing  # to complete the line
        if not asked and args and args[0] not in names and not args[0].startswith("-"):
            inside = "" if ctx.parent is None else f"{self.name} "
            raise ConfigError(
                f"There is no command '{inside}{shown(args[0])}'. {nearest(args[0], names)}"
            )
        return super().resolve_command(ctx, args)


def print_json(content: Any) -> None:
    """Print plain values as JSON; not-a-number becomes null."""
    from ssvm_bench.config.schema import plain_values
    from ssvm_bench.results import checks

    click.echo(checks.json_bytes(plain_values(content)), nl=False)


def print_configs(configs: list[RunConfig], as_json: bool, several: bool) -> None:
    """Print the options of runs: YAML documents, or JSON, a list if there may be several."""
    import yaml

    from ssvm_bench.config.schema import plain_values

    found = [plain_values(config.resolved()) for config in configs]
    if as_json:
        print_json(found if several else found[0])
        return
    texts = [yaml.safe_dump(each, sort_keys=False, allow_unicode=True) for each in found]
    told = [text.replace("\nlam: null\n", "\nlam: null  # 1/n\n") for text in texts]
    click.echo("---\n".join(told), nl=False)


def as_plain(config: RunConfig, outcome: Outcome) -> dict[str, Any]:
    """Return the outcome of a run as plain values."""
    return {
        **{group: getattr(config, group).name for group in ("dataset", "oracle", "solver")},
        "seed": config.seed,
        "status": outcome.status,
        "stop_reason": outcome.stop_reason,
        "folder": str(outcome.folder),
        "summary": outcome.summary,
    }


def print_outcomes(outcomes: list[tuple[RunConfig, Outcome]]) -> None:
    """Print the closing table of the runs, and a line for each that is quiet."""
    from ssvm_bench.runs.terminal import print_results, result_lines

    for is_quiet in (True, False):
        shown = [(config, outcome) for config, outcome in outcomes if config.quiet is is_quiet]
        rows = [(config, outcome.status, outcome.summary) for config, outcome in shown]
        folders = [outcome.folder for _, outcome in shown]
        if shown and is_quiet:
            click.echo("\n".join(result_lines(rows, folders)))
        elif shown:
            print_results(rows, folders)
