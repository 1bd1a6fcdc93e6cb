"""The claims of a paper, judged by our traces.

`evaluate` returns one `Judged` per claim and problem instance. Each claim has a measure, which
returns one number per repeat, and a range. The verdict is

    holds             the median over the repeats is in the range
    does not hold     it is not
    undecided here    it is about time (`Claim.timed`), and noise may have decided: see below
    not measurable    the traces do not decide; the note has the reason: no run has the paper's
                      settings, for instance
    not comparable    it is about the time of the paper's program and machine (`Claim.given`), and
                      the runs were timed with ours: both numbers are shown
    void              the runs have the paper's settings, but in these the number does not measure
                      what the claim is about (`Measured.void`): it is shown, with the reason

A verdict about time is *undecided here* if the repeats split 3 : 7 or closer, or if the median is
within the noise of an end of the range, limit / (1 + noise) to limit (1 + noise). Noise is the
interquartile range, over the repeats, of the seconds of an iteration, over their median
(`Case.noise`); that of the noisiest kind of runs that the claim compares. Time that is counted has
no noise, but its repeats may split. `Judged.by_median` keeps what the median alone would say.

A verdict about time is *undecided here* if the repeats split 3 : 7 or closer, or if the median is
within the noise of an end of the range, limit / (1 + noise) to limit (1 + noise). Noise is the
interquartile range, over the repeats, of the seconds of an iteration, over their median
(`Case.noise`); that of the noisiest kind of runs that the claim compares. Time that is counted has
no noise, but its repeats may split. `Judged.by_median` keeps what the median alone would say.

Repeats are runs that differ in the seed only, or in the draw of the data (`Paper.draws`). Problem
instances, and so real and synthetic data, are judged separately. So is each `Variant`: where the
runs begin, and whether their time was measured or is counted at the paper's costs. An instance that
has the first examples of another one serves as its smaller part, and is not judged itself. A
dataset may replace one of the paper's, as Weizmann's horses replace HorseSeg: it is judged where
there are no runs on the original. The paper's `remarks` explain failing claims where no trace can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ssvm_bench.base.errors import RunFailedError, described, shown
from ssvm_bench.claims.cases import USUAL, Case, Costs, Noise, Variant, cases
from ssvm_bench.claims.claim import Claim, Measured
from ssvm_bench.claims.paper import Paper
from ssvm_bench.config import GENUINE, shown_as
from ssvm_bench.figures.curves import clocks_of
from ssvm_bench.figures.style import dataset_name, weight_of
from ssvm_bench.results import words
from ssvm_bench.results.curves import UnmeasurableError, band
from ssvm_bench.results.measurements import Measurement
from ssvm_bench.results.table import BestValues, ProblemInstance, Run, grouped

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "not measurable"
UNDECIDED, INCOMPARABLE, VOID = "undecided here", "not comparable", "void"
VERDICTS = (HOLDS, FAILS, UNDECIDED, UNKNOWN, INCOMPARABLE, VOID)
GIVEN_ALWAYS = (HOLDS, FAILS, UNKNOWN)
"""The verdicts that are counted where there is none of them, too."""

FAILS_TWICE = "At the times measured here it does not hold either"
"""The note on a claim that fails at the paper's costs and at the measured times."""

NO_RUNS = "no finished runs"
OTHER_SETTINGS = "not the paper's settings"
"""The note where all runs on a dataset have other settings."""


