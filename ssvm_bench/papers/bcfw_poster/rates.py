"""Table 1 of the BCFW poster, measured: how the number of oracle calls grows.

Table 1 bounds the calls to an error ε by C nᵃ λᵇ εᶜ, a method's error being what its theorem is
about. From traces, with the best values known, P⋆ and F⋆, on the problem instance:

===============  ==========================================================
duality gap      P(w) − F
primal error     P(w) − F⋆
dual error       P⋆ − F
saddle gap       P(w) − the dual value within the ball (``saddle_dual``)
===============  ==========================================================

P⋆ and F⋆ stand where they make the error larger, never smaller. The calls to ε are read off where
the curve first crosses it. A *ratio* is that of the calls at two settings that differ in one of n,
λ and ε; beside it, what the order says: (n'/n)ᵃ, (λ'/λ)ᵇ, (ε'/ε)ᶜ. An order bounds calls, and no
ratio of calls: from a start that is better than the worst, calls may rise faster than their bound.
So nothing is judged by ratios. What the theorem proves of a run is judged where the trace has it
(``gap_bound``): no error may be above it.

Calls within the first pass are none to compare: there is nothing to read off there but the line
from w = 0.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.curves import along, crossing
from ssvm_bench.figures.document import Table, beside
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.results.problem_instance import COLUMNS as INSTANCE
from ssvm_bench.results.problem_instance import Best, BestValues, columns_of
from ssvm_bench.results.repeats import repeats_of
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import NONE, number

VARIED = ("n", "lam", "eps")
NAMES = {"n": "n", "lam": "λ", "eps": "ε"}
HARDER = {"n": 1.0, "lam": -1.0, "eps": -1.0}
"""Whether more of it, or less, takes more calls."""


class Order(NamedTuple):
    """A row of Table 1: the error that is bounded, the order as it stands there, and exponents."""

    error: str
    text: str
    n: float
    lam: float
    eps: float


_BATCH = "n R² / (λ ε)"

ORDERS = {
    "extragradient": Order("saddle gap", "n R log|Y| / (λ ε)", 1, -1, -1),
    "eg": Order("dual error", "(n + log|Y|) R² / (λ ε)", 1, -1, -1),
    "excessive_gap": Order("duality gap", "n R √(log|Y| / (λ ε))", 1, -0.5, -0.5),
    "bmrm": Order("primal error", _BATCH, 1, -1, -1),
    "one_slack": Order("duality gap", _BATCH, 1, -1, -1),
    "fw": Order("duality gap", _BATCH, 1, -1, -1),
    "ssg": Order("primal error", "R² / (λ ε), but for logarithms", 0, -1, -1),
    "bcfw": Order("duality gap", "R² / (λ ε)", 0, -1, -1),
}
"""Table 1, and the poster's rate of batch Frank–Wolfe."""

COLUMNS = [
    *("dataset", "source", "solver", "error", "varied", "n", "lam", "eps"),
    *("to", "calls", "calls_to", "ratio", "predicted"),
]


def error_of(trace: Trace, kind: str, known: Best) -> np.ndarray:
    """Return one of the errors of each row of a run."""
    ends: dict[str, tuple[str | float, str | float]] = {
        "duality gap": ("primal", "dual"),
        "primal error": ("primal", known.dual),
        "dual error": (known.primal, "dual"),
        "saddle gap": ("primal", "saddle_dual"),
    }
    above, below = (
        trace.values(end) if isinstance(end, str) else np.full(len(trace.frame), end)
        for end in ends[kind]
    )
    return np.asarray(above - below)


def calls(traces: Sequence[Trace], best: BestValues, errors: Sequence[float]) -> pd.DataFrame:
    """Return the calls of each solver of Table 1 to each error on each problem instance.

    Returns
    -------
    DataFrame
        ``dataset, source, n, lam, fingerprint, data, solver, eps, calls, bound``: ``data`` tells
        which examples they are the first n of; ``calls`` is the median over the repeats, NaN
        unless more than half got there, and that after the first pass; ``bound`` is the largest
        error / ``gap_bound`` on a row of any repeat, NaN if the trace has none.
    """
    rows = []
    for (problem, label), repeats in repeats_of(traces).items():
        order = ORDERS.get(label.partition(" ")[0])
        if order is None:
            continue
        about = repeats[0].metadata
        instance = columns_of(about)
        data = {**about["config"].get("dataset", {}), "n_samples": None}
        curves = [error_of(trace, order.error, best[problem]) for trace in repeats]
        bound = [_over_bound(trace, curve) for trace, curve in zip(repeats, curves, strict=True)]
        row = {**instance, "data": json.dumps(data, sort_keys=True, default=str), "solver": label}
        row["bound"] = max(bound)
        for eps in errors:
            needed = [
                crossing(along(trace, "calls"), curve, eps)
                for trace, curve in zip(repeats, curves, strict=True)
            ]
            median = float(np.median(needed))
            known = instance["n"] <= median < math.inf
            rows.append({**row, "eps": eps, "calls": median if known else math.nan})
    columns = [*INSTANCE, "data", "solver", "bound", "eps", "calls"]
    return pd.DataFrame(rows, columns=columns)


