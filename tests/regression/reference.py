"""The stored convergence curves: which runs they are, how they are kept, how a run is compared.

Called as a program, it stores what the code gives now: that is ``make update-reference``.

Every solver on a tiny stand-in of each dataset, under ``clock=work``: the same on every machine.
Counters must be equal. Values may differ by one part in 10⁹: the reported ones are sums by a BLAS,
and another one adds in another order (some 10⁻¹⁶), and the files have twelve digits. What a mistake
in a step, a plane or a counter changes is larger by orders of magnitude.
"""

import io
import math
import tempfile
from pathlib import Path

import pandas as pd

from ssvm_bench import runner
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.terminal import Silent
from ssvm_bench.trace import read_trace

FOLDER = Path(__file__).parent
N_SAMPLES = {"usps": 60, "ocr": 40}
SOLVERS = ("fw", "bcfw", "bcfw_avg", "mpbcfw", "mpbcfw_avg")
ITERATIONS = 12  # φ is recomputed from its terms after 10
COUNTERS = ("iteration", "oracle_calls", "approx_calls", "approx_passes")
VALUES = ("time", "primal", "dual", "working_set_mean", "w_norm")
TOLERANCE = 1e-9


def curves(dataset: str, *overrides: str) -> tuple[pd.DataFrame, str]:
    """Return the curves of all solvers on a dataset now, and the fingerprint of the data."""
    frames = []
    with tempfile.TemporaryDirectory() as folder:
        configs = compose_runs(
            [
                f"dataset={dataset}",
                "dataset.source=synthetic",
                f"dataset.n_samples={N_SAMPLES[dataset]}",
                f"solver={','.join(SOLVERS)}",
                f"budget.max_iterations={ITERATIONS}",
                "clock=work",
                f"results_dir={folder}",
                *overrides,
            ],
            multirun=True,
        )
        for config in configs:
            trace = read_trace(runner.run(config, Silent()).folder)
            frame = trace.frame[[*COUNTERS, *VALUES]]
            frame.insert(0, "solver", config.solver.name)
            frames.append(frame)
    return pd.concat(frames, ignore_index=True), trace.metadata["dataset"]["fingerprint"]


def store(dataset: str) -> Path:
    """Let the curves of the code as it is be the reference; return their file."""
    table, fingerprint = curves(dataset)
    file = FOLDER / f"{dataset}.csv"
    head = (
        f"# Convergence on the {dataset} stand-in, n = {N_SAMPLES[dataset]}, seed 0, clock=work.\n"
        "# Made by `make update-reference`, which accepts a wanted change.\n"
        f"# data {fingerprint}\n"
    )
    file.write_text(head + table.to_csv(index=False, float_format="%.12g"), encoding="utf-8")
    return file


def stored(dataset: str) -> tuple[pd.DataFrame, str]:
    """Return the reference curves, and the fingerprint of the data that they were made on."""
    text = (FOLDER / f"{dataset}.csv").read_text(encoding="utf-8")
    fingerprint = text.partition("# data ")[2].partition("\n")[0]
    return pd.read_csv(io.StringIO(text), comment="#"), fingerprint


def differences(now: pd.DataFrame, reference: pd.DataFrame) -> list[str]:
    """Return one line for every solver and column that differs: where first, and what from what."""
    found = []
    for solver in dict.fromkeys([*reference["solver"], *now["solver"]]):
        one = now[now["solver"] == solver]
        other = reference[reference["solver"] == solver]
        if len(one) != len(other):
            found.append(f"{solver}: {len(one)} rows instead of {len(other)}")
            continue
        for name in (*COUNTERS, *VALUES):
            tolerance = 0.0 if name in COUNTERS else TOLERANCE
            for k, a, b in zip(other["iteration"], one[name], other[name], strict=True):
                if not math.isclose(a, b, rel_tol=tolerance, abs_tol=0.0):
                    found.append(f"{solver}: {name} {a!r} instead of {b!r} in iteration {k}")
                    break
    return found


if __name__ == "__main__":
    for name in N_SAMPLES:
        print(store(name))
