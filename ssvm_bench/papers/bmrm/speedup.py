"""Table 2 of the bundle-method report, and what its section 4.4 says of that table, as pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from ssvm_bench.claims.claim import Claim
from ssvm_bench.claims.judging import judge
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.curves import timing_notes
from ssvm_bench.figures.document import Table, bold
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.papers.bmrm import bundle_runs, costs
from ssvm_bench.papers.bmrm.claims import ACROSS, CLAIMS, rules
from ssvm_bench.results.words import NONE, number

HEADER = (
    *("λ", "method", "iterations", "the report's", "CPU seconds", "in the QP"),
    *("speed-up", "the report's", "P(w) rises in"),
)


def tables(table: pd.DataFrame, everything: pd.DataFrame | None = None) -> Iterator[Table]:
    """Yield, for each block of `costs`'s table, what the methods cost, and the claims on it.

    What is said of all benchmarks together is judged by the table ``everything``, if there is one:
    the ratios of some may be of drawn data, and those of others of real ones.
    """
    header = ("statement (section 4.4)", "measured by", "ours", "verdict")
    for _, block in table.groupby(bundle_runs.INSTANCE, sort=False):
        title = bundle_runs.title(block)
        epsilons = ", ".join(f"{value:g}" for value in sorted(set(block["epsilon"])))
        rows = [_cells(row) for row in block.to_dict("records")]
        yield Table(f"{title}, ε = {epsilons}", HEADER, rows, words=2)
        rows = list(_judged(block))
        yield Table(f"What the report says, on {title}", header, rows, words=len(header))
    everything = table if everything is None else everything
    if everything["dataset"].nunique() > 1:
        rows = list(_judged(everything, ACROSS))
        yield Table("What the report says of its benchmarks", header, rows, words=len(header))


def _judged(block: pd.DataFrame, claims: Sequence[Claim] = CLAIMS) -> Iterator[list[str]]:
    """Yield the rows of the claims; rules of accepting a point that agree share one."""
    of_rule = rules(block)
    for claim in claims:
        found = {rule: judge(claim, rows) for rule, rows in of_rule.items()}
        cells = {rule: (one.ours or one.note, bold(one.verdict)) for rule, one in found.items()}
        if len(set(cells.values())) == 1:
            cells = {"": next(iter(cells.values()))}
        for rule, (ours, verdict) in cells.items():
            text = f"{claim.text} ({rule})" if rule else claim.text
            yield [text, claim.measured, ours, verdict]


def _cells(row: dict) -> list[str]:
    iterations, seconds, speedup = (costs.of(row, name) for name in costs.RANGES)
    return [
        *(f"{row['lam_n']:g}", row["title"]),
        *(iterations.text("{:.0f}".format), number(row["report_iterations"], "g")),
        *(seconds.text(_seconds), _share(row["qp_share"])),
        *(speedup.text("{:.2g}".format), number(row["report_speedup"], "g")),
        _share(row["rises"]),
    ]


def _share(value: float) -> str:
    text = number(100 * value, ".0f")
    return text if text == NONE else f"{text} %"


def _seconds(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


READING = (
    "What it took until the relative gap was at most ε: passes of the exact oracle, CPU seconds "
    "and the share of the inner quadratic programs in them, for each λ (the report's, n times "
    "ours); medians over the repeats. Speed-up: seconds of BMRM over seconds. “>” and “<”: a run "
    "ended before its ε. The last column is the share of the evaluated iterations in which the "
    "primal value rises. The report's numbers are in its Table 2."
)


# ---- the kind of figure -----------------------------------------------------------------------


def _outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    table = costs.costs(data.traces)
    if len(table):
        title = "Iterations, time and speed-up of the bundle methods"
        notes = timing_notes(bundle_runs.of_bundles(data.traces)) + bundle_runs.notes(table)
        everything = costs.costs([*data.traces, *data.others])
        yield Output("speedup", table, title, [READING, *notes, *tables(table, everything)])


KIND = Kind("speedup", Choices(("table",)), _outputs, bundle_runs.SECTION, documents=True)
