"""Kernels as feature maps, K = G Gᵀ: the α-step and the scores only need G, not K.

.. code-block:: text

    W = Gᵀ α ∈ R^{m×L},     K α = G W,     ⟨α, Kα⟩ = ‖W‖²_F
    (17):  (2ν I + ρ GᵀG) W = Gᵀ (ρβ − λ)

The problem depends on α only through W, whose size is that of the features. (17) does not determine
α if K is singular. The solution of (2ν I + ρK) α = ρβ − λ is α = −λ⁺/(2ν), where
λ⁺ = λ + ρ(Kα − β) are the next multipliers, so it costs nothing.

===================  ============================================================================
kernel               G
===================  ============================================================================
``linear``           the features themselves, dense or sparse
``rbf``              Q D^{1/2} of K = Q D Qᵀ, K_ij = exp(−‖x_i − x_j‖²/(2σ²)); GᵀG = D is diagonal
``nystrom``          K_nm K_mm^{−1/2} of m landmarks (Williams, Seeger, NIPS 2001)
``random_features``  (2/m)^{1/2} cos(XΩ + b) (Rahimi, Recht, NIPS 2007)
===================  ============================================================================

The smaller of GᵀG and GGᵀ is decomposed once if it is small enough. Otherwise, or if ``precision``
is given, conjugate gradients solve (17) from the last W.

``scaling`` is applied to the features first: ``unit`` gives each point the norm 1, ``standard``
gives each feature the mean 0 and the variance 1, ``dimension`` divides all by √f for f features.

If nearly all points are far apart for σ, then K ≈ I: no point says anything of another, and no
label can be learned. ``off_diagonal``, the mean of K_ij over i ≠ j, shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
from scipy.special import ndtri

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.random import permutation, uniform
from ssvm_bench.oracles.kernels import rbf

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KERNELS = ("linear", "rbf", "nystrom", "random_features")
SCALINGS = ("none", "unit", "standard", "dimension")

NO_KERNEL = 1e-6
"""Mean of K_ij over i ≠ j below which K counts as the identity."""

MOST_DECOMPOSED = 3000
"""Largest number of rows of a decomposed matrix; beyond, conjugate gradients solve (17)."""

PRECISION = 1e-11
"""Residual at which conjugate gradients end, relative to the right side."""

_CACHED = 2**20
"""Largest number of entries of a matrix that stays in the processor's cache."""

_MEASURED = 2000
"""Most points of which the median distance is taken."""

_SEED = 1729  # fixed for landmarks and random features, so that solvers share the kernel


