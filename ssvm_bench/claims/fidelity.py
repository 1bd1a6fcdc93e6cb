"""Answers of runs to the questions that a paper leaves open: a document, and all its numbers.

There is one `Effect` per claim or number. Runs with the default of the question's option and runs
with another value, from the same seeds, are judged by the same measures (:mod:`.judging`). The
*verdict* on a claim changes or does not; numbers have no verdict. The repeats with the other value
are

    lower     all below all repeats by default
    higher    all above all repeats by default
    alike     neither: the difference is not beyond that of the repeats; or there is one repeat only
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ssvm_bench.claims.cases import USUAL
from ssvm_bench.claims.display import HEADINGS, TEXTS
from ssvm_bench.claims.judging import NO_RUNS, UNKNOWN, Judged, evaluate
from ssvm_bench.claims.paper import Paper
from ssvm_bench.claims.questions import Question, number_claim, sides
from ssvm_bench.config import GENUINE
from ssvm_bench.figures.document import Block, Heading, Table, Warning, bold
from ssvm_bench.figures.kind import FigureData, Kind, Output, kind_of
from ssvm_bench.figures.style import dataset_name
from ssvm_bench.results import measurements
from ssvm_bench.results.measurements import Measurement
from ssvm_bench.results.table import BestValues, Run, grouped
from ssvm_bench.results.words import NONE, counts, number

CHANGES, STAYS = "the verdict changes", "the verdict does not change"
LOWER, HIGHER, ALIKE = "lower", "higher", "alike"
MEASURED, MISSING = "measured", "not measured"


class Effect(NamedTuple):
    """A claim or number, by default and with another value of a question's option.

    Attributes
    ----------
    question, option, default, other : str
        The question's name, its option, and the two values.
    source, dataset, title : str
        Source and dataset in the traces, and the dataset's title.
    start, counted
        The `Variant` of the runs.
    number : int
        The claim's number in the table of its paper; 0 if this is not a claim.
    key, what : str
        Name and description of the claim or number.
    repeats : int
        Number of seeds.
    ours, theirs : str
        By default and with the other value, as text: median (minimum–maximum).
    our_verdict, their_verdict : str
        The claim's verdicts; empty if this is not a claim.
    our_median, our_min, our_max, their_median, their_min, their_max : float
        The same values as numbers; NaN if not measured.
    change : str
        Whether the verdict changes, or whether the number was measured.
    shift : str
        ``LOWER``, ``HIGHER`` or ``ALIKE``; empty if not measured.
    note : str
        The reason why it was not measured.
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
    paper: Paper, runs: Sequence[Run], best: BestValues, results_dir: Path | None, source: str
) -> list[Effect]:
    """Return the effects on every question of a paper.

    Parameters
    ----------
    paper : Paper
    runs : sequence of Run
        Finished runs, of one source.
    best : dict
        Best values known.
    results_dir : Path, optional
        The folder with the bench's measurements.
    source : str
        Source of the runs' data.
    """
    bench = measurements.read(results_dir) if results_dir else ()
    found: list[Effect] = []
    for question in paper.questions:
        if question.bench:
            found += [_of_bench(question, name, bench, source) for name in question.datasets]
        else:
            found += _of_runs(paper, question, runs, best, source)
    return found


def _of_runs(
    paper: Paper, question: Question, runs: Sequence[Run], best: BestValues, source: str
) -> Iterator[Effect]:
    numbers = {claim.key: number for number, claim in enumerate(paper.claims, 1)}
    stands_for = {name: paper.stands_for.get(name, name) for name in question.datasets}
    claims = [claim for claim in paper.claims if claim.key in question.claims]
    claims += [number_claim(asked, stands_for.values()) for asked in question.numbers]
    for value in question.others:
        ours, theirs = (
            {(row.key, row.dataset, row.start, row.counted, row.title): row for row in rows}
            for side in sides(question, value, paper.questions, runs)
            for rows in [evaluate(paper, side, best, claims=claims)]
        )
        for claim, name in product(claims, question.datasets):
            if stands_for[name] in claim.paper:
                about = _about(question, source, name)._replace(
                    default=_shown(question.default),
                    other=_shown(value),
                    number=numbers.get(claim.key, 0),
                    key=claim.key,
                    what=claim.text,
                )
                found = [
                    _compared(about, ours[at], row)
                    for at, row in theirs.items()
                    if at[:2] == (claim.key, name) and at in ours and row.note != NO_RUNS
                ]
                yield from found or [about]


