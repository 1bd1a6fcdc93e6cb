"""DC-ADMM: seconds to convergence, seconds of an iteration, and how they grow with the points.

On a set of the SSL benchmark a run ends by itself, with settings that suit either
kernel, none of them the paper's; on a sequence of frames, some iterations are made from
the inductive start. CPU seconds, of one thread.

``python -m benchmarks.transductive`` times iterations on Gaussian clouds of 10³ to 10⁶ points with
the linear kernel, and draws them: ``results/figures/dcadmm_growth/``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.passes import loaded, seconds
from benchmarks.processes import peak_of_run
from benchmarks.report import CONVERGENCE, FRAMES_MEMORY, ITERATION, Measurement, from_samples
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.oracles.objective import TRANSDUCTION
from ssvm_bench.papers.transduction.datasets.points import POINTS, Points
from ssvm_bench.papers.transduction.oracles import transduction
from ssvm_bench.papers.transduction.solvers import dcadmm
from ssvm_bench.runs import components

SETTINGS = {
    "linear": ("oracle.scaling=none", "oracle.nu=0.05"),
    "rbf": ("oracle.scaling=unit", "oracle.nu=0.0001"),
}
"""Kernel → what else the experiment sets."""

USUAL = ("solver=dcadmm", "solver.start=inductive", "solver.tau=1.02", "oracle.balance=0.2")
SEQUENCE = ("solver=dcadmm", "solver.start=inductive")
MOST, SOME = 5000, 5
"""Iterations until convergence, at most; and of a sequence."""

SIZES = (1_000, 10_000, 100_000, 1_000_000)
FEATURES, TIMED = 20, 5


def measure_transductive(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure on the dataset that the overrides ``call`` choose, if it is one of points."""
    (config,) = compose_runs((*call, "solver=dcadmm"))
    if config.oracle.family != TRANSDUCTION:
        return
    if config.dataset.name.startswith("ssl_"):
        for kernel, more in SETTINGS.items():
            (config,) = compose_runs((*call, *USUAL, f"oracle.kernel={kernel}", *more))
            yield _until_convergence(config, kernel)
    elif config.dataset.name.startswith("davis_"):
        yield from _on_a_sequence((*call, *SEQUENCE))


def _until_convergence(config: RunConfig, kernel: str) -> Measurement:
    """Time all that a run does with the points: the kernel's decomposition, too."""
    dataset = loaded(config.dataset)
    components.warm_up(config, dataset)
    made: dict[str, Any] = {}

    def run() -> None:
        made["solver"] = solver = _solver(config)
        solver.begin()
        made["iterations"] = 0
        while not solver.converged and made["iterations"] < MOST:
            solver.iterate()
            made["iterations"] += 1

    taken = seconds(run)
    ended = "converged" if made["solver"].converged else "not converged"
    where = dataset.name, dataset.source, CONVERGENCE.format(kernel)
    return from_samples(*where, [taken], unit="s", note=f"{made['iterations']} iterations, {ended}")


def _on_a_sequence(call: Sequence[str]) -> Iterator[Measurement]:
    (config,) = compose_runs(call)
    dataset = loaded(config.dataset)
    components.warm_up(config, dataset)
    solver = _solver(config)
    solver.begin()
    taken = [seconds(solver.iterate) for _ in range(SOME)]
    note = f"{dataset.n:,} points"
    yield from_samples(dataset.name, dataset.source, ITERATION, taken, unit="s", note=note)
    memory = [peak_of_run(*call, f"budget.max_iterations={SOME}")]
    yield from_samples(dataset.name, dataset.source, FRAMES_MEMORY, memory, unit="MB", note=note)


def _solver(config: RunConfig) -> Any:
    terms = components.build_oracle(config.oracle, config.dataset)
    return components.build_solver(config, terms.problem(config.oracle.nu), Clock("cpu"))


# ---- growth -----------------------------------------------------------------------------------


def growth(sizes: Sequence[int] = SIZES) -> pd.DataFrame:
    """Return the seconds of an iteration for each number of points: median, least, most."""
    rows = []
    for n in sizes:
        options: dict[str, Any] = {
            "cost_call": 1e-3,
            "cost_plane": 1e-6,
            "nu": 0.05,
            "balance": 0.1,
        }
        oracle = transduction.Config("transduction", "transduction", **options)
        problem = transduction.build(oracle, _clouds(n)).problem(oracle.nu)
        solver = dcadmm.build(dcadmm.Config("dcadmm", "dcadmm"), problem, Clock("cpu"), 0)
        solver.begin()
        solver.iterate()
        taken = [seconds(solver.iterate) for _ in range(TIMED)]
        rows.append((n, float(np.median(taken)), min(taken), max(taken)))
    return pd.DataFrame(rows, columns=["n", "seconds", "min", "max"])


def _clouds(n: int) -> Points:
    """Return two Gaussian clouds, a tenth of a percent labeled, at least ten points."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n).astype(np.uint8)
    x = rng.normal(size=(n, FEATURES)) + y[:, None]
    labeled = np.zeros(n, bool)
    labeled[: max(10, n // 1000)] = True
    return Points(
        name="clouds",
        source="synthetic",
        x=x,
        y=y,
        offsets=np.arange(n + 1),
        n_labels=2,
        structure=POINTS,
        labeled=labeled,
    )


def draw(table: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw the seconds over the points, beside a line of slope 1, and write both."""
    from ssvm_bench.figures import drawing
    from ssvm_bench.figures.kind import Output, save

    title = f"DC-ADMM: an iteration, linear kernel, {FEATURES} features"
    with drawing.page(title, ["Dashed: proportional to n."], (1, 1), ((), ())) as (figure, panels):
        panel = panels[0, 0]
        last = table.iloc[-1]
        panel.loglog(table["n"], table["n"] * last["seconds"] / last["n"], "--", color="#999999")
        panel.loglog(table["n"], table["seconds"], "o-", color="#A50026")
        panel.set(xlabel="points n", ylabel="CPU seconds")
        panel.grid(axis="y")
    return save(Output("growth", table, figure=lambda: figure), stem, ["png"])


if __name__ == "__main__":
    for path in draw(growth(), Path("results/figures/dcadmm_growth/growth")):
        print(path)
