"""The command line: arguments in, exit status out.

Exit status 0: done. 1: the run failed. 2: a mistake in the call or in a config. Every error ends in
one message on stderr; ``--debug`` also shows the traceback. Each command imports the modules that
do its work, so that ``--help`` is fast.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ssvm_bench import __version__, cli
from ssvm_bench.base.errors import (
    ConfigError,
    SsvmBenchError,
    contained,
    described,
    nearest,
    readable,
    shown,
)
from ssvm_bench.cli import PROGRAM, Command, Commands, Settings, completed, json_option

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.runs.runner import Outcome

ELSEWHERE = {
    **{name: name for name in ("data", "help", "new", "recommend")},
    **dict.fromkeys(("experiment", "merge", "plot", "predict", "score"), "runs"),
    **dict.fromkeys(("compare", "publish", "report", "verify"), "results"),
}
"""Command → the module beside this one that defines it; imported when the command is used."""

KINDS = {
    "datasets": "dataset",
    "oracles": "oracle",
    "solvers": "solver",
    "experiments": "experiments",
}
"""What ``list`` can show → the kind of :func:`catalog.entries`."""

_LISTED = f"[{'|'.join(KINDS)}]"

COMPLETES = "_SSVM_BENCH_COMPLETE"
"""Environment variable that a shell sets to request completions."""


def explain(error: BaseException) -> tuple[str, int]:
    """Return the one message for an error, and the exit status that goes with it."""
    if isinstance(error, SsvmBenchError):
        return str(error), error.exit_status
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f" Try '{context.command_path} --help'." if context is not None else ""
        if isinstance(error, click.NoSuchOption) and error.option_name.startswith("--"):
            hint += " Options of a run have no dashes: solver=bcfw."
        text = error.format_message().rstrip()
        return text + "." * (text[-1:] not in ".?!") + hint, error.exit_code
    if isinstance(error, click.Abort):
        return "Interrupted.", 1
    if isinstance(error, MemoryError):
        return "Out of memory. Use fewer examples with dataset.n_samples=…", 1
    if isinstance(error, OSError | ImportError) and not getattr(error, "errno", None):
        from ssvm_bench.base import memory

        if memory.address_space() is not None:  # a library that is there could not be loaded
            reason = shown(" ".join(str(error).split()), 200)
            return f"A library cannot be loaded: {reason}. {memory.MORE_SPACE}", 1
    if isinstance(error, OSError):
        return _explain_os(error), 1
    return f"{described(error)}. Run again with --debug for the traceback.", 1


def _explain_os(error: OSError) -> str:
    """Return the message for an error of the operating system, never a fault of the program."""
    reason = error.strerror or str(error) or type(error).__name__
    file = shown(error.filename, 200) if error.filename else ""
    if isinstance(error, FileNotFoundError) and not file:
        return "The current folder does not exist any more. Change to another one."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" for {file}" if file else ""
        return f"No space left{where}. Make room, or choose another results_dir=…"
    advice = "Choose another one."
    if isinstance(error, (PermissionError, NotADirectoryError, IsADirectoryError)):
        advice = "Change its permissions, or choose another results_dir=…"
    return f"Cannot use {file or 'a file'}: {reason}. {advice}"


class Cli(Commands):
    """A group of commands whose errors become one message and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*self.commands, *ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None."""
        if cmd_name in ELSEWHERE and cmd_name not in self.commands:
            module = import_module(f"ssvm_bench.cli.{ELSEWHERE[cmd_name]}")
            self.add_command(getattr(module, f"{cmd_name}_command"))
        return super().get_command(ctx, cmd_name)

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run a command line and exit."""
        arguments = list(sys.argv[1:] if args is None else args)
        settings = Settings()
        if COMPLETES in os.environ:
            import_module("ssvm_bench.cli.completion")
        extra.update(standalone_mode=False, prog_name=PROGRAM, obj=settings)
        try:
            status = super().main(arguments, **extra)
        except Exception as error:
            # a shell that requests completions cannot show a message
            status = 1 if os.environ.get(COMPLETES) else report(error, settings.debug)
        sys.exit(status or 0)

    @contained("The command failed")
    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command, and show its messages on stderr."""
        from ssvm_bench.base import messages

        with messages.shown_by(messages.to_stderr):
            if ctx.obj.verbose:
                messages.show_details()
            return super().invoke(ctx)


def report(error: BaseException, debug: bool = False) -> int:
    """Print the error's message to stderr and return the exit status."""
    message, status = explain(error)
    if debug:
        traceback.print_exception(error)
    click.echo(f"{PROGRAM}: error: {readable(message)}", err=True)
    return status


