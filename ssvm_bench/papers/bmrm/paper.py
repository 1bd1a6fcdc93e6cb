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

There are two rules of accepting a point: ``accept=sufficient`` (Algorithm 2) and ``accept=always``
(as in the authors' program). Where there are runs with both, a claim is judged by each rule, and
for each rule by every reading of the costs (`costs.readings`). Those that agree share a row.

The same measures are applied to the numbers that the report prints in its Table 2, as far as
possible: where these do not confirm a statement, our runs need not either. The file
``remarks.yaml`` says why some claims do not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from ssvm_bench.claims.claim import Claim
from ssvm_bench.claims.judging import HOLDS, UNKNOWN, Row, judge
from ssvm_bench.claims.old import about
from ssvm_bench.claims.paper import Paper
from ssvm_bench.figures import curves
from ssvm_bench.figures.document import Block, Table, beside, bold
from ssvm_bench.figures.kind import FigureData, table_kind
from ssvm_bench.papers.bmrm import bundle_runs, claims, costs, relative
from ssvm_bench.papers.bmrm.costs import AFTER_START, MEASURED, RANGES, REPORT_PASS, of, rows_of
from ssvm_bench.results.table import Run
from ssvm_bench.results.words import NONE, number, share

# ---- Table 1 ----------------------------------------------------------------------------------

TEXTS = beside(__file__)

LOSSES = ("validation", "test")


def risks(traces: Sequence[Run]) -> pd.DataFrame:
    """Return the losses of each method at each λ at which its runs have a validation loss.

    Returns
    -------
    DataFrame
        One row per method and λ, from the largest: ``bundle_runs.INSTANCE``, ``lam``, ``lam_n``
        (our λ times n), ``solver`` (the method's label), ``title``, ``repeats``, ``converged``
        (how many repeats stopped at their ε), ``validation``, ``test`` (medians, NaN where there is
        none) and ``report_validation``, ``report_test``.
    """
    runs = bundle_runs.runs(traces)
    for loss in LOSSES:
        found = [trace.end.get(f"{loss}_loss") for trace in runs["trace"]]
        runs[loss] = pd.Series(found, dtype=float)
    keys, medians = [*bundle_runs.PROBLEM, "solver", "title"], {of: (of, "median") for of in LOSSES}
    counts = {"repeats": ("converged", "size"), "converged": ("converged", "sum")}
    of_method = runs[runs["validation"].notna()].groupby(keys, sort=False, as_index=False)
    table = of_method.agg(**counts, **medians)
    for loss in LOSSES:
        table[f"report_{loss}"] = [bundle_runs.printed(row, loss) for row in rows_of(table)]
    return table


def _risk_notes(table: pd.DataFrame) -> list[str]:
    """Return notes on the runs for readers of the table."""
    short = int((table["repeats"] - table["converged"]).sum())
    ended = f"{short} of {table['repeats'].sum()} runs ended before they had reached their ε."
    return [*([ended] if short else []), *bundle_runs.notes(table)]


def risk_tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per block: methods by λ, as in the report, with the best λ in bold."""
    for _, block in table.groupby(bundle_runs.INSTANCE, sort=False):
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
        yield Table(bundle_runs.title(block), header, rows)


# ---- Table 2 ----------------------------------------------------------------------------------

HEADER = (
    *("λ", "method", "iterations", "rejected", "the report's", "CPU seconds", "in the QP"),
    *("in products", "speed-up", "the report's", "P(w) rises in", "P(w) above its best"),
    "QPs an iteration",
)
JUDGED = ("statement (section)", "measured by", "ours", "verdict", "the report's Table 2", "remark")


def tables(table: pd.DataFrame, judged: pd.DataFrame | None = None) -> Iterator[Table]:
    """Yield the costs of the methods and the claims, for each block of the table of `costs`.

    ``judged`` has the costs of the runs that claims are judged by; by default, all.
    """
    by = dict(iter((table if judged is None else judged).groupby(bundle_runs.INSTANCE)))
    for instance, block in table.groupby(bundle_runs.INSTANCE, sort=False):
        title = bundle_runs.title(block)
        epsilons = ", ".join(f"{value:g}" for value in sorted(set(block["epsilon"])))
        rows = [_cells(row) for row in rows_of(block)]
        yield Table(f"{title}, ε = {epsilons}", HEADER, rows, words=2)
        yield from _other_readings(title, block)
        yield from _of_report(title, block)
        name = str(block["dataset"].iloc[0])
        printed = costs.of_report(name)
        if instance in by and len(printed):  # of other datasets, the report says nothing
            rows = list(_judged(by[instance], claims.CLAIMS, name, printed))
            yield Table(f"What the report says, on {title}", JUDGED, rows, words=len(JUDGED))


def across(table: pd.DataFrame) -> Iterator[Table]:
    """Yield the claims about all benchmarks together, if the table of `costs` has several."""
    if table["dataset"].nunique() > 1:
        printed = pd.concat([costs.of_report(name) for name in ("plates", "mnist", "landmarks")])
        rows = list(_judged(table, claims.ACROSS, "all", printed))
        yield Table("What the report says of its benchmarks", JUDGED, rows, words=len(JUDGED))


def _judged(
    block: pd.DataFrame, about: Sequence[Claim], name: str, printed: pd.DataFrame
) -> Iterator[list[str]]:
    """Yield the rows of the claims; rules and readings that agree share a row."""
    matched = any(bundle_runs.is_matched(row) for row in rows_of(block))
    for claim in about:
        if (claim.paper and name not in claim.paper) or not claims.is_tried(claim, block):
            continue
        by = judge(claim, printed)
        theirs = NONE if by.verdict == UNKNOWN else f"{by.ours}: {by.verdict}"
        remarks = PAPER.remarks.get(claim.key, {})
        for variant, found in _variants(claim, block).items():
            text = f"{claim.text} ({claim.section}{f'; {variant}' if variant else ''})"
            own = [f"{name} matched"] * matched + [name]
            keys = [f"{of} {variant}".strip() for of in own] + own
            remark = next((remarks[key] for key in keys if key in remarks), "")
            cells = found.ours or found.note, bold(found.verdict), theirs
            yield [text, claim.measured, *cells, "" if found.verdict == HOLDS else remark]


def _variants(claim: Claim, block: pd.DataFrame) -> dict[str, Row]:
    """Return the verdicts by rule and reading; rules or readings that all agree share an entry."""
    chosen = block if claim.key == claims.CONSTANTS else claims.usual(block)
    of_rule = {
        rule: {name: judge(claim, read) for name, read in costs.readings(rows).items()}
        for rule, rows in claims.rules(chosen).items()
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


def _said(found: dict[str, Row]) -> dict[str, tuple[str, str]]:
    """Return the finding and the verdict of each reading."""
    return {name: (one.ours or one.note, one.verdict) for name, one in found.items()}


def _cells(row: costs.Row) -> list[str]:
    iterations, seconds, speedup = (_range(row, name) for name in RANGES)
    lam = f"{row['lam_n']:g}"
    if row["report_lam"] != row["lam_n"]:
        lam += f" (for {row['report_lam']:g})"
    return [
        *(lam, row["title"], iterations, number(row["rejected"], ".0f")),
        *(number(row["report_iterations"], "g"), seconds),
        *(share(row["qp_share"]), share(row["product_share"])),
        *(speedup, number(row["report_speedup"], "g")),
        *(share(row["rises"]), share(row["above"]), number(row["qps"], ".1f")),
    ]


SHOWN = {
    "iterations": ("iterations", "{:.0f}".format),
    "seconds": ("CPU seconds", claims.seconds_text),
    "speedup": ("speed-up", "{:.2g}".format),
}
"""Each of ``RANGES`` → the heading of its column, and the format of its numbers."""


def _range(row: costs.Row, name: str) -> str:
    return of(row, name).text(SHOWN[name][1])


def _other_readings(title: str, block: pd.DataFrame) -> Iterator[Table]:
    """Yield a table of the methods' costs in the other readings, if there are any."""
    others = {name: rows for name, rows in costs.readings(block).items() if name != MEASURED}
    if not others:
        return
    header = ["λ", "method", "speed-up as measured"]
    lines = [[*_cells(row)[:2], _range(row, "speedup")] for row in rows_of(block)]
    for reading, names in {AFTER_START: RANGES, REPORT_PASS: ("speedup",)}.items():
        if reading in others:
            header += [f"{SHOWN[name][0]} {reading}" for name in names]
            for line, row in zip(lines, rows_of(others[reading]), strict=True):
                line += [_range(row, name) for name in names]
    for line, value in zip(lines, block["report_speedup"], strict=True):
        line.append(number(value, "g"))
    yield Table(f"The same runs, read otherwise, on {title}", [*header, "the report's"], lines, 2)


def _of_report(title: str, block: pd.DataFrame) -> Iterator[Table]:
    """Yield a table of the report's times per iteration, if its speed-ups are shown beside ours."""
    if not block["report_speedup"].notna().any():
        return
    printed = rows_of(costs.of_report(str(block["dataset"].iloc[0])))
    printed.sort(key=lambda row: -row["lam_n"])
    of_plain = (row for row in printed if row["solver"] == costs.BASELINE.solver)
    plain = {row["lam_n"]: row["iterations_from"] for row in of_plain}
    lines = []
    for row in printed:
        iterations, lam = row["iterations_from"], row["lam_n"]
        seconds = f"{row['seconds_from'] / iterations:.3g}"
        speedups = f"{plain[lam] / iterations:.2g}", f"{row['speedup_from']:.2g}"
        lines.append([f"{lam:g}", row["title"], f"{iterations:g}", seconds, *speedups])
    header = ("λ", "method", "iterations", "seconds each", "speed-up in iterations", "in seconds")
    yield Table(f"The report's own Table 2, beside {title}", header, lines, words=2)


# ---- the kinds of figures ---------------------------------------------------------------------


def _blocks(data: FigureData, table: pd.DataFrame) -> Iterator[Block]:
    notes = curves.timing_notes(bundle_runs.of_bundles(data.traces))
    notes += bundle_runs.elsewhere(data.traces) + bundle_runs.notes(table)
    yield from (TEXTS["speedup"], TEXTS["otherwise"], *notes)
    runs, others = PAPER.at_settings(data.traces)
    judged = costs.costs(runs)
    if others:
        yield TEXTS["settings"].format(len(others), len(data.traces))
    yield from tables(table, judged)
    # the ratios of some benchmarks may come from drawn data, those of others from real data
    yield from across(costs.costs([*runs, *PAPER.at_settings(data.others)[0]]))


KINDS = (
    table_kind(
        "risks",
        "Validation and test loss of the bundle methods",
        lambda traces, _: risks(traces),
        lambda _, table: [TEXTS["risks"], *_risk_notes(table), *risk_tables(table)],
        documents=True,
    ),
    table_kind(
        "speedup",
        "Iterations, time and speed-up of the bundle methods",
        lambda traces, _: costs.costs(traces),
        _blocks,
        documents=True,
    ),
)


PAPER = Paper(
    folder=Path(__file__).parent,
    title="the bundle-method report",
    kinds=(relative.KIND, *KINDS),
    claims_=(*claims.CLAIMS, *claims.ACROSS),
    **about(__file__),
)
