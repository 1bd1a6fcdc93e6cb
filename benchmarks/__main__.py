"""``python -m benchmarks`` prints the ratios; ``make bench`` calls it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ssvm_bench.cli import commands
from ssvm_bench.config import catalog
from ssvm_bench.config.validation import check_choice
from ssvm_bench.results.provenance import THREAD_VARIABLES, provenance

SOLVERS = (
    *("fw", "bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg"),
    *("mpbcfw_gram", "mpbcfw_pairwise", "mpbcfw_fast"),
)
"""The other ones differ from these in which terms they visit, not in how."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--dataset",
    "names",
    metavar="NAME",
    multiple=True,
    help="What to measure on; may be repeated. [default: every dataset]",
)
@click.option(
    "--solver",
    "solvers",
    metavar="NAME",
    multiple=True,
    help="Whose passes to measure; may be repeated. [default: those whose passes differ in kind]",
)
@click.option(
    "--json",
    "path",
    type=click.Path(path_type=Path),
    help="Compare the ratios with those stored here, then write all numbers here.",
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
    solvers: tuple[str, ...],
    path: Path | None,
    passes: int,
    repeats: int,
    cold: bool,
    overrides: tuple[str, ...],
) -> None:
    """Measure how fast passes, runs and start-up are, as ratios where that is possible.

    Real data is used where it is on this machine, the stand-in elsewhere. OVERRIDES as for
    `ssvm-bench run`.
    """
    known = catalog.entries("dataset")
    for name in names:
        check_choice("--dataset", name, known)
    for name in solvers:
        check_choice("--solver", name, catalog.entries("solver"))
    # numpy reads these once, when it is imported: by what follows
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    from benchmarks import report
    from benchmarks.processes import measure_processes

    calls = {
        name: (f"dataset={name}", f"dataset.source={_source(name)}", *overrides)
        for name in names or known
    }
    # first the processes: a child's peak memory is never below that of the process it came from
    measured = measure_processes(calls, cold)
    from benchmarks.graphs import measure_graphs
    from benchmarks.passes import measure_passes
    from benchmarks.quadratic import measure_qps
    from benchmarks.rivals import measure_rivals

    for call in calls.values():
        measured += measure_passes(call, solvers or SOLVERS, passes, repeats)
        measured += measure_graphs(call)
        measured += measure_rivals(call)
        measured += measure_qps(call)
    where = provenance()
    report.show(measured, where, report.stored(path))
    if path is not None:
        report.write(path, measured, where)
        click.echo(f"numbers: {path}")


def _source(name: str) -> str:
    """Return where a dataset's data comes from, without trying the network."""
    from ssvm_bench.datasets.status import status

    return "synthetic" if status(name).state == "missing" else "real"


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except Exception as error:
        sys.exit(commands.report(error))