@click.group(
    cls=Cli, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, prog_name=PROGRAM)
@click.pass_context
def main(context: click.Context) -> None:
    """Measure how fast structural-SVM training algorithms converge.

    .. code-block:: console

        ssvm-bench run solver=mpbcfw dataset=ocr
        ssvm-bench run -m solver=bcfw,mpbcfw 'seed=range(10)' dataset=usps
        ssvm-bench experiment quickstart
        ssvm-bench list solvers
        ssvm-bench help
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


class RunCommand(Command):
    """A command whose help also shows the options of every run, as their classes describe them."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and the options."""
        from ssvm_bench.config import catalog, schema, validation
        from ssvm_bench.datasets.base import SourceConfig

        super().format_epilog(ctx, formatter)
        choices = ", ".join(catalog.COMPONENTS)
        shown = [(choices, "By name, see 'ssvm-bench list'. A dataset has a default oracle.")]
        for cls, section in ((schema.RunConfig, ""), (SourceConfig, "dataset.")):
            for option, default, meaning in validation.described(cls, section):
                if option.removeprefix(section) not in (*catalog.COMPONENTS, "name", "kind"):
                    shown.append((option, f"{meaning} [default: {default}]"))
        with formatter.section("Overrides that always exist"):
            formatter.write_dl(shown)
        formatter.write_paragraph()
        formatter.write_text(
            "Options of one solver, oracle or dataset, as in solver.T=5 or 'dataset.folds=[0]', "
            f"are listed by '{PROGRAM} help options'."
        )


@main.command("run", cls=RunCommand)
@click.option(
    "-m", "--multirun", is_flag=True, help="Accept sweeps, and run all their runs in turn."
)
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@cli.dry_run_options
@json_option
@click.pass_obj
def run_command(
    settings: Settings,
    multirun: bool,
    overrides: tuple[str, ...],
    dry_run: bool,
    cfg: str | None,
    as_json: bool,
) -> int:
    """Train one solver on one dataset and write its trace.

    A run that has finished before is skipped; force=true executes it again. The same command
    resumes an interrupted sweep.

    .. code-block:: console

        ssvm-bench run solver=mpbcfw dataset=ocr
        ssvm-bench run dataset=usps solver=bcfw budget.max_iterations=20 clock=cpu
        ssvm-bench run lam=1e-3 solver.T=5 dataset.source=synthetic
        ssvm-bench run -m solver=bcfw,mpbcfw 'seed=range(10)'
        ssvm-bench run solver=mpbcfw_fast dataset=conll2000 --dry-run
        ssvm-bench run dataset=usps 'path=[100/n,10/n]' lam=1/n budget.gap_tol=0.01
    """
    from ssvm_bench.config.compose import compose_runs

    configs = compose_runs(overrides, multirun, settings.config_dirs())
    if dry_run or cfg:
        cli.print_configs(configs, as_json, multirun)
        return 0
    if multirun:
        return _sweep(configs, settings.debug, as_json)
    outcome = _run(configs[0])
    if as_json:
        cli.print_json(cli.as_plain(configs[0], outcome))
    else:
        cli.print_outcomes([(configs[0], outcome)])
        _tell_sooner(configs[0], outcome)
    return _status(configs[0], outcome)


def _tell_sooner(config: RunConfig, outcome: Outcome) -> None:
    """Say if another solver would have ended a run much sooner."""
    from ssvm_bench.runs.recommendation import sooner

    if not config.quiet and (line := sooner(config, outcome)):
        click.echo(line, err=True)


def _sweep(configs: list[RunConfig], debug: bool, as_json: bool) -> int:
    """Execute all runs; report failures, equal ones once, and continue after them.

    The exit status is the highest of all runs: 2 if the options of one of them do not fit together.
    If a package that one of them takes is not installed, no run begins.
    """
    from ssvm_bench.runs.resolved import check_extras

    check_extras(configs)
    done, statuses, reported = [], [], set()
    for k, config in enumerate(configs, 1):
        if not config.quiet and len(configs) > 1:
            click.echo(f"--- run {k} of {len(configs)} ---", err=True)
        try:
            outcome = _run(config)
        except Exception as error:
            statuses.append(explain(error)[1])
            if str(error) not in reported:
                report(error, debug)
            reported.add(str(error))
            continue
        done.append((config, outcome))
        statuses.append(_status(config, outcome))
        if outcome.status == "interrupted":
            break
    if as_json:
        cli.print_json([cli.as_plain(*each) for each in done])
    else:
        cli.print_outcomes(done)
    missing = len(configs) - statuses.count(0)
    if missing:
        click.echo(f"{PROGRAM}: {missing} of {len(configs)} runs did not finish.", err=True)
    return max(statuses, default=0)


