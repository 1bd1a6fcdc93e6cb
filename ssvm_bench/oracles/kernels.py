"""Kernels in place of ⟨x, x′⟩: their values in blocks.

=============  ==========================================
``kernel``     k(x, x′)
=============  ==========================================
``linear``     ⟨x, x′⟩, by weights of features
``rbf``        exp(−γ ‖x − x′‖²)
``poly``       (1 + γ ⟨x, x′⟩)^degree
=============  ==========================================

γ is ``gamma`` (:mod:`ssvm_bench.oracles.kernel_options`). For how labels enter, see
:mod:`ssvm_bench.oracles.kernel_features`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.linalg import matrix_product

KERNELS = LINEAR, RBF, POLY = ("linear", "rbf", "poly")

SUPPORT = ("support", "support_data", "support_indices", "support_indptr")
"""Arrays beside w in ``weights.npz``, the features of the parts with non-zero coefficients: one
array, or the three of a CSR matrix."""

MB = 1e6


class KernelPoints(NamedTuple):
    """Points between which kernel values are computed.

    Attributes
    ----------
    x : ndarray of float64 or csr_array, shape (m, f)
        An array is stored feature by feature, as `matrix_product` reads it.
    squares : ndarray of float64, shape (m,)
        ‖x‖² of each.
    """

    x: Any
    squares: np.ndarray

    @classmethod
    def of(cls, x: Any) -> KernelPoints:
        """Return the points that are the rows of a matrix."""
        x = x.astype(np.float64)
        products = x * x if isinstance(x, np.ndarray) else x.multiply(x)
        squares = np.asarray(products.sum(axis=1)).ravel()
        return cls(np.asfortranarray(x) if isinstance(x, np.ndarray) else x, squares)

    def take(self, rows: Any) -> KernelPoints:
        """Return the points of some rows."""
        return KernelPoints(self.x[rows], self.squares[rows])


class KernelFunction(NamedTuple):
    """A kernel, and the memory for its values.

    Attributes
    ----------
    kind : str
        One of ``KERNELS`` except ``linear``.
    gamma : float
    degree : int
    bytes_kept : int
    """

    kind: str
    gamma: float
    degree: int
    bytes_kept: int

    @property
    def name(self) -> str:
        """Name of the problem, which distinguishes it from others on the same data."""
        degree = f", degree {self.degree}" if self.kind == POLY else ""
        return f"kernel {self.kind}, γ = {self.gamma:g}{degree}"

    def rows_kept(self, parts: int) -> int:
        """Return how many rows of K are kept; a row has one number for each part.

        Raises
        ------
        ConfigError
            If no row fits into the memory for them.
        """
        most = self.bytes_kept // (8 * parts)
        if most < 1:
            raise ConfigError(
                f"oracle.kernel_memory={self.bytes_kept / MB:g} is too small: a row of kernel "
                f"values, one for each of {parts} parts, takes {8 * parts / MB:.2g} MB."
            )
        return min(most, parts)

    def values(self, a: KernelPoints, b: KernelPoints) -> np.ndarray:
        """Return k of all pairs, shape (len(a), len(b)), by one product of matrices.

        Each value has the same bits in every such product: a row that is computed again, beside
        others, is the same.
        """
        dense = isinstance(a.x, np.ndarray)
        products = matrix_product(a.x, b.x.T) if dense else (a.x @ b.x.T).toarray()
        if self.kind == RBF:
            return rbf(products, a.squares, b.squares, self.gamma)
        products *= self.gamma
        products += 1.0
        return np.asarray(products**self.degree)

    def at_themselves(self, points: KernelPoints) -> np.ndarray:
        """Return k(x, x) of all points."""
        if self.kind == RBF:
            return np.ones(points.squares.size)
        return np.asarray((1.0 + self.gamma * points.squares) ** self.degree)


def rbf(products: np.ndarray, a: np.ndarray, b: np.ndarray, gamma: float) -> np.ndarray:
    """Return exp(−γ ‖x − x′‖²) from ⟨x, x′⟩, which is overwritten, and the ‖x‖² and ‖x′‖²."""
    distances = a[:, None] + b
    products *= 2.0
    distances -= products
    np.maximum(distances, 0.0, out=distances)
    distances *= -gamma
    return np.exp(distances, out=distances)
