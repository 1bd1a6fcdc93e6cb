"""``ssvm-bench compare A B``: read the runs of two sides and write the files of a comparison."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

from ssvm_bench.base.errors import ConfigError, RunFailedError, nearest, shown
from ssvm_bench.config.overrides import file_name
from ssvm_bench.config.schema import plain_values
from ssvm_bench.figures import kind, pairs
from ssvm_bench.figures.kind import PICTURES, Output
from ssvm_bench.results import loading, older_code, optima, stored_traces
from ssvm_bench.results.folder import (
    COMMITTED,
    MINE,
    OWN,
    ResultsFolder,
    SkippedFiles,
    results_folder,
)
from ssvm_bench.results.table import Run, Runs

ALL = "*"
"""In place of an experiment's name: all runs."""

logger = logging.getLogger(__name__)

STORED = (
    "There is none here. Make runs with `ssvm-bench experiment quickstart`. Those of the papers "
    "come with the repository: name its folder results with results_dir=…"
)
"""What to do where no runs are stored, as for those who have only installed the package."""


def compare(
    a: str,
    b: str,
    where: ResultsFolder,
    gaps: Sequence[float],
    datasets: Sequence[str] = (),
    experiment: str = ALL,
    seconds: bool = False,
    whose: str = "",
) -> Output:
    """Compare two results folders, or two solvers of one.

    Parameters
    ----------
    a, b : str
        Both results folders, ``mine`` or ``committed``; or both solvers, or curves of them as in
        legends, ``mpbcfw T=5``. Beside a solver, ``mine`` is the solver of that name.
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
    whose : str
        Whose runs of two solvers are compared, see `ResultsFolder.sides`; empty: the user's own if
        there are pairs of them.

    Raises
    ------
    ConfigError
        If a side is neither a folder nor a solver with runs, or both are one solver with the same
        options.
    RunFailedError
        If no two runs can be paired.
    """
    where = results_folder(where.root, ())  # nothing is written here
    folders = [folder for side in (a, b) if (folder := _folder(side, where))]
    if len(folders) == 1 and _is_solver(a if _folder(a, where) else b, where, experiment, whose):
        folders = []
    if len(folders) == 1:
        alone = b if _folder(a, where) else a
        raise ConfigError(
            f"{shown(repr(alone))} {_no_folder(alone)}. Compare two folders ({MINE} and "
            f"{COMMITTED} are two), or two solvers of one."
        )
    if folders and whose:
        raise ConfigError(
            f"--runs chooses among the runs of solvers, and these are folders. {MINE} and "
            f"{COMMITTED} are folders, too."
        )
    sides = [of for each in folders or [where] for of in _sides(each, whose)]
    _check_stored(experiment, sides)
    _check_named(() if folders else (a, b), datasets, sides, experiment)
    if not folders and _asked(a) == _asked(b):
        raise ConfigError(
            f"Both sides are {shown(repr(a))}. Name two solvers, or two curves of one by options "
            "that differ, as 'mpbcfw T=5' and 'mpbcfw T=10'."
        )
    with SkippedFiles() as skipped:
        older: list[Run] = []
        if folders:
            both = [
                _of_datasets(_first(of, experiment, skipped, older), datasets) for of in folders
            ]
            best = optima.known([*both[0], *both[1]], *folders)
            both = [Runs(runs, best) for runs in both]
            found = pairs.paired(both[0], both[1], same_curve=True)
        else:
            read = {of: _read(of, experiment, skipped, older) for of in where.sides(whose)}
            best = optima.known((run for runs in read.values() for run in runs), where)
            read = {side: Runs(runs, best) for side, runs in read.items()}
            both, found, whose = _of_solvers((a, b), read, datasets)
    if not found:
        counts = f"{len(both[0])} of {a} and {len(both[1])} of {b}"
        raise RunFailedError(
            f"There are no two runs to compare ({counts}): none have the problem (data and λ), "
            "the seed and all options but the solver's, budgets and the clock in common."
        )
    of_both = [pair for of in found for pair in of.runs]
    if folders and all(_is_same(*pair) for pair in of_both):
        raise ConfigError(
            f"The runs of {a} and of {b} that fit together are the same runs: there is nothing to "
            "compare. Make your own with another results_dir, and name its folder."
        )
    table = pairs.ratios(found, gaps, seconds)
    options = {
        "experiment": [experiment] if experiment != ALL else [],
        "dataset": sorted(datasets),
        "gap": [f"{gap:g}" for gap in gaps],
        "seconds": ["all"] if seconds else [],
        "runs": [whose] if whose else [],
    }
    given = {key: values for key, values in options.items() if values}
    a, b = plain_values(a), plain_values(b)  # names of folders need not be UTF-8
    name = file_name({"a": [a], "b": [b], **given})
    notes = [f"Only {where._replace(whose=whose).called} are compared."] * bool(whose)
    here = {(run.dataset, run.solver) for pair in of_both for run in pair}
    left_out = older_code.left_out([run for run in older if (run.dataset, run.solver) in here])
    notes += [left_out] * bool(left_out)
    notes += pairs.of_plug_ins(run for pair in of_both for run in pair)
    notes += pairs.told_to_end((run for pair in of_both for run in pair), gaps)
    return pairs.output(table, a, b, name, seconds, notes, asked=bool(gaps))