class Judged(NamedTuple):
    """A claim on one problem instance, and the verdict: a row of the table of claims.

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
    noise : float
        Noise of the times compared, if the claim is about time; NaN if it is not known.
    by_median : str
        What the median alone says where the verdict is ``UNDECIDED``; else empty.
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
    noise: float = math.nan
    by_median: str = ""


# ---- judging ----------------------------------------------------------------------------------


def evaluate(
    paper: Paper,
    runs: Sequence[Run],
    best: BestValues,
    bench: Sequence[Measurement] = (),
    others: Sequence[Run] = (),
    claims: Sequence[Claim] | None = None,
) -> list[Judged]:
    """Judge every claim of a paper on every problem instance that it is about.

    Parameters
    ----------
    paper : Paper
    runs : sequence of Run
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
    list of Judged
        Sorted by source (real data first), costs (measured times first) and start; then by claim,
        in the order of the paper.
    """
    found = list[Judged]()
    here, away = (_instances(paper, of, best, bench) for of in (runs, others))
    problems: dict[tuple[str, str], set[Any]] = {}  # of all variants: one title for each problem
    for (source, _), of_name in here.items():
        for name, instances in of_name.items():
            problems.setdefault((source, name), set()).update(case.problem for case in instances)
    for source, variant in sorted({*here, *away}, key=lambda place: (place[0], place[1].order)):
        nothing = Case("", source, ProblemInstance("", math.nan), {}, variant=variant)
        mine, unlike = (of.get((source, variant), {}) for of in (here, away))
        asked = (of for of in (paper.claims if claims is None else claims) if _asked(of, variant))
        for claim, name in ((of, name) for of in asked for name in of.paper):
            instances = mine.get(name) or [replace(nothing, dataset=name)]
            several = len(problems.get((source, name), ())) > 1
            rows = [
                _judged(paper, claim, name, case, several, name in unlike)
                for case in instances
                if claim.lam in (None, case.problem.lam) and case.has(claim.only)
            ]
            if claim.variants:  # then it is shown only where it is measured
                rows = [row for row in rows if row.verdict != UNKNOWN]
            if paper.partial:
                rows = [row for row in rows if not row.note.startswith(NO_RUNS)] or rows[:1]
            found += rows
    return _with_both_costs(found)


def _instances(
    paper: Paper, runs: Sequence[Run], best: BestValues, bench: Sequence[Measurement]
) -> dict[tuple[str, Variant], dict[str, list[Case]]]:
    """Return source and variant → dataset of the paper → the problem instances judged for it."""
    costs = paper.costs
    known = (
        case
        for case in cases([run for run in runs if _is_at(costs, run)], best, paper.draws)
        if paper.stands_for.get(case.dataset, case.dataset) in paper.datasets
        and case.solvers & paper.solvers
        and (not paper.beside_runs_of or case.solvers & paper.beside_runs_of)
    )
    found: dict[tuple[str, Variant], dict[str, list[Case]]] = {}
    for place, others in grouped(known, lambda of: (shown_as(of.source), of.variant)).items():
        of_name = found[place] = {}
        there = {case.dataset for case in others}
        for case in others:
            name = paper.stands_for.get(case.dataset, case.dataset)
            replaced = name != case.dataset and name in there
            if not replaced and not any(case.is_part_of(other) for other in others):
                mine = [row for row in bench if row[:2] == (case.dataset, case.source)]
                case = replace(case, others=others, bench=mine)
                of_name.setdefault(name, []).append(case)
    return found


def _asked(claim: Claim, variant: Variant) -> bool:
    """Return whether a claim is judged by the runs of a variant."""
    if claim.given and variant.counted:
        return False
    return not claim.variants or variant.suffix.strip() in claim.variants


def _is_at(costs: Mapping[str, Costs], run: Run) -> bool:
    """Return whether a run's time was measured, or counted at the paper's costs."""
    return not run.counted or Costs.of(run.config["oracle"]) == costs.get(run.dataset)


def judge(claim: Claim, subject: Any) -> Judged:
    """Apply the claim's measure to a subject, and compare the median with the claim's range."""
    try:
        found = _measured(claim, subject)
    except UnmeasurableError as error:
        return _unmeasurable(claim, str(error))
    repeats = len(found.values)
    median, low, high = ends = band(found.values)
    row = _unmeasurable(claim, found.note)._replace(
        ours=found.text or words.median(ends, repeats, _shown(claim, found)),
        median=median,
        min=low,
        max=high,
        repeats=repeats,
        agree=sum(found.holds(float(value)) for value in found.values),
        verdict=HOLDS if found.holds(median) else FAILS,
    )
    if found.void:
        return row._replace(verdict=VOID, agree=0, note=_joined(found.void, found.note))
    if not claim.timed or claim.given or not isinstance(subject, Case):
        return row
    return _with_noise(claim, row, found, subject.noise(claim.kinds))


def _with_noise(claim: Claim, row: Judged, found: Measured, noise: Noise) -> Judged:
    """Return the row of a claim about time with its noise, undecided if noise may have decided."""
    notes, fewer = [], min(row.agree, row.repeats - row.agree)
    if 10 * fewer >= 3 * row.repeats:
        notes.append(f"The repeats split {fewer} : {row.repeats - fewer}")
    for limit in filter(math.isfinite, (found.low, found.high) if noise.spread > 0 else ()):
        if limit / (1 + noise.spread) <= row.median <= limit * (1 + noise.spread):
            notes.append(f"The median is within the noise of its limit, {claim.show(limit)}")
    if not math.isnan(noise.spread):
        of = f"{words.percent(noise.spread)} (time of an iteration of {noise.name})"
        row = row._replace(note=_joined(row.note, f"Noise: {of}"), noise=noise.spread)
    if not notes:
        return row
    why = _joined(*notes, row.note)
    return row._replace(verdict=UNDECIDED, by_median=row.verdict, note=why)


def _shown(claim: Claim, found: Measured) -> Callable[[float], str]:
    """Return what writes a claim's numbers, apart from the ends of the range."""
    return words.beside((found.low, found.high), claim.show)


