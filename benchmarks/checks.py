"""What checking and measuring cost: of a pass, and of loading.

.. code-block:: text

    answers:  100 (t(all terms, checked) − t(all terms, unchecked)) / t(exact BCFW pass)
    clock:    100 t(two reads of the clock for each term) / t(exact BCFW pass), where it is compiled
    data:     100 t(check) / t(load from the cache, which checks)

in CPU time, in turn, at the w that BCFW has reached by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.passes import loaded, seconds
from benchmarks.report import CHECKED_ANSWERS, CHECKED_DATA, CLOCK_READS, Measurement, from_samples
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import allocating_kernel, nanoseconds
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import base
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.graph import GraphOracle
from ssvm_bench.oracles.labeling import LabelingOracle, PartsOracle, judged, maximise
from ssvm_bench.oracles.scoring import longest, unary_scores
from ssvm_bench.runs import components

# mypy: disable-error-code="no-untyped-def"

LOADS = 9
"""Times that the data are loaded."""

LEAST_PASSES, MOST_PASSES, SECONDS = 5, 100, 10.0
"""Passes that are measured: as many as take so many seconds."""


def measure_checks(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure what checking costs on the dataset that the overrides choose."""
    (config,) = compose_runs((*call, "solver=bcfw"))
    dataset = loaded(config.dataset)
    subject = (dataset.name, dataset.source)
    print(f"{dataset.name}: checks …", file=sys.stderr, flush=True)
    if dataset.source != "synthetic":  # those are made, not loaded
        yield _of_loading(dataset, config.dataset)
    oracle = components.build_oracle(config.oracle, config.dataset).fresh()
    components.warm_up(config, dataset)
    problem = Problem(oracle, config.lam_of(dataset.n))
    solver = components.build_solver(config, problem, Clock("cpu"))
    assert isinstance(oracle, PartsOracle)
    answer: Callable[..., None] = _compiled if isinstance(oracle, LabelingOracle) else _called
    solver.iterate()
    answer(oracle, solver.reported().w, True)  # compiles
    _read_clock(1)
    answers: list[float] = []
    reads: list[float] = []
    spent = 0.0
    while len(answers) < LEAST_PASSES or (len(answers) < MOST_PASSES and spent < SECONDS):
        ask = partial(answer, oracle, solver.reported().w)
        order = (True, False) if len(answers) % 2 else (False, True)
        times = {checked: seconds(partial(ask, checked)) for checked in order}
        whole = seconds(solver.iterate)
        answers.append(100 * (times[True] - times[False]) / whole)
        reads.append(100 * seconds(partial(_read_clock, 2 * oracle.n)) / whole)
        spent += whole + sum(times.values())
    note = f"{len(answers)} passes"
    yield from_samples(*subject, CHECKED_ANSWERS, answers, unit="%", note=note)
    if answer is _compiled:
        yield from_samples(*subject, CLOCK_READS, reads, unit="%", note=note)


def _of_loading(dataset: Dataset, config: Any) -> Measurement:
    """Measure the share of the data's checks in loading them."""
    spent, shares = [], []
    for _ in range(LOADS):
        components.load_dataset.cache_clear()
        whole = seconds(partial(components.load_dataset, config))
        spent.append(seconds(partial(base.check, dataset)))
        shares.append(100 * spent[-1] / whole)
    note = f"{1000 * median(spent):.2g} ms"
    return from_samples(dataset.name, dataset.source, CHECKED_DATA, shares, unit="%", note=note)


def _called(oracle: GraphOracle, w: np.ndarray, checked: bool) -> None:
    """Ask for the planes of all terms as solvers do, or without the checks."""
    for i in range(oracle.n):
        if checked:
            oracle.best_plane(w, i)
        else:
            oracle.plane(i, oracle.labeling(w, i, augmented=True))


def _compiled(oracle: LabelingOracle, w: np.ndarray, checked: bool) -> None:
    """Ask for the labelings of all terms as a compiled pass does, or without the checks."""
    _labelings(oracle.compiled, oracle.exact, oracle.pack(w), longest(oracle.features), checked)


@allocating_kernel
def _read_clock(times):
    """Read the clock so many times, as exact passes do around every call of the oracle."""
    timespec = np.zeros(2, np.int64)
    last = 0
    for _ in range(times):
        last = nanoseconds(timespec)
    return last


@allocating_kernel
def _labelings(oracle, exact, w, most, checked):
    features = oracle.features
    y = np.zeros(most, np.uint8)
    theta = np.zeros((most, features.stride))
    faults = 0
    for i in range(features.offsets.size - 1):
        unary_scores(features, w, i, theta)
        maximise(oracle, w, i, theta, 1.0, y)
        if checked:
            faults += judged(features, exact, w, i, theta, 1.0, y)[2]
    return faults
