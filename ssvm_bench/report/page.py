"""The HTML pages of ``ssvm-bench report``.

A page begins with who was first, by how much and on what, in words; that of the user's own runs
with their profile. Then come curves, then tables, the further ones closed. What all runs have in
common stands once. Runs on one problem instance are shown together. On a page that is not of an
experiment, runs of one solver with the same options, but other budgets, evaluation intervals or
clocks, are in different groups: otherwise its curves would differ only in where they end.

The page's script draws figures of curves when they come into view. The pictures of an experiment,
which `experiment_files` draws, are linked from their folder. The numbers of curves are packed. A
value takes two bytes: its position between the ends of its axis (on a log axis, that of its
logarithm) in 65,534 steps. This is many times as precise as a screen, and shorter than decimals in
JSON.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from ssvm_bench import __version__
from ssvm_bench.base.errors import ConfigError, RunFailedError, SsvmBenchError
from ssvm_bench.claims.cases import Variant, variant_of
from ssvm_bench.config import ALTERED, GENUINE, catalog, registry
from ssvm_bench.config.experiment import Experiment
from ssvm_bench.figures import profile, style, targets
from ssvm_bench.figures.curves import AXES, axis_label, clocks_of, is_log_x, why_empty
from ssvm_bench.figures.document import (
    Html,
    Table,
    Warning,
    address,
    block,
    code,
    encoded,
    escaped,
    marked,
    plain,
)
from ssvm_bench.figures.kind import FigureData, Kind, Output, Switched
from ssvm_bench.report.experiment_files import by_source, kinds, load
from ssvm_bench.results import loading, optima, stored_traces, words
from ssvm_bench.results.folder import (
    COMMITTED,
    MINE,
    OPTION,
    ResultsFolder,
    SkippedFiles,
    as_folder,
    sweep,
    write_file,
)
from ssvm_bench.results.provenance import provenance, provenance_of
from ssvm_bench.results.table import (
    MORE,
    NOT_A_CURVE,
    ProblemInstance,
    Run,
    Runs,
    differences,
    grouped,
    labels,
    named_in,
    weight_in,
)
from ssvm_bench.results.words import NONE, number

FOLDER = "report"
ALONE, OWN, INDEX = "report.html", "own.html", "index.html"
"""Files of the user's own runs: beside ``runs``, and among all pages; the list of all pages."""

SINGLE = "single_runs"
"""The name under which published traces are stored that no experiment has stored."""

NAMED = 5
"""The largest number of names in a sentence, and of problems with a finding in the summary."""

MADE_BY = "Make some with `ssvm-bench experiment quickstart`, or choose another folder with "
MADE_BY += "results_dir=…"

logger = logging.getLogger(__name__)


class Report(NamedTuple):
    """What `report` has written: the page to begin with, and the contents of each page."""

    path: Path
    contents: Sequence[Contents]

    def as_plain(self) -> dict[str, Any]:
        """Return where the pages are and what is on them, as plain values."""
        folder = self.path.parent
        pages = [{"page": folder / each.file, **each.as_plain()} for each in self.contents]
        return {"page": self.path, "pages": pages}


def report(
    results_dir: Path | ResultsFolder,
    experiment: str = "",
    every: bool = False,
    config_dirs: Sequence[Path] = (),
    whose: str = "",
) -> Report:
    """Write a page on the user's own runs or on an experiment, or pages on everything.

    Parameters
    ----------
    results_dir : Path or ResultsFolder
        The results folder. Thinned traces replace raw runs that are missing.
    experiment : str
        Name or path of an experiment; empty: own runs.
    every : bool
        Whether all pages are written, with one that lists them.
    config_dirs : sequence of Path
        Further folders of config files.
    whose : str
        Whose runs the pages of experiments show, see `ResultsFolder.sides`; empty: the user's own
        if there are any.

    Returns
    -------
    Report
        Its path is ``report.html``, ``report/<experiment>.html`` (see `file_of`) or
        ``report/index.html`` in the results folder.

    Raises
    ------
    ConfigError
        If there is no such experiment.
    RunFailedError
        If there are no runs, or a file cannot be written.
    """
    registry.use(config_dirs)
    with registry.readable_papers() as unreadable:
        for error in unreadable:
            logger.warning("Left out on all pages, a paper: %s", error)
        return _built(as_folder(results_dir), experiment, every, config_dirs, whose)


def _built(
    where: ResultsFolder, experiment: str, every: bool, config_dirs: Sequence[Path], whose: str
) -> Report:
    """Do `report` with the papers that can be read."""
    sweep(where)
    folder = where.root / FOLDER if every or experiment else where.root
    logger.info("Reading the runs in %s …", where.root)
    with SkippedFiles() as skipped:
        if every:
            found = everything(where, config_dirs, skipped, whose)
        elif experiment:
            asked = load(experiment, config_dirs)
            found = [of_experiment(asked, where, config_dirs, skipped, whose)]
            if not found[0].runs:
                raise RunFailedError(
                    f"No run of the experiment {asked.name} has finished in {where.root}. Make "
                    f"them with `ssvm-bench experiment {asked.runs}`, or choose another folder "
                    "with results_dir=…"
                )
        else:
            found = [own(where, skipped)]
    for name, content in rendered(found, where, folder, every):
        written = write_file(folder / name, content, where.root)
    return Report(written, found)


Explained: TypeAlias = Mapping[str, tuple[str, str]]
"""Name of an experiment → address and title of the page that explains it."""


