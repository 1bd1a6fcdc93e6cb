"""Pages of the report: a summary, the first figures, and closed sections with everything else."""

from __future__ import annotations

import html
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from ssvm_bench import __version__
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import ALTERED
from ssvm_bench.figures import style, targets
from ssvm_bench.figures.curves import axis_label, clocks_of
from ssvm_bench.figures.document import (
    Html,
    Table,
    Warning,
    address,
    block,
    code,
    encoded,
    marked,
    plain,
    rows,
)
from ssvm_bench.report import contents, shown
from ssvm_bench.report.contents import INDEX, Contents, Failure, Group, Page
from ssvm_bench.report.experiment_files import load
from ssvm_bench.report.shown import details
from ssvm_bench.results import optima, words
from ssvm_bench.results.folder import ResultsFolder, sweep
from ssvm_bench.results.folder import plain as as_folder
from ssvm_bench.results.provenance import provenance, provenance_of
from ssvm_bench.results.reading import SkippedFiles
from ssvm_bench.results.run_folder import write_file
from ssvm_bench.results.table import BestValues, ProblemInstance, Run, Runs, labels
from ssvm_bench.results.words import NONE, number

FOLDER = "report"
NAMED = 5
"""The largest number of names in a sentence, and of problems with a finding in the summary."""

NOT_REAL = {ALTERED: "files that are not the known ones", "synthetic": "generated data"}
"""Source that is not the real data → what it is."""

logger = logging.getLogger(__name__)


