"""What limits the speed where a goal is not met: ``python -m benchmarks.floors``.

=========  ======================================================================================
visits     an approximate pass of `mpbcfw`, and what of it no visit can do without: w at the term's
           place, and the values of its planes; the rest is the step. Beside it, the same numbers
           read and multiplied in order, as fast as this machine does that
sweeps     `dcd` on Abalone to a gap of 0.1 %, from the data on: what comes before the first sweep,
           its kernels, and the whole; beside it, LIBLINEAR's fit of as many sweeps, and of one
compiling  a tiny run with an empty cache, by numba's passes
imports    CPU seconds and peak memory of the libraries that a run, or an estimator, cannot do
           without, and of these
=========  ======================================================================================
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.coordinate import WITHIN, fit
from benchmarks.passes import Stopwatch, fix_work, loaded
from benchmarks.processes import launched
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import allocating_kernel
from ssvm_bench.base.linalg import dot
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.planes.dual_iterate import visit_working_sets
from ssvm_bench.planes.operations import best_plane, entries, gather
from ssvm_bench.runs import components

DATASETS = ("ocr", "usps", "weizmann", "conll2000")
ITERATIONS, REPEATS = 15, 30
IMPORTS = {
    "libraries of a run": "import numpy, scipy.sparse, numba, pyarrow.parquet, hydra, rich.live",
    "all of a run": "import ssvm_bench.cli.commands, ssvm_bench.runs.runner",
    "libraries of an estimator": "import numpy, scipy.sparse, numba, sklearn.svm",
    "StructuredSVM": "from ssvm_bench import StructuredSVM",
}
LLVM = ("_optimize_functions", "_optimize_final_module", "_finalize_final_module")


def visits(name: str) -> dict[str, float]:
    """Return the milliseconds of passes of `mpbcfw`, when its working sets have grown."""
    (config,) = compose_runs([f"dataset={name}", "solver=mpbcfw"])
    config, data = fix_work(config), loaded(config.dataset)
    components.warm_up(config, data)
    oracle = components.build_oracle(config.oracle, config.dataset)
    problem = Problem(oracle, config.lam_of(data.n))
    clock = Stopwatch(*config.oracle.costs)
    solver: Any = components.build_solver(config, problem, clock)
    exact = []
    for _ in range(ITERATIONS):
        clock.passes.clear()
        begin = perf_counter()
        solver.iterate()
        exact.append(perf_counter() - begin - sum(spent for spent, _ in clock.passes))
    phi, policy = solver.phi, solver.visits.policy
    blocks, order = phi.blocks, np.random.default_rng(0).permutation(problem.n)
    found = {
        "exact pass": 1e3 * float(np.median(exact)),
        "approximate pass": _best(visit_working_sets, policy, blocks, order, phi.shared),
        "of these, w": _best(_look, blocks, order, phi.w, False),
        "… and values of planes": _best(_look, blocks, order, phi.w, True),
    }
    values = getattr(blocks, "values", None)
    if values is not None:
        read = values[: int(blocks.length[entries(blocks.start, blocks.n_planes)].sum())]
        found["so many numbers in order"] = _best(dot, read, read.copy(), read.size)
    return found


@allocating_kernel
def _look(blocks, order, w, at_planes):  # type: ignore[no-untyped-def]
    """Do the beginning of an `approximate_visit` at each term."""
    total = 0
    for i in order:
        gather(blocks, w, i)
        if at_planes:
            total += best_plane(blocks, i)
    return total


def _best(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the least milliseconds of some calls."""
    spent = []
    for _ in range(REPEATS + 1):
        begin = perf_counter()
        function(*arguments)
        spent.append(perf_counter() - begin)
    return 1e3 * min(spent[1:])


