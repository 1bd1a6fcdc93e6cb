"""All checks of a results folder, in order, and the table of their findings.

The checks that need no data are here.

**Traces**:

.. code-block:: text

    F(φ) ≤ P(w)                in every row, and for the best values of a problem instance
    summary                    its values are those of the last row, and the best of all rows
    optima.json                no run saw a better value

**Figures, tables and claims** are made again from the stored traces and compared. The numbers that
a figure draws are stored beside it as CSV. Pictures are not compared, because other machines have
other fonts. Numbers count as equal if they differ by at most one unit of the last of their six
digits: logarithms are not rounded alike everywhere. Documents must be equal.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.config.experiment import along_paths
from ssvm_bench.figures.kind import Kind, Output
from ssvm_bench.report import experiment_files
from ssvm_bench.results import optima, stored_traces
from ssvm_bench.results.folder import ResultsFolder
from ssvm_bench.results.reading import find_runs, read_run
from ssvm_bench.results.table import Best, Run
from ssvm_bench.verification import data
from ssvm_bench.verification.finding import DIFFERENT, SAME, SKIPPED, Finding, Subject, compared

TOLD = 20
"""Most differences that are listed for a check."""

MARKS = {SAME: "✓", DIFFERENT: "✗", SKIPPED: "–"}


@dataclass
class Check:
    """The findings of a check.

    Attributes
    ----------
    what : str
        What is checked.
    counts : Counter
        Outcome → number of findings.
    different : list of Finding
    skipped : Counter
        Why → number of findings.
    seconds : float
    """

    what: str
    counts: Counter[str] = field(default_factory=Counter)
    different: list[Finding] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @classmethod
    def of(cls, what: str, findings: Iterable[Finding]) -> Check:
        """Run a check, and count its findings."""
        begin, check = time.perf_counter(), cls(what)
        for found in findings:
            check.counts[found.outcome] += 1
            if found.outcome == DIFFERENT:
                check.different.append(found)
            elif found.outcome == SKIPPED:
                check.skipped[found.why] += 1
        check.seconds = time.perf_counter() - begin
        return check

    @property
    def outcome(self) -> str:
        """The worst outcome of the findings; ``SKIPPED`` if nothing could be checked."""
        if self.different:
            return DIFFERENT
        return SAME if self.counts[SAME] else SKIPPED


def verify(
    where: ResultsFolder, rerun: int = 0, seed: int = 0, config_dirs: Sequence[Path] = ()
) -> Iterator[Check]:
    """Yield the checks of a results folder, each when it is done.

    Parameters
    ----------
    where : ResultsFolder
        The folder; its part ``made`` is verified.
    rerun : int
        Number of stored runs to execute again.
    seed : int
        Seed of the choice of these runs.
    config_dirs : sequence of Path
        Further folders of config files.

    Raises
    ------
    RunFailedError
        If there is nothing to verify.
    """
    os.environ["SSVM_BENCH_OFFLINE"] = "1"  # missing data are reported, not downloaded
    subject = Subject(where, defaultdict(dict), [], config_dirs)
    read = Check.of("traces and runs as they were written", _read(subject))
    if not read.counts:
        raise RunFailedError(
            f"There is nothing to verify in {where.made}: it has no trace and no run that can be "
            "read. Make some with `ssvm-bench experiment quickstart`, or choose another folder "
            "with results_dir=…"
        )
    yield read
    yield Check.of("weak duality, F ≤ P", duality(subject))
    yield Check.of("summaries beside their rows", summaries(subject))
    yield Check.of("best values on record", best_values(subject))
    drawn: set[Path] = set()
    yield Check.of("claims, judged again", redrawn(subject, drawn, claims=True))
    yield Check.of("figures and tables, made again", redrawn(subject, drawn, claims=False))
    yield Check.of("fingerprints of data", data.fingerprints(subject))
    yield Check.of("primal values at stored weights", data.weights(subject))
    if rerun:
        yield Check.of(f"runs made again (seed {seed})", data.made_again(subject, rerun, seed))


def _read(subject: Subject) -> Iterator[Finding]:
    """Read all traces and runs into a subject, and yield for each file whether it is intact."""
    where = subject.where
    for name in stored_traces.names(where):
        for path in stored_traces.files_of(where, name):
            try:
                for trace in stored_traces.read_file(path, where.root):
                    subject.stored[name].setdefault(trace.own_folder, trace)
                yield compared(subject.named(path))
            except RunFailedError as error:
                yield compared(subject.named(path), str(error))
    for folder in find_runs(where.root):
        try:
            subject.runs.append(read_run(folder))
            yield compared(subject.named(folder))
        except RunFailedError as error:
            yield compared(subject.named(folder), str(error))


def lines(check: Check) -> Iterator[str]:
    """Yield the lines printed for a check: its row of the table, what differs, what was skipped."""
    numbers = [check.counts[outcome] for outcome in (SAME, DIFFERENT, SKIPPED)]
    shown = "  ".join(f"{number:>9,}" for number in numbers)
    yield f"{MARKS[check.outcome]} {check.what:<{WIDTH}}  {shown}  {check.seconds:>7.1f}"
    for found in check.different[:TOLD]:
        yield f"    ✗ {found.of}: {found.why}"
    if (more := len(check.different) - TOLD) > 0:
        yield f"    ✗ and {more} more"
    for why, count in check.skipped.most_common():
        yield f"    – {count} skipped: {why}"


WIDTH = 38
HEADING = f"  {'':<{WIDTH}}  {SAME:>9}  {DIFFERENT:>9}  {SKIPPED:>9}  seconds"
"""Heading of the table whose rows `lines` yields."""


# ---- traces -----------------------------------------------------------------------------------

ROUNDING = 1e-9
"""Of sums, relative to the largest of P, F and 1, as in the runner."""


def duality(subject: Subject) -> Iterator[Finding]:
    """Yield for each run, stored or raw, whether F ≤ P in every row and on its instance."""
    best, _ = subject.best
    for trace in [*subject.traces, *subject.runs]:
        yield _dual_below(trace, best.get(trace.problem))


def _dual_below(trace: Run, best: Best | None) -> Finding:
    primal, dual = (trace[name] for name in ("primal", "dual"))
    if np.isnan(dual).all():
        return Finding(SKIPPED, trace.title, "the solver has no dual value")
    if not optima.is_exact(str(trace.config.get("oracle", {}).get("kind"))):
        return Finding(SKIPPED, trace.title, "the oracle is not exact, so that P may be too low")
    above = dual - primal > ROUNDING * np.maximum(np.maximum(abs(primal), abs(dual)), 1.0)
    if above.any():
        row = trace.frame[above].iloc[0]
        values = f"F = {row['dual']:.9g} above P = {row['primal']:.9g}"
        return compared(trace.title, f"iteration {row['iteration']:.0f}: {values}")
    highest, lowest = np.nanmax(dual), math.inf if best is None else best.primal
    if highest - lowest > ROUNDING * max(abs(highest), 1.0):
        values = f"F = {highest:.9g} above P = {lowest:.9g}"
        return compared(trace.title, f"{values}, which another run saw")
    return compared(trace.title)


def summaries(subject: Subject) -> Iterator[Finding]:
    """Yield for each run whether its summary agrees with its rows."""
    for trace in [*subject.traces, *subject.runs]:
        yield compared(trace.title, _unlike(trace))


def _unlike(trace: Run) -> str:
    """Return where a summary disagrees with the rows; an empty string if nowhere."""
    frame, told = trace.frame, dict(trace.end)
    if "latent_round" in frame:  # the summary is of the last problem
        frame = frame[frame["latent_round"] == frame["latent_round"].iloc[-1]]
    primal, dual = (frame[name].to_numpy(float) for name in ("primal", "dual"))
    found = {name: float(frame[name].iloc[-1]) for name in ("iteration", "primal", "dual")}
    found["best_primal"] = primal.min()
    found["best_dual"] = math.nan if np.isnan(dual).all() else np.nanmax(dual)
    for name, value in found.items():
        said = told.get(name)
        if said is not None and said != value and not math.isnan(value):
            return f"the summary has {name} {said:.9g}, the rows {value:.9g}"
    return ""


def best_values(subject: Subject) -> Iterator[Finding]:
    """Yield for each problem instance whether ``optima.json`` has the best values of its runs."""
    _, better = subject.best
    names = {trace.problem: trace for trace in subject.traces}
    for problem, trace in names.items():
        name = f"{trace.data['name']}, lam={problem.lam:.6g}"
        why = ""
        if problem in better:
            seen = better[problem]
            why = f"a run saw P = {seen.primal:.9g} or F = {seen.dual:.9g}, which is not on record"
        yield compared(f"{optima.FILE}: {name}", why)


# ---- figures, tables and claims ---------------------------------------------------------------

LAST_DIGIT = 1e-5
"""One unit of the last of six digits, relative to the number."""

PICTURES = (".png", ".pdf", ".svg")
WITH_OPTIONS = "drawn with other options"


def redrawn(subject: Subject, drawn: set[Path], claims: bool) -> Iterator[Finding]:
    """Yield a finding for each file of figures and tables.

    Parameters
    ----------
    subject : Subject
    drawn : set of Path
        Collects the paths, without suffix, of the files that were made again.
    claims : bool
        Whether to check the tables of claims, or everything else; that comes second.
    """
    root = subject.where.made
    for folder in sorted(root.glob("figures/*/")):
        made_again, why = _outputs(subject, folder.name, lambda kind: kind.at_top == claims)
        for made in made_again:
            if claims and isinstance(made.shown, bytes):  # checked with the figures
                continue
            stem = root / made.place
            drawn.add(stem)
            for end, text in made.texts().items():
                path = stem.with_name(f"{stem.name}.{end}")
                yield compared(subject.named(path), _difference(path, text))
            if isinstance(made.shown, Output) and made.shown.figure is not None:
                pictures = [stem.with_name(stem.name + end) for end in PICTURES]
                if not any(path.is_file() for path in pictures):
                    yield compared(subject.named(pictures[0]), "there is no such picture")
        for path in () if claims else sorted(folder.iterdir()):
            if path.is_dir():
                yield Finding(SKIPPED, subject.named(path), WITH_OPTIONS)
            elif path.with_suffix("") not in drawn and not path.name.startswith("."):
                yield Finding(SKIPPED, subject.named(path), why)


def _outputs(
    subject: Subject, name: str, wanted: Callable[[Kind], bool]
) -> tuple[Iterable[experiment_files.Made], str]:
    """Return an experiment's outputs from stored runs, and why other files cannot be made again."""
    try:
        experiment = experiment_files.load(name, subject.config_dirs)
        asked = [f"results_dir={subject.where.root}"]
        configs = experiment.configs(asked, subject.config_dirs)
    except ConfigError:
        return (), "no experiment draws it"
    of_origins = (subject.stored[origin] for origin in experiment.origins)
    stored = {key: run for of_origin in of_origins for key, run in of_origin.items()}
    found = experiment_files.finished(along_paths(configs), stored)
    runs = {run.own_folder: run for _, run in found if run}
    if not runs:
        return (), f"no run of the experiment's file is stored; {WITH_OPTIONS}"
    about = experiment, [*runs.values()], subject.best[0], subject.where.made
    made = experiment_files.outputs(*about, wanted)
    return made, "it takes data, or files of runs, that are not here"


