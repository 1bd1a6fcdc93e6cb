"""What a paper leaves open, each question with its answer: a document, and all its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from ssvm_bench.config import GENUINE
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.document import Block, Heading, Table, Warning, bold
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.papers.claim import Paper
from ssvm_bench.papers.claims_table import HEADINGS, WARNING
from ssvm_bench.papers.findings import (
    ALIKE,
    CHANGES,
    HIGHER,
    LOWER,
    MISSING,
    Finding,
    find,
)
from ssvm_bench.papers.mpbcfw.claims import MPBCFW
from ssvm_bench.papers.question import Question
from ssvm_bench.papers.variants import USUAL
from ssvm_bench.results.repeats import grouped
from ssvm_bench.results.words import NONE, counts

PAPERS = {"mpbcfw": MPBCFW}
"""Name in an experiment file, ``figures: {fidelity: [name]}`` → the paper."""

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
    return Output("fidelity", table, title, list(blocks(paper, findings)))


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
    places = grouped(findings, lambda finding: (finding.start, finding.counted))
    return "; ".join(
        ", ".join([*dict.fromkeys(finding.title for finding in mine), *_unusual(*variant)])
        for variant, mine in places.items()
    )


def _unusual(start: str, counted: bool) -> Iterator[str]:
    if start != USUAL.start:
        yield f"start at {start}"
    if counted:
        yield "at the paper's costs"


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


def _outputs(data: FigureData, names: Sequence[str]) -> Iterator[Output]:
    source = str(data.traces[0].metadata["dataset"]["source"])
    for paper in (PAPERS[name] for name in names):
        found = find(paper, data.traces, data.best, data.results_dir, source)
        yield output(paper, found)


KIND = Kind("fidelity", Choices(tuple(PAPERS), "paper", "papers"), _outputs, at_top=True)
