"""The statements of a paper, judged by our traces; ``PAPERS`` are those with a list of claims.

`evaluate` makes one `Row` per claim and problem instance. Each claim has a measure that gives one
number per repeat, and a range; the verdict is

    holds             the median over the repeats is in the range
    does not hold     it is not
    not measurable    the traces do not say; the note has the reason

Repeats are runs that differ in the seed only. Problem instances, and so real data and stand-ins,
are judged apart; an instance made of the first examples of another one is compared with that one,
and not judged itself. A dataset that stands for one of the paper's, as Weizmann's horses do for
HorseSeg, is judged where there are no runs on that one.
What no trace can tell about a claim that fails is in `claim_remarks.yaml`: claim → dataset → text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from ssvm_bench.figures.style import DATASETS
from ssvm_bench.figures.text_table import line
from ssvm_bench.papers.bcfw_poster.claims import POSTER
from ssvm_bench.papers.cases import Case, UnmeasurableError, cases
from ssvm_bench.papers.claim import Claim, Paper
from ssvm_bench.papers.mpbcfw.claims import MPBCFW
from ssvm_bench.results import words
from ssvm_bench.results.problem_instance import BestValues, ProblemInstance
from ssvm_bench.results.trace import Trace

PAPERS = {"mpbcfw": MPBCFW, "poster": POSTER}
"""Name in an experiment file, ``figures: {claims: [name]}`` → the paper."""

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "not measurable"
VERDICTS = (HOLDS, FAILS, UNKNOWN)
REMARKS = Path(__file__).with_name("remarks.yaml")


@dataclass(frozen=True)
class Row:
    """One claim on one problem instance.

    Attributes
    ----------
    key, claim, section : str
        The claim: its name here, in one sentence, and where the paper makes it.
    source, dataset : str
        Of the traces.
    title : str
        The dataset as a reader knows it.
    measured : str
        How it is measured, and when it holds.
    paper : str
        What the paper says.
    ours : str
        Median (minimum–maximum) as text; empty if not measurable.
    median, min, max : float
        The same as numbers; NaN if not measurable, infinite where a run did not get there.
    repeats, agree : int
        Number of repeats, and in how many of them alone the claim holds.
    verdict : str
        One of ``VERDICTS``.
    note : str
        What else the traces say, or the reason; then the remark, if any.
    clock : str
        For a claim about time, how it was measured.
    """

    key: str
    claim: str
    section: str
    source: str
    dataset: str
    title: str
    measured: str
    paper: str
    ours: str
    median: float
    min: float
    max: float
    repeats: int
    agree: int
    verdict: str
    note: str
    clock: str


# ---- judging ----------------------------------------------------------------------------------


def evaluate(
    paper: Paper,
    traces: Sequence[Trace],
    best: BestValues,
    remarks: Mapping[str, Mapping[str, str]] | None = None,
) -> list[Row]:
    """Judge every claim of a paper on every problem instance that it is about.

    Parameters
    ----------
    paper : Paper
        One of ``PAPERS``.
    traces : sequence of Trace
        Finished runs; those on other datasets than the paper's, and on instances without runs of
        the paper's own solvers, are passed over.
    best : dict
        Best values per problem instance.
    remarks : dict, optional
        Claim → dataset → text, added where a claim does not hold on real data; by default those
        of ``claim_remarks.yaml``.

    Returns
    -------
    list of Row
        Source by source (real data first), claim by claim, in the order of the paper.
    """
    remarks = _remarks() if remarks is None else remarks
    known = [
        case
        for case in cases(traces, best)
        if paper.stands_for.get(case.dataset, case.dataset) in paper.datasets
        and case.solvers & paper.solvers
    ]
    rows = []
    for source in dict.fromkeys(case.source for case in known):
        here = [case for case in known if case.source == source]
        of = _by_dataset(paper, here)
        for claim in paper.claims:
            for name in claim.paper:
                for case in of[name] or [Case(name, source, ProblemInstance("", math.nan), {})]:
                    if claim.lam is None or claim.lam == case.problem.lam:
                        rows.append(_judge(claim, name, case, here, len(of[name]) > 1, remarks))
    return rows


def _by_dataset(paper: Paper, here: Sequence[Case]) -> dict[str, list[Case]]:
    """Return the instances that are judged for each of the paper's datasets."""
    there = {case.dataset for case in here}
    found: dict[str, list[Case]] = {name: [] for name in paper.datasets}
    for case in here:
        name = paper.stands_for.get(case.dataset, case.dataset)
        replaced = name != case.dataset and name in there
        if not replaced and not any(case.is_part_of(other) for other in here):
            found[name].append(case)
    return found


def _judge(
    claim: Claim,
    dataset: str,
    case: Case,
    others: Sequence[Case],
    several: bool,
    remarks: Mapping[str, Mapping[str, str]],
) -> Row:
    """Judge one claim on one problem instance."""
    values, agree, ours, verdict, reasons = np.array([math.nan]), 0, "", UNKNOWN, []
    try:
        measured = claim.measure(case, others)
        if np.isnan(measured.values).any():
            raise UnmeasurableError("a run has no value")
    except UnmeasurableError as error:
        reasons = [str(error) if case.runs else "no finished runs"]
    else:
        values, reasons = measured.values, [measured.note]
        verdict = HOLDS if measured.holds(float(np.median(values))) else FAILS
        agree = sum(measured.holds(float(value)) for value in values)
        ours = _text(values, claim.show)
    if verdict == FAILS and case.source == "real":
        reasons.append(remarks.get(claim.key, {}).get(case.dataset, ""))
    repeats = 0 if verdict == UNKNOWN else len(values)
    return Row(
        key=claim.key,
        claim=claim.text,
        section=claim.section,
        source=case.source,
        dataset=case.dataset,
        title=_title(case, dataset, several),
        measured=claim.measured,
        paper=claim.paper[dataset],
        ours=ours,
        median=float(np.median(values)),
        min=float(values.min()),
        max=float(values.max()),
        repeats=repeats,
        agree=agree,
        verdict=verdict,
        note=". ".join(filter(None, reasons)),
        clock=_clock(case) if claim.timed and repeats else "",
    )


