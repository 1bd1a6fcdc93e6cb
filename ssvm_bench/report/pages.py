"""The pages of ``ssvm-bench report``: one, or all with a list of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import registry
from ssvm_bench.figures.document import Html, address, block, code, escaped, plain
from ssvm_bench.report.contents import INDEX, OWN, Contents, everything, of_experiment, own
from ssvm_bench.report.experiment_files import load
from ssvm_bench.report.groups import marked_dataset, solver_name
from ssvm_bench.report.page import details, listed, origin, page, section, whole_page
from ssvm_bench.results import optima
from ssvm_bench.results.folder import ResultsFolder, SkippedFiles, as_folder, sweep, write_file
from ssvm_bench.results.table import Runs
from ssvm_bench.results.words import NONE

FOLDER = "report"

OTHERS = "Experiments of other files"
"""The heading of pages on runs whose experiment is no part of the program."""

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
            row["datasets"] = listed(dict.fromkeys(map(marked_dataset, each.runs)))
            row["solvers"] = listed(dict.fromkeys(map(solver_name, each.runs)))
            rows.append(row)
        id_ = f"group-{len(tables)}"
        named.append((f"#{id_}", title))
        table = block(plain("A page for each experiment that has runs here.", rows))
        tables.append(section(id_, title, table))
    about = details("About these pages", origin(found))
    return whole_page("All experiments", named if len(named) > 1 else (), intro, *tables, about)


def _by_paper(found: Sequence[Contents]) -> dict[str, list[Contents]]:
    """Return heading → pages: the user's own runs, those of no paper, then paper by paper."""
    titles = {paper.begins: paper.title for paper in registry.papers().values()}
    groups: dict[str, list[Contents]] = {"Your runs": [], OTHERS: [], "Beyond the papers": []}
    groups |= {f"{title[0].upper()}{title[1:]}": [] for title in titles.values()}
    headings = [*groups]
    for each in found:
        of = [k for k, begins in enumerate(titles, 3) if each.name.startswith(begins)]
        unknown = 1 if each.experiment is None else 2
        groups[headings[0 if each.file == OWN else of[0] if of else unknown]].append(each)
    return {title: pages for title, pages in groups.items() if pages}


def _link(to: str, text: str) -> Html:
    return Html(f'<a href="{address(to)}">{escaped(text)}</a>')
