"""The claims of a paper as tables: files of an experiment, and a section of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pandas as pd

from ssvm_bench.config import ALTERED
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.document import Block, Caution, Heading, Items, Sheet, bold
from ssvm_bench.figures.kind import Kind, Material, Output, Section
from ssvm_bench.papers.bcfw_poster.claims import POSTER
from ssvm_bench.papers.claim import Paper
from ssvm_bench.papers.judging import FAILS, HOLDS, UNKNOWN, VERDICTS, Row, evaluate
from ssvm_bench.papers.mpbcfw.claims import MPBCFW
from ssvm_bench.results import words

PAPERS = {"mpbcfw": MPBCFW, "poster": POSTER}
"""Name in an experiment file, ``figures: {claims: [name]}`` → the paper."""


def table(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the rows as a table, one column per field of `Row`."""
    return pd.DataFrame(rows, columns=list(Row._fields))


HEADINGS = {
    "real": "On the real data",
    ALTERED: "⚠ On altered files, NOT on the real data",
    "synthetic": "⚠ On built-in stand-ins, NOT on the real data",
}
WARNING = (
    "**These rows say nothing about the paper's datasets.** Stand-ins are small and made up, and "
    "altered files anything; the table only shows that everything works."
)
READING = (
    "Each claim gives one number per repeat (a run with another seed). A claim **holds** if the "
    "*median* over the repeats meets the condition under “How it is measured”, and **does not "
    "hold** otherwise; it is **not measurable** where the runs cannot tell. In parentheses: the "
    "minimum and maximum over the repeats; beside the verdict: in how many of them alone the claim "
    "holds."
)


def output(paper: Paper, rows: Sequence[Row]) -> Output:
    """Return the claims as numbers and as a document."""
    title = f"What {paper.title} claims, and what we measure"
    return Output(paper.file, table(rows), title, list(blocks(rows)))


def blocks(rows: Sequence[Row]) -> Iterator[Block]:
    """Yield what there is to say of a paper's claims: tables per source, then the measures."""
    yield READING
    for source in dict.fromkeys(row.source for row in rows):
        yield from _of_source(source, [row for row in rows if row.source == source])
    yield Heading("How it is measured")
    measured = [text for _, text in dict.fromkeys((row.key, row.measured) for row in rows)]
    yield Items([f"{text[0].upper()}{text[1:]}." for text in measured], numbered=True)


def _of_source(source: str, rows: Sequence[Row]) -> Iterator[Block]:
    yield Heading(HEADINGS.get(source, f"On {source} data"))
    if source != "real":
        yield Caution(WARNING)
    counts = Counter(row.verdict for row in rows)
    summary = "; ".join(f"{verdict}: {counts[verdict]}" for verdict in VERDICTS)
    yield f"Of {len(rows)} pairs of claim and dataset: {summary}."
    of_title = {title: [row for row in rows if row.title == title] for title in _titles(rows)}
    yield Items([f"{title}: {_basis(mine)}" for title, mine in of_title.items()])
    yield overview(rows)
    header = ("#", "claim (section)", "dataset", "paper", "ours", "verdict", "note")
    cells, keys = [], dict.fromkeys(row.key for row in rows)
    for number, key in enumerate(keys, 1):
        first = True
        for row in (row for row in rows if row.key == key):
            claim = [f"{number}", f"{row.claim} ({row.section})"] if first else ["", ""]
            agree = f", {row.agree} of {row.repeats}" if row.repeats > 1 else ""
            found = row.ours, f"{bold(row.verdict)}{agree}", row.note
            cells.append([*claim, row.title, row.paper, *found])
            first = False
    yield Sheet("Claims, dataset by dataset", header, cells, len(header), headed=False)


MARKS = {HOLDS: "✓", FAILS: "✗", UNKNOWN: "?"}


def overview(rows: Sequence[Row]) -> Sheet:
    """Return a table of claims by datasets: verdict and median."""
    titles = _titles(rows)
    header = ("#", "claim", *titles)
    claims = dict.fromkeys((row.key, row.claim) for row in rows)
    cells = []
    for number, (key, claim) in enumerate(claims, 1):
        of_claim = {row.title: _mark(row) for row in rows if row.key == key}
        cells.append([f"{number}", claim, *(of_claim.get(title, "") for title in titles)])
    return Sheet("Claims: verdict and median", header, cells, len(header), headed=False)


def _titles(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(row.title for row in rows))


def _mark(row: Row) -> str:
    return f"{MARKS[row.verdict]} {row.ours.partition(' (')[0]}".strip()


def _basis(rows: Sequence[Row]) -> str:
    """Return what the rows of one dataset rest on: repeats and clock."""
    repeats = [row.repeats for row in rows if row.repeats]
    if not repeats:
        return "nothing measured"
    clocks = dict.fromkeys(row.clock for row in rows if row.clock)
    return "; ".join([words.repeats(repeats), *clocks])


# ---- the kind of figure -----------------------------------------------------------------------


def _outputs(material: Material, names: Sequence[str]) -> Iterator[Output]:
    for paper in (PAPERS[name] for name in names):
        yield output(paper, evaluate(paper, material.traces, material.best))


NOTHING = "There are no runs of the papers' solvers on the papers' datasets."
KIND = Kind(
    "claims",
    Choices(tuple(PAPERS), "paper", "papers"),
    _outputs,
    Section("claims", "Claims of the papers", NOTHING),
    documents=True,
    at_top=True,
)
