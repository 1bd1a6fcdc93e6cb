"""Tables for the stand-ins: people of some categories, and snails of some age.

Only + − × / √, comparisons and sorting of words of a ``PCG64`` are used, so all machines draw the
same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ssvm_bench.base.random import approx_normal, uniform

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def categories(
    attributes: Sequence[int], sizes: Sequence[int], positives: Sequence[int]
) -> Iterator[tuple[csr_array, np.ndarray]]:
    """Yield some sets of examples that have one category of each attribute, or none.

    An example has a tendency, which its attributes follow more or less, and its label, too. Of the
    categories of an attribute the first is the most frequent, by Zipf's law.

    Parameters
    ----------
    attributes : sequence of int
        Number of categories of each.
    sizes, positives : sequences of int
        Examples of each set, and how many of them have the label 1.

    Yields
    ------
    x : csr_array of float64, shape (size, sum of the categories)
        1 for each category that an example has.
    y : ndarray of float64, shape (size,)
        −1 or 1.
    """
    from scipy.sparse import csr_array

    bits = np.random.PCG64(1729)
    first = np.cumsum(attributes) - attributes
    followed = np.linspace(0.8, 0.1, len(attributes))
    for m, n_positive in zip(sizes, positives, strict=True):
        tendency = approx_normal((m,), bits)
        columns = np.empty((m, len(attributes)), np.int64)
        for j, (size, share) in enumerate(zip(attributes, followed, strict=True)):
            value = share * tendency + np.sqrt(1 - share * share) * approx_normal((m,), bits)
            steps = np.cumsum(1 / np.arange(1.0, size + 1))
            columns[:, j] = np.searchsorted(steps[:-1] / steps[-1], _rank(-value) / m, "right")
        known = uniform(columns.shape, bits) > 0.01
        x = csr_array(
            (
                np.ones(known.sum()),
                (first + columns)[known],
                np.concatenate(([0], np.cumsum(known.sum(axis=1)))),
            ),
            shape=(m, sum(attributes)),
        )
        follows = tendency + 0.4 * approx_normal((m,), bits)
        yield x, np.where(_rank(-follows) < n_positive, 1.0, -1.0)


def snails(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sex, measures and rings of snails.

    They grow towards a length of their own; weights go with its third power.

    Returns
    -------
    is_sex : ndarray of bool, shape (m, 3)
        Male, female or infant.
    measures : ndarray, shape (m, 7)
        Length, diameter, height; whole, shucked, viscera and shell weight.
    rings : ndarray, shape (m,)
    """
    bits = np.random.PCG64(1729)
    b = approx_normal((m,), bits)
    rings = np.clip(np.round(9.7 + 3.0 * b + 0.25 * b * b), 1, 29)
    grown = rings / (rings + 3.0)
    length = np.clip(0.72 * grown + 0.06 * approx_normal((m,), bits), 0.07, 0.82)
    ratios = np.array([0.79, 0.26]) * (1 + 0.05 * approx_normal((m, 2), bits))
    weight = 5.6 * length * length * length * (1 + 0.1 * approx_normal((m,), bits))
    shares = np.array([0.43, 0.22, 0.28]) * (1 + 0.12 * approx_normal((m, 3), bits))
    shares[:, 2] *= 0.9 + 0.01 * rings  # shells thicken
    measures = np.column_stack((length, length[:, None] * ratios, weight, weight[:, None] * shares))
    infant = length + 0.1 * approx_normal((m,), bits) < 0.49
    male = uniform((m,), bits) < 0.54
    is_sex = np.column_stack((male & ~infant, ~male & ~infant, infant))
    return is_sex, np.round(measures, 4), rings


def _rank(values: np.ndarray) -> np.ndarray:
    """Return the place of each value in rising order; of equal ones the first comes first."""
    rank = np.empty(values.size, np.int64)
    rank[np.argsort(values, kind="stable")] = np.arange(values.size)
    return rank
