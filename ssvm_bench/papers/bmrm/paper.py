"""The bundle-method report (Uřičář and Franc 2012): Tables 1 and 2, and its claims.

**Table 1**: validation loss for each λ, and the test loss at the best λ.

.. code-block:: text

    validation loss   mean loss of the final w on the validation examples; median over repeats
    best λ            the λ with the smallest median over the methods
    test loss         test loss of the runs at the best λ

All methods stop at the same relative gap ε, so they should return nearly the same classifier. The
spread is the largest difference between their losses. Runs on other pixels have their own block.

**Table 2**: the cost of each method (:mod:`.costs`), the time of the report's own iterations, and
the claims.

There are three rules of accepting a point: ``accept=printed`` (Algorithm 2), ``accept=sufficient``
(with the planes of rejected points, too) and ``accept=always`` (as in the authors' program). Where
there are runs with several, a claim is judged by each rule, and for each rule by every reading of
the costs (`readings`). Those that agree share a row.

The same measures are applied to the numbers that the report prints in its Table 2, as far as
possible: where these do not confirm a statement, our runs need not either. The file
``remarks.yaml`` says why some claims do not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from ssvm_bench.claims.claim import Claim
from ssvm_bench.claims.judging import HOLDS, NO_RUNS, UNKNOWN, Judged, judge
from ssvm_bench.claims.paper import Paper
from ssvm_bench.figures import curves
from ssvm_bench.figures.document import Block, Table, bold
from ssvm_bench.figures.kind import FigureData, table_kind
from ssvm_bench.papers.bmrm import bundle_runs, measures, relative
from ssvm_bench.papers.bmrm.bundle_runs import BMRM, TEXTS, Data, setups
from ssvm_bench.papers.bmrm.costs import (
    AFTER_START,
    MEASURED,
    REPORT_PASS,
    Cost,
    costs,
    of_report,
    readings,
    table,
)
from ssvm_bench.papers.bmrm.measures import rules, seconds_text
from ssvm_bench.results.table import Run, grouped
from ssvm_bench.results.words import NONE, number, share

# ---- Table 1 ----------------------------------------------------------------------------------

LOSSES = ("validation", "test")


def risks(traces: Sequence[Run]) -> pd.DataFrame:
    """Return the losses of each method at each λ at which its runs have a validation loss.

    Returns
    -------
    DataFrame
        One row per method and λ, from the largest: those of `Setup.columns`, ``repeats``,
        ``converged`` (how many repeats stopped at their ε), ``validation``, ``test`` (medians, NaN
        where there is none) and ``report_validation``, ``report_test``.
    """
    rows = []
    for setup, runs in setups(bundle_runs.of_bundles(traces)).items():
        ends = pd.DataFrame([run.end for run in runs])
        ends = ends.reindex(columns=[f"{of}_loss" for of in LOSSES]).astype(float)
        known = ends.iloc[:, 0].notna()
        if known.any():
            ended = sum(
                run.converged for run, is_known in zip(runs, known, strict=True) if is_known
            )
            row = setup.columns | {"repeats": known.sum(), "converged": ended}
            row |= zip(LOSSES, ends[known].median(), strict=True)
            rows.append(row | {f"report_{of}": bundle_runs.printed(setup, of) for of in LOSSES})
    beside = ["report_lam", "epsilon", "P", "options"]
    return pd.DataFrame(rows).drop(columns=beside, errors="ignore")


def _risk_blocks(data: FigureData, losses: pd.DataFrame) -> Iterator[Block]:
    yield TEXTS["risks"]
    runs, ended = losses["repeats"].sum(), losses["converged"].sum()
    if ended < runs:
        yield f"{runs - ended} of {runs} runs ended before they had reached their ε."
    yield from bundle_runs.notes(setups(data.runs))
    yield from risk_tables(losses)


def risk_tables(of: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per block: methods by λ, as in the report, with the best λ in bold."""
    for instance, block in of.groupby([*Data._fields], sort=False):
        lams = list(dict.fromkeys(block["lam_n"]))
        losses = block.pivot(index="title", columns="lam_n", values="validation")
        losses = losses.reindex(list(dict.fromkeys(block["title"])))[lams]
        best = losses.median().idxmin()
        at_best = block[block["lam_n"] == best].set_index("title")
        tests = at_best["test"].reindex(losses.index)
        lines = {str(name): (losses.loc[name], tests[name]) for name in losses.index}
        if len(lines) > 1:
            lines["median"] = losses.median(), tests.median()
            lines["spread"] = losses.max() - losses.min(), tests.max() - tests.min()
        printed = block.drop_duplicates("lam_n").set_index("lam_n")["report_validation"]
        if printed.notna().any():
            lines["the report"] = printed, at_best["report_test"].iloc[0]
        rows = []
        for name, (values, test) in lines.items():
            cells = [bold(number(values[lam], ".4f"), lam == best) for lam in lams]
            rows.append([name, *cells, number(test, ".4f")])
        heads = [bold(f"λ = {lam:g}", lam == best) for lam in lams]
        header = ["validation loss", *heads, f"test, λ = {best:g}"]
        yield Table(Data._make(instance).title, header, rows)


