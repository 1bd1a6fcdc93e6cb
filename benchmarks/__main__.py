"""``python -m benchmarks`` prints the ratios; ``make bench`` and ``make bench-all`` call it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import click

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.cli import commands
from ssvm_bench.config import catalog
from ssvm_bench.config.validation import check_choice
from ssvm_bench.results.provenance import THREAD_VARIABLES, provenance

Found = TypeVar("Found")

COMPILER = (
    *("NUMBA_OPT", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE", "NUMBA_CPU_NAME"),
    *("NUMBA_CPU_FEATURES", "NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO", "NUMBA_DISABLE_JIT"),
)
"""Variables that give other kernels than users have: what `make test` sets must not be measured."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dataset",
    "names",
    metavar="NAME",
    multiple=True,
    help="Measure everything on this one; may be repeated. [default: the rows that matter]",
)
@click.option("--all", "everything", is_flag=True, help="Measure everything on every dataset.")
@click.option(
    "--solver",
    "solvers",
    metavar="NAME",
    multiple=True,
    help="Whose passes to measure; may be repeated. [default: those whose passes differ in kind]",
)
@click.option(
    "--only",
    "kinds",
    metavar="KIND",
    multiple=True,
    help="Measure these kinds of rows alone: passes, gaps, processes, …; may be repeated.",
)
@click.option(
    "--json",
    "path",
    type=click.Path(path_type=Path),
    help="Compare the ratios with those stored here, and store each number here at once: in this "
    "file, or in this folder's for the release and the machine.",
)
@click.option(
    "--against",
    "other",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    help="Measure another checkout, too, in turn with this one, and show the ratios of both. "
    "With --json, the ratios are stored as rows of their own.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="With --against: how often each of them is measured.",
)
@click.option(
    "--passes",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Iterations of each solver; too few, and working sets are still small.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Fresh runs of each solver.",
)
@click.option("--cold", is_flag=True, help="Also compile with an empty cache (takes a minute).")
@click.argument("overrides", nargs=-1)
def main(
    names: tuple[str, ...],
    everything: bool,
    solvers: tuple[str, ...],
    kinds: tuple[str, ...],
    path: Path | None,
    other: Path | None,
    rounds: int,
    passes: int,
    repeats: int,
    cold: bool,
    overrides: tuple[str, ...],
) -> None:
    """Measure how fast passes, runs and start-up are, as ratios where that is possible.

    Real data is used where it is on this machine, synthetic data elsewhere. OVERRIDES as for
    `ssvm-bench run`.
    """
    if path is not None and (given := [name for name in COMPILER if name in os.environ]):
        raise ConfigError(
            f"{given[0]} is set, and numbers are stored for kernels as users have them. Unset it, "
            "or leave out --json."
        )
    known = catalog.entries("dataset")
    for name in names:
        check_choice("--dataset", name, known)
    for name in solvers:
        check_choice("--solver", name, catalog.entries("solver"))
    # numpy reads these once, when it is imported: by what follows
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    from benchmarks import against, report
    from benchmarks.jobs import FUNCTIONS, MATTERS, jobs, part_of
    from ssvm_bench.datasets.sources import has_raw_file

    for kind in kinds:
        check_choice("--only", kind, FUNCTIONS)
    chosen = names or (tuple(filter(has_raw_file, known)) if everything else ())
    parts = {name: part_of(name) for name in chosen} if chosen else MATTERS
    if solvers:
        parts = {name: part._replace(solvers=solvers) for name, part in parts.items()}
    calls = {
        name: (f"dataset={name}", f"dataset.source={_source(name)}", *overrides) for name in parts
    }
    planned = [
        job
        for job in jobs(parts, calls, passes, repeats, cold, few=not chosen)
        if not kinds or job.module in kinds
    ]
    if not planned:
        raise ConfigError(f"--only={','.join(kinds)}: no such rows on {', '.join(parts)}.")

    where = provenance()
    path = None if path is None else report.file_in(path, where)
    if other is not None:
        compared: dict[against.Row, against.Comparison] = {}
        commit = against.commit_of(other)

        def keep_ratio(one: against.Comparison) -> None:
            compared[one.row] = one
            if path is not None:
                report.write(path, [one.stored(commit)], where)

        comparing = {job.title: partial(against.compare, job, other, rounds) for job in planned}
        failed = _each(comparing, keep_ratio, against.line)
        against.show(compared.values(), other)
    else:
        before = report.stored(path)
        measured: dict[report.Key, report.Measurement] = {}

        def keep(one: report.Measurement) -> None:
            measured[one.key] = one
            if path is not None:
                report.write(path, [one], where)

        failed = _each({job.title: job.rows for job in planned}, keep, report.line)
        report.show(measured.values(), where, before)
    if path is not None:
        click.echo(f"numbers: {path}")
    if failed:
        raise RunFailedError(f"Not everything was measured: {', '.join(failed)} failed.")


def _each(
    work: Mapping[str, Callable[[], Iterable[Found]]],
    keep: Callable[[Found], None],
    line: Callable[[Found], str],
) -> list[str]:
    """Keep and print each row as soon as it is there; return the titles of what failed."""
    failed = []
    for title, rows in work.items():
        click.echo(f"{title} …", err=True)
        begin = perf_counter()
        try:
            for found in rows():
                keep(found)
                click.echo(f"  {line(found)}", err=True)
        except Exception as error:  # hours of measuring are not lost for one row
            failed.append(title)
            click.echo(f"  failed: {type(error).__name__}: {error}", err=True)
        click.echo(f"  ({perf_counter() - begin:.0f} s)", err=True)
    return failed


def _source(name: str) -> str:
    """Return where a dataset's data comes from, without trying the network."""
    from ssvm_bench.datasets.sources import has_raw_file, status

    if not has_raw_file(name):
        return "auto"  # it is drawn
    return "synthetic" if status(name).state == "missing" else "real"


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except Exception as error:
        sys.exit(commands.report(error))
