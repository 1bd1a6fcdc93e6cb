"""All checks of a results folder, in order, and the table of their findings."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results import stored_traces
from ssvm_bench.results.folder import ResultsFolder
from ssvm_bench.results.reading import find_runs, read_run
from ssvm_bench.verification import data, drawings, traces
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
            f"There is nothing to verify in {where.made}: it has neither traces/ nor runs/. Make "
            "some with `ssvm-bench experiment quickstart`, or choose another folder with "
            "results_dir=…"
        )
    yield read
    yield Check.of("weak duality, F ≤ P", traces.duality(subject))
    yield Check.of("summaries beside their rows", traces.summaries(subject))
    yield Check.of("best values on record", traces.best_values(subject))
    yield Check.of("claims, judged again", drawings.redrawn(subject, claims=True))
    yield Check.of("figures and tables, made again", drawings.redrawn(subject, claims=False))
    yield Check.of("fingerprints of data", data.fingerprints(subject))
    yield Check.of("primal values at stored weights", data.weights(subject))
    if rerun:
        yield Check.of(f"runs made again (seed {seed})", data.made_again(subject, rerun, seed))


def _read(subject: Subject) -> Iterator[Finding]:
    """Read all traces and runs into a subject, and yield for each file whether it is intact."""
    where = subject.where
    folders = {folder.name for place in where.read for folder in place.glob("traces/*/")}
    for name in sorted(folders):
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
