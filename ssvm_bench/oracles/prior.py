"""A Gaussian prior as a change of variables: a solver sees transformed planes.

.. code-block:: text

    P(w) = λ/2 (w − μ)ᵀ Σ⁻¹ (w − μ) + Σ_i H_i(w)          w = μ + S ŵ,  S Sᵀ = Σ
         = λ/2 ‖ŵ‖² + Σ_i Ĥ_i(ŵ)                          φ̂⋆ = Sᵀ φ⋆,  φ̂∘ = φ∘ + ⟨μ, φ⋆⟩

(Ramanan, *Dual coordinate solvers for large-scale structural SVMs*, equations 44 and 45, with any
root S of Σ). For every plane, ⟨φ̂, [ŵ 1]⟩ = ⟨φ, [w 1]⟩, so that Ĥ_i(ŵ) = H_i(w); the ground truth's
plane stays 0. Hence solvers need no code for a prior: they see a problem of the usual form, whose
primal and dual values are those of the problem with the prior.

A factor σ² of Σ = σ² S Sᵀ does not change the planes: it replaces λ by λ/σ². So Σ = σ² and μ = 0
leave the oracle unchanged, with its compiled passes. With other priors, planes are kept as rows. A
diagonal Σ keeps their number of non-zeros, and a call of the oracle costs O(d) more; a full matrix
makes it d, and a call costs O(d²) more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.base.jit import kernel
from ssvm_bench.base.linalg import dot, dot_at
from ssvm_bench.config.schema import PriorConfig
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Constraints, Oracle, Plane, Risk
from ssvm_bench.oracles.objective import Objective, Terms

# mypy: disable-error-code="no-untyped-def"


@dataclass(frozen=True)
class Prior:
    """N(μ, σ² S Sᵀ).

    Attributes
    ----------
    mean : ndarray of float64, shape (d,)
        μ.
    root : ndarray of float64, shape (d,) or (d, d)
        S: its diagonal, or a lower triangular matrix.
    scale : float
        σ², by which λ is divided.
    """

    mean: np.ndarray
    root: np.ndarray
    scale: float = 1.0

    def weights(self, w: np.ndarray) -> np.ndarray:
        """Return μ + S ŵ."""
        w = np.asarray(w)
        if self.root.ndim == 1:
            return self.mean + self.root * w
        moved = np.empty(w.size)
        _times(self.root, w, moved)
        return self.mean + moved

    def row(self, indices: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Sᵀ v of a sparse row v, as indices and values of its non-zeros."""
        if self.root.ndim == 1:
            return indices, self.root[indices] * values
        dense = np.zeros(self.mean.size)
        _transposed_times(self.root, indices, values, dense)
        kept = np.flatnonzero(dense)
        return kept, dense[kept]

    def shift(self, indices: np.ndarray, values: np.ndarray) -> float:
        """Return ⟨μ, v⟩ of a sparse row v."""
        return float(dot_at(values, indices, self.mean))

    def plane(self, plane: Plane) -> Plane:
        """Return the plane of ŵ for a plane of w."""
        indices, values, offset = plane
        return Plane(*self.row(indices, values), offset + self.shift(indices, values))

    def constraints(self, given: Constraints) -> Constraints:
        """Return the planes of ŵ for listed planes of w."""
        star = given.star(self.mean.size)
        offset = given.offset + star @ self.mean
        if self.root.ndim == 1:
            scaled = star.copy()
            scaled.data *= self.root[star.indices]
        else:
            Constraints.check_fit(star.shape[0], float(math.prod(star.shape)))
            dense = np.zeros(star.shape)
            for row, begin, end in zip(dense, star.indptr[:-1], star.indptr[1:], strict=True):
                _transposed_times(self.root, star.indices[begin:end], star.data[begin:end], row)
            scaled = csr_array(dense)
        return Constraints.of(given.term_start, scaled, offset)

    def oracle(self, inner: Oracle) -> Oracle:
        """Return the oracle that a solver sees: ``inner``, unless its planes change."""
        changes = self.mean.any() or self.root.ndim == 2 or not (self.root == 1.0).all()
        return WithPrior(inner, self) if changes else inner


def build(config: PriorConfig, d: int) -> Prior:
    """Return the prior of d weights that the options state.

    Raises
    ------
    ConfigError
        If the options are for another number of weights, or a file they name cannot be used.
    """
    mean, variance = config.moments(d)
    means = np.broadcast_to(mean, d)
    if variance.ndim == 0:
        ones, scale = np.broadcast_to(1.0, d), float(variance)
        if not mean.any():  # no plane changes: these views take no memory, and are never read
            return Prior(means, ones, scale)
        return Prior(means.copy(), ones.copy(), scale)
    return Prior(
        means.copy(), np.sqrt(variance) if variance.ndim == 1 else np.linalg.cholesky(variance)
    )


def with_prior(terms: Terms, lam: float, prior: Prior) -> Objective:
    """Return the problem of ŵ for an oracle of w, λ, and a prior; other terms have no prior."""
    seen = prior.oracle(terms) if isinstance(terms, Oracle) else terms
    return seen.problem(lam / prior.scale)


