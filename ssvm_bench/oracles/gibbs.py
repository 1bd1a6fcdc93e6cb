"""Gibbs distributions over the labelings of all terms at once, by a pass of the expectation oracle.

A point z = [ω c] ∈ R^{d+1} gives every term a distribution over its labelings Y_i,

.. code-block:: text

    α_i(z)[y] ∝ exp( n ⟨φ^{iy}, z⟩ ) = exp( c Δ(y_i,y) + ⟨ω, ϕ(x_i,y) − ϕ(x_i,y_i)⟩ )
    A(z)      = 1/n Σ_i log( 1/|Y_i| Σ_y exp( n ⟨φ^{iy}, z⟩ ) )
    φ(z)      = Σ_i Σ_y α_i(z)[y] φ^{iy} = ∇A(z)

A is the conjugate of d(α) = 1/n Σ_i KL(α_i ‖ uniform), a function of plane sums. Solvers that keep
to such distributions need only z, A and φ, and store nothing per term:

.. code-block:: text

    ⟨φ(z), z⟩ − A(z) = d(α(z))         0 ≤ d ≤ D = 1/n Σ_i log |Y_i|
    1/n Σ_i KL( α_i(a) ‖ α_i(b) ) = A(b) − A(a) − ⟨φ(a), b − a⟩
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.jit import allocating_kernel
from ssvm_bench.base.linalg import rounded_once
from ssvm_bench.oracles import joint_features, scoring
from ssvm_bench.oracles.labeling import LabelingOracle, expect

# mypy: disable-error-code="no-untyped-def"


@dataclass(frozen=True)
class Gibbs:
    """The distributions at a point.

    Attributes
    ----------
    z : ndarray, shape (d + 1,)
        [ω c].
    phi : ndarray, shape (d + 1,)
        φ(z).
    log_mean : float
        A(z).
    """

    z: np.ndarray
    phi: np.ndarray
    log_mean: float

    @classmethod
    def unknown(cls, d: int) -> Gibbs:
        """Return a placeholder for the distributions before any expectation is known."""
        return cls(np.zeros(d + 1), np.zeros(d + 1), 0.0)

    def divergence(self, other: Gibbs) -> float:
        """Return 1/n Σ_i KL( α_i ‖ other_i ) ≥ 0, up to rounding."""
        return other.log_mean - self.log_mean - rounded_once(self.phi, other.z - self.z)


def at(oracle: LabelingOracle, z: np.ndarray) -> Gibbs:
    """Return the distributions at a point, by one expectation per term.

    Raises
    ------
    RunFailedError
        If A(z) is not a finite number.
    """
    features = oracle.features
    omega = joint_features.pack(features, z[:-1])
    star = np.zeros_like(omega)
    oracle.pause(oracle.n)
    longest = scoring.longest(features)
    total, offset = _pass(oracle.compiled, omega, float(z[-1]), star, longest)
    if not math.isfinite(total):
        raise _not_finite(oracle, "a larger lam")
    phi = np.append(joint_features.unpack(features, star), offset) / oracle.n
    return Gibbs(z, phi, total / oracle.n)


def log_labelings(oracle: LabelingOracle) -> float:
    """Return D = 1/n Σ_i log |Y_i|."""
    return oracle.features.truth.size / oracle.n * math.log(oracle.features.n_labels)


def marginals(oracle: LabelingOracle, w: Any, temperature: float = 1.0) -> np.ndarray:
    """Return the probabilities of the labels of each part, shape (parts, K).

    That is Σ p(y) over the labelings y with that label, under p(y) ∝ exp(⟨w, ϕ(x_i, y)⟩ / τ) with
    the temperature τ. The weights may be `Oracle.packed`.

    Raises
    ------
    RunFailedError
        If they are not finite.
    """
    features = oracle.features
    found = np.zeros((features.truth.size, features.n_labels))
    compiled, omega = oracle.at(oracle.compiled, w)
    _marginals(compiled, omega / temperature, found, scoring.longest(features))
    if not np.isfinite(found).all():
        raise _not_finite(oracle, "a higher temperature")
    return found


def _not_finite(oracle: LabelingOracle, advice: str) -> RunFailedError:
    return RunFailedError(
        f"the expectations of the oracle {type(oracle).__name__} are not finite: the scores "
        f"are too large. Scale the features, or choose {advice}"
    )


@allocating_kernel
def _marginals(oracle, omega, found, most):
    """Write the marginals of every part into ``found``; omega is in the inner layout.

    ``most`` is the largest number of parts.
    """
    features = oracle.features
    K, stride = features.n_labels, features.stride
    moves = omega[features.n_features * stride :]
    theta = np.zeros((most, stride))
    mu = np.zeros((most, stride))
    nu = np.zeros(moves.size)
    work = np.zeros((2, most + K, stride))
    for i in range(features.offsets.size - 1):
        first, L = scoring.parts(features, i)
        scoring.unary_scores(features, omega, i, theta)
        expect(oracle, L, theta, moves, mu, nu, work)
        found[first : first + L] = mu[:L, :K]


@allocating_kernel
def _pass(oracle, omega, loss, star, most):
    """Return n A(z) and n φ∘(z); add n φ⋆(z) to ``star``; z = [omega loss] in the inner layout."""
    features = oracle.features
    K, stride = features.n_labels, features.stride
    base = features.n_features * stride
    moves = omega[base:]
    theta = np.zeros((most, stride))
    mu = np.zeros((most, stride))
    nu = np.zeros(moves.size)
    work = np.zeros((2, most + K, stride))
    total = 0.0
    offset = 0.0
    for i in range(features.offsets.size - 1):
        first, L = scoring.parts(features, i)
        truth = features.truth[first : first + L]
        scoring.unary_scores(features, omega, i, theta)
        total -= scoring.labeling_score(features, omega, i, theta, truth) + L * np.log(K)
        scoring.add_losses(features, i, loss, theta)
        total += expect(oracle, L, theta, moves, mu, nu, work)
        for l in range(L):
            offset += scoring.expected_label_loss(features, first + l, mu[l]) / L
            mu[l, truth[l]] -= 1.0
            scoring.add_marginals(features, first + l, 1.0, mu[l], star)
            if l > 0 and features.transitions:
                star[scoring.move_index(features, truth[l - 1], truth[l])] -= 1.0
        for k in range(nu.size):
            star[base + k] += nu[k]
    return total, offset
