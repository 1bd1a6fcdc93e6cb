"""The transduction paper (Laude et al. 2018): the claims of ``claims.yaml`` and their measures.

Repeats are runs on other draws of the data, splits or pictures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from ssvm_bench.claims.cases import Selection
from ssvm_bench.claims.claim import Claim
from ssvm_bench.claims.old import Statements, about, above, below
from ssvm_bench.claims.paper import Paper
from ssvm_bench.papers.transduction import accuracies, figures, tables
from ssvm_bench.papers.transduction import measures as by
from ssvm_bench.papers.transduction.measures import BASELINES, MOONS, PROPOSED, SETS, Spread
from ssvm_bench.results.words import number, percent

SAID = Statements(__file__)

MOST, LEAST = 0.05, 0.3
"""Most labels are right up to the first share of wrong ones; a method is stuck from the second."""

RISE, CLOSED, ENDED = 1e-10, 1e-3, 1e-3
"""Largest relative rise of L_ρ, gap to (27) and residual that count as zero."""

WITH_DELTA = Selection(PROPOSED, {"delta": 1e-3})
"""The runs to check theorems on: (18) holds in them, and all iterations are evaluated."""

AS_PRINTED = Selection(PROPOSED, by.SETTINGS)
FIXED = Selection(PROPOSED, {**by.SETTINGS, "rho": 1.0, "tau": 1.0})
"""Runs with the printed settings, and runs with a constant ρ."""

IN_TURN = Selection(by.ALTERNATING, {"start": "inductive"})


def _of_moons(name: str, solver: str, key: str = "", **ends: float) -> Claim:
    """Return a claim about the wrong labels of a solver on the moons."""
    words = {"baseline": BASELINES.get(solver, ""), "printed": percent(MOONS[solver])}
    ours = Selection(PROPOSED) if solver == by.ALTERNATING else None  # both minimise (5)
    return SAID.claim(name, by.errors(Selection(solver), ours), percent, key, **ends, words=words)


def _of_table_1(labeled: int, kernel: str) -> Iterator[Claim]:
    """Yield the claims about a kernel and a number of labels of Table 1."""
    ours, sdp = ({of: by.TABLE_1[of, labeled, kernel][k] for of in SETS} for k in (1, 0))
    ahead = {of: sdp[of] for of in SETS if ours[of].mean > sdp[of].mean}
    steadier = {of: sdp[of] for of in SETS if ours[of].deviation < sdp[of].deviation}
    words = {"labeled": f"{labeled}", "kernel": by.NAMES[kernel]}
    for name, measured, paper, low in (
        ("table_1", by.accuracy(ours, AS_PRINTED), ours, -math.inf),
        ("sdp", by.above(sdp, AS_PRINTED), ahead, above(0.0)),
        ("consistent", by.deviation(sdp, AS_PRINTED), steadier, -math.inf),
    ):
        key, only = f"{name}_{kernel}_{labeled}", _problem(labeled, kernel)
        claim = SAID.claim(name, measured, percent, key, low=low, words=words, only=only)
        yield claim._replace(paper={of: _spread(cell) for of, cell in paper.items()})


def _problem(labeled: int, kernel: str) -> dict[str, Any]:
    """Return the options of the problems with a kernel and a number of labels of Table 1."""
    oracle = {"kernel": kernel, "nu": by.WEIGHTS[kernel], "scaling": "unit", "balance": 0.1}
    named = {f"oracle.{name}": value for name, value in {**oracle, "ridge": 0.0}.items()}
    return {"dataset.labeled": labeled, **named}


def _of_objectives(name: str, labeled: int, *runs: Selection, **ends: float) -> Claim:
    """Return a claim about the ratio of the objectives of two kinds of runs."""
    words, only = {"labeled": f"{labeled}"}, _problem(labeled, "rbf")
    measured, key = by.objectives(*runs), f"{name}_{labeled}"
    return SAID.claim(name, measured, number, key, **ends, words=words, only=only)


def _spread(cell: Spread) -> str:
    return f"{100 * cell.mean:.4g} ± {100 * cell.deviation:.4g} %"


def _of_videos() -> Iterator[Claim]:
    """Yield the claims about videos, with the numbers of section 4.2."""
    words = {name: " / ".join(map("{:.4f}".format, of.values())) for name, of in by.VIDEOS.items()}
    words["lacking"] = percent(tables.LACKING)
    runs = Selection(PROPOSED), Selection("inductive")
    yield SAID.claim("video", tables.more_overlap(*runs), percent, words=words)
    yield SAID.claim("false_pixels", tables.fewer_false(*runs), percent)


def _theorem(name: str, measured: Any, high: float) -> Claim:
    only = {"solver.delta": WITH_DELTA.options["delta"]}
    return SAID.claim(name, measured, high=high, beside="theorems", only=only)


PAPER = Paper(
    folder=Path(__file__).parent,
    title="the transduction paper",
    kinds=(*tables.KINDS, accuracies.KIND, *figures.KINDS),
    file="claims-transduction",
    claims_=(
        _of_moons("recovers", PROPOSED, high=MOST),
        *(_of_moons("stuck", solver, f"stuck_{solver}", low=LEAST) for solver in BASELINES),
        *(
            claim
            for labeled, kernel in product((10, 100), by.KERNELS)
            for claim in _of_table_1(labeled, kernel)
        ),
        *(_of_objectives("adaptive", n, AS_PRINTED, FIXED, high=below(1)) for n in (10, 100)),
        *(_of_objectives("alternating", n, IN_TURN, AS_PRINTED, low=above(1)) for n in (10, 100)),
        SAID.claim(
            "scribbles",
            tables.more_overlap(Selection(PROPOSED), Selection("kernel_kmeans")),
            percent,
        ),
        *_of_videos(),
        _theorem("falls", by.largest_rise(WITH_DELTA), RISE),
        _theorem("feasible", by.residual_left(WITH_DELTA), ENDED),
        _theorem("supervised", by.supervised_gap(WITH_DELTA), CLOSED),
    ),
    solvers=frozenset({PROPOSED}),
    draws=by.DRAWS,
    **about(__file__),
)
