"""Tiny sets of points, and the energies of their labelings written down from the definitions."""

import itertools

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.config import registry
from ssvm_bench.papers.transduction.datasets.points import Cliques, Points
from ssvm_bench.papers.transduction.oracles import transduction


def cliques(members, low, high):
    """Return cliques of lists of points, with bounds of shape (C, L)."""
    sizes = [len(points) for points in members]
    return Cliques(
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.concatenate([np.asarray(points, np.int64) for points in members]),
        np.asarray(low, np.int64),
        np.asarray(high, np.int64),
    )


def points(x, y, labeled=(), n_labels=None, **more):
    """Return a set of points; ``labeled`` lists those whose label is observed."""
    y = np.asarray(y, np.uint8)
    observed = np.zeros(y.size, bool)
    observed[list(labeled)] = True
    return Points(
        name="tiny",
        source="synthetic",
        x=np.ascontiguousarray(x, float),
        y=y,
        offsets=np.arange(y.size + 1),
        n_labels=n_labels or int(y.max()) + 1,
        structure="points",
        labeled=observed,
        **more,
    )


def clouds(n, L=2, f=3, apart=2.0, seed=0, labeled=None, **more):
    """Return Gaussian clouds, one a class; by default the first two points of each are labeled."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % L
    x = apart * rng.normal(size=(L, f))[y] + rng.normal(size=(n, f))
    return points(x, y, range(2 * L) if labeled is None else labeled, L, **more)


def posed(data, **options):
    """Return the problem of a set of points, with options of ``oracle=transduction``."""
    config = transduction.Config("tiny", "transduction", **options)
    return transduction.build(config, data).problem(config.nu)


def solver(problem, kind="dcadmm", begin=True, **options):
    """Return a solver of the problem."""
    module = registry.module("solver", kind)
    made = module.build(module.Config(kind, kind, **options), problem, Clock("work", 1e-3, 1e-6), 0)
    if begin:
        made.begin()
    return made


def solved(problem, kind="dcadmm", most=3000, **options):
    """Return a solver that has converged."""
    made = solver(problem, kind, **options)
    for _ in range(most):
        made.iterate()
        if made.converged:
            return made
    raise AssertionError("it has not converged")


def labelings(observed, L):
    """Yield every labeling that keeps what is observed."""
    choices = [range(L) if label < 0 else [label] for label in observed]
    for y in itertools.product(*choices):
        yield np.array(y)


def best(u, observed, L, energy):
    """Return the least Σ u + E by trying all labelings."""
    return min(u[np.arange(len(y)), y].sum() + energy(y) for y in labelings(observed, L))
