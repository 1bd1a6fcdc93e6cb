"""Kernels as feature maps, K = G Gᵀ: what the α-step and the scores need, K itself never formed.

.. code-block:: text

    W = Gᵀ α ∈ R^{m×L},     K α = G W,     ⟨α, Kα⟩ = ‖W‖²_F
    (17):  (2ν I + ρ GᵀG) W = Gᵀ (ρβ − λ)

W says all of α that the problem sees, and its size is that of the features. (17) leaves α free
where K is singular; the one with (2ν I + ρK) α = ρβ − λ is α = −λ⁺/(2ν), λ⁺ = λ + ρ(Kα − β) being
the next multipliers: it costs nothing.

===================  ============================================================================
kernel               G
===================  ============================================================================
``linear``           the features themselves, dense or sparse
``rbf``              Q D^{1/2} of K = Q D Qᵀ, K_ij = exp(−‖x_i − x_j‖²/(2σ²)); GᵀG = D is diagonal
``nystrom``          K_nm K_mm^{−1/2} of m landmarks (Williams, Seeger, NIPS 2001)
``random_features``  (2/m)^{1/2} cos(XΩ + b) (Rahimi, Recht, NIPS 2007)
===================  ============================================================================

GᵀG is decomposed once where it is small, GGᵀ where there are fewer points than features; else, or
where that is asked for, (17) is solved by conjugate gradients from the last W.

``scaling`` is applied to the features first: ``unit`` gives every point the norm 1, ``standard``
every feature the mean 0 and the variance 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from scipy.special import ndtri

from ssvm_bench.base.memory import check_room
from ssvm_bench.base.random import permutation, uniform
from ssvm_bench.oracles.kernels import rbf

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KERNELS = ("linear", "rbf", "nystrom", "random_features")
SCALINGS = ("none", "unit", "standard")

MOST_DECOMPOSED = 3000
"""Rows of a matrix that is decomposed once; with more, (17) is solved by conjugate gradients."""

PRECISION = 1e-11
"""Of conjugate gradients: the residual, relative to the right side."""

_CACHED = 2**20
"""Numbers of a matrix that stays in the processor's cache."""

_SEED = 1729  # of landmarks and random features: the kernel is no random choice of a solver


class Kernel:
    """A feature map G of n points, shape (n, m), and the regularised least squares in it.

    Parameters
    ----------
    G : ndarray of float64 or csr_array, shape (n, m)
    spectrum : ndarray, shape (m,), optional
        The diagonal of GᵀG, where that is a diagonal matrix.
    precision : float or None
        That of conjugate gradients, which solve (17); None: they do where no matrix is small.

    Attributes
    ----------
    n, m, kept : int
        Number of points, of features, and of weights that are kept of a label.
    cg_iterations : int
        Iterations of conjugate gradients so far.
    extremes : tuple of float
        Smallest and largest eigenvalue of K; the smallest is NaN where it is not known.
    """

    def __init__(
        self,
        G: np.ndarray | csr_array,
        spectrum: np.ndarray | None = None,
        precision: float | None = None,
    ) -> None:
        self.G = G
        self.n, self.m = n, m = G.shape
        self.kept = m
        self.rows = "features" if m <= n else "points"
        self.basis: np.ndarray | None = None
        self.precision = precision or PRECISION
        self.cg_iterations = 0
        if precision is not None:
            spectrum = None
        elif spectrum is None and min(n, m) <= MOST_DECOMPOSED:
            spectrum, self.basis = np.linalg.eigh(dense(G.T @ G if m <= n else G @ G.T))
            spectrum = np.maximum(spectrum, 0.0)
        self.spectrum = spectrum
        if spectrum is None:
            from scipy.sparse.linalg import svds

            top = svds(G, k=1, return_singular_vectors=False, random_state=0)
            self.extremes = (0.0 if n > m else np.nan), float(top[0]) ** 2
        else:
            smallest = float(spectrum.min()) if spectrum.size == n else 0.0
            self.extremes = smallest, float(spectrum.max())

    def take(self, points: np.ndarray) -> Kernel:
        """Return the kernel of some points, with the same features."""
        return Kernel(self.G[points])

    def scores(self, W: np.ndarray) -> np.ndarray:
        """Return Kα = G W, shape (n, L)."""
        return _times(self.G, W)

    def gradient(self, slopes: np.ndarray) -> np.ndarray:
        """Return Gᵀ times one slope a point and label, shape (m, L)."""
        return _times(self.G.T, slopes)

    def fit(self, target: np.ndarray, nu: float, rho: float, W: np.ndarray) -> np.ndarray:
        """Return the solution of (17).

        Parameters
        ----------
        target : ndarray, shape (n, L)
            ρβ − λ.
        nu, rho : float
        W : ndarray, shape (m, L)
            Where conjugate gradients begin.
        """
        if self.spectrum is None:
            right = self.gradient(target)
            found, iterations = _conjugate_gradients(self.G, right, nu, rho, W, self.precision)
            self.cg_iterations += iterations
            return found
        scale = 1.0 / (2.0 * nu + rho * self.spectrum)[:, None]
        if self.basis is None:
            return scale * self.gradient(target)
        if self.rows == "points":  # Gᵀ (2ν I + ρ GGᵀ)^{-1} target
            inner = _times(self.basis, scale * _times(self.basis.T, target))
            return self.gradient(inner)
        inner = scale * _times(self.basis.T, self.gradient(target))
        return _times(self.basis, inner)

    def alpha(self, W: np.ndarray) -> np.ndarray:
        """Return weights as they are kept: those of the features, class by class, shape (L, m)."""
        return W.T


