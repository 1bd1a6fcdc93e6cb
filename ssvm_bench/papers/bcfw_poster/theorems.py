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
from typing import Literal, NamedTuple

import numpy as np

from ssvm_bench.claims.cases import Case, Selection
from ssvm_bench.claims.claim import Fact, Measured
from ssvm_bench.papers.bcfw_poster.measures import TOO_LOOSE, growth_with_n, least_known
from ssvm_bench.results.curves import UnmeasurableError, ensure

LEAST_ROWS = 3
"""The least number of rows that a line is fitted to."""

TOO_SHORT = "no iteration that the theorem is about was evaluated in all repeats"


class Theorem(NamedTuple):
    """A bound of an error after k steps.

    Attributes
    ----------
    error : str
        ``"gap"``, the lowest so far, or ``"primal"``.
    in_passes : bool
        Whether a step takes n calls, rather than one.
    bound : callable
        k ≥ 1, R², λ, n and h₀ → bound; infinite where there is none.
    """

    error: Literal["gap", "primal"]
    in_passes: bool
    bound: Callable[[np.ndarray, float, float, int, float], np.ndarray]


def _block_frank_wolfe(k: np.ndarray, R2: float, lam: float, m: int, h0: float) -> np.ndarray:
    return 6 * m / (k + 1) * (4 * R2 / (lam * m) + h0)


def _batch_frank_wolfe(k: np.ndarray, R2: float, lam: float, n: int, h0: float) -> np.ndarray:
    return _block_frank_wolfe(k, R2, lam, 1, h0)


def _cutting_planes(k: np.ndarray, R2: float, lam: float, n: int, h0: float) -> np.ndarray:
    excess = lam * h0 / (4 * R2)
    later = k - (math.ceil(math.log2(excess)) if excess > 1 else 0)
    return np.where(later >= 4, 16 * R2 / (lam * np.maximum(later, 1)), math.inf)


def _subgradient(k: np.ndarray, R2: float, lam: float, n: int, h0: float) -> np.ndarray:
    T = k + 1
    return 17 * 4 * R2 * (1 + np.log(T)) / (lam * T)


THEOREMS = {
    "block Frank-Wolfe": Theorem("gap", False, _block_frank_wolfe),
    "batch Frank-Wolfe": Theorem("gap", True, _batch_frank_wolfe),
    "1-slack cutting planes": Theorem("gap", True, _cutting_planes),
    "stochastic subgradients": Theorem("primal", False, _subgradient),
}
"""The theorems by their names in ``claims.yaml``."""


def over_bound(case: Case, runs: Selection, theorem: str, radius: float | None = None) -> Measured:
    """Measure the largest error / bound; a radius is R, by default that of the case.

    The note says where the ratio is the largest, and how the error falls (`_slope`).
    """
    error_of, in_passes, bound_of = THEOREMS[theorem]
    R, gap = radius or case.radius, error_of == "gap"
    calls, error = _mean_error(case, runs, "gap" if gap else "suboptimality")
    n, h0 = int(case.data["n"]), float(error[0]) if gap else math.nan
    k = (calls - calls[0]) / (n if in_passes else 1)
    bound = bound_of(k, R**2, case.problem.lam, n, h0)
    bounded = (k >= 1) & np.isfinite(bound)
    ensure(bounded.any(), TOO_SHORT)
    so_far = np.minimum.accumulate(error) if gap else error
    at = int(np.argmax(np.where(bounded, so_far / bound, -math.inf)))
    if not gap and (so_far > bound)[bounded].any():
        loose = case.reference.primal - case.reference.dual
        ensure((so_far - loose > bound)[bounded].any(), TOO_LOOSE)
    facts: dict[str, Fact] = {
        "nearest after": (calls[at], "{:.3g} calls".format),
        "error": so_far[at],
        "bound": bound[at],
        "with R ≤": R,
        "slope of log error against log calls, in their second half:": _slope(
            calls, error, 0.0 if gap else least_known(case)
        ),
    }
    return Measured(so_far[at] / bound[at], facts=facts)


def _mean_error(case: Case, runs: Selection, error: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the calls at which all repeats were evaluated, and their mean error there."""
    mine = runs.of(case)
    calls = [run["oracle_calls"].astype(int) for run in mine]
    common = reduce(np.intersect1d, calls)
    errors = [run[error][np.searchsorted(x, common)] for x, run in zip(calls, mine, strict=True)]
    return common, np.mean(errors, axis=0)


def _slope(calls: np.ndarray, error: np.ndarray, least: float) -> float:
    """Return the slope of log error in the second half of log calls; NaN if it is not known."""
    later = calls[calls > 0]
    late = (calls >= math.sqrt(later[0] * later[-1])) & (error > 0)
    if late.sum() < LEAST_ROWS or error[late].min() < least:
        return math.nan
    return float(np.polyfit(np.log(calls[late]), np.log(error[late]), 1)[0])


def over_bound_on_both(case: Case, runs: Selection, theorem: str) -> Measured:
    """Measure the largest error / bound on all examples and on half of them, with one R."""
    R = case.radius  # that of all examples is no smaller
    ratio = max(over_bound(on, runs, theorem, R).values[0] for on in (case, case.half))
    facts: dict[str, Fact] = {"R ≤": R}
    try:
        facts |= growth_with_n(case, runs).facts
    except UnmeasurableError as error:
        facts["growth with n is not known:"] = str(error)
    return Measured(ratio, facts=facts)
