"""The claims of the BCFW poster (Jaggi et al., ICML 2013): those of ``claims.yaml``, measured.

They are about OCR at three λ, in passes and calls of the oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ssvm_bench.papers.bcfw_poster import measures as by
from ssvm_bench.papers.bcfw_poster.measures import Quantity, Runs
from ssvm_bench.papers.claim import Claim, Paper, Statements
from ssvm_bench.results.words import percent, times

SAID = Statements(__file__)

BCFW = Runs("bcfw", {"step": "line_search"})
BCFW_FIXED = Runs("bcfw", {"step": "2n/(k+2n)"})
BCFW_AVG = Runs("bcfw_avg")
SSG = Runs("ssg")
FW = Runs("fw")
ONE_SLACK = Runs("one_slack")

OURS = {"bcfw": ("BCFW", BCFW), "bcfw_avg": ("BCFW-avg", BCFW_AVG)}


class Family(NamedTuple):
    """Rivals that are taken for one: the lowest of their curves counts."""

    key: str
    name: str
    members: Sequence[Runs]


FAMILIES = (
    Family("ssg", "SSG", (SSG, Runs("ssg_weighted"), Runs("ssg_tail"))),
    Family("eg", "EG", (Runs("eg"),)),
    Family("fw", "batch Frank–Wolfe", (FW,)),
    Family("cutting_plane", "the cutting-plane methods", (ONE_SLACK, Runs("cutting_plane"))),
)

MOST = 0.9
"""Share from which on one solver is ahead of another."""

TOLERANCE = 0.2
"""What a slope may be above −1."""

_LEVELS = ", ".join(f"{level:g}" for level in by.LEVELS)

FACTOR = 4 / 3
"""Within it, two numbers of calls are the same; below √2, so that 1 and 2 exclude one another."""

AN_ORDER = 10.0
"""A gap within it tells the suboptimality."""


def _rival_claims(key: str, family: Family) -> list[Claim]:
    name, ours = OURS[key]
    theirs = f"the {'lowest ' * (len(family.members) > 1)}median of {family.name}"
    words = {"ours": name, "family": family.name, "theirs": theirs}
    words |= {"most": percent(MOST), "levels": _LEVELS}
    measures = {
        "ahead": (by.share_ahead(ours, family.members, MOST), percent),
        "passes": (by.fewer_passes(ours, family.members), times),
    }
    return [
        SAID.claim(what, measure, show, f"{what}_{key}_{family.key}", **words)
        for what, (measure, show) in measures.items()
    ]


def _rate_claim(key: str, name: str, runs: Runs, quantity: Quantity) -> Claim:
    of_gap = quantity == "gap"
    return SAID.claim(
        "rate",
        by.slope(runs, quantity, TOLERANCE - 1),
        key=f"rate_{key}",
        solver=name,
        error="duality gap" if of_gap else "primal error",
        difference="P − F" if of_gap else "P − best dual",
        slope=f"−{1 - TOLERANCE:g}",
    )


def _size_claim(key: str, name: str, runs: Runs, proportional: bool) -> Claim:
    return SAID.claim(
        "size",
        by.growth_with_n(runs, FACTOR, proportional),
        times,
        key=f"size_{key}",
        solver=name,
        growth="grows in proportion to n" if proportional else "does not depend on n",
        ratio="the ratio of their numbers" if proportional else "1",
        factor=f"{FACTOR:.3g}",
        order="∝ n" if proportional else "independent of n",
    )


def _gap_claims(key: str, name: str, runs: Runs) -> list[Claim]:
    measures = {
        "certificate": (by.certified(runs), percent),
        "tight": (by.gap_over_suboptimality(runs, AN_ORDER), times),
    }
    words = {"solver": name, "most": f"{AN_ORDER:g}"}
    return [
        SAID.claim(what, measure, show, f"{what}_{key}", **words)
        for what, (measure, show) in measures.items()
    ]


_RIVALS = [claim for key in OURS for family in FAMILIES for claim in _rival_claims(key, family)]
_NO_TUNING = [
    SAID.claim("start", by.above_start(BCFW, SSG), times),
    SAID.claim("step", by.share_ahead(BCFW, [BCFW_FIXED], 0.5), percent),
]
_TABLE = [
    _rate_claim("bcfw", "BCFW", BCFW, "gap"),
    _rate_claim("ssg", "SSG", SSG, "primal"),
    _rate_claim("fw", "batch Frank–Wolfe", FW, "gap"),
    _rate_claim("one_slack", "1-slack cutting plane", ONE_SLACK, "gap"),
    _size_claim("bcfw", "BCFW", BCFW, proportional=False),
    _size_claim("ssg", "SSG", SSG, proportional=False),
    _size_claim("fw", "batch Frank–Wolfe", FW, proportional=True),
    _size_claim("one_slack", "1-slack cutting plane", ONE_SLACK, proportional=True),
]
_GAPS = [*_gap_claims("bcfw", "BCFW", BCFW), *_gap_claims("fw", "batch Frank–Wolfe", FW)]

POSTER = Paper(
    title="the BCFW poster",
    file="claims-poster",
    claims=(*_RIVALS, *_NO_TUNING, *_TABLE, *_GAPS),
    solvers=frozenset(runs.solver for family in FAMILIES for runs in family.members),
    stands_for={},
)
