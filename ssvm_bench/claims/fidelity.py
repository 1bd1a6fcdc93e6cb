"""What runs say of the questions that a paper leaves open: a document, and all its numbers.

There is one `Finding` per claim or number. With the default of the question's option and with
another value, the same seeds are judged by the same measures (:mod:`.judging`). Of a claim, the
*verdict* changes or does not. Of what is measured, and of a number, which has no verdict, all
repeats are

    lower     below all those by default
    higher    above them
    alike     neither: the difference is not beyond that of the repeats; or there is one repeat only

Numbers are those of a run after so many iterations, read off the last evaluated iteration that is
not later:

========  ========================================================================================
gap       (P − F) / |P|
primal    P(w)
dual      F(φ)
call      seconds of an oracle call up to there
========  ========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.claims.cases import USUAL, Case
from ssvm_bench.claims.claim import Claim, Measured, UnmeasurableError, measure
from ssvm_bench.claims.judging import NO_RUNS, UNKNOWN, Row, evaluate
from ssvm_bench.claims.paper import Paper
from ssvm_bench.claims.questions import Number, Question, sides
from ssvm_bench.claims.table import HEADINGS, WARNING
from ssvm_bench.config import GENUINE
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.document import Block, Heading, Table, Warning, bold
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.figures.style import dataset_name, solver_label
from ssvm_bench.results import measurements
from ssvm_bench.results.problem_instance import BestValues
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE, counts, number, seconds

CHANGES, STAYS = "the verdict changes", "the verdict does not change"
LOWER, HIGHER, ALIKE = "lower", "higher", "alike"
MEASURED, MISSING = "measured", "not measured"


class Finding(NamedTuple):
    """A claim or number, by default and with another value of a question's option.

    Attributes
    ----------
    question, option, default, other : str
        The question's name, its option, and the two values.
    source, dataset, title : str
        Of the traces, and the dataset as a reader knows it.
    start, counted
        The `Variant` of the runs.
    number : int
        The claim's in the table of its paper; 0 of a number, which is none.
    key, what : str
        Its name here, and what it is.
    repeats : int
        Number of seeds.
    ours, theirs : str
        By default and with the other value, as text: median (minimum–maximum).
    our_verdict, their_verdict : str
        Of a claim.
    our_median, our_min, our_max, their_median, their_min, their_max : float
        The same as numbers; NaN if not measured.
    change : str
        Whether the verdict changes; whether a number was measured.
    shift : str
        ``LOWER``, ``HIGHER`` or ``ALIKE``, if it was measured.
    note : str
        The reason, if it was not measured.
    """

    question: str
    option: str
    default: str
    other: str
    source: str
    dataset: str
    title: str
    start: str
    counted: bool
    number: int
    key: str
    what: str
    repeats: int = 0
    ours: str = ""
    theirs: str = ""
    our_verdict: str = ""
    their_verdict: str = ""
    our_median: float = math.nan
    our_min: float = math.nan
    our_max: float = math.nan
    their_median: float = math.nan
    their_min: float = math.nan
    their_max: float = math.nan
    change: str = MISSING
    shift: str = ""
    note: str = ""


def find(
    paper: Paper, runs: Sequence[Trace], best: BestValues, results_dir: Path | None, source: str
) -> list[Finding]:
    """Return what is known of every question of a paper.

    Parameters
    ----------
    paper : Paper
        Whose questions.
    runs : sequence of Trace
        Finished runs, of one source.
    best : dict
        Best values known.
    results_dir : Path, optional
        Where the bench's numbers are.
    source : str
        That of the runs.
    """
    return [
        finding
        for question in paper.questions
        for finding in (
            _of_bench(question, results_dir, source)
            if question.bench
            else _of_runs(paper, question, runs, best, source)
        )
    ]


def _of_runs(
    paper: Paper, question: Question, runs: Sequence[Trace], best: BestValues, source: str
) -> Iterator[Finding]:
    numbers = {claim.key: place for place, claim in enumerate(paper.claims, 1)}
    stands_for = {name: paper.stands_for.get(name, name) for name in question.datasets}
    claims = [claim for claim in paper.claims if claim.key in question.claims]
    claims += [number_claim(asked, stands_for.values()) for asked in question.numbers]
    asked = replace(paper, claims=tuple(claims))
    for value in question.others:
        by_default, changed = (
            {(row.key, row.dataset, row.variant, row.title): row for row in rows}
            for rows in (
                evaluate(asked, side, best)
                for side in sides(question, value, paper.questions, runs)
            )
        )
        for claim in claims:
            for name in question.datasets:
                if stands_for[name] not in claim.paper:
                    continue
                about = _about(question, source, name)._replace(
                    default=_shown(question.default),
                    other=_shown(value),
                    number=numbers.get(claim.key, 0),
                    key=claim.key,
                    what=claim.text,
                )
                pairs = [
                    (by_default[key], row)
                    for key, row in changed.items()
                    if key[:2] == (claim.key, name) and key in by_default and row.note != NO_RUNS
                ]
                if not pairs:
                    yield about._replace(note=NO_RUNS)
                for ours, theirs in pairs:
                    yield _compared(about, ours, theirs)


def _about(question: Question, source: str, dataset: str) -> Finding:
    """Return what a finding is about, of runs from the usual start whose time was measured."""
    about = (question.key, question.option, "", "", source, dataset, dataset_name(dataset))
    return Finding(*about, *USUAL, 0, question.bench, question.bench)


def _shown(value: Any) -> str:
    """Return a value as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _compared(about: Finding, ours: Row, theirs: Row) -> Finding:
    """Return a finding on rows of one claim and variant."""
    both = (("our", ours), ("their", theirs))
    values: dict[str, Any] = {
        f"{whose}_{name}": getattr(row, name)
        for whose, row in both
        for name in ("median", "min", "max", *(("verdict",) if about.number else ()))
    }
    repeats = min(ours.repeats, theirs.repeats)
    found = about._replace(
        title=theirs.title,
        start=theirs.start,
        counted=theirs.counted,
        repeats=repeats,
        ours=ours.ours,
        theirs=theirs.ours,
        **values,
    )
    if UNKNOWN in (ours.verdict, theirs.verdict):
        reasons = {row.note: None for row in (ours, theirs) if row.verdict == UNKNOWN}
        return found._replace(note="; ".join(reasons))
    change = STAYS if ours.verdict == theirs.verdict else CHANGES
    lower, higher = theirs.max < ours.min, theirs.min > ours.max
    shift = ALIKE if repeats < 2 else LOWER if lower else HIGHER if higher else ALIKE
    return found._replace(change=change if about.number else MEASURED, shift=shift)


