"""Table 1 of the bundle-method report: validation loss for each λ, and the test loss of the best.

.. code-block:: text

    validation loss   mean loss of the final w on the validation examples; median over repeats
    best λ            the one with the smallest median over the methods
    test loss         that of the runs at the best λ

All methods stop at the same relative gap ε, so they should give nearly the same classifier: the
spread, their largest difference, says how nearly. Runs on other pixels have a block of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from ssvm_bench.figures.document import Table, bold
from ssvm_bench.figures.kind import table_kind
from ssvm_bench.papers.bmrm import bundle_runs
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import number

LOSSES = ("validation", "test")
COLUMNS = [
    *bundle_runs.INSTANCE,
    *("lam", "lam_n", "solver", "title", "repeats", "converged"),
    *LOSSES,
    *(f"report_{loss}" for loss in LOSSES),
]


def risks(traces: Sequence[Trace]) -> pd.DataFrame:
    """Return the losses of each method at each λ, where its runs have any.

    Returns
    -------
    DataFrame
        One row per method and λ, from the largest: ``bundle_runs.INSTANCE``, ``lam``, ``lam_n``
        (the report's λ), ``solver`` (the method's label), ``title``, ``repeats``, ``converged``
        (how many of them stopped at their ε), ``validation``, ``test`` (medians, NaN where there is
        none) and ``report_validation``, ``report_test``.
    """
    runs = bundle_runs.runs(traces)
    for loss in LOSSES:
        found = [trace.summary.get(f"{loss}_loss") for trace in runs["trace"]]
        runs[loss] = pd.Series(found, dtype=float)
    of_method = runs[runs["validation"].notna()].groupby(
        [*bundle_runs.PROBLEM, "solver", "title"], sort=False
    )
    table = of_method.agg(
        repeats=("converged", "size"),
        converged=("converged", "sum"),
        validation=("validation", "median"),
        test=("test", "median"),
    ).reset_index()
    for loss in LOSSES:
        table[f"report_{loss}"] = [
            bundle_runs.printed(row, loss) for row in table.to_dict("records")
        ]
    return table[COLUMNS]


def notes(table: pd.DataFrame) -> list[str]:
    """Return what a reader of the table has to know about its runs."""
    short = int((table["repeats"] - table["converged"]).sum())
    ended = f"{short} of {table['repeats'].sum()} runs ended before they had reached their ε."
    return [*([ended] if short else []), *bundle_runs.notes(table)]


def tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield a table per block: methods by λ, as the report prints it; the best λ in bold."""
    for _, block in table.groupby(bundle_runs.INSTANCE, sort=False):
        lams = list(dict.fromkeys(block["lam_n"]))
        losses = block.pivot(index="title", columns="lam_n", values="validation")
        losses = losses.reindex(dict.fromkeys(block["title"]))[lams]
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


READING = (
    "Mean loss on the validation examples for each λ, and on the test examples for the λ with the "
    "smallest median (in bold). λ is the report's, n times ours. Spread: the largest difference "
    "between the methods; the report says that they differ in the fourth decimal place. Its "
    "numbers are in its Table 1."
)


KIND = table_kind(
    "risks",
    "Validation and test loss of the bundle methods",
    lambda traces, _: risks(traces),
    lambda _, table: [READING, *notes(table), *tables(table)],
    section=bundle_runs.SECTION,
    documents=True,
)
