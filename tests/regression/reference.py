"""The stored convergence curves: which runs they are, how they are kept, how a run is compared.

Called as a program, it stores what the code gives now: that is ``make update-reference``.

Every solver with every oracle on a tiny problem, under ``clock=work``, where no comparison is
decided by rounding. Counters must be equal. Values may differ by one part in 10⁹: other processors
have other exponentials and other sums in BLAS, and the files have twelve digits. What a mistake
in a step, a plane or a counter changes is larger by orders of magnitude.

Chains, digits and points are the first examples of the stand-ins. Those of images pass through
libraries whose last bits depend on the machine; so the graphs are drawn here.
"""

import functools
import io
import math
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.random import approx_normal, uniform
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.objective import Objective
from ssvm_bench.runs import components, runner
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.terminal import Display

FOLDER = Path(__file__).parent
STRUCTURAL = {
    "usps": ("dataset=usps", "dataset.source=synthetic", "dataset.n_samples=60"),
    "ocr": ("dataset=ocr", "dataset.source=synthetic", "dataset.n_samples=40"),
    "mincut": ("dataset=weizmann", "oracle=mincut"),
    "alpha_expansion": ("dataset=stanford", "oracle=alpha_expansion"),
}
POINTS = (
    *("dataset=ssl_bci", "dataset.source=synthetic"),
    *("dataset.labeled=100", "dataset.n_samples=80"),
)
TRANSDUCTIVE = {
    "transduction": POINTS,
    "transduction_rbf": (
        *(*POINTS, "oracle=transduction_rbf", "oracle.scaling=unit"),
        *("oracle.sigma=1", "oracle.nu=0.01", "oracle.balance=0.2"),
    ),
}
PROBLEMS = {**STRUCTURAL, **TRANSDUCTIVE}
GRAPH_LABELS = {"mincut": 2, "alpha_expansion": 4}
"""Problems on graphs of our own, and their numbers of labels."""

OF_THE_PAPERS = ("fw", "bcfw", "bcfw_avg", "bcfw_tail", "mpbcfw", "mpbcfw_avg")
BEYOND = ("bcfw_gap", "mpbcfw_away", "mpbcfw_gram", "mpbcfw_need", "mpbcfw_fast")
RIVALS = ("ssg", "ssg_weighted", "ssg_tail", "eg", "cutting_plane", "one_slack")
BUNDLES = ("bmrm", "p_bmrm", "prox_bmrm", "prox_p_bmrm")
SADDLE = ("excessive_gap", "extragradient")
COORDINATE = ("dcd", "dcd_online")
SOLVERS = (*OF_THE_PAPERS, *BEYOND, *RIVALS, *BUNDLES, *SADDLE, *COORDINATE)
OF_BYTES = (*OF_THE_PAPERS, *BEYOND)
"""Solvers that get the pixels of chains as bytes.

Others get floats, for which other tests compile their kernels, too: the curves are the same.
"""

OF_TRANSDUCTION = ("dcadmm", "coordinate_descent", "kernel_kmeans", "inductive")
WITH_EXPECTATIONS = ("eg", *SADDLE)
ITERATIONS = 20  # φ is recomputed from its terms after 10, and 10 make the start of Prox-BMRM
COUNTERS = ("iteration", "oracle_calls", "approx_calls", "approx_passes")
VALUES = ("time", "primal", "dual", "working_set_mean", "w_norm")
OF_LABELS = ("accuracy", "label_changes", "augmented_lagrangian", "residual", "supervised_gap")
"""Further values of transduction; not every solver has all of them."""

TOLERANCE = 1e-9


def solvers_of(name: str) -> tuple[str, ...]:
    """Return the solvers that can solve a problem: graphs have no expectations."""
    if name in TRANSDUCTIVE:
        return OF_TRANSDUCTION
    return tuple(s for s in SOLVERS if s not in WITH_EXPECTATIONS or name not in GRAPH_LABELS)


def graphs(K: int, n: int = 24, height: int = 4, width: int = 5, f: int = 8) -> Dataset:
    """Return grids whose labels come in patches, and whose features tell them apart with noise."""
    bits = np.random.PCG64(31 + K)
    parts = height * width
    # the label of a node is that of the nearest of three centres
    nodes = np.stack(np.divmod(np.arange(parts), width), axis=1).astype(float)
    centres = uniform((n, 3, 2), bits) * (height, width)
    nearest = ((nodes[None, :, None] - centres[:, None]) ** 2).sum(axis=3).argmin(axis=2)
    of_centre = (uniform((n, 3), bits) * K).astype(np.uint8)
    y = np.take_along_axis(of_centre, nearest, axis=1).ravel()
    x = approx_normal((K, f), bits)[y] + 1.5 * approx_normal((y.size, f), bits)
    places = np.arange(parts).reshape(height, width)
    down = np.stack((places[:-1].ravel(), places[1:].ravel()), axis=1)
    across = np.stack((places[:, :-1].ravel(), places[:, 1:].ravel()), axis=1)
    edges = np.concatenate((down, across)).astype(np.int32)
    ends = {"edges": np.tile(edges, (n, 1)), "edge_offsets": len(edges) * np.arange(n + 1)}
    offsets = parts * np.arange(n + 1)
    return Dataset("graphs", x, y, offsets, K, "graph", source="synthetic", **ends)


