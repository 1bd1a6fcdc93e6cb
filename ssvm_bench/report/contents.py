"""The contents of a page of the report: runs, their groups, and failures.

Runs on one problem instance are shown together. On a page that is not of an experiment, runs of one
solver with the same options, but other budgets, evaluation intervals or clocks, are in different
groups: otherwise its curves would differ only in where they end.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ssvm_bench.base import files
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import ALTERED, GENUINE, catalog
from ssvm_bench.config.experiment import Experiment
from ssvm_bench.figures import style
from ssvm_bench.report.experiment_files import Stored, find, load
from ssvm_bench.results import stored_traces, words
from ssvm_bench.results.folder import MINE, OPTION, ResultsFolder, plain
from ssvm_bench.results.reading import SkippedFiles, read_run, read_summary
from ssvm_bench.results.run_folder import PARTIAL, TRACEBACK
from ssvm_bench.results.table import (
    NOT_A_CURVE,
    BestValues,
    ProblemInstance,
    Run,
    differences,
    grouped,
    named_in,
    weight_in,
)

REASON_LENGTH = 400
MADE_BY = "Make some with `ssvm-bench experiment quickstart`, or choose another folder with "
MADE_BY += "results_dir=…"


ALONE, OWN, INDEX = "report.html", "own.html", "index.html"
"""Files of the user's own runs: beside ``runs``, and among all pages; the list of all pages."""


class Failure(NamedTuple):
    """Something that is no finished run: its location, what it is, how far it came, and why."""

    place: str
    what: str
    iterations: int | None
    reason: str


class Contents(NamedTuple):
    """The contents of a page.

    Attributes
    ----------
    name, title : str
        Name of its experiment, or of its folder of stored traces; its heading.
    traces : list of Run
        Finished runs.
    where : ResultsFolder
        Their results folder, restricted to one side: it has the pictures of an experiment.
    stored : int
        Number of runs that exist only as thinned traces.
    failures : list of Failure
        Partial traces, and files that cannot be read.
    experiment : Experiment, optional
        The experiment of these runs; None: they are any runs.
    file : str
        Name of its file.
    """

    name: str
    title: str
    traces: list[Run]
    where: ResultsFolder
    stored: int = 0
    failures: Sequence[Failure] = ()
    experiment: Experiment | None = None
    file: str = ALONE


class Group(NamedTuple):
    """Runs on a problem instance that are shown together, one per configuration and seed.

    ``setting`` distinguishes the group from others on the problem instance, if there are any.
    """

    traces: list[Run]
    setting: str = ""


Groups: TypeAlias = Mapping[ProblemInstance, Sequence[Group]]


class Page(NamedTuple):
    """The input of a page.

    Attributes
    ----------
    found : Contents
    groups, names : mapping
        Problem instance → its groups of runs; problem instance → its title.
    best : BestValues
    folder : Path
        The folder that it is written to.
    """

    found: Contents
    groups: Groups
    names: Mapping[ProblemInstance, str]
    best: BestValues
    folder: Path


def file_of(name: str) -> str:
    """Return the name of the file of an experiment's page.

    Experiments and folders of traces may have any names. A name that is not in lower case and of
    ASCII letters, digits, ``_`` and ``-``, or that is another page's, gets a point and a digest. So
    no two names are one file, also where upper and lower case are the same.

    >>> file_of("mpbcfw_fig4"), file_of("index"), file_of("Fig#4?")
    ('mpbcfw_fig4.html', 'index.1bc04b52.html', 'fig_4.43d442ae.html')
    """
    simple = re.sub("[^a-z0-9_-]+", "_", name.lower()).strip("_")[:60]
    if name == simple and f"{name}.html" not in (OWN, INDEX):
        return f"{name}.html"
    digest = hashlib.sha256(os.fsencode(name)).hexdigest()
    return f"{simple or 'page'}.{digest[:8]}.html"


