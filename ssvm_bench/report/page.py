"""One page of ``ssvm-bench report``: its runs in, HTML out.

A page begins with who was first, by how much and on what, in words; that of the user's own runs
with their profile, which the page of an experiment that does not list it has as its last figure.
Then come curves, then tables, the further ones closed. What all runs have in common stands once.

The page's script draws figures of curves when they come into view. The pictures of an experiment,
which `experiment_files` draws, are linked from their folder.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench import __version__
from ssvm_bench.base.errors import SsvmBenchError
from ssvm_bench.claims.cases import Variant, variant_of
from ssvm_bench.figures import pairs, profile, style, targets
from ssvm_bench.figures.curves import axis_label, clocks_of
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
from ssvm_bench.report.contents import Contents
from ssvm_bench.report.experiment_files import by_source, kinds
from ssvm_bench.report.groups import (
    NOT_REAL,
    Group,
    Groups,
    data_of,
    group,
    solver_name,
    titles,
    weight_and_rule,
)
from ssvm_bench.report.packed import packed_figure
from ssvm_bench.results import older_code, stored_traces, words
from ssvm_bench.results.provenance import provenance, provenance_of
from ssvm_bench.results.table import ProblemInstance, Run, Runs, labels
from ssvm_bench.results.targets import MORE
from ssvm_bench.results.words import NONE, number

NAMED = 5
"""The largest number of names in a sentence, and of problems with a finding in the summary."""

logger = logging.getLogger(__name__)


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
        *([("#failed", "What did not finish")] if found.failures else ()),
        ("#about", "About this page"),
    ]
    return whole_page(
        found.title,
        links,
        *_summary(about, {problem: parts[:1] for problem, parts in tables.items()}),
        *answer,
        section("figures", "Figures", *opened(figures)),
        section("numbers", "Tables", *documents),
        section("runs", "Runs", *_of_runs(about)),
        section("failed", "What did not finish", *_failed(found)),
        section("about", "About this page", origin([found])),
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
        common = f" {escaped(data_of(runs[0]))}" * (len(names) == 1)
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
    if plug_ins := provenance_of(runs).get("plug_ins"):
        files = ", ".join(f"{name}…" for name in plug_ins)
        text = f"Code that is no part of the program, with the beginning of its SHA-256: {files}. "
        yield Html(f"<p>{escaped(text)}It is not included here.</p>\n")
    for note in pairs.of_plug_ins(runs) if runs else ():
        yield Html(f"<p>{escaped(note)}</p>\n")
    if left_out := older_code.left_out(page.found.older, page.found.where.root):
        yield Html(f"<p>{escaped(left_out)}</p>\n")
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
    solvers = f"{missing} other solver{'s' * (missing > 1)}"
    return text + f" {solvers} did not get there." * bool(missing)


def _spent(row: Mapping[Hashable, Any]) -> str:
    return f"{words.seconds(row['time'])}, {row['calls']:.3g} passes"


def _profile(page: Page, documents: list[Html]) -> Iterator[Html]:
    """Yield who was first on all problems together, and the figure; add the table to the others."""
    kind = kinds()[profile.KIND.name]
    for data in _of_sources(page).values():
        for output in kind.outputs(data, kind.chosen):
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

LARGEST = 300_000
"""The most characters of a profile on the page of an experiment: some have dozens of curves."""

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
    if found.experiment and profile.KIND.name not in asked:
        command = marked(f"`ssvm-bench plot {found.name} --figure profile` draws the curves.")
        parts = [
            part if len(part) < LARGEST else Html(f"<p>{command}</p>\n")
            for part in _profile(page, documents)
        ]
        if parts:
            figures.append(Shown("Profile of all targets", Html("".join(parts))))
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
                data = data_of(part.runs[0]) if len(page.groups) > 1 else ""
                yield Shown(title, _plot(title, shown, data, intro))
                intro = ""


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
    found = page.found
    for source, data in _of_sources(page).items():
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


def _of_sources(page: Page) -> dict[str, FigureData]:
    """Return source → the runs that documents compare; the user's own are compared together."""
    found, runs = page.found, page.found.runs
    if not found.experiment:
        runs = Runs(run for parts in page.groups.values() for run in _largest(parts))
    gaps = found.experiment.gaps if found.experiment else ()
    whole = FigureData(runs, found.title, gaps, found.where.root, decided=not found.experiment)
    return by_source(whole) if found.experiment else {"real": whole}


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
    if any(reason.startswith("interrupted") for _, _, _, reason in found.failures):
        resumes = "The command of an interrupted run resumes it at its last checkpoint."
        yield Html(f"<p>{resumes}</p>\n")


def origin(found: Sequence[Contents]) -> Html:
    """Return when and by what pages were made, and of how many runs."""
    made, now = provenance(), datetime.now(UTC)
    commit = f"{made['git'] or 'unknown'}{' with changes' * bool(made['git_dirty'])}"
    stored = sum(each.stored for each in found)
    raw = sum(len(each.runs) for each in found) - stored
    time = Html(f'<time datetime="{now:%FT%TZ}">{now:%Y-%m-%d %H:%M} UTC</time>')
    by = f"ssvm-bench {__version__}, commit {commit}"
    of = f"{raw} runs as they were written, {stored} as they were stored, thinned"
    return _facts([("made", time), ("by", by), ("from", of)])


# ---- HTML -------------------------------------------------------------------------------------


def whole_page(title: str, links: Iterable[tuple[str, str]], *inside: str) -> bytes:
    """Return a whole page; ``links`` are pairs of address and text."""
    parts = {
        kind: Path(__file__).with_name(f"page.{kind}").read_text(encoding="utf-8")
        for kind in ("html", "css", "js")
    }
    nav = "".join(f'<a href="{html.escape(to)}">{escaped(name)}</a>\n' for to, name in links)
    frame = Template(parts.pop("html"))
    return encoded(frame.substitute(parts, title=escaped(title), nav=nav, inside="".join(inside)))


def section(id_: str, title: str, *inside: str) -> Html:
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
