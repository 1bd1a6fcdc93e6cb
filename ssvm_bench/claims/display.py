"""The claims of a paper as tables, for the files of an experiment and a page of the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pandas as pd

from ssvm_bench.claims import judging
from ssvm_bench.claims.judging import (
    FAILS,
    HOLDS,
    INCOMPARABLE,
    OTHER_SETTINGS,
    UNDECIDED,
    UNKNOWN,
    VOID,
    Judged,
)
from ssvm_bench.claims.paper import Paper
from ssvm_bench.claims.questions import usual
from ssvm_bench.config import ALTERED, SIMULATED, shown_as
from ssvm_bench.figures.document import Block, Heading, List, Table, Warning, beside, bold
from ssvm_bench.figures.kind import FigureData, Kind, Output, kind_of
from ssvm_bench.results import measurements, words
from ssvm_bench.results.table import grouped

TEXTS = beside(__file__)

HEADINGS = {
    "real": "On the real data",
    ALTERED: "⚠ On altered files, NOT on the real data",
    "synthetic": "⚠ On synthetic data, NOT on the real data",
}
AND_DRAWN = ", and on data drawn as the paper's are"

ANEW = "A repeat is a run on data drawn anew."


def output(paper: Paper, rows: Sequence[Judged]) -> Output:
    """Return the claims as a table of numbers, a column for each field, and as a document."""
    title = f"What {paper.title} claims, and what we measure"
    table = pd.DataFrame(rows, columns=[*Judged._fields])
    return Output(paper.file, table, title, list(blocks(paper, rows)))


def decided(paper: Paper, rows: Sequence[Judged]) -> Output:
    """Return the claims that runs decide, as `output` does; it says how many these leave out."""
    there = [row for row in rows if row.verdict != UNKNOWN]
    claimed = [row for row in rows if not row.beside]
    left = TEXTS["left_out"].format(
        title=paper.title,
        undecided=sum(row.verdict == UNKNOWN for row in claimed),
        pairs=len(claimed),
        experiments=" and ".join(f"`ssvm-bench experiment {of}`" for of in paper.experiments),
    )
    whole = output(paper, there)
    if not there:
        return whole._replace(lacking=left * bool(rows))
    further = [left] * (len(there) < len(rows))
    return whole._replace(blocks=[*further, *blocks(paper, there, _numbers(rows))])


def blocks(
    paper: Paper, rows: Sequence[Judged], numbers: Mapping[str, int] | None = None
) -> Iterator[Block]:
    """Yield a paper's claims: tables per source, then how each claim is measured.

    ``numbers`` are those of the claims, in the order of the rows by default.
    """
    numbers = numbers or _numbers(rows)
    yield TEXTS["reading"]
    if any(row.clock for row in rows):
        yield TEXTS["noise"]
    if any(row.verdict == INCOMPARABLE for row in rows):
        yield TEXTS["of_machines"]
    if any(row.verdict == VOID for row in rows):
        yield TEXTS["void"]
    if any(row.note == OTHER_SETTINGS for row in rows):
        yield TEXTS["settings"].format(experiments=", ".join(f"`{of}`" for of in paper.experiments))
    if paper.draws:
        yield ANEW
    if len(_starts(rows)) > 1:
        yield TEXTS["start"]
    together = grouped(rows, lambda row: (shown_as(row.source), row.counted))
    for (source, counted), mine in together.items():
        if not counted:
            drawn = AND_DRAWN * any(row.source == SIMULATED for row in mine)
            yield Heading(HEADINGS.get(source, f"On {source} data") + drawn)
        else:
            where = "" if source == "real" else f": {HEADINGS.get(source, source)}"
            yield Heading(f"At the paper's costs{where}")
        if source != "real":
            yield Warning(TEXTS["warning"])
        if counted:
            yield from _costs(paper, mine)
        yield from _of_variants(paper, mine, numbers)
    yield Heading("How it is measured")
    measured = dict.fromkeys((row.key, row.measured) for row in rows)
    shown = {numbers[key]: f"{text[0].upper()}{text[1:]}." for key, text in measured}
    if [*shown] == [*range(1, len(shown) + 1)]:
        yield List([*shown.values()], numbered=True)
    else:
        yield List([f"Claim {number}: {text}" for number, text in shown.items()])


def _costs(paper: Paper, rows: Sequence[Judged]) -> Iterator[Block]:
    """Yield the costs of a call, a plane and a visit, and their derivation."""
    numbers = {claim.key: f"{number}" for number, claim in enumerate(paper.claims, 1)}
    given = " and ".join(numbers[claim.key] for claim in paper.claims if claim.given)
    yield TEXTS["counted"].format(given=given)
    header = ("dataset", "exact call", "plane", "visit besides", "oracle's share of BCFW's time")
    costs, titles = paper.costs, {row.dataset: row.title for row in rows}
    known = ((title, costs[name]) for name, title in titles.items() if name in costs)
    cells = [[title, *map(words.seconds, of), words.percent(of.share)] for title, of in known]
    yield Table("What counts for how many seconds", header, cells, headed=False)
    yield List(paper.derivation)


def _of_variants(
    paper: Paper, rows: Sequence[Judged], numbers: Mapping[str, int]
) -> Iterator[Block]:
    """Yield the tables of rows of one source and one kind of time; rows not counted come last."""
    starts = _starts(rows)
    claimed = [row for row in rows if not row.beside]
    for start in starts:
        mine = [row for row in claimed if row.start == start]
        counts = Counter(row.verdict for row in mine)
        shown = [of for of in judging.VERDICTS if counts[of] or of in judging.GIVEN_ALWAYS]
        by_median = Counter(row.by_median for row in mine)
        would = f"{by_median[HOLDS]} would hold, {by_median[FAILS]} would not"
        texts = {UNDECIDED: f" (by the median alone, {would})"}
        summary = "; ".join(f"{of}: {counts[of]}{texts.get(of, '')}" for of in shown)
        of = f"Of {len(mine)} pairs of claim and dataset"
        twice = sum(judging.FAILS_TWICE in row.note for row in mine)
        if twice:
            summary += f"; of those that do not hold, at the measured times as well: {twice}"
        yield f"{of}: {summary}." if len(starts) == 1 else f"{of}, start at {start}: {summary}."
    of_title = grouped(claimed or rows, lambda row: row.title)
    yield List([f"{title}: {_basis(mine)}" for title, mine in of_title.items()])
    yield overview(claimed, numbers)
    yield _details("Claims, dataset by dataset", claimed, numbers, len(starts) > 1)
    for kind, text in paper.beside.items():
        mine = [row for row in rows if row.beside == kind]
        if mine:
            yield Heading(f"Not counted: {kind}", 3)
            yield text
            yield _details(kind.capitalize(), mine, numbers, len(starts) > 1)


def _details(
    title: str, rows: Sequence[Judged], numbers: Mapping[str, int], several: bool
) -> Table:
    """Return a table with a line per row."""
    extra = ("start",) if several else ()
    header = ("#", "claim (section)", "dataset", *extra, "paper", "ours", "verdict", "note")
    lines = []
    for of_claim in grouped(rows, lambda row: row.key).values():
        by_title = grouped(of_claim, lambda row: row.title).values()
        for row in (row for mine in by_title for row in mine):
            several_repeats = row.repeats > 1 and row.verdict not in (INCOMPARABLE, VOID)
            agree = f", {row.agree} of {row.repeats}" if several_repeats else ""
            about = f"{numbers[row.key]}", f"{row.claim} ({row.section})", row.title
            found = row.paper, row.ours, f"{bold(row.verdict)}{agree}", row.note
            lines.append([*about, *([row.start] if several else ()), *found])
    return Table(title, header, [*_once(lines, 2 + several)], len(header), headed=False)


def _once(lines: Sequence[list[str]], count: int) -> Iterator[list[str]]:
    """Yield lines without those of their first cells that are the same in the line above."""
    above: list[str] = []
    for line in lines:
        same = next((k for k in range(count) if line[: k + 1] != above[: k + 1]), count)
        yield [""] * same + line[same:]
        above = line


MARKS = {HOLDS: "✓", FAILS: "✗", UNDECIDED: "≈", UNKNOWN: "?", INCOMPARABLE: "–", VOID: "∅"}


def overview(rows: Sequence[Judged], numbers: Mapping[str, int] | None = None) -> Table:
    """Return a table of claims by datasets, with a line per start: verdict and median."""
    numbers, titles = numbers or _numbers(rows), list(dict.fromkeys(row.title for row in rows))
    several = len(_starts(rows)) > 1
    header = ("#", "claim", *(("start",) if several else ()), *titles)
    lines = []
    for key, of_claim in grouped(rows, lambda row: row.key).items():
        for start, mine in grouped(of_claim, lambda row: row.start).items():
            marks = {row.title: _mark(row) for row in mine}
            about = [f"{numbers[key]}", mine[0].claim, *([start] if several else ())]
            lines.append([*about, *(marks.get(title, "") for title in titles)])
    cells = [*_once(lines, 2)]
    return Table("Claims: verdict and median", header, cells, len(header), headed=False)


def _numbers(rows: Sequence[Judged]) -> dict[str, int]:
    """Return the claims' numbers, in the order of the paper."""
    return {key: number for number, key in enumerate(dict.fromkeys(row.key for row in rows), 1)}


