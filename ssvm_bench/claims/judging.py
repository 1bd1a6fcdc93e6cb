"""The claims of a paper, judged by our traces.

`evaluate` returns one `Row` per claim and problem instance. Each claim has a measure, which returns
one number per repeat, and a range. The verdict is

    holds             the median over the repeats is in the range
    does not hold     it is not
    not measurable    the traces do not decide; the note has the reason: no run has the paper's
                      settings, for instance
    not comparable    it is about the time of the paper's program and machine (`Claim.given`), and
                      the runs were timed with ours: both numbers are shown

Repeats are runs that differ in the seed only, or in the draw of the data (`Paper.draws`). Problem
instances, and so real and synthetic data, are judged separately. So is each `Variant`: where the
runs begin, and whether their time was measured or is counted at the paper's costs. An instance that
has the first examples of another one serves as its smaller part, and is not judged itself. A
dataset may replace one of the paper's, as Weizmann's horses replace HorseSeg: it is judged where
there are no runs on the original. The paper's `remarks` explain failing claims where no trace can.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ssvm_bench.claims.cases import USUAL, Case, Costs, Variant, cases, variant_of
from ssvm_bench.claims.claim import Claim
from ssvm_bench.claims.paper import Paper
from ssvm_bench.config import GENUINE, shown_as
from ssvm_bench.figures.curves import clocks_of
from ssvm_bench.figures.style import dataset_name, weight_of
from ssvm_bench.results import words
from ssvm_bench.results.measurements import Measurement
from ssvm_bench.results.table import (
    BestValues,
    ProblemInstance,
    Run,
    UnmeasurableError,
    band,
    grouped,
)

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "not measurable"
INCOMPARABLE = "not comparable"
VERDICTS = (HOLDS, FAILS, UNKNOWN, INCOMPARABLE)
FAILS_TWICE = "At the times measured here it does not hold either"
"""The note on a claim that fails at the paper's costs and at the measured times."""

NO_RUNS = "no finished runs"
OTHER_SETTINGS = "not the paper's settings"
"""The note where all runs on a dataset have other settings."""


class Row(NamedTuple):
    """The verdict on a claim on one problem instance.

    Attributes
    ----------
    key, claim, section : str
        The claim's name, the claim in one sentence, and where the paper makes it.
    source, dataset, title : str
        Source and dataset in the traces, and the dataset's title.
    measured, paper : str
        How it is measured, and when it holds; what the paper says.
    ours : str
        Median (minimum–maximum) as text; empty if not measurable.
    median, min, max : float
        The same values as numbers; NaN if not measurable, infinite where a run missed the target.
    repeats, agree : int
        Number of repeats, and for how many of them the claim holds by themselves.
    verdict : str
        One of ``VERDICTS``.
    note : str
        What else the traces show, or why it is not measurable; then the remark, if any.
    clock : str
        How the time was measured, if the claim is about time.
    start, counted
        The `Variant` of the runs.
    beside : str
        `Claim.beside`: not empty if the row is not counted.
    """

    key: str
    claim: str
    section: str
    source: str = ""
    dataset: str = ""
    title: str = ""
    measured: str = ""
    paper: str = ""
    ours: str = ""
    median: float = math.nan
    min: float = math.nan
    max: float = math.nan
    repeats: int = 0
    agree: int = 0
    verdict: str = UNKNOWN
    note: str = ""
    clock: str = ""
    start: str = USUAL.start
    counted: bool = USUAL.counted
    beside: str = ""

    @property
    def variant(self) -> Variant:
        """The variant of the runs."""
        return Variant(self.start, self.counted)


# ---- judging ----------------------------------------------------------------------------------


def evaluate(
    paper: Paper,
    traces: Sequence[Run],
    best: BestValues,
    bench: Sequence[Measurement] = (),
    others: Sequence[Run] = (),
    claims: Sequence[Claim] | None = None,
) -> list[Row]:
    """Judge every claim of a paper on every problem instance that it is about.

    Parameters
    ----------
    paper : Paper
    traces : sequence of Run
        Finished runs. Those on datasets that are not the paper's, and on instances without runs of
        the paper's own solvers, are ignored.
    best : dict
        Best values known.
    bench : sequence of Measurement
        The bench's measurements on any dataset.
    others : sequence of Run
        Finished runs with other settings than the paper's: where there are only such, no claim is
        measurable.
    claims : sequence of Claim, optional
        Other claims than the paper's.

    Returns
    -------
    list of Row
        Sorted by source (real data first), costs (measured times first) and start; then by claim,
        in the order of the paper.
    """
    rows, claims = [], paper.claims if claims is None else claims
    together, away = (_cases(paper, runs, best) for runs in (traces, others))
    for source, variant in sorted({*together, *away}, key=lambda key: (key[0], key[1].order)):
        here = together.get((source, variant), [])
        of = _by_dataset(paper, here)
        unlike = _by_dataset(paper, away.get((source, variant), []))
        nothing = ProblemInstance("", math.nan)
        for claim in (claim for claim in claims if _asked(claim, variant)):
            for name in claim.paper:
                judged = []
                for case in of[name] or [Case(name, source, nothing, {}, variant=variant)]:
                    if claim.lam in (None, case.problem.lam) and case.has(claim.only):
                        found = [row for row in bench if row[:2] == (case.dataset, case.source)]
                        case = replace(case, others=here, bench=found)
                        why = OTHER_SETTINGS if unlike[name] else NO_RUNS
                        row = _judge_case(claim, name, case, len(of[name]) > 1, paper.remarks, why)
                        # a claim that names its variants is shown only where it is measured
                        judged += [row] * (not claim.variants or row.verdict != UNKNOWN)
                with_runs = [row for row in judged if not row.note.startswith(NO_RUNS)]
                rows += (with_runs or judged[:1]) if paper.partial else judged
    return _with_both_costs(rows)


