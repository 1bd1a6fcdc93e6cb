"""Tests of paired ratios: by hand, against scipy and all signs, with sides exchanged, by chance."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ssvm_bench.figures import paired_tests
from ssvm_bench.figures.paired_tests import (
    NOTHING,
    TOO_FEW,
    difference,
    interval,
    median,
    signed_rank,
)

RATIOS = st.lists(
    st.sampled_from([0.0, 0.25, 0.5, 2 / 3, 1.0, 1.5, 2.0, 3.0, math.inf]), min_size=1, max_size=11
).map(np.array)


def test_an_example_by_hand():
    """Ranks 1 to 6, the last one against B: 14 of 64 sums of some ranks are at most 6."""
    found = difference(np.array([0.9, 0.8, 0.7, 0.6, 0.5, 4.0]))
    assert found.p == pytest.approx(2 * 14 / 64)
    assert (found.ahead_a, found.ahead_b, found.ties) == (1, 5, 0)
    assert (found.low, found.high) == (0.5, 4.0)
    assert found.shows == NOTHING
    found = difference(np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.25]))
    assert found.p == 2 / 64
    assert (found.low, found.high, found.shows) == (0.25, 0.9, "B")


def test_few_pairs_show_nothing_however_clear():
    assert 2 / 2**paired_tests.FEWEST < paired_tests.LEVEL <= 2 / 2 ** (paired_tests.FEWEST - 1)
    for n in range(1, paired_tests.FEWEST):
        found = difference(np.full(n, 0.01))
        assert (found.shows, found.p) == (TOO_FEW, 2 / 2**n)


def test_a_side_that_alone_gets_there_is_ahead():
    found = difference(np.array([0.0] * 5 + [0.5, 1.5]))
    assert (found.ahead_b, found.low, found.high) == (6, 0.0, 0.5)
    assert found.p == 2 * 2 / 2**7  # the one against it has the lowest rank
    assert found.shows == "B"
    found = difference(np.array([0.9] * 6 + [math.inf]))  # ranks 3.5, six times, and 7
    assert found.p == pytest.approx(2 * (1 + 6 + 15 + 1) / 2**7)  # sums of at most 7
    assert found.shows == NOTHING


def test_ties_show_nothing():
    found = difference(np.ones(10))
    assert (found.ties, found.p, found.shows) == (10, 1.0, NOTHING)
    assert (found.low, found.high) == (1.0, 1.0)
    mostly = difference(np.array([1.0] * 8 + [0.5] * 6))
    assert mostly.p == 2 / 2**6  # ties are left out of the ranks
    assert mostly.shows == NOTHING  # and are in the interval


@given(st.lists(st.floats(-9, 9).filter(bool), min_size=1, max_size=12, unique_by=abs))
def test_p_without_equal_magnitudes_is_that_of_scipy(values):
    values = np.array(values)
    expected = stats.wilcoxon(values, method="exact").pvalue
    assert signed_rank(values) == pytest.approx(expected, rel=1e-12)


@given(RATIOS)
def test_p_is_the_share_of_signs_that_are_as_far_from_even(ratios):
    with np.errstate(divide="ignore"):
        values = np.round(np.log(ratios), 12)
    ranks = stats.rankdata(np.abs(values[values != 0]))
    signs = np.array([*itertools.product((0, 1), repeat=ranks.size)])
    sums, found = signs @ ranks, ranks[values[values != 0] > 0].sum()
    below, above = (sums <= found + 1e-9).mean(), (sums >= found - 1e-9).mean()
    assert signed_rank(values) == pytest.approx(min(1, 2 * min(below, above)), rel=1e-12)


@given(RATIOS)
def test_exchanging_the_sides_inverts_everything(ratios):
    with np.errstate(divide="ignore"):
        other = 1 / ratios
    one, two = difference(ratios), difference(other)
    with np.errstate(divide="ignore"):
        inverse = [float(np.divide(1, end)) for end in (two.high, two.low, median(other))]
    assert [one.low, one.high, median(ratios)] == pytest.approx(inverse)
    assert (one.ahead_a, one.ahead_b, one.ties) == (two.ahead_b, two.ahead_a, two.ties)
    assert one.p == pytest.approx(two.p)
    assert one.low <= median(ratios) <= one.high
    assert one.shows == {"A": "B", "B": "A"}.get(two.shows, two.shows)


def test_the_interval_is_that_of_resamples():
    values = np.random.default_rng(0).normal(size=9)
    drawn = np.random.default_rng(1).integers(0, 9, (40_000, 9))
    ends = np.quantile(np.median(values[drawn], axis=1), [0.025, 0.975], method="inverted_cdf")
    assert list(ends) == list(interval(values))


@pytest.mark.parametrize("n", [6, 15])
def test_the_interval_covers_the_median_and_few_differences_are_shown_by_chance(n):
    """Over 1000 samples, by three standard errors."""
    samples = np.exp(np.random.default_rng(n).normal(size=(1000, n)))
    found = [difference(sample) for sample in samples]
    covered = np.mean([each.low <= 1 <= each.high for each in found])
    assert covered > 0.9
    shown = np.mean([each.shows in ("A", "B") for each in found])
    assert shown < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)
    ahead = [difference(sample).shows for sample in samples * math.exp(-2.0)]
    assert np.mean([shown == "B" for shown in ahead]) > 0.8