def _of_bench(question: Question, results_dir: Path | None, source: str) -> Iterator[Finding]:
    rows = measurements.read(results_dir) if results_dir else ()
    for name in question.datasets:
        finding = _about(question, source, name)
        found = [row for row in rows if row[:3] == (name, source, question.bench)]
        if not found:
            yield finding._replace(note=f"no such row in {measurements.FILE}")
            continue
        row = found[-1]
        text = f"{number(row.value)} {row.unit} ({number(row.low)} – {number(row.high)})"
        yield finding._replace(
            change=MEASURED,
            theirs=text,
            their_median=row.value,
            their_min=row.low,
            their_max=row.high,
        )


# ---- numbers ----------------------------------------------------------------------------------


QUANTITIES: dict[str, tuple[str, Callable[[pd.Series], float], Callable[[float], str]]] = {
    "gap": ("relative gap", lambda row: row["gap"] / abs(row["primal"]), number),
    "primal": ("primal value", lambda row: row["primal"], number),
    "dual": ("dual value", lambda row: row["dual"], number),
    "call": (
        "time of an oracle call",
        lambda row: row["oracle_time"] / row["oracle_calls"],
        seconds,
    ),
}
"""What it is, from a row of the trace, and as text."""

TIMED = "call"
"""The quantity that is about time."""