def _cases(
    paper: Paper, traces: Sequence[Run], best: BestValues
) -> dict[tuple[str, Variant], list[Case]]:
    """Return source and variant → the problem instances that a paper is about."""
    costs = paper.costs
    known = [
        case
        for case in cases([run for run in traces if _is_at(costs, run)], best, paper.draws)
        if paper.stands_for.get(case.dataset, case.dataset) in paper.datasets
        and case.solvers & paper.solvers
        and (not paper.beside_runs_of or case.solvers & paper.beside_runs_of)
    ]
    return grouped(known, lambda case: (shown_as(case.source), case.variant))


def _asked(claim: Claim, variant: Variant) -> bool:
    """Return whether a claim is judged by the runs of a variant."""
    if claim.given and variant.counted:
        return False
    return not claim.variants or variant.suffix.strip() in claim.variants


def _is_at(costs: Mapping[str, Costs], run: Run) -> bool:
    """Return whether a run's time was measured, or counted at the paper's costs."""
    dataset, config = run.dataset, run.config
    return not variant_of(run).counted or Costs.of(config["oracle"]) == costs.get(dataset)


def _with_both_costs(rows: Sequence[Row]) -> list[Row]:
    """Add to each claim that fails at the paper's costs its verdict at the measured times."""
    measured = {_place(row): row.verdict for row in rows if not row.counted}
    said = {FAILS: FAILS_TWICE, HOLDS: "It holds at the times measured here"}
    return [
        row._replace(note=_joined(row.note, said.get(measured.get(_place(row), ""), "")))
        if row.counted and row.verdict == FAILS
        else row
        for row in rows
    ]


def _joined(*notes: str) -> str:
    """Join the notes that are not empty, sentence after sentence."""
    said = [note for note in notes if note]
    return ". ".join([*(note.removesuffix(".") for note in said[:-1]), *said[-1:]])


def _place(row: Row) -> tuple[str, str, str, str]:
    return row.source, row.start, row.key, row.title


def _by_dataset(paper: Paper, here: Sequence[Case]) -> dict[str, list[Case]]:
    """Return dataset of the paper → the instances that are judged for it."""
    there = {case.dataset for case in here}
    found: dict[str, list[Case]] = {name: [] for name in paper.datasets}
    for case in here:
        name = paper.stands_for.get(case.dataset, case.dataset)
        replaced = name != case.dataset and name in there
        if not replaced and not any(case.is_part_of(other) for other in here):
            found[name].append(case)
    return found


def judge(claim: Claim, subject: Any) -> Row:
    """Apply the claim's measure to a subject, and compare the median with the claim's range."""
    try:
        found = claim.measure(subject).within(claim.low, claim.high)
    except UnmeasurableError as error:
        return _unmeasurable(claim, str(error))
    repeats = len(found.values)
    median, low, high = ends = band(found.values)
    return _unmeasurable(claim, found.note)._replace(
        ours=found.text or words.median(ends, repeats, claim.show),
        median=median,
        min=low,
        max=high,
        repeats=repeats,
        agree=sum(found.holds(float(value)) for value in found.values),
        verdict=HOLDS if found.holds(median) else FAILS,
    )


def _judge_case(
    claim: Claim, dataset: str, case: Case, several: bool, remarks: Any, why: str
) -> Row:
    """Judge a claim on one problem instance; ``why`` it is missing, if it is."""
    row = judge(claim, case) if case.runs else _unmeasurable(claim, why)
    row = row._replace(
        source=case.source,
        dataset=case.dataset,
        title=_title(case, dataset, several),
        paper=claim.paper[dataset],
        start=case.variant.start,
        counted=case.variant.counted,
    )
    if row.verdict in (HOLDS, FAILS) and claim.given:
        row = row._replace(verdict=INCOMPARABLE, agree=0)
    if row.verdict in (FAILS, INCOMPARABLE) and case.source in GENUINE:
        remark = remarks.get(claim.key, {}).get(case.dataset + case.variant.suffix, "")
        row = row._replace(note=_joined(row.note, remark))
    return row._replace(clock=_clock(case)) if claim.timed and row.repeats else row


def _unmeasurable(claim: Claim, note: str) -> Row:
    about, beside = (claim.key, claim.text, claim.section), claim.beside
    return Row(*about, measured=claim.measured, note=note, beside=beside)


def _title(case: Case, dataset: str, several: bool) -> str:
    title = dataset_name(case.dataset)
    if case.dataset != dataset:
        title += f" (for {dataset_name(dataset)})"
    if several:
        n = int(case.data["n"])
        title += f", n = {n}, {weight_of(*case.problem, n)}"
    return title


def _clock(case: Case) -> str:
    runs = list(case.traces())
    beside = sum(bool(run.metadata.get("concurrent_runs")) for run in runs)
    text = f", {beside} of {len(runs)} runs beside others" if beside else ""
    processors = len({name for run in runs for name in run.processors})
    if processors > 1 and any(run.clock != "work" for run in runs):
        text += f", on {processors} different processors"
    return clocks_of(runs) + text
