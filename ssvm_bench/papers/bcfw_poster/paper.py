"""The BCFW poster (Jaggi et al., ICML 2013): each claim, its measure and its range.

The texts are in ``claims.yaml``; a claim holds if the median over the repeats is in its range.

They are about OCR at three λ, in passes and calls of the oracle. The poster's cutting-plane method
is read as 1-slack without a cache, as in BMRM; comparisons with others, in seconds, and
self-checks, are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.claims.cases import Runs
from ssvm_bench.claims.claim import Claim, Statements, above
from ssvm_bench.claims.comparisons import above_start, share_ahead
from ssvm_bench.claims.paper import Paper, about
from ssvm_bench.papers.bcfw_poster import measures as by
from ssvm_bench.papers.bcfw_poster import rates, theorems
from ssvm_bench.results.words import NONE, percent, times

SAID, ABOUT = Statements(__file__), about(__file__)

BCFW = Runs("bcfw", {"step": "line_search"})
BCFW_FIXED = Runs("bcfw", {"step": "2n/(k+2n)"})
BCFW_AVG = Runs("bcfw_avg")
BCFW_TAIL = Runs("bcfw_tail")
INEXACT = Runs("bcfw_inexact", {"falls": False})
INEXACT_FALLING = Runs("bcfw_inexact", {"falls": True})
SSG, SSG_WEIGHTED, SSG_TAIL = Runs("ssg"), Runs("ssg_weighted"), Runs("ssg_tail")
FW = Runs("fw")
ONE_SLACK = Runs("one_slack", {"cache": 0})
CACHED = Runs("one_slack", {"cache": 5})
N_SLACK = Runs("cutting_plane")


class Ours(NamedTuple):
    """A form of BCFW, and SSG in the same form."""

    key: str
    name: str
    runs: Runs
    ssg: Runs


OURS = (
    Ours("bcfw", "BCFW", BCFW, SSG),
    Ours("bcfw_avg", "BCFW-avg", BCFW_AVG, SSG_WEIGHTED),
    Ours("bcfw_tail", "BCFW-tavg", BCFW_TAIL, SSG_TAIL),
)


class Family(NamedTuple):
    """Baselines that are taken for one: the lowest of their curves counts."""

    key: str
    name: str
    members: Sequence[Runs]


FAMILIES = (
    Family("eg", "EG", (Runs("eg"),)),
    Family("fw", "batch Frank–Wolfe", (FW,)),
    Family("cutting_plane", "the cutting-plane method (1-slack, no cache)", (ONE_SLACK,)),
)
OTHERS = (
    Family("cached", "1-slack with a cache of constraints", (CACHED,)),
    Family("n_slack", "n-slack cutting planes", (N_SLACK,)),
)
"""Baselines that the poster's words do not exclude, and that we do not take for its own."""

ANY_SSG = Family("any_ssg", "SSG, averaged or not", (SSG, SSG_WEIGHTED, SSG_TAIL))

SELF_CHECKS, OTHER_BASELINES, UNLIKE = "self-checks", "other rivals", "unlike averages"

MOST = 0.9
"""Share from which on one solver is ahead of another."""

_LEVELS = ", ".join(f"{level:g}" for level in by.LEVELS)

FACTOR = 4 / 3
"""Within it, two numbers of calls are the same; below √2, so that 1 and 2 exclude one another."""

TWICE = 2.0
"""Up to it, two costs are of one order: that of a call of the oracle, and work beside it."""

AN_ORDER = 10.0
"""A gap within it tells the suboptimality."""


def _compared(ours: Ours, family: Family) -> Iterator[Claim]:
    """Yield the claims that one of ours is ahead of a family."""
    theirs = f"the {'lowest ' * (len(family.members) > 1)}median of {family.name}"
    words = {"ours": ours.name, "family": family.name, "theirs": theirs, "levels": _LEVELS}
    ahead = share_ahead(ours.runs, family.members)
    passes = by.sooner(ours.runs, family.members)
    pair = f"{ours.key}_{family.key}"
    yield SAID.claim("ahead", ahead, percent, f"ahead_{pair}", low=MOST, words=words)
    yield SAID.claim("passes", passes, times, f"passes_{pair}", low=above(1), words=words)


