"""The theorems behind Table 1 of the BCFW poster, with all constants, and how near runs come.

Table 1 prints orders; the constants are in the papers that prove them. Their problem is ours,

.. code-block:: text

    P(w) = λ/2 ‖w‖² + 1/n Σ_i max_y { Δ(y_i,y) − ⟨w, ψ_i(y)⟩ },     ψ_i(y) = ϕ(x_i,y_i) − ϕ(x_i,y)
    R = max_{i,y} ‖ψ_i(y)‖ = max_{i,y} n ‖φ⋆^{iy}‖,      h₀ = P(w₀) − F(φ₀) ≥ F⋆ − F(φ₀)

with two differences: f = −F in (1), and SVM-struct in (2) minimises P/λ, so that its C is 1/λ,
though its ε is that of P. A fixed score Θ_i(y) − Θ_i(y_i) is part of Δ.

**(1) Frank–Wolfe on m blocks of terms**. Each step visits one block, drawn uniformly, with line
search or γ = 2m/(k + 2m) (Lacoste-Julien, Jaggi, Schmidt, Pletscher, ICML 2013, Theorem 2):

.. code-block:: text

    min_{k ≤ K} E[ P(w_k) − F(φ_k) ]  ≤  6m/(K + 1) · (C + h₀),                  C ≤ 4R²/(λm)

C is the sum over the blocks of the largest λ ‖w − w'‖² of two points that differ in that block
only; w = −φ⋆/λ then moves by at most 2R/(λm). BCFW has m = n, and a step is one call. Batch
Frank–Wolfe has m = 1, and a step is n calls. If the subproblems are solved up to δγC/2 in sum,
C(1 + δ) replaces C (their appendix C); runs with such errors are still compared with δ = 0.

**(2) 1-slack cutting planes** from w = 0, without a cache (Joachims, Finley, Yu, Machine Learning
2009, Theorem 5): after at most ⌈log₂(λΔ/(4R²))⌉ + ⌈16R²/(λε)⌉ passes no plane exceeds ξ by more
than ε ≤ 4R²/λ; that is, P(w) − F ≤ ε. So

.. code-block:: text

    min_{k ≤ K} P(w_k) − F_k  ≤  16R²/(λ(K − K₀)),            K₀ = ⌈log₂(λh₀/(4R²))⌉, or 0 if below

for K − K₀ ≥ 4. Here h₀ replaces Δ, the largest loss: the proof only needs F⋆ ≤ Δ.

**(3) Stochastic subgradients** with steps 1/(λt), for the last iterate (Shamir, Zhang, ICML 2013,
Theorem 1), where E‖g_t‖² ≤ G². Here λw_t is a mean of t − 1 of the −nφ̂⋆, so that G = 2R. After k
calls,

.. code-block:: text

    E[ P(w_T) ] − P⋆  ≤  17G²(1 + ln T)/(λT),                                    T = k + 1

The tilde in Table 1 hides the logarithm. (Shalev-Shwartz et al. 2010, whom the poster names, bound
the mean of the P(w_t), which no trace has. The bound of Lacoste-Julien et al. 2012 for the weighted
average assumes steps 2/(λ(t + 1)), which ours are not.)

**The measure** is the largest error / bound over the rows with k ≥ 1. Expectations are means over
the repeats. Of gaps, the lowest evaluated so far counts, which is no lower than the lowest of all
iterations. P⋆ is between the best dual and the best primal value known. R is an upper bound that
the runs record of their data. The bounds hold in the worst case, so the ratios are small; a ratio
above 1 refutes the program or the theorem. An upper bound does not say how errors fall along a run
or how calls grow with n: a note says this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from ssvm_bench.claims.cases import Case, Selection
from ssvm_bench.claims.comparisons import half_of, suboptimality
from ssvm_bench.claims.old import Measured, measure
from ssvm_bench.papers.bcfw_poster.measures import TOO_LOOSE, calls_on_both, least_known
from ssvm_bench.results.table import UnmeasurableError, ensure
from ssvm_bench.results.words import number

LEAST_ROWS = 3
"""The least number of rows that a line is fitted to."""

TOO_SHORT = "no iteration that the theorem is about was evaluated in all repeats"


Bound: TypeAlias = Callable[[np.ndarray, float, float, int, float], np.ndarray]
"""k ≥ 1, R², λ, n and h₀ → bound; infinite where there is none."""


class Theorem(NamedTuple):
    """A bound of an error after k steps.

    Attributes
    ----------
    runs : Selection
        The runs that it is about.
    error : str
        ``"gap"``, the lowest so far, or ``"primal"``.
    in_passes : bool
        Whether a step takes n calls, rather than one.
    bound : callable
        See `Bound`.
    """

    runs: Selection
    error: Literal["gap", "primal"]
    in_passes: bool
    bound: Bound


def _block_frank_wolfe(k: np.ndarray, R2: float, lam: float, m: int, h0: float) -> np.ndarray:
    return 6 * m / (k + 1) * (4 * R2 / (lam * m) + h0)


def _batch_frank_wolfe(k: np.ndarray, R2: float, lam: float, n: int, h0: float) -> np.ndarray:
    return _block_frank_wolfe(k, R2, lam, 1, h0)


def _one_slack(k: np.ndarray, R2: float, lam: float, n: int, h0: float) -> np.ndarray:
    excess = lam * h0 / (4 * R2)
    later = k - (math.ceil(math.log2(excess)) if excess > 1 else 0)
    return np.where(later >= 4, 16 * R2 / (lam * np.maximum(later, 1)), math.inf)


def _subgradient(k: np.ndarray, R2: float, lam: float, n: int, h0: float) -> np.ndarray:
    T = k + 1
    return 17 * 4 * R2 * (1 + np.log(T)) / (lam * T)


UNIFORM = {"sampling": "uniform"}
BCFW = Theorem(
    Selection("bcfw", {"step": "line_search", **UNIFORM}), "gap", False, _block_frank_wolfe
)
INEXACT = BCFW._replace(runs=Selection("bcfw_inexact", {"falls": True, **UNIFORM}))
FW = Theorem(Selection("fw"), "gap", True, _batch_frank_wolfe)
ONE_SLACK = Theorem(Selection("one_slack", {"cache": 0}), "gap", True, _one_slack)
SSG = Theorem(Selection("ssg", UNIFORM), "primal", False, _subgradient)


def nearest(case: Case, theorem: Theorem, radius: float) -> tuple[float, str]:
    """Return the largest error / bound of runs on a problem instance, and a note.

    The note says where the ratio is the largest, and how the error falls (`_slope`).

    Raises
    ------
    UnmeasurableError
        If there are no such runs, or the optimum is not known well enough.
    """
    gap, n = theorem.error == "gap", int(case.data["n"])
    calls, error = _mean_error(case, theorem)
    h0 = float(error[0]) if gap else math.nan
    k = (calls - calls[0]) / (n if theorem.in_passes else 1)
    bound = theorem.bound(k, radius**2, case.problem.lam, n, h0)
    bounded = (k >= 1) & np.isfinite(bound)
    ensure(bounded.any(), TOO_SHORT)
    so_far = np.minimum.accumulate(error) if gap else error
    at = int(np.argmax(np.where(bounded, so_far / bound, -math.inf)))
    if not gap and (so_far > bound)[bounded].any():
        loose = case.reference.primal - case.reference.dual
        ensure((so_far - loose > bound)[bounded].any(), TOO_LOOSE)
    slope = _slope(calls, error, 0.0 if gap else least_known(case))
    note = f"nearest after {calls[at]:.3g} calls: {so_far[at]:.3g}, bound {bound[at]:.3g}"
    note += f" with R ≤ {radius:.3g}; slope of log error against log calls, in their second half: "
    return float(so_far[at] / bound[at]), note + number(slope)


def _mean_error(case: Case, theorem: Theorem) -> tuple[np.ndarray, np.ndarray]:
    """Return the calls at which all repeats were evaluated, and their mean error there."""
    runs = theorem.runs.of(case)
    calls = [run["oracle_calls"].astype(int) for run in runs]
    gap = theorem.error == "gap"
    errors = [run["gap"] if gap else suboptimality(case, run) for run in runs]
    common = reduce(np.intersect1d, calls)
    pairs = zip(calls, errors, strict=True)
    return common, np.mean([error[np.searchsorted(x, common)] for x, error in pairs], axis=0)


def _slope(calls: np.ndarray, error: np.ndarray, least: float) -> float:
    """Return the slope of log error in the second half of log calls; NaN if it is not known."""
    later = calls[calls > 0]
    late = (calls >= math.sqrt(later[0] * later[-1])) & (error > 0)
    if late.sum() < LEAST_ROWS or error[late].min() < least:
        return math.nan
    return float(np.polyfit(np.log(calls[late]), np.log(error[late]), 1)[0])


@measure
def over_bound(case: Case, theorem: Theorem) -> Measured:
    """Measure the largest error / bound."""
    ratio, note = nearest(case, theorem, case.radius)
    return Measured(np.array([ratio]), high=1.0, note=note)


@measure
def over_bound_on_both(case: Case, theorem: Theorem) -> Measured:
    """Measure the largest error / bound on all examples and on half of them, with one R."""
    part, radius = half_of(case), case.radius  # R of all examples is no smaller
    ratio = max(nearest(where, theorem, radius)[0] for where in (case, part))
    note = f"R ≤ {radius:.3g}"
    try:
        note += f"; {calls_on_both(case, part, theorem.runs)[1]}"
    except UnmeasurableError as error:
        note += f"; growth with n is not known: {error}"
    return Measured(np.array([ratio]), high=1.0, note=note)
