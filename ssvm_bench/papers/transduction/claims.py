"""The claims of the transduction paper (Laude et al. 2018): those of ``claims.yaml``, measured.

Repeats are runs on data that are drawn anew.
"""

from __future__ import annotations

from ssvm_bench.papers.cases import Runs
from ssvm_bench.papers.claim import Claim, Paper, Statements
from ssvm_bench.papers.transduction import measures as by
from ssvm_bench.results.words import percent

SAID = Statements(__file__)

DRAWS = {"moons": "draw"}
"""Dataset → its option that draws it anew."""

PROPOSED = "dcadmm"
RIVALS = {
    "kernel_kmeans": "constrained kernel k-means",
    "coordinate_descent": "coordinate descent on labels and classifier",
}
"""Solvers that it is compared with → what a reader calls them."""

PRINTED = {
    ("moons", "kernel_kmeans"): 0.666,
    ("moons", "coordinate_descent"): 0.685,
    ("moons", "dcadmm"): 0.025,
}
"""Dataset and solver → the share of wrong labels that the paper prints."""

MOST, LEAST = 0.05, 0.3
"""Wrong labels up to which most are right, and from which on a method is stuck."""


def _stuck(solver: str, name: str) -> Claim:
    printed = percent(PRINTED["moons", solver])
    return SAID.claim(
        "stuck",
        by.errors(Runs(solver), LEAST),
        percent,
        f"stuck_{solver}",
        rival=name,
        printed=printed,
        least=percent(LEAST),
    )


TRANSDUCTION = Paper(
    title="the transduction paper",
    file="claims-transduction",
    claims=(
        SAID.claim(
            "recovers",
            by.errors(Runs(PROPOSED), high=MOST),
            percent,
            printed=percent(PRINTED["moons", PROPOSED]),
            most=percent(MOST),
        ),
        *(_stuck(*rival) for rival in RIVALS.items()),
    ),
    solvers=frozenset({PROPOSED}),
    stands_for={},
    draws=DRAWS,
)