def sweeps() -> dict[str, float]:
    """Return the milliseconds of training on Abalone, medians."""
    (config,) = compose_runs(["dataset=abalone", "dataset.bias=1", "solver=dcd"])
    config = replace(config, solver=replace(config.solver, tol=WITHIN))
    data = loaded(config.dataset)
    components.warm_up(config, data)
    rows = []
    for _ in range(REPEATS):
        begin = perf_counter()
        oracle = components.oracle_of(config.oracle, data)
        problem = Problem(oracle, config.lam_of(data.n))
        solver: Any = components.build_solver(config, problem, Clock("cpu"))
        ready = perf_counter()
        kernels: list[float] = []
        for name in ("exact_pass", "approximate_pass"):
            setattr(solver.phi, name, _timed(getattr(solver.phi, name), kernels))
        while not solver.converged:
            solver.iterate()
        end = perf_counter()
        rows.append((end - begin, ready - begin, sum(kernels), solver.iteration))
    whole, before, in_kernels, number = np.median(rows, axis=0)
    theirs = {
        f"LIBLINEAR's fit, max_iter={most}": _best(
            partial(fit, config, data, problem, tol=1e-12, max_iter=most)
        )
        for most in (int(number), 1)
    }
    ours = {"whole": whole, "before the first sweep": before, "kernels": in_kernels}
    return {name: 1e3 * float(value) for name, value in ours.items()} | theirs


def _timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """Return the function, with the seconds of each call appended to a list."""

    def call(*arguments: Any) -> Any:
        begin = perf_counter()
        try:
            return function(*arguments)
        finally:
            spent.append(perf_counter() - begin)

    return call


def compiling() -> dict[str, float]:
    """Return the seconds of numba's passes in a tiny run: in a process with an empty cache."""
    from numba.core import event
    from numba.core.codegen import JITCodeLibrary

    from ssvm_bench import run

    spent: dict[str, float] = {}
    open_ones: list[list[float]] = []

    def begin() -> None:
        open_ones.append([perf_counter(), 0.0])

    def end(what: str) -> None:
        """Count what is not spent in others that have begun since."""
        since, inner = open_ones.pop()
        took = perf_counter() - since
        spent[what] = spent.get(what, 0.0) + took - inner
        if open_ones:
            open_ones[-1][1] += took

    class Passes(event.Listener):
        def on_start(self, event: Any) -> None:
            begin()

        def on_end(self, event: Any) -> None:
            end(event.data["name"].split(" [")[0])

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            begin()
            try:
                return method(*arguments)
            finally:
                end("LLVM")

        return call

    for name in LLVM:
        setattr(JITCodeLibrary, name, timed(getattr(JITCodeLibrary, name)))
    with (
        tempfile.TemporaryDirectory() as folder,
        event.install_listener("numba:run_pass", Passes()),
    ):
        start = perf_counter()
        options = ["dataset=ocr", "solver=mpbcfw", "dataset.n_samples=10", "quiet=true"]
        run(*options, "budget.max_iterations=1", f"results_dir={folder}")
        total = perf_counter() - start
    names = {"native_lowering": "lowering", "nopython_type_inference": "type inference"}
    found = {"LLVM": spent.pop("LLVM")}
    found |= {text: spent.pop(name) for name, text in names.items()}
    return found | {"other passes": sum(spent.values()), "the whole run": total}


def main(arguments: list[str]) -> None:
    """Print all, or the phases of compiling alone."""
    if arguments == ["compiling"]:
        _show("compiling, s", compiling())
        return
    for name in DATASETS:
        _show(f"passes of mpbcfw on {name}, ms", visits(name))
    _show("dcd on abalone, ms", sweeps())
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-m", "benchmarks.floors", "compiling"]
        subprocess.run(command, env=environment, check=True)
    for what, code in IMPORTS.items():
        ended = [launched([sys.executable, "-c", code]) for _ in range(3)]
        cpu, peak = min(one.cpu for one in ended), min(one.peak for one in ended)
        _show(f"import of {what}", {"CPU seconds": cpu, "MB": peak / 1e6})


def _show(title: str, found: dict[str, float]) -> None:
    print(f"{title}: " + "; ".join(f"{name} {value:.3g}" for name, value in found.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
