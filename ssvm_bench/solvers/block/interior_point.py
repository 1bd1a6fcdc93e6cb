"""F over the weights of planes: a quadratic program on a product of simplices, by interior points.

In the units of the code, n φ^{ip}, let δ = α − α_0 be the change of the weights of M planes. The
weights of term i add up to 1:

.. code-block:: text

    n F = const + ⟨s, δ⟩ − 1/2 ⟨δ, H δ⟩         α ≥ 0,  Σ_p α_ip = 1
    s_ip = ⟨n φ^{ip}, [w 1]⟩                    H = Φ Φᵀ/(λn), the rows of Φ are n φ^{ip}⋆

The *base* of a term is its heaviest plane. As Σ_p δ_ip = 0, nothing changes if the base's row is
subtracted from all rows of Φ of its term. Then H is 0 at bases; the rest is R, of m planes. With
multipliers z ≥ 0 of α ≥ 0, and y_i of Σ_p α_ip = 1, the points of the central path have

.. code-block:: text

    s − H δ + z = y_i        α z = μ

A Newton step towards α z = c solves, with D = z/α and g = s − H δ,

.. code-block:: text

    (R + Bᵀ D B) dα = Bᵀ (g + c/α)        B dα: dα, and at the base −Σ_p dα_ip
    dz = (c − z dα)/α − z

Bᵀ D B is D on the diagonal, plus the base's D in the whole block of its term. The matrix is
positive definite even if R is not. One Cholesky factor serves for a predictor, c = 0, and a
corrector, c = σμ − dα dz. Each factor makes ⟨α, z⟩ smaller by an order of magnitude or more.

======  ============================  ======  ===========================================
symbol  name                          symbol  name
======  ============================  ======  ===========================================
α, s    ``alpha``, ``slope``          α, z    ``x``, ``z``, in the search
i       ``of``, and ``lo``            B       ``others``, ``lo``
μ       ``left``/M                    σ       ``sigma``
======  ============================  ======  ===========================================

Source: Mehrotra, *On the implementation of a primal-dual interior point method*, SIAM J. Optim.
1992.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from ssvm_bench.base.linalg import applied, inner

_INSIDE = 1e-4
"""Share of a term's weight that is spread evenly over its planes where the path begins."""

_OF_THE_WAY = 0.995
"""Share of the longest step that keeps all weights and multipliers from being negative."""

_NONE = 1e-6
"""Weights below this share of z are set to 0."""

_MOST_FACTORS = 50


class Weights(NamedTuple):
    """The planes of terms that have several, term by term; a term's first one is its base.

    Attributes
    ----------
    term, plane : ndarrays of int64, shape (M,)
    alpha, slope : ndarrays of float64, shape (M,)
        α and s.
    """

    term: np.ndarray
    plane: np.ndarray
    alpha: np.ndarray
    slope: np.ndarray

    @property
    def lo(self) -> np.ndarray:
        """Index of each term's first plane."""
        return np.flatnonzero(np.diff(self.term, prepend=-1))

    @property
    def of(self) -> np.ndarray:
        """Index of each plane's term among the terms here."""
        return np.cumsum(np.diff(self.term, prepend=-1) != 0) - 1

    @property
    def others(self) -> np.ndarray:
        """Indices of the planes that are not bases, shape (m,)."""
        return np.flatnonzero(np.diff(self.term, prepend=-1) == 0)

    @property
    def base(self) -> np.ndarray:
        """Index of the base of each plane in ``others``."""
        return self.lo[self.of[self.others]]

    def take(self, which: np.ndarray) -> Weights:
        """Return some of the planes."""
        return Weights(*(field[which] for field in self))

    def mean(self) -> np.ndarray:
        """Return ⟨n φ^i, [w 1]⟩ of each term."""
        return np.bincount(self.of, self.alpha * self.slope)

    def gap(self) -> float:
        """Return the sum of the gaps over these planes."""
        if not self.term.size:
            return 0.0
        return float((np.maximum.reduceat(self.slope, self.lo) - self.mean()).sum())

    def of_use(self) -> Weights:
        """Return the planes with weight or above φ^i, of terms that have several such planes."""
        found = self.take((self.alpha > 0) | (self.slope > self.mean()[self.of]))
        return found.take(np.bincount(found.of)[found.of] > 1)


def maximise(R: np.ndarray, found: Weights, tol: float) -> np.ndarray:
    """Return the weights that maximise ⟨s, δ⟩ − 1/2 ⟨δ, H δ⟩, up to ``tol``.

    Parameters
    ----------
    R : ndarray of float64, shape (m, m)
        H without bases, positive semidefinite.
    found : Weights
        M planes, with the weights to begin at.
    tol : float

    Returns
    -------
    ndarray of float64, shape (M,)
        Weights ≥ 0; those of each term add up to 1.
    """
    lo, of, others, base = found.lo, found.of, found.others, found.base
    size = np.bincount(of)
    rows, columns = _blocks(size - 1)
    diagonal = np.arange(others.size)

    x = (1.0 - _INSIDE) * found.alpha + _INSIDE / size[of]
    g = found.slope.copy()
    g[others] -= applied(R, (x - found.alpha)[others])
    top = np.maximum.reduceat(g, lo)
    mu = float(top.sum() - inner(x, g)) / x.size
    z = (top + mu * size)[of] - g
    for _ in range(_MOST_FACTORS):
        left = inner(x, z)
        if not left > tol:
            break
        D = z / x
        K = R.copy()
        K[rows, columns] += D[base[rows]]
        K[diagonal, diagonal] += D[others]
        try:
            factor = scipy.linalg.cho_factor(K.T, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            break  # rounding allows no further step

        dx, dz = _toward(0.0, factor, found, x, z, g)
        length = min(1.0, _longest(x, dx), _longest(z, dz))
        sigma = (inner(x + length * dx, z + length * dz) / left) ** 3
        dx, dz = _toward(sigma * left / x.size - dx * dz, factor, found, x, z, g)
        length = min(1.0, _OF_THE_WAY * min(_longest(x, dx), _longest(z, dz)))
        x, z = x + length * dx, z + length * dz
        g[others] -= length * applied(R, dx[others])
    x[x < _NONE * z] = 0.0
    return np.asarray(x / np.bincount(of, x)[of])


def _toward(
    c: Any, factor: Any, found: Weights, x: np.ndarray, z: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return dα and dz of a Newton step to α z = c, where α is x."""
    h = g + c / x
    inner = scipy.linalg.cho_solve(factor, h[found.others] - h[found.base], check_finite=False)
    dx = np.zeros_like(x)
    dx[found.others] = inner
    dx[found.lo] = -np.bincount(found.of[found.others], inner)
    return dx, (c - z * dx) / x - z


def _longest(v: np.ndarray, dv: np.ndarray) -> float:
    """Return the largest γ with v + γ dv ≥ 0."""
    falling = dv < 0
    return float(np.min(-v[falling] / dv[falling], initial=np.inf))


def _blocks(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the entries of a block-diagonal matrix."""
    first = np.repeat(np.cumsum(size) - size, size)  # row of each row's block
    width = np.repeat(size, size)
    rows = np.repeat(np.arange(width.size), width)
    return rows, np.arange(rows.size) - (np.cumsum(width) - width - first)[rows]
