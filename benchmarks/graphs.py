"""Oracles on graphs: a call of min-cut against the bare cut, of α-expansion in seconds, and shares.

Everything is measured at the w of MP-BCFW after ten iterations, over all terms, in CPU time. The
bare cut is the yardstick of min-cut: PyMaxflow's vectorised calls, given the capacities.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.passes import FIRST, loaded, seconds
from benchmarks.report import (
    BARE,
    CALL,
    IN_ORACLE,
    OUTSIDE_ORACLE,
    PARTIAL,
    Measurement,
    from_samples,
)
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import alpha_expansion, mincut
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.runs import components

ROUNDS = 5
"""Times that all terms are visited."""

Arguments = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def measure_graphs(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure the oracle of the dataset that the overrides choose; nothing if it has no graphs."""
    configs = {name: compose_runs((*call, f"solver={name}"))[0] for name in ("bcfw", "mpbcfw")}
    config = configs["mpbcfw"]
    dataset = loaded(config.dataset)
    if dataset.structure != "graph":
        return
    oracle = components.build_oracle(config.oracle, config.dataset)
    problem = Problem(oracle, config.lam_of(dataset.n))
    components.warm_up(config, dataset)
    subject = (dataset.name, dataset.source)
    for name, chosen in configs.items():
        _say(dataset, f"share of the oracle in {name}")
        share, w = _run(chosen, problem)
        inside = name == "mpbcfw"
        what, value = (IN_ORACLE, share) if inside else (OUTSIDE_ORACLE, 1 - share)
        note = f"{FIRST} iterations"
        yield from_samples(*subject, f"{name}: {what}", [100 * value], unit="%", note=note)
    _say(dataset, "calls of the oracle")
    if isinstance(oracle, mincut.MinCut):
        graphs = [capacities(dataset, w, i) for i in range(dataset.n)]
        yield from compare(subject, BARE, lambda i: call_once(oracle, w, i), graphs, bare_cut)
    elif isinstance(config.oracle, alpha_expansion.Config):
        with_first, without = (
            alpha_expansion.build(replace(config.oracle, partial_optimality=first), dataset)
            for first in (True, False)
        )
        terms = list(range(dataset.n))
        yield from compare(
            subject,
            PARTIAL,
            lambda i: call_once(with_first, w, i),
            terms,
            lambda i: call_once(without, w, i),
        )
        fixed = 100 * with_first.diagnostics()["fixed_share"]
        yield from_samples(*subject, "superpixels that are partially optimal", [fixed], unit="%")
        times = [seconds(lambda: [call_once(oracle, w, i) for i in terms]) for _ in range(ROUNDS)]
        yield from_samples(*subject, CALL, np.array(times) / dataset.n, unit="s")


def _run(config: RunConfig, problem: Problem) -> tuple[float, np.ndarray]:
    """Return the oracle's share of the first iterations, and w after them."""
    clock = Clock("cpu")
    solver = components.build_solver(config, problem, clock)
    for _ in range(FIRST):
        solver.iterate()
    return clock.oracle_time / clock.now(), solver.reported().w


def compare(
    subject: tuple[str, str],
    what: str,
    ours: Callable[[int], object],
    others: Sequence,
    other: Callable,
) -> Iterator[Measurement]:
    """Compare a call of ours with one of another, term by term in turn."""
    ratios, times = [], []
    for _ in range(ROUNDS):
        # neighbours in time: what slows the machine for a while slows both
        pairs = [
            (seconds(partial(ours, i)), seconds(partial(other, given)))
            for i, given in enumerate(others)
        ]
        mine, theirs = np.sum(pairs, axis=0)
        ratios.append(mine / theirs)
        times.append(mine / len(others))
    yield from_samples(*subject, what, ratios, seconds=float(np.median(times)))


def call_once(oracle: Oracle, w: np.ndarray, i: int) -> object:
    """Make a whole call as a solver does: scores, graph, minimisation, plane."""
    return oracle.plane(i, oracle.argmax(w, i))


def capacities(dataset: Dataset, w: np.ndarray, i: int) -> Arguments:
    """Return what a cut of example i must be given: capacities to the terminals, and edges."""
    assert dataset.edges is not None
    assert dataset.edge_offsets is not None
    parts = slice(dataset.offsets[i], dataset.offsets[i + 1])
    loss = np.where(dataset.y[parts] == 0, 1, -1) / (parts.stop - parts.start)
    f = dataset.n_features
    gain = dataset.x[parts] @ (w[f:] - w[:f]) + loss
    k, l = dataset.edges[dataset.edge_offsets[i] : dataset.edge_offsets[i + 1]].T.astype(np.int64)
    return np.maximum(-gain, 0), np.maximum(gain, 0), k.copy(), l.copy()


def bare_cut(given: Arguments) -> np.ndarray:
    """Build and solve the graph with vectorised calls, and return its segments."""
    import maxflow  # which has no wheels for some machines

    source, sink, k, l = given
    graph = maxflow.GraphFloat(source.size, k.size)
    nodes = graph.add_nodes(source.size)
    ones = np.ones(k.size)
    graph.add_grid_tedges(nodes, source, sink)
    graph.add_edges(k, l, ones, ones)
    graph.maxflow()
    return graph.get_grid_segments(nodes)


def _say(dataset: Dataset, text: str) -> None:
    print(f"{dataset.name}: {text} …", file=sys.stderr, flush=True)