def columns_of(name: str) -> list[str]:
    """Return what is kept of the rows of a problem's traces."""
    return [*COUNTERS, *VALUES, *(OF_LABELS if name in TRANSDUCTIVE else ())]


def problem_of(config: RunConfig, name: str) -> tuple[Objective, str]:
    """Return the problem of a run, and the fingerprint of its data."""
    if name in GRAPH_LABELS:
        dataset = graphs(GRAPH_LABELS[name])
    else:
        dataset = components.load_dataset(config.dataset)
    given = dataset
    if dataset.x.dtype == np.uint8 and config.solver.name not in OF_BYTES:
        given = replace(dataset, x=dataset.x.astype(float))
    oracle = registry.module("oracle", config.oracle.kind).build(config.oracle, given)
    return oracle.problem(config.lam_of(dataset.n)), dataset.fingerprint


@functools.cache
def runs(name: str, *overrides: str) -> list[RunConfig]:
    """Return the runs of all solvers on a problem; composing them takes as long as making them."""
    options = (f"budget.max_iterations={ITERATIONS}", "clock=work", *overrides)
    solvers = f"solver={','.join(solvers_of(name))}"
    composed = compose_runs([*PROBLEMS[name], solvers, *options], multirun=True)
    return [without_factors(config) for config in composed]


def without_factors(config: RunConfig) -> RunConfig:
    """Return a run without steps of second order: LAPACK's last bits differ between processors."""
    if config.solver.name != "mpbcfw_fast":
        return config
    return replace(config, solver=replace(config.solver, newton_share=0.0))


def curves(name: str, *overrides: str) -> tuple[pd.DataFrame, str]:
    """Return the curves of all solvers on a problem now, and the fingerprint of the data."""
    frames, fingerprint = [], ""
    for config in runs(name, *overrides):
        problem, fingerprint = problem_of(config, name)
        recorder = Recorder(problem, Display())
        clock = Clock("work", *config.oracle.costs)
        runner.loop(config, components.build_solver(config, problem, clock), recorder)
        frame = pd.DataFrame(recorder.rows).reindex(columns=columns_of(name))
        frame.insert(0, "solver", config.solver.name)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True), fingerprint


def store(name: str) -> Path:
    """Let the curves of the code as it is be the reference; return their file."""
    table, fingerprint = curves(name)
    file = FOLDER / f"{name}.csv"
    head = (
        f"# Convergence on the problem {name} of reference.py, seed 0, clock=work.\n"
        "# Made by `make update-reference`, which accepts a wanted change.\n"
        f"# data {fingerprint}\n"
    )
    file.write_text(head + table.to_csv(index=False, float_format="%.12g"), encoding="utf-8")
    return file


def stored(name: str) -> tuple[pd.DataFrame, str]:
    """Return the reference curves, and the fingerprint of the data that they were made on."""
    text = (FOLDER / f"{name}.csv").read_text(encoding="utf-8")
    fingerprint = text.partition("# data ")[2].partition("\n")[0]
    return pd.read_csv(io.StringIO(text), comment="#"), fingerprint


def differences(now: pd.DataFrame, reference: pd.DataFrame) -> list[str]:
    """Return one line for every solver and column that differs: where first, and what from what."""
    found = []
    for solver in dict.fromkeys([*reference["solver"], *now["solver"]]):
        one, other = (table[table["solver"] == solver] for table in (now, reference))
        if len(one) != len(other):
            found.append(f"{solver}: {len(one)} rows instead of {len(other)}")
            continue
        for name in reference.columns.drop("solver"):
            tolerance = 0.0 if name in COUNTERS else TOLERANCE
            for k, a, b in zip(other["iteration"], one[name], other[name], strict=True):
                neither = math.isnan(a) and math.isnan(b)  # there is no such value
                if not neither and not math.isclose(a, b, rel_tol=tolerance, abs_tol=0.0):
                    found.append(f"{solver}: {name} {a!r} instead of {b!r} in iteration {k}")
                    break
    return found


def draw(now: pd.DataFrame, reference: pd.DataFrame, path: Path) -> Path:
    """Draw the gaps of both over the oracle calls, a panel a solver; return the PNG.

    Without a dual value, the primal one is drawn.
    """
    solvers = list(dict.fromkeys(reference["solver"]))
    rows, columns = -(-len(solvers) // 5), 5
    figure = Figure(figsize=(3 * columns, 3 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).flat
    for panel, solver in zip(panels, solvers, strict=False):
        for table, label, line in ((reference, "reference", "-"), (now, "now", "--")):
            curve = table[table["solver"] == solver]
            gap = curve["primal"] - curve["dual"].fillna(0.0)
            panel.plot(curve["oracle_calls"], gap, line, label=label)
        panel.set(title=solver, xlabel="oracle calls", yscale="log")
    panel.legend()
    figure.supylabel("duality gap")
    with mpl.rc_context({"savefig.dpi": 100}):
        figure.savefig(path)
    return path


if __name__ == "__main__":
    for problem in PROBLEMS:
        print(store(problem))
