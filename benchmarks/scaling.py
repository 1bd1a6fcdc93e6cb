"""How cost grows: ``python -m benchmarks.scaling`` draws ``results/figures/scaling/``.

One size at a time grows, and each setting runs in a process of its own: `mpbcfw` with four
approximate passes an iteration, λ = 1/n, of graphs 0.001. Passes are medians over the second half
of the iterations, in CPU seconds. Memory is the peak of the process. Exponents are slopes between
the last two settings, where what grows dominates; that of memory is above the smallest setting's
peak, which is mostly the program.

============  =====================================================================================
what grows    data
============  =====================================================================================
examples      OCR 1, 2, 4, 8 and 16 times, or synthetic
length        16 simulated chains, 16 labels, 32 features
labels        simulated chains of 8 parts: 200 chains, 32 features
features      simulated chains of 8 parts: 1,000 chains, 16 labels, 20 features of a part are not 0
superpixels   16 simulated planar graphs of two labels, 32 features
============  =====================================================================================
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from benchmarks.launcher import UNIT
from benchmarks.passes import Stopwatch, fix_work, loaded, seconds
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

SIZES = {
    "examples": (1, 2, 4, 8, 16),
    "length": (8, 32, 128, 512, 2048),
    "labels": (2, 8, 32, 128, 512),
    "features": (10**2, 10**3, 10**4, 10**5, 10**6),
    "superpixels": (64, 256, 1024, 4096, 16384),
}
GRAPHS, NONZERO = 16, 20
ITERATIONS = 6
PASSES = ("exact pass", "approximate pass")


def made(grows: str, size: int) -> Dataset:
    """Return the data of a setting."""
    rng = np.random.default_rng(0)
    if grows == "examples":
        (config,) = compose_runs(["dataset=ocr"])
        data = loaded(config.dataset)
        lengths = np.tile(np.diff(data.offsets), size)
        bounds = np.concatenate(([0], np.cumsum(lengths)))
        tiled = np.tile(np.asarray(data.x), (size, 1))
        return data.derived(x=tiled, y=np.tile(data.y, size), offsets=bounds, fold=None)
    if grows == "superpixels":
        return _graphs(size, rng)
    length = size if grows == "length" else 8
    n = {"length": 16, "labels": 200}.get(grows, 1000)
    K = size if grows == "labels" else 16
    y = rng.integers(0, K, n * length)
    x: Any
    if grows == "features":
        columns = rng.integers(0, size, (y.size, NONZERO))
        rows = np.arange(0, y.size * NONZERO + 1, NONZERO)
        x = csr_array((rng.normal(size=columns.size), columns.ravel(), rows), (y.size, size))
        x.sum_duplicates()
    else:
        x = rng.normal(size=(K, 32))[y] + rng.normal(size=(y.size, 32))
    bounds = np.arange(0, y.size + 1, length)
    return Dataset("simulated", x, y.astype(np.uint16), bounds, K, "chain", source="synthetic")


def _graphs(size: int, rng: np.random.Generator) -> Dataset:
    """Return square grids, each of whose cells has a diagonal: 3 edges a node, as superpixels."""
    side, parts = int(np.sqrt(size)), GRAPHS * size
    at = np.arange(size).reshape(side, side)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:]), (at[:-1, :-1], at[1:, 1:])]
    edges = np.concatenate([np.stack((a.ravel(), b.ravel()), 1) for a, b in pairs])
    y = rng.integers(0, 2, parts).astype(np.uint8)
    x = (rng.normal(size=(2, 32))[y] + 3 * rng.normal(size=(y.size, 32))) / size
    return replace(
        Dataset("simulated", x, y, np.arange(0, parts + 1, size), 2, "chain", source="synthetic"),
        structure="graph",
        edges=np.tile(edges, (GRAPHS, 1)).astype(np.int32),
        edge_offsets=np.arange(GRAPHS + 1) * len(edges),
    )


def measure(grows: str, size: int) -> dict[str, float]:
    """Return the seconds of passes, and the peak memory of this process in megabytes."""
    words, lam = ["dataset=ocr", "oracle=viterbi"], None
    if grows == "superpixels":  # scores of a node, its loss and its edges all fall with the size
        words, lam = ["dataset=weizmann", "oracle=mincut", f"oracle.potts={0.2 / size}"], 1e-3
    (config,) = compose_runs([*words, "solver=mpbcfw"])
    config, data = fix_work(config), made(grows, size)
    components.warm_up(config, data)
    module = registry.module("oracle", config.oracle.kind)
    problem = Problem(module.build(config.oracle, data), lam or 1 / data.n)
    clock = Stopwatch(*config.oracle.costs)
    solver = components.build_solver(config, problem, clock)
    found = []
    for _ in range(ITERATIONS):
        clock.passes.clear()
        total = seconds(solver.iterate)
        approximate = [spent for spent, _ in clock.passes]
        found.append((total - sum(approximate), np.median(approximate)))
    exact, approximate = np.median(found[ITERATIONS // 2 :], axis=0)
    peak = UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {PASSES[0]: exact, PASSES[1]: approximate, "MB": peak}


def table() -> pd.DataFrame:
    """Measure all settings, each in a process of its own."""
    rows = []
    for grows, sizes in SIZES.items():
        for size in sizes:
            command = [sys.executable, "-m", "benchmarks.scaling", grows, str(size)]
            for _ in range(2):  # the first one may compile
                done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append({"grows": grows, "size": size, **json.loads(done.stdout)})
            print(rows[-1], file=sys.stderr, flush=True)
    return pd.DataFrame(rows)


def exponents(rows: pd.DataFrame) -> list[str]:
    """Return, as text, the exponent of each column between the last two settings."""
    last = rows.iloc[-2:]
    by = np.diff(np.log(last["size"].to_numpy(float)))
    above = last.assign(MB=last["MB"] - rows["MB"].min())
    with np.errstate(divide="ignore"):  # the last setting but one may have the least memory
        slopes = [(np.diff(np.log(above[name])) / by).item() for name in (*PASSES, "MB")]
    return [f"{slope:.2f}" if np.isfinite(slope) else "–" for slope in slopes]


def draw(found: pd.DataFrame, stem: Path) -> list[Path]:
    """Draw and tabulate, and write both."""
    from ssvm_bench.figures import document, drawing
    from ssvm_bench.figures.kind import Output, save

    title = "How the passes of mpbcfw grow"
    lines = []
    notes = ["Dashed: proportional to the size. Titles: exponents of both passes, and of memory."]
    with drawing.page(title, notes, (1, len(SIZES)), ((), ())) as (figure, panels):
        for panel, (grows, rows) in zip(panels[0], found.groupby("grows", sort=False), strict=True):
            size = rows["size"]
            for name, colour in zip(PASSES, ("#D55E00", "#0072B2"), strict=True):
                panel.loglog(size, rows[name], "o-", color=colour, label=name)
                last = rows[name].iloc[-1]
                panel.loglog(size, size * last / size.iloc[-1], "--", color="#999999", lw=0.8)
            powers = exponents(rows)
            panel.set(xlabel=str(grows), title=f"{grows}: {', '.join(powers)}")
            panel.grid(axis="y")
            for row in rows.to_dict("records"):
                cells = [f"{row[name]:.3g}" for name in PASSES]
                lines.append([str(grows), f"{row['size']:,}", *cells, f"{row['MB']:.0f}"])
            lines.append([f"{grows}: exponents", "", *powers])
        panels[0, 0].set_ylabel("CPU seconds")
        panels[0, 0].legend()
    header = ["what grows", "size", *(f"{name}, s" for name in PASSES), "peak memory, MB"]
    shown = document.Table("", header, lines, headed=False)
    output = Output(stem.name, found, title, [shown], figure=lambda: figure)
    return save(output, stem, ["png"])


def main(arguments: list[str]) -> None:
    """Measure one setting and print it as JSON, or all and draw them."""
    if arguments:
        print(json.dumps(measure(arguments[0], int(arguments[1]))))
        return
    for path in draw(table(), Path("results/figures/scaling/scaling")):
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