def build(
    results_dir: Path | ResultsFolder,
    experiment: str = "",
    every: bool = False,
    config_dirs: Sequence[Path] = (),
    whose: str = "",
) -> Path:
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
    Path
        The page to begin with: ``report.html``, ``report/<experiment>.html`` (see
        `contents.file_of`) or ``report/index.html`` in the results folder.

    Raises
    ------
    ConfigError
        If there is no such experiment.
    RunFailedError
        If there are no runs, or a file cannot be written.
    """
    where = as_folder(results_dir)
    sweep(where)
    folder = where.root / FOLDER if every or experiment else where.root
    logger.info("Reading the runs in %s …", where.root)
    with SkippedFiles() as skipped:
        if every:
            found = contents.everything(where, config_dirs, skipped, whose)
        elif experiment:
            asked = load(experiment, config_dirs)
            found = [contents.of_experiment(asked, where, config_dirs, skipped, whose)]
            if not found[0].traces:
                raise RunFailedError(
                    f"No run of the experiment {asked.name} has finished in {where.root}. Make "
                    f"them with `ssvm-bench experiment {asked.runs}`, or choose another folder "
                    "with results_dir=…"
                )
        else:
            found = [contents.read(where, skipped)]
    best, _ = optima.untold((run for each in found for run in each.traces), where)
    for k, each in enumerate(found, 1):
        logger.info("Page %s of %s: %s", k, len(found), each.title)
        content = page(each, best, folder, every)
        written = write_file(folder / each.file, content, where.root)
    return write_file(folder / INDEX, _index(found), where.root) if every else written


def _index(found: Sequence[Contents]) -> bytes:
    """Return the page that lists all other pages."""
    cells = []
    for each in found:
        link = Html(f'<a href="{address(each.file)}">{plain(each.title)}</a>')
        of = each.traces
        data = dict.fromkeys(map(contents.dataset_name, of))
        solvers = dict.fromkeys(map(contents.solver_name, of))
        cells.append([link, code(each.name), len(of), listed(data), listed(solvers)])
    header = ["page", "experiment", "runs", "datasets", "solvers"]
    table = rows("A page for each experiment that has runs here.", header, cells)
    return _whole("All experiments", (), block(table), details("About these pages", _about(found)))


def page(found: Contents, best: BestValues, folder: Path, listed_: bool = False) -> bytes:
    """Return a page.

    Parameters
    ----------
    found : Contents
        Its contents.
    best : BestValues
    folder : Path
        The folder that it will be written to.
    listed_ : bool
        Whether another page lists this one.
    """
    groups = contents.group(found)
    about = Page(found, groups, contents.titles(groups), best, folder)
    tables = {problem: list(_targets(parts, best)) for problem, parts in groups.items()}
    figures, documents = shown.made(about)
    spent = [
        block(table._replace(title=f"To a relative gap: {about.names[problem]}{setting}"))
        for problem, parts in tables.items()
        for setting, _, table in parts
    ]
    if spent:
        said = marked(targets.KIND.intro)
        head = "Time and oracle calls to a relative gap"
        documents.append(details(head, f"<p>{said}</p>", *spent))
    links = [(INDEX, "All experiments")] * listed_ + [
        *([("#figures", "Figures")] if figures else ()),
        *([("#numbers", "Tables")] if documents else ()),
        *([("#runs", "Runs")] if found.traces else ()),
        *([("#failed", "What failed")] if found.failures else ()),
        ("#about", "About this page"),
    ]
    return _whole(
        found.title,
        links,
        *_summary(about, {problem: parts[:1] for problem, parts in tables.items()}),
        _section("figures", "Figures", *shown.opened(figures)),
        _section("numbers", "Tables", *documents),
        _section("runs", "Runs", *_of_runs(about)),
        _section("failed", "What failed", *_failed(found.failures)),
        _section("about", "About this page", _about([found])),
    )


# ---- the summary ------------------------------------------------------------------------------


def _summary(page: Page, tables: Mapping[ProblemInstance, Sequence[tuple]]) -> Iterator[Html]:
    traces, failures, names = page.found.traces, page.found.failures, page.names
    if not traces:
        yield Html("<p>No run has finished.</p>\n")
    else:
        solvers = listed(dict.fromkeys(map(contents.solver_name, traces)))
        problems = listed(names.values(), "problems")
        repeats = words.repeats(len(of) for of in Runs(traces).curves().values())
        of_data = dict.fromkeys((run.source, run.dataset) for run in traces)
        sources = ", ".join(dict.fromkeys(style.source_name(*of) for of in of_data))
        yield Html(
            f"<p>{words.runs(len(traces))} of {plain(solvers)} on {plain(problems)}: {repeats}, "
            f"{plain(sources)}, {plain(clocks_of(traces))}.</p>\n"
        )
    for source, what in NOT_REAL.items():
        data = [run.data for run in traces]
        named = {of["name"] for of in data if of["source"] == source}
        if named:
            text = (
                f"{contents.MARKS[source].capitalize()}: runs on {', '.join(sorted(named))} "
                f"include runs on {what}, which say nothing about the paper's numbers. They are "
                "marked wherever they appear."
            )
            yield block(Warning(plain(text)))
    said = [
        f"<li><strong>{plain(names[problem])}</strong>: {plain(text)}</li>"
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


def _targets(parts: Sequence[Group], best: BestValues) -> Iterator[tuple]:
    """Yield each group's setting, its costs to several gaps, and these as a table to show."""
    for part in parts:
        if np.isnan(best[part.traces[0].problem].dual):
            continue
        table = targets.targets(part.traces, best, targets.GAPS)
        if table["reached"].any() or (table["bound"] == targets.OWN).any():
            axes = {name: axis_label(part.traces, name) for name in targets.COSTS}
            yield f", {part.setting}" * bool(part.setting), table, targets.spent(table, axes)


def _finding(table: pd.DataFrame) -> str:
    """Return which solvers are first and second at the smallest gap reached, as a sentence."""
    there = table[table["time"].notna()]
    if there.empty:
        return f"no solver got to a relative gap of {table['gap'].max():g}."
    gap = there["gap"].min()
    first = there[there["gap"] == gap].sort_values("time", kind="stable").to_dict("records")
    of = [
        f"{targets.marked_label(row['solver'], table)}{{}}, after {words.seconds(row['time'])} "
        f"({row['calls']:.3g} passes)"
        for row in first[:2]
    ]
    text = of[0].format(f" is first at a relative gap of {gap:g}")
    text += "".join(f"; next is {after.format('')}" for after in of[1:])
    behind = table["solver"].nunique() - len(first)
    return f"{text}." + f" {behind} did not get there." * bool(behind)


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


# ---- tables of runs ------------------------------------------------------------------------------


def _of_runs(page: Page) -> Iterator[Html]:
    """Yield the tables of all runs, closed."""
    if traces := page.found.traces:
        yield details(f"The problem{'s' * (len(page.groups) > 1)}", block(_problems(page)))
        yield details(f"Every run ({len(traces)})", block(_table_of_runs(traces, page.names)))
        yield details("Machines and versions", _facts(_came_from(traces)))