def rendered(
    found: Sequence[Contents],
    where: ResultsFolder,
    folder: Path,
    every: bool = True,
    intro: str = "",
    explained: Explained | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of each page.

    Parameters
    ----------
    found : sequence of Contents
        The contents of each.
    where : ResultsFolder
        The results folder, which has the best values known.
    folder : Path
        The folder that they will be written to; pictures are linked from there.
    every : bool
        Whether a page that lists them is the last one, and each links to it.
    intro : str
        HTML at the beginning of that page.
    explained : mapping, optional
        Pages that are linked, too.
    """
    explained = explained or {}
    best = optima.known((run for each in found for run in each.runs), where)
    for k, each in enumerate(found, 1):
        logger.info("Page %s of %s: %s", k, len(found), each.title)
        more = [(INDEX, "All experiments")] * every
        more += [explained[each.name]] if each.name in explained else []
        yield each.file, page(each._replace(runs=Runs(each.runs, best)), folder, more)
    if every:
        yield INDEX, _index(found, intro, explained)


def _index(found: Sequence[Contents], intro: str, explained: Explained) -> bytes:
    """Return the page that lists all other pages: those of a paper's experiments together."""
    tables: list[Html] = []
    named: list[tuple[str, str]] = []
    for title, pages in _by_paper(found).items():
        rows = []
        for each in pages:
            row: dict[str, object] = {"page": _link(each.file, each.title)}
            if explained:
                why = explained.get(each.name)
                row["explained in"] = _link(*why) if why else NONE
            row |= {"experiment": code(each.name), "runs": len(each.runs)}
            row["datasets"] = listed(dict.fromkeys(map(_marked_dataset, each.runs)))
            row["solvers"] = listed(dict.fromkeys(map(solver_name, each.runs)))
            rows.append(row)
        id_ = f"group-{len(tables)}"
        named.append((f"#{id_}", title))
        table = block(plain("A page for each experiment that has runs here.", rows))
        tables.append(_section(id_, title, table))
    about = details("About these pages", _about(found))
    return _whole("All experiments", named if len(named) > 1 else (), intro, *tables, about)


def _by_paper(found: Sequence[Contents]) -> dict[str, list[Contents]]:
    """Return heading → pages: the user's own runs, those of no paper, then paper by paper."""
    titles = {paper.begins: paper.title for paper in registry.papers().values()}
    groups: dict[str, list[Contents]] = {"Your runs": [], "Beyond the papers": []}
    groups |= {f"{title[0].upper()}{title[1:]}": [] for title in titles.values()}
    headings = [*groups]
    for each in found:
        of = [k for k, begins in enumerate(titles, 2) if each.name.startswith(begins)]
        groups[headings[0 if each.file == OWN else of[0] if of else 1]].append(each)
    return {title: pages for title, pages in groups.items() if pages}


def _link(to: str, text: str) -> Html:
    return Html(f'<a href="{address(to)}">{escaped(text)}</a>')


# ---- the contents of a page: runs, and failures -----------------------------------------------


class Contents(NamedTuple):
    """The contents of a page.

    Attributes
    ----------
    name, title : str
        Name of its experiment, or of its folder of stored traces; its heading.
    runs : Runs
        Finished runs.
    where : ResultsFolder
        Their results folder, restricted to one side: it has the pictures of an experiment.
    stored : int
        Number of runs that exist only as thinned traces.
    failures : sequence of Failure
        Partial traces, and files that cannot be read.
    experiment : Experiment, optional
        The experiment of these runs; None: they are any runs.
    file : str
        Name of its file.
    """

    name: str
    title: str
    runs: Runs
    where: ResultsFolder
    stored: int = 0
    failures: Sequence[loading.Failure] = ()
    experiment: Experiment | None = None
    file: str = ALONE

    def as_plain(self) -> dict[str, Any]:
        """Return which runs it shows and what failed, as plain values."""
        return {
            "title": self.title,
            "experiment": self.experiment and self.experiment.name,
            "datasets": list(dict.fromkeys(run.dataset for run in self.runs)),
            "solvers": list(dict.fromkeys(run.solver for run in self.runs)),
            "runs": len(self.runs),
            "of_stored_traces": self.stored,
            "failures": [failure._asdict() for failure in self.failures],
        }


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


def own(where: ResultsFolder | Path, skipped: SkippedFiles) -> Contents:
    """Return the user's own runs: all of a results folder except its committed traces.

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
    (mine,) = as_folder(where).sides(MINE)
    found, root = loading.load(mine), mine.root
    failures = [
        loading.Failure(path, "stored traces" if name else loading.UNREADABLE, None, str(problem))
        for path, name, _, problem in found.damaged
    ]
    failures += loading.unfinished(root)
    for failure in failures:
        if failure.what != "partial trace":
            skipped.add(failure.reason)
    if not (found.runs or failures):
        if mine.has_references and any(root.glob("traces/*")):
            raise RunFailedError(
                f"There are no runs of your own in {root}. What is {mine.origin} there is on the "
                "pages of `ssvm-bench report --all`, or of one --experiment. Make runs with "
                "`ssvm-bench experiment quickstart`."
            )
        raise RunFailedError(f"There are no runs in {root}. {MADE_BY}")
    runs = Runs(sorted(found.runs, key=_order))
    return Contents("report", "Your runs", runs, mine, len(found.stored), sorted(failures))


def of_experiment(
    experiment: Experiment,
    where: ResultsFolder,
    config_dirs: Sequence[Path],
    skipped: SkippedFiles,
    whose: str = "",
    stored: loading.Stored = loading.stored,
) -> Contents:
    """Return the contents of an experiment's page; there may be no finished runs.

    Parameters
    ----------
    experiment, where, config_dirs
        The experiment, the results folder, and further folders of config files.
    whose : str
        Whose runs, see `ResultsFolder.sides`; empty: the user's own if there are any.
    skipped, stored
        As for `loading.find`.
    """
    grid = experiment.expanded([f"{OPTION}{where.root}"], config_dirs)
    found = loading.find(experiment, grid, where.sides(whose), skipped, stored)
    runs = Runs({run.own_folder: run for run in found.runs}.values())
    thinned = sum(found.stored.get(run.own_folder) is run for run in runs)
    about = experiment.name, experiment.title, runs, found.where, thinned
    return Contents(*about, experiment=experiment, file=file_of(experiment.name))


def everything(
    where: ResultsFolder, config_dirs: Sequence[Path], skipped: SkippedFiles, whose: str = ""
) -> list[Contents]:
    """Return the contents of each page: own runs, experiments with runs, other stored runs.

    If ``whose`` asks for committed runs, there is no page on own ones. The parameters are those of
    `of_experiment`.

    Raises
    ------
    RunFailedError
        If there are no runs at all.
    """
    stored, sides = cache(loading.stored), where.sides(whose)
    there = {name for side in sides for name in stored_traces.names(side)}
    pages = []
    if whose != COMMITTED:
        with suppress(RunFailedError):
            pages.append(own(where, skipped)._replace(file=OWN, name="own"))
    known = catalog.entries("experiments", config_dirs)
    for name in known:
        try:
            experiment = load(name, config_dirs)
        except ConfigError as error:  # its file, or the paper of its figures, has a mistake
            logger.warning("Left out, the page %s: %s", name, error)
            continue
        if there.isdisjoint(experiment.origins) and not any(where.root.glob("runs/*")):
            continue
        found = of_experiment(experiment, where, config_dirs, skipped, whose, stored)
        if found.runs:
            pages.append(found)
    for name in sorted(there - {*known}):
        for side in sides:
            if runs := Runs(sorted(stored(side, name, skipped), key=_order)):
                title = "Single runs" if name == SINGLE else f"Runs stored as {name}"
                about = name, title, runs, side, len(runs)
                pages.append(Contents(*about, file=file_of(name)))
                break
    if not pages:
        raise RunFailedError(f"There are no runs in {where.root}. {MADE_BY}")
    return pages


def _order(run: Run) -> tuple:
    """Return a sort key: data that papers use first, then dataset, n, λ, solver, hash and seed."""
    data = run.source not in GENUINE, run.dataset, run.n, run.lam
    return *data, run.solver, run.own_hash, run.seed


# ---- groups -----------------------------------------------------------------------------------


class Group(NamedTuple):
    """Runs on a problem instance that are shown together, one per configuration and seed.

    ``setting`` distinguishes the group from others on the problem instance, if there are any.
    """

    runs: Runs
    setting: str = ""


Groups: TypeAlias = Mapping[ProblemInstance, Sequence[Group]]


class Page(NamedTuple):
    """The input of a page.

    Attributes
    ----------
    found : Contents
    groups, names : mapping
        Problem instance → its groups of runs; problem instance → its title.
    folder : Path
        The folder that it is written to.
    """

    found: Contents
    groups: Groups
    names: Mapping[ProblemInstance, str]
    folder: Path


def group(found: Contents) -> dict[ProblemInstance, list[Group]]:
    """Return problem instance → groups; unless these are of an experiment, the largest first."""
    problems = found.runs.groups("problem")
    if found.experiment:
        return {problem: [Group(runs)] for problem, runs in problems.items()}
    made = {problem: list(_groups(runs)) for problem, runs in problems.items()}
    return dict(sorted(made.items(), key=lambda item: _weight(item[1][0].runs), reverse=True))


def _weight(runs: Runs) -> tuple[bool, int, int]:
    """Return a sort key for how much there is to see: real data, solvers, rows."""
    return not mark(runs[0]), len(runs.groups("solver")), sum(map(len, runs))


def _groups(runs: Runs) -> Iterator[Group]:
    by_start = sorted(runs, key=lambda run: str(run.metadata.get("started")))
    latest = {(_options(run, solver=True), _options(run), run.seed): run for run in by_start}
    runs = Runs(sorted(latest.values(), key=_order))
    settings = runs.groups(_options)
    of_solver = runs.groups(lambda run: _options(run, solver=True))
    if all(len(set(map(_options, used))) == 1 for used in of_solver.values()):
        yield Group(Runs(run for of_setting in settings.values() for run in of_setting))
        return
    common = set.intersection(*(set(setting) for setting in settings))
    by_weight = sorted(settings.items(), key=lambda item: _weight(item[1]), reverse=True)
    for setting, members in by_weight:
        only = [f"{key}={value}" for key, value in setting if (key, value) not in common]
        yield Group(members, ", ".join(only))


def _options(run: Run, solver: bool = False) -> tuple[tuple[str, str], ...]:
    """Return the options, either the solver's or all others, that distinguish curves."""
    named = ((key, str(of)) for key, of in run.options.items() if key not in NOT_A_CURVE)
    return tuple(sorted(pair for pair in named if pair[0].startswith("solver.") == solver))


# ---- names ------------------------------------------------------------------------------------

NOT_REAL = {
    ALTERED: ("ALTERED DATA", "files that are not the known ones"),
    "synthetic": ("SYNTHETIC", "generated data"),
}
"""Source that is not the real data → its mark, and what it is."""


def mark(run: Run) -> str:
    """Return the mark of a run on data that papers do not use; else empty."""
    return "" if run.source in GENUINE else NOT_REAL.get(run.source, (run.source,))[0]


def dataset_name(run: Run) -> str:
    """Return the name of the dataset in headings."""
    return style.dataset_name(run.dataset)


def _marked_dataset(run: Run) -> str:
    """Return the name of the dataset, with its mark if the data are not the real ones."""
    return f"{dataset_name(run)} ({mark(run)})" if mark(run) else dataset_name(run)


def solver_name(run: Run) -> str:
    """Return the name of the solver in texts."""
    return style.solver_label(run.solver)


def weight_text(run: Run) -> str:
    """Return λ, or ν, as K/n or as a number, whichever is shorter.

    λ = 507608/n is 1 where n = 507608.
    """
    decimal, parts = f"{run.lam:.4g}", words.lam(run.lam, run.n)
    exact = float(decimal) == run.lam or "/" not in parts
    shown = min(parts, decimal, key=len) if exact else parts
    return f"{weight_in(run.fingerprint)} = {shown}"


def weight_and_rule(run: Run) -> str:
    """Return λ, or ν, as a number, with K/n before it if it is one."""
    text = weight_text(run)
    return f"{text} = {run.lam:.4g}" if "/" in text else text


def titles(groups: Groups) -> dict[ProblemInstance, str]:
    """Return problem instance → title: the dataset, and how it differs from others on that."""
    firsts = {problem: parts[0].runs[0] for problem, parts in groups.items()}
    found: dict[ProblemInstance, str] = {}
    for name, runs in grouped(firsts.values(), dataset_name).items():
        options = [run.options for run in runs]
        hidden = NOT_A_CURVE | {"dataset.name", "dataset.kind", "dataset.n_samples"}
        hidden |= {key for of in options for key in of if not key.startswith("dataset.")}
        parts = (
            [f"n = {run.n:,}" for run in runs],
            [weight_text(run) for run in runs],
            [named_in(run.fingerprint) for run in runs],
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


# ---- a page -----------------------------------------------------------------------------------


def page(found: Contents, folder: Path, more: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return a page.

    Parameters
    ----------
    found : Contents
        Its contents; runs have the best values known.
    folder : Path
        The folder that it will be written to.
    more : sequence of (str, str)
        Addresses and names of other pages to link.
    """
    groups = group(found)
    about = Page(found, groups, titles(groups), folder)
    tables = {problem: list(_targets(parts)) for problem, parts in groups.items()}
    figures, documents = shown_of(about)
    answer = [] if found.experiment else [*_profile(about, documents)]
    spent = [
        block(table._replace(title=f"To a relative gap: {about.names[problem]}{setting}"))
        for problem, parts in tables.items()
        for setting, numbers, table in parts
        if numbers["reached"].any()
    ]
    if spent:
        said = marked(targets.KIND.intro)
        head = "Time and oracle calls to a relative gap"
        documents.append(details(head, f"<p>{said}</p>", *spent))
    links = [
        *more,
        *([("#figures", "Figures")] if figures else ()),
        *([("#numbers", "Tables")] if documents else ()),
        *([("#runs", "Runs")] if found.runs else ()),
        *([("#failed", "What failed")] if found.failures else ()),
        ("#about", "About this page"),
    ]
    return _whole(
        found.title,
        links,
        *_summary(about, {problem: parts[:1] for problem, parts in tables.items()}),
        *answer,
        _section("figures", "Figures", *opened(figures)),
        _section("numbers", "Tables", *documents),
        _section("runs", "Runs", *_of_runs(about)),
        _section("failed", "What failed", *_failed(found)),
        _section("about", "About this page", _about([found])),
    )


# ---- the summary ------------------------------------------------------------------------------


def _summary(page: Page, tables: Mapping[ProblemInstance, Sequence[tuple]]) -> Iterator[Html]:
    runs, failures, names = page.found.runs, page.found.failures, page.names
    if not runs:
        yield Html("<p>No run has finished.</p>\n")
    else:
        solvers = listed(dict.fromkeys(map(solver_name, runs)))
        problems = listed(names.values(), "problems")
        repeats = words.repeats(len(of) for of in runs.curves().values())
        of_data = runs.groups("source", "dataset")
        sources = ", ".join(dict.fromkeys(style.source_name(*of) for of in of_data))
        common = f" {escaped(_data_of(runs[0]))}" * (len(names) == 1)
        yield Html(
            f"<p>{words.runs(len(runs))} of {escaped(solvers)} on {escaped(problems)}: {repeats}, "
            f"{escaped(sources)}, {escaped(clocks_of(runs))}.{common}</p>\n"
        )
    for source, (marked_as, what) in NOT_REAL.items():
        if named := {run.dataset for run in runs.where(source=source)}:
            text = (
                f"{marked_as.capitalize()}: runs on {', '.join(sorted(named))} "
                f"include runs on {what}, which say nothing about the paper's numbers. They are "
                "marked wherever they appear."
            )
            yield block(Warning(escaped(text)))
    said = [
        f"<li><strong>{escaped(names[problem])}</strong>: {escaped(text)}</li>"
        for problem, parts in tables.items()
        for _, table, _ in parts
        if (text := _finding(table))
    ]
    if said:
        more = [details(f"{len(said) - NAMED} more problems", "<ul>", *said[NAMED:], "</ul>")]
        yield Html(f"<ul>{''.join(said[:NAMED])}</ul>\n{''.join(more * (len(said) > NAMED))}")
    if failures:
        link = f'<a href="#failed">{len(failures)} failed or incomplete</a>'
        yield Html(f"<p>Beside them: {link}.</p>\n")


def _targets(parts: Sequence[Group]) -> Iterator[tuple]:
    """Yield each group's setting, its costs to several gaps, and these as a table to show."""
    for part in parts:
        best = part.runs[0].best
        if best is None or np.isnan(best.dual):
            continue
        table = targets.targets(part.runs, ())
        if table["reached"].any() or (table["bound"] == targets.OWN).any():
            axes = {name: axis_label(part.runs, name) for name in targets.COSTS}
            yield f", {part.setting}" * bool(part.setting), table, targets.spent(table, axes)


DRAW = 1.02
"""The ratio of two times below which no solver is said to be ahead."""


def _finding(table: pd.DataFrame) -> str:
    """Return who is first at the smallest gap reached, and by how much, in a sentence or two."""
    there = table[table["time"].notna()]
    if there.empty:
        most = " in most of its runs" * bool(table["reached"].any())
        return f"no solver got to a relative gap of {table['gap'].max():g}{most} yet: {MORE}."
    gap = there["gap"].min()
    ranked = there[there["gap"] == gap].sort_values("time", kind="stable").to_dict("records")
    first, *others = ranked

    def name(row: Mapping[Hashable, Any]) -> str:
        return targets.marked_label(row["solver"], table)

    text = f"{name(first)} is first at a relative gap of {gap:g}, after {_spent(first)}"
    if others:
        text += f"; next is {name(others[0])}, after {_spent(others[0])}"
        ratio = others[0]["time"] / first["time"] if first["time"] > 0 else np.nan
        if ratio < DRAW:
            text += ", which is a draw"
        elif np.isfinite(ratio):
            text += f", {number(ratio, ',.0f' if ratio >= 100 else '.2g')} times as long"
    text += "."
    fewest = min(ranked, key=lambda row: row["calls"])
    if fewest["calls"] < first["calls"]:
        text += (
            f" {name(fewest)} made the fewest calls of the oracle: {fewest['calls']:.3g} passes."
        )
    missing = table["solver"].nunique() - len(ranked)
    return text + f" {missing} did not get there." * bool(missing)


def _spent(row: Mapping[Hashable, Any]) -> str:
    return f"{words.seconds(row['time'])}, {row['calls']:.3g} passes"


def _profile(page: Page, documents: list[Html]) -> Iterator[Html]:
    """Yield who was first on all problems together, and the figure; add the table to the others."""
    kind = kinds()[profile.KIND.name]
    for output in kind.outputs(_whole_data(page), kind.chosen):
        if output.figure:
            yield _embedded(output.title, output)
        else:
            yield Html(f"<p>{escaped(_overall(output.table))}</p>\n")
            documents.append(details(output.title, *map(block, output.blocks)))


def _overall(table: pd.DataFrame) -> str:
    """Return who was first to most of the targets of a profile, in each cost, in words."""
    said = []
    for cost, rows in table.groupby("cost", sort=False):
        most = rows["first"].max()
        names = listed(map(style.solver_label, rows.loc[rows["first"] == most, "solver"]))
        said.append(f"in {profile.heading(str(cost))}, {names} ({words.share(most)})")
    n = table["targets"].iloc[0]
    which = f"{n} targets, each" if n > 1 else "one target,"
    return f"First most often to {which} a relative gap on a problem: {'; '.join(said)}."


def listed(names: Iterable[str], many: str = "") -> str:
    """Return names as part of a sentence; long lists are shortened.

    >>> listed(["a"]), listed("ab"), listed("abcdef"), listed("abcdef", "letters")
    ('a', 'a and b', 'a, b, c, d, e and 1 more', '6 letters')
    """
    all_ = [*map(str, names)]
    if len(all_) > NAMED:
        if many:
            return f"{len(all_)} {many}"
        all_ = [*all_[:NAMED], f"{len(all_) - NAMED} more"]
    return " and ".join(filter(None, (", ".join(all_[:-1]), all_[-1])))


# ---- figures, pictures and documents -----------------------------------------------------------

FIRST = 4
"""The number of figures that are open."""

HOW_TO = (
    "Buttons choose the x axis, the scales and one panel, and hide solvers; a double click on a "
    "solver hides all others. Drag to zoom, double-click to see all again. With the keyboard, "
    "arrow keys read off the curves, plus and minus zoom, Escape shows all. The address of the "
    "page has what you chose, and the browser's back button takes it back."
)


class Shown(NamedTuple):
    """A figure: its heading, and the markup below."""

    title: str
    markup: Html


def details(summary: str, *inside: str) -> Html:
    """Return a block that is closed until it is clicked."""
    return Html(f"<details><summary>{marked(summary)}</summary>\n{''.join(inside)}</details>\n")


def opened(figures: Sequence[Shown]) -> Iterator[str]:
    """Yield the first figures open, and the others closed."""
    if any("data-plot" in shown.markup for shown in figures):
        yield f'<p class="quiet-text">{HOW_TO}</p>\n'
    for shown in figures[:FIRST]:
        yield f"<h3>{escaped(shown.title)}</h3>\n{shown.markup}"
    further = [details(escaped(shown.title), shown.markup) for shown in figures[FIRST:]]
    if len(further) > FIRST:
        further = [details(f"{len(further)} more", *further)]
    yield from further


def shown_of(page: Page) -> tuple[list[Shown], list[Html]]:
    """Return the figures of a page, and its documents."""
    figures: list[Shown] = []
    documents: list[Html] = []
    found, known = page.found, dict(kinds())
    asked = found.experiment.figures if found.experiment else {}
    if not found.experiment:
        del known[profile.KIND.name]  # it comes first
    for kind in map(known.__getitem__, asked) if found.experiment else known.values():
        anything = not found.experiment  # an empty figure says why
        try:
            mine = list(_of_instances(page, kind, bool(figures), anything))
            if not mine and (found.experiment or kind.documents):
                choices = asked.get(kind.name, kind.chosen or kind.choices.names)
                outputs = [*_outputs(page, kind, choices)]
                mine = [shown for shown in outputs if isinstance(shown, Shown)]
                documents += [shown for shown in outputs if not isinstance(shown, Shown)]
        except SsvmBenchError as error:  # no measurements, or a claim with a mistake
            logger.warning("Left out on the page %s: %s", found.name, error)
            continue
        figures += mine
    if found.experiment and not any("data-plot" in figure.markup for figure in figures):
        for place in found.where.stored:
            for path in sorted((place / "figures" / found.name).glob("*.png")):
                picture = _picture(path, page.folder)
                if picture not in figures:
                    figures.append(picture)
        if not figures:
            best = found.runs.best
            bounded = (of for of in page.groups.items() if best[of[0]].dual > -np.inf)
            figures += _of_instances(page._replace(groups=dict(bounded)), known["suboptimality"])
    return figures, documents


def _of_instances(
    page: Page, kind: Kind, named: bool = False, also_empty: bool = False
) -> Iterator[Shown]:
    """Yield the figures of a kind for each group of runs on a problem instance.

    Headings name the figure if ``named``, or if a group has several. What a kind is, is said once.
    The data are said with each figure, unless all are of the same: then they are in the summary.
    """
    intro = kind.intro
    for problem, parts in page.groups.items():
        for part in parts:
            drawn = [
                shown
                for shown in kind.of_instance(FigureData(part.runs))
                if also_empty or any(of["median"].notna().any() for of in shown.tables.values())
            ]
            for shown in drawn:
                title = page.names[problem] + f", {part.setting}" * bool(part.setting)
                if named or len(drawn) > 1:
                    title += f": {shown.what[0].lower()}{shown.what[1:]}"
                data = _data_of(part.runs[0]) if len(page.groups) > 1 else ""
                yield Shown(title, _plot(title, shown, data, intro))
                intro = ""


def _data_of(run: Run) -> str:
    source = style.source_name(run.source, run.dataset)
    size = f"n = {run.n:,}, d = {run.data['d']:,}"
    return f"{dataset_name(run)}, {source}: {size}, {weight_and_rule(run)}."


def _plot(title: str, shown: Switched, *notes: str) -> Html:
    packed = json.dumps(packed_figure(shown), ensure_ascii=False, separators=(",", ":"))
    packed = packed.replace("<", r"\u003c")
    said = " ".join(escaped(note) for note in (*notes, *shown.notes) if note)
    return Html(
        f'<figure class="plot" data-plot role="group" aria-label="{html.escape(title)}">'
        f'<div class="here"></div><figcaption>{said}</figcaption>\n'
        f'<script type="application/json">{packed}</script></figure>\n'
    )


def _picture(path: Path, folder: Path) -> Shown:
    title = path.stem.replace("_", " ").capitalize()
    place = address(os.path.relpath(path, folder))
    image = f'<img src="{place}" alt="{html.escape(title)}" loading="lazy">'
    return Shown(title, Html(f'<figure><a href="{place}">{image}</a></figure>\n'))


def _embedded(title: str, output: Output) -> Html:
    from ssvm_bench.figures.drawing import rendered

    assert output.figure
    drawn = base64.b64encode(rendered(output.figure(), "svg")).decode()
    name = html.escape(title)
    image = f'<img src="data:image/svg+xml;base64,{drawn}" alt="{name}">'
    inside = f'<div class="wide" tabindex="0" role="region" aria-label="{name}">{image}</div>'
    return Html(f"<figure>{inside}</figure>\n")


def _outputs(page: Page, kind: Kind, choices: Sequence[str]) -> Iterator[Shown | Html]:
    """Yield what a kind shows of all runs: existing pictures, and its documents."""
    found, whole = page.found, _whole_data(page)
    together = by_source(whole) if found.experiment else {"real": whole}
    for source, data in together.items():
        for output in kind.outputs(data, choices):
            title = output.title or f"{found.title}: {output.name}"
            name = f"{output.name}{stored_traces.suffix(source)}.png"
            for place in found.where.stored if output.figure else ():
                if (path := place / "figures" / found.name / name).is_file():
                    yield _picture(path, page.folder)
                    break
            else:
                if output.figure and kind.embedded:
                    yield Shown(title, _embedded(title, output))
            if output.lacking:
                yield Html(f"<p>{marked(output.lacking)}</p>\n")
            elif output.blocks and len(output.table):
                yield details(title, *map(block, output.blocks))


def _whole_data(page: Page) -> FigureData:
    """Return the runs that documents compare."""
    found, runs = page.found, page.found.runs
    if not found.experiment:
        runs = Runs(run for parts in page.groups.values() for run in _largest(parts))
    gaps = found.experiment.gaps if found.experiment else ()
    return FigureData(runs, found.title, gaps, found.where.root, decided=not found.experiment)


def _largest(parts: Sequence[Group]) -> Iterator[Run]:
    """Yield the runs on one instance that documents compare: one setting per solver.

    For each variant and solver, from scratch or along a path, it is the largest setting that has
    runs.
    """

    def kind(run: Run) -> tuple[Variant, str, bool]:
        return variant_of(run), run.solver, bool(run.config.get("path"))

    seen: set[tuple[Variant, str, bool]] = set()
    for part in parts:
        yield from (run for run in part.runs if kind(run) not in seen)
        seen |= set(map(kind, part.runs))


# ---- the numbers of a figure, packed ----------------------------------------------------------

STEPS = 65_534
GONE = STEPS + 1
"""The code of a value that does not exist."""

DASHES = {"-": "", "--": "7 3", ":": "1.5 2.5", "-.": "7 2.5 1.5 2.5"}
"""Line style → lengths of lines and spaces."""

HEIGHTS = ["median", "min", "max"]
Ends = tuple[float, float]


def packed_figure(shown: Switched) -> dict[str, Any]:
    """Return the data of a figure with one panel per quantity.

    Returns
    -------
    dict
        ``panels``, their names; ``empty``, why a panel has no curve; ``log``, whether y is on a log
        axis; ``curves``, name and look of each; and ``axes``. Each x axis has its button and label,
        whether it is logarithmic, the ends of ``x`` and, per panel, of ``y``. It also has the x of
        each curve and, per panel, its median, and minimum and maximum where repeats differ;
        or the number of an earlier axis where these are the same.
    """
    first = next(iter(shown.tables.values()))
    solvers = list(dict.fromkeys(first["solver"]))
    quantities = list(dict.fromkeys(first["quantity"]))
    curves = []
    for solver, (color, dashes) in style.strokes(solvers).items():
        dash = DASHES[dashes] if isinstance(dashes, str) else " ".join(map(str, dashes[1]))
        curves.append({"name": style.solver_label(solver), "color": color, "dash": dash})
    axes = []
    for axis, table in shown.tables.items():
        log = is_log_x(table, axis)
        drawn = table[["x", *HEIGHTS]].astype(float)
        drawn["x"] = _drawn(drawn["x"].to_numpy(), log)
        drawn[HEIGHTS] = _drawn(drawn[HEIGHTS].to_numpy(), shown.log)
        ends_x = _ends(drawn["x"].to_numpy())
        ends_y = [
            _ends(drawn.loc[table["quantity"] == of, HEIGHTS].to_numpy()) for of in quantities
        ]
        of_curves = dict(iter(drawn.groupby([table["solver"], table["quantity"]], sort=False)))
        of_solvers = ([of_curves.get((solver, of)) for of in quantities] for solver in solvers)
        packed = [_curve(of_solver, ends_x, ends_y) for of_solver in of_solvers]
        about = {"button": AXES[axis].button, "label": shown.labels[axis], "log": log}
        axes.append({**about, "x": ends_x, "y": ends_y, "curves": packed})
    for k, of_axis in reversed([*enumerate(axes)]):  # those before it are still whole
        _say_once(of_axis, axes[:k])
    empty = [why_empty(first[first["quantity"] == quantity]) for quantity in quantities]
    return {"panels": quantities, "empty": empty, "log": shown.log, "curves": curves, "axes": axes}


def _curve(
    curves: Sequence[pd.DataFrame | None], ends_x: Ends, ends_y: Sequence[Ends]
) -> tuple[str | None, list[list[str] | None]]:
    """Return a curve's x, the same in all panels, and its heights in each panel."""
    x: str | None = None
    panels: list[list[str] | None] = []
    for curve, ends in zip(curves, ends_y, strict=True):
        if curve is None or curve["median"].isna().all():
            panels.append(None)
            continue
        x = _packed(curve["x"].to_numpy(), ends_x)
        shown = HEIGHTS if (curve["max"] > curve["min"]).any() else HEIGHTS[:1]
        panels.append([_packed(curve[name].to_numpy(), ends) for name in shown])
    return x, panels


def _say_once(axis: dict[str, Any], earlier: Sequence[dict[str, Any]]) -> None:
    """Replace the heights that a curve has on an earlier axis by the number of that axis."""
    for k, (_, panels) in enumerate(axis["curves"]):
        for p, heights in enumerate(panels):
            for j, other in enumerate(earlier):
                same = other["curves"][k][1][p] == heights and other["y"][p] == axis["y"][p]
                if heights is not None and same:
                    panels[p] = j
                    break


def _drawn(values: np.ndarray, log: bool) -> np.ndarray:
    """Return values as their axis shows them."""
    return np.log10(values, out=np.full_like(values, np.nan), where=values > 0) if log else values


def _ends(values: np.ndarray) -> Ends:
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)


def _packed(values: np.ndarray, ends: Ends) -> str:
    low, high = ends
    share = np.where(np.isfinite(values), (values - low) / ((high - low) or 1.0), 0.0)
    codes = np.where(np.isfinite(values), np.round(share * STEPS), GONE)
    return base64.b64encode(codes.astype("<u2").tobytes()).decode()


# ---- tables of runs ------------------------------------------------------------------------------


def _of_runs(page: Page) -> Iterator[Html]:
    """Yield the tables of all runs, closed."""
    if runs := page.found.runs:
        yield details(f"The problem{'s' * (len(page.groups) > 1)}", block(_problems(page)))
        yield details(f"Every run ({len(runs)})", block(_table_of_runs(runs, page.names)))
        yield details("Options that all runs share", _facts(_shared(runs)))
        yield details("Machines and versions", _facts(_came_from(runs)))


def _problems(page: Page) -> Table:
    found = []
    for problem, parts in page.groups.items():
        runs = Runs(run for part in parts for run in part.runs)
        first, known = runs[0], runs.best[problem]
        row: dict[str, object] = {"problem": page.names[problem]}
        row["data"] = style.source_name(first.source, first.dataset)
        row |= {"n": f"{first.n:,}", "d": f"{first.data['d']:,}", "weight": weight_and_rule(first)}
        row["objective and data"] = code(problem.fingerprint)
        row["solvers"] = ", ".join(sorted({*map(solver_name, runs)}))
        row |= {"runs": len(runs), "lowest primal": f"{known.primal:.6g}"}
        found.append({**row, "highest dual": number(known.dual, ".6g")})
    return _once("Problems, and the best values ever seen on them.", found)


def _once(title: str, rows: Sequence[Mapping[str, object]]) -> Table:
    """Return a table; what is the same in all of several rows stands in its title alone.

    The first two columns say which row it is, and stay.
    """
    heads = [*rows[0]]
    same = {
        head: rows[0][head]
        for head in heads[2:]
        if len(rows) > 1 and len({str(row[head]) for row in rows}) == 1
    }
    same = {head: value for head, value in same.items() if not isinstance(value, Html)}
    if same:
        title += f" The same in all: {', '.join(f'{head} {of}' for head, of in same.items())}."
    kept = [head for head in heads if head not in same]
    return plain(title, [{head: row[head] for head in kept} for row in rows])


def _shared(runs: Runs) -> Iterator[tuple[str, object]]:
    """Yield the options that have one value in all runs."""
    options = [run.options for run in runs]
    for name, value in sorted(options[0].items()):
        if name != "results_dir" and all(name in of and of[name] == value for of in options):
            yield name, value


def _table_of_runs(runs: Runs, names: Mapping[ProblemInstance, str]) -> Table:
    losses = sorted({name for run in runs for name in run.end if name.endswith("_loss")})
    found = []
    for run, label in zip(runs, labels(runs), strict=True):
        columns = ("iteration", "oracle_calls", "time", "oracle_time", "primal", "dual")
        iterations, calls, time, oracle, primal, dual = (run[name][-1] for name in columns)
        row: dict[str, object] = {"problem": names[run.problem]}
        row |= {"solver": style.solver_label(label), "seed": run.seed}
        row |= {"stopped by": run.stop_reason, "iterations": f"{iterations:.0f}"}
        row |= {"oracle calls": f"{calls:,.0f}", "time [s]": f"{time:.4g}"}
        row["in the oracle"] = number(oracle / time if time > 0 else np.nan, ".0%")
        row |= {"primal": f"{primal:.6g}", "dual": number(dual, ".6g")}
        for name in losses:
            head = name.replace("train_", "training ").replace("_", " ")
            row[head] = number(run.end.get(name), ".4g")
        row["configuration"] = run.own_hash
        row["started (UTC)"] = str(run.metadata.get("started") or NONE)[:19].replace("T", " ")
        row["other runs beside it"] = run.metadata.get("concurrent_runs", "not recorded")
        found.append(row)
    return _once("Runs, and their last rows.", found)


def _came_from(runs: Runs) -> Iterator[tuple[str, str]]:
    came = provenance_of(runs)
    for name in ("clock", "cpu", "cores", "node", "engine", "system", "commits"):
        if name in came:
            yield name, _counted(came[name])
    versions = (f"{name} {_counted(counts)}" for name, counts in came["versions"].items())
    yield "versions", ", ".join(versions)


def _counted(counts: Mapping[str, int]) -> str:
    """Return the only value, or all values, each with its number of runs."""
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({count} runs)" for value, count in counts.items())


def _failed(found: Contents) -> Iterator[Html]:
    """Yield a table of failures, if there are any."""
    root = found.where.root
    rows = [
        {
            "where": code(path.relative_to(root).as_posix()),
            "what": what,
            "iterations": NONE if iterations is None else iterations,
            "reason": reason.replace(f"{root}/", ""),
        }
        for path, what, iterations, reason in found.failures
    ]
    if rows:
        yield block(plain("What gave no finished run.", rows))


def _about(found: Sequence[Contents]) -> Html:
    made, now = provenance(), datetime.now(UTC)
    commit = f"{made['git'] or 'unknown'}{' with changes' * bool(made['git_dirty'])}"
    stored = sum(each.stored for each in found)
    raw = sum(len(each.runs) for each in found) - stored
    time = Html(f'<time datetime="{now:%FT%TZ}">{now:%Y-%m-%d %H:%M} UTC</time>')
    by = f"ssvm-bench {__version__}, commit {commit}"
    of = f"{raw} runs as they were written, {stored} as they were stored, thinned"
    return _facts([("made", time), ("by", by), ("from", of)])


# ---- HTML -------------------------------------------------------------------------------------


def _whole(title: str, links: Iterable[tuple[str, str]], *inside: str) -> bytes:
    """Return a whole page; ``links`` are pairs of address and text."""
    parts = {
        kind: Path(__file__).with_name(f"page.{kind}").read_text(encoding="utf-8")
        for kind in ("html", "css", "js")
    }
    nav = "".join(f'<a href="{html.escape(to)}">{escaped(name)}</a>\n' for to, name in links)
    frame = Template(parts.pop("html"))
    return encoded(frame.substitute(parts, title=escaped(title), nav=nav, inside="".join(inside)))


def _section(id_: str, title: str, *inside: str) -> Html:
    """Return a section of the page; empty if it has no content."""
    if not any(inside):
        return Html("")
    return Html(
        f'<section aria-labelledby="{id_}"><h2 id="{id_}">{marked(title)}</h2>\n'
        f"{''.join(inside)}</section>\n"
    )


def _facts(pairs: Iterable[tuple[str, object]]) -> Html:
    """Return a list of names and values."""
    named = ((escaped(name), escaped(value)) for name, value in pairs)
    shown = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in named)
    return Html(f"<dl>{shown}</dl>\n")
