"""What the bundle-method report says of its methods in section 4.4, judged by `costs`'s table.

Where there are runs with both rules of accepting a point, ``accept=sufficient`` (Algorithm 2) and
``accept=always`` (the authors' program), a claim is judged by each.

A claim about all λ holds if it holds at each of them, and does not hold if it fails at one. Numbers
that are only known to lie in a range are compared where that suffices. The statements are in
``claims.yaml``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from ssvm_bench.claims.claim import Measured, Statements, UnmeasurableError, compared
from ssvm_bench.papers.bmrm import bundle_runs, costs
from ssvm_bench.results.words import NONE, percent
from ssvm_bench.solvers.bundle.bmrm import ACCEPT

SAID = Statements(__file__)

FLUCTUATES = 0.1
"""Share of iterations in which the primal of a method that fluctuates rises, at least."""

HARDLY = 0.5
"""The same share of one that hardly does, at most so many times as large."""

Row = dict[str, Any]


def rules(block: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows to judge by, for each rule of accepting a point that there are runs with."""
    found = [f"accept={rule}" for rule in ACCEPT if f"accept={rule}" in set(block["options"])]
    return {
        rule: block[block["options"].isin(["", rule])].assign(options="") for rule in found
    } or {"": block}


def _runs(block: pd.DataFrame, solver: str, P: int = 1) -> dict[float, Row]:
    """Return the report's λ → row of a method, from the largest λ."""
    rows: list[Any] = block.to_dict("records")
    mine = [row for row in rows if (row["solver"].split(" ")[0], row["P"]) == (solver, P)]
    name = bundle_runs.Method(solver, P).title
    if not mine:
        raise UnmeasurableError(f"no finished runs of {name}")
    if any(row["options"] for row in mine):
        raise UnmeasurableError(f"runs of {name} differ in more than the seed")
    return {row["lam_n"]: row for row in mine}


def _common(block: pd.DataFrame, *methods: tuple[str, int]) -> dict[float, list[Row]]:
    """Return the report's λ → rows of some methods, where all of them have runs."""
    rows = [_runs(block, *method) for method in methods]
    common = [lam for lam in rows[0] if all(lam in of for of in rows)]
    if not common:
        raise UnmeasurableError("no λ at which all of these methods have runs")
    return {lam: [of[lam] for of in rows] for lam in common}


def _all(judged: Sequence[bool | None]) -> bool | None:
    """Return whether all hold: false if one fails, else None if one is not known."""
    if False in judged:
        return False
    return None if None in judged else True


def _fewer_iterations(block: pd.DataFrame) -> Measured:
    common = _common(block, ("prox_bmrm", 1), ("bmrm", 1))
    lam = min(common)
    prox, plain = (costs.of(row, "iterations") for row in common[lam])
    text = " against ".join(each.text("{:.0f}".format) for each in (prox, plain))
    return compared(prox.below(plain), f"{text}, at λ = {lam:g}")


def _growing_speedup(block: pd.DataFrame) -> Measured:
    common = _common(block, ("prox_bmrm", 1), ("bmrm", 1))
    if len(common) < 2:
        raise UnmeasurableError("both methods have runs at one λ only")
    found = {lam: costs.of(prox, "speedup") for lam, (prox, _) in common.items()}
    holds = _all([one.below(next_) for one, next_ in pairwise(found.values())])
    shown = {lam: one.text("{:.2g}".format) for lam, one in found.items()}
    return compared(holds, _listed(shown))


def _more_planes_faster(block: pd.DataFrame) -> Measured:
    common = _common(block, ("prox_p_bmrm", 16), ("prox_bmrm", 1))
    seconds = {lam: [costs.of(row, "seconds") for row in rows] for lam, rows in common.items()}
    several, one = seconds[min(seconds)]
    ratios = {lam: one.over(several) for lam, (several, one) in seconds.items()}
    shown = {lam: ratio.text("{:.2g}×".format) for lam, ratio in ratios.items()}
    return compared(several.below(one), _listed(shown))


def _fewer_with_planes(block: pd.DataFrame) -> Measured:
    several = block["solver"].str.partition(" ")[0] == "p_bmrm"
    counts = [1, *sorted(set(block.loc[several, "P"]))]
    if len(counts) == 1:
        raise UnmeasurableError("no finished runs of P-BMRM")
    of_count = {P: _runs(block, "p_bmrm" if P > 1 else "bmrm", P) for P in counts}
    holds, texts = [], {}
    for lam in of_count[1]:
        found = [costs.of(rows[lam], "iterations") for rows in of_count.values() if lam in rows]
        holds += [later.below(one) for one, later in pairwise(found)]
        texts[lam] = " → ".join(
            costs.of(rows[lam], "iterations").text("{:.0f}".format) if lam in rows else NONE
            for rows in of_count.values()
        )
    planes = ", ".join(str(P) for P in counts)
    return compared(_all(holds), f"P = {planes}; {_listed(texts)}")


def _fluctuates(block: pd.DataFrame) -> Measured:
    common = _common(block, ("prox_bmrm", 1), ("bmrm", 1))
    holds, texts = [], {}
    for lam, (prox, plain) in common.items():
        if pd.isna([prox["rises"], plain["rises"]]).any():
            raise UnmeasurableError("a run does not say how often its primal rises")
        high, low = plain["rises"], prox["rises"]
        holds.append(bool(high >= FLUCTUATES and low <= HARDLY * high))
        texts[lam] = f"{percent(low)} against {percent(high)}"
    return compared(_all(holds), _listed(texts))


def _planes_by_data(table: pd.DataFrame) -> Measured:
    ratios = {}
    for name, block in table.groupby("dataset", sort=False):
        common = _common(block, ("prox_bmrm", 1), ("prox_p_bmrm", 16))
        one, several = (costs.of(row, "seconds") for row in common[min(common)])
        ratios[str(name)] = one.over(several)
    missing = {"plates", "mnist", "landmarks"} - set(ratios)
    if missing:
        raise UnmeasurableError(f"no runs on {' and '.join(sorted(missing))}")
    holds = _all(
        [
            ratios["mnist"].below(ratios["plates"]),
            ratios["landmarks"].below(ratios["plates"]),
            ratios["landmarks"].below(ratios["mnist"]),
        ]
    )
    shown = [f"{name}: {ratio.text('{:.2g}×'.format)}" for name, ratio in ratios.items()]
    return compared(holds, ", ".join(shown))


def _listed(texts: dict[float, str]) -> str:
    return ", ".join(f"λ = {lam:g}: {text}" for lam, text in texts.items())


CLAIMS = (
    SAID.claim("fewer_iterations", _fewer_iterations),
    SAID.claim("growing_speedup", _growing_speedup),
    SAID.claim("more_planes_faster", _more_planes_faster),
    SAID.claim("fewer_with_planes", _fewer_with_planes),
    SAID.claim("fluctuates", _fluctuates, share=percent(FLUCTUATES), part=f"{HARDLY:g}"),
)

ACROSS = (SAID.claim("planes_by_data", _planes_by_data),)
"""Judged by all benchmarks together."""
