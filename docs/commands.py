"""Runs that pages quote by their command alone: made, and the ends of their traces kept.

    python docs/commands.py [NAME …]

Each command is one of ``ssvm-bench run``, in a results folder of its own, which is deleted after;
``clock=work``, so that nothing depends on the machine. The table in ``results/figures/commands``
has of each run λ n, solver, iterations, the relative gap, and why it ended.
"""

import subprocess
import sys
from tempfile import TemporaryDirectory

from stored import keep

from ssvm_bench import load_runs

COMMANDS = {
    "bmrm_sgd": "solver=prox_bmrm dataset=mnist budget.max_iterations=400 "
    "lam=1000/n,100/n,10/n,1/n",
    "bmrm_init": "solver=bmrm solver.init=sgd dataset=mnist dataset.n_samples=6000 "
    "lam=100/n,10/n,1/n budget.max_iterations=2000",
}


def ends(name):
    """Yield a row for each run of a command."""
    with TemporaryDirectory() as folder:
        words = [*COMMANDS[name].split(), "clock=work", f"results_dir={folder}"]
        subprocess.run([sys.executable, "-m", "ssvm_bench", "run", "-m", *words], check=True)
        for run in load_runs(folder):
            yield {
                "lam_n": round(run.problem.lam * run.n, 6),
                "solver": run.solver,
                "iterations": run["iteration"][-1],
                "gap": run["gap"][-1] / run["primal"][-1],
                "ended": run.end["stop_reason"],
            }


if __name__ == "__main__":
    for name in sys.argv[1:] or COMMANDS:
        keep(f"commands/{name}", sorted(ends(name), key=lambda row: -row["lam_n"]))
