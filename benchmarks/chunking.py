"""Chunks of sentences beside CRFsuite: time to the same test accuracy, on the same features.

λ is the best of a path for a tenth of the training sentences, held out. With it, ``mpbcfw_fast``
trains on all of them to a gap of 1 %; all CPU seconds count from the examples in memory to w,
evaluations with them. The test accuracy to reach is at most 0.1 points below what that gives.
CRFsuite's L-BFGS and averaged perceptron have their own options but for the number of iterations:
it is doubled until they reach it, and the time of that run alone counts, as if the number had been
known. Its ``train`` alone is timed. Ours to the same accuracy is counted likewise: from the
examples in memory to the first iteration that has it, as if its number had been known. Both are
medians of three runs.

λ = 1/n, far below the best one, is the same problem made hard: there, CPU seconds of the solver.

References
----------
N. Okazaki: CRFsuite: a fast implementation of conditional random fields. 2007.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

from benchmarks.passes import loaded, seconds
from benchmarks.processes import peak_of_run
from benchmarks.report import (
    CHUNKING,
    CHUNKING_GAP,
    CHUNKING_LONG,
    CHUNKING_MEMORY,
    PREDICTION,
    WRONG_CHUNKS,
    Measurement,
)
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.random import permutation
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Problem
from ssvm_bench.results.scores import Scores, are_chunks
from ssvm_bench.runs import components, runner
from ssvm_bench.runs.prediction import predictor, score
from ssvm_bench.runs.terminal import Display

PATH = (1000, 500, 200, 100, 50)
"""λ n, from the largest."""

HELD_OUT = 0.1
GAP = 0.01
MOST_ITERATIONS = 200
EQUAL = 0.001
"""Of test accuracies."""

ALGORITHMS = {"lbfgs": "L-BFGS", "ap": "averaged perceptron"}
ITERATIONS = (10, 20, 40, 80, 160)
REPEATS = 3


class Rival(NamedTuple):
    """A run of CRFsuite: CPU seconds, peak memory in bytes, how good it is, iterations at most."""

    seconds: float
    peak: int
    scores: Scores
    iterations: int


def measure_chunking(call: Sequence[str]) -> Iterator[Measurement]:
    """Compare on the dataset that the overrides ``call`` choose, if it is one of chunks."""
    words = (*call, "solver=mpbcfw_fast", "clock=cpu", f"budget.gap_tol={GAP}")
    words += (f"budget.max_iterations={MOST_ITERATIONS}",)
    config = compose_runs(words)[0]
    dataset = loaded(config.dataset)
    if not ("test" in dataset.held_out and are_chunks(dataset.label_names)):
        return
    subject, lam = (dataset.name, dataset.source), f"lam={_best(words, dataset)}/n"
    config, test = compose_runs((*words, lam))[0], dataset.held_out["test"]
    # what compiles is not timed, steps of second order neither
    runner.train(config, dataset, Display())
    begin = process_time()
    w = runner.train(config, dataset, Display())[0].w
    to_gap = process_time() - begin
    begin = process_time()
    predicted = predictor(config.oracle, test).predictions(w)
    hundred_thousand = 1e5 / test.y.size * (process_time() - begin)
    yield Measurement(*subject, PREDICTION, *3 * (hundred_thousand,), unit="s")
    scores = score(test, predicted)
    yield _wrong(subject, "mpbcfw_fast", scores, lam)
    last = runner.train(compose_runs((*words, "lam=1/n"))[0], dataset, Display())[0].rows[-1]
    note = f"{last['iteration']} iterations; relative gap {last['gap'] / last['primal']:.2g}"
    yield Measurement(*subject, CHUNKING_LONG, *3 * (last["time"],), unit="s", note=note)
    times = [_time_to(scores.accuracy - EQUAL, config, dataset, test) for _ in range(REPEATS)]
    ours, iterations = sorted(times)[REPEATS // 2]
    with tempfile.TemporaryDirectory() as folder:
        peak = peak_of_run(*words, lam)
        files = [written(data, Path(folder, f"{k}.txt")) for k, data in enumerate((dataset, test))]
        for algorithm, name in ALGORITHMS.items():
            found = _reached(algorithm, files, test, scores.accuracy - EQUAL)
            again = [_crfsuite(algorithm, found.iterations, files, test) for _ in times[1:]]
            found = sorted([found, *again], key=lambda run: run.seconds)[REPEATS // 2]
            theirs = f"CRFsuite {found.seconds:.3g} s, {found.iterations} iterations; {lam}"
            for row, spent, note in (
                (CHUNKING, ours, f"{iterations} iterations; {theirs}"),
                (CHUNKING_GAP, to_gap, theirs),
            ):
                ratios = 3 * (spent / found.seconds,)
                yield Measurement(*subject, row.format(name), *ratios, seconds=spent, note=note)
            ratio = 1e6 * peak / found.peak
            note = f"{peak:.0f} MB, CRFsuite {found.peak / 1e6:.0f} MB"
            yield Measurement(*subject, CHUNKING_MEMORY.format(name), *3 * (ratio,), note=note)
            yield _wrong(subject, f"CRFsuite's {name}", found.scores, "")


def _best(words: Sequence[str], dataset: Dataset) -> int:
    """Return the λ n that predicts best what is held out of the training examples."""
    order = permutation(dataset.n, np.random.PCG64(0))
    size = max(1, round(HELD_OUT * dataset.n))
    held_out, rest = dataset.take(np.sort(order[:size])), dataset.take(np.sort(order[size:]))
    config = compose_runs(words)[0]
    oracle = components.oracle_of(config.oracle, rest)
    judge, solver, wrong = predictor(config.oracle, held_out), None, []
    for K in PATH:
        problem = Problem(oracle, K / rest.n)
        if solver is None:
            solver = components.build_solver(config, problem, Clock("work"))
        else:
            solver.warm_start(problem.lam, Clock("work"))
        for _ in range(MOST_ITERATIONS):
            solver.iterate()
            iterate = solver.reported()
            primal = problem.primal(iterate.w)
            if primal - iterate.dual <= GAP * primal:
                break
        wrong.append(np.count_nonzero(judge.predictions(iterate.w) != held_out.y))
    return PATH[int(np.argmin(wrong))]


def _time_to(
    accuracy: float, config: RunConfig, dataset: Dataset, test: Dataset
) -> tuple[float, int]:
    """Return the seconds to a test accuracy, looking at it apart, and the iterations."""
    judge = predictor(config.oracle, test)
    begin = process_time()
    problem = Problem(components.oracle_of(config.oracle, dataset), config.lam_of(dataset.n))
    solver = components.build_solver(config, problem, Clock("cpu"))
    spent = process_time() - begin
    for iteration in range(1, MOST_ITERATIONS + 1):
        spent += seconds(solver.iterate)
        if score(test, judge.predictions(solver.reported().w)).accuracy >= accuracy:
            return spent, iteration
    return math.nan, MOST_ITERATIONS


def _reached(algorithm: str, files: Sequence[Path], test: Dataset, accuracy: float) -> Rival:
    """Return the shortest run of CRFsuite that is accurate enough, or the longest."""
    for iterations in ITERATIONS:
        found = _crfsuite(algorithm, iterations, files, test)
        if found.scores.accuracy >= accuracy:
            break
    return found


def _crfsuite(algorithm: str, iterations: int, files: Sequence[Path], test: Dataset) -> Rival:
    """Train with CRFsuite, and label the test examples."""
    out = files[0].with_name("out.json")
    words = (algorithm, str(iterations), *map(str, files), str(out))
    subprocess.run([sys.executable, "-m", "benchmarks.crfsuite", *words], check=True)
    told = json.loads(out.read_text())
    number = {name: k for k, name in enumerate(test.label_names)}
    scores = score(test, np.array([number[label] for label in told["labels"]]))
    return Rival(told["seconds"], told["peak"], scores, iterations)


def written(data: Dataset, file: Path) -> Path:
    """Write sentences as `benchmarks.crfsuite` reads them; return the file."""
    assert data.vocabulary is not None
    assert not isinstance(data.x, np.ndarray)
    names = np.array(data.vocabulary.features, object)[data.x.indices]
    labels = np.array(data.label_names, object)[data.y]
    ends = {*data.offsets[1:].tolist()}
    with file.open("w", encoding="utf-8") as out:
        for part, label in enumerate(labels):
            there = names[data.x.indptr[part] : data.x.indptr[part + 1]]
            out.write("\t".join((label, *there)) + "\n" * (1 + (part + 1 in ends)))
    return file


def _wrong(subject: tuple[str, str], whose: str, scores: Scores, note: str) -> Measurement:
    """Return how far the F1 of chunks is from 100 %."""
    value = 100.0 * (1.0 - scores.chunks["all"].f1)
    told = f"accuracy {scores.accuracy:.2%}" + f"; {note}" * bool(note)
    return Measurement(
        *(*subject, WRONG_CHUNKS.format(whose), value, value, value), unit="%", note=told
    )
