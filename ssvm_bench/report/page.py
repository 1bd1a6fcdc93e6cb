"""The page: its sections in order, from the runs of a results folder to one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from ssvm_bench import __version__
from ssvm_bench.config import ALTERED
from ssvm_bench.figures.kind import FigureData, Kind, Section, Switched
from ssvm_bench.jobs import experiments
from ssvm_bench.papers.variants import Variant, variant_of
from ssvm_bench.report import contents, interactive, tables
from ssvm_bench.report.contents import Contents, Group
from ssvm_bench.report.kinds import KINDS
from ssvm_bench.report.markup import Html, block, bullets, caution, element, facts, join, section
from ssvm_bench.results import optima
from ssvm_bench.results.files import SkippedFiles, sweep, write
from ssvm_bench.results.folder import ResultsFolder, plain
from ssvm_bench.results.problem_instance import BestValues, ProblemInstance
from ssvm_bench.results.provenance import provenance
from ssvm_bench.results.trace import Trace

FILE = "report.html"
STYLE = Path(__file__).with_name("page.css")
DOCUMENT = """<!DOCTYPE html>
<html lang="en">
<head>
{head}
</head>
<body>
{body}
</body>
</html>
"""

NOT_REAL = {ALTERED: "files that are not the known ones", "synthetic": "generated data"}
"""Source that is not the real data → what it is."""

Groups = Mapping[ProblemInstance, Sequence[Group]]
SECTIONS = tuple(dict.fromkeys(kind.section for kind in KINDS.values() if kind.section))
"""What the kinds of figures are shown in."""


def build(
    results_dir: Path | ResultsFolder, say: Callable[[str], object] = experiments.to_stderr
) -> Path:
    """Write the report over everything in a results folder.

    Parameters
    ----------
    results_dir : Path or ResultsFolder
        The results folder. Thinned traces stand in for raw runs that are missing. The best
        values on record are tightened with what its runs saw.
    say : callable
        Told what cannot be read; runs are listed as failed, too.

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
    with SkippedFiles(say) as tell:
        found = contents.read(where, tell)
        groups = contents.group(found.traces)
        best = optima.reference(found.traces, where, tell)
    return write(where.root / FILE, page(found, groups, best).encode())


def page(found: Contents, groups: Groups, best: BestValues) -> str:
    """Return the whole document."""
    parts = {"overview": ("What was run", list(_overview(found, groups, best)))}
    for about in SECTIONS:
        parts[about.id] = (about.title, list(_section(about, groups, best, found.results_dir)))
    parts["runs"] = ("Every run", list(_runs(found)))
    parts["failed"] = ("What failed", list(_failed(found)))
    parts["origin"] = ("About this page", list(_about(found)))
    links = {id_: element("a", title, href=f"#{id_}") for id_, (title, _) in parts.items()}
    instances = [
        element("a", contents.title(first.traces[0]), href=f"#{SECTIONS[0].id}-{number}")
        for number, (first, *_) in enumerate(groups.values())
    ]
    if instances:
        links[SECTIONS[0].id] = join((links[SECTIONS[0].id], bullets(instances)))
    sections = (section(2, id_, title, *inside) for id_, (title, inside) in parts.items())
    head = (
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("link", rel="icon", href="data:,"),  # else browsers ask for one
        element("title", "ssvm-bench: report"),
        element("style", Html(STYLE.read_text(encoding="utf-8"))),
        interactive.library() if groups else None,
    )
    body = (
        element("a", "To the content", href="#content", class_="skip"),
        element("header", element("h1", "How fast the solvers converged")),
        element("nav", bullets(links.values()), aria_label="Contents"),
        element("main", *sections, id="content"),
    )
    return DOCUMENT.format(head=join(head, "\n"), body=join(body, "\n"))


