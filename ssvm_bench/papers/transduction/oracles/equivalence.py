"""Losses of labels that are known only by which points have the same one: M = Y Yᵀ.

.. code-block:: text

    F(Y Yᵀ) = min_W Σ_i ℓ(y_i; G_i W) + ν ‖W‖²       Y ∈ {0, 1}^{n×L}, a 1 at label y_i in row i

F is convex in M, so a program over M ⪰ 0 relaxes (5). A tangent at M bounds F from below,
F(M′) ≥ ``constant`` + ⟨``slope``, M′⟩ for all M′.

**square.** ‖Y_i − G_i W‖² for ℓ. W is minimised out, and F is linear (F. Bach, Z. Harchaoui:
*DIFFRAC*, NIPS 2007):

.. code-block:: text

    F(M) = ⟨A, M⟩      A = I − G (GᵀG + ν I)⁻¹ Gᵀ = ν (GGᵀ + ν I)⁻¹

**softmax**, of two labels. The columns of W are ±w/2 and ‖W‖² = ‖w‖²/2, as the loss depends on
their difference alone. With signs s_i = ±1 for the labels, ssᵀ = 2M − 1. The dual of logistic
regression then depends on the labels through M (as in the relaxations of support vector machines by
L. Xu, J. Neufeld, B. Larson, D. Schuurmans: *Maximum margin clustering*, NIPS 2004):

.. code-block:: text

    F(M) = max_{0 ≤ α ≤ 1} Σ_i h(α_i) − αᵀ (K ∘ (2M − 1)) α / (2ν)
    h(a) = −a log a − (1 − a) log(1 − a)
    W = [−w/2, w/2]      w = Σ_i α_i s_i G_iᵀ / ν

Any α gives a tangent, with slope −K ∘ ααᵀ/ν; the best one touches F at M. Newton's method finds it
from the last one, where 2M − 1 ⪰ 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.special import entr

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.linalg import inner
from ssvm_bench.papers.transduction.oracles import kernels
from ssvm_bench.papers.transduction.oracles.transduction import TransductiveProblem

SQUARE, SOFTMAX = "square", "softmax"

_CLOSE = 1e-12
"""Newton's method ends where a step gains less than this for a point."""

_MOST_STEPS = 200
_TO_THE_BOUND = 0.99
"""The largest share of the way to α_i = 0 or 1 that a step goes."""


class Tangent(NamedTuple):
    """F(M), and its tangent at M; ``alpha``, shape (n,), are the multipliers that it is from."""

    value: float
    constant: float
    slope: np.ndarray
    alpha: np.ndarray

    def at(self, M: np.ndarray) -> float:
        """Return the tangent's value at M, shape (n, n)."""
        return self.constant + inner(self.slope, M)


class Square:
    """The square loss."""

    def __init__(self, problem: TransductiveProblem) -> None:
        self.kernel, self.nu = problem.kernel, problem.lam
        G, n = kernels.dense(problem.kernel.G), problem.n
        if G.shape[1] <= n:
            factor = scipy.linalg.cho_factor(G.T @ G + self.nu * np.eye(G.shape[1]))
            self.A = np.eye(n) - G @ scipy.linalg.cho_solve(factor, G.T)
        else:
            factor = scipy.linalg.cho_factor(G @ G.T + self.nu * np.eye(n))
            self.A = self.nu * scipy.linalg.cho_solve(factor, np.eye(n))
        self.start = np.zeros(problem.n)

    def tangent(self, M: np.ndarray, alpha: np.ndarray) -> Tangent:
        """Return the tangent, which is the same everywhere."""
        return Tangent(inner(self.A, M), 0.0, self.A, alpha)

    def classifier(self, y: np.ndarray, W: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Return the W of least squares for labels y, shape (n,)."""
        target = (y[:, None] == np.arange(W.shape[1])).astype(float)
        return self.kernel.fit(target, 0.5 * self.nu, 1.0, W)


class Softmax:
    """The logistic loss of two labels.

    Raises
    ------
    ConfigError
        There are more than two labels.
    """

    def __init__(self, problem: TransductiveProblem) -> None:
        if problem.n_labels != 2:
            raise ConfigError(
                f"solver.loss={SOFTMAX} relaxes problems of two labels, and this one has "
                f"{problem.n_labels}. Choose solver.loss={SQUARE}."
            )
        self.kernel, self.nu = problem.kernel, problem.lam
        G = kernels.dense(problem.kernel.G)
        self.K = G @ G.T / self.nu
        self.start = np.full(problem.n, 0.5)

    def tangent(self, M: np.ndarray, alpha: np.ndarray) -> Tangent:
        """Return the tangent at M, shape (n, n), found from the multipliers of another."""
        alpha = _maximiser(self.K * (2.0 * M - 1.0), alpha)
        entropy, products = _entropy(alpha), np.outer(alpha, alpha) * self.K
        constant = entropy + 0.5 * float(products.sum())
        return Tangent(constant - inner(products, M), constant, -products, alpha)

    def classifier(self, y: np.ndarray, W: np.ndarray, alpha: np.ndarray) -> np.ndarray:
        """Return W by α and the signs of labels y, shape (n,)."""
        w = self.kernel.gradient(((2.0 * y - 1.0) * alpha / self.nu)[:, None])
        return 0.5 * np.hstack((-w, w))


LOSSES: dict[str, type[Square] | type[Softmax]] = {SQUARE: Square, SOFTMAX: Softmax}
"""Name in the options → loss."""


def _entropy(alpha: np.ndarray) -> float:
    return float((entr(alpha) + entr(1.0 - alpha)).sum())


def _maximiser(Q: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Return the α that maximises Σ_i h(α_i) − αᵀQα/2, from an α inside the bounds.

    Newton's steps D^{1/2} (I + D^{1/2} Q D^{1/2})⁻¹ D^{1/2} g, with the gradient g and
    D = diag α(1 − α), which is the inverse of −h″.
    """
    value = _entropy(alpha) - 0.5 * float(alpha @ Q @ alpha)
    for _ in range(_MOST_STEPS):
        g = np.log1p(-alpha) - np.log(alpha) - Q @ alpha
        root = np.sqrt(alpha * (1.0 - alpha))
        H = root[:, None] * Q * root
        H[np.diag_indices_from(H)] += 1.0
        factor = scipy.linalg.cho_factor(H, overwrite_a=True, check_finite=False)
        step = root * scipy.linalg.cho_solve(factor, root * g, check_finite=False)
        gain = float(g @ step)
        if gain <= _CLOSE * alpha.size:
            break
        room = np.where(step < 0, alpha, 1.0 - alpha)
        size = np.abs(step)
        length = 1.0 / max(1.0, float((size / room).max()) / _TO_THE_BOUND)
        while True:
            there = alpha + length * step
            new = _entropy(there) - 0.5 * float(there @ Q @ there)
            if new >= value or length < _CLOSE:
                break
            length *= 0.5
        if length < _CLOSE:  # rounding errors are larger than what is left
            break
        alpha, value = there, new
    return alpha