def _run(config: RunConfig) -> Outcome:
    """Execute one run with the display that fits."""
    from ssvm_bench.runs.runner import run
    from ssvm_bench.runs.terminal import make_display

    with make_display(config.quiet) as display:
        return run(config, display)


def _status(config: RunConfig, outcome: Outcome) -> int:
    """Return the exit status of a run that ended; say why if it did not finish."""
    if outcome.status in ("finished", "skipped"):
        return 0
    click.echo(
        f"{PROGRAM}: error: {config.solver.name} on {config.dataset.name}, seed {config.seed}: "
        f"{outcome.stop_reason}. The trace so far is in {outcome.folder}. "
        "The same command resumes it.",
        err=True,
    )
    return 1


@main.group("config", cls=Commands, no_args_is_help=False)
def config_command() -> None:
    """Show the options of runs."""


@config_command.command("show")
@click.option("-m", "--multirun", is_flag=True, help="Accept sweeps, and show all their runs.")
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@json_option
@click.pass_obj
def config_show_command(
    settings: Settings, multirun: bool, overrides: tuple[str, ...], as_json: bool
) -> None:
    """Show every option that a run would have.

    It is what `run` with these overrides writes to config.yaml. Nothing is run, and no data are
    loaded. `run --dry-run` is another name.

    .. code-block:: console

        ssvm-bench config show solver=mpbcfw dataset=ocr
        ssvm-bench config show -m solver=bcfw,mpbcfw lam=1/n,10/n --json
    """
    from ssvm_bench.config.compose import compose_runs

    configs = compose_runs(overrides, multirun, settings.config_dirs())
    cli.print_configs(configs, as_json, multirun)


@main.command("list")
@click.argument("kind", required=False, metavar=_LISTED, shell_complete=lambda *_: [*KINDS])
@json_option
@click.pass_obj
def list_command(settings: Settings, kind: str | None, as_json: bool) -> None:
    """List datasets, oracles, solvers and experiments."""
    from ssvm_bench.config import catalog

    if kind is not None and kind not in KINDS:
        raise ConfigError(f"There is no list of {shown(repr(kind))}. {nearest(kind, KINDS)}")
    listed = {}
    for heading in [kind] if kind else KINDS:
        files = catalog.entries(KINDS[heading], settings.config_dirs())
        listed[heading] = {name: catalog.description(file) for name, file in files.items()}
    if as_json:
        cli.print_json(listed)
        return
    width = max((len(name) for entries in listed.values() for name in entries), default=0)
    for heading, entries in listed.items():
        if kind is None:
            click.echo(f"{heading}:")
        indent = "" if kind else "  "
        for name, text in entries.items():
            click.echo(f"{indent}{shown(name):<{width}}  {text}".rstrip())


@main.command("check")
@click.argument("kind", type=click.Choice(("oracle", "solver", "dataset")))
@click.argument("name", shell_complete=completed("kind"))
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@click.pass_context
def check_command(context: click.Context, kind: str, name: str, overrides: tuple[str, ...]) -> None:
    """Check the contract of an oracle, a solver or a dataset.

    It is tried on small instances. OVERRIDES are options of a run; with dataset=…, its first
    examples are the instance. Exit status 1 if something is broken.

    .. code-block:: console

        ssvm-bench check oracle viterbi
        ssvm-bench check solver mine --config-dir mine
        ssvm-bench check oracle mine dataset=queries --config-dir mine

        ✓ kept   ✗ broken   ! worth knowing   – not checked
    """
    from ssvm_bench.runs.contracts import check

    settings: Settings = context.obj
    broken = 0
    for found in check(kind, name, overrides, settings.config_dirs()):
        click.echo(found.of)
        for line in found.shown():
            click.echo(line)
        for text in found.tracebacks if settings.debug else ():
            click.echo(text.rstrip(), err=True)
        broken += found.broken
    click.echo(f"{broken or 'no'} claim{'s' * (broken != 1)} of the contract broken")
    context.exit(min(broken, 1))