def save(
    output: Output, stem: Path, formats: Sequence[str], within: Path | None = None
) -> list[Path]:
    """Write the files of a comparison, its tables in LaTeX as well, and return their paths.

    Pictures of an earlier comparison that this one has not are named in a warning.
    """
    written = kind.save(output, stem, (*(formats or output.formats), kind.TABLES), within)
    pictures = [stem.with_name(f"{stem.name}.{end}") for end in PICTURES]
    if old := [path for path in pictures if path.is_file() and path not in written]:
        logger.warning("Of an earlier comparison: %s.", ", ".join(map(str, old)))
    return written


def _is_same(a: Run, b: Run) -> bool:
    """Return whether both are one run, of which one trace may be thinned and stored elsewhere."""
    spent = ("wall_time", "cpu_time", "eval_time")  # never the same twice
    measured = [[run.end.get(name) for name in spent] for run in (a, b)]
    places = [run.own_folder.parts[-4:] for run in (a, b)]
    return places[0] == places[1] and measured[0] == measured[1] and None not in measured[0]


def _folder(side: str, where: ResultsFolder) -> ResultsFolder | None:
    """Return the folder that a side names; None for a solver."""
    if any((Path(side) / kept).is_dir() for kept in ("runs", "traces", OWN)):
        return results_folder(Path(side), ())
    if side == MINE:
        return where.sides(MINE)[0]
    return where._replace(whose=side) if side == COMMITTED else None


def _is_solver(word: str, where: ResultsFolder, experiment: str, whose: str) -> bool:
    """Tell whether a word for the runs of a folder is, beside a solver, a solver's name."""
    there = _names_of(experiment, _sides(where, whose)) if word in (MINE, COMMITTED) else ()
    return any(name.endswith(f"-{word}") for name in there)


def _no_folder(side: str) -> str:
    """Return why a side names no results folder, as the rest of a sentence."""
    if Path(side).is_dir():
        return "is a folder without runs"
    missing = os.sep in side and not os.path.lexists(side)
    return "does not exist" if missing else "is no results folder"


def _sides(folder: ResultsFolder, whose: str = "") -> tuple[ResultsFolder, ...]:
    """Return a folder restricted to the runs of each side that may be compared."""
    return (folder,) if folder.whose else folder.sides(whose)


def _first(folder: ResultsFolder, experiment: str, skipped: SkippedFiles, older: list[Run]) -> Runs:
    """Return the runs of a folder: those of its first side that has some."""
    sides = _sides(folder)
    for side in sides:
        if runs := _read(side, experiment, skipped, older):
            if len(sides) > 1:
                logger.info("Of %s, only %s are compared.", folder.root, side.called)
            return runs
    return Runs()


def _check_stored(experiment: str, sides: Sequence[ResultsFolder]) -> None:
    """Raise `ConfigError` unless traces are stored with an experiment; name those like it."""
    names = {name for side in sides for name in stored_traces.names(side)}
    if experiment == ALL:
        return
    if not any(_is_of(name, experiment) for name in names):
        raise ConfigError(
            f"No traces are stored with the experiment {shown(repr(experiment))}. "
            f"{nearest(experiment, names) if names else STORED}"
        )
    if others := [name for name in sorted(names) if name.startswith(f"{experiment}/")]:
        logger.info(
            "Runs of %s with other options are not among them. --experiment chooses them: %s.",
            experiment,
            ", ".join(others),
        )


def _check_named(
    solvers: Sequence[str],
    datasets: Sequence[str],
    sides: Sequence[ResultsFolder],
    experiment: str,
) -> None:
    """Raise `ConfigError` if no file is named for a solver or a dataset, before any is read."""
    there = _names_of(experiment, sides)
    for side in solvers:
        name, _ = _asked(side)
        if not any(each.endswith(f"-{name}") for each in there):
            _raise_no_solver(side, name, {each.rpartition("-")[2] for each in there})
    for name in datasets:
        if not any(each.startswith(f"{name}-") for each in there):
            _raise_no_dataset(name, {each.rpartition("-")[0] for each in there})


def _names_of(experiment: str, sides: Sequence[ResultsFolder]) -> set[str]:
    """Return ``<dataset>-<solver>`` of all runs, by the names of their files."""

    def wanted(name: str) -> bool:
        return experiment == ALL or _is_of(name, experiment)

    return set().union(*(loading.names(side, wanted, experiment == ALL) for side in sides))