def read(where: ResultsFolder | Path, skipped: SkippedFiles) -> Contents:
    """Read the user's own runs: all of a results folder except its committed traces.

    Parameters
    ----------
    where : ResultsFolder or Path
        The results folder.
    skipped : SkippedFiles
        Collects finished runs and stored traces that cannot be read.

    Raises
    ------
    RunFailedError
        If there are no runs and no failures.
    """
    (mine,) = plain(where).sides(MINE)
    root = mine.root
    traces: list[Run] = []
    failures: list[Failure] = []

    def failed(path: Path, what: str, iterations: int | None, why: object) -> None:
        place, said = path.relative_to(root).as_posix(), str(why).replace(f"{root}/", "")
        failures.append(Failure(place, what, iterations, said))

    for folder in sorted(root.glob("runs/*/*/*/seed=*")):
        if folder.name.endswith(PARTIAL):
            failed(folder, "partial trace", *_end(folder))
            continue
        try:
            traces.append(read_run(folder))
        except RunFailedError as error:
            skipped.add(error)
            failed(folder, "cannot be read", None, error)
    raw = {trace.own_folder for trace in traces}
    stored: dict[Path, Run] = {}
    for name in stored_traces.names(mine):
        for path in stored_traces.files_of(mine, name):
            try:
                for trace in stored_traces.read_file(path, root):
                    stored.setdefault(trace.own_folder, trace)
            except RunFailedError as error:
                skipped.add(error)
                failed(path, "stored traces", None, error)
    further = [trace for folder, trace in stored.items() if folder not in raw]
    if not (traces or further or failures):
        if mine.has_committed and any(root.glob("traces/*")):
            raise RunFailedError(
                f"There are no runs of your own in {root}. What is committed there is on the pages "
                "of `ssvm-bench report --all`, or of one --experiment. "
                "Make runs with `ssvm-bench experiment quickstart`."
            )
        raise RunFailedError(f"There are no runs in {root}. {MADE_BY}")
    runs = sorted([*traces, *further], key=_order)
    return Contents("report", "Your runs", runs, mine, len(further), failures)


def of_experiment(
    experiment: Experiment,
    where: ResultsFolder,
    config_dirs: Sequence[Path],
    skipped: SkippedFiles,
    whose: str = "",
    stored: Stored = stored_traces.read,
) -> Contents:
    """Return the contents of an experiment's page; there may be no finished runs.

    Parameters
    ----------
    experiment, where, config_dirs
        The experiment, the results folder, and further folders of config files.
    whose : str
        Whose runs, see `ResultsFolder.sides`; empty: the user's own if there are any.
    skipped, stored
        As for `find`.
    """
    grid = experiment.expanded([f"{OPTION}{where.root}"], config_dirs)
    found = find(experiment, grid, where.sides(whose), skipped, stored)
    runs = [*{run.own_folder: run for run in found.runs}.values()]
    thinned = sum(found.stored.get(run.own_folder) is run for run in runs)
    name, title = experiment.name, experiment.title
    about = name, title, runs, found.where, thinned
    return Contents(*about, experiment=experiment, file=file_of(name))


def everything(
    where: ResultsFolder, config_dirs: Sequence[Path], skipped: SkippedFiles, whose: str = ""
) -> list[Contents]:
    """Return the contents of each page: own runs, experiments with runs, other stored runs.

    The parameters are those of `of_experiment`.

    Raises
    ------
    RunFailedError
        If there are no runs at all.
    """
    stored, sides = cache(stored_traces.read), where.sides(whose)
    there = {name for side in sides for name in stored_traces.names(side) if "/" not in name}
    pages = []
    with suppress(RunFailedError):
        pages.append(read(where, skipped)._replace(file=OWN, name="own"))
    known = catalog.entries("experiments", config_dirs)
    for name in known:
        experiment = load(name, config_dirs)
        if there.isdisjoint(experiment.origins) and not any(where.root.glob("runs/*")):
            continue
        found = of_experiment(experiment, where, config_dirs, skipped, whose, stored)
        if found.traces:
            pages.append(found)
    for name in sorted(there - {*known}):
        for side in sides:
            if runs := sorted(stored(side, name, skipped), key=_order):
                title, count = f"Runs stored as {name}", len(runs)
                page = Contents(name, title, runs, side, count, file=file_of(name))
                pages.append(page)
                break
    if not pages:
        raise RunFailedError(f"There are no runs in {where.root}. {MADE_BY}")
    return pages


def _order(trace: Run) -> tuple:
    """Return a sort key: data that papers use first, then dataset, n, λ, solver, hash and seed."""
    data, config = trace.data, trace.config
    instance = data["source"] not in GENUINE, data["name"], data["n"], trace.metadata["lam"]
    return (*instance, config["solver"]["name"], trace.own_hash, config["seed"])


def _end(folder: Path) -> tuple[int | None, str]:
    """Return the number of iterations of a partial trace, and why it ended."""
    try:
        summary = read_summary(folder)
    except RunFailedError as error:
        return None, str(error)
    reason = str(summary.get("stop_reason"))
    with suppress(OSError):
        text = files.read(folder / TRACEBACK, within=folder).decode(errors="replace")
        reason += f": {(text.strip().splitlines() or [''])[-1][:REASON_LENGTH]}"
    return summary.get("iteration"), reason