def _over_bound(trace: Trace, error: np.ndarray) -> float:
    if "gap_bound" not in trace.frame or trace.frame["gap_bound"].isna().all():
        return math.nan
    return float(np.nanmax(error / trace.values("gap_bound")))


def ratios(needed: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios of calls between neighbouring settings: ``COLUMNS``.

    ``n, lam, eps`` are the easier setting of two, ``to`` is what ``varied`` is in the other one,
    and ``calls`` and ``calls_to`` the calls there.
    """
    rows = []
    for varied in VARIED:
        others = [name for name in VARIED if name != varied]
        keys = ["dataset", "source", "data", "solver", *others]
        for _, group in needed.groupby(keys, sort=False):
            ordered = group.sort_values(varied, ascending=HARDER[varied] > 0).to_dict("records")
            for easy, hard in itertools.pairwise(ordered):
                order = ORDERS[easy["solver"].partition(" ")[0]]
                row = {name: easy[name] for name in ("dataset", "source", "solver", *VARIED)}
                row |= {"error": order.error, "varied": varied, "to": hard[varied]}
                row |= {"calls": easy["calls"], "calls_to": hard["calls"]}
                row["ratio"] = hard["calls"] / easy["calls"]
                row["predicted"] = (hard[varied] / easy[varied]) ** getattr(order, varied)
                rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS)


def tables(needed: pd.DataFrame, table: pd.DataFrame) -> Iterator[Table]:
    """Yield the exponents, then the ratios for each of n, λ and ε."""
    for (dataset, source), measured in table.groupby(["dataset", "source"], sort=False):
        name = f"{style.dataset_name(str(dataset))}, {style.source_name(str(source))}"
        of_data = needed[(needed["dataset"] == dataset) & (needed["source"] == source)]
        yield _exponents(name, of_data, measured)
        for varied, rows in measured.groupby("varied", sort=False):
            changed = NAMES[str(varied)]
            yield _ratios(f"{name}: calls after a change of {changed} over those before", rows)


def _exponents(name: str, needed: pd.DataFrame, table: pd.DataFrame) -> Table:
    """Return the median of log ratio / log of what changed, beside the exponents of Table 1."""
    header = ["solver", "error", "calls in Table 1"]
    header += [f"exponent of {NAMES[varied]} (Table 1)" for varied in VARIED]
    lines = []
    for solver, rows in table.groupby("solver", sort=False):
        order = ORDERS[str(solver).partition(" ")[0]]
        cells = [f"{style.solver_label(str(solver))} (`{solver}`)", order.error, f"O({order.text})"]
        for varied in VARIED:
            mine = rows[rows["varied"] == varied]
            found = np.log(mine["ratio"]) / np.log(mine["to"] / mine[varied])
            cells.append(f"{number(found.median(), '.2f')} ({getattr(order, varied):g})")
        bound = needed.loc[needed["solver"] == solver, "bound"].max()
        lines.append([*cells, number(bound, ".2g")])
    header.append("largest error / proved bound")
    return Table(f"{name}: exponents", header, lines, words=3)


def _ratios(title: str, table: pd.DataFrame) -> Table:
    varied = table["varied"].iloc[0]
    others = [name for name in VARIED if name != varied]
    settings = table[[varied, "to", *others]].drop_duplicates().to_dict("records")
    header = ["solver"]
    for setting in settings:
        fixed = ", ".join(f"{NAMES[name]} {setting[name]:g}" for name in others)
        header.append(f"{setting[varied]:g} → {setting['to']:g} ({fixed})")
    lines = []
    for solver, rows in table.groupby("solver", sort=False):
        cells = [style.solver_label(str(solver))]
        for setting in settings:
            mine = rows[np.logical_and.reduce([rows[name] == setting[name] for name in setting])]
            cells.append(_cell(mine.iloc[0]) if len(mine) else NONE)
        lines.append(cells)
    return Table(title, header, lines)


def _cell(row: pd.Series) -> str:
    return f"{number(row['ratio'])} ({row['predicted']:.3g})"


def _outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    needed = calls(data.traces, data.best, data.gaps)
    table = ratios(needed)
    if len(table):
        title = "How the number of oracle calls grows with n, 1/λ and 1/ε"
        yield Output("rates", table, title, [beside(__file__)["rates"], *tables(needed, table)])


KIND = Kind("rates", Choices(("table",), "choice", "choices", gaps=True), _outputs)
