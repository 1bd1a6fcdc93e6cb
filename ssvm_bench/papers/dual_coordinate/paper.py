"""The dual-coordinate paper (Ramanan 2013): its claims, those of ``claims.yaml``, measured.

Its batch algorithm is ``dcd`` with M = 0, sweeps over all terms alone; its online one,
``dcd_online`` with the schedule of the gap. What no run tells is read from ``bench.json``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ssvm_bench.claims.cases import Runs
from ssvm_bench.claims.claim import Claim, Statements, above
from ssvm_bench.claims.comparisons import above_start, share_ahead
from ssvm_bench.claims.paper import Paper
from ssvm_bench.figures.style import Look
from ssvm_bench.papers.dual_coordinate import figures
from ssvm_bench.papers.dual_coordinate import measures as by
from ssvm_bench.papers.dual_coordinate.measures import BATCH, SEQUENTIAL, TRUE_BOUND, WARM
from ssvm_bench.results.words import percent, times

SAID = Statements(__file__)

SCHEDULES = {
    "one_pass": "one step for each new example",
    "larank": "ten old examples for each new one",
    "mining": "hard-negative mining",
}
"""Schedules that the online gap is compared with: option → what a reader calls them."""

ONLINE = Runs("dcd_online", {"schedule": "gap"}, warm_start=False)
SSG = Runs("ssg")
SUBGRADIENT = (SSG, Runs("ssg_weighted"), Runs("ssg_tail"))

FIRST_SWEEP = "dcd / LIBLINEAR: a first sweep"
"""The row of the bench."""

ABOUT = 1.5
"""Factor within which a cost is about another one, or at which two is about reached."""

MOST = 0.9
"""Share from which on something is so as a rule, or on nearly all occasions."""

STEADY = 4 / 3
"""Factor up to which what is kept has not grown from half of the examples to all of them."""

SELF_CHECKS = "self-checks"
BESIDE = {
    SELF_CHECKS: (
        "Theorems, true of every right implementation: no step of either algorithm lowers the dual."
    ),
}


def _schedule_claims(said: str, cost: str, low: float) -> Iterator[Claim]:
    """Yield a claim for each schedule that the online gap's is compared with, by one cost."""
    for schedule, name in SCHEDULES.items():
        baseline = Runs("dcd_online", {"schedule": schedule}, warm_start=False)
        measured, words = by.costlier_schedule(ONLINE, baseline, cost), {"baseline": name}
        yield SAID.claim(said, measured, times, f"{said}_{schedule}", low, words=words)


CLAIMS = (
    SAID.claim("first_sweep", by.on_bench(FIRST_SWEEP), times, high=ABOUT),
    SAID.claim("single_first", by.single_first(BATCH), percent, low=MOST),
    SAID.claim("tracked_faster", by.speedup(BATCH, TRUE_BOUND), times, low=ABOUT),
    SAID.claim("tracked_above", by.share_above(TRUE_BOUND), percent, low=MOST),
    SAID.claim("random_order", by.fewer_sweeps(BATCH, SEQUENTIAL), times, low=above(1)),
    SAID.claim("hot_start", by.cost_of_warm_start(WARM, BATCH), times, high=0.5),
    SAID.claim("one_pass", by.passes_to_tolerance(ONLINE), high=1),
    SAID.claim("storage", by.growth_of_cache(ONLINE), times, high=STEADY),
    *_schedule_claims("schedule", by.TIME, above(1)),
    *_schedule_claims("calls", by.CALLS, 1),
    SAID.claim("stable", above_start(BATCH, SSG), times),
    SAID.claim("ahead_of_ssg", share_ahead(BATCH, SUBGRADIENT), percent, low=MOST),
    SAID.claim("dual_batch", by.never_falls(BATCH), percent),
    SAID.claim("dual_online", by.never_falls(ONLINE), percent),
)

LOOKS = {
    "dcd": Look("DCD", "#F781BF"),
    "dcd_online": Look("DCD, online", "#F781BF", "--"),
    "dcd UB": Look("", "#D55E00"),
    "dcd UB'": Look("", "#E69F00", "--"),
    "dcd LB": Look("", "#0072B2"),
    "dcd order=sequential": Look("", "#0072B2", "--"),
    "dcd_online schedule=gap": Look("", "#F781BF"),
    "dcd_online schedule=one_pass": Look("", "#0072B2", "--"),
    "dcd_online schedule=larank": Look("", "#E69F00", ":"),
    "dcd_online schedule=mining": Look("", "#009E73", "-."),
}

PAPER = Paper(
    folder=Path(__file__).parent,
    title="the dual-coordinate paper",
    kinds=(figures.KIND,),
    looks=LOOKS,
    file="claims-dual-coordinate",
    claims=CLAIMS,
    solvers=frozenset({"dcd_online"}),  # at the larger λ of paths, there are runs of dcd alone
    beside=BESIDE,
)
