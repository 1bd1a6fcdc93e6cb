"""Tests of paired ratios: which side is ahead, or that no difference is shown.

Of the pairs in which A or B reached a target, n in number, r_k is the cost of B over that of A.

.. code-block:: text

    log ratio      x_k = log r_k; −∞ if only B got there, ∞ if only A did
    ahead          B in pairs with x_k < 0, A in those with x_k > 0; x_k = 0: ties
    median         exp of that of the x_k; of an even number, of the mean of both in the middle
    interval       from the k-th smallest ratio to the k-th largest one, with the least k for which
                   Pr(Bin(n, k/n) ≥ ⌈n/2⌉) ≥ 2.5 %
    T              Σ of the ranks of |x_k| over x_k > 0; ties are left out, equal |x_k| share the
                   mean of their ranks
    p              min(1, 2 min(Pr(T' ≤ T), Pr(T' ≥ T))), T' = Σ rank_k · (0 or 1, each by chance)

*Interval.* The percentile interval of the bootstrap (B. Efron, *Bootstrap methods: another look at
the jackknife*, Annals of Statistics 7, 1979). The m-th smallest of n draws with replacement is at
most the k-th smallest ratio if at least m draws are among the k smallest. So the distribution of a
resample's median is known, and no resample is drawn. Of an even number, the lower end is that of
the lower middle value, and the upper end of the upper one. Exchanging A and B inverts the interval.

*p.* F. Wilcoxon, *Individual comparisons by ranking methods*, Biometrics Bulletin 1, 1945. If the
sides do not differ, exchanging them in a pair changes nothing: given the magnitudes |x_k|, each
sign is one of two by chance. This holds for infinite magnitudes, too. So a pair in which only one
side got there keeps its sign and ranks as the largest, together with all other such pairs, and p is
exact with them. Their true ratios are unknown; where both sides had the same budget, their signs
are right. The distribution of T' is the convolution of its n terms, at any n and with shared ranks.

The smallest possible p of n pairs is 2/2ⁿ: fewer than `FEWEST` pairs show nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

LEVEL = 0.05
"""The p below which a difference is shown; 1 − the coverage of intervals."""

FEWEST = 6
"""The smallest n with 2/2ⁿ < `LEVEL`."""

AHEAD_A, AHEAD_B, NOTHING, TOO_FEW = "A", "B", "no difference shown", "too few pairs"
"""What a test shows."""


class Difference(NamedTuple):
    """What the ratios of some pairs show.

    Attributes
    ----------
    low, high : float
        The interval of the median ratio, with ends from 0 to ∞.
    p : float
    ahead_a, ahead_b, ties : int
        Numbers of pairs.
    shows : str
        `AHEAD_A` or `AHEAD_B` if p is below `LEVEL` and the interval is on one side of 1; else
        `NOTHING`, or `TOO_FEW`. Empty without pairs, when all numbers but those of pairs are NaN.
    """

    low: float
    high: float
    p: float
    ahead_a: int
    ahead_b: int
    ties: int
    shows: str


def difference(ratios: np.ndarray) -> Difference:
    """Return what some ratios show, float64 of shape (n,), from 0 to ∞."""
    if not ratios.size:
        return Difference(math.nan, math.nan, math.nan, 0, 0, 0, "")
    with np.errstate(divide="ignore"):
        logs = np.round(np.log(ratios), 12)  # 20/60 is 30/90
    low, high, p = *interval(ratios), signed_rank(logs)
    shows = NOTHING
    if ratios.size < FEWEST:
        shows = TOO_FEW
    elif p < LEVEL and not low <= 1 <= high:
        shows = AHEAD_B if high < 1 else AHEAD_A
    ahead_a, ahead_b, ties = (int(of.sum()) for of in (logs > 0, logs < 0, logs == 0))
    return Difference(low, high, p, ahead_a, ahead_b, ties, shows)


def median(ratios: np.ndarray) -> float:
    """Return the median of ratios on a log scale; 1 where the middle ones are 0 and ∞."""
    low, high = (float(np.sort(ratios)[k]) for k in ((ratios.size - 1) // 2, ratios.size // 2))
    if low == high:
        return low
    return 1.0 if low == 0 and math.isinf(high) else math.sqrt(low) * math.sqrt(high)


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return the percentile interval of the median of some values, shape (n,)."""
    n, places = values.size, np.arange(1, values.size + 1)
    within = stats.binom.sf((n + 1) // 2 - 1, n, places / n)  # Pr(Bin(n, k/n) ≥ ⌈n/2⌉)
    k = int(np.flatnonzero(within >= LEVEL / 2)[0])
    ordered = np.sort(values)
    return float(ordered[k]), float(ordered[n - 1 - k])


def signed_rank(values: np.ndarray) -> float:
    """Return p of Wilcoxon's signed-rank test that values, shape (n,), are as often below 0."""
    values = values[values != 0]
    twice = (2 * stats.rankdata(np.abs(values))).astype(int)  # whole numbers, also if shared
    chances = np.ones(1)  # of 0, 1, 2, … as the sum of some ranks
    for rank in twice:
        chances = 0.5 * (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0)))
    found = int(twice[values > 0].sum())
    return float(min(1.0, 2 * min(chances[: found + 1].sum(), chances[found:].sum())))