def _raise_no_solver(side: str, name: str, there: set[str]) -> NoReturn:
    raise ConfigError(
        f"{shown(repr(side))} {_no_folder(side)}, and is no solver with runs. "
        f"{nearest(name, there) if there else STORED}"
    )


def _raise_no_dataset(name: str, there: set[str]) -> NoReturn:
    raise ConfigError(f"There are no runs on {shown(repr(name))}. {nearest(name, there)}")


def _is_of(name: str, experiment: str) -> bool:
    """Return whether traces stored with a name are those of an experiment, or of a pattern."""
    return name.count("/") == experiment.count("/") and fnmatchcase(name, experiment)


def _of_solvers(
    names: Sequence[str], read: Mapping[ResultsFolder, Runs], datasets: Sequence[str]
) -> tuple[list[Runs], list[pairs.Pairs], str]:
    """Return the runs of two solvers, their pairs, and whose these are: of the first side with any.

    ``read`` is side → its runs. Without pairs, the runs of all sides are returned.
    """
    everything = _of_datasets(Runs(run for runs in read.values() for run in runs), datasets)
    chosen = [_of_solver(name, everything) for name in names]
    for side, runs in read.items():
        here = {id(run) for run in runs}
        both = [Runs(run for run in of if id(run) in here) for of in chosen]
        if found := pairs.paired(both[0], both[1], same_curve=False):
            if side.whose == MINE and len(read) > 1:
                others = f"--runs {COMMITTED} compares the {side.origin} ones"
                logger.info("These are your own runs; %s.", others)
            elif len(read) > 1:
                logger.info("%s; %s are compared.", _lacking(names, chosen, here), side.called)
            return both, found, side.whose
    return chosen, [], next(iter(read)).whose


def _lacking(names: Sequence[str], chosen: Sequence[Runs], others: set[int]) -> str:
    """Return why the user's own runs of two solvers are not compared; ``others`` are not own."""
    own = [any(id(run) not in others for run in runs) for runs in chosen]
    none = [plain_values(name) for name, some in zip(names, own, strict=True) if not some]
    if not none:
        return "Your own runs of both have no two to compare"
    return f"You have no such runs of {' and '.join(none)}"


def _read(side: ResultsFolder, experiment: str, skipped: SkippedFiles, older: list[Run]) -> Runs:
    """Return the runs of a side; raw ones thinned like stored ones, to compare the same rows.

    Runs of older code are added to ``older``.
    """
    everything = experiment == ALL
    found = loading.load(side, lambda name: everything or _is_of(name, experiment), everything)
    for source in found.damaged:
        skipped.add(source.problem)
    older += found.older
    thinned = map(stored_traces.thin, found.raw.groups(lambda run: run.own_hash).values())
    return Runs(run for repeats in thinned for run in repeats) + found.stored


def _of_datasets(runs: Runs, datasets: Sequence[str]) -> Runs:
    there = {run.dataset for run in runs}
    for name in datasets:
        if name not in there:
            _raise_no_dataset(name, there)
    return runs.where(dataset=set(datasets)) if datasets else runs


def _asked(side: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """Return a solver's name and the options that follow it, pairs of key and value."""
    name, *options = side.split() or [side]
    parts = (option.removeprefix("solver.").partition("=") for option in options)
    return name, frozenset((key, value.lower()) for key, _, value in parts)


def _of_solver(side: str, runs: Runs) -> Runs:
    """Return the runs of a solver with the options that follow its name."""
    name, asked = _asked(side)
    solvers = {run.solver for run in runs}
    if name not in solvers:
        _raise_no_solver(side, name, solvers)

    runs = runs.where(solver=name)
    for key, value in sorted(asked):
        _check_option(runs, name, key, value)

    def has(run: Run) -> bool:
        return all(_shown_option(run, key).lower() == value for key, value in asked)

    return runs.where(has)


def _check_option(runs: Runs, solver: str, key: str, value: str) -> None:
    """Raise `ConfigError` if no run of a solver has an option, or none has this value of it."""
    if not value:
        raise ConfigError(
            f"{shown(repr(key))} is no option and its value, as T=10 in 'mpbcfw T=10'."
        )
    names = {option for run in runs for option in run.solver_options} - {"name", "kind"}
    if key not in names:
        raise ConfigError(f"{shown(repr(key))} is no option of {solver}. {nearest(key, names)}")
    values = {_shown_option(run, key) for run in runs}
    if value not in map(str.lower, values):
        raise ConfigError(
            f"No run of {solver} has {shown(f'{key}={value}')}. {nearest(value, values)}"
        )


def _shown_option(run: Run, key: str) -> str:
    return str(run.solver_options.get(key))
