"""Table 1 of the transduction paper with HiGHS in every label step, on two sets.

    python docs/label_programs.py [SPLITS]

`oracle.ties=lp` has the vertex that HiGHS' dual simplex returns, and its tolerance, without calling
it. On Digit1 and SSL-USPS with the RBF kernel some points have near neighbours, and a program that
calls a solver in each iteration may end at other labels. Here it does: min Σ (u_i1 − u_i0) x_i over
low ≤ Σ x_i ≤ high, 0 ≤ x ≤ 1, by `scipy.optimize.linprog(method="highs-ds")` as it comes. The other
settings are those of `dcadmm_ssl_paper`. The table has the accuracy on all points with either label
step, split by split, and is kept in ``results/figures/label_programs``. A run takes a minute.
"""

import sys

import numpy as np
from scipy.optimize import linprog
from stored import keep

from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.papers.transduction.oracles.energies import OneClique
from ssvm_bench.runs import components

OPTIONS = (
    *("solver=dcadmm", "clock=work", "dataset.source=real", "dataset.order=file"),
    *("oracle.kernel=rbf", "oracle.nu=0.0025", "oracle.balance=0.2"),
    *("oracle.ties=lp", "oracle.tie_tolerance=1e-7"),
)
MOST = 20000


def by_highs(energy, u, y):
    """Return the labels of a label step, by a linear program."""
    found, points = energy.nearest(u), energy.movable
    rows, sides = np.ones((1, points.size)), np.array([energy.most, -energy.least])
    cost, rows = u[points, 1] - u[points, 0], np.vstack((rows, -rows))
    solved = linprog(cost, A_ub=rows, b_ub=sides, bounds=(0, 1), method="highs-ds")
    found[points] = solved.x > 0.5
    return found


def accuracy(run, step):
    """Return the share of right labels among all points, and the iterations of a run."""
    problem = components.build_oracle(run.oracle, run.dataset).problem(run.lam_of(0))
    solver, iterations = components.build_solver(run, problem, Clock("work")), 0
    own, OneClique.minimise = OneClique.minimise, step
    try:
        while not solver.converged and iterations < MOST:
            solver.iterate()
            iterations += 1
    finally:
        OneClique.minimise = own
    return np.mean(solver.y == components.load_dataset(run.dataset).y), iterations


def table(splits):
    """Yield the rows of the table."""
    for name in ("ssl_usps", "ssl_digit1"):
        for labeled in (10, 100):
            for split in range(splits):
                cell = f"dataset={name}", f"dataset.labeled={labeled}", f"dataset.split={split}"
                (run,) = compose_runs([*OPTIONS, *cell])
                right, iterations = accuracy(run, by_highs)
                own, beside = accuracy(run, OneClique.minimise)
                row = {"dataset": name, "labeled": labeled, "split": split, "highs": right}
                yield {**row, "ties": own, "iterations": iterations, "ties_iterations": beside}


if __name__ == "__main__":
    keep("label_programs/label_programs", table(int((sys.argv[1:] or "2")[0])))
