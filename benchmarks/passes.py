"""Passes against the product, in one process.

All solvers advance in step, one iteration each, with the product timed before each of them: what
slows the machine for a while slows neighbours alike, and drops out of their ratio. Other processes
are kept out by counting CPU time, which for one thread is the wall time of an idle machine. Medians
are over repeated runs, which do the same work: the number of approximate passes is fixed, and the
rule that could end them earlier reads a clock of counted work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.report import APPROXIMATE, EXACT, Measurement, from_samples
from ssvm_bench.base.clock import Clock, ExactCalls
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

FIRST = 10
"""An exact pass is averaged over so many, from w = 0; solvers without working sets do no more."""

APPROXIMATE_PASSES = 4
"""Approximate passes of an iteration."""


class Stopwatch(Clock):
    """A clock of counted work that also times passes: of each, the solver tells its clock.

    Attributes
    ----------
    share : float
        The oracle's share of the last exact pass.
    passes : list of (float, float)
        Seconds of each approximate pass, and planes a term that it evaluated.
    """

    def __init__(self, *costs: float) -> None:
        super().__init__("work", *costs)
        self.share = 1.0
        self.passes: list[tuple[float, float]] = []
        self._last = process_time()

    @contextmanager
    def exact(self, calls: int) -> Iterator[ExactCalls]:
        """Keep the share, and when the pass ended."""
        with super().exact(calls) as made:
            yield made
        self.share = made.share
        self._last = process_time()

    def approximate(self, calls: int, plane_evaluations: int) -> None:
        """Keep the time since the last pass ended, and the planes a term."""
        super().approximate(calls, plane_evaluations)
        now = process_time()
        self.passes.append((now - self._last, plane_evaluations / max(calls, 1)))
        self._last = now


@dataclass(frozen=True)
class Timings:
    """Seconds of one solver, arrays of shape (repeats, passes).

    Attributes
    ----------
    product, exact, approximate : ndarray
        Of the product, of an exact pass (all of an iteration but its approximate passes), and of
        an approximate pass (NaN where there was none).
    share : ndarray
        The oracle's share of the exact pass.
    planes : ndarray
        Planes a term that an approximate pass evaluated.
    """

    product: np.ndarray
    exact: np.ndarray
    approximate: np.ndarray
    share: np.ndarray
    planes: np.ndarray


class Product:
    """The yardstick: the product of all parts' features with the unary weights, dense by BLAS."""

    def __init__(self, dataset: Dataset) -> None:
        dense = isinstance(dataset.x, np.ndarray)
        self.x = np.ascontiguousarray(dataset.x, np.float64) if dense else dataset.x
        self.w = np.linspace(-1.0, 1.0, dataset.n_features * dataset.n_labels)
        self.w = self.w.reshape(dataset.n_features, dataset.n_labels)
        out = np.empty((self.x.shape[0], dataset.n_labels))
        self._multiply = partial(np.matmul, self.x, self.w, out) if dense else self._sparse

    def seconds(self) -> float:
        """Return the median time of three products."""
        return median(seconds(self._multiply) for _ in range(3))

    def _sparse(self) -> np.ndarray:
        return self.x @ self.w


def measure_passes(
    call: Sequence[str], solvers: Sequence[str], passes: int, repeats: int
) -> Iterator[Measurement]:
    """Measure solvers on the dataset that the overrides ``call`` choose."""
    configs = {name: fix_work(compose_runs((*call, f"solver={name}"))[0]) for name in solvers}
    first = next(iter(configs.values()))
    dataset = loaded(first.dataset)
    problem = Problem(components.build_oracle(first.oracle, first.dataset), first.lam_of(dataset.n))
    for config in configs.values():
        components.warm_up(config, dataset)
    product = Product(dataset)
    timings = in_step(configs, problem, product, passes, repeats)
    subject = (dataset.name, dataset.source)
    yield from evaluation(subject, problem, product)
    yield from summarise(subject, timings)