def _overview(found: Contents, groups: Groups, best: BestValues) -> Iterator[Html]:
    for source, what in NOT_REAL.items():
        data = [trace.metadata["dataset"] for trace in found.traces]
        names = {of["name"] for of in data if of["source"] == source}
        if names:
            yield caution(
                f"{contents.MARKS[source].capitalize()}: runs on {', '.join(sorted(names))} "
                f"include runs on {what}, which say nothing about the paper's numbers. They are "
                "marked wherever they appear."
            )
    if groups:
        yield tables.problems(groups, best)
    if found.failures:
        count = len(found.failures)
        link = element("a", f"{count} failed or incomplete", href="#failed")
        yield element("p", "Beside them: ", link, ".")


# ---- kinds of figures -------------------------------------------------------------------------


def _section(
    about: Section, groups: Groups, best: BestValues, results_dir: Path | None
) -> Iterator[Html]:
    kinds = [kind for kind in KINDS.values() if kind.section == about]
    shown = [html for kind in kinds for html in _of_kind(kind, about.id, groups, best, results_dir)]
    yield from shown or [element("p", about.nothing)]


def _of_kind(
    kind: Kind, id_: str, groups: Groups, best: BestValues, results_dir: Path | None
) -> Iterator[Html]:
    """Yield what there is of a kind: by problem instance, then over all of them."""
    instances = {
        number: [
            html
            for place, part in enumerate(parts)
            for html in _of_group(kind, f"{kind.name}-{number}-{place}", part, best)
        ]
        for number, parts in enumerate(groups.values())
    }
    if kind.intro and any(instances.values()):
        yield element("p", kind.intro)
    for (number, inside), (first, *_) in zip(instances.items(), groups.values(), strict=True):
        if inside:
            trace = first.traces[0]
            what = NOT_REAL.get(trace.metadata["dataset"]["source"])
            marked = f"{contents.mark(trace).capitalize()}: {what}, not the real data."
            marks = [caution(marked)] if what else []
            yield section(3, f"{id_}-{number}", contents.title(trace), *marks, *inside)
    largest = [trace for parts in groups.values() for trace in _largest(parts)]
    for name in kind.choices.names if kind.documents else ():
        for output in kind.outputs(FigureData(largest, best, results_dir=results_dir), (name,)):
            if len(output.table):
                yield section(3, f"{kind.name}-{name}", output.title, *map(block, output.blocks))


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


def _of_group(kind: Kind, id_: str, group: Group, best: BestValues) -> Iterator[Html]:
    """Yield what there is of some runs on one problem instance, below what sets them apart."""
    shown = list(kind.of_instance(FigureData(group.traces, best)))
    if shown and group.setting:
        yield element("p", "Runs with ", element("code", group.setting))
    for item in shown:
        yield _figure(item, id_, group) if isinstance(item, Switched) else block(item)


def _figure(shown: Switched, id_: str, group: Group) -> Html:
    drawn = interactive.figure(shown.tables, shown.labels, shown.log)
    plot = element("div", interactive.render(drawn, id_), class_="plot")
    title = f"{shown.what} on {contents.title(group.traces[0])}"
    return element(
        "figure",
        element("div", plot, class_="wide"),
        element("figcaption", " ".join(shown.notes)),
        role="group",
        aria_label=f"{title}. The numbers are in the tables below.",
    )


# ---- runs -------------------------------------------------------------------------------------


def _runs(found: Contents) -> Iterator[Html]:
    yield element("p", "One entry per configuration; open it for its options and its runs.")
    yield from tables.runs(found.traces)


def _failed(found: Contents) -> Iterator[Html]:
    if found.failures:
        yield tables.failures(found.failures)
    else:
        yield element("p", "Nothing: there are neither partial traces nor damaged files.")


def _about(found: Contents) -> Iterator[Html]:
    import plotly

    made = provenance()
    commit = made["git"] or "unknown"
    raw = len(found.traces) - found.stored
    now = datetime.now(timezone.utc)
    yield facts(
        (
            ("made", element("time", f"{now:%Y-%m-%d %H:%M} UTC", datetime=f"{now:%FT%TZ}")),
            (
                "by",
                f"ssvm-bench {__version__}, commit {commit}"
                + " with changes" * bool(made["git_dirty"]),
            ),
            (
                "from",
                f"{raw} runs as they were written, {found.stored} as they were stored, thinned",
            ),
            ("figures", f"plotly {plotly.__version__} (MIT licence), included"),
        )
    )
