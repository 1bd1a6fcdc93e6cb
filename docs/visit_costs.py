"""What a visit and a plane cost on the data of `experiments/crossover.yaml`: counted time's prices.

.. code-block:: text

    CPU seconds outside the oracle between two rows of a trace
      ≈ visits · cost_visit + (approximate visits · mean size of the working sets) · cost_plane

by non-negative least squares, of relative errors, over the runs of `mpbcfw` and `mpbcfw_fast` with
``clock=cpu``; the first sixth of a run, whose working sets grow, is left out.

Usage: ``python docs/visit_costs.py [RESULTS_FOLDER]``; without one, of the stored traces.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import nnls

import ssvm_bench
from ssvm_bench.results.table import Run, Runs


def of_a_run(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return seconds a visit, and visits and planes a visit, between the rows of a trace."""
    start = max(2, len(run["iteration"]) // 6)
    seconds = np.diff(run["cpu_time"] - run["oracle_time"])[start:]
    visits = np.diff(run["approx_calls"] + run["oracle_calls"])[start:]
    planes = (np.diff(run["approx_calls"]) * run["working_set_mean"][1:])[start:]
    made = visits > 0
    counts = np.column_stack([visits, planes])[made]
    return seconds[made] / visits[made], counts / visits[made, None]


def fitted(runs: Runs) -> tuple[float, float]:
    """Return the seconds of a visit and of a plane."""
    seconds, counts = map(np.concatenate, zip(*map(of_a_run, runs), strict=True))
    visit, plane = nnls(counts, seconds)[0]
    return float(visit), float(plane)


if __name__ == "__main__":
    stored = len(sys.argv) == 1
    where, experiment = ("results", "crossover") if stored else (sys.argv[1], "")
    loaded = ssvm_bench.load_runs(where, experiment=experiment)
    steered = loaded.where(clock="cpu", solver={"mpbcfw", "mpbcfw_fast"})
    for name, of_dataset in steered.groups("dataset").items():
        visit, plane = fitted(of_dataset)
        print(f"{name}: oracle.cost_visit {visit:.1e}, oracle.cost_plane {plane:.1e}")