def number_claim(asked: Number, datasets: Iterable[str]) -> Claim:
    """Return a number as a claim about datasets that holds whatever it is."""
    name, _, show = QUANTITIES[asked.what]
    text = f"{name} of {solver_label(asked.solver)} after {asked.after} iterations"
    paper = dict.fromkeys(datasets, "")
    return Claim(asked.key, "", text, "", paper, _after(asked), show, asked.what == TIMED)


@measure
def _after(case: Case, asked: Number) -> Measured:
    """Measure a quantity of each repeat."""
    timed = asked.what == TIMED
    runs = case.timed(asked.solver)[0] if timed else case.repeats(asked.solver)
    values, at = [], []
    for run in runs:
        iterations = run.frame["iteration"].to_numpy(int)
        if iterations[-1] < asked.after:
            raise UnmeasurableError(f"a run ended before iteration {asked.after}")
        row = run.frame[iterations <= asked.after].iloc[-1]
        values.append(float(QUANTITIES[asked.what][1](row)))
        at.append(int(row["iteration"]))
    note = "" if set(at) == {asked.after} else f"evaluated at iteration {counts(at)}"
    return Measured(np.array(values), note=note)


# ---- the document -----------------------------------------------------------------------------

READING = (
    "Each question is settled by runs that differ in one option: with our default, by which the "
    "claims table is made, and with another value, from the same seeds. A claim's *verdict* is "
    "that of its median over the repeats; it changes or it does not. A number is *lower* or "
    "*higher* if all repeats with the other value are below or above all repeats by default, and "
    "*alike* otherwise, or with one repeat; so is what a claim is judged by. Numbers are medians, "
    "in parentheses the minimum and maximum."
)

SAID = {
    LOWER: "Lower in all repeats",
    HIGHER: "Higher in all repeats",
    ALIKE: "No difference beyond that of the repeats",
}


def output(paper: Paper, findings: Sequence[Finding]) -> Output:
    """Return the questions as numbers and as a document."""
    title = f"What {paper.title} leaves open, and what it changes here"
    table = pd.DataFrame(findings, columns=list(Finding._fields))
    file = paper.file.replace("claims", "fidelity")
    return Output(file, table, title, list(blocks(paper, findings)))


def blocks(paper: Paper, findings: Sequence[Finding]) -> Iterator[Block]:
    """Yield a table with a row per question and value, then one for each with all its numbers."""
    (source,) = {finding.source for finding in findings}
    yield READING
    if source not in GENUINE:
        yield Warning(f"{HEADINGS.get(source, source)}. {WARNING}")
    of = {question.key: question for question in paper.questions}
    settled = grouped(findings, lambda finding: (of[finding.question], finding.other))
    header = ("question", "left open in", "ours → other", "dataset", "repeats", "answer")
    cells = [
        [
            bold(question.question),
            f"{question.section}: {question.says}",
            _values(mine[0]),
            _where(mine),
            _repeats(mine),
            answer(question, mine),
        ]
        for (question, _), mine in settled.items()
    ]
    yield Table("Questions and answers", header, cells, len(header), headed=False)
    for (question, _), mine in settled.items():
        if question.option:
            yield Heading(f"{_values(mine[0])}: {question.question}")
            yield _table(mine)


def _values(finding: Finding) -> str:
    """Return our value and the other one, as the command line has them."""
    if not finding.option:
        return NONE
    return f"`{finding.option}={finding.default}` → `{finding.other}`"


def _where(findings: Sequence[Finding]) -> str:
    """Return the datasets, and behind them what is unusual about the runs there."""
    found = []
    variants = grouped(findings, lambda finding: (finding.start, finding.counted))
    for (start, counted), mine in variants.items():
        said = [*dict.fromkeys(finding.title for finding in mine)]
        said += [f"start at {start}"] * (start != USUAL.start)
        found.append(", ".join(said + ["at the paper's costs"] * counted))
    return "; ".join(found)


def _repeats(findings: Sequence[Finding]) -> str:
    made = [finding.repeats for finding in findings if finding.repeats]
    return counts(made) if made else NONE