# ---- Table 2 ----------------------------------------------------------------------------------

HEADER = (
    *("λ", "method", "iterations", "rejected", "the report's", "CPU seconds", "in the QP"),
    *("in products", "speed-up", "the report's", "P(w) rises in", "P(w) above its best"),
    "QPs an iteration",
)
JUDGED = ("statement (section)", "measured by", "ours", "verdict", "the report's Table 2", "remark")


ALL = "all benchmarks"
"""What claims about several benchmarks are about, in place of a dataset."""


def tables(of: Sequence[Cost], judged: Sequence[Cost] | None = None) -> Iterator[Table]:
    """Yield the costs of the methods and the claims, for each dataset.

    ``judged`` are the costs of the runs that claims are judged by; by default, all.
    """
    by = grouped(of if judged is None else judged, lambda cost: cost.setup.data)
    for data, block in grouped(of, lambda cost: cost.setup.data).items():
        epsilons = ", ".join(f"{value:g}" for value in sorted({c.setup.epsilon for c in block}))
        yield Table(f"{data.title}, ε = {epsilons}", HEADER, [*map(_cells, block)], words=2)
        yield from _other_readings(data, block)
        yield from _of_report(data, block)
        printed = of_report(data.dataset)
        if data in by and printed:  # of other datasets, the report says nothing
            rows = list(_judged(by[data], data.dataset, printed))
            yield Table(f"What the report says, on {data.title}", JUDGED, rows, words=len(JUDGED))


def across(of: Sequence[Cost]) -> Iterator[Table]:
    """Yield the claims about all benchmarks together, if there are costs on several."""
    if len({cost.setup.data.dataset for cost in of}) > 1:
        printed = [cost for name in ("plates", "mnist", "landmarks") for cost in of_report(name)]
        rows = list(_judged(of, ALL, printed))
        yield Table("What the report says of its benchmarks", JUDGED, rows, words=len(JUDGED))


def _judged(of: Sequence[Cost], name: str, printed: Sequence[Cost]) -> Iterator[list[str]]:
    """Yield the rows of the claims; rules and readings that agree share a row."""
    is_matched = any(cost.setup.report_lam != cost.lam_n for cost in of)
    for claim in PAPER.claims:
        if name not in claim.paper and (claim.paper or name == ALL):
            continue
        by = judge(claim, printed)
        theirs = NONE if by.verdict == UNKNOWN else f"{by.ours}: {by.verdict}"
        remarks = PAPER.remarks.get(claim.key, {})
        for variant, found in variants(claim, of).items():
            if found.note.startswith(NO_RUNS):
                continue
            text = f"{claim.text} ({claim.section}{f'; {variant}' if variant else ''})"
            own = [f"{name} matched"] * is_matched + [name]
            keys = [f"{about} {variant}".strip() for about in own] + own
            remark = next((remarks[key] for key in keys if key in remarks), "")
            cells = found.ours or found.note, bold(found.verdict), theirs
            yield [text, claim.measured, *cells, "" if found.verdict == HOLDS else remark]


def variants(claim: Claim, of: Sequence[Cost]) -> dict[str, Judged]:
    """Return the verdicts by rule and reading; rules or readings that all agree share an entry."""
    of_rule = {
        rule: {name: judge(claim, read) for name, read in readings(rows).items()}
        for rule, rows in rules(of).items()
    }
    for rule, found in of_rule.items():
        if len({*_said(found).values()}) == 1:
            of_rule[rule] = {MEASURED: found[MEASURED]}
    first = next(iter(of_rule.values()))
    if all(_said(found) == _said(first) for found in of_rule.values()):
        of_rule = {"": first}
    several = any(len(found) > 1 for found in of_rule.values())
    return {
        ", ".join(filter(None, (rule, name or "as measured" * several))): row
        for rule, found in of_rule.items()
        for name, row in found.items()
    }


def _said(found: dict[str, Judged]) -> dict[str, tuple[str, str]]:
    """Return the finding and the verdict of each reading."""
    return {name: (one.ours or one.note, one.verdict) for name, one in found.items()}