def _problems(page: Page) -> Table:
    header = ["problem", "data", "n", "d", "weight", "objective and data", "solvers", "runs"]
    cells = []
    for problem, parts in page.groups.items():
        traces = [trace for part in parts for trace in part.traces]
        data, known = traces[0].data, page.best[problem]
        row: list[object] = [page.names[problem], style.source_name(data["source"], data["name"])]
        row += [f"{data['n']:,}", f"{data['d']:,}", contents.weight_text(traces[0])]
        row += [code(problem.fingerprint), ", ".join(sorted({*map(contents.solver_name, traces)}))]
        row += [len(traces), f"{known.primal:.6g}", number(known.dual, ".6g")]
        cells.append(row)
    title = "Problems, and the best values ever seen on them."
    return rows(title, [*header, "lowest primal", "highest dual"], cells)


def _table_of_runs(traces: Sequence[Run], names: Mapping[ProblemInstance, str]) -> Table:
    losses = sorted({name for trace in traces for name in trace.end if name.endswith("_loss")})
    header = ["problem", "solver", "seed", "stopped by", "iterations", "oracle calls", "time [s]"]
    header += ["in the oracle", "primal", "dual"]
    header += [name.replace("train_", "training ").replace("_", " ") for name in losses]
    cells = []
    for trace, label in zip(traces, labels(traces), strict=True):
        columns = ["iteration", "oracle_calls", "time", "oracle_time", "primal", "dual"]
        iterations, calls, time, oracle, primal, dual = trace.frame[columns].iloc[-1]
        row: list[object] = [names[trace.problem], style.solver_label(label)]
        row += [trace.seed, trace.stop_reason]
        row += [f"{iterations:.0f}", f"{calls:,.0f}", f"{time:.4g}"]
        row += [number(oracle / time if time > 0 else np.nan, ".0%")]
        row += [f"{primal:.6g}", number(dual, ".6g")]
        row += [number(trace.end.get(name), ".4g") for name in losses]
        begun = str(trace.metadata.get("started") or NONE)[:19].replace("T", " ")
        beside = trace.metadata.get("concurrent_runs", "not recorded")
        cells.append([*row, trace.own_hash, begun, beside])
    header += ["configuration", "started (UTC)", "other runs beside it"]
    return rows("Runs, and their last rows.", header, cells)


def _came_from(traces: Sequence[Run]) -> Iterator[tuple[str, str]]:
    came = provenance_of(traces)
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


def _failed(failures: Sequence[Failure]) -> Iterator[Html]:
    """Yield a table of failures, if there are any."""
    if failures:
        cells = [
            [code(place), what, NONE if iterations is None else iterations, reason]
            for place, what, iterations, reason in failures
        ]
        header = ["where", "what", "iterations", "reason"]
        yield block(rows("What gave no finished run.", header, cells))


def _about(found: Sequence[Contents]) -> Html:
    made, now = provenance(), datetime.now(UTC)
    commit = f"{made['git'] or 'unknown'}{' with changes' * bool(made['git_dirty'])}"
    stored = sum(each.stored for each in found)
    raw = sum(len(each.traces) for each in found) - stored
    time = Html(f'<time datetime="{now:%FT%TZ}">{now:%Y-%m-%d %H:%M} UTC</time>')
    by = f"ssvm-bench {__version__}, commit {commit}"
    of = f"{raw} runs as they were written, {stored} as they were stored, thinned"
    return _facts([("made", time), ("by", by), ("from", of)])


# ---- HTML -------------------------------------------------------------------------------------


def _whole(title: str, links: Iterable[tuple[str, str]], *inside: str) -> bytes:
    """Return a whole page; ``links`` are pairs of address and text."""
    style, script = (
        Path(__file__).with_name(f"page.{kind}").read_text(encoding="utf-8")
        for kind in ("css", "js")
    )
    nav = "".join(f'<a href="{html.escape(to)}">{plain(name)}</a>\n' for to, name in links)
    return encoded(f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{plain(title)} – ssvm-bench</title>
<style>{style}</style>
</head>
<body>
<a href="#content" class="skip">To the content</a>
<header><h1>{plain(title)}</h1><button id="theme" type="button">Dark page</button></header>
<nav aria-label="Contents">
{nav}</nav>
<main id="content">
{"".join(inside)}</main>
<script>{script}</script>
</body>
</html>
""")


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
    named = ((plain(name), plain(value)) for name, value in pairs)
    shown = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in named)
    return Html(f"<dl>{shown}</dl>\n")
