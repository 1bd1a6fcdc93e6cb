"""What runs say of the questions that a paper leaves open: one `Finding` per claim or number.

With the default of the question's option and with another value, the same seeds are judged by the
same measures (:mod:`ssvm_bench.papers.judging`). Of a claim, the *verdict* changes or does not. Of
what is measured, and of a number, which has no verdict, all repeats are

    lower     below all those by default
    higher    above them
    alike     neither: the difference is not beyond that of the repeats; or there is one repeat only
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ssvm_bench.figures.style import dataset_name
from ssvm_bench.papers import quantities
from ssvm_bench.papers.claim import Claim, Paper
from ssvm_bench.papers.judging import NO_RUNS, UNKNOWN, Row, evaluate
from ssvm_bench.papers.question import Question, sides
from ssvm_bench.papers.variants import USUAL
from ssvm_bench.results import measurements
from ssvm_bench.results.problem_instance import BestValues
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import number

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


# ---- runs -------------------------------------------------------------------------------------


def _of_runs(
    paper: Paper, question: Question, runs: Sequence[Trace], best: BestValues, source: str
) -> Iterator[Finding]:
    numbers = {claim.key: place for place, claim in enumerate(paper.claims, 1)}
    stands_for = {name: paper.stands_for.get(name, name) for name in question.datasets}
    claims = [claim for claim in paper.claims if claim.key in question.claims]
    claims += [quantities.claim(asked, stands_for.values()) for asked in question.numbers]
    asked = paper._replace(claims=tuple(claims))
    for value in question.others:
        by_default, changed = (
            evaluate(asked, side, best, {})
            for side in sides(question, value, paper.questions, runs)
        )
        for claim in claims:
            for name in question.datasets:
                if stands_for[name] not in claim.paper:
                    continue
                about = _about(question, value, source, name, claim, numbers.get(claim.key, 0))
                pairs = list(_pairs(claim.key, name, by_default, changed))
                if not pairs:
                    yield Finding(**about, note=NO_RUNS)
                for ours, theirs in pairs:
                    yield _compared(about, ours, theirs)


def _about(
    question: Question, value: Any, source: str, dataset: str, claim: Claim, place: int
) -> dict[str, Any]:
    """Return what a finding is about, of runs from the usual start whose time was measured."""
    return {
        "question": question.key,
        "option": question.option,
        "default": _shown(question.default),
        "other": _shown(value),
        "source": source,
        "dataset": dataset,
        "title": dataset_name(dataset),
        **USUAL._asdict(),
        "number": place,
        "key": claim.key,
        "what": claim.text,
    }


def _shown(value: Any) -> str:
    """Return a value as the command line has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(
    key: str, dataset: str, by_default: Iterable[Row], changed: Iterable[Row]
) -> Iterator[tuple[Row, Row]]:
    """Yield the rows of a claim on a dataset, of the same variant on both sides."""
    of_default = {
        (row.variant, row.title): row
        for row in by_default
        if (row.key, row.dataset) == (key, dataset)
    }
    for row in changed:
        ours = of_default.get((row.variant, row.title))
        if (row.key, row.dataset) == (key, dataset) and ours and row.note != NO_RUNS:
            yield ours, row


def _compared(about: dict[str, Any], ours: Row, theirs: Row) -> Finding:
    finding = Finding(**about)._replace(
        title=theirs.title,
        start=theirs.start,
        counted=theirs.counted,
        repeats=min(ours.repeats, theirs.repeats),
        ours=ours.ours,
        theirs=theirs.ours,
        our_median=ours.median,
        our_min=ours.min,
        our_max=ours.max,
        their_median=theirs.median,
        their_min=theirs.min,
        their_max=theirs.max,
    )
    if finding.number:
        finding = finding._replace(our_verdict=ours.verdict, their_verdict=theirs.verdict)
    if UNKNOWN in (ours.verdict, theirs.verdict):
        reasons = {row.note: None for row in (ours, theirs) if row.verdict == UNKNOWN}
        return finding._replace(note="; ".join(reasons))
    return finding._replace(change=_change(finding), shift=_shift(finding))


def _change(finding: Finding) -> str:
    if not finding.number:
        return MEASURED
    return STAYS if finding.our_verdict == finding.their_verdict else CHANGES


def _shift(finding: Finding) -> str:
    if finding.repeats < 2:
        return ALIKE
    if finding.their_max < finding.our_min:
        return LOWER
    return HIGHER if finding.their_min > finding.our_max else ALIKE


# ---- the bench --------------------------------------------------------------------------------


def _of_bench(question: Question, results_dir: Path | None, source: str) -> Iterator[Finding]:
    rows = measurements.read(results_dir) if results_dir else ()
    for name in question.datasets:
        found = [row for row in rows if row[:3] == (name, source, question.bench)]
        about = (question.key, "", "", "", source, name, dataset_name(name), *USUAL, 0)
        finding = Finding(*about, key=question.bench, what=question.bench)
        for row in found:
            text = f"{number(row.value)} {row.unit} ({number(row.low)} – {number(row.high)})"
            finding = finding._replace(
                theirs=text, their_median=row.value, their_min=row.low, their_max=row.high
            )._replace(change=MEASURED)
        yield finding if found else finding._replace(note=f"no such row in {measurements.FILE}")
