"""Binary and regression problems, and their functions written down from the definitions."""

from dataclasses import replace

import numpy as np
from helpers import COST_CALL, COST_PLANE, dataset, random_multiclass

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import binary, multiclass, regression

COSTS = {"name": "tiny", "kind": "tiny", "cost_call": COST_CALL, "cost_plane": COST_PLANE}
EPSILON = 0.25


def random_binary(n, f, seed=0, **fields):
    """Return examples with labels 0 and 1; ``fields`` of the `Dataset`."""
    return replace(random_multiclass(n, 2, f, seed), **fields)


def random_regression(n, f, seed=0, **fields):
    """Return examples with targets that follow their features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, f))
    y = x @ rng.normal(size=f) + rng.normal(size=n)
    return Dataset("tiny", "synthetic", x, y, np.arange(n + 1), 0, "regression", **fields)


def binary_oracle(data, **options):
    return binary.build(binary.Config(**COSTS, **options), data)


def multiclass_oracle(data, **options):
    return multiclass.build(multiclass.Config(**COSTS, **options), data)


def regression_oracle(data, epsilon=EPSILON):
    return regression.build(regression.Config(**COSTS, epsilon=epsilon), data)


def planes(data, epsilon=EPSILON):
    """Return the dense planes of every term, shape (n, K, d + 1), the truth's among them."""
    n = data.n
    costs = np.ones(n) if data.costs is None else data.costs
    margins = np.ones(n) if data.margins is None else data.margins
    found = []
    for x, y, cost, margin in zip(data.x, data.y, costs, margins, strict=True):
        zero = np.zeros(x.size + 1)
        if data.structure == "regression":
            rows = [zero, np.append(x, -y - epsilon), np.append(-x, y - epsilon)]
        else:
            sign = 2.0 * y - 1
            wrong = np.append(-sign * x, margin)
            rows = [wrong, zero] if y == 1 else [zero, wrong]
        found.append(cost * np.array(rows) / n)
    return np.array(found)


def repeated(data, times):
    """Return a dataset with example i so many times."""
    which = np.repeat(np.arange(data.n), times)
    return dataset(data.x[which], data.y[which], data.n_labels)
