"""A semidefinite relaxation beside DC-ADMM: seconds and peak memory, on one split of Digit1.

``python -m benchmarks.relaxation`` makes the runs, each in a process of its own, by the printed
settings of the linear kernel; the relaxation (`ssvm_bench.papers.transduction.solvers.sdp`) may do
``MOST`` iterations. It writes ``results/figures/dcadmm_relaxation/``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.processes import launch
from ssvm_bench.figures.document import Cells, table_of
from ssvm_bench.figures.kind import Output, save
from ssvm_bench.results.trace import read_trace
from ssvm_bench.results.words import number, percent

MOST = 50
DATA = ("dataset=ssl_digit1", "dataset.labeled=100", "dataset.source=real", "oracle.scaling=unit")
SOLVERS = {
    "inductive": ("solver=inductive",),
    "dcadmm": ("solver=dcadmm", "budget.max_iterations=20000"),
    "sdp": ("solver=sdp", f"budget.max_iterations={MOST}"),
    "sdp, softmax": ("solver=sdp", "solver.loss=softmax", f"budget.max_iterations={MOST}"),
}
COLUMNS = [
    *("solver", "iterations", "stop_reason", "seconds", "megabytes", "accuracy"),
    *("relaxed", "relaxed_bound"),
]
TEXT = (
    "Digit1, 100 labels, split 0, linear kernel, ν = 0.05, points of norm 1. CPU seconds of the "
    "iterations, and the peak memory of the process: that of inductive is what any takes. sdp is a "
    "relaxation with an n × n matrix, as Joulin and Bach's is: by the square loss, and by softmax, "
    f"with an inner maximisation as theirs has. It may do {MOST} iterations: where that ends it, "
    "its seconds are fewer than it needs. relaxed and its bound are of the relaxation's objective."
)
CELLS: Cells = {
    "solver": lambda row: row["solver"],
    "iterations": lambda row: f"{row['iterations']:.0f}",
    "ended by": lambda row: row["stop_reason"],
    "CPU seconds": lambda row: f"{row['seconds']:.3g}",
    "peak MB": lambda row: f"{row['megabytes']:.0f}",
    "accuracy": lambda row: percent(row["accuracy"]),
    "relaxed": lambda row: number(row["relaxed"], ".5g"),
    "bound": lambda row: number(row["relaxed_bound"], ".5g"),
}


def measured(solver: str) -> dict[str, Any]:
    """Return a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        options = (*DATA, *SOLVERS[solver], "clock=cpu", "eval.growth=4", f"results_dir={folder}")
        peak = launch("run", *options, "quiet=true").peak
        (found,) = Path(folder).glob("runs/*/*/*/seed=0")
        run = read_trace(found)
    last = run.frame.iloc[-1]
    row = {"solver": solver, "iterations": last["iteration"], "seconds": last["cpu_time"]}
    row |= {"stop_reason": run.summary["stop_reason"], "megabytes": peak / 1e6}
    return row | {name: last.get(name, float("nan")) for name in COLUMNS[5:]}


def written(table: pd.DataFrame) -> list[Path]:
    """Write the table, as a document and as numbers."""
    rows = table_of("A relaxation beside DC-ADMM", CELLS, table.to_dict("records"))
    stem = Path("results/figures/dcadmm_relaxation/relaxation")
    output = Output("relaxation", table, "Time and memory of a relaxation", [TEXT, rows])
    return save(output, stem, [])


if __name__ == "__main__":
    for path in written(pd.DataFrame(map(measured, SOLVERS), columns=COLUMNS)):
        print(path)
