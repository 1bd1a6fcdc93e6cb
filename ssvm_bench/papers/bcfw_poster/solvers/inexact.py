"""BCFW with an oracle that falls short of the maximum on purpose, by a known error.

.. code-block:: text

    ⟨φ̃^i, [w 1]⟩  ≥  (1 − ε_k) H_i(w)        ε_k = ε,   or ε 2n/(k + 2n) after k calls (``falls``)

The oracle starts from the maximiser. From the last part to the first, it replaces each label by the
true one if the inequality then still holds. So it returns the plane of a labeling, which is a lower
bound, and F remains a dual value. The run also has the exact oracle, which evaluates the reported
iterates.

With ``falls``, the error is of the order of the step, as the theorem of Lacoste-Julien et al. 2013
on inexact subproblems requires. Without ``falls``, no theorem says that F converges to the optimum:
where no step towards a returned plane gains anything, P − F ≤ ε Σ_i H_i(w) ≤ ε P(w).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.jit import implements, kernel
from ssvm_bench.config.validation import Share
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.labeling import LabelingOracle, maximise
from ssvm_bench.oracles.scoring import labeling_loss, labeling_score
from ssvm_bench.solvers.block import mpbcfw

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(mpbcfw.Config):
    """Options of BCFW, and the error.

    Attributes
    ----------
    error : float
        ε, the largest share of H_i(w) by which an answer falls short.
    falls : bool
        Whether the share falls with the number of calls, as steps do.
    """

    error: Share = 0.1
    falls: bool = False


class Inexact(NamedTuple):
    """The compiled oracle: examples, exact oracle, error, and calls so far (shape (1,))."""

    features: Any
    exact: Any
    error: float
    falls: bool
    calls: np.ndarray


def build(config: Config, problem: Problem, clock: Clock, seed: int) -> mpbcfw.MultiPlane:
    """Return the solver, with an inexact copy of the problem's oracle.

    Raises
    ------
    ConfigError
        If the oracle does not label parts, or does not make its calls itself.
    """
    oracle = problem.oracle
    if not isinstance(oracle, LabelingOracle) or oracle.caller is not None:
        raise ConfigError(
            f"solver={config.name} needs an oracle with a compiled maximisation, as that of "
            "dataset=ocr is, which makes its own calls. Choose solver=bcfw."
        )
    made = replace(problem, oracle=inexact(config, oracle))
    return mpbcfw.build(config, made, clock, seed, InexactMultiPlane)


class InexactMultiPlane(mpbcfw.MultiPlane):
    """BCFW whose state includes the number of calls of its oracle."""

    STATE = (*mpbcfw.MultiPlane.STATE, "calls")

    @property
    def calls(self) -> int:
        """Calls of the oracle so far."""
        return int(self.problem.oracle.compiled.calls[0])

    @calls.setter
    def calls(self, calls: int) -> None:
        self.problem.oracle.compiled.calls[0] = calls


def inexact(config: Config, oracle: LabelingOracle) -> LabelingOracle:
    """Return a copy of an oracle that falls short of its maximum."""
    made = copy.copy(oracle)
    exact, calls = oracle.compiled, np.zeros(1, np.int64)
    made.compiled = Inexact(exact.features, exact, config.error, config.falls, calls)
    made.exact = False
    return made


@kernel
def _above_truth(features, w, i, theta, loss, y):
    """Return n ⟨φ^{iy}, [w 1]⟩ with ``loss`` as the weight of Δ."""
    truth = features.truth[features.offsets[i] : features.offsets[i + 1]]
    score = labeling_score(features, w, i, theta, y)
    return loss * labeling_loss(features, i, y) + (
        score - labeling_score(features, w, i, theta, truth)
    )


@implements(maximise, Inexact)
def _fall_short(oracle, w, i, theta, loss, y):
    maximise(oracle.exact, w, i, theta, loss, y)
    features = oracle.features
    n, k = features.offsets.size - 1, oracle.calls[0]
    oracle.calls[0] = k + 1
    error = oracle.error * (2.0 * n / (k + 2.0 * n) if oracle.falls else 1.0)
    least = (1.0 - error) * _above_truth(features, w, i, theta, loss, y)
    first = features.offsets[i]
    for l in range(features.offsets[i + 1] - first - 1, -1, -1):
        found = y[l]
        y[l] = features.truth[first + l]
        if _above_truth(features, w, i, theta, loss, y) < least:
            y[l] = found