class Decomposed(Kernel):
    """A kernel matrix by its eigenvalues and vectors, of which those above rounding are kept."""

    def __init__(self, K: np.ndarray, precision: float | None = None) -> None:
        D, Q = scipy.linalg.eigh(K, overwrite_a=True, check_finite=False)
        kept = _above_rounding(D)
        self._back = Q[:, kept] / np.sqrt(D[kept])
        super().__init__(Q[:, kept] * np.sqrt(D[kept]), D[kept], precision)
        self.kept = self.n  # α has one weight a point

    def alpha(self, W: np.ndarray) -> np.ndarray:
        """Return α in the range of K, class by class, shape (L, n): Kα = G W."""
        return (self._back @ W).T


def build(config: Any, x: Any, what: str) -> Kernel:
    """Return a kernel of points.

    Parameters
    ----------
    config : transduction.Config
        Its ``kernel``, one of ``KERNELS``, and the options of that.
    x : ndarray or csr_array, shape (n, f)
    what : str
        Whose points they are, for messages.

    Raises
    ------
    RunFailedError
        The kernel is too large for the memory.
    """
    kind, sigma, components = config.kernel, config.sigma, config.components
    x, precision = scaled(x, config.scaling), config.precision
    if kind == "linear":
        return Kernel(x, precision=precision)
    x = dense(x)
    n, bits = len(x), np.random.PCG64(_SEED)
    if kind == "rbf":
        check_room(
            4.0 * 8.0 * n * n,
            f"The RBF kernel of the {n:,} points of {what} (four {n:,} × {n:,} matrices)",
            "Use oracle.kernel=nystrom or oracle.kernel=random_features, which take "
            "oracle.components numbers a point; or fewer points (dataset.n_samples).",
        )
        K = _rbf(x, x, sigma)
        K[np.diag_indices(n)] += config.ridge
        return Decomposed(K, precision)
    if kind == "nystrom":
        landmarks = x[permutation(n, bits)[:components]]
        D, Q = np.linalg.eigh(_rbf(landmarks, landmarks, sigma))
        kept = _above_rounding(D)
        G = _rbf(x, landmarks, sigma) @ (Q[:, kept] / np.sqrt(D[kept]))
        return Kernel(G, precision=precision)
    omega = ndtri(uniform((x.shape[1], components), bits) + 2.0**-54) / sigma
    phase = 2.0 * np.pi * uniform((components,), bits)
    return Kernel(np.sqrt(2.0 / components) * np.cos(x @ omega + phase), precision=precision)


def dense(x: Any) -> np.ndarray:
    """Return a matrix, dense or sparse, as an array."""
    return x if isinstance(x, np.ndarray) else x.toarray()


def scaled(x: Any, scaling: str) -> Any:
    """Return the features as floats, scaled; sparse ones are standardised without their mean."""
    x = x.astype(np.float64)
    if scaling == "none":
        return x
    square = x.multiply(x) if not isinstance(x, np.ndarray) else x * x
    if scaling == "unit":
        size = np.sqrt(np.asarray(square.sum(axis=1)).ravel())[:, None]
        size[size == 0] = 1.0
        return x / size if isinstance(x, np.ndarray) else x.multiply(1.0 / size).tocsr()
    mean = np.asarray(x.mean(axis=0)).ravel()
    deviation = np.sqrt(np.maximum(np.asarray(square.mean(axis=0)).ravel() - mean**2, 0.0))
    deviation[deviation == 0] = 1.0
    if isinstance(x, np.ndarray):
        return (x - mean) / deviation
    return x.multiply(1.0 / deviation).tocsr()


def _times(A: Any, V: np.ndarray) -> np.ndarray:
    """Return A V for a V of few columns, in order of rows.

    Where A is not in the cache as Vᵀ Aᵀ, in half the time: BLAS then reads A once, as it lies.
    """
    if not isinstance(A, np.ndarray) or A.size < _CACHED:
        return np.asarray(A @ V)
    return np.ascontiguousarray((np.ascontiguousarray(V.T) @ A.T).T)


def _above_rounding(D: np.ndarray) -> np.ndarray:
    """Tell which of rising eigenvalues are not 0 but for rounding."""
    return np.asarray(D / D[-1] > D.size * np.finfo(float).eps)


def _rbf(x: np.ndarray, z: np.ndarray, sigma: float) -> np.ndarray:
    """Return exp(−‖x_i − z_j‖²/(2σ²)), shape (len(x), len(z))."""
    return rbf(x @ z.T, (x * x).sum(axis=1), (z * z).sum(axis=1), 0.5 / sigma**2)


def _conjugate_gradients(
    G: Any, right: np.ndarray, nu: float, rho: float, W: np.ndarray, precision: float
) -> tuple[np.ndarray, int]:
    """Solve (2ν I + ρ GᵀG) W = right, column by column at once, from W; count the iterations."""

    def product(V: np.ndarray) -> np.ndarray:
        return np.asarray(2.0 * nu * V + rho * (G.T @ (G @ V)))

    W = W.copy()
    residual = right - product(W)
    direction, square = residual.copy(), (residual**2).sum(axis=0)
    goal, k = precision**2 * (right**2).sum(axis=0), 0
    for k in range(10 * W.shape[0]):  # noqa: B007
        going = square > goal
        if not going.any():
            break
        moved = product(direction)
        length = np.where(going, square, 0.0) / np.maximum((direction * moved).sum(axis=0), 1e-300)
        W += length * direction
        residual -= length * moved
        before, square = square, (residual**2).sum(axis=0)
        direction = residual + square / np.maximum(before, 1e-300) * direction
    return W, k