def _difference(path: Path, text: bytes) -> str:
    """Return where a file differs from its expected content; an empty string if it does not."""
    if not path.is_file():
        return "there is no such file"
    there = files.read(path)
    if there == text:
        return ""
    try:
        rows = [_rows(path, content.decode()) for content in (there, text)]
    except (UnicodeDecodeError, csv.Error):
        return "it is no text"
    for line, (old, new) in enumerate(itertools.zip_longest(*rows, fillvalue=[]), 1):
        pairs = itertools.zip_longest(old, new, fillvalue="nothing")
        for cell, made in pairs:
            if cell != made and not (path.suffix == ".csv" and _close(cell, made)):
                return f"line {line}: {_around(cell, made)}"
    return ""


def _rows(path: Path, text: str) -> list[list[str]]:
    if path.suffix == ".csv":
        return list(csv.reader(io.StringIO(text)))
    return [[line] for line in text.splitlines()]


def _close(cell: str, made: str) -> bool:
    try:
        return math.isclose(float(cell), float(made), rel_tol=LAST_DIGIT)
    except ValueError:
        return False


def _around(cell: str, made: str) -> str:
    """Return what differs in two texts, with a few characters before the difference."""
    pairs = enumerate(zip(cell, made, strict=False))
    same = next((k for k, (old, new) in pairs if old != new), min(len(cell), len(made)))
    begin = max(0, same - 12)
    return f"{shown(cell[begin:], 40)!r} there, {shown(made[begin:], 40)!r} made again"
