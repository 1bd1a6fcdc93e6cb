"""``ssvm-bench compare A B``: read the runs of two sides and write the files of a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ssvm_bench.base.errors import ConfigError, RunFailedError, nearest, shown
from ssvm_bench.figures import kind, pairs
from ssvm_bench.figures.kind import Output
from ssvm_bench.results import optima, stored_traces
from ssvm_bench.results.folder import OWN, ResultsFolder
from ssvm_bench.results.reading import SkippedFiles, find_runs, read_run
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.trace import Best, ProblemInstance, Trace

MINE, COMMITTED = "mine", "committed"
"""Names of sides: the user's own runs, and the traces stored in the results folder."""


def compare(
    a: str,
    b: str,
    where: ResultsFolder,
    gaps: Sequence[float],
    datasets: Sequence[str] = (),
    experiment: str = "*",
    seconds: bool = False,
) -> Output:
    """Compare two results folders, or two solvers of one.

    Parameters
    ----------
    a, b : str
        Both results folders, ``mine`` or ``committed``; or both solvers, or curves of them as in
        legends, ``mpbcfw T=5``.
    where : ResultsFolder
        The folder of the solvers, of ``mine`` and of ``committed``.
    gaps : sequence of float
        Relative gaps.
    datasets : sequence of str
        Use only runs on these; empty: all.
    experiment : str
        Use only traces stored with this experiment, and no raw runs; ``*``: all.
    seconds : bool
        Whether seconds of different processors are compared, too.

    Raises
    ------
    ConfigError
        If a side is neither a folder nor a solver with runs.
    RunFailedError
        If no two runs can be paired.
    """
    sides = [_folders(side, where) for side in (a, b)]
    if (sides[0] is None) != (sides[1] is None):
        alone = a if sides[0] is None else b
        raise ConfigError(
            f"{shown(repr(alone))} is no results folder. Compare two folders ({MINE} and "
            f"{COMMITTED} are two), or two solvers of one."
        )
    with SkippedFiles() as skipped:
        if sides[0] is None or sides[1] is None:
            places = [where.root]
            runs = _read([(where.root, True), (where.root / OWN, False)], experiment, skipped)
            runs = _of_datasets(runs, datasets)
            chosen = [_of_solver(side, runs) for side in (a, b)]
        else:
            places = [place for side in sides for place, _ in side or ()]
            read = (_read(side, experiment, skipped) for side in sides if side)
            chosen = [_of_datasets(runs, datasets) for runs in read]
    found = pairs.paired(chosen[0], chosen[1], same_curve=sides[0] is not None)
    if not found:
        counts = f"{len(chosen[0])} of {a} and {len(chosen[1])} of {b}"
        raise RunFailedError(
            f"There are no two runs to compare ({counts}): none have the problem (data and λ), "
            "the seed and all options but the solver's, budgets and the clock in common."
        )
    table = pairs.ratios(found, _best(chosen, places), gaps, seconds)
    return pairs.output(table, a, b, _name(a, b), seconds)


def save(output: Output, stem: Path, formats: Sequence[str]) -> list[Path]:
    """Write the files of a comparison, its tables in LaTeX as well, and return their paths."""
    return kind.save(output, stem, (*(formats or output.formats), kind.TABLES))


def _name(a: str, b: str) -> str:
    """Return the name of the files."""
    return "-".join(re.sub(r"\W+", "_", side.strip("/.")).strip("_") for side in (a, b))


def _folders(side: str, where: ResultsFolder) -> list[tuple[Path, bool]] | None:
    """Return the folders of a side, each with whether its raw runs count; None for a solver."""
    if any((Path(side) / kept).is_dir() for kept in ("runs", "traces", OWN)):
        return [(Path(side), True), (Path(side) / OWN, False)]
    if side == COMMITTED:
        return [(where.root, False)]
    if side == MINE:
        return [(where.root / OWN, False), (where.root, True)]
    return None


def _read(
    folders: Sequence[tuple[Path, bool]], experiment: str, skipped: SkippedFiles
) -> list[Trace]:
    """Return the thinned runs of a side; a raw run takes precedence over a stored one."""
    raw: list[Trace] = []
    for folder, counts in folders:
        for path in find_runs(folder) if counts and experiment == "*" else ():
            try:
                raw.append(read_run(path))
            except RunFailedError as error:
                skipped.add(error)
    found = {run.own_folder.parts[-4:]: run for run in _thinned(raw)}
    mine = len(folders) > 1 and not folders[0][1]  # traces in the other folder are not mine
    for folder, _ in folders[:1] if mine else folders:
        for name in sorted(path.name for path in folder.glob(f"traces/{experiment}/")):
            for run in stored_traces.read(folder, name, skipped):
                found.setdefault(run.own_folder.parts[-4:], run)
    return [*found.values()]


def _thinned(runs: Sequence[Trace]) -> Iterator[Trace]:
    """Yield raw runs thinned like stored ones, so that gaps are compared at the same rows."""
    for repeats in grouped(runs, lambda run: run.own_hash).values():
        for run, rows in zip(repeats, stored_traces.thin(repeats), strict=True):
            yield replace(run, frame=rows.reset_index(drop=True))


def _of_datasets(runs: Sequence[Trace], datasets: Sequence[str]) -> list[Trace]:
    there = {str(run.data["name"]) for run in runs}
    for name in datasets:
        if name not in there:
            raise ConfigError(f"There are no runs on {shown(repr(name))}. {nearest(name, there)}")
    return [run for run in runs if not datasets or run.data["name"] in datasets]


def _of_solver(side: str, runs: Sequence[Trace]) -> list[Trace]:
    """Return the runs of a solver with the options that follow its name."""
    name, *options = side.split()
    solvers = {str(run.solver["name"]) for run in runs}
    if name not in solvers:
        raise ConfigError(
            f"{shown(repr(side))} is neither a results folder nor a solver with runs. "
            f"{nearest(name, solvers)}"
        )

    def has(run: Trace) -> bool:
        solver = run.solver
        asked = (option.partition("=") for option in options)
        return solver["name"] == name and all(
            str(solver.get(key.removeprefix("solver."))).lower() == value.lower()
            for key, _, value in asked
        )

    return [run for run in runs if has(run)]


def _best(sides: Sequence[Sequence[Trace]], places: Sequence[Path]) -> dict[ProblemInstance, Best]:
    """Return the best values in the runs and in the records of the folders."""
    found: dict[ProblemInstance, Best] = {}
    runs = [run for side in sides for run in side]
    for place in places:
        for problem, (primal, dual) in optima.untold(runs, place)[0].items():
            before = found.get(problem, Best(primal, dual))
            found[problem] = Best(min(before.primal, primal), max(before.dual, dual))
    return found
