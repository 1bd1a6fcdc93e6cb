"""Stochastic subgradient method on the primal (Shalev-Shwartz et al. 2010; BCFW, section 6).

Step k + 1 draws a term i and follows a subgradient of λ/2 ‖w‖² + n H_i(w), with φ̂ its plane at w:

.. code-block:: text

    w ← w − 1/(λ(k + 1)) (λ w + n φ̂⋆)        so that        w_k = v_k/(λ k),  v_k = −Σ n φ̂⋆

Only v is kept, as a step changes v only where φ̂⋆ is not 0. The oracle is called with v in place of
w, and with λ k as the weight of the loss, which has the same maximisers.

===========  ==================================================================================
``average``  what is reported
===========  ==================================================================================
none         w_k
weighted     2/(k(k+1)) Σ_t t w_t                          (Lacoste-Julien et al. 2012)
tail         the mean of w_t over the second half of the passes (Rakhlin et al. 2012)
===========  ==================================================================================

One sparse update per step keeps both averages. With Δ_t = v_{t+1} − v_t and h_t = Σ_{s≤t} 1/s,

.. code-block:: text

    Σ_{t≤k} t w_t = 1/λ (k v_k − Σ_{t<k} t Δ_t)        Σ_{t≤k} w_t = 1/λ (h_k v_k − Σ_{t<k} h_t Δ_t)

There is no dual value.

With parallel oracle calls (``parallel``), a step takes a mini-batch B, the next τ terms in the
order, and follows the mean of their subgradients at w; a pass has n/τ steps:

.. code-block:: text

    w ← w − 1/(λ(k + 1)) (λ w + n/|B| Σ_{i∈B} φ̂^i⋆)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.interrupts import interruptible
from ssvm_bench.base.jit import allocating_kernel, nanoseconds
from ssvm_bench.config.validation import one_of
from ssvm_bench.oracles import checks
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.caller import Caller
from ssvm_bench.oracles.labeling import LabelingOracle, ask
from ssvm_bench.oracles.scoring import add_difference, longest, scratch
from ssvm_bench.solvers.base import Iterate, Solver, SolverConfig
from ssvm_bench.solvers.block.averages import Tail
from ssvm_bench.solvers.orders import SAMPLING, Orders

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1

AVERAGES = ("none", "weighted", "tail")


@dataclass(frozen=True)
class Config(SolverConfig):
    """Options of ``ssg``.

    Attributes
    ----------
    sampling : str
        Order of the terms: ``permutation``, or ``uniform``: drawn with replacement.
    average : str
        What is reported: ``none``, ``weighted`` or ``tail``; see the module's docstring.
    """

    has_dual: ClassVar[bool] = False
    at_one_w: ClassVar[str] = "batch"

    sampling: Annotated[str, one_of(SAMPLING)] = "uniform"
    average: Annotated[str, one_of(AVERAGES)] = "none"


class SubgradientSums(NamedTuple):
    """v, the average's sum over Δ_t (empty if there is no average), k and h_k."""

    v: np.ndarray
    z: np.ndarray
    steps: np.ndarray  # int64, shape (1,)
    harmonic: np.ndarray  # shape (1,)


