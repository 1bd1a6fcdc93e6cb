"""The dual-coordinate paper (Ramanan 2013): its claims, those of ``claims.yaml``, measured.

Its batch algorithm is ``dcd`` with M = 0, sweeps over all terms alone; its online one,
``dcd_online`` with the schedule of the gap. What no run tells is read from the bench.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from ssvm_bench.claims.cases import Runs
from ssvm_bench.claims.claim import Claim, Statements, above
from ssvm_bench.claims.comparisons import above_start, share_ahead
from ssvm_bench.claims.paper import Paper, about
from ssvm_bench.papers.dual_coordinate import figures
from ssvm_bench.papers.dual_coordinate import measures as by
from ssvm_bench.papers.dual_coordinate.measures import BATCH, COMPUTED, SEQUENTIAL, TRUE_BOUND, WARM
from ssvm_bench.results.words import percent, times

SAID = Statements(__file__)

SCHEDULES = {
    "one_pass": "one step for each new example",
    "larank": "ten old examples for each new one",
    "mining": "hard-negative mining",
}
"""Schedules that the online gap is compared with: option → what a reader calls them."""

COSTS = {
    "schedule": (0.0, "seconds", "as measured"),
    "slow": (by.SLOW_CALL, "seconds, and 1 ms more for each call,", "with calls of 1 ms"),
    "calls": (math.inf, "calls of the oracle", "in calls of the oracle"),
}
"""Costs by which they are: name → seconds more a call, what is measured, what a reader is told."""

ROOM = 100
"""Planes that one pass without a cache has room for."""

CACHED = {
    schedule: Runs("dcd_online", {"schedule": schedule, "verify": True}, warm_start=False)
    for schedule in ("gap", *SCHEDULES)
}
"""Runs with a cache, whose passes are verified."""

ONLINE, ONE_PASS, LARANK = (CACHED[schedule] for schedule in ("gap", "one_pass", "larank"))
STREAMED = Runs("dcd_online", {"schedule": "one_pass", "cache": ROOM}, warm_start=False)
SSG = Runs("ssg")
SUBGRADIENT = (SSG, Runs("ssg_weighted"), Runs("ssg_tail"))

FIRST_SWEEP = "dcd / LIBLINEAR: a first sweep"
"""The row of the bench."""

ABOUT = 1.5
"""Factor within which a cost is about another one."""

TWICE = (1.5, 2.5)
"""Factors that are about 2: within a quarter of it."""

CHEAP = 0.5
"""Share of a cost up to which another one is cheap beside it."""

CRUCIAL = 2.0
"""Factor from which on a choice is crucial."""

TOL = 0.05
"""Tolerance of the programs that the paper's author has published."""

MOST = 0.9
"""Share from which on something is so as a rule, or on nearly all occasions."""

STEADY = 4 / 3
"""Factor up to which what is kept has not grown from half of the examples to all of them."""

CONSTANT = 1.01
"""The same for what does not depend on them, but for a few planes."""

SELF_CHECKS, NOT_CLAIMED = "self-checks", "not claimed"


def _factor(value: float) -> str:
    """Return a factor that is near the end of its range."""
    return f"{value:.3g}×"


def _schedules() -> Iterator[Claim]:
    """Yield a row for each schedule that the online gap's is compared with, by each cost."""
    for name, (call, cost, told) in COSTS.items():
        for schedule, baseline in SCHEDULES.items():
            words = {"baseline": baseline, "told": told, "cost": cost}
            measured = by.costlier_schedule(ONLINE, CACHED[schedule], call)
            yield SAID.claim("schedule", measured, times, f"{name}_{schedule}", 1, words=words)


_TOLD = {"tol": percent(TOL), "room": f"{ROOM}"}

CLAIMS = (
    SAID.claim("first_sweep", by.on_bench(FIRST_SWEEP, BATCH), times, high=ABOUT),
    SAID.claim("single_first", by.single_first(BATCH), percent, low=MOST),
    SAID.claim("tracked_faster", by.speedup(BATCH, TRUE_BOUND), _factor, "", *TWICE),
    SAID.claim("tracked_above", by.share_above(TRUE_BOUND), percent, low=MOST),
    SAID.claim("random_order", by.mimicked_sweeps(BATCH, SEQUENTIAL), times, low=above(1)),
    SAID.claim("hot_start", by.cost_of_warm_start(WARM, BATCH, CHEAP), times, high=CHEAP),
    SAID.claim("products", by.slowdown(COMPUTED, BATCH), _factor, high=ABOUT),
    SAID.claim("crucial", by.spread_of_schedules(tuple(CACHED.values())), times, low=CRUCIAL),
    SAID.claim("revisiting", by.costlier_schedule(LARANK, ONE_PASS, 0.0), times, low=above(1)),
    SAID.claim("one_pass", by.passes_to_tolerance(ONLINE, TOL), high=1, words=_TOLD),
    SAID.claim("storage", by.growth_of_storage(STREAMED), _factor, high=CONSTANT, words=_TOLD),
    SAID.claim("stable", above_start(BATCH, SSG), times),
    SAID.claim("ahead_of_ssg", share_ahead(BATCH, SUBGRADIENT), percent, low=MOST),
    SAID.claim("ahead_few_labels", share_ahead(BATCH, SUBGRADIENT), percent, low=MOST),
    *_schedules(),
    SAID.claim("cache", by.growth_of_cache(ONLINE), times, high=STEADY),
    SAID.claim("dual_batch", by.never_falls(BATCH), percent),
    SAID.claim("dual_online", by.never_falls(ONLINE), percent),
)

PAPER = Paper(
    folder=Path(__file__).parent,
    title="the dual-coordinate paper",
    kinds=(figures.KIND,),
    file="claims-dual-coordinate",
    claims=CLAIMS,
    solvers=frozenset({"dcd", "dcd_online"}),
    beside_runs_of=frozenset({"dcd_online", "ssg"}),  # at larger λ of paths, dcd runs alone
    partial=True,
    **about(__file__),
)