class FeatureMap:
    """A feature map G of n points, shape (n, m), and its regularised least squares.

    Parameters
    ----------
    G : ndarray of float64 or csr_array, shape (n, m)
    spectrum : ndarray, shape (m,), optional
        The diagonal of GᵀG, if that is a diagonal matrix.
    precision : float or None
        The precision of conjugate gradients, which then solve (17); None: they only solve it if no
        matrix is small.

    Attributes
    ----------
    n, m, kept : int
        Number of points, of features, and of stored weights per label.
    cg_iterations : int
        Iterations of conjugate gradients so far.
    extremes : tuple of float
        Smallest and largest eigenvalue of K; the smallest is NaN if it is not known.
    off_diagonal : float
        Mean of K_ij over i ≠ j, if K was a matrix; else NaN.
    """

    off_diagonal = np.nan

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

    def take(self, points: np.ndarray) -> FeatureMap:
        """Return the kernel of some points, with the same features."""
        return FeatureMap(self.G[points])

    def scores(self, W: np.ndarray) -> np.ndarray:
        """Return Kα = G W, shape (n, L)."""
        return _times(self.G, W)

    def gradient(self, slopes: np.ndarray) -> np.ndarray:
        """Return Gᵀ times the slopes of points and labels, shape (m, L)."""
        return _times(self.G.T, slopes)

    def fit(self, target: np.ndarray, nu: float, rho: float, W: np.ndarray) -> np.ndarray:
        """Return the solution of (17).

        Parameters
        ----------
        target : ndarray, shape (n, L)
            ρβ − λ.
        nu, rho : float
        W : ndarray, shape (m, L)
            The starting point of conjugate gradients.
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
        """Return the weights to store: those of the features, class by class, shape (L, m)."""
        return W.T


class Decomposed(FeatureMap):
    """A kernel matrix, stored as its eigenvectors with eigenvalues above rounding errors."""

    def __init__(self, K: np.ndarray, precision: float | None = None) -> None:
        n, total = len(K), float(K.sum())
        self.off_diagonal = (total - float(K.trace())) / max(n * (n - 1), 1)
        D, Q = scipy.linalg.eigh(K, overwrite_a=True, check_finite=False)
        kept = _above_rounding(D)
        self._back = Q[:, kept] / np.sqrt(D[kept])
        super().__init__(Q[:, kept] * np.sqrt(D[kept]), D[kept], precision)
        self.kept = self.n  # α has one weight per point

    def alpha(self, W: np.ndarray) -> np.ndarray:
        """Return α in the range of K, class by class, shape (L, n): Kα = G W."""
        return (self._back @ W).T


def build(config: Any, x: Any, what: str) -> FeatureMap:
    """Return a kernel of points.

    Parameters
    ----------
    config : transduction.Config
        ``kernel``, one of ``KERNELS``, and the kernel's options.
    x : ndarray or csr_array, shape (n, f)
    what : str
        The name of the dataset, for messages.

    Raises
    ------
    RunFailedError
        The kernel is too large for the memory.
    """
    kind, sigma, components = config.kernel, config.sigma, config.components
    x, precision = scaled(x, config.scaling), config.precision
    if kind == "linear":
        return FeatureMap(x, precision=precision)
    x = dense(x)
    sigma = median_distance(x) if sigma is None else sigma
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
        return FeatureMap(G, precision=precision)
    omega = ndtri(uniform((x.shape[1], components), bits) + 2.0**-54) / sigma
    phase = 2.0 * np.pi * uniform((components,), bits)
    return FeatureMap(np.sqrt(2.0 / components) * np.cos(x @ omega + phase), precision=precision)


def median_distance(x: np.ndarray) -> float:
    """Return the median distance of two points; of many, that of `_MEASURED` of them.

    Raises
    ------
    ConfigError
        It is 0: at least half of the pairs are at the same place.
    """
    chosen = x
    if len(x) > _MEASURED:
        chosen = x[permutation(len(x), np.random.PCG64(_SEED))[:_MEASURED]]
    size = (chosen * chosen).sum(axis=1)
    square = size[:, None] + size - 2.0 * chosen @ chosen.T
    square = square[np.triu_indices(len(chosen), 1)]
    found = float(np.median(np.sqrt(np.maximum(square, 0.0)))) if len(square) else 0.0
    if not found > np.sqrt(size.max() * np.finfo(float).eps):
        raise ConfigError(
            "The median distance of two points is 0, which is no σ. Set oracle.sigma to a number."
        )
    return found


def dense(x: Any) -> np.ndarray:
    """Return a matrix, dense or sparse, as an array."""
    return x if isinstance(x, np.ndarray) else x.toarray()


def scaled(x: Any, scaling: str) -> Any:
    """Return the features as floats, scaled; sparse ones are standardised without their mean."""
    x = x.astype(np.float64)
    if scaling == "none":
        return x
    if scaling == "dimension":
        return x * (1.0 / np.sqrt(x.shape[1]))
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
    """Return A V for a V of few columns, in row order.

    If A does not fit in the cache, (Vᵀ Aᵀ)ᵀ takes half the time: BLAS reads A once, as stored.
    """
    if not isinstance(A, np.ndarray) or A.size < _CACHED:
        return np.asarray(A @ V)
    return np.ascontiguousarray((np.ascontiguousarray(V.T) @ A.T).T)


def _above_rounding(D: np.ndarray) -> np.ndarray:
    """Return which of the rising eigenvalues are larger than a 0 with rounding errors."""
    return np.asarray(D / D[-1] > D.size * np.finfo(float).eps)


def _rbf(x: np.ndarray, z: np.ndarray, sigma: float) -> np.ndarray:
    """Return exp(−‖x_i − z_j‖²/(2σ²)), shape (len(x), len(z))."""
    return rbf(x @ z.T, (x * x).sum(axis=1), (z * z).sum(axis=1), 0.5 / sigma**2)


def _conjugate_gradients(
    G: Any, right: np.ndarray, nu: float, rho: float, W: np.ndarray, precision: float
) -> tuple[np.ndarray, int]:
    """Solve (2ν I + ρ GᵀG) W = right from W, all columns at once; also return the iterations."""

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
