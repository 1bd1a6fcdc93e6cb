"""Random numbers that are the same on every machine and under every numpy release.

numpy promises stable streams for its bit generators, not for ``Generator``'s distributions. So
everything here is computed from the raw 64-bit words of a ``PCG64``, by arithmetic that IEEE 754
fixes to the last bit.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np


def swap_targets(raw: np.ndarray) -> np.ndarray:
    """Return the swap partners of a Fisher–Yates shuffle of ``len(raw)`` items.

    Parameters
    ----------
    raw : ndarray of uint64, shape (n,)
        Words of a bit generator.

    Returns
    -------
    ndarray of int64, shape (n,)
        Entry i is in ``0 .. i``: the upper half of word i, scaled to that range (the bias is
        below i / 2³²).
    """
    below = np.arange(1, raw.size + 1, dtype=np.uint64)
    return (((raw >> np.uint64(32)) * below) >> np.uint64(32)).astype(np.int64)


def swap(items, targets) -> None:  # type: ignore[no-untyped-def]  # lists here, arrays in kernels
    """Shuffle ``items`` in place, from the last on: swap item i with item ``targets[i]``.

    A plain loop over anything with an index, so that compiled code can wrap it.
    """
    for i in range(len(items) - 1, 0, -1):
        j = targets[i]
        kept = items[i]
        items[i] = items[j]
        items[j] = kept


def permutation(n: int, bits: np.random.PCG64) -> np.ndarray:
    """Return a uniform permutation (int64, shape (n,)) of ``0 .. n-1`` from the next n words."""
    # lists: a tenth of a microsecond a swap, where numpy's scalars take ten times as long
    items = list(range(n))
    swap(items, swap_targets(bits.random_raw(n)).tolist())
    return np.array(items, dtype=np.int64)


def unit(words: np.ndarray) -> np.ndarray:
    """Return float64 numbers in [0, 1), of the shape of the uint64 words that they come from."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def uniform(shape: tuple[int, ...], bits: np.random.PCG64) -> np.ndarray:
    """Return float64 numbers, uniform in [0, 1), from one word each."""
    return unit(bits.random_raw(prod(shape)).reshape(shape))


def words_at(places: np.ndarray, count: int, bits: np.random.PCG64) -> np.ndarray:
    """Return words at any positions of a stream, without drawing those before them.

    Parameters
    ----------
    places : ndarray of int64, shape (m,)
        Position of each row's first word in the stream.
    count : int
        Words of a row.
    bits : PCG64
        The stream, at its beginning; its position changes.

    Returns
    -------
    ndarray of uint64, shape (m, count)
    """
    words = np.empty((places.size, count), np.uint64)
    here = 0
    for row, place in zip(words, places.tolist(), strict=True):
        bits.advance(place - here)
        row[:] = bits.random_raw(count)
        here = place + count
    return words


def approx_normal(shape: tuple[int, ...], bits: np.random.PCG64) -> np.ndarray:
    """Return approximately normal float64 numbers of mean 0 and variance 1, in [−3.5, 3.5].

    The sum of the four 16-bit quarters of one word each: close enough to a Gaussian for noise,
    and without the logarithms and cosines whose last bits depend on the machine.
    """
    words = bits.random_raw(prod(shape)).reshape(shape)
    quarters = [(words >> np.uint64(s)) & np.uint64(0xFFFF) for s in (0, 16, 32, 48)]
    total = quarters[0] + quarters[1] + quarters[2] + quarters[3]
    return (total.astype(np.float64) - 4 * 32767.5) * (sqrt(3.0) / 65536.0)
