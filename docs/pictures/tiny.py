"""A structural SVM small enough to be drawn, with which the pages of the site explain it.

An example has L parts with f features each, a row x^l, and labels 0 and 1:

.. code-block:: text

    ϕ(x, y) = Σ_l (2 y^l − 1) x^l        Δ(y_i, y) = 1/L Σ_l [y^l ≠ y_i^l]

so that there are as many weights as features. The maximum over labelings is taken part by part.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Oracle, Problem

COST_CALL, COST_PLANE = 1.0, 0.01
"""Seconds that an oracle call and a plane count for: an oracle that takes its time."""


class Signs(Oracle):
    """The oracle.

    Parameters
    ----------
    x : array of shape (n, L, f)
    y : array of shape (n, L)
        The true labels.
    """

    def __init__(self, x, y):
        self.x, self.y = np.asarray(x, float), np.asarray(y, np.uint8)
        self.n, _, self.d = self.x.shape

    def truth(self, i):
        """Return y_i."""
        return self.y[i]

    def predict(self, w, i):
        """Return the sign of each part's score."""
        return (self.x[i] @ w > 0).astype(np.uint8)

    def argmax(self, w, i):
        """Compare the scores of both labels, a wrong one having 1/L more."""
        wrong = 1.0 / self.y.shape[1]
        zero = -self.x[i] @ w + wrong * (self.y[i] == 1)
        one = self.x[i] @ w + wrong * (self.y[i] == 0)
        return (one > zero).astype(np.uint8)

    def loss(self, i, y):
        """Return the share of wrong labels."""
        return float(np.mean(y != self.y[i]))

    def joint_feature(self, i, y):
        """Return ϕ(x_i, y)."""
        return np.arange(self.d), (2.0 * y - 1.0) @ self.x[i]


def in_one_dimension() -> Problem:
    """Return three examples with three parts and one feature."""
    x = [[[0.33], [0.12], [-0.2]], [[0.5], [0.2], [0.16]], [[0.25], [-0.4], [0.14]]]
    return Problem(Signs(x, np.ones((3, 3))), lam=0.15)


def in_two_dimensions() -> Problem:
    """Return three examples with three parts and two features."""
    x = [
        [[0.6, 0.1], [0.2, 0.5], [-0.3, 0.2]],
        [[0.4, 0.4], [0.1, -0.4], [0.5, -0.1]],
        [[-0.2, 0.6], [0.5, 0.3], [0.2, -0.2]],
    ]
    return Problem(Signs(x, np.ones((3, 3))), lam=0.1)


def planes(problem: Problem, i: int) -> np.ndarray:
    """Return the planes of all labelings of example i, shape (2^L, d + 1), the truth's last."""
    found = []
    for labels in itertools.product((0, 1), repeat=problem.oracle.y.shape[1]):
        plane = problem.oracle.plane(i, np.array(labels, np.uint8))
        row = np.zeros(problem.d + 1)
        row[plane.indices], row[-1] = plane.values, plane.offset
        found.append(row)
    return np.array(found)


def solver(problem: Problem, name: str, **options):
    """Return the solver that ``solver=NAME`` names, at its start."""
    (config,) = compose_runs([f"solver={name}"])
    config = replace(config.solver, **options)
    clock = Clock("work", COST_CALL, COST_PLANE)
    made = registry.module("solver", config.kind).build(config, problem, clock, seed=0)
    made.begin()
    return made


def optimum(problem: Problem) -> float:
    """Return the optimal value."""
    made = solver(problem, "mpbcfw_fast")
    for _ in range(60):
        made.iterate()
    return made.reported().dual
