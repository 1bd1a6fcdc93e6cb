"""The page: its sections in order, from the runs of a results folder to one HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import pandas as pd

from ssvm_bench import __version__
from ssvm_bench.figures import curves, selection, targets
from ssvm_bench.papers import judging
from ssvm_bench.papers.bmrm import relative, risks, speedup, statements
from ssvm_bench.report import contents, interactive, tables
from ssvm_bench.report.contents import Contents, Group
from ssvm_bench.report.markup import Content, Html, bullets, element, facts, join, section
from ssvm_bench.results import optima
from ssvm_bench.results.files import write
from ssvm_bench.results.problem_instance import BestValues, ProblemInstance
from ssvm_bench.results.provenance import provenance
from ssvm_bench.results.trace import Trace

FILE = "report.html"

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

Values = BestValues
Groups = Mapping[ProblemInstance, Sequence[Group]]

STYLE = """
:root { color-scheme: light; --line: #d5d8dc; --quiet: #4d5660; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 84rem; padding: 1rem clamp(.8rem, 3vw, 2.5rem) 4rem;
  font: 1rem/1.5 system-ui, sans-serif; color: #1b1f23; background: #fff; }
h1 { line-height: 1.2; margin: .5rem 0; }
h2 { margin: 3rem 0 .5rem; padding-top: .8rem; border-top: 2px solid var(--line); }
h3 { margin: 2rem 0 .5rem; }
p, li, dd { max-width: 48rem; }
a { color: #0057a3; }
a.skip { position: absolute; left: -99rem; }
a.skip:focus { left: 1rem; background: #fff; padding: .5rem; }
nav > ul { columns: 20rem; }
nav ul { padding-left: 1.2rem; }
figure { margin: 1rem 0 2rem; }
figcaption, caption { color: var(--quiet); font-size: .9rem; text-align: left; }
caption { padding-bottom: .4rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
.plot { min-width: 46rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem .3rem 0;
  border-bottom: 1px solid var(--line); }
thead th { border-bottom: 2px solid #8a939c; vertical-align: bottom; }
tbody th { font-weight: 500; }
th.across { padding-top: 1.2rem; font-weight: 400; max-width: 60rem; }
th code { white-space: nowrap; }
code { font-size: .85em; overflow-wrap: anywhere; }
details { border-bottom: 1px solid var(--line); padding: .4rem 0; }
summary { cursor: pointer; }
dl { display: grid; gap: .2rem 1.5rem; margin: .8rem 0; font-size: .9rem; }
dl div { display: grid; grid-template-columns: 9rem 1fr; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
strong.verdict { white-space: nowrap; }
.holds { color: #00663f; }
.does { color: #a33b00; }
.standin { color: #7a2e00; background: #ffe9c7; padding: .05rem .35rem; border-radius: .2rem; }
p.standin { border-left: .4rem solid #d55e00; padding: .6rem 1rem; }
@media (max-width: 40rem) { dl div { grid-template-columns: 1fr; } }
@media print { body { max-width: none; } nav, .skip, .modebar { display: none; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; } .wide { overflow: visible; }
  .plot { min-width: 0; } }
"""


def build(results_dir: Path) -> Path:
    """Write the report over everything in a results folder.

    Parameters
    ----------
    results_dir : Path
        The results folder. Thinned traces stand in for raw runs that are missing. The best
        values on record are tightened with what its runs saw.

    Returns
    -------
    Path
        The file written, ``<results_dir>/report.html``.

    Raises
    ------
    RunFailedError
        If there is nothing to report, the best values on record are damaged, or the file cannot
        be written. Runs that cannot be read are listed as failed.
    """
    found = contents.read(results_dir)
    groups = contents.group(found.traces)
    best = optima.reference(found.traces, results_dir)
    return write(results_dir / FILE, page(found, groups, best).encode())


def page(found: Contents, groups: Groups, best: Values) -> str:
    """Return the whole document."""
    parts = {
        "overview": ("What was run", _overview(found, groups, best)),
        "convergence": ("Convergence", list(_convergence(groups, best))),
        "selection": ("Working sets and approximate passes", list(_selection(groups))),
        "claims": ("Claims of the papers", list(_claims(groups, best))),
        "targets": ("Time and oracle calls to a gap", list(_targets(groups, best))),
        "bundles": ("The bundle methods", list(_bundles(groups, best))),
        "runs": ("Every run", _runs(found)),
        "failed": ("What failed", _failed(found)),
        "origin": ("About this page", _about(found)),
    }
    links = [element("a", title, href=f"#{id_}") for id_, (title, _) in parts.items()]
    instances = [
        element("a", contents.title(first.traces[0]), href=f"#convergence-{number}")
        for number, (first, *_) in enumerate(groups.values())
    ]
    links[1] = join((links[1], bullets(instances))) if instances else links[1]
    title = "ssvm-bench: report"
    head = join(
        (
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("link", rel="icon", href="data:,"),  # else browsers ask for one
            element("title", title),
            element("style", Html(STYLE)),
        ),
        "\n",
    )
    body = join(
        (
            element("a", "To the content", href="#content", class_="skip"),
            element("header", element("h1", "How fast the solvers converged")),
            element("nav", bullets(links), aria_label="Contents"),
            element(
                "main",
                *(section(2, id_, title, *inside) for id_, (title, inside) in parts.items()),
                id="content",
            ),
        ),
        "\n",
    )
    return DOCUMENT.format(head=head, body=body)


def _overview(found: Contents, groups: Groups, best: Values) -> Iterator[Html]:
    standins = {
        trace.metadata["dataset"]["name"] for trace in found.traces if contents.is_standin(trace)
    }
    if standins:
        yield _warning(
            f"Stand-ins: runs on {', '.join(sorted(standins))} include runs on generated data, "
            "which say nothing about the paper's numbers. They are marked wherever they appear."
        )
    if groups:
        yield tables.problems(groups, best)
    if found.failures:
        count = len(found.failures)
        link = element("a", f"{count} failed or incomplete", href="#failed")
        yield element("p", "Beside them: ", link, ".")


def _warning(text: Content) -> Html:
    return element("p", element("strong", text), class_="standin", role="note")


# ---- figures ----------------------------------------------------------------------------------


def _convergence(groups: Groups, best: Values) -> Iterator[Html]:
    if not groups:
        yield element("p", "No run has finished.")
        return
    yield element(
        "p",
        "Primal suboptimality is measured from the highest dual value ever seen on the problem "
        "instance, dual suboptimality from the lowest primal value. Buttons switch the x axis; a "
        "click on a solver hides it in all panels, a double click all others; drag to zoom, "
        "double-click a panel to see all of it again.",
    )
    with_library = True
    for number, parts in enumerate(groups.values()):
        figures: list[Html] = []
        for part in parts:
            made = {
                axis: curves.suboptimality(part.traces, best, axis) for axis in interactive.BUTTONS
            }
            id_ = f"curves-{number}-{len(figures)}"
            what = "Primal suboptimality, dual suboptimality and duality gap"
            figures.append(_figure(part, part.traces, made, id_, what, True, with_library))
            with_library = False
        yield _problem(f"convergence-{number}", parts[0], figures)


def _selection(groups: Groups) -> Iterator[Html]:
    shown = False
    for number, parts in enumerate(groups.values()):
        figures: list[Html] = []
        for part in parts:
            traces = selection.with_working_sets(part.traces)
            if not traces:
                continue
            made = {axis: selection.selection(traces, axis) for axis in interactive.BUTTONS}
            id_ = f"selection-{number}-{len(figures)}"
            what = "Mean size of the working sets, and approximate passes per iteration"
            figures.append(_figure(part, traces, made, id_, what, False, False))
        if figures:
            shown = True
            yield _problem(f"selection-{number}", parts[0], figures)
    if not shown:
        yield element("p", "No run kept planes of former iterations.")


def _problem(id_: str, group: Group, inside: Sequence[Html]) -> Html:
    """Return the part of a problem instance, marked if it is a stand-in."""
    trace = group.traces[0]
    marks = []
    if contents.is_standin(trace):
        marks.append(_warning("Stand-in: generated data, not the real data."))
    return section(3, id_, contents.title(trace), *marks, *inside)


def _figure(
    group: Group,
    traces: Sequence[Trace],
    made: Mapping[str, pd.DataFrame],
    id_: str,
    what: str,
    log: bool,
    with_library: bool,
) -> Html:
    labels = {axis: curves.axis_label(traces, axis) for axis in made}
    said = dict.fromkeys(note for axis in made for note in curves.notes(made[axis], traces, axis))
    notes = [note for note in said if not any(_continues(other, note) for other in said)]
    drawn = interactive.figure(made, labels, log)
    plot = element("div", interactive.render(drawn, id_, with_library), class_="plot")
    title = f"{what} on {contents.title(traces[0])}"
    setting = element("p", "Runs with ", element("code", group.setting)) if group.setting else None
    return join(
        (
            setting,
            element(
                "figure",
                element("div", plot, class_="wide"),
                element("figcaption", " ".join(notes)),
                role="group",
                aria_label=f"{title}. The numbers are in the tables below.",
            ),
        )
    )


def _continues(note: str, other: str) -> bool:
    """Tell whether a note says all that another one does, and more."""
    return note != other and note.startswith(other.rstrip("."))


# ---- tables -----------------------------------------------------------------------------------


def _claims(groups: Groups, best: Values) -> Iterator[Html]:
    """Yield the claims tables of each paper, of the real data and of the stand-ins apart."""
    traces = _largest(groups)
    judged = {name: judging.evaluate(paper, traces, best) for name, paper in judging.PAPERS.items()}
    if not any(judged.values()):
        yield element("p", "There are no runs of the papers' solvers on the papers' datasets.")
    for name, rows in judged.items():
        if rows:
            title = judging.PAPERS[name].title
            yield section(3, f"claims-{name}", title[0].upper() + title[1:], *_of_paper(rows))


def _of_paper(rows: Sequence[judging.Row]) -> Iterator[Html]:
    for source in dict.fromkeys(row.source for row in rows):
        shown = [row for row in rows if row.source == source]
        if source != "real":
            yield _warning("Stand-ins: these rows say nothing about the paper's claims.")
        yield tables.claims(shown)


def _targets(groups: Groups, best: Values) -> Iterator[Html]:
    yield element(
        "p",
        "What a solver had spent at its first evaluation with a relative duality gap "
        "(P − F)/|P| at or below the target: the median over all repeats, those that did not get "
        "there counting as infinite, and the range of those that did; the lowest median in bold. "
        f"Ratios are between medians. {targets.MEANING} "
        "With an inexact oracle the measured gap can be smaller than the true one.",
    )
    for parts in groups.values():
        for part in parts:
            yield tables.to_gap(part, best)


def _bundles(groups: Groups, best: Values) -> Iterator[Html]:
    """Yield the figures of the bundle-method report, then its tables over all instances."""
    traces = _largest(groups)
    losses, costs = risks.risks(traces), speedup.speedup(traces)
    figures = list(_relative(groups, best))
    if figures:
        yield element("p", relative.READING)
        yield from figures
    if len(losses):
        shown = [tables.sheet(sheet) for sheet in risks.sheets(losses)]
        notes = [element("p", note) for note in (risks.READING, *risks.notes(losses))]
        yield section(3, "risks", "Validation and test loss", *notes, *shown)
    if len(costs):
        pairs = zip(speedup.sheets(costs), statements.sheets(costs), strict=True)
        shown = [tables.sheet(sheet) for pair in pairs for sheet in pair]
        notes = [element("p", note) for note in (speedup.READING, *speedup.notes(costs, traces))]
        yield section(3, "speedup", "Iterations, time and speed-up", *notes, *shown)
    if not (figures or len(losses) or len(costs)):
        yield element("p", "There are no runs of these methods.")


def _relative(groups: Groups, best: Values) -> Iterator[Html]:
    for number, parts in enumerate(groups.values()):
        figures: list[Html] = []
        for part in parts:
            traces = relative.compared(part.traces)
            if not traces:
                continue
            made = {axis: relative.relative(traces, best, axis) for axis in interactive.BUTTONS}
            id_ = f"relative-{number}-{len(figures)}"
            what = "Relative distance of the current solution to the optimum"
            figures.append(_figure(part, traces, made, id_, what, True, False))
        if figures:
            yield _problem(f"bundles-{number}", parts[0], figures)


def _largest(groups: Groups) -> list[Trace]:
    """Return, of the settings in which each instance was run, the runs of the largest.

    Statements compare equal budgets.
    """
    return [trace for parts in groups.values() for trace in parts[0].traces]


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
