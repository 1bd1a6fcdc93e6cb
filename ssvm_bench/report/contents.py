"""Which runs a page is on, and what failed.

There are pages of own runs, of experiments, and of stored runs of no experiment.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import GENUINE, catalog
from ssvm_bench.config.experiment import Experiment
from ssvm_bench.report.experiment_files import load, of_own_experiment
from ssvm_bench.results import loading, older_code, stored_traces
from ssvm_bench.results.folder import (
    COMMITTED,
    MINE,
    OPTION,
    ResultsFolder,
    SkippedFiles,
    as_folder,
)
from ssvm_bench.results.table import Run, Runs

ALONE, OWN, INDEX = "report.html", "own.html", "index.html"
"""Files of the user's own runs: beside ``runs``, and among all pages; the list of all pages."""

SINGLE = "single_runs"
"""The name under which published traces are stored that no experiment has stored."""

MADE_BY = "Make some with `ssvm-bench experiment quickstart`, or choose another folder with "
MADE_BY += "results_dir=…"

logger = logging.getLogger(__name__)


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
    older : sequence of Run
        Runs of older code, which are left out.
    """

    name: str
    title: str
    runs: Runs
    where: ResultsFolder
    stored: int = 0
    failures: Sequence[loading.Failure] = ()
    experiment: Experiment | None = None
    file: str = ALONE
    older: Sequence[Run] = ()

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
    runs = Runs(sorted(found.runs, key=order))
    if left_out := older_code.left_out(found.older):
        logger.warning("%s", left_out)
    about = runs, mine, len(found.stored), sorted(failures)
    return Contents("report", "Your runs", *about, older=found.older)


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
    file = file_of(experiment.name)
    return Contents(*about, experiment=experiment, file=file, older=found.older)


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
            if runs := Runs(sorted(stored(side, name, skipped), key=order)):
                drawn = (place / "figures" / name for place in side.stored)
                titles = (of_own_experiment(folder, side.root, "title") for folder in drawn)
                title = next(filter(None, titles), f"Runs stored as {name}")
                title = "Single runs" if name == SINGLE else title
                about = name, title, runs, side, len(runs)
                pages.append(Contents(*about, file=file_of(name)))
                break
    if not pages:
        raise RunFailedError(f"There are no runs in {where.root}. {MADE_BY}")
    return pages


def order(run: Run) -> tuple:
    """Return a sort key: data that papers use first, then dataset, n, λ, solver, hash and seed."""
    data = run.source not in GENUINE, run.dataset, run.n, run.lam
    return *data, run.solver, run.own_hash, run.seed