# ---- answers ----------------------------------------------------------------------------------


def answer(question: Question, findings: Sequence[Finding]) -> str:
    """Return what the findings of a question say, in sentences."""
    missing = [finding for finding in findings if finding.change == MISSING]
    if len(missing) == len(findings):
        return f"{bold(MISSING)}: make it with `{question.made_by}`"
    measured = [finding for finding in findings if finding.change != MISSING]
    if question.bench:
        found = "; ".join(f"{one.theirs} on {one.title}" for one in measured)
        said = [f"{question.bench[0].upper()}{question.bench[1:]}: {bold(found)}"]
    else:
        said = [*_verdicts([one for one in measured if one.number]), *_shifts(measured)]
    for note, mine in grouped(missing, lambda finding: finding.note).items():
        said.append(f"Not measured ({note}): {'; '.join(map(_name, mine))}")
    return ". ".join(said)


def _verdicts(judged: Sequence[Finding]) -> Iterator[str]:
    """Yield whether the verdicts of claims change, and which."""
    if not judged:
        return
    numbers = sorted({finding.number for finding in judged})
    claims = f"claim{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
    changed = [finding for finding in judged if finding.change == CHANGES]
    if not changed:
        yield bold(f"No verdict of {claims} changes")
        return
    which = "; ".join(
        f"{_name(one)} ({one.our_verdict}, {one.ours} → {one.their_verdict}, {one.theirs})"
        for one in changed
    )
    yield bold(f"{len(changed)} of {len(judged)} verdicts of {claims} change") + f": {which}"


def _shifts(measured: Sequence[Finding]) -> Iterator[str]:
    """Yield what is lower and higher, and which numbers are neither."""
    for shift, mine in grouped(measured, lambda finding: finding.shift).items():
        told = [one for one in mine if not one.number or shift != ALIKE]
        named = (f"{_name(one)} ({_median(one.ours)} → {_median(one.theirs)})" for one in told)
        if told:
            yield f"{bold(SAID[shift])}: {'; '.join(named)}"


def _name(finding: Finding) -> str:
    what = f"claim {finding.number}" if finding.number else finding.what
    return f"{what} on {finding.title}"


def _median(text: str) -> str:
    return text.partition(" (")[0]


# ---- all numbers ------------------------------------------------------------------------------


def _table(findings: Sequence[Finding]) -> Table:
    """Return all claims and numbers of a question and value."""
    header = ("#", "claim or number", "dataset", "repeats", "ours", "other", "change", "note")
    cells = [
        [
            str(finding.number or ""),
            finding.what,
            _where([finding]),
            str(finding.repeats or NONE),
            _side(finding.our_verdict, finding.ours),
            _side(finding.their_verdict, finding.theirs),
            _change(finding),
            finding.note,
        ]
        for finding in findings
    ]
    return Table("", header, cells, len(header), headed=False)


def _change(finding: Finding) -> str:
    """Return whether the verdict changes, and the number."""
    verdict = finding.change if finding.number or finding.change == MISSING else ""
    shift = bold(finding.shift, finding.shift != ALIKE)
    return ", ".join(filter(None, (bold(verdict, verdict == CHANGES), shift)))


def _side(verdict: str, text: str) -> str:
    return ", ".join(filter(None, (verdict, text))) or NONE


# ---- the kind of figure -----------------------------------------------------------------------


def kind(papers: Mapping[str, Paper]) -> Kind:
    """Return the kind of figure, of whose choices each is a paper that leaves something open."""

    def outputs(data: FigureData, names: Sequence[str]) -> Iterator[Output]:
        source = str(data.traces[0].metadata["dataset"]["source"])
        for paper in (papers[name] for name in names):
            found = find(paper, data.traces, data.best, data.results_dir, source)
            yield output(paper, found)

    choices = tuple(name for name, paper in papers.items() if paper.questions)
    return Kind("fidelity", Choices(choices, "paper", "papers"), outputs, at_top=True)