def _measured(claim: Claim, subject: Any) -> Measured:
    """Return what a claim's measure returns; if that fails, raise an error that names the claim."""
    place = claim.place or f"The claim {claim.key}"
    try:
        found = claim.measure(subject)
        if not isinstance(found, Measured):
            raise TypeError(f"its measure returned {shown(found)}, not Measured")
        if found.values.ndim != 1 or not found.values.size:
            raise TypeError(f"its measure has values of shape {found.values.shape}, not (repeats,)")
        if not isinstance(found.facts, Mapping):
            raise TypeError(f"its measure has facts that are no mapping: {shown(found.facts)}")
        _ = found.note  # facts may be what no text is made of
        return found.within(claim.low, claim.high)
    except UnmeasurableError:
        raise
    except Exception as error:
        raise RunFailedError(f"{place} cannot be judged: {described(error)}") from error


def _unmeasurable(claim: Claim, note: str) -> Judged:
    about, beside = (claim.key, claim.text, claim.section), claim.beside
    return Judged(*about, measured=claim.measured, note=note, beside=beside)


def _judged(
    paper: Paper, claim: Claim, dataset: str, case: Case, several: bool, unlike: bool
) -> Judged:
    """Judge a claim on a problem instance; ``unlike``: there are runs with other settings."""
    why_not = OTHER_SETTINGS if unlike else NO_RUNS
    row = judge(claim, case) if case.runs else _unmeasurable(claim, why_not)
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
    if {row.verdict, row.by_median} & {FAILS, INCOMPARABLE} and case.source in GENUINE:
        of_claim = paper.remarks.get(claim.key, {})
        remark = of_claim.get(case.dataset + case.variant.suffix, "")
        row = row._replace(note=_joined(row.note, remark))
    return row._replace(clock=_clock(case)) if claim.timed and row.repeats else row


def _with_both_costs(rows: Sequence[Judged]) -> list[Judged]:
    """Add to each claim that fails at the paper's costs its verdict at the measured times."""

    def place(row: Judged) -> tuple[str, str, str, str]:
        return row.source, row.start, row.key, row.title

    said = {FAILS: FAILS_TWICE, HOLDS: "It holds at the times measured here"}
    said[UNDECIDED] = "It is undecided at the times measured here"
    measured = {place(row): said.get(row.verdict, "") for row in rows if not row.counted}
    return [
        row._replace(note=_joined(row.note, measured.get(place(row), "")))
        if row.counted and row.verdict == FAILS
        else row
        for row in rows
    ]


def _joined(*notes: str) -> str:
    """Join the notes that are not empty, sentence after sentence."""
    said = [note for note in notes if note]
    return ". ".join([*(note.removesuffix(".") for note in said[:-1]), *said[-1:]])


def _title(case: Case, dataset: str, several: bool) -> str:
    title = dataset_name(case.dataset)
    if case.dataset != dataset:
        title += f" (for {dataset_name(dataset)})"
    if several and case.runs:
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
