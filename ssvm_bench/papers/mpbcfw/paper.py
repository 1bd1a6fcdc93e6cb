"""The MP-BCFW paper: its claims, those of ``claims.yaml``, measured.

What it says of the time of a call, a plane and a visit are its costs, as options. They stand in one
place, which also makes the runs: ``each`` of the experiment ``mpbcfw_costs``.

.. code-block:: text

    cost_call     c, the time of an oracle call (section 4.1)
    cost_visit    v = c (1 − s) / s, with s the oracle's share of BCFW's time (section 4.1)
    cost_plane    d · 3 µs / 2560: ten inner products over 256 features are a call on USPS
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from ssvm_bench.claims.cases import Costs
from ssvm_bench.claims.claim import Claim, Measure, Statements, above, below
from ssvm_bench.claims.paper import Paper, about
from ssvm_bench.config import catalog
from ssvm_bench.papers.mpbcfw import choices, tables
from ssvm_bench.papers.mpbcfw import measures as by
from ssvm_bench.results.words import percent, seconds, times

HORSES = "horseseg"
STANDS_FOR = {"weizmann": HORSES}
ON_HORSES = (HORSES, *STANDS_FOR)
IMAGES = (HORSES, "stanford", *STANDS_FOR)
BCFW_SHARES = {**dict.fromkeys(IMAGES, (0.94, 1.0)), "usps": (0.05, 0.25), "ocr": (0.6, 0.8)}
MPBCFW_SHARES = dict.fromkeys(IMAGES, (0.0, below(0.25)))

SUBSTANTIALLY = 2.0
"""Factor of what is substantially faster, and of slow growth against quick."""

UNTIL = {"stanford": 0.03}
"""The relative gap at which Stanford's working sets are read off, the same for all of its runs."""

SAID, ABOUT = Statements(__file__), about(__file__)
LOOKS = ABOUT["looks"]


def _words(pair: str) -> dict[str, str]:
    single, multi = (LOOKS[solver].label for solver in by.PAIRS[pair])
    always = "always" if pair == "plain" else "improves"
    return {"single": single, "multi": multi, "always": always}


def _of_pair(pair: str) -> list[Claim]:
    words = _words(pair)

    def claim(
        name: str, measure: Measure, show: Callable[[float], str] = times, **ends: float
    ) -> Claim:
        return SAID.claim(name, measure, show, f"{name}_{pair}", words=words, **ends)

    return [
        claim("below", by.share_below(pair), percent),
        claim("fewer", by.to_gap(pair, "iteration"), high=below(1)),
        claim("gain", by.gain_over_usps(pair), low=above(1)),
        claim("faster", by.to_gap(pair, "time"), high=1 / SUBSTANTIALLY),
        claim("similar", by.to_gap(pair, "time"), low=1 / SUBSTANTIALLY, high=SUBSTANTIALLY),
        claim("not_slower", by.to_gap(pair, "time", "slowest")),
        claim("not_faster", by.to_gap(pair, "time", "fastest")),
    ]


CLAIMS = (
    *(claim for claims in zip(*map(_of_pair, by.PAIRS), strict=True) for claim in claims),
    SAID.claim("share_bcfw", by.oracle_share("bcfw", BCFW_SHARES), percent),
    SAID.claim("share_mpbcfw", by.oracle_share("mpbcfw", MPBCFW_SHARES), percent),
    SAID.claim("call", by.call_time(), seconds),
    SAID.claim("planes_small", choices.of_planes(lambda _, planes: planes.max()), high=5),
    SAID.claim("passes_small", choices.of_passes(lambda of: np.quantile(of, 0.9)), high=below(10)),
    SAID.claim("planes_fall", choices.of_planes(choices.end_over_peak), high=0.9),
    SAID.claim("passes_ocr", choices.of_passes(np.median), low=10, high=15),
    SAID.claim("planes_low", choices.of_planes(choices.end_over_peak), high=0.5),
    SAID.claim("planes_grow", choices.of_planes(choices.end_over_peak, UNTIL), low=0.9),
    SAID.claim("planes_stable", choices.of_planes(choices.late_change, UNTIL), percent, high=0.1),
    SAID.claim("passes_hundreds", choices.of_passes(np.max), low=200),
    SAID.claim("passes_slowly", choices.later_than_on(ON_HORSES), times, low=SUBSTANTIALLY),
    *(
        SAID.claim(
            "average",
            choices.averaged_sooner(solver),
            times,
            f"average_{solver}",
            high=below(1),
            words={"plain": LOOKS[solver].label, "averaged": LOOKS[f"{solver}_avg"].label},
        )
        for solver in by.PAIRS["plain"]
    ),
    SAID.claim("limits", choices.of_limits(), percent, high=below(1)),
    *(
        SAID.claim("curves", by.curves_below(pair), percent, f"curves_{pair}", words=_words(pair))
        for pair in by.PAIRS
    ),
    SAID.claim("rule", choices.over_best_fixed(), times, high=by.AS_FAST),
)

EXPERIMENT = "mpbcfw_costs"


@cache
def costs() -> dict[str, Costs]:
    """Return dataset → the paper's costs."""
    content = catalog.read_yaml(catalog.entries("experiments")[EXPERIMENT])
    prefix = "oracle."
    return {
        dataset: Costs.of({key.removeprefix(prefix): value for key, value in options.items()})
        for dataset, options in content["each"].items()
    }


PAPER = Paper(
    folder=Path(__file__).parent,
    title="the MP-BCFW paper",
    order=0,
    kinds=tables.KINDS,
    file="claims",
    claims=CLAIMS,
    solvers=frozenset({"mpbcfw", "mpbcfw_avg"}),
    stands_for=STANDS_FOR,
    costs=costs,
    **ABOUT,
)
