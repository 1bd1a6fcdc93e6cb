"""Streams: how fast examples come from a file, and how much memory it takes to train on them.

The file is exported by the program itself, deformed digits in a random order. Rates are compared in
this process, at the same w: an exact pass over a stream, with reading, checking and the building of
each chunk's oracle, and one over the same examples in memory, where all of that has been done
before. Peak memory is that of a whole run in a process of its own, as are all exports.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.passes import seconds
from benchmarks.processes import launch, peak_of_run
from benchmarks.report import GROWTH, ONLINE, STREAM, STREAM_MEMORY, Measurement, from_samples
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.stream import DataStream
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

JITTER = "shift=1,rotation=10,elastic=1.4"
SOLVER = ("solver=dcd_online", "solver.schedule=one_pass")  # a fixed amount of work an example

ROUNDS = 5
"""Exact passes of each kind, in turn."""

FIRST_PASSES = 3
"""First passes of the solver, in turn as well."""


def measure_streams(call: Sequence[str], repeats: Sequence[int]) -> Iterator[Measurement]:
    """Measure on files of the digits that the overrides ``call`` choose, each so many times."""
    (config,) = compose_runs(call)
    if config.dataset.kind != "mnist":
        return
    words = [word for word in call if word.startswith("dataset.")]
    with tempfile.TemporaryDirectory() as folder:
        path, shortest = Path(folder, "digits.parquet"), Path(folder, "shortest.parquet")
        peaks: dict[int, float] = {}
        for repeat in sorted(repeats, reverse=True):
            path = shortest if repeat == min(repeats) else path
            how = ("--repeat", str(repeat), "--order", "shuffled", "--jitter", JITTER)
            launch("data", "export", config.dataset.name, str(path), *how, *words)
            stream = DataStream(path, config.dataset.name)
            subject = (stream.name, stream.source)
            if not peaks:
                _peak(path)  # compiles, which takes memory, too
            peaks[repeat] = _peak(path)
            what = STREAM_MEMORY.format(stream.n)
            yield from_samples(*subject, what, [peaks[repeat]], unit="MB", note="one pass")
            if 2 * repeat in peaks:
                growth = [peaks[2 * repeat] / peaks[repeat]]
                yield from_samples(*subject, GROWTH.format(stream.n), growth)
        yield from _rates(shortest, *subject)


def _peak(path: Path) -> float:
    """Return the peak memory of a pass of training, in megabytes."""
    options = ("budget.max_iterations=1", "clock=cpu")
    return peak_of_run("dataset=stream", f"dataset.path={path}", *SOLVER, *options)


def _rates(path: Path, *subject: str) -> Iterator[Measurement]:
    """Compare passes over a stream with passes over what is in memory."""
    config = compose_runs(("dataset=stream", f"dataset.path={path}", *SOLVER))[0]
    problems = []
    for rows in (components.chunk_rows(config), None):
        oracle = components.build_oracle(config.oracle, config.dataset, rows)
        problems.append(Problem(oracle, config.lam_of(oracle.n)))
    components.warm_up(config, components.load_dataset(config.dataset))
    firsts = [[_first(config, each)[1] for each in problems] for _ in range(FIRST_PASSES)]
    w = _first(config, problems[1])[0]
    exact = [[seconds(partial(each.oracle.risk, w)) for each in problems] for _ in range(ROUNDS)]
    for what, times in ((STREAM, exact), (ONLINE, firsts)):
        there, here = np.transpose(times)
        rate = problems[0].n / np.median(there)
        yield from_samples(
            *(*subject, what, there / here),
            seconds=float(np.median(there)),
            note=f"{rate:.0f} examples/s",
        )


def _first(config: RunConfig, problem: Problem) -> tuple[np.ndarray, float]:
    """Return the w of a first pass, and its time."""
    solver = components.build_solver(config, problem, Clock("cpu"))
    spent = seconds(solver.iterate)
    return solver.reported().w, spent