class WithPrior(Oracle):
    """The oracle of ŵ for one of w.

    Parameters
    ----------
    inner : Oracle
        The oracle of w, which checks the planes that it returns.
    prior : Prior
    """

    STATE = ("inner",)

    def __init__(self, inner: Oracle, prior: Prior) -> None:
        self.inner, self.prior = inner, prior
        self.n, self.d, self.exact = inner.n, inner.d, inner.exact
        self.nonnegative = inner.nonnegative
        self.caller = inner.caller

    def weights(self, w: np.ndarray) -> np.ndarray:
        """Return w for ŵ."""
        return self.inner.weights(self.prior.weights(w))

    def truth(self, i: int) -> np.ndarray:
        """Return y_i."""
        return self.inner.truth(i)

    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the labeling that is best at w."""
        return self.inner.argmax(self.prior.weights(w), i)

    def predict(self, w: np.ndarray, i: int) -> np.ndarray:
        """Return the prediction by w."""
        return self.inner.predict(self.prior.weights(w), i)

    def loss(self, i: int, y: np.ndarray) -> float:
        """Return Δ(y_i, y)."""
        return self.inner.loss(i, y)

    def joint_feature(self, i: int, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return Sᵀ ϕ(x_i,y)."""
        return self.prior.row(*self.inner.joint_feature(i, y))

    def fixed_score(self, i: int, y: np.ndarray) -> float:
        """Return Θ_i(y) + ⟨μ, ϕ(x_i,y)⟩."""
        return self.inner.fixed_score(i, y) + self.prior.shift(*self.inner.joint_feature(i, y))

    def plane(self, i: int, y: np.ndarray) -> Plane:
        """Return φ̂^{iy}."""
        return self.prior.plane(self.inner.plane(i, y))

    def best_plane(self, w: np.ndarray, i: int) -> tuple[Plane, float]:
        """Return the best plane, and its value."""
        plane, value = self.inner.best_plane(self.prior.weights(w), i)
        return self.prior.plane(plane), value

    def best_planes(self, w: np.ndarray, terms: Sequence[int]) -> Iterator[tuple[Plane, float]]:
        """Yield the best plane of each given term, and its value."""
        for plane, value in self.inner.best_planes(self.prior.weights(w), terms):
            yield self.prior.plane(plane), value

    def upper_bound(self, w: np.ndarray, i: int) -> float:
        """Return the upper bound from the oracle of w."""
        return self.inner.upper_bound(self.prior.weights(w), i)

    @property
    def head(self) -> Oracle:
        """The head of the oracle of w, with the prior."""
        return self if self.inner.head is self.inner else WithPrior(self.inner.head, self.prior)

    def chunks(self) -> Iterator[tuple[int, Oracle]]:
        """Yield the chunks of the oracle of w, with the prior."""
        for begin, part in self.inner.chunks():
            yield begin, WithPrior(part, self.prior)

    def constraints(self) -> Constraints | None:
        """Return all φ̂^{iy}, if those of w can be listed."""
        given = self.inner.constraints()
        if given is None:
            return None
        given.check(self.n, self.d)
        return self.prior.constraints(given)

    def latent(self) -> np.ndarray | None:
        """Return the latent values of the oracle of w."""
        return self.inner.latent()

    def update_latent(self, w: np.ndarray) -> tuple[Oracle, int]:
        """Return the oracle with the latent values that are best at w."""
        inner, changed = self.inner.update_latent(self.prior.weights(w))
        return WithPrior(inner, self.prior), changed

    def with_latent(self, values: np.ndarray) -> Oracle:
        """Return the oracle with other latent values."""
        return WithPrior(self.inner.with_latent(values), self.prior)

    def fresh(self) -> Oracle:
        """Return the oracle for one solver; see `Oracle`."""
        return WithPrior(self.inner.fresh(), self.prior)

    def diagnostics(self) -> dict[str, float]:
        """Return the diagnostics of the oracle of w."""
        return self.inner.diagnostics()

    def mean_loss(self, w: np.ndarray) -> float:
        """Return the mean loss of the predictions by w."""
        return self.inner.mean_loss(self.prior.weights(w))

    def risk(self, w: np.ndarray, with_plane: bool = True, terms: range | None = None) -> Risk:
        """Return H(w) and its maximising plane."""
        found = self.inner.risk(self.prior.weights(w), with_plane, terms)
        checks.check_risk(self.inner, found)
        if not with_plane:
            return found
        everywhere = np.arange(self.d)
        star = np.zeros(self.d)
        indices, values = self.prior.row(everywhere, found.star)
        star[indices] = values
        shift = self.prior.shift(everywhere, found.star)
        return Risk(found.value, star, found.offset + shift)


@kernel
def _times(root, w, out):
    """Write S w into ``out``, for a lower triangular S."""
    for j in range(w.size):
        out[j] = dot(root[j], w, j + 1)


@kernel
def _transposed_times(root, indices, values, out):
    """Add Sᵀ v to ``out``, for a lower triangular S and a sparse row v."""
    for k in range(indices.size):
        row = root[indices[k]]
        for j in range(indices[k] + 1):
            out[j] += values[k] * row[j]
