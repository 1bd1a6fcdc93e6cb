"""How online dual coordinate descent spends its first pass, tenth by tenth (Ramanan 2013, 4).

    python docs/online.py

``one_pass``, a step for each new example: the share of those that pass the margin test and leave w
as it is. "At some point many (if not most) new examples" do.

``gap``, Algorithm 2: the visits of cached examples for each new one. "Behave like an online
algorithm (explore) during initial stages of learning, and behave more batch-like (optimize) during
later stages."

``larank``, ten cached examples for each new one: the shares of new and of cached ones whose visit
changes their weight. Cached ones are revisited as "they are more likely to trigger an update".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from stored import keep

from ssvm_bench.base.clock import Clock
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.oracles.chunked import ChunkedOracle
from ssvm_bench.runs.components import load_dataset
from ssvm_bench.solvers.coordinate.dcd_online import ENTERED

TENTHS = 10


class Watched(ChunkedOracle):
    """An oracle that says when a solver has met the examples of a chunk."""

    after: Callable[[int], None]

    def chunks(self) -> Iterator[tuple[int, Oracle]]:
        """See `ChunkedOracle`."""
        for begin, part in super().chunks():
            yield begin, part
            self.after(begin + part.n)


def first_pass(
    data: Dataset, build: Callable[[Dataset], Oracle], lam: float, schedule: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, tenth by tenth, which share passed; visits of cached ones for each; steps per visit.

    In a first pass a cached example has one plane, and so a visit one step at most. Steps and
    visits of an example just when it comes in are not counted among those of cached ones.
    """
    data = data.take(np.random.default_rng(0).permutation(data.n))
    oracle = Watched(data, build, -(-data.n // TENTHS))
    module = registry.module("solver", "dcd_online")
    config = module.Config("dcd_online", "dcd_online", schedule=schedule, cache=100_000)
    made = module.build(config, Problem(oracle, lam), Clock("work"), 0)
    counts = [(0, 0, 0, 0)]
    oracle.after = lambda met: counts.append(
        (met, int(made.seen.tally[ENTERED]), made.clock.approx_calls, made.cached.steps)
    )
    made.iterate()
    met, entered, visits, steps = np.diff(counts, axis=0).T
    again = visits - entered * made.plan.steps
    return (
        1 - entered / met,
        visits / met,
        (steps - entered * made.plan.steps) / np.maximum(again, 1),
    )


def table() -> Iterator[dict[str, Any]]:
    """Yield a row for each tenth of a dataset."""
    for name, lam in {"adult": "1/n", "usps": "0.001", "mnist": "0.001"}.items():
        (config,) = compose_runs([f"dataset={name}", "dataset.source=real", f"lam={lam}"])
        data = load_dataset(config.dataset)
        weight = 1 / data.n if lam == "1/n" else float(lam)
        build = partial(registry.module("oracle", config.oracle.kind).build, config.oracle)
        passed, _, _ = first_pass(data, build, weight, "one_pass")
        _, visits, _ = first_pass(data, build, weight, "gap")
        easy, _, stepped = first_pass(data, build, weight, "larank")
        names = ("pass", "visits", "new_step", "cached_step")
        for tenth, of in enumerate(zip(passed, visits, 1 - easy, stepped, strict=True), 1):
            yield {"dataset": name, "tenth": tenth, **dict(zip(names, of, strict=True))}


if __name__ == "__main__":
    keep("online/online", table())
