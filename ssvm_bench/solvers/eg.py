"""Online exponentiated gradient on the dual (Collins et al., JMLR 2008, Figure 5).

.. code-block:: text

    n φ^i = Σ_y α_i[y] n φ^{iy}        α_i[y] ∝ exp( Σ_l U_i[l, y_l] + Σ_l M_i[y_{l−1}, y_l] )

Every labeling has a weight. The weights of a term are a Gibbs distribution over its parts, so that
only its potentials and marginals are kept. A step on term i multiplies the weights,

.. code-block:: text

    α_i[y] ← α_i[y] exp( η_i ( Δ(y_i, y) + ⟨w, ϕ(x_i, y)⟩ ) ) / Z

which adds to the potentials. The *expectation oracle* returns the new marginals. With δ the change
of n φ^i, F changes by ⟨δ, [w 1]⟩/n − ‖δ⋆‖²/(2 λ n²). If that is negative, the step is not taken,
and another trial follows with half of η_i, up to `_MOST_TRIALS` trials; else η_i grows by 5 %. Each
trial is an exact call. F never falls.

α_i must be positive everywhere, so φ^i cannot begin at 0. At first, the potential of each true
label is ``start``, and all others are 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.jit import allocating_kernel, kernel, nanoseconds
from ssvm_bench.config.validation import Positive, one_of
from ssvm_bench.oracles import scoring
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.labeling import expect
from ssvm_bench.solvers.base import Iterate, Solver
from ssvm_bench.solvers.expectations import ExpectationConfig
from ssvm_bench.solvers.orders import SAMPLING, Orders

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 2

_MOST_TRIALS = 20
_GROWTH = 1.05


@dataclass(frozen=True)
class Config(ExpectationConfig):
    """Options of ``eg``.

    Attributes
    ----------
    sampling : str
        Order of the terms: ``permutation``, or ``uniform``: drawn with replacement.
    eta : float
        Learning rate of every term at first; halved where F would fall.
    start : float
        Potential of the true labels at first; it matters more the smaller λ is.
    """

    sampling: Annotated[str, one_of(SAMPLING)] = "permutation"
    eta: Positive = 1.0
    start: Positive = 8.0


class GibbsIterate(NamedTuple):
    """w and φ∘, and the potentials, marginals and learning rate of every term."""

    w: np.ndarray
    offset: np.ndarray  # shape (1,)
    unary: np.ndarray  # shape (parts, stride)
    moves: np.ndarray  # shape (n, K · stride), or (n, 0)
    mu: np.ndarray
    nu: np.ndarray
    eta: np.ndarray  # shape (n,)


class ExponentiatedGradient(Solver):
    """Online exponentiated gradient; an iteration is a pass over the terms.

    Raises
    ------
    ConfigError
        If the oracle has no expectations.
    """

    STATE = ("kept", "_orders")

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(problem, clock)
        self.config = config
        self.oracle = config.oracle_of(problem)
        features = self.oracle.features
        parts, stride = features.truth.size, features.stride
        moves = features.n_labels * stride if features.transitions else 0
        self.kept = GibbsIterate(
            w=np.zeros(self.oracle.inner_d),
            offset=np.zeros(1),
            unary=np.zeros((parts, stride)),
            moves=np.zeros((problem.n, moves)),
            mu=np.zeros((parts, stride)),
            nu=np.zeros((problem.n, moves)),
            eta=np.full(problem.n, config.eta),
        )
        most, K = scoring.longest(features), features.n_labels
        unary, mu, theta = np.zeros((3, most, stride))
        work = np.zeros((2, most + K, stride))
        of_moves, nu = np.zeros((2, moves))
        self._trial = Trial(unary, mu, theta, of_moves, nu, work)
        _begin(self.oracle.compiled, self.kept, self._trial, problem.lam, config.start)
        self._orders = Orders(problem.n, config.sampling, seed)

    def iterate(self) -> None:
        """Do one step on each term of the order."""
        order = next(self._orders)
        with self.clock.exact(order.size) as count:
            self.oracle.pause(order.size)
            compiled, lam = self.oracle.compiled, self.problem.lam
            count.calls, count.share = _pass(compiled, order, self.kept, self._trial, lam)

    def reported(self) -> Iterate:
        """Return w and F."""
        w = self.oracle.unpack(self.kept.w)
        return Iterate(w, self.problem.dual(w, float(self.kept.offset[0])))


class Trial(NamedTuple):
    """Scratch: potentials and marginals of a step, and δ."""

    unary: np.ndarray
    mu: np.ndarray
    theta: np.ndarray
    moves: np.ndarray
    nu: np.ndarray
    work: np.ndarray


@allocating_kernel
def _begin(oracle, state, trial, lam, start):
    """Give the true labels their potentials, and compute marginals, w and φ∘."""
    features = oracle.features
    for i in range(state.eta.size):
        first, L = scoring.parts(features, i)
        for l in range(L):
            state.mu[first + l, features.truth[first + l]] = 1.0
            state.unary[first + l, features.truth[first + l]] = start
            trial.unary[l] = state.unary[first + l]
        for l in range(1, L):
            if features.transitions:
                move = features.truth[first + l] * features.stride + features.truth[first + l - 1]
                state.nu[i, move] += 1.0
        expect(oracle, L, trial.unary, trial.moves, trial.mu, trial.nu, trial.work)
        _move(features, i, trial, state, lam)


@allocating_kernel
def _pass(oracle, order, state, trial, lam):
    """Do a step on each term; return the number of trials, and the oracle's share of the time."""
    features = oracle.features
    base = features.n_features * features.stride
    timespec = np.zeros(2, np.int64)
    calls = 0
    oracle_time = 0
    begin = nanoseconds(timespec)
    for i in order:
        first, L = scoring.parts(features, i)
        scoring.unary_scores(features, state.w, i, trial.theta)
        scoring.add_losses(features, i, 1.0, trial.theta)
        for _ in range(_MOST_TRIALS):
            eta = state.eta[i]
            for l in range(L):
                for c in range(features.n_labels):
                    trial.unary[l, c] = state.unary[first + l, c] + eta * trial.theta[l, c]
            for k in range(trial.moves.size):
                trial.moves[k] = state.moves[i, k] + eta * state.w[base + k]
            start = nanoseconds(timespec)
            expect(oracle, L, trial.unary, trial.moves, trial.mu, trial.nu, trial.work)
            oracle_time += nanoseconds(timespec) - start
            calls += 1
            if _gain(features, i, trial, state, lam) >= 0.0:
                state.unary[first : first + L] = trial.unary[:L]
                state.moves[i] = trial.moves
                _move(features, i, trial, state, lam)
                state.eta[i] *= _GROWTH
                break
            state.eta[i] *= 0.5
    return calls, oracle_time / max(nanoseconds(timespec) - begin, 1)


