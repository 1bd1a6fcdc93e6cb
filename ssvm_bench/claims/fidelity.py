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
    """What another value of a question's option does to a claim or a number.

    Attributes
    ----------
    question : Question
    value
        The other value; None if the bench answers.
    number : int
        The claim's number in the table of its paper; 0 if this is not a claim.
    ours, theirs : Judged
        By default and with the other value; without a verdict where there are no runs.
    """

    question: Question
    value: Any
    number: int
    ours: Judged
    theirs: Judged

    @property
    def note(self) -> str:
        """The reasons why it was not measured, if it was not."""
        both = self.ours, self.theirs
        return "; ".join({row.note: None for row in both if row.verdict in (UNKNOWN, "")})

    @property
    def change(self) -> str:
        """Whether the verdict changes, or whether the number was measured."""
        if self.note:
            return MISSING
        if not self.number:
            return MEASURED
        return STAYS if self.ours.verdict == self.theirs.verdict else CHANGES

    @property
    def repeats(self) -> int:
        """Number of seeds."""
        return min(self.ours.repeats, self.theirs.repeats)

    @property
    def shift(self) -> str:
        """``LOWER``, ``HIGHER`` or ``ALIKE``; empty if not measured, or by the bench."""
        if self.note or self.question.bench:
            return ""
        lower, higher = self.theirs.max < self.ours.min, self.theirs.min > self.ours.max
        return ALIKE if self.repeats < 2 else LOWER if lower else HIGHER if higher else ALIKE

    @property
    def columns(self) -> dict[str, Any]:
        """The effect as columns of a table."""
        question, row, sides = self.question, self.theirs, {"our": self.ours, "their": self.theirs}
        default = None if question.bench else question.default
        found: dict[str, Any] = {"question": question.key, "option": question.option}
        found |= {"default": _shown(default), "other": _shown(self.value)}
        found |= {of: getattr(row, of) for of in ("source", "dataset", "title", "start", "counted")}
        found |= {"number": self.number, "key": row.key, "what": row.claim}
        found |= {"repeats": self.repeats, "ours": self.ours.ours, "theirs": row.ours}
        found |= {f"{of}_verdict": each.verdict * bool(self.number) for of, each in sides.items()}
        for of, each in sides.items():
            found |= {f"{of}_{name}": getattr(each, name) for name in ("median", "min", "max")}
        return found | {"change": self.change, "shift": self.shift, "note": self.note}


def _shown(value: Any) -> str:
    """Return a value as it is written on the command line; empty if there is none."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


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
                known = {at: row for at, row in theirs.items() if at[:2] == (claim.key, name)}
                none = _without_runs(claim.key, claim.text, source, name)
                pairs = [
                    (ours[at], row)
                    for at, row in known.items()
                    if at in ours and row.note != NO_RUNS
                ]
                for pair in pairs or [(none, none)]:
                    yield Effect(question, value, numbers.get(claim.key, 0), *pair)


def _without_runs(key: str, what: str, source: str, dataset: str, note: str = NO_RUNS) -> Judged:
    title = dataset_name(dataset)
    return Judged(key, what, "", source, dataset, title, verdict="", note=note)


def _of_bench(
    question: Question, dataset: str, bench: Sequence[Measurement], source: str
) -> Effect:
    found = [row for row in bench if row[:3] == (dataset, source, question.bench)]
    note = "" if found else f"no such row in {measurements.FOLDER}/"
    ours = theirs = _without_runs(question.bench, question.bench, source, dataset, note)
    if found:
        *_, value, low, high, unit = found[-1]
        text = f"{number(value)} {unit} ({number(low)} – {number(high)})"
        theirs = ours._replace(ours=text, median=value, min=low, max=high)
    return Effect(question, None, 0, ours, theirs)


# ---- the document -----------------------------------------------------------------------------

SAID = {
    LOWER: "Lower in all repeats",
    HIGHER: "Higher in all repeats",
    ALIKE: "No difference beyond that of the repeats",
}


def blocks(paper: Paper, effects: Sequence[Effect]) -> Iterator[Block]:
    """Yield a table with a row per question and value, then one for each with all its numbers."""
    source = effects[0].theirs.source
    yield TEXTS["fidelity"]
    if source not in GENUINE:
        yield Warning(f"{HEADINGS.get(source, source)}. {TEXTS['warning']}")
    settled = grouped(effects, lambda effect: effect[:2])
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
    question = effect.question
    values = f"`{question.option}={_shown(question.default)}` → `{_shown(effect.value)}`"
    return values if question.option else NONE


def _where(effects: Sequence[Effect]) -> str:
    """Return the datasets of each variant, followed by what is unusual about it."""
    found = []
    variants = grouped([effect.theirs for effect in effects], lambda row: (row.start, row.counted))
    for (start, counted), mine in variants.items():
        said = [*dict.fromkeys(row.title for row in mine)]
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
        found = "; ".join(f"{one.theirs.ours} on {one.theirs.title}" for one in measured)
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
        f"{_name(one)} ({ours.verdict}, {ours.ours} → {theirs.verdict}, {theirs.ours})"
        for one in changed
        for ours, theirs in [one[3:]]
    )
    return bold(f"{len(changed)} of {len(judged)} verdicts of {claims} change") + f": {which}"


def _shifts(measured: Sequence[Effect]) -> Iterator[str]:
    """Yield a sentence per shift; claims that are alike are left out."""
    for shift, mine in grouped(measured, lambda effect: effect.shift).items():
        named = [
            "{} ({} → {})".format(_name(one), *(row.ours.partition(" (")[0] for row in one[3:]))
            for one in mine
            if not one.number or shift != ALIKE
        ]
        if named:
            yield f"{bold(SAID[shift])}: {'; '.join(named)}"


def _name(effect: Effect) -> str:
    what = f"claim {effect.number}" if effect.number else effect.theirs.claim
    return f"{what} on {effect.theirs.title}"


# ---- all numbers ------------------------------------------------------------------------------


def _table(effects: Sequence[Effect]) -> Table:
    """Return a table of all claims and numbers of one question and value."""
    header = ("#", "claim or number", "dataset", "repeats", "ours", "other", "change", "note")
    cells = []
    for effect in effects:
        judged = effect.number or effect.change == MISSING
        change = [bold(effect.change, effect.change == CHANGES)] * bool(judged)
        change.append(bold(effect.shift, effect.shift in (LOWER, HIGHER)))
        sides = [[row.verdict * bool(effect.number), row.ours] for row in effect[3:]]
        ours, theirs, changed = (", ".join(filter(None, said)) for said in (*sides, change))
        first = str(effect.number or ""), effect.theirs.claim, _where([effect])
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
    table = pd.DataFrame([effect.columns for effect in effects])
    yield Output(file, table, title, list(blocks(paper, effects)))


def kind(papers: Mapping[str, Paper]) -> Kind:
    """Return the kind of figure with a choice for each paper that has open questions."""
    made = {name: partial(_outputs, paper) for name, paper in papers.items() if paper.questions}
    return kind_of("fidelity", made, "paper", at_top=True)