class SubgradientMethod(Solver):
    """The stochastic subgradient method, from w = 0; an iteration is n oracle calls."""

    STATE = ("sums", "passes", "tail", "_orders")

    def __init__(self, config: Config, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(problem, clock)
        self.config = config
        oracle = problem.oracle
        self.labeling = oracle if isinstance(oracle, LabelingOracle) else None
        D, averaged = oracle.inner_d, config.average != "none"
        self.sums = SubgradientSums(
            np.zeros(D), np.zeros(D if averaged else 0), np.zeros(1, np.int64), np.zeros(1)
        )
        self.passes, self.tail = 0, Tail(D if config.average == "tail" else 0)
        self._orders = Orders(problem.n, config.sampling, seed)

    def iterate(self) -> None:
        """Do the steps of a pass over the terms."""
        order = next(self._orders)
        with self.clock.exact(order.size) as count:
            if self.labeling is None:
                count.share = self._steps_on_rows(order)
            elif self.labeling.caller is None:
                oracle = self.labeling.compiled
                count.share = self._steps(oracle, self.labeling.exact, order, batch=1)
            else:
                count.share = self._called_steps(order, self.labeling, self.labeling.caller)
        self.passes += 1
        if self.config.average == "tail":
            self.tail.end_of_pass(int(self.sums.steps[0]), self._sum())

    def update_latent(self, problem: Problem) -> bool:
        """See `Solver`: v and k stay."""
        self.problem = problem
        if isinstance(problem.oracle, LabelingOracle):
            self.labeling = problem.oracle
        return True

    def reported(self) -> Iterate:
        """Return the iterate or the average; there is no dual value."""
        return Iterate(self.problem.oracle.unpack(self._reported()), math.nan)

    def _reported(self) -> np.ndarray:
        v, z, k, lam = self.sums.v, self.sums.z, int(self.sums.steps[0]), self.problem.lam
        if k == 0:
            return v.copy()
        if self.config.average == "none":
            return v / (lam * k)
        if self.config.average == "weighted":
            return 2.0 / (lam * k * (k + 1.0)) * (k * v - z)
        return self.tail.mean(k, self._sum())

    def _sum(self) -> np.ndarray:
        """Return Σ_{t≤k} w_t."""
        return (self.sums.harmonic[0] * self.sums.v - self.sums.z) / self.problem.lam

    def _steps(self, oracle: Any, exact: bool, order: np.ndarray, batch: int) -> float:
        """Do the steps of a pass over some terms; return the oracle's share of the time."""
        kind = AVERAGES.index(self.config.average)
        parts = oracle, exact, order, self.sums, self.problem.lam, kind, batch
        share, *found = _steps(*parts, longest(oracle.features))
        checks.check_fault(self.labeling, *found)
        return float(share)

    def _called_steps(self, order: np.ndarray, oracle: LabelingOracle, caller: Caller) -> float:
        """Do the steps of a pass, for which a caller executes the oracle calls of each batch."""
        waited, begin = caller.waited, perf_counter()
        for batch in _batches(order, caller.batch):
            k = int(self.sums.steps[0])
            loss = self.problem.lam * k if k > 0 else 1.0
            answered = oracle.answering(self.sums.v, batch, loss)
            self._steps(answered, oracle.exact, batch, batch.size)
        return (caller.waited - waited) / (perf_counter() - begin)

    def _steps_on_rows(self, order: np.ndarray) -> float:
        """Do the steps of a pass with an oracle that is called from Python."""
        (v, z, steps, harmonic), oracle = self.sums, self.problem.oracle
        oracle_time, begin = 0.0, perf_counter()
        for batch in _batches(order, oracle.batch):
            k = int(steps[0])
            start = perf_counter()
            w = v / (self.problem.lam * max(k, 1))
            planes = list(oracle.best_planes(w, batch.tolist()))
            oracle_time += perf_counter() - start
            for plane, _ in planes:
                change = -self.problem.n * plane.values / batch.size
                v[plane.indices] += change
                if z.size:
                    weight = k if self.config.average == "weighted" else harmonic[0]
                    z[plane.indices] += change * weight
            steps[0] += 1
            harmonic[0] += 1.0 / steps[0]
        return oracle_time / (perf_counter() - begin)


def _batches(order: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yield the terms of an order, ``size`` at a time."""
    for k in interruptible(range(0, order.size, size)):
        yield order[k : k + size]


@allocating_kernel
def _steps(oracle, exact, order, state, lam, average, batch, most):
    """Do the steps of a pass; return the oracle's share of the time, the last term, its fault.

    A step takes ``batch`` terms; with more than one, the oracle returns known labelings. No term
    has more than ``most`` parts.
    """
    features = oracle.features
    theta, y, labels, timespec = scratch(features, most)
    signs = np.array([-1.0, 1.0]) / batch
    weights = np.zeros(2)
    oracle_time = 0
    i, fault = 0, checks.NONE
    begin = nanoseconds(timespec)
    for done, i in enumerate(order):
        k = state.steps[0]
        loss = lam * k if k > 0 else 1.0
        # labelings of a batch were checked against the truth when the caller returned them
        checked = exact and batch == 1
        _, _, fault, took = ask(oracle, checked, state.v, i, theta, loss, y, timespec)
        oracle_time += took
        if fault != checks.NONE:
            break
        add_difference(features, i, y, labels, signs, state.v)
        if average > 0:
            weight = float(k) if average == 1 else state.harmonic[0]
            weights[0], weights[1] = signs[0] * weight, signs[1] * weight
            add_difference(features, i, y, labels, weights, state.z)
        if (done + 1) % batch == 0:
            state.steps[0] = k + 1
            state.harmonic[0] += 1.0 / (k + 1)
    return oracle_time / max(nanoseconds(timespec) - begin, 1), i, fault


build = SubgradientMethod
