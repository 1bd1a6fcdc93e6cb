"""The verdicts on the claims in ``docs/papers/NAME.md``, from the stored tables of claims.

``make papers-pages`` writes them. ``tests/repository/test_paper_pages.py`` fails if they are not
those of ``results/``, or if a page names a file, test or command that does not exist. The rest of
these pages is written by hand.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from ssvm_bench.claims.display import MARKS
from ssvm_bench.claims.judging import UNKNOWN
from ssvm_bench.claims.paper import Paper
from ssvm_bench.config import registry

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "papers"
RESULTS = ROOT / "results"
BEGIN, END = "<!-- made by `make papers-pages` -->", "<!-- end of what is made -->"

Line: TypeAlias = tuple[str, str, str, str]
"""Section, statement, variant of the runs and what was found: a verdict and on what."""


def verdicts(paper: Paper) -> Iterator[Line]:
    """Yield what was found of each claim of a paper, dataset by dataset."""
    if paper.file:
        yield from _of_table(RESULTS / f"{paper.file}.csv")
    else:  # its claims are judged in the tables of its own figure, and of its other experiments
        found = dict.fromkeys(_of_figure(paper.name))
        yield from found
        for folder in sorted((RESULTS / "figures").glob(f"{paper.name}_*")):
            for *about, ending in dict.fromkeys(_of_figure(folder.name)):
                if (*about, ending) not in found and not ending.startswith(UNKNOWN):
                    yield about[0], about[1], about[2], f"{ending} (`{folder.name}`)"


def _of_figure(name: str) -> Iterator[Line]:
    files = sorted((RESULTS / "figures" / name).glob("*.md"))
    return chain.from_iterable(map(_of_document, files))


def _of_table(file: Path) -> Iterator[Line]:
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    short = {title: re.sub(r", n = \d+", "", title) for title in {row["title"] for row in rows}}
    unlike = Counter(short.values())  # with another n, what a title names is another problem
    starts = {row["start"] for row in rows}
    for row in rows:
        costs = "at the paper's costs" if row["counted"] == "True" else ""
        start = f"start={row['start']}" if len(starts) > 1 else ""
        beside = f"not counted: {row['beside']}" if row["beside"] else ""
        variant = ", ".join(filter(None, (start, costs, beside)))
        title = row["title"] if unlike[short[row["title"]]] > 1 else short[row["title"]]
        yield row["section"], row["claim"], variant, f"{row['verdict']}|{title}"


def _of_document(file: Path) -> Iterator[Line]:
    """Yield the lines of tables with a column ``verdict``, headed ``statement (section …)``.

    The section, or the variant of the runs, or both, may also be behind the statements.
    """
    of, usual, place = "", "", 0
    for line in file.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("## "):
            of = re.sub(r"^## What the report says,? (on|of) |:.*", "", line)
        elif not line.startswith("|"):
            place = 0
        elif cells[0].startswith("statement (section"):
            usual = cells[0].strip(")").partition("section")[2].strip()
            place = cells.index("verdict")
        elif place and not cells[0].startswith("---"):
            ((statement, behind),) = re.findall(r"^(.*?)(?: \(([^()]*)\))?$", cells[0])
            first, _, rest = behind.partition("; ")
            section, variant = (first, rest) if first[:1].isdigit() else (usual, behind)
            verdict = re.sub(r"\*\*(.*)\*\*.*", r"\1", cells[place])
            yield section, statement, variant, f"{verdict}|{of}"


def table(paper: Paper) -> Iterator[str]:
    """Yield the lines of the table of a paper's claims, one for each statement."""
    found: dict[tuple[str, str], dict[str, dict[str, list[str]]]] = {}
    for section, statement, variant, ending in verdicts(paper):
        verdict, title = ending.split("|", 1)
        of_variant = found.setdefault((section, statement), {}).setdefault(variant, {})
        of_variant.setdefault(MARKS.get(verdict, verdict), []).append(title)
    yield "| # | section | statement | verdicts |"
    yield "|---|---|---|---|"
    for number, ((section, statement), variants) in enumerate(found.items(), 1):
        texts = []
        for variant, marks in variants.items():
            shown = " · ".join(f"{mark} {'; '.join(titles)}" for mark, titles in marks.items())
            texts.append(f"{variant}: {shown}" if variant else shown)
        yield f"| {number} | {section} | {statement} | {'<br>'.join(texts)} |"


def page(paper: Paper, text: str) -> str:
    """Return the page of a paper with the verdicts of today."""
    before, rest = text.split(BEGIN)
    return "\n".join([f"{before}{BEGIN}", "", *table(paper), "", END]) + rest.split(END)[1]


def pages() -> Iterator[tuple[Path, str]]:
    """Yield the file of each paper's page and what it should be."""
    for paper in registry.papers().values():
        file = PAGES / f"{paper.folder.name}.md"
        yield file, page(paper, file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for file, text in pages():
        file.write_text(text, encoding="utf-8")
