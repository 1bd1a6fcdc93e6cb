"""The figures, pictures and documents that a page of the report shows.

The page's script draws figures of curves when they come into view. The pictures of an experiment,
which `experiment_files` draws, are linked from their folder.

The numbers of curves are packed. A value takes two bytes: its position between the ends of its axis
(on a log axis, that of its logarithm) in 65,534 steps. This is many times as precise as a screen,
and shorter than decimals in JSON.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.claims.cases import Variant, variant_of
from ssvm_bench.figures import style
from ssvm_bench.figures.curves import AXES, is_log_x, why_empty
from ssvm_bench.figures.document import Html, address, block, marked, plain
from ssvm_bench.figures.kind import FigureData, Kind, Switched
from ssvm_bench.report import contents
from ssvm_bench.report.contents import Group, Page
from ssvm_bench.report.experiment_files import by_source, kinds
from ssvm_bench.results import stored_traces
from ssvm_bench.results.table import Run

logger = logging.getLogger(__name__)

STEPS = 65_534
GONE = STEPS + 1
"""The code of a value that does not exist."""

DASHES = {"-": "", "--": "7 3", ":": "1.5 2.5", "-.": "7 2.5 1.5 2.5"}
"""Line style → lengths of lines and spaces."""

HEIGHTS = ("median", "min", "max")
Ends = tuple[float, float]


def packed_figure(shown: Switched) -> dict[str, Any]:
    """Return the data of a figure with one panel per quantity.

    Returns
    -------
    dict
        ``panels``, their names; ``empty``, why a panel has no curve; ``log``, whether y is on a log
        axis; ``curves``, name and look of each; and ``axes``. Each x axis has its button and label,
        whether it is logarithmic, the ends of ``x`` and, per panel, of ``y``. It also has the x of
        each curve and, per panel, its median, and minimum and maximum where repeats differ.
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
        columns = {"x": _drawn(table["x"].to_numpy(float), log)}
        for name in HEIGHTS:
            columns[name] = _drawn(table[name].to_numpy(float), shown.log)
        rows: dict[Any, Any] = table.groupby(["solver", "quantity"], sort=False).indices
        ends_x = _ends(columns["x"])
        ends_y = []
        for quantity in quantities:
            mine = table["quantity"].to_numpy() == quantity
            ends_y.append(_ends(*(columns[name][mine] for name in HEIGHTS)))
        of_solvers = ([rows.get((solver, of), []) for of in quantities] for solver in solvers)
        packed = [_curve(columns, of_solver, ends_x, ends_y) for of_solver in of_solvers]
        about = {"button": AXES[axis].button, "label": shown.labels[axis], "log": log}
        axes.append({**about, "x": ends_x, "y": ends_y, "curves": packed})
    empty = [why_empty(first[first["quantity"] == quantity]) for quantity in quantities]
    return {"panels": quantities, "empty": empty, "log": shown.log, "curves": curves, "axes": axes}


def _curve(
    columns: Mapping[str, np.ndarray], rows: Sequence[np.ndarray], ends_x: Ends, ends_y: list[Ends]
) -> tuple[str | None, list[list[str] | None]]:
    """Return a curve's x, the same in all panels, and its heights in each panel."""
    x: str | None = None
    panels: list[list[str] | None] = []
    for at, ends in zip(rows, ends_y, strict=True):
        median, low, high = (columns[name][at] for name in HEIGHTS)
        if np.isnan(median).all():
            panels.append(None)
            continue
        x = _packed(columns["x"][at], ends_x)
        shown = (median, low, high) if (high > low).any() else (median,)
        panels.append([_packed(values, ends) for values in shown])
    return x, panels


def _drawn(values: np.ndarray, log: bool) -> np.ndarray:
    """Return values as their axis shows them."""
    return np.log10(values, out=np.full_like(values, np.nan), where=values > 0) if log else values


def _ends(*columns: np.ndarray) -> Ends:
    values = np.concatenate(columns)
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)


def _packed(values: np.ndarray, ends: Ends) -> str:
    low, high = ends
    share = np.where(np.isfinite(values), (values - low) / ((high - low) or 1.0), 0.0)
    codes = np.where(np.isfinite(values), np.round(share * STEPS), GONE)
    return base64.b64encode(codes.astype("<u2").tobytes()).decode()


FIRST = 4
"""The number of figures that are open."""