def _cells(cost: Cost) -> list[str]:
    report = cost.row
    return [
        *(_lam(cost), cost.method.title, f"{cost.iterations:.0f}", number(cost.rejected, ".0f")),
        *(number(report["report_iterations"], "g"), cost.seconds.text(seconds_text)),
        *(share(cost.qp_share), share(cost.product_share)),
        *(f"{cost.speedup:.2g}", number(report["report_speedup"], "g")),
        *(share(cost.rises), share(cost.above), number(cost.qps, ".1f")),
    ]


def _lam(cost: Cost) -> str:
    """Return λ n, and the report's λ that it stands for, if that is another."""
    matched, lam = cost.setup.report_lam, cost.lam_n
    return f"{lam:g}" + f" (for {matched:g})" * (matched != lam)


OTHERWISE: dict[str, tuple[str, Callable[[Cost], str]]] = {
    "speed-up as measured": (MEASURED, lambda cost: f"{cost.speedup:.2g}"),
    "iterations without SGD": (AFTER_START, lambda cost: f"{cost.iterations:.0f}"),
    "CPU seconds without SGD": (AFTER_START, lambda cost: cost.seconds.text(seconds_text)),
    "speed-up without SGD": (AFTER_START, lambda cost: f"{cost.speedup:.2g}"),
    "speed-up at the report's pass": (REPORT_PASS, lambda cost: f"{cost.speedup:.2g}"),
    "the report's": (
        MEASURED,
        lambda cost: number(bundle_runs.printed(cost.setup, "speedup"), "g"),
    ),
}
"""Columns of the table of other readings: heading → the reading, and what it shows of a cost."""


def _other_readings(data: Data, block: Sequence[Cost]) -> Iterator[Table]:
    """Yield a table of the methods' costs in the other readings, if there are any."""
    found = readings(block)
    if len(found) > 1:
        shown = {head: of for head, of in OTHERWISE.items() if of[0] in found}
        columns = ([show(cost) for cost in found[name]] for name, show in shown.values())
        about = ([cell(cost) for cost in block] for cell in (_lam, lambda c: c.method.title))
        lines = [*zip(*about, *columns, strict=True)]
        title = f"The same runs, read otherwise, on {data.title}"
        yield Table(title, ["λ", "method", *shown], lines, 2)


def _of_report(data: Data, block: Sequence[Cost]) -> Iterator[Table]:
    """Yield a table of the report's times per iteration, if its speed-ups are shown beside ours."""
    if all(math.isnan(bundle_runs.printed(cost.setup, "speedup")) for cost in block):
        return
    printed = sorted(of_report(data.dataset), key=lambda cost: -cost.lam_n)
    plain = {c.lam_n: c.iterations.low for c in printed if c.method == BMRM}
    lines = []
    for cost in printed:
        iterations, lam = cost.iterations.low, cost.lam_n
        speedups = f"{plain[lam] / iterations:.2g}", f"{cost.speedup:.2g}"
        seconds = f"{cost.seconds.low / iterations:.3g}"
        lines.append([f"{lam:g}", cost.method.title, f"{iterations:g}", seconds, *speedups])
    header = ("λ", "method", "iterations", "seconds each", "speed-up in iterations", "in seconds")
    yield Table(f"The report's own Table 2, beside {data.title}", header, lines, words=2)


# ---- the kinds of figures ---------------------------------------------------------------------


def _blocks(data: FigureData, _: pd.DataFrame) -> Iterator[Block]:
    notes = curves.timing_notes(data.runs.where(solver=bundle_runs.ROWS))
    notes += bundle_runs.elsewhere(data.runs) + bundle_runs.notes(setups(data.runs))
    yield from (TEXTS["speedup"], TEXTS["otherwise"], *notes)
    runs, others = PAPER.at_settings(data.runs)
    if others:
        yield TEXTS["settings"].format(len(others), len(data.runs))
    yield from tables(costs(data.runs), costs(runs))
    # the ratios of some benchmarks may come from drawn data, those of others from real data
    yield from across(costs([*runs, *PAPER.at_settings(data.others)[0]]))


KINDS = (
    table_kind(
        "risks",
        "Validation and test loss of the bundle methods",
        risks,
        _risk_blocks,
        documents=True,
    ),
    table_kind(
        "speedup",
        "Iterations, time and speed-up of the bundle methods",
        lambda runs: table(costs(runs)),
        _blocks,
        documents=True,
    ),
)


PAPER = Paper.of(__file__, measures=vars(measures), kinds=(relative.KIND, *KINDS))
