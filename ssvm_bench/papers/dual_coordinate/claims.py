"""The claims of the dual-coordinate paper (Ramanan 2013): those of ``claims.yaml``, measured.

Its batch algorithm is ``dcd`` with M = 0, sweeps over all terms alone; its online one,
``dcd_online`` with the schedule of the gap. What no run tells is read from ``bench.json``.
"""

from __future__ import annotations

from ssvm_bench.papers.bcfw_poster import measures as poster
from ssvm_bench.papers.cases import Runs
from ssvm_bench.papers.claim import Claim, Paper, Statements
from ssvm_bench.papers.dual_coordinate import measures as by
from ssvm_bench.results.words import percent, times

SAID = Statements(__file__)

SWEEPS = {"M": 0, "order": "random", "bound": "tracked"}
BATCH = Runs("dcd", SWEEPS, hot=False)
HOT = Runs("dcd", SWEEPS, hot=True)
TRUE_BOUND = Runs("dcd", {**SWEEPS, "bound": "true"}, hot=False)
SEQUENTIAL = Runs("dcd", {**SWEEPS, "order": "sequential"}, hot=False)

SCHEDULES = {
    "one_pass": "one step for each new example",
    "larank": "ten old examples for each new one",
    "mining": "hard-negative mining",
}
"""Schedules that the online gap is compared with: option → what a reader calls them."""

ONLINE = Runs("dcd_online", {"schedule": "gap"}, hot=False)
SSG = Runs("ssg")
SUBGRADIENT = (SSG, Runs("ssg_weighted"), Runs("ssg_tail"))

FIRST_SWEEP = "dcd / LIBLINEAR: a first sweep"
"""The row of the bench."""

ABOUT = 1.5
"""Factor within which a cost is about another one, or at which two is about reached."""

MOST = 0.9
"""Share from which on something is so as a rule, or on nearly all occasions."""

CHEAP = 0.5
"""Share of the cost from scratch up to which a hot start is cheap."""

STEADY = 4 / 3
"""Factor up to which what is kept has not grown from half of the examples to all of them."""

SELF_CHECKS = "self-checks"
BESIDE = {
    SELF_CHECKS: (
        "Theorems, true of every right implementation: no step of either algorithm lowers the dual."
    ),
}


def _schedule_claims(said: str, column: str, low: float) -> list[Claim]:
    """Return a claim for each schedule that the online gap's is compared with, by one cost."""
    claims = []
    for schedule, name in SCHEDULES.items():
        rival = Runs("dcd_online", {"schedule": schedule}, hot=False)
        measured = by.costlier_schedule(ONLINE, rival, column, low)
        claims.append(SAID.claim(said, measured, times, f"{said}_{schedule}", rival=name))
    return claims


_BATCH = [
    SAID.claim("first_sweep", by.on_bench(FIRST_SWEEP, ABOUT), times, factor=f"{ABOUT:g}"),
    SAID.claim("single_first", by.single_first(BATCH, MOST), percent, most=percent(MOST)),
    SAID.claim("tracked_faster", by.speedup(BATCH, TRUE_BOUND, ABOUT), times, factor=f"{ABOUT:g}"),
    SAID.claim("tracked_above", by.share_above(TRUE_BOUND, MOST), percent, most=percent(MOST)),
    SAID.claim("random_order", by.fewer_sweeps(BATCH, SEQUENTIAL), times),
    SAID.claim("hot_start", by.cost_of_hot_start(HOT, BATCH, CHEAP), times, share=percent(CHEAP)),
]
_ONLINE = [
    SAID.claim("one_pass", by.passes_to_tolerance(ONLINE)),
    SAID.claim("storage", by.growth_of_cache(ONLINE, STEADY), times, factor=f"{STEADY:.3g}"),
    *_schedule_claims("schedule", by.TIME, by.ABOVE_1),
    *_schedule_claims("calls", by.CALLS, 1.0),
]
_NO_TUNING = [
    SAID.claim("stable", poster.above_start(BATCH, SSG), times),
    SAID.claim(
        "ahead_of_ssg",
        poster.share_ahead(BATCH, SUBGRADIENT, MOST),
        percent,
        most=percent(MOST),
    ),
]
_THEOREMS = [
    SAID.claim("dual_batch", by.never_falls(BATCH), percent),
    SAID.claim("dual_online", by.never_falls(ONLINE), percent),
]

DUAL_COORDINATE = Paper(
    title="the dual-coordinate paper",
    file="claims-dual-coordinate",
    claims=(*_BATCH, *_ONLINE, *_NO_TUNING, *_THEOREMS),
    solvers=frozenset({"dcd_online"}),  # at the larger λ of paths, there are runs of dcd alone
    stands_for={},
    beside=BESIDE,
)
