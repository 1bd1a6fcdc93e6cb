"""Where BCFW is ahead of its rivals: on other data, in longer runs, and of SSG with a tuned step.

    python docs/bcfw_rivals.py

First, from the stored curves of experiment ``all_solvers`` (λ = 1/n, to 1000 passes): where BCFW's
primal suboptimality is not below a rival's, of the passes at which both are known.

Then SSG with steps 1/(λ(t + t₀)), t₀ from 0, as in the poster's comparison, to 3000 n, on OCR as
there, seed 0: P − the best dual value known after some passes, and BCFW's, without a parameter.
The t₀ is the best one at that very pass, in hindsight: no single run of SSG is better than these.

It writes ``results/figures/bcfw_rivals/``, from which pages take these numbers.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from stored import keep

from ssvm_bench.base.clock import Clock
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs import components

RESULTS = Path(__file__).parents[1] / "results"
PAIRS = {
    "bcfw": ("ssg", "fw", "eg", "extragradient", "excessive_gap", "bmrm"),
    "bcfw_avg": ("ssg_weighted", "bmrm"),
}
LAMS, PASSES = (0.01, 0.001, None), (1, 3, 10, 30, 100)
OFFSETS = (0, 3, 10, 30, 100, 300, 1000, 3000)
OCR = ["dataset=ocr", "dataset.source=real", "dataset.folds=[1,2,3,4,5,6,7,8,9]"]


def elsewhere():
    """Yield where BCFW is not ahead."""
    curves = pd.read_csv(RESULTS / "figures" / "all_solvers" / "oracle_calls.csv")
    curves = curves[curves["quantity"] == "primal suboptimality"]
    for dataset, found in curves.groupby("dataset"):
        passes = {
            name: (rows["x"] / rows["n"], rows["median"]) for name, rows in found.groupby("solver")
        }
        for ours, rivals in PAIRS.items():
            for rival in filter(passes.__contains__, rivals):
                (x, mine), (at, theirs) = passes[ours], passes[rival]
                known = (x >= 1) & (x <= at.max())
                behind = x[known][np.interp(x[known], at, np.log(theirs)) <= np.log(mine[known])]
                yield {
                    "dataset": dataset,
                    "solver": ours,
                    "rival": rival,
                    "evaluated": known.sum(),
                    "behind": len(behind),
                    "first": behind.min(),
                    "last": behind.max(),
                }


def built(name, lam):
    """Return a solver of the poster's problem."""
    options = [f"solver={name}", "solver.sampling=uniform", f"lam={'null' if lam is None else lam}"]
    (config,) = compose_runs([*OCR, *options])
    terms = components.build_oracle(config.oracle, config.dataset)
    problem = components.problem_of(terms, lam or 1 / terms.n, None)
    solver = registry.module("solver", config.solver.kind).build(
        config.solver, problem, Clock("cpu"), 0
    )
    return problem, solver


def bcfw_after(name, lam):
    """Return P after PASSES."""
    problem, solver = built(name, lam)
    found = []
    for k in range(1, PASSES[-1] + 1):
        solver.iterate()
        if k in PASSES:
            found.append(problem.primal(solver.reported().w))
    return found


def ssg_after(lam, offset):
    """Return P after PASSES of the iterate, and of the mean over the second half of the passes."""
    problem, solver = built("ssg_tail", lam)
    n, sums, found = problem.n, [0.0], []
    solver.sums.steps[0] = offset * n
    for k in range(1, PASSES[-1] + 1):
        solver.iterate()
        sums.append(solver._sum())
        if k in PASSES:
            last = solver.sums.v / (problem.lam * solver.sums.steps[0])
            tail = (sums[k] - sums[k // 2]) / ((k - k // 2) * n)
            found.append([problem.primal(problem.oracle.unpack(w)) for w in (last, tail)])
    return np.array(found).T


def tuned():
    """Yield the suboptimality of BCFW, and of SSG with t₀ = 0 and with the best one."""
    instances = json.loads((RESULTS / "reference" / "optima.json").read_text())["instances"]
    for lam in LAMS:
        problem, _ = built("bcfw", lam)
        (best,) = (
            about["best_dual"]["value"]
            for about in instances
            if (about["dataset"], about["source"], about["n"]) == ("ocr", "real", problem.n)
            and np.isclose(about["lam"], problem.lam)
        )
        of_rival = np.array([ssg_after(lam, offset) for offset in OFFSETS]) - best
        for form, name in enumerate(("bcfw", "bcfw_tail")):
            mine, theirs = np.array(bcfw_after(name, lam)) - best, of_rival[:, form]
            for i, k in enumerate(PASSES):
                t = theirs[:, i].argmin()
                yield {
                    "lam": problem.lam,
                    "passes": k,
                    "solver": name,
                    "suboptimality": mine[i],
                    "ssg": theirs[0, i],
                    "tuned": theirs[t, i],
                    "offset_n": OFFSETS[t],
                }


for found in (elsewhere, tuned):
    keep(f"bcfw_rivals/{found.__name__}", found())
