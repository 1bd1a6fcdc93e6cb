"""Answers of runs to the questions that a paper leaves open: a document, and all its numbers.

There is one row per claim or number. Runs with the default of the question's option and runs with
another value, from the same seeds, are judged by the same measures (:mod:`.judging`). The
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
from typing import Any, TypeAlias

import pandas as pd

from ssvm_bench.claims.cases import USUAL
from ssvm_bench.claims.display import HEADINGS, TEXTS
from ssvm_bench.claims.judging import NO_RUNS, UNKNOWN, Judged, evaluate
from ssvm_bench.claims.paper import Paper
from ssvm_bench.claims.questions import Question, number_claim, sides
from ssvm_bench.config import GENUINE
from ssvm_bench.figures.document import Block, Cells, Heading, Warning, bold, table_of
from ssvm_bench.figures.kind import FigureData, Kind, Output, kind_of
from ssvm_bench.figures.style import dataset_name
from ssvm_bench.results import measurements
from ssvm_bench.results.measurements import Measurement
from ssvm_bench.results.table import BestValues, Run, grouped
from ssvm_bench.results.words import NONE, counts, number

CHANGES, STAYS = "the verdict changes", "the verdict does not change"
LOWER, HIGHER, ALIKE = "lower", "higher", "alike"
MEASURED, MISSING = "measured", "not measured"

Row: TypeAlias = Mapping[str, Any]
"""A claim or number, as `find` returns it."""


def find(
    paper: Paper, runs: Sequence[Run], best: BestValues, results_dir: Path | None, source: str
) -> list[dict[str, Any]]:
    """Return what other values of the options of a paper's questions do to claims and numbers.

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

    Returns
    -------
    list of dict
        A row per question, value, and claim or number. ``number`` is the claim's in the table of
        its paper, 0 if it is not a claim. ``ours`` is by default, ``theirs`` with the other value.
        ``change`` says whether the verdict changes, or whether a number was measured; ``note``, why
        it was not.
    """
    bench = measurements.read(results_dir) if results_dir else ()
    found: list[dict[str, Any]] = []
    for question in paper.questions:
        if question.bench:
            found += [_of_bench(question, name, bench, source) for name in question.datasets]
        else:
            found += _of_runs(paper, question, runs, best, source)
    return found


def _effect(
    question: Question, value: Any, number: int, ours: Judged, theirs: Judged
) -> dict[str, Any]:
    """Return the row of a claim or number, judged by default and with another value."""
    note = "; ".join({row.note: None for row in (ours, theirs) if row.verdict in (UNKNOWN, "")})
    repeats, change, shift = min(ours.repeats, theirs.repeats), MEASURED, ALIKE
    if note:
        change = MISSING
    elif number:
        change = STAYS if ours.verdict == theirs.verdict else CHANGES
    if note or question.bench:
        shift = ""
    elif repeats > 1 and theirs.max < ours.min:
        shift = LOWER
    elif repeats > 1 and theirs.min > ours.max:
        shift = HIGHER
    found: dict[str, Any] = {"question": question.key, "option": question.option}
    found |= {"default": _shown(question.default), "other": _shown(value)}
    found |= {of: getattr(theirs, of) for of in ("source", "dataset", "title", "start", "counted")}
    found |= {"number": number, "key": theirs.key, "what": theirs.claim}
    found |= {"repeats": repeats, "ours": ours.ours, "theirs": theirs.ours}
    both = {"our": ours, "their": theirs}
    found |= {f"{of}_verdict": row.verdict * bool(number) for of, row in both.items()}
    for of, row in both.items():
        found |= {f"{of}_{end}": getattr(row, end) for end in ("median", "min", "max")}
    return found | {"change": change, "shift": shift, "note": note}


def _shown(value: Any) -> str:
    """Return a value as it is written on the command line; empty if there is none."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _of_runs(
    paper: Paper, question: Question, runs: Sequence[Run], best: BestValues, source: str
) -> Iterator[dict[str, Any]]:
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
                none = _without_runs(claim.key, claim.text, source, name)
                pairs = [
                    (ours[at], row)
                    for at, row in theirs.items()
                    if at[:2] == (claim.key, name) and at in ours and row.note != NO_RUNS
                ]
                for pair in pairs or [(none, none)]:
                    yield _effect(question, value, numbers.get(claim.key, 0), *pair)


def _without_runs(key: str, what: str, source: str, dataset: str, note: str = NO_RUNS) -> Judged:
    title = dataset_name(dataset)
    return Judged(key, what, "", source, dataset, title, verdict="", note=note)


def _of_bench(
    question: Question, dataset: str, bench: Sequence[Measurement], source: str
) -> dict[str, Any]:
    found = [row for row in bench if row[:3] == (dataset, source, question.bench)]
    note = "" if found else f"no such row in {measurements.FOLDER}/"
    ours = theirs = _without_runs(question.bench, question.bench, source, dataset, note)
    if found:
        *_, value, low, high, unit = found[-1]
        text = f"{number(value)} {unit} ({number(low)} – {number(high)})"
        theirs = ours._replace(ours=text, median=value, min=low, max=high)
    return _effect(question, None, 0, ours, theirs)


# ---- the document -----------------------------------------------------------------------------