def _about(question: Question, source: str, dataset: str) -> Effect:
    """Return what has no runs on a dataset, of the usual variant."""
    about = (question.key, question.option, "", "", source, dataset, dataset_name(dataset))
    return Effect(*about, *USUAL, 0, question.bench, question.bench, note=NO_RUNS)


def _shown(value: Any) -> str:
    """Return a value as it is written on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _compared(about: Effect, ours: Judged, theirs: Judged) -> Effect:
    """Return the effect in rows of one claim and variant."""
    names = ("median", "min", "max", *("verdict",) * bool(about.number))
    values = {f"our_{name}": getattr(ours, name) for name in names}
    values |= {f"their_{name}": getattr(theirs, name) for name in names}
    values = {
        f"{side}_{name}": getattr(row, name)
        for name in names
        for side, row in (("our", ours), ("their", theirs))
    }
    values |= {name: getattr(theirs, name) for name in ("title", "start", "counted")}
    reasons = "; ".join({row.note: None for row in (ours, theirs) if row.verdict == UNKNOWN})
    values |= {"repeats": min(ours.repeats, theirs.repeats), "note": reasons}
    found = about._replace(ours=ours.ours, theirs=theirs.ours, **values)
    if reasons:
        return found
    change = STAYS if ours.verdict == theirs.verdict else CHANGES
    shift = LOWER if theirs.max < ours.min else HIGHER if theirs.min > ours.max else ALIKE
    shift = shift if found.repeats > 1 else ALIKE
    return found._replace(change=change if about.number else MEASURED, shift=shift)


def _of_bench(
    question: Question, dataset: str, bench: Sequence[Measurement], source: str
) -> Effect:
    about, of = _about(question, source, dataset), (dataset, source, question.bench)
    found = [row for row in bench if row[:3] == of]
    if not found:
        return about._replace(note=f"no such row in {measurements.FOLDER}/")
    *_, value, low, high, unit = found[-1]
    text = f"{number(value)} {unit} ({number(low)} – {number(high)})"
    ends: dict[str, Any] = {"their_median": value, "their_min": low, "their_max": high}
    return about._replace(change=MEASURED, theirs=text, note="", **ends)


# ---- the document -----------------------------------------------------------------------------

SAID = {
    LOWER: "Lower in all repeats",
    HIGHER: "Higher in all repeats",
    ALIKE: "No difference beyond that of the repeats",
}


def blocks(paper: Paper, effects: Sequence[Effect]) -> Iterator[Block]:
    """Yield a table with a row per question and value, then one for each with all its numbers."""
    (source,) = {effect.source for effect in effects}
    yield TEXTS["fidelity"]
    if source not in GENUINE:
        yield Warning(f"{HEADINGS.get(source, source)}. {TEXTS['warning']}")
    of = {question.key: question for question in paper.questions}
    settled = grouped(effects, lambda effect: (of[effect.question], effect.other))
    header = ("question", "left open in", "ours → other", "dataset", "repeats", "answer")
    cells = [
        [
            bold(question.question),
            f"{question.section}: {question.says}",
            _values(mine[0]),
            _where(mine),
            counts(made) if (made := [one.repeats for one in mine if one.repeats]) else NONE,
            answer(question, mine),
        ]
        for (question, _), mine in settled.items()
    ]
    yield Table("Questions and answers", header, cells, len(header), headed=False)
    for (question, _), mine in settled.items():
        if question.option:
            yield Heading(f"{_values(mine[0])}: {question.question}")
            yield _table(mine)


def _values(effect: Effect) -> str:
    """Return the default and the other value as they are written on the command line."""
    if not effect.option:
        return NONE
    return f"`{effect.option}={effect.default}` → `{effect.other}`"


def _where(effects: Sequence[Effect]) -> str:
    """Return the datasets of each variant, followed by what is unusual about it."""
    found = []
    variants = grouped(effects, lambda effect: (effect.start, effect.counted))
    for (start, counted), mine in variants.items():
        said = [*dict.fromkeys(effect.title for effect in mine)]
        said += [f"start at {start}"] * (start != USUAL.start)
        found.append(", ".join(said + ["at the paper's costs"] * counted))
    return "; ".join(found)


# ---- answers ----------------------------------------------------------------------------------


def answer(question: Question, effects: Sequence[Effect]) -> str:
    """Return the answer to a question by its effects, in sentences."""
    missing = [effect for effect in effects if effect.change == MISSING]
    measured = [effect for effect in effects if effect.change != MISSING]
    if not measured:
        return f"{bold(MISSING)}: make it with `{question.made_by}`"
    if question.bench:
        found = "; ".join(f"{one.theirs} on {one.title}" for one in measured)
        said = [f"{question.bench[0].upper()}{question.bench[1:]}: {bold(found)}"]
    else:
        judged = [one for one in measured if one.number]
        said = [*([_verdicts(judged)] if judged else []), *_shifts(measured)]
    for note, mine in grouped(missing, lambda effect: effect.note).items():
        said.append(f"Not measured ({note}): {'; '.join(map(_name, mine))}")
    return ". ".join(said)


def _verdicts(judged: Sequence[Effect]) -> str:
    """Return whether the verdicts of claims change, and which, as a sentence."""
    numbers = sorted({effect.number for effect in judged})
    claims = f"claim{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
    changed = [effect for effect in judged if effect.change == CHANGES]
    if not changed:
        return bold(f"No verdict of {claims} changes")
    which = "; ".join(
        f"{_name(one)} ({one.our_verdict}, {one.ours} → {one.their_verdict}, {one.theirs})"
        for one in changed
    )
    return bold(f"{len(changed)} of {len(judged)} verdicts of {claims} change") + f": {which}"


def _shifts(measured: Sequence[Effect]) -> Iterator[str]:
    """Yield a sentence per shift; claims that are alike are left out."""
    for shift, mine in grouped(measured, lambda effect: effect.shift).items():
        named = [
            f"{_name(one)} ({one.ours.partition(' (')[0]} → {one.theirs.partition(' (')[0]})"
            for one in mine
            if not one.number or shift != ALIKE
        ]
        if named:
            yield f"{bold(SAID[shift])}: {'; '.join(named)}"


def _name(effect: Effect) -> str:
    what = f"claim {effect.number}" if effect.number else effect.what
    return f"{what} on {effect.title}"


# ---- all numbers ------------------------------------------------------------------------------


def _table(effects: Sequence[Effect]) -> Table:
    """Return a table of all claims and numbers of one question and value."""
    header = ("#", "claim or number", "dataset", "repeats", "ours", "other", "change", "note")
    cells = []
    for effect in effects:
        judged = effect.number or effect.change == MISSING
        change = [bold(effect.change, effect.change == CHANGES)] * bool(judged)
        change.append(bold(effect.shift, effect.shift in (LOWER, HIGHER)))
        first = str(effect.number or ""), effect.what, _where([effect])
        sides = (effect.our_verdict, effect.ours), (effect.their_verdict, effect.theirs)
        ours, theirs, changed = (", ".join(filter(None, said)) for said in (*sides, change))
        repeats = str(effect.repeats or NONE)
        cells.append([*first, repeats, ours or NONE, theirs or NONE, changed, effect.note])
    return Table("", header, cells, len(header), headed=False)


# ---- the kind of figure -----------------------------------------------------------------------


def _outputs(paper: Paper, data: FigureData) -> Iterator[Output]:
    source = str(data.runs[0].data["source"])
    runs, _ = paper.at_settings(data.runs)
    effects = find(paper, runs, data.runs.best, data.results_dir, source)
    title = f"What {paper.title} leaves open, and what it changes here"
    file = paper.file.replace("claims", "fidelity")
    yield Output(file, pd.DataFrame(effects), title, list(blocks(paper, effects)))


def kind(papers: Mapping[str, Paper]) -> Kind:
    """Return the kind of figure with a choice for each paper that has open questions."""
    made = {name: partial(_outputs, paper) for name, paper in papers.items() if paper.questions}
    return kind_of("fidelity", made, "paper", at_top=True)