def _starts(rows: Sequence[Judged]) -> list[str]:
    return list(dict.fromkeys(row.start for row in rows))


def _mark(row: Judged) -> str:
    return f"{MARKS[row.verdict]} {row.ours.partition(' (')[0]}".strip()


def _basis(rows: Sequence[Judged]) -> str:
    """Return the number of repeats and the clock of the rows of one dataset."""
    repeats = [row.repeats for row in rows if row.repeats]
    if not repeats:
        return "nothing measured"
    clocks = dict.fromkeys(row.clock for row in rows if row.clock)
    return "; ".join([words.repeats(repeats), *clocks])


# ---- the kind of figure -----------------------------------------------------------------------


def _outputs(paper: Paper, data: FigureData) -> Iterator[Output]:
    bench = measurements.read(data.results_dir) if data.results_dir else ()
    runs, others = paper.at_settings(data.runs)
    usual_runs = usual(paper.questions, runs)
    judged = judging.evaluate(paper, usual_runs, data.runs.best, bench, others)
    yield (decided if data.decided else output)(paper, judged)


def kind(papers: Mapping[str, Paper]) -> Kind:
    """Return the kind of figure with a choice for each paper that has a table of claims."""
    made = {name: partial(_outputs, paper) for name, paper in papers.items() if paper.file}
    return kind_of("claims", made, "paper", documents=True, at_top=True)
