"""The page: its sections in order, from the runs of a results folder to one HTML file.

A section is a sequence of the blocks of `figures.document` and of those below; the template
`page.html` writes them. Texts are escaped, and have the marks of Markdown, unless they are markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jinja2 import Environment, FileSystemLoader, Template
from markupsafe import Markup, escape

from ssvm_bench import __version__
from ssvm_bench.claims.cases import Variant, variant_of
from ssvm_bench.config import ALTERED
from ssvm_bench.figures import document, style
from ssvm_bench.figures.document import Heading, List, Table, Warning
from ssvm_bench.figures.kind import FigureData, Kind, Section, Switched
from ssvm_bench.report import contents, interactive
from ssvm_bench.report.contents import Contents, Failure, Group
from ssvm_bench.report.kinds import kinds
from ssvm_bench.results import optima, words
from ssvm_bench.results.files import SkippedFiles, write
from ssvm_bench.results.folder import ResultsFolder, plain, sweep
from ssvm_bench.results.problem_instance import BestValues, ProblemInstance, instance_of
from ssvm_bench.results.provenance import provenance, provenance_of
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE, number

FILE = "report.html"
NOT_REAL = {ALTERED: "files that are not the known ones", "synthetic": "generated data"}
"""Source that is not the real data → what it is."""

MARKS = {
    r"\*\*(.+?)\*\*": r"<strong>\1</strong>",
    r"\*(\w+)\*": r"<em>\1</em>",
    r"`(.+?)`": r"<code>\1</code>",
}
"""What the marks of Markdown in a text become, one after the other."""

Groups = Mapping[ProblemInstance, Sequence[Group]]


class Part(NamedTuple):
    """A section of the page, or one within it."""

    id: str
    title: str
    inside: Sequence[Block]


class Plot(NamedTuple):
    """An interactive figure, what a screen reader says of it, and what is below it."""

    label: str
    markup: Markup
    caption: str


class Facts(NamedTuple):
    """Names and values."""

    pairs: Sequence[tuple[str, object]]


class Details(NamedTuple):
    """What is closed until it is asked for."""

    summary: str
    inside: Sequence[Block]


Block: TypeAlias = document.Block | Part | Plot | Facts | Details
code = Markup("<code>{}</code>").format


def build(results_dir: Path | ResultsFolder) -> Path:
    """Write the report over everything in a results folder; runs that cannot be read are in it.

    Parameters
    ----------
    results_dir : Path or ResultsFolder
        The results folder. Thinned traces stand in for raw runs that are missing. The best
        values on record are tightened with what its runs saw.

    Returns
    -------
    Path
        The file written, ``<results_dir>/report.html``.

    Raises
    ------
    RunFailedError
        If there is nothing to report, or a file cannot be written.
    """
    where = plain(results_dir)
    sweep(where)
    with SkippedFiles() as skipped:
        found = contents.read(where, skipped)
        groups = contents.group(found.traces)
        best = optima.reference(found.traces, where, skipped)
    return write(where.root / FILE, page(found, groups, best).encode())


def sections() -> list[Section]:
    """Return what the kinds of figures are shown in."""
    return list(dict.fromkeys(kind.section for kind in kinds().values() if kind.section))


def page(found: Contents, groups: Groups, best: BestValues) -> str:
    """Return the whole document."""
    shown = sections()
    parts = [Part("overview", "What was run", [*_overview(found, groups, best)])]
    parts += [Part(at.id, at.title, _section(at, groups, best, found)) for at in shown]
    parts.append(Part("runs", "Every run", [*_runs(found.traces)]))
    parts.append(Part("failed", "What failed", [_failed(found.failures)]))
    parts.append(Part("origin", "About this page", [_about(found)]))
    return template().render(
        parts=parts,
        instances=[contents.title(first.traces[0]) for first, *_ in groups.values()],
        of_instances=shown[0].id,
        style=Markup(Path(__file__).with_name("page.css").read_text(encoding="utf-8")),
        library=interactive.library() if groups else "",
    )


@cache
def template() -> Template:
    """Return the template, which tells blocks from each other by their type."""
    folder = FileSystemLoader(Path(__file__).parent)
    made = Environment(loader=folder, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters["marked"] = marked
    for kind in (Part, Heading, Warning, List, Table, Plot, Facts, Details):
        made.tests[kind.__name__] = lambda shown, kind=kind: isinstance(shown, kind)
    return made.get_template("page.html")


def marked(text: str) -> Markup:
    """Return the markup of a text with the marks of Markdown."""
    shown = str(escape(text))
    for mark, tag in () if isinstance(text, Markup) else MARKS.items():
        shown = re.sub(mark, tag, shown)
    return Markup(shown)


def _table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table whose cells are shown as they are."""
    return Table(title, header, [[*map(escape, row)] for row in rows])


# ---- what was run -----------------------------------------------------------------------------