@kernel
def _gain(features, i, trial, state, lam):
    """Return n times the change of F; ``theta`` holds scores and losses."""
    n = state.eta.size
    base = features.n_features * features.stride
    first, L = scoring.parts(features, i)
    climb = 0.0
    length2 = 0.0
    gram = features.gram[features.gram_start[i] :]
    for l in range(L):
        for c in range(features.n_labels):
            climb += (trial.mu[l, c] - state.mu[first + l, c]) * trial.theta[l, c]
        for m in range(l + 1):
            overlap = scoring.marginal_change_product(
                features, trial.mu[l], state.mu[first + l], trial.mu[m], state.mu[first + m]
            )
            length2 += (1.0 if l == m else 2.0) * gram[l * L + m] * overlap
    for k in range(trial.nu.size):
        change = trial.nu[k] - state.nu[i, k]
        climb += change * state.w[base + k]
        length2 += change * change
    return climb - length2 / (2.0 * lam * n)


@kernel
def _move(features, i, trial, state, lam):
    """Set the marginals of term i to those of the trial, and update w and φ∘."""
    n = state.eta.size
    scale = -1.0 / (lam * n)
    base = features.n_features * features.stride
    first, L = scoring.parts(features, i)
    for l in range(L):
        delta = trial.mu[l]
        for c in range(features.n_labels):
            change = delta[c] - state.mu[first + l, c]
            state.mu[first + l, c] = delta[c]
            delta[c] = change
            state.offset[0] += change * scoring.label_loss(features, first + l, c) / (L * n)
        scoring.add_marginals(features, first + l, scale, delta, state.w)
    for k in range(trial.nu.size):
        state.w[base + k] += scale * (trial.nu[k] - state.nu[i, k])
        state.nu[i, k] = trial.nu[k]


build = ExponentiatedGradient