# ---- groups -----------------------------------------------------------------------------------


def group(found: Contents) -> dict[ProblemInstance, list[Group]]:
    """Return problem instance → groups; unless these are of an experiment, the largest first."""
    problems = grouped(found.traces, lambda trace: trace.problem)
    if found.experiment:
        return {problem: [Group(runs)] for problem, runs in problems.items()}
    made = {problem: list(_groups(runs)) for problem, runs in problems.items()}
    return dict(sorted(made.items(), key=lambda item: _weight(item[1][0].traces), reverse=True))


def _weight(traces: Sequence[Run]) -> tuple[bool, int, int]:
    """Return a sort key for how much there is to see: real data, solvers, rows."""
    solvers = {trace.solver for trace in traces}
    return not mark(traces[0]), len(solvers), sum(len(trace) for trace in traces)


def _groups(traces: Sequence[Run]) -> Iterator[Group]:
    by_start = sorted(traces, key=lambda trace: str(trace.metadata.get("started")))
    latest = {(_options(run, solver=True), _options(run), run.seed): run for run in by_start}
    runs = sorted(latest.values(), key=_order)
    settings = grouped(runs, _options)
    of_solver = grouped(runs, lambda trace: _options(trace, solver=True))
    if all(len(set(map(_options, used))) == 1 for used in of_solver.values()):
        yield Group([trace for of_setting in settings.values() for trace in of_setting])
        return
    common = set.intersection(*(set(setting) for setting in settings))
    by_weight = sorted(settings.items(), key=lambda item: _weight(item[1]), reverse=True)
    for setting, members in by_weight:
        own = [f"{key}={value}" for key, value in setting if (key, value) not in common]
        yield Group(members, ", ".join(own))


def _options(trace: Run, solver: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the options, either the solver's or all others, that distinguish curves."""
    named = ((key, str(of)) for key, of in trace.options.items() if key not in NOT_A_CURVE)
    return tuple(sorted(pair for pair in named if pair[0].startswith("solver.") == solver))


# ---- names ------------------------------------------------------------------------------------

MARKS = {ALTERED: "ALTERED DATA", "synthetic": "STAND-IN"}
"""Source that is not the real data → its mark."""


def mark(trace: Run) -> str:
    """Return the mark of a run on data that papers do not use; else empty."""
    source = trace.source
    return "" if source in GENUINE else MARKS.get(source, source)


def dataset_name(trace: Run) -> str:
    """Return the name of the dataset in headings."""
    return style.dataset_name(trace.dataset)


def solver_name(trace: Run) -> str:
    """Return the name of the solver in texts."""
    return style.solver_label(trace.solver)


def weight_text(trace: Run) -> str:
    """Return λ, or ν, as K/n or as a number, whichever is shorter.

    λ = 507608/n is 1 where n = 507608.
    """
    lam, problem = float(trace.metadata["lam"]), trace.problem
    decimal = f"{lam:.4g}"
    parts = words.lam(lam, trace.n)
    exact = float(decimal) == lam or "/" not in parts
    shown = min(parts, decimal, key=len) if exact else parts
    return f"{weight_in(problem.fingerprint)} = {shown}"


def titles(groups: Groups) -> dict[ProblemInstance, str]:
    """Return problem instance → title: the dataset, and how it differs from others on that."""
    firsts = {problem: parts[0].traces[0] for problem, parts in groups.items()}
    found: dict[ProblemInstance, str] = {}
    for name, runs in grouped(firsts.values(), dataset_name).items():
        options = [run.options for run in runs]
        hidden = NOT_A_CURVE | {"dataset.name", "dataset.kind", "dataset.n_samples"}
        hidden |= {key for of in options for key in of if not key.startswith("dataset.")}
        parts = (
            [f"n = {run.data['n']:,}" for run in runs],
            [weight_text(run) for run in runs],
            [named_in(run.problem.fingerprint) for run in runs],
        )
        varied = [part for part in parts if len({*part}) > 1]
        others = differences(options, [0] * len(runs), hidden)
        others = [text.replace("dataset.", "").replace(" ", ", ") for text in others]
        columns = zip(map(mark, runs), *varied, others, strict=True)
        texts = [", ".join(filter(None, of_run)) for of_run in columns]
        for k, (run, text) in enumerate(zip(runs, texts, strict=True)):
            before = texts[:k].count(text)
            shown = ", ".join(filter(None, (text, f"data {before + 1}" * bool(before))))
            found[run.problem] = f"{name} ({shown})" if shown else name
    return {problem: found[problem] for problem in groups}
