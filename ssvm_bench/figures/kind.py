"""Kinds of figures and tables, which an experiment file can list under ``figures``.

A `Kind` defines its x axes or other choices, the files that it writes, and what it shows on the
page of the report. Each is defined in the module of its numbers, and is in the list of all kinds.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from ssvm_bench.base.errors import ConfigError, RunFailedError, SsvmBenchError, described
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import curves, document, style
from ssvm_bench.figures.curves import Quantities
from ssvm_bench.figures.document import Block
from ssvm_bench.results.folder import write_files
from ssvm_bench.results.table import Run, Runs, grouped, labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


logger = logging.getLogger(__name__)


class FigureData(NamedTuple):
    """The input of a figure: finished runs with the best values known, title, relative gaps.

    ``results_dir`` has the numbers that are not from runs. ``others`` are the experiment's runs on
    data of another source, for ratios over several datasets: nothing else shows real and synthetic
    data together. ``loaded`` is the kind's `Kind.loads`. ``log_x`` is what
    `curves.is_log_x` is asked. ``stands_for``: dataset → the one that it stands for. ``decided``:
    whether claims that no run decides are left out.
    """

    runs: Runs
    title: str = ""
    gaps: Sequence[float] = ()
    results_dir: Path | None = None
    others: Runs = Runs()
    loaded: Callable[[Run], Any] = lambda _: None
    log_x: bool | None = None
    stands_for: Mapping[str, str] = MappingProxyType({})
    decided: bool = False

    def headed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a table with a column that `style.problem_title` reads: for what data stand."""
        return table.assign(stands_for=[self.stands_for.get(of, "") for of in table["dataset"]])


FORMATS = ("png", "pdf")
"""Default formats of a figure."""

PICTURES = (*FORMATS, "svg", "pgf")
"""All formats of a figure."""

TABLES = "tex"
"""The format of a document's tables, not of a figure."""

PHOTOGRAPHS = ("png",)
"""Default formats of a figure of photographs: no other one is sharper, and few are smaller."""


class Output(NamedTuple):
    """Numbers, and what shows them: a document, a figure, or both.

    ``name`` is the name of the files, without suffix and without the mark of synthetic data.
    ``figure`` draws the figure, ``formats`` are its default formats. ``json`` is the content of a
    JSON file that takes the place of numbers. ``lacking`` says why there are no numbers, on a page.
    """

    name: str
    table: pd.DataFrame = pd.DataFrame()
    title: str = ""
    blocks: Sequence[Block] = ()
    figure: Callable[[], Figure] | None = None
    formats: Sequence[str] = FORMATS
    json: bytes = b""
    lacking: str = ""

    @property
    def tables(self) -> list[document.Table]:
        """The tables of the document."""
        return [block for block in self.blocks if isinstance(block, document.Table)]

    def markdown(self) -> str:
        """Return the document as a page of Markdown."""
        return document.markdown([document.Heading(self.title, 1), *self.blocks])

    def texts(self) -> dict[str, bytes]:
        """Return suffix → content of its files except pictures: the document and the numbers."""
        if self.json:
            return {"json": self.json}
        files = {"md": document.encoded(self.markdown())} if self.blocks else {}
        return {
            **files,
            "csv": document.encoded(self.table.to_csv(index=False, float_format="%.6g")),
        }


def files_of(output: Output, stem: Path, formats: Sequence[str]) -> dict[Path, bytes]:
    """Return path → content of the files of an output: document, numbers, figure.

    All of them show the same numbers. So a format that an earlier drawing has left is drawn again,
    too, if that is possible here.

    Parameters
    ----------
    output : Output
        What to write.
    stem : Path
        Path of the files without their suffix.
    formats : sequence of str
        Formats of the figure, some of ``PICTURES``; empty: its default ones. ``tex`` adds the
        tables of its document in LaTeX.

    Raises
    ------
    ConfigError
        If ``pgf`` is requested and LaTeX is not installed.
    """

    def path(end: str) -> Path:
        return stem.with_name(f"{stem.name}.{end}")

    def is_there(end: str) -> bool:
        return path(end).is_file() and not path(end).is_symlink()

    files = output.texts()
    if output.tables and (TABLES in formats or is_there(TABLES)):
        files[TABLES] = document.encoded(document.latex(output.tables))
    asked = [end for end in formats or output.formats if end != TABLES]
    ends = dict.fromkeys((*asked, *filter(is_there, PICTURES)))
    if output.figure is not None and ends:
        from ssvm_bench.figures.drawing import rendered

        figure = output.figure()
        for end in ends:
            try:
                files[end] = rendered(figure, end)
            except ConfigError:
                if end in asked:
                    raise
    return {path(end): content for end, content in files.items()}


def save(
    output: Output, stem: Path, formats: Sequence[str], within: Path | None = None
) -> list[Path]:
    """Write the files of an output, and return their paths.

    Arguments are those of `files_of`, and ``within`` is the results folder, if they are in one.
    """
    contents = files_of(output, stem, formats)
    write_files(contents, within)
    return [*contents]


