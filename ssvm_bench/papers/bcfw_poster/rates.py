"""How the calls of the oracle grow with n, 1/λ and 1/ε, beside Table 1 of the poster.

Table 1 bounds the oracle calls to an error ε by C nᵃ λᵇ εᶜ. Each method's error is the one that
its theorem bounds. Here it is computed from traces and the best values known on the problem
instance, P⋆ and F⋆:

===============  ==========================================================
duality gap      P(w) − F
primal error     P(w) − F⋆
dual error       P⋆ − F
saddle gap       P(w) − the dual value within the ball (``saddle_dual``)
===============  ==========================================================

The optimum is between F⋆ and P⋆, so an error may come out too large, but never too small. The calls
to ε are read off where the curve first crosses ε. A *ratio* compares the calls at two settings that
differ in one of n, λ and ε; beside it is what the order predicts: (n'/n)ᵃ, (λ'/λ)ᵇ, (ε'/ε)ᶜ. Orders
bound calls, not ratios: from a better start than the worst, calls may rise faster than their bound.
So no claim is judged by ratios. Where a trace has the theorem's bound for its own run
(``gap_bound``), no error may be above that bound.

Calls within the first pass are not compared: the curve there is only the line from w = 0.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Table, beside
from ssvm_bench.figures.kind import FigureData, Kind, Output
from ssvm_bench.results.curves import crossing
from ssvm_bench.results.table import INSTANCE_COLUMNS as INSTANCE
from ssvm_bench.results.table import Run, Runs
from ssvm_bench.results.words import NONE, number

VARIED = ("n", "lam", "eps")
NAMES = {"n": "n", "lam": "λ", "eps": "ε"}
HARDER = {"n": 1.0, "lam": -1.0, "eps": -1.0}
"""The sign of the change that takes more calls."""

ERRORS: dict[str, Callable[[Run], np.ndarray]] = {
    "duality gap": lambda run: run["primal"] - run["dual"],
    "primal error": lambda run: run["suboptimality"],
    "dual error": lambda run: run["dual_suboptimality"],
    "saddle gap": lambda run: run["primal"] - run["saddle_dual"],
}
"""Name of an error → its value in each row of a run."""

EPS = (0.1, 0.05, 0.02, 0.01)
"""The errors ε of an experiment that names none."""


class Order(NamedTuple):
    """A row of Table 1: the error that is bounded, the order as text, and its exponents."""

    error: str
    text: str
    n: float
    lam: float
    eps: float


ORDERS = {name: Order(*of) for name, of in beside(__file__, "orders").items()}
"""The rows of Table 1, and the poster's rate of batch Frank–Wolfe."""

COLUMNS = [
    *("dataset", "source", "solver", "error", "varied", "n", "lam", "eps"),
    *("to", "calls", "calls_to", "ratio", "predicted"),
]


def calls(runs: Runs, errors: Sequence[float]) -> pd.DataFrame:
    """Return the calls of each solver of Table 1 to each error on each problem instance.

    Returns
    -------
    DataFrame
        ``dataset, source, n, lam, fingerprint, data, solver, eps, calls, bound``: ``data`` says
        of which data the examples are the first n; ``calls`` is the median over the repeats, NaN
        if it is infinite or within the first pass; ``bound`` is the largest error / ``gap_bound``
        on a row of any repeat, NaN if the trace has none.
    """
    rows = []
    for (_, label), repeats in runs.curves().items():
        order = ORDERS.get(repeats[0].solver)
        if order is None:
            continue
        curves = [(run, ERRORS[order.error](run)) for run in repeats]
        data = {**repeats[0].config.get("dataset", {}), "n_samples": None}
        row = {**repeats[0].instance, "solver": label}
        row["data"] = json.dumps(data, sort_keys=True, default=str)
        row["bound"] = max(_over_bound(run, error) for run, error in curves)
        for eps in errors:
            needed = [crossing(run["oracle_calls"], error, eps) for run, error in curves]
            median = float(np.median(needed))
            known = row["n"] <= median < math.inf
            rows.append({**row, "eps": eps, "calls": median if known else math.nan})
    columns = [*INSTANCE, "data", "solver", "bound", "eps", "calls"]
    return pd.DataFrame(rows, columns=columns)


def _over_bound(run: Run, error: np.ndarray) -> float:
    if "gap_bound" not in run or np.isnan(run["gap_bound"]).all():
        return math.nan
    return float(np.nanmax(error / run["gap_bound"]))


def ratios(needed: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios of calls between neighbouring settings: ``COLUMNS``.

    ``n, lam, eps`` are the easier of two settings, and ``to`` is the value of ``varied`` in the
    harder one. ``calls`` and ``calls_to`` are the calls at the easier and at the harder one.
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
    """Return the measured exponents, medians of log ratio / log change, beside those of Table 1."""
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
            of = [f"{number(row['ratio'])} ({row['predicted']:.3g})" for _, row in mine.iterrows()]
            cells.append(of[0] if of else NONE)
        lines.append(cells)
    return Table(title, header, lines)


def _outputs(data: FigureData, _: Sequence[str]) -> Iterator[Output]:
    needed = calls(data.runs, data.gaps or EPS)
    table = ratios(needed)
    if len(table):
        title = "How the number of oracle calls grows with n, 1/λ and 1/ε"
        yield Output("rates", table, title, [beside(__file__)["rates"], *tables(needed, table)])


KIND = Kind("rates", Choices(("table",), "choice", "choices", gaps=True), _outputs)
