"""Runs as on other processors, interrupted and resumed there, and beside those of this processor.

What was resumed must have the bits of what was not. Another processor may round otherwise: where it
makes the same calls, passes and planes, its values are the same but for that; and its bounds of the
optimum fit to those found here.
"""

import itertools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from ssvm_bench.base import jit
from ssvm_bench.results.trace import find_runs, read_trace
from tests.faults.case import Case
from tests.faults.kills import traces
from tests.regression import reference

INSTRUCTIONS = {
    "Prescott": "pni",
    "Nehalem": "sse4_2",
    "Sandybridge": "avx",
    "Haswell": "avx2",
    "Zen": "avx2",
    "SkylakeX": "avx512f",
}
"""Kinds of processors that OpenBLAS knows, and what this one needs to do as they do."""

LINEAR = ("dataset=usps", "dataset=ocr", "dataset=conll2000", "dataset=adult")
KERNEL = ("oracle.kernel=rbf", "oracle.gamma=0.02")
LITTLE = "oracle.kernel_memory=0.004"
OF_LAPACK = "mpbcfw_newton"
OF_KERNELS = ("fw", "bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg", "mpbcfw_gram", "mpbcfw_fast")
COUNTED = ("oracle_calls", "approx_calls", "plane_evaluations", "approx_passes")
NEAR, ROUNDING = 1e-6, 1e-9
"""By how much values may differ, as in ``verify --rerun``; and bounds contradict each other."""


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Yield cases without end."""
    here = set(Path("/proc/cpuinfo").read_text().split())
    kinds = [kind for kind, needed in INSTRUCTIONS.items() if needed in here]
    for number in itertools.count(1):
        kind, place = rng.choice(kinds), folder / str(number)
        call, solver = _call(rng)
        most = rng.randrange(3, 25)
        less, few = rng.randrange(1, most), ("1",) if solver == OF_LAPACK else ("1", "2")
        runs = [("whole", most, kind), ("resumed", less, kind), ("resumed", most, kind)]
        failure = ""
        for name, iterations, of in [*runs, ("native", most, "")]:
            failure = failure or _made(call, iterations, place / name, of, rng.choice(few))
        what = f"{kind}: {' '.join(call)}, {less} of {most} iterations"
        if not failure and traces(place / "whole") != traces(place / "resumed"):
            failure = "resumed, it has other bits"
        yield Case(f"{kind}: {solver}", what, failure or _apart(place))
        shutil.rmtree(place)


def _call(rng: random.Random) -> tuple[tuple[str, ...], str]:
    """Return a random problem with a solver, and the solver's name."""
    size = f"dataset.n_samples={rng.randrange(8, 60)}"
    problem = ("dataset.source=synthetic", size, f"lam={rng.choice((1, 10, 100))}/n")
    problem += (f"seed={rng.randrange(9)}", "clock=work")
    if rng.random() < 0.5:
        solver, data = rng.choice(OF_KERNELS), ("dataset=usps", *KERNEL)
        if rng.random() < 0.5:
            data += (LITTLE,)
    else:
        solver, data = rng.choice(reference.SOLVERS), (rng.choice(LINEAR),)
    return (*data, *problem, f"solver={solver}"), solver


def _made(call: tuple[str, ...], iterations: int, results: Path, kind: str, threads: str) -> str:
    """Make a run, or resume one, on a kind of processor; return what is said if it fails."""
    budget = (f"budget.max_iterations={iterations}", "checkpoint.keep=true")
    words = (sys.executable, "-m", "ssvm_bench", "run", *call, *budget, f"results_dir={results}")
    variables = {"SSVM_BENCH_OFFLINE": "1", "OPENBLAS_NUM_THREADS": threads}
    variables |= {"NUMBA_CACHE_DIR": str(jit.CACHE_ROOT)}
    if kind:
        variables |= {"OPENBLAS_CORETYPE": kind, "NUMBA_CPU_NAME": "generic"}
    done = subprocess.run(
        words, env=os.environ | variables, capture_output=True, text=True, timeout=600, check=False
    )
    return "" if done.returncode == 0 else f"status {done.returncode}: {done.stderr[-800:]!r}"


def _apart(place: Path) -> str:
    """Return how a run contradicts that of this processor."""
    there, here = (_frame(place / name) for name in ("whole", "native"))
    counted = [name for name in COUNTED if name in here]
    if here[counted].equals(there[counted]):
        for name in ("primal", "dual"):
            most = ((there[name] - here[name]).abs() / (1e-3 + here[name].abs())).max()
            if most > NEAR:
                return f"the same work, and {name} differs by {most:.1g} of itself"
    for one, other in ((there, here), (here, there)):
        if one["dual"].max() > other["primal"].min() + ROUNDING:
            return f"a dual value of {one['dual'].max()} above a primal of {other['primal'].min()}"
    return ""


def _frame(results: Path) -> pd.DataFrame:
    (run,) = find_runs(results)
    return read_trace(run).frame