def _overview(found: Contents, groups: Groups, best: BestValues) -> Iterator[Block]:
    for source, what in NOT_REAL.items():
        data = [trace.metadata["dataset"] for trace in found.traces]
        names = {of["name"] for of in data if of["source"] == source}
        if names:
            yield Warning(
                escape(
                    f"{contents.MARKS[source].capitalize()}: runs on {', '.join(sorted(names))} "
                    f"include runs on {what}, which say nothing about the paper's numbers. They "
                    "are marked wherever they appear."
                )
            )
    if groups:
        yield _problems(groups, best)
    if found.failures:
        link = f'<a href="#failed">{len(found.failures)} failed or incomplete</a>'
        yield Markup(f"Beside them: {link}.")


def _problems(groups: Groups, best: BestValues) -> Table:
    """Return one row per problem instance."""
    header = ["dataset", "data", "n", "d", "λ", "fingerprint", "solvers", "runs"]
    rows = []
    for problem, parts in groups.items():
        traces = [trace for part in parts for trace in part.traces]
        first, known = traces[0], best[problem]
        names = {style.solver_label(trace.metadata["config"]["solver"]["name"]) for trace in traces}
        row = [contents.dataset_name(first), _source(first), *_sizes(first)]
        row += [contents.lam_text(first), code(problem.fingerprint), ", ".join(sorted(names))]
        rows.append([*row, len(traces), f"{known.primal:.6g}", number(known.dual, ".6g")])
    title = "Problem instances, and the best values ever seen on them."
    return _table(title, [*header, "lowest primal", "highest dual"], rows)


def _source(trace: Trace) -> Markup:
    """Say loudly what is not real data."""
    text = style.source_name(trace.metadata["dataset"]["source"])
    loud = Markup('<strong class="standin">{}</strong>')
    return loud.format(text) if contents.mark(trace) else escape(text)


def _sizes(trace: Trace) -> list[str]:
    return [f"{trace.metadata['dataset'][name]:,}" for name in ("n", "d")]


# ---- kinds of figures -------------------------------------------------------------------------


def _section(about: Section, groups: Groups, best: BestValues, found: Contents) -> list[Block]:
    mine = [kind for kind in kinds().values() if kind.section == about]
    shown = [block for kind in mine for block in _of_kind(kind, about.id, groups, best, found)]
    return shown or [about.nothing]


def _of_kind(
    kind: Kind, id_: str, groups: Groups, best: BestValues, found: Contents
) -> Iterator[Block]:
    """Yield what there is of a kind: by problem instance, then over all of them."""
    instances = []
    for k, parts in enumerate(groups.values()):
        inside: list[Block] = []
        for i, part in enumerate(parts):
            inside += _of_group(kind, f"{kind.name}-{k}-{i}", part, best)
        if inside:
            trace = parts[0].traces[0]
            if what := NOT_REAL.get(trace.metadata["dataset"]["source"]):
                mark = contents.mark(trace).capitalize()
                inside.insert(0, Warning(f"{mark}: {what}, not the real data."))
            instances.append(Part(f"{id_}-{k}", contents.title(trace), inside))
    if kind.intro and instances:
        yield escape(kind.intro)
    yield from instances
    largest = [trace for parts in groups.values() for trace in _largest(parts)]
    for name in kind.choices.names if kind.documents else ():
        data = FigureData(largest, best, results_dir=found.results_dir)
        for output in kind.outputs(data, (name,)):
            if len(output.table):
                yield Part(f"{kind.name}-{name}", output.title, output.blocks)


def _largest(parts: Sequence[Group]) -> Iterator[Trace]:
    """Yield the runs on one instance that statements compare: of a solver, at equal budgets.

    Of each variant and solver, from scratch or along a path, that are those of the largest setting
    which has it.
    """

    def kind(trace: Trace) -> tuple[Variant, str, bool]:
        config = trace.metadata["config"]
        return variant_of(trace), str(config["solver"]["name"]), bool(config.get("path"))

    seen: set[tuple[Variant, str, bool]] = set()
    for part in parts:
        yield from (trace for trace in part.traces if kind(trace) not in seen)
        seen |= {kind(trace) for trace in part.traces}


def _of_group(kind: Kind, id_: str, group: Group, best: BestValues) -> Iterator[Block]:
    """Yield what there is of some runs on one problem instance, below what sets them apart."""
    shown = list(kind.of_instance(FigureData(group.traces, best)))
    if shown and group.setting:
        yield Markup("Runs with {}").format(code(group.setting))
    for item in shown:
        if isinstance(item, Switched):
            title = f"{item.what} on {contents.title(group.traces[0])}"
            drawn = interactive.figure(item.tables, item.labels, item.log)
            yield Plot(
                f"{title}. The numbers are in the tables below.",
                interactive.render(drawn, id_),
                " ".join(item.notes),
            )
        else:
            yield item


# ---- runs -------------------------------------------------------------------------------------