def _text(values: np.ndarray, show: Callable[[float], str]) -> str:
    median, low, high = (
        "not reached" if math.isinf(value) else show(float(value))
        for value in (np.median(values), values.min(), values.max())
    )
    return f"{median} ({low} – {high})" if len(values) > 1 else median


def _title(case: Case, dataset: str, several: bool) -> str:
    title = DATASETS[case.dataset]
    if case.dataset != dataset:
        title += f" (for {DATASETS[dataset]})"
    if several:
        n = int(case.data["n"])
        title += f", n = {n}, λ = {words.lam(case.problem.lam, n)}"
    return title


def _clock(case: Case) -> str:
    runs = list(case.traces())
    names = {"wall": "wall clock", "cpu": "CPU time"}
    clocks = sorted({str(run.metadata.get("clock")) for run in runs})
    beside = sum(bool(run.metadata.get("concurrent_runs")) for run in runs)
    text = ", ".join(names.get(clock, clock) for clock in clocks)
    return text + (f", {beside} of {len(runs)} runs beside others" if beside else "")


@cache
def _remarks() -> dict[str, dict[str, str]]:
    return yaml.safe_load(REMARKS.read_text(encoding="utf-8")) or {}


# ---- tables -----------------------------------------------------------------------------------


def table(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the rows as a table, one column per field of `Row`."""
    return pd.DataFrame([asdict(row) for row in rows], columns=[f.name for f in fields(Row)])


HEADINGS = {
    "real": "## On the real data",
    "synthetic": "## ⚠ On built-in stand-ins, NOT on the real data",
}
WARNING = (
    "> **These rows say nothing about the paper's datasets.** The stand-ins are small and made up; "
    "the table only shows that everything works."
)
READING = (
    "Each claim gives one number per repeat (a run with another seed). A claim **holds** if the "
    "*median* over the repeats meets the condition under “How it is measured”, and **does not "
    "hold** otherwise; it is **not measurable** where the runs cannot tell. In parentheses: the "
    "minimum and maximum over the repeats; beside the verdict: in how many of them alone the claim "
    "holds."
)


def markdown(paper: Paper, rows: Sequence[Row]) -> str:
    """Return the claims as a page of Markdown: per source a table, then how each is measured."""
    lines = [f"# What {paper.title} claims, and what we measure", "", READING]
    for source in dict.fromkeys(row.source for row in rows):
        lines += ["", *_section(source, [row for row in rows if row.source == source])]
    claims = list(dict.fromkeys((row.key, row.measured) for row in rows))
    lines += ["", "## How it is measured", ""]
    lines += [
        f"{k}. {measured[0].upper()}{measured[1:]}." for k, (_, measured) in enumerate(claims, 1)
    ]
    return "\n".join(lines) + "\n"


def _section(source: str, rows: Sequence[Row]) -> list[str]:
    lines = [HEADINGS.get(source, f"## On {source} data"), ""]
    if source != "real":
        lines += [WARNING, ""]
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in VERDICTS}
    summary = "; ".join(f"{verdict}: {count}" for verdict, count in counts.items())
    lines += [f"Of {len(rows)} pairs of claim and dataset: {summary}.", ""]
    for title in dict.fromkeys(row.title for row in rows):
        lines.append(f"- {title}: {_basis([row for row in rows if row.title == title])}")
    lines += ["", *overview(rows), ""]
    header = ("#", "claim (section)", "dataset", "paper", "ours", "verdict", "note")
    lines += [line(header), line(["---"] * len(header))]
    keys = list(dict.fromkeys(row.key for row in rows))
    seen: set[str] = set()
    for row in rows:
        first = row.key not in seen
        seen.add(row.key)
        agree = f", {row.agree} of {row.repeats}" if row.repeats > 1 else ""
        lines.append(
            line(
                [
                    f"{keys.index(row.key) + 1}" if first else "",
                    f"{row.claim} ({row.section})" if first else "",
                    row.title,
                    row.paper,
                    row.ours,
                    f"**{row.verdict}**{agree}",
                    row.note,
                ]
            )
        )
    return lines


MARKS = {HOLDS: "✓", FAILS: "✗", UNKNOWN: "?"}


def overview(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a table of claims by datasets: verdict and median."""
    titles = list(dict.fromkeys(row.title for row in rows))
    header = ("#", "claim", *titles)
    lines = [line(header), line(["---"] * len(header))]
    for k, key in enumerate(dict.fromkeys(row.key for row in rows), 1):
        of_claim = {row.title: row for row in rows if row.key == key}
        verdicts = [_mark(of_claim[title]) if title in of_claim else "" for title in titles]
        lines.append(line((f"{k}", next(iter(of_claim.values())).claim, *verdicts)))
    return lines


def _mark(row: Row) -> str:
    return f"{MARKS[row.verdict]} {row.ours.partition(' (')[0]}".strip()


def _basis(rows: Sequence[Row]) -> str:
    """Return what the rows of one dataset rest on: repeats and clock."""
    repeats = [row.repeats for row in rows if row.repeats]
    if not repeats:
        return "nothing measured"
    clocks = dict.fromkeys(row.clock for row in rows if row.clock)
    return "; ".join([words.repeats(repeats), *clocks])