HOW_TO = (
    "Buttons choose the x axis and hide solvers; a double click on a solver hides all others. Drag "
    "to zoom, double-click to see all again. With the keyboard, arrow keys read off the curves, "
    "plus and minus zoom, Escape shows all."
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
        yield f"<h3>{plain(shown.title)}</h3>\n{shown.markup}"
    further = [details(plain(shown.title), shown.markup) for shown in figures[FIRST:]]
    if len(further) > FIRST:
        further = [details(f"{len(further)} more", *further)]
    yield from further


def made(page: Page) -> tuple[list[Shown], list[Html]]:
    """Return the figures of a page, and its documents."""
    figures: list[Shown] = []
    documents: list[Html] = []
    found, known = page.found, kinds()
    asked = found.experiment.figures if found.experiment else {}
    for kind in map(known.__getitem__, asked) if found.experiment else known.values():
        anything = not found.experiment  # an empty figure says why
        try:
            mine = list(_of_instances(page, kind, bool(figures), anything))
            if not mine and (found.experiment or kind.documents):
                outputs = [*_outputs(page, kind, asked.get(kind.name, kind.choices.names))]
                mine = [shown for shown in outputs if isinstance(shown, Shown)]
                documents += [shown for shown in outputs if not isinstance(shown, Shown)]
        except RunFailedError as error:
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
            bounded = (of for of in page.groups.items() if page.best[of[0]].dual > -np.inf)
            figures += _of_instances(page._replace(groups=dict(bounded)), known["suboptimality"])
    return figures, documents


def _of_instances(
    page: Page, kind: Kind, named: bool = False, also_empty: bool = False
) -> Iterator[Shown]:
    """Yield the figures of a kind for each group of runs on a problem instance.

    Headings name the figure if ``named``, or if a group has several.
    """
    for problem, parts in page.groups.items():
        for part in parts:
            drawn = [
                shown
                for shown in kind.of_instance(FigureData(part.traces, page.best))
                if isinstance(shown, Switched)
                and (also_empty or any(of["median"].notna().any() for of in shown.tables.values()))
            ]
            for shown in drawn:
                title = page.names[problem] + f", {part.setting}" * bool(part.setting)
                if named or len(drawn) > 1:
                    title += f": {shown.what[0].lower()}{shown.what[1:]}"
                yield Shown(title, _plot(title, shown, _data_of(part.traces[0]), kind.intro))


def _data_of(trace: Run) -> str:
    data = trace.data
    source = style.source_name(data["source"], data["name"])
    return (
        f"{contents.dataset_name(trace)}, {source}: n = {data['n']:,}, d = {data['d']:,}, "
        f"{contents.weight_text(trace)}."
    )


def _plot(title: str, shown: Switched, *notes: str) -> Html:
    packed = json.dumps(packed_figure(shown), ensure_ascii=False, separators=(",", ":"))
    packed = packed.replace("<", r"\u003c")
    said = " ".join(plain(note) for note in (*notes, *shown.notes) if note)
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


def _outputs(page: Page, kind: Kind, choices: Sequence[str]) -> Iterator[Shown | Html]:
    """Yield what a kind shows of all runs: existing pictures, and its documents."""
    found, runs = page.found, page.found.traces
    if not found.experiment:
        runs = [trace for parts in page.groups.values() for trace in _largest(parts)]
    gaps = found.experiment.gaps if found.experiment else ()
    whole = FigureData(runs, page.best, found.title, gaps, found.where.root)
    together = by_source(whole) if found.experiment else {"real": whole}
    for source, data in together.items():
        for output in kind.outputs(data, choices):
            title = output.title or f"{found.title}: {output.name}"
            name = f"{output.name}{stored_traces.suffix(source)}.png"
            for place in found.where.stored if output.figure else ():
                if (path := place / "figures" / found.name / name).is_file():
                    yield _picture(path, page.folder)
                    break
            if output.blocks and len(output.table):
                yield details(title, *map(block, output.blocks))


def _largest(parts: Sequence[Group]) -> Iterator[Run]:
    """Yield the runs on one instance that documents compare: one setting per solver.

    For each variant and solver, from scratch or along a path, it is the largest setting that has
    runs.
    """

    def kind(trace: Run) -> tuple[Variant, str, bool]:
        config = trace.config
        return variant_of(trace), str(config["solver"]["name"]), bool(config.get("path"))

    seen: set[tuple[Variant, str, bool]] = set()
    for part in parts:
        yield from (trace for trace in part.traces if kind(trace) not in seen)
        seen |= {kind(trace) for trace in part.traces}