def _runs(traces: Sequence[Trace]) -> Iterator[Block]:
    """Yield one closed part per configuration: what its runs share, and a row per run."""
    yield "One entry per configuration; open it for its options and its runs."
    configurations = grouped(
        traces, lambda trace: (instance_of(trace.metadata), trace.own_folder.parent)
    )
    for (_, folder), repeats in configurations.items():
        first = repeats[0]
        solver = style.solver_label(first.metadata["config"]["solver"]["name"])
        count = words.runs(len(repeats))
        summary = f"{contents.title(first)}: {solver}, {count}, configuration {folder.name}"
        yield Details(summary, [Facts([*_shared(repeats)]), _table_of_runs(repeats)])


def _shared(traces: Sequence[Trace]) -> Iterator[tuple[str, str]]:
    """Yield what is the same for all runs of a configuration, and where they came from."""
    metadata, came = traces[0].metadata, provenance_of(traces)
    name, source = contents.dataset_name(traces[0]), _source(traces[0])
    yield "data", Markup("{}, {}").format(name, source)
    yield "n, d", ", ".join(_sizes(traces[0]))
    yield "fingerprint", code(metadata["dataset"]["fingerprint"])
    yield "λ", f"{metadata['lam']:.6g}"
    for name in ("prior", "objective"):
        if metadata.get(name):
            yield name, metadata[name]
    hidden = ("seed", "lam", "prior", "clock", "results_dir", "force", "quiet", "checkpoint")
    for name, value in metadata["config"].items():
        if name not in hidden:
            yield name, _options(value)
    for name in ("clock", "cpu", "cores", "node", "engine", "system"):
        if name in came:
            yield name, _counted(came[name])
    versions = (f"{name} {_counted(counts)}" for name, counts in came["versions"].items())
    yield "versions", ", ".join(versions)


def _options(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    shown = {key: item for key, item in value.items() if key != "kind"}
    name = str(shown.pop("name", ""))
    options = " ".join(f"{key}={item}" for key, item in shown.items())
    return f"{name} ({options})" if name and options else name or options


def _counted(counts: Mapping[str, int]) -> str:
    """Return a value, or all there were, each with the number of runs that had it."""
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{value} ({count} runs)" for value, count in counts.items())


def _table_of_runs(traces: Sequence[Trace]) -> Table:
    names = {name for trace in traces for name in trace.summary if name.endswith("_loss")}
    held_out = sorted(names - {"train_loss"})
    header = ["seed", "stopped by", "iterations", "oracle calls", "time [s]", "in the oracle"]
    header += ["primal", "dual", "training loss", *(name.replace("_", " ") for name in held_out)]
    rows = []
    for trace in traces:
        last, metadata = trace.frame.iloc[-1], trace.metadata
        share = last["oracle_time"] / last["time"] if last["time"] > 0 else np.nan
        row = [metadata["config"]["seed"], trace.summary.get("stop_reason")]
        row += [f"{last['iteration']:.0f}", f"{last['oracle_calls']:,.0f}", f"{last['time']:.4g}"]
        row += [number(share, ".0%"), f"{last['primal']:.6g}", number(last["dual"], ".6g")]
        row += [number(trace.summary.get(name), ".4g") for name in ("train_loss", *held_out)]
        if started := metadata.get("started"):
            begun = datetime.fromisoformat(started).astimezone(UTC)
            started = f"{begun:%Y-%m-%d %H:%M:%S}"
        commit = str(metadata.get("git") or "unknown")[:8]
        commit += " with changes" * bool(metadata.get("git_dirty"))
        rows.append(
            [*row, started or NONE, commit, metadata.get("concurrent_runs", "not recorded")]
        )
    columns = [*header, "started (UTC)", "commit", "other runs beside it"]
    return _table("Runs, and their last rows.", columns, rows)


# ---- what failed, and where the page came from ------------------------------------------------


def _failed(failures: Sequence[Failure]) -> Block:
    if not failures:
        return "Nothing: there are neither partial traces nor damaged files."
    rows = []
    for place, what, iterations, reason in failures:
        rows.append([code(place), what, NONE if iterations is None else iterations, reason])
    return _table("What gave no finished run.", ["where", "what", "iterations", "reason"], rows)


def _about(found: Contents) -> Facts:
    import plotly

    made, now = provenance(), datetime.now(UTC)
    commit = f"{made['git'] or 'unknown'}{' with changes' * bool(made['git_dirty'])}"
    raw = len(found.traces) - found.stored
    time = Markup(f'<time datetime="{now:%FT%TZ}">{now:%Y-%m-%d %H:%M} UTC</time>')
    pairs = {
        "made": time,
        "by": f"ssvm-bench {__version__}, commit {commit}",
        "from": f"{raw} runs as they were written, {found.stored} as they were stored, thinned",
        "figures": f"plotly {plotly.__version__} (MIT licence), included",
    }
    return Facts([*pairs.items()])