class Switched(NamedTuple):
    """A figure of curves on the page of the report, whose x axis can be switched.

    Attributes
    ----------
    what : str
        What it shows.
    tables, labels : dict
        x axis → curves of one problem instance, as returned by `curves.tabulate`; x axis → label.
    notes : list of str
        Remarks below the figure.
    log : bool
        Whether y is on a log axis.
    """

    what: str
    tables: Mapping[str, pd.DataFrame]
    labels: Mapping[str, str]
    notes: Sequence[str]
    log: bool


@dataclass(frozen=True)
class Kind:
    """A kind of figure.

    Attributes
    ----------
    name : str
        Its name in an experiment file.
    choices : Choices
        The x axes, or other choices, in an experiment file.
    outputs : callable
        Returns the outputs that are written as files, for some of the choices.
    of_instance : callable
        Returns what the page of the report shows of the runs on one problem instance; if nothing,
        the page shows the outputs.
    documents : bool
        Whether the outputs' documents are also shown on a page that is not of an experiment.
    chosen : sequence of str
        Its choices on such a page; empty: all.
    embedded : bool
        Whether a page has its figures inside where there are no files of them.
    intro : str
        What a reader of that page needs to know.
    at_top : bool
        Whether its files on the runs of a paper's experiments are at the top of the results folder,
        not in the experiment's folder.
    loads : callable, optional
        Returns what its files show of a run beyond the trace, such as predicted labels and their
        points. Only this step reads data.
    """

    name: str
    choices: Choices
    outputs: Callable[[FigureData, Sequence[str]], Iterable[Output]]
    of_instance: Callable[[FigureData], Iterable[Switched]] = lambda _: ()
    documents: bool = False
    chosen: Sequence[str] = ()
    embedded: bool = False
    intro: str = ""
    at_top: bool = False
    loads: Callable[[Run], Any] | None = None

    def files(self, data: FigureData, names: Sequence[str]) -> Iterable[Output]:
        """Return its outputs for some choices; ``loaded`` is set if it reads data."""
        return self.outputs(data._replace(loaded=self.loads) if self.loads else data, names)


def robust(kind: Kind) -> Kind:
    """Return a kind that passes over, with a warning, single runs that it fails on.

    A kind may meet runs that it was not written for: of a paper's solver on other data, or with
    options that no program has written. Where it fails and no single run is the reason, it raises
    ``RunFailedError``. An error of ours with another cause, as a claim that cannot be judged, may
    have such a run as its reason, too.
    """

    def made(by: Callable[..., Iterable[Any]], data: FigureData, *more: Any) -> list[Any]:
        try:
            return [*by(data, *more)]
        except Exception as error:
            is_ours = isinstance(error, SsvmBenchError)
            if is_ours and isinstance(error.__cause__, SsvmBenchError | OSError | None):
                raise
            odd = {run.folder: why for run, why in _odd(data.runs, by, data, *more)}
            rest = data.runs.where(lambda run: run.folder not in odd)
            if not odd or not rest:
                if is_ours:
                    raise
                raise RunFailedError(
                    f"There is no {kind.name} of these runs: {described(error)}. Choose other runs,"
                    " or ask for the traceback with --debug."
                ) from error
            for folder, why in odd.items():
                logger.warning("Passed over in %s: the run %s: %s.", kind.name, folder, why)
            return made(by, data._replace(runs=rest), *more)

    return replace(
        kind, outputs=partial(made, kind.outputs), of_instance=partial(made, kind.of_instance)
    )


def _odd(
    runs: Runs, made: Callable[..., Iterable[Any]], data: FigureData, *more: Any
) -> Iterator[tuple[Run, str]]:
    """Yield the runs that a kind fails on even alone, and how."""
    try:
        for _ in made(data._replace(runs=runs), *more):
            pass
    except Exception as error:
        half = len(runs) // 2
        if half == 0:
            yield from ((run, described(error)) for run in runs)
        else:
            for part in (runs[:half], runs[half:]):
                yield from _odd(part, made, data, *more)


TABLE = Choices(("table",))
"""The choices of a kind of one table."""


def table_kind(
    name: str,
    title: str,
    tabulate: Callable[..., pd.DataFrame],
    blocks: Callable[[FigureData, pd.DataFrame], Iterable[Block]],
    draw: Callable[[FigureData, pd.DataFrame, Sequence[str]], Figure] | None = None,
    choices: Choices = TABLE,
    **more: Any,
) -> Kind:
    """Return a kind of one table and its document, which are written if the table has rows.

    Parameters
    ----------
    name, title : str
        Name of the kind and its files; title of the document, empty: the experiment's.
    tabulate : callable
        Runs, and the relative gaps if the choices have any → table.
    blocks : callable
        Input of the figure, and the table → the document.
    draw : callable, optional
        Input, table and choices → the figure.
    choices, more
        Fields of `Kind`.
    """

    def outputs(data: FigureData, chosen: Sequence[str]) -> Iterator[Output]:
        table = tabulate(data.runs, *[data.gaps] * choices.gaps)
        if len(table):
            figure = partial(draw, data, table, chosen) if draw else None
            yield Output(name, table, title or data.title, [*blocks(data, table)], figure)

    return Kind(name, choices, outputs, **more)


