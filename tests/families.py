"""A tiny problem of each family, and what solvers find: to compare ways of executing kernels.

Called as a program with the names of cases, it prints what they find as JSON.
"""

import hashlib
import json
import sys
from dataclasses import replace

import linear
import numpy as np
import points
from helpers import SMALL, Plain, oracle, random_graphs, solver
from structures import landmarks_of, latent_oracle, marked, pictures, segmented, segments_of

from ssvm_bench.datasets.structures import Windows
from ssvm_bench.oracles import latent_chain
from ssvm_bench.oracles.base import Problem

CHAINS, MULTICLASS, TWO_LABELS = SMALL["chains"], SMALL["multiclass"], SMALL["graphs"]
RBF = {"kernel": "rbf", "gamma": 0.2}


def whole(data, kind):
    """Return examples whose features are whole numbers, stored as a type."""
    return replace(data, x=np.clip(np.round(20 * np.abs(data.x)), 0, 250).astype(kind))


FAMILIES = {
    "multiclass": (
        lambda: oracle(MULTICLASS),
        *("fw", "bcfw", "mpbcfw", "mpbcfw_fast", "mpbcfw_gram", "mpbcfw_newton"),
        *("mpbcfw_pairwise", "mpbcfw_accelerated", "bmrm", "p_bmrm", "prox_bmrm", "one_slack"),
        *("cutting_plane", "dcd", "dcd_online", "ssg", "ssg_weighted", "eg"),
    ),
    "chains": (
        lambda: oracle(CHAINS),
        *("bcfw_avg", "mpbcfw", "mpbcfw_fast", "mpbcfw_newton", "bmrm", "dcd", "dcd_online"),
        *("eg", "excessive_gap", "extragradient"),
    ),
    "bytes": (lambda: oracle(whole(MULTICLASS, np.uint8)), "bcfw", "mpbcfw_fast"),
    "cuts": (lambda: oracle(TWO_LABELS), "mpbcfw", "mpbcfw_fast", "bmrm"),
    "expansions": (lambda: oracle(random_graphs([4, 2, 4, 3], 3, 8, seed=8)), "mpbcfw"),
    "rows": (lambda: Plain(oracle(CHAINS)), "mpbcfw", "mpbcfw_gram", "dcd", "dcd_online"),
    "segments": (lambda: segments_of(segmented()), "mpbcfw", "eg"),
    "landmarks": (lambda: landmarks_of(marked()), "bcfw"),
    "windows": (lambda: latent_oracle(pictures(9, Windows((5, 6), (3, 3), 1))), "dcd"),
    "hidden states": (lambda: hidden(), "dcd"),
    "binary": (lambda: linear.binary_oracle(linear.random_binary(8, 3)), "dcd", "mpbcfw_fast"),
    "regression": (lambda: linear.regression_oracle(linear.random_regression(8, 3)), "dcd"),
    "kernel": (lambda: linear.multiclass_oracle(MULTICLASS, **RBF), "mpbcfw", "mpbcfw_gram"),
}
"""Family → what builds its oracle, and solvers."""

OF_POINTS = "dcadmm", "coordinate_descent", "kernel_kmeans"
"""Solvers of transduction."""


def hidden():
    return latent_chain.build(latent_chain.Config("latent_chain", "latent_chain", states=2), CHAINS)


def found(case):
    """Return what a case, family/solver, finds in two iterations: texts with all bits.

    The dual value, the clock, the primal value, and a digest of w, for each iteration.
    """
    family, name = case.split("/")
    if family == "points":
        made = points.solver(points.posed(points.clouds(12, 3)), name)
    else:
        posed = Problem(FAMILIES[family][0](), 0.1)
        made = solver(posed, name, **({"P": 3} if name.endswith("p_bmrm") else {}))
    texts = []
    for _ in range(2):
        made.iterate()
        point, dual = made.reported()
        arrays = point if isinstance(point, tuple) else [point]
        numbers = dual, made.clock.now(), made.problem.measured(point)[0]
        texts += [float(number).hex() for number in numbers]
        texts += [hashlib.sha256(array.tobytes()).hexdigest() for array in arrays]
    return texts


CASES = [
    *(f"{family}/{name}" for family, (_, *names) in FAMILIES.items() for name in names),
    *(f"points/{name}" for name in OF_POINTS),
]

if __name__ == "__main__":
    json.dump({case: found(case) for case in sys.argv[1:] or CASES}, sys.stdout)
