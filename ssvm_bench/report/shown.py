"""What a page of the report shows of kinds of figures: figures, pictures, documents.

Figures of curves are drawn by the page's script when they are seen; the pictures of an experiment,
as `experiment_files` draws them, are shown where they lie.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssvm_bench.claims.cases import Variant, variant_of
from ssvm_bench.config import shown_as
from ssvm_bench.figures import style
from ssvm_bench.figures.kind import FigureData, Kind, Switched
from ssvm_bench.report import contents, interactive
from ssvm_bench.report.contents import Contents, Group, Groups
from ssvm_bench.report.kinds import kinds
from ssvm_bench.report.markup import Html, block, details, plain
from ssvm_bench.results import stored_traces
from ssvm_bench.results.folder import ResultsFolder
from ssvm_bench.results.problem_instance import BestValues, ProblemInstance
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.trace import Trace

FIRST = 4
"""Figures that are open."""

HOW_TO = (
    "Buttons choose the x axis and hide solvers; a double click on a solver hides all others. Drag "
    "to zoom, double-click to see all again. With the keyboard, arrow keys read off the curves, "
    "plus and minus zoom, Escape shows all."
)


class Shown(NamedTuple):
    """A figure: its heading, and the markup of what is below it."""

    title: str
    markup: Html


def opened(figures: Sequence[Shown]) -> Iterator[str]:
    """Yield the first figures, and the others closed."""
    if any("data-plot" in shown.markup for shown in figures):
        yield f'<p class="quiet-text">{HOW_TO}</p>\n'
    for shown in figures[:FIRST]:
        yield f"<h3>{plain(shown.title)}</h3>\n{shown.markup}"
    further = [details(plain(shown.title), shown.markup) for shown in figures[FIRST:]]
    if further:
        yield (
            details(f"{len(further)} more", *further) if len(further) > FIRST else "".join(further)
        )


def made(
    found: Contents,
    groups: Groups,
    names: Mapping[ProblemInstance, str],
    best: BestValues,
    where: ResultsFolder,
    folder: Path,
) -> tuple[list[Shown], list[Html]]:
    """Return the figures of a page, and its documents."""
    figures: list[Shown] = []
    documents: list[Html] = []
    asked = found.experiment.figures if found.experiment else {}
    known = kinds()
    for kind in [known[name] for name in asked] if found.experiment else known.values():
        anything = not found.experiment  # what is empty says why
        mine = list(_of_instances(kind, groups, names, best, bool(figures), anything))
        figures += mine
        if not mine and (found.experiment or kind.documents):
            choices = asked.get(kind.name, kind.choices.names)
            for shown in _outputs(kind, choices, found, groups, best, where, folder):
                if isinstance(shown, Shown):
                    figures.append(shown)
                else:
                    documents.append(shown)
    if found.experiment and not any("data-plot" in figure.markup for figure in figures):
        for place in where.read:
            for path in sorted(place.glob(f"figures/{found.name}/*.png")):
                picture = _picture(path, folder)
                if picture not in figures:
                    figures.append(picture)
        if not figures:
            bounded = {
                problem: parts for problem, parts in groups.items() if best[problem].dual > -np.inf
            }
            figures += _of_instances(known["suboptimality"], bounded, names, best)
    return figures, documents


def _of_instances(
    kind: Kind,
    groups: Groups,
    names: Mapping[ProblemInstance, str],
    best: BestValues,
    named: bool = False,
    also_empty: bool = False,
) -> Iterator[Shown]:
    """Yield the figures of a kind, one for each group of runs on a problem instance.

    If there are others before it, or several on a problem, headings have the names of figures.
    """
    for problem, parts in groups.items():
        for part in parts:
            drawn = [
                shown
                for shown in kind.of_instance(FigureData(part.traces, best))
                if isinstance(shown, Switched) and (also_empty or not interactive.is_empty(shown))
            ]
            for shown in drawn:
                title = names[problem] + f", {part.setting}" * bool(part.setting)
                if named or len(drawn) > 1:
                    title += f": {shown.what[0].lower()}{shown.what[1:]}"
                yield Shown(title, _plot(title, shown, _data_of(part.traces[0]), kind.intro))


def _data_of(trace: Trace) -> str:
    data = trace.metadata["dataset"]
    source = style.source_name(data["source"])
    return (
        f"{contents.dataset_name(trace)}, {source}: n = {data['n']:,}, d = {data['d']:,}, "
        f"{contents.weight_text(trace)}."
    )


def _plot(title: str, shown: Switched, *notes: str) -> Html:
    packed = json.dumps(interactive.figure(shown), ensure_ascii=False, separators=(",", ":"))
    packed = packed.replace("<", r"\u003c")
    said = " ".join(plain(note) for note in (*notes, *shown.notes) if note)
    return Html(
        f'<figure class="plot" data-plot role="group" aria-label="{html.escape(title)}">'
        f'<div class="here"></div><figcaption>{said}</figcaption>\n'
        f'<script type="application/json">{packed}</script></figure>\n'
    )


def _picture(path: Path, folder: Path) -> Shown:
    title = path.stem.replace("_", " ").capitalize()
    place = html.escape(Path(os.path.relpath(path, folder)).as_posix())
    image = f'<img src="{place}" alt="{html.escape(title)}" loading="lazy">'
    return Shown(title, Html(f'<figure><a href="{place}">{image}</a></figure>\n'))


def _outputs(
    kind: Kind,
    choices: Sequence[str],
    found: Contents,
    groups: Groups,
    best: BestValues,
    where: ResultsFolder,
    folder: Path,
) -> Iterator[Shown | Html]:
    """Yield what a kind shows of all runs: the pictures that are there, and its documents."""
    runs = found.traces
    if not found.experiment:
        runs = [trace for parts in groups.values() for trace in _largest(parts)]
    together = grouped(runs, lambda trace: shown_as(trace.metadata["dataset"]["source"]))
    for source, mine in together.items() if found.experiment else [("real", runs)]:
        others = [trace for of, some in together.items() if of != source for trace in some]
        gaps = found.experiment.gaps if found.experiment else ()
        data = FigureData(mine, best, found.title, gaps, where.root, others)
        for output in kind.outputs(data, choices):
            title = output.title or f"{found.title}: {output.name}"
            name = f"{output.name}{stored_traces.suffix(source)}.png"
            for place in where.read if output.figure else ():
                if (path := place / "figures" / found.name / name).is_file():
                    yield _picture(path, folder)
                    break
            if output.blocks and len(output.table):
                yield details(title, *map(block, output.blocks))


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