def kind_of(
    name: str,
    made: Mapping[str, Callable[[FigureData], Iterable[Output]]],
    one: str = "figure",
    **more: Any,
) -> Kind:
    """Return a kind from choice → function to its outputs; ``one`` is the word for a choice."""

    def outputs(data: FigureData, names: Sequence[str]) -> Iterator[Output]:
        for choice in names:
            yield from made[choice](data)

    return Kind(name, Choices((*made,), one, f"{one}s"), outputs, **more)


@dataclass(frozen=True)
class CurveFigure:
    """The figures of some curves over different x axes.

    Attributes
    ----------
    what : str
        What is drawn.
    file : str
        Name of the files; ``{}`` is replaced by the name of the x axis.
    quantities : mapping or callable
        As for `curves.tabulate`; or runs and x axis → table of the curves.
    chosen : callable
        The runs that have such curves, by default all.
    log : bool
        Whether y is on a log axis.
    named : callable
        Runs → the curve of each, by default its `labels`.
    draw : callable, optional
        Draws it; by default `drawing.draw_curves`.
    notes : callable
        Runs → notes in addition to those of `curves.notes`.
    held : bool
        Whether a run that has ended keeps its last value; see `curves.tabulate`.
    """

    what: str
    file: str
    quantities: Quantities | Callable[[Runs, str], pd.DataFrame]
    chosen: Callable[[Runs], Runs] = lambda runs: runs
    log: bool = True
    named: Callable[[Runs], Sequence[str]] = labels
    draw: Callable[[pd.DataFrame, str, str, Sequence[str], bool, bool], Figure] | None = None
    notes: Callable[[Runs], list[str]] = lambda _: []
    held: bool = False

    def kind(self, name: str, axes: Sequence[str], intro: str = "") -> Kind:
        """Return the kind of these figures, over some of the x axes."""
        return Kind(name, Choices((*axes,)), self.outputs, self.of_instance, intro=intro)

    def tabulate(self, runs: Runs, axis: str, log_x: bool | None = None) -> pd.DataFrame:
        """Return the curves of some runs, as `curves.tabulate` does, on a grid for their axis."""
        if callable(self.quantities):
            return self.quantities(runs, axis)
        about = self.quantities, axis, self.log, self.named(runs)
        table = curves.tabulate(runs, *about, held=self.held)
        if axis == "time" and curves.is_log_x(table, axis, log_x):
            return curves.tabulate(runs, *about, held=self.held, log_x=True)
        return table

    def outputs(self, data: FigureData, axes: Sequence[str]) -> Iterator[Output]:
        """Yield a figure for each x axis, and for each start of the runs; none without such runs.

        From different starts, values differ by so many decades that one axis shows neither.
        """
        from ssvm_bench.figures.drawing import draw_curves

        draw = self.draw or draw_curves
        of_starts = grouped(self.chosen(data.runs), lambda run: run.start)
        for axis, (start, members) in itertools.product(axes, sorted(of_starts.items())):
            runs, several = Runs(members, data.runs.best), len(of_starts) > 1
            table = self.tabulate(runs, axis, data.log_x)
            notes = [*curves.notes(table, runs, axis, self.held), *self.notes(runs)]
            label, log_x = curves.axis_label(runs, axis), curves.is_log_x(table, axis, data.log_x)
            title = data.title + f", from {style.STARTS[start]}" * several
            figure = partial(draw, data.headed(table), label, title, notes, log_x, self.log)
            name = self.file.format(curves.AXES[axis].files) + f"-{start}" * several
            yield Output(name, table, figure=figure)

    def of_instance(self, data: FigureData) -> Iterator[Switched]:
        """Yield the figure of the runs on one problem instance; none without such runs."""
        runs = self.chosen(data.runs)
        if not runs:
            return
        axes = [axis for axis, about in curves.AXES.items() if about.button]
        tables = {axis: self.tabulate(runs, axis) for axis in axes}
        axis_labels = {axis: curves.axis_label(runs, axis) for axis in axes}
        said = dict.fromkeys(
            note for of in axes for note in curves.notes(tables[of], runs, of, self.held)
        )
        notes = [  # without those that are the beginning of another one
            note
            for note in said
            if not any(more != note and more.startswith(note.rstrip(".")) for more in said)
        ]
        yield Switched(self.what, tables, axis_labels, [*notes, *self.notes(runs)], self.log)