def _like(ours: Ours) -> Family:
    """Return SSG in the same form."""
    return Family("ssg", ABOUT["looks"][ours.ssg.solver].label, (ours.ssg,))


def _beside(kind: str, ours: Sequence[Ours], families: Sequence[Family]) -> Iterator[Claim]:
    """Yield comparisons that are not counted."""
    for one, family in product(ours, families):
        for claim in _compared(one, family):
            yield claim._replace(beside=kind, paper=dict.fromkeys(claim.paper, NONE))


def _in_seconds(ours: Ours) -> Iterator[Claim]:
    """Yield the claims that one of ours takes less time than SSG in the same form and others."""
    others = OTHERS if ours.runs in (BCFW, BCFW_AVG) else ()
    for family in (_like(ours), *FAMILIES, *others):
        words = {"ours": ours.name, "family": family.name, "theirs": f"the median of {family.name}"}
        measured = by.sooner(ours.runs, family.members, "time")
        key = f"seconds_{ours.key}_{family.key}"
        claim = SAID.claim(
            "seconds", measured, times, key, low=above(1), words={**words, "levels": _LEVELS}
        )
        yield claim._replace(beside="in seconds")


def _size_claim(key: str, name: str, runs: Runs) -> Claim:
    measured = by.growth_with_n(runs)
    return SAID.claim("size", measured, times, f"size_{key}", 1 / FACTOR, FACTOR, {"solver": name})


def _gap_claims(key: str, name: str, runs: Runs) -> Iterator[Claim]:
    certified, tight = by.certified(runs), by.gap_over_suboptimality(runs)
    words = {"solver": name}
    yield SAID.claim("certificate", certified, percent, f"certificate_{key}", words=words)
    yield SAID.claim("tight", tight, times, f"tight_{key}", high=AN_ORDER, words=words)


CLAIMS = (
    *(
        claim
        for ours in OURS
        for family in (_like(ours), *FAMILIES)
        for claim in _compared(ours, family)
    ),
    SAID.claim("start", above_start(BCFW, SSG), times),
    SAID.claim("step", share_ahead(BCFW, [BCFW_FIXED]), percent, low=0.5),
    SAID.claim("call", by.time_of_a_call(BCFW, SSG), times, high=TWICE),
    SAID.claim("inexact", by.gap_over_error(INEXACT), times),
    SAID.claim("inexact_calls", by.calls_over(INEXACT_FALLING, BCFW), times, high=FACTOR),
    SAID.claim("inexact_rate", theorems.over_bound(theorems.INEXACT)),
    SAID.claim("sparse", by.planes_of_calls(BCFW_TAIL), percent),
    SAID.claim("rate_bcfw", theorems.over_bound(theorems.BCFW)),
    SAID.claim("rate_ssg", theorems.over_bound(theorems.SSG)),
    SAID.claim("rate_fw", theorems.over_bound(theorems.FW)),
    SAID.claim("rate_one_slack", theorems.over_bound(theorems.ONE_SLACK)),
    _size_claim("bcfw", "BCFW", BCFW),
    _size_claim("ssg", "SSG", SSG),
    SAID.claim("size_fw", theorems.over_bound_on_both(theorems.FW)),
    SAID.claim("size_one_slack", theorems.over_bound_on_both(theorems.ONE_SLACK)),
    *_gap_claims("bcfw", "BCFW", BCFW),
    *_gap_claims("fw", "batch Frank–Wolfe", FW),
    *_beside("unlike averages", OURS, [ANY_SSG]),
    *_beside("other rivals", OURS[:2], OTHERS),
    *(claim for ours in OURS for claim in _in_seconds(ours)),
)

PAPER = Paper(
    folder=Path(__file__).parent,
    title="the BCFW poster",
    short="poster",
    kinds=(rates.KIND,),
    file="claims-poster",
    claims=CLAIMS,
    solvers=frozenset({runs.solver for _, _, runs, _ in OURS} | {INEXACT.solver, FW.solver}),
    beside_runs_of=frozenset(
        runs.solver for family in (ANY_SSG, *FAMILIES, *OTHERS) for runs in family.members
    ),
    **ABOUT,
)