SAID = {
    LOWER: "Lower in all repeats",
    HIGHER: "Higher in all repeats",
    ALIKE: "No difference beyond that of the repeats",
}


def blocks(paper: Paper, effects: Sequence[Row]) -> Iterator[Block]:
    """Yield a table with a row per question and value, then one for each with all its numbers."""
    source = effects[0]["source"]
    yield TEXTS["fidelity"]
    if source not in GENUINE:
        yield Warning(f"{HEADINGS.get(source, source)}. {TEXTS['warning']}")
    questions = {question.key: question for question in paper.questions}
    groups = grouped(effects, lambda row: (row["question"], row["other"]))
    settled = [(questions[key], mine) for (key, _), mine in groups.items()]
    yield table_of("Questions and answers", ANSWERS, settled, len(ANSWERS), headed=False)
    for question, mine in settled:
        if question.option:
            yield Heading(f"{_values(mine[0])}: {question.question}")
            yield table_of("", NUMBERS, mine, len(NUMBERS), headed=False)


def _values(row: Row) -> str:
    """Return the default and the other value as they are written on the command line."""
    values = f"`{row['option']}={row['default']}` → `{row['other']}`"
    return values if row["option"] else NONE


def _where(rows: Sequence[Row]) -> str:
    """Return the datasets of each variant, followed by what is unusual about it."""
    found = []
    for (start, counted), mine in grouped(rows, lambda row: (row["start"], row["counted"])).items():
        said = [*dict.fromkeys(row["title"] for row in mine)]
        said += [f"start at {start}"] * (start != USUAL.start)
        found.append(", ".join(said + ["at the paper's costs"] * counted))
    return "; ".join(found)


def _repeats(rows: Sequence[Row]) -> str:
    made = [row["repeats"] for row in rows if row["repeats"]]
    return counts(made) if made else NONE


ANSWERS: Cells = {
    "question": lambda of: bold(of[0].question),
    "left open in": lambda of: f"{of[0].section}: {of[0].says}",
    "ours → other": lambda of: _values(of[1][0]),
    "dataset": lambda of: _where(of[1]),
    "repeats": lambda of: _repeats(of[1]),
    "answer": lambda of: answer(*of),
}
"""Columns of the table with a row per question and value, which are given with their effects."""


def _found(*said: str) -> str:
    return ", ".join(filter(None, said))


def _change(row: Row) -> str:
    judged = row["number"] or row["change"] == MISSING
    change = bold(row["change"], row["change"] == CHANGES) if judged else ""
    return _found(change, bold(row["shift"], row["shift"] in (LOWER, HIGHER)))


NUMBERS: Cells = {
    "#": lambda row: str(row["number"] or ""),
    "claim or number": "{what}",
    "dataset": lambda row: _where([row]),
    "repeats": lambda row: _repeats([row]),
    "ours": lambda row: _found(row["our_verdict"], row["ours"]) or NONE,
    "other": lambda row: _found(row["their_verdict"], row["theirs"]) or NONE,
    "change": _change,
    "note": "{note}",
}
"""Columns of the table of all claims and numbers of one question and value."""


# ---- answers ----------------------------------------------------------------------------------


def answer(question: Question, effects: Sequence[Row]) -> str:
    """Return the answer to a question by its effects, in sentences."""
    missing = [row for row in effects if row["change"] == MISSING]
    measured = [row for row in effects if row["change"] != MISSING]
    if not measured:
        return f"{bold(MISSING)}: make it with `{question.made_by}`"
    if question.bench:
        found = "; ".join(f"{row['theirs']} on {row['title']}" for row in measured)
        said = [f"{question.bench[0].upper()}{question.bench[1:]}: {bold(found)}"]
    else:
        judged = [row for row in measured if row["number"]]
        said = [*([_verdicts(judged)] if judged else []), *_shifts(measured)]
    for note, mine in grouped(missing, lambda row: row["note"]).items():
        said.append(f"Not measured ({note}): {'; '.join(map(_name, mine))}")
    return ". ".join(said)


def _verdicts(judged: Sequence[Row]) -> str:
    """Return whether the verdicts of claims change, and which, as a sentence."""
    numbers = sorted({row["number"] for row in judged})
    claims = f"claim{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
    changed = [row for row in judged if row["change"] == CHANGES]
    if not changed:
        return bold(f"No verdict of {claims} changes")
    text = "{} ({our_verdict}, {ours} → {their_verdict}, {theirs})"
    which = "; ".join(text.format(_name(row), **row) for row in changed)
    return bold(f"{len(changed)} of {len(judged)} verdicts of {claims} change") + f": {which}"


def _shifts(measured: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence per shift; claims that are alike are left out."""
    for shift, mine in grouped(measured, lambda row: row["shift"]).items():
        named = [
            "{} ({} → {})".format(
                _name(row), *(row[of].partition(" (")[0] for of in ("ours", "theirs"))
            )
            for row in mine
            if not row["number"] or shift != ALIKE
        ]
        if named:
            yield f"{bold(SAID[shift])}: {'; '.join(named)}"


def _name(row: Row) -> str:
    what = f"claim {row['number']}" if row["number"] else row["what"]
    return f"{what} on {row['title']}"


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
