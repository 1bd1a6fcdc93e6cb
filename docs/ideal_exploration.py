"""The ideal rule of exploration on USPS: whichever step increases the dual more.

Ramanan (2013, section 4) posits that the choice between a new example (*explore*) and those in the
cache (*optimize*) should be the one with the greatest increase of the dual, and replaces it by the
online duality gap, as this increase is difficult to compute. Here it is computed, by all scores of
all examples, whatever that costs:

.. code-block:: text

    explore     the mean increase that a step on one of the next ``PEEK`` new examples would bring
    optimize    the largest increase of a single or pair step on a cached example

Three rules make one pass over the first examples of USPS, in the order of the file's fixed
permutation, with the same steps: ``ideal`` takes the greater of the two; ``gap`` optimises until
UB − LB ≤ tol/2 · max(UB, P̂) whenever it is above tol · max(UB, P̂), each time by the best step; and
``ten`` lets ten cached examples, drawn at random, take their best step for each new one. Each pays
one call of the oracle per example; what differs are the steps. After the pass, the table has the
dual relative to the largest one of long runs, the gap of all examples, and the steps on cached
examples for each new one, by fifths of the pass.

    python docs/ideal_exploration.py [n] [lam]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from stored import keep

from ssvm_bench.datasets import usps

PEEK = 64
"""New examples whose mean increase exploring is judged by."""

FEW = 1e-6
"""Optimising ends where the best step brings less than this share of the dual so far."""


class Dual:
    """The dual of a multiclass SVM, in the paper's units: L = P/λ, C = 1/(λ n).

    Attributes
    ----------
    scores : ndarray, shape (n, K)
        w · ϕ(x_i, y).
    alpha : ndarray, shape (n, K)
        α_ij; 0 for the true label.
    value : float
        F(α).
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, K: int, lam: float) -> None:
        self.y, self.C, self.lam = y, 1.0 / (lam * y.size), lam
        self.products = x @ x.T
        self.h = 2 * self.C**2 * self.products.diagonal()  # of single and of pair steps
        self.scores, self.alpha, self.value = np.zeros((y.size, K)), np.zeros((y.size, K)), 0.0

    def gradients(self, rows: np.ndarray) -> np.ndarray:
        """Return g_ij of all labels; 0 for the true one, whose plane is 0."""
        own = self.scores[rows, self.y[rows]]
        g = self.C * (1.0 + self.scores[rows] - own[:, None])
        g[np.arange(rows.size), self.y[rows]] = 0.0
        return g

    def best(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return label j, label k, length and increase of the best step of each example.

        Weight goes from k to j; the true label has the weight that is left, 1 − α_i.
        """
        g, alpha = self.gradients(rows), self.alpha[rows].copy()
        here = np.arange(rows.size)
        alpha[here, self.y[rows]] = 1.0 - alpha.sum(axis=1)
        up = g.argmax(axis=1)
        down = np.where(alpha > 0, g, np.inf).argmin(axis=1)
        slope = g[here, up] - g[here, down]
        a = np.minimum(slope / self.h[rows], alpha[here, down])
        return up, down, a, slope * a - 0.5 * self.h[rows] * a**2

    def step(self, i: int, up: int, down: int, a: float, gain: float) -> None:
        """Move the weight a of example i from one label to another."""
        for label, sign in ((up, 1.0), (down, -1.0)):
            self.scores[:, label] -= sign * a * self.C * self.products[i]
            if label != self.y[i]:
                self.alpha[i, label] += sign * a
        self.value += gain

    def primal(self, rows: np.ndarray) -> float:
        """Return L of some examples: ½ ‖w‖² and their losses."""
        half_norm = self.C * float(self.alpha.sum()) - self.value
        return half_norm + float(self.gradients(rows).max(axis=1).sum())


Rule = Callable[[Dual, np.ndarray, int, np.random.Generator], int]
"""Function of the dual, the cached examples, the next example: optimises, returns its steps."""


def _best_step(dual: Dual, cached: np.ndarray, least: float) -> bool:
    """Take the best step of the cached examples, if it increases the dual by more than least."""
    up, down, a, gain = dual.best(cached)
    k = int(gain.argmax())
    if gain[k] > least:
        dual.step(int(cached[k]), int(up[k]), int(down[k]), float(a[k]), float(gain[k]))
        return True
    return False


def ideal(dual: Dual, cached: np.ndarray, i: int, bits: np.random.Generator) -> int:
    """Optimise as long as that increases the dual more than a new example would."""
    steps = 0
    while cached.size:
        ahead = np.arange(i, min(i + PEEK, dual.y.size))
        least = max(float(dual.best(ahead)[3].mean()), FEW * dual.value)
        if not _best_step(dual, cached, least):
            break
        steps += 1
    return steps


def gap(tol: float) -> Rule:
    """Return the paper's rule: optimise if the online duality gap is large."""

    def rule(dual: Dual, cached: np.ndarray, i: int, bits: np.random.Generator) -> int:
        if not cached.size:
            return 0
        met, n = np.arange(i), dual.y.size
        upper, steps, share = dual.primal(cached), 0, 1.0
        estimate = upper + (n / i - 1) * (dual.primal(met) - dual.primal(met[:0]))
        scale = max(upper, estimate)
        while upper - dual.value > share * tol * scale and _best_step(dual, cached, 0.0):
            share, steps = 0.5, steps + 1
            upper = dual.primal(cached)
        return steps

    return rule


def ten(dual: Dual, cached: np.ndarray, i: int, bits: np.random.Generator) -> int:
    """Let ten cached examples, drawn at random, take their best step."""
    drawn = bits.choice(cached, 10) if cached.size else cached
    return sum(_best_step(dual, np.array([each]), 0.0) for each in drawn)


def one_pass(dual: Dual, rule: Rule) -> np.ndarray:
    """Make a pass; return the steps on cached examples at each new one."""
    bits, steps = np.random.default_rng(0), np.zeros(dual.y.size)
    for i in range(dual.y.size):
        cached = np.flatnonzero(dual.alpha[:i].any(axis=1))
        steps[i] = rule(dual, cached, i, bits) if i else 0
        _best_step(dual, np.array([i]), 0.0)
    return steps


def table(n: int, lam: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each rule."""
    data = usps.load(usps.Config("usps", "usps", n_samples=n))
    x, y = data.x.astype(np.float64), data.y.astype(int)
    rules = {"ideal": ideal, "gap, 5 %": gap(0.05), "ten": ten}
    every, found = np.arange(n), {}
    for name, rule in rules.items():
        dual = Dual(x, y, data.n_labels, lam)
        steps = one_pass(dual, rule)
        found[name] = dual.value, dual.primal(every), steps
    for _ in range(60 * n):  # on from the last one, to the optimum
        if not _best_step(dual, every, 1e-9 * dual.value):
            break
    optimum = dual.value
    near = 1 - optimum / dual.primal(every)
    print(f"USPS ({data.source}), the first {n} examples, λ = {lam:g}: one pass")
    print(f"(the optimum is known to a relative gap of {near:.2g})\n")
    for name, (value, primal, steps) in found.items():
        row = {"rule": name, "dual": value / optimum, "gap": 1 - value / primal}
        fifths = enumerate(np.array_split(steps, 5), 1)
        yield row | {f"steps_{k}": of.mean() for k, of in fifths}


if __name__ == "__main__":
    given = sys.argv[1:]
    n = int(given[0]) if given else 1000
    keep(f"ideal_exploration/{n}", table(n, float(given[1]) if given[1:] else 0.01))
