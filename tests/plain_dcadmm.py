"""Algorithm 1 of the transduction paper as it is printed, with K, α and every labeling written out.

.. code-block:: text

    u_il = min_β ℓ(l; β) + ρ/2 ‖β − K_i α − λ_i/ρ‖²,  B_il where it is                      (13)
    y    ← argmin Σ_i u_{i,y_i} over all labelings that keep what is observed and the bounds  (14)
    β_i  ← B_{i,y_i}                                                                       (15)
    α    ← solution of (2ν I + ρK) α = ρβ − λ                                              (17)
    λ    ← λ + ρ (Kα − β),   ρ ← τρ

The old labels stay where the new ones are no better (16, δ = 0). It begins at α = 0, λ = 0 and the
first labeling. The tests compare the solver with this; they share the data alone.
"""

import itertools

import numpy as np
from scipy.optimize import root
from scipy.special import logsumexp

MARGIN = 1e-6
"""By how much the best labeling must be better than the next: else rounding would choose."""


def proximal_step(label, centre, rho):
    """Return where ℓ(label; β) + ρ/2 ‖β − centre‖² is least, and its minimum; ℓ is the softmax."""

    def value(beta):
        away = beta - centre
        return logsumexp(beta) - beta[label] + rho / 2 * away @ away

    def slope(beta):
        return np.exp(beta - logsumexp(beta)) - np.eye(beta.size)[label] + rho * (beta - centre)

    def curvature(beta):
        p = np.exp(beta - logsumexp(beta))
        return np.diag(p) - np.outer(p, p) + rho * np.eye(p.size)

    beta = root(slope, centre, jac=curvature, tol=1e-12).x
    assert np.abs(slope(beta)).max() < 1e-10  # the problem is convex: this is its minimum
    return beta, value(beta)


def labelings(n, L, observed, counts):
    """Yield those that keep what is observed and give every label so many points."""
    for y in itertools.product(range(L), repeat=n):
        kept = all(o in (-1, label) for o, label in zip(observed, y, strict=True))
        if kept and all(counts[0] <= y.count(label) <= counts[1] for label in range(L)):
            yield np.array(y)


def algorithm_1(K, nu, rho, tau, L, observed, counts, iterations):
    """Yield α, β, λ and y of each iteration.

    Where no label is observed, there is −1; a label has at least, and at most, ``counts`` points.
    """
    n = len(K)
    possible = np.array([*labelings(n, L, observed, counts)])

    def best(u, before):
        values = u[np.arange(n), possible].sum(axis=1)
        if before is not None and values.min() >= u[np.arange(n), before].sum() - MARGIN:
            return before
        assert before is None or np.partition(values, 1)[1] > values.min() + MARGIN
        return possible[values.argmin()]

    alpha, multipliers = np.zeros((n, L)), np.zeros((n, L))
    y = possible[0]
    for _ in range(iterations):
        centre = K @ alpha + multipliers / rho
        table = [[proximal_step(label, centre[i], rho) for label in range(L)] for i in range(n)]
        y = best(np.array([[minimum for _, minimum in row] for row in table]), y)
        beta = np.array([row[label][0] for row, label in zip(table, y, strict=True)])
        alpha = np.linalg.solve(2 * nu * np.eye(n) + rho * K, rho * beta - multipliers)
        multipliers = multipliers + rho * (K @ alpha - beta)
        rho *= tau
        yield alpha, beta, multipliers, y


def dual_decomposition(K, nu, label_step, box, iterations):
    """Yield the dual value and ‖Kα − β‖/‖β‖ of a subgradient method on the Lagrangian without ρ.

    Two labels and the softmax loss, log(1 + exp(−z)) of the margin z = ±m. By symmetry the scores
    are (−m/2, m/2) and the multipliers (−μ, μ), so that with margins Ka of the classifier

    .. code-block:: text

        min_a ν/2 ⟨a, Ka⟩ + ⟨μ, Ka⟩  +  min_{y, m} Σ_i log(1 + exp(∓m_i)) − μ_i m_i,    |m_i| ≤ box
    """
    mu, rows = np.zeros(len(K)), np.arange(len(K))
    for k in range(iterations):
        margins, values = [], []
        for sign in (-1.0, 1.0):
            pull = np.clip(-sign * mu, 1e-12, 1 - 1e-12)  # 1/(1 + exp z) of the best z
            z = np.clip(np.log(1 / pull - 1), -box, box)
            margins.append(sign * z)
            values.append(np.log1p(np.exp(-z)) - sign * mu * z)
        u = np.column_stack(values)
        y = label_step(u, None)
        m, a = np.column_stack(margins)[rows, y], -mu / nu
        difference = K @ a - m
        dual = nu / 2 * a @ K @ a + mu @ K @ a + u[rows, y].sum()
        yield dual, np.linalg.norm(difference) / np.linalg.norm(m)
        mu = mu + 0.1 / np.sqrt(k + 1) * difference / np.linalg.norm(difference)
