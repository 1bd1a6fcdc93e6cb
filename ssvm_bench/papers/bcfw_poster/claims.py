"""The statements of the BCFW poster (Jaggi et al., ICML 2013), and when each of them holds.

They are about OCR at three λ, in passes and calls of the oracle. Where the poster gives a word and
no number ("outperforming", "efficient"), or an order O(·) and no constant, the range is ours; it is
part of the claim's text about how it is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ssvm_bench.papers.bcfw_poster import measures as by
from ssvm_bench.papers.bcfw_poster.measures import Quantity, Runs
from ssvm_bench.papers.claim import Claim, Paper
from ssvm_bench.results.words import percent, times

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
    return [
        Claim(
            f"ahead_{key}_{family.key}",
            "Contributions, Experimental Results",
            f"At equal numbers of passes, {name} has a lower primal suboptimality than "
            f"{family.name}.",
            f"share of the numbers of passes ≥ 1 at which {name} was evaluated where its P − best "
            f"dual is below {theirs} there (between two evaluations, linear in its logarithm); "
            f"holds at ≥ {percent(MOST)}",
            {"ocr": "ahead"},
            by.share_ahead(ours, family.members, MOST),
            percent,
        ),
        Claim(
            f"passes_{key}_{family.key}",
            "Contributions, Experimental Results",
            f"{name} needs fewer passes than {family.name} to the same primal suboptimality.",
            f"passes to the smallest (P − best dual)/best dual of {_LEVELS} that every {name} "
            f"repeat reaches, and after its first pass, {theirs} over {name}; holds above 1, and "
            "where no rival gets there",
            {"ocr": "faster"},
            by.fewer_passes(ours, family.members),
            times,
        ),
    ]


_NO_TUNING = [
    Claim(
        "start",
        "Relation with Stochastic Subgradient",
        "With line search, BCFW is robust: it never gets worse than its start.",
        "largest evaluated P(w) after iteration 0 over P(0); holds at ≤ 1",
        {"ocr": "more robust than SSG"},
        by.above_start(BCFW, SSG),
        times,
    ),
    Claim(
        "step",
        "Frank–Wolfe, Algorithm 4",
        "BCFW needs no tuning: with line search it is at least as good as with γ = 2n/(k + 2n).",
        "share of the numbers of passes ≥ 1 at which BCFW with line search was evaluated where its "
        "P − best dual is below the median of BCFW with 2n/(k + 2n); holds at ≥ 50 %",
        {"ocr": "optimal in closed form"},
        by.share_ahead(BCFW, [BCFW_FIXED], 0.5),
        percent,
    ),
]


def _rate_claim(key: str, name: str, runs: Runs, quantity: Quantity) -> Claim:
    error = {"gap": "duality gap", "primal": "primal error"}[quantity]
    measured = {"gap": "P − F", "primal": "P − best dual"}[quantity]
    return Claim(
        f"rate_{key}",
        "Table 1",
        f"The {error} of {name} is O(1/k) after k calls of the oracle.",
        f"least-squares slope of log({measured}) against log(calls), over the second half of a run "
        f"in log(calls); holds at ≤ −{1 - TOLERANCE:g}",
        {"ocr": "O(1/k)"},
        by.slope(runs, quantity, TOLERANCE - 1),
    )


def _size_claim(key: str, name: str, runs: Runs, proportional: bool) -> Claim:
    to = "the ratio of their numbers" if proportional else "1"
    said = "grows in proportion to n" if proportional else "does not depend on n"
    return Claim(
        f"size_{key}",
        "Table 1",
        f"At fixed λ, the number of calls that {name} needs to an error {said}.",
        "calls to the smallest P − best dual that all runs reach, on all examples over those on "
        f"half of them; holds within a factor {FACTOR:.3g} of {to}",
        {"ocr": "∝ n" if proportional else "independent of n"},
        by.growth_with_n(runs, FACTOR, proportional),
        times,
        lam=0.01,
    )


def _gap_claims(key: str, name: str, runs: Runs) -> list[Claim]:
    return [
        Claim(
            f"certificate_{key}",
            "Frank–Wolfe",
            f"The duality gap of {name} is a certificate: it bounds the suboptimality.",
            "share of the evaluated iterations at which P − F is at least P minus the lowest "
            "primal value of any run; holds at 100 %",
            {"ocr": "guarantee"},
            by.certified(runs),
            percent,
        ),
        Claim(
            f"tight_{key}",
            "Frank–Wolfe",
            f"The duality gap of {name} is an efficient certificate: it is of the suboptimality's "
            "order.",
            "largest (P − F)/(P − best dual) of the evaluated iterations from the first pass on, "
            "as long as the best dual is near enough to the optimum to tell; holds at ≤ "
            f"{AN_ORDER:g}",
            {"ocr": "efficient"},
            by.gap_over_suboptimality(runs, AN_ORDER),
            times,
        ),
    ]


_RIVALS = [claim for key in OURS for family in FAMILIES for claim in _rival_claims(key, family)]
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
