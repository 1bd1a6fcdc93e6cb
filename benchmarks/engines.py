"""``python -m benchmarks.engines``: an experiment of short runs by an engine, and by ``--jobs``.

Each is a whole call of the program, from its start to its end, on a results folder of its own: the
start of the engine's cluster belongs to it. They are made in turn, and compared by their medians.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import click

from ssvm_bench.config import LOCAL
from ssvm_bench.jobs import MEANT

GRID = """
grid:
  seed: range({runs})
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 500
  solver: mpbcfw
  budget.max_iterations: {iterations}
"""

ENGINES = tuple(name for name in MEANT if name != LOCAL)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--backend", type=click.Choice([one for one in MEANT if one != LOCAL]), default="dask"
)
@click.option("--runs", type=click.IntRange(1), default=200, show_default=True)
@click.option("--iterations", type=click.IntRange(1), default=10, show_default=True, help="Each.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="At once.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--address", help="Of a scheduler; else a cluster of its own.")
def main(
    backend: str, runs: int, iterations: int, jobs: int, rounds: int, address: str | None
) -> None:
    """Compare the seconds of an experiment by an engine with those of ``--jobs``."""
    by_engine = [f"--backend={backend}"]
    if backend == "submitit":
        by_engine += [f"--parallel={jobs}"]
    else:
        by_engine += [f"--address={address}" if address else f"--jobs={jobs}"]
    options = {f"--jobs {jobs}": [f"--jobs={jobs}"], " ".join(by_engine): by_engine}
    found: dict[str, list[float]] = {name: [] for name in options}
    with tempfile.TemporaryDirectory() as folder:
        grid = Path(folder) / "grid.yaml"
        grid.write_text(GRID.format(runs=runs, iterations=iterations))
        seconds(grid, Path(folder) / "warm", ["--jobs=1", "seed=0"])  # kernels are compiled
        for turn in range(rounds):
            for number, (name, own) in enumerate(options.items()):
                took = seconds(grid, Path(folder) / f"{turn}-{number}", own)
                found[name].append(took)
                click.echo(f"{name}: {took:.1f} s")
    here, there = map(median, found.values())
    click.echo(f"{runs} runs: {here:.1f} s here, {there:.1f} s by {backend}: {there / here:.3f}")


def seconds(grid: Path, results: Path, options: list[str]) -> float:
    """Return how long the program takes for an experiment."""
    command = [sys.executable, "-m", "ssvm_bench", "experiment", str(grid)]
    begin = perf_counter()
    subprocess.run([*command, f"results_dir={results}", *options], check=True, capture_output=True)
    return perf_counter() - begin


if __name__ == "__main__":
    main()
