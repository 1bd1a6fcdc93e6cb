"""Kernels in place of ⟨x, x′⟩: their options, and their values in blocks.

=============  ==========================================
``kernel``     k(x, x′)
=============  ==========================================
``linear``     ⟨x, x′⟩, by weights of features
``rbf``        exp(−γ ‖x − x′‖²)
``poly``       (1 + γ ⟨x, x′⟩)^degree
=============  ==========================================

γ is ``gamma``. For how labels enter, see :mod:`ssvm_bench.oracles.kernel_features`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.linalg import matrix_product
from ssvm_bench.config.validation import Count, NotNegative, Positive, one_of
from ssvm_bench.oracles.options import OracleConfig

KERNELS = LINEAR, RBF, POLY = ("linear", "rbf", "poly")

SUPPORT = ("support", "support_data", "support_indices", "support_indptr")
"""Arrays beside w in ``weights.npz``, the features of the parts with non-zero coefficients: one
array, or the three of a CSR matrix."""

_MB = 1e6


@dataclass(frozen=True)
class KernelConfig(OracleConfig):
    """Options of an oracle that can have a kernel.

    Attributes
    ----------
    kernel : str
        ``linear``, ``rbf``: exp(−γ‖x − x′‖²), or ``poly``: (1 + γ⟨x, x′⟩)^degree.
    gamma : float or None
        γ of ``rbf`` and ``poly``, which need it.
    degree : int
        Of ``poly``.
    kernel_memory : float
        MB of kernel values that a solver keeps, row by row; the row that was last used longest ago
        goes first.
    cost_kernel : float
        Seconds that one kernel value counts for under ``clock=work``, whatever the features.
    """

    kernel: Annotated[str, one_of(KERNELS)] = field(default=LINEAR, kw_only=True)
    gamma: Positive | None = field(default=None, kw_only=True)
    degree: Count = field(default=3, kw_only=True)
    kernel_memory: Positive = field(default=1000.0, kw_only=True)
    cost_kernel: NotNegative = field(default=1e-8, kw_only=True)

    def __post_init__(self) -> None:
        """Check that the kernel has its parameters."""
        super().__post_init__()
        if self.kernel != LINEAR and self.gamma is None:
            raise ConfigError(
                f"oracle.kernel={self.kernel} needs oracle.gamma, a number above 0. A usual one is "
                "1/(number of features · their variance)."
            )

    @property
    def has_kernel(self) -> bool:
        """See `OracleConfig`."""
        return self.kernel != LINEAR

    @property
    def costs(self) -> tuple[float, ...]:
        """See `OracleConfig`."""
        return *super().costs, self.cost_kernel

    def made(self) -> KernelFunction:
        """Return the kernel."""
        assert self.gamma is not None
        bytes_kept = round(self.kernel_memory * _MB)
        return KernelFunction(self.kernel, float(self.gamma), self.degree, bytes_kept)


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
                f"oracle.kernel_memory={self.bytes_kept / _MB:g} is too small: a row of kernel "
                f"values, one for each of {parts} parts, takes {8 * parts / _MB:.2g} MB."
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
