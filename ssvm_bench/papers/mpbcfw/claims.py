"""The claims of the MP-BCFW paper's sections 4.1 and 4.2: those of ``claims.yaml``, measured."""

from __future__ import annotations

import math

import numpy as np

from ssvm_bench.figures.style import solver_label
from ssvm_bench.papers import question
from ssvm_bench.papers.claim import Claim, Paper, Statements
from ssvm_bench.papers.mpbcfw import costs, selection
from ssvm_bench.papers.mpbcfw import measures as by
from ssvm_bench.results.words import percent, seconds, times

HORSES = "horseseg"
STANDS_FOR = {"weizmann": HORSES}
IMAGES = (HORSES, "stanford", *STANDS_FOR)
BCFW_SHARES = {**dict.fromkeys(IMAGES, (0.94, 1.0)), "usps": (0.05, 0.25), "ocr": (0.6, 0.8)}
MPBCFW_SHARES = dict.fromkeys(IMAGES, (0.0, math.nextafter(0.25, 0)))

SUBSTANTIALLY = 2.0
"""Factor of what is substantially faster, and of slow growth against quick."""

SAID = Statements(__file__)


def _of_pair(pair: str) -> list[Claim]:
    single, multi = map(solver_label, by.PAIRS[pair])
    words = {"single": single, "multi": multi}
    words["always"] = "always" if pair == "plain" else "improves"
    measures = {
        "below": (by.share_below(pair), percent),
        "fewer": (by.to_gap(pair, "iteration", "fewer"), times),
        "gain": (by.gain_over_usps(pair), times),
        "faster": (by.to_gap(pair, "time", "half"), times),
        "similar": (by.to_gap(pair, "time", "similar"), times),
        "not_slower": (by.to_gap(pair, "time", "not slower"), times),
        "not_faster": (by.to_gap(pair, "time", "not faster"), times),
    }
    return [
        SAID.claim(name, measure, show, f"{name}_{pair}", **words)
        for name, (measure, show) in measures.items()
    ]


CLAIMS = (
    *(claim for claims in zip(*map(_of_pair, by.PAIRS), strict=True) for claim in claims),
    SAID.claim("share_bcfw", by.oracle_share("bcfw", BCFW_SHARES), percent),
    SAID.claim("share_mpbcfw", by.oracle_share("mpbcfw", MPBCFW_SHARES), percent),
    SAID.claim("call", by.call_time(), seconds),
    SAID.claim(
        "planes_small", selection.of_planes(lambda _, planes: float(planes.max()), high=5.0)
    ),
    SAID.claim(
        "passes_small",
        selection.of_passes(
            lambda series: float(np.quantile(series, 0.9)), high=math.nextafter(10.0, 0)
        ),
    ),
    SAID.claim("planes_fall", selection.of_planes(selection.end_over_peak, high=0.9)),
    SAID.claim(
        "passes_ocr", selection.of_passes(lambda series: float(np.median(series)), 10.0, 15.0)
    ),
    SAID.claim("planes_low", selection.of_planes(selection.end_over_peak, high=0.5)),
    SAID.claim("planes_grow", selection.of_planes(selection.end_over_peak, low=0.9)),
    SAID.claim("planes_stable", selection.of_planes(selection.late_change, high=0.1), percent),
    SAID.claim(
        "passes_hundreds", selection.of_passes(lambda series: float(series.max()), low=200.0)
    ),
    SAID.claim(
        "passes_slowly", selection.later_than_on((HORSES, *STANDS_FOR), low=SUBSTANTIALLY), times
    ),
)

MPBCFW = Paper(
    title="the MP-BCFW paper",
    file="claims",
    claims=CLAIMS,
    solvers=frozenset({"mpbcfw", "mpbcfw_avg"}),
    stands_for=STANDS_FOR,
    costs=costs.read,
    derivation=costs.DERIVATION,
    questions=question.read(__file__),
)