def fix_work(config: RunConfig) -> RunConfig:
    """Return the config with a fixed number of approximate passes, where it has any."""
    most = getattr(config.solver, "M", 0)
    if most <= APPROXIMATE_PASSES:
        return config
    return replace(config, solver=replace(config.solver, M=APPROXIMATE_PASSES))


def in_step(
    configs: Mapping[str, RunConfig], problem: Problem, product: Product, passes: int, repeats: int
) -> dict[str, Timings]:
    """Run all solvers in step, ``repeats`` times from w = 0; return the timings by solver."""
    timings = {
        name: Timings(*(np.full((repeats, passes), np.nan) for _ in range(5))) for name in configs
    }
    for r in range(repeats):
        dataset = next(iter(configs.values())).dataset
        print(f"{dataset.name}: passes, run {r + 1} of {repeats} …", file=sys.stderr, flush=True)
        solvers = {}
        for name, config in configs.items():
            clock = Stopwatch(*config.oracle.costs)
            solvers[name] = (components.build_solver(config, problem, clock), clock)
        for k in range(passes):
            for name, (solver, clock) in solvers.items():
                if k >= FIRST and not clock.passes:
                    continue
                clock.passes.clear()
                at, times = (r, k), timings[name]
                if k < FIRST:
                    times.product[at] = product.seconds()
                total = seconds(solver.iterate)
                times.exact[at] = total - sum(spent for spent, _ in clock.passes)
                times.share[at] = clock.share
                if clock.passes:
                    times.approximate[at], times.planes[at] = np.median(clock.passes, axis=0)
    return timings


def evaluation(
    subject: tuple[str, str], problem: Problem, product: Product
) -> Iterator[Measurement]:
    """Measure the primal at w = 0 against the product."""
    w = np.zeros(problem.d)
    pairs = [(product.seconds(), seconds(lambda: problem.primal(w))) for _ in range(FIRST)]
    bound, primal = np.transpose(pairs)
    yield from_samples(*subject, "product", bound, unit="s")
    spent = float(np.median(primal))
    yield from_samples(*subject, "primal / product", primal / bound, seconds=spent)


def summarise(subject: tuple[str, str], timings: Mapping[str, Timings]) -> Iterator[Measurement]:
    """Turn the timings of the solvers on one dataset into measurements."""
    for name, times in timings.items():
        ratio = (times.exact / times.product)[:, :FIRST]
        series = np.median(ratio, axis=0)
        yield Measurement(
            *subject,
            f"{name}: {EXACT}",
            value=float(series.mean()),
            low=float(ratio.min()),
            high=float(ratio.max()),
            seconds=float(np.median(times.exact[:, :FIRST])),
            series=tuple(series.tolist()),
            note=f"oracle {np.median(times.share[:, :FIRST]):.0%}",
        )
        late = np.isfinite(times.approximate)
        late[:, : -(late.shape[1] // 4 or 1)] = False  # working sets still grow
        if late.any():
            yield from_samples(
                *subject,
                f"{name}: {APPROXIMATE}",
                times.approximate[late] / times.exact[late],
                seconds=float(np.median(times.approximate[late])),
                note=f"at {times.planes[late].mean():.1f} planes a term",
            )
        plain = name.removesuffix("_avg")
        if plain != name and plain in timings:
            for kind in ("exact", "approximate"):
                ratio = getattr(times, kind) / getattr(timings[plain], kind)
                if np.isfinite(ratio).any():
                    what = f"{name} / {plain}: {kind} pass"
                    yield from_samples(*subject, what, ratio[np.isfinite(ratio)])


def loaded(config: Any) -> Dataset:
    """Return a dataset as a whole."""
    dataset = components.load_dataset(config)
    assert isinstance(dataset, Dataset)
    return dataset


def seconds(action: Callable[[], object]) -> float:
    """Return the CPU time of a call."""
    begin = process_time()
    action()
    return process_time() - begin
