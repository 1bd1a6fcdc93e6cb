"""Synthetic tables: people of some categories, snails of some age, and sentences in columns.

Only + − × / √, comparisons and sorting of words of a ``PCG64`` are used, so all machines draw the
same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ssvm_bench.base.random import approx_normal, uniform


def categories(sizes: Sequence[int], m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the categories of m people, and a number of each that they go with.

    Parameters
    ----------
    sizes : sequence of int
        Number of categories of each attribute; the first is the most frequent, by Zipf's law.
    m : int
        Number of people.

    Returns
    -------
    categories : ndarray of int64, shape (m, attributes)
        Attributes follow the tendency of a person, the first ones most.
    score : ndarray, shape (m,)
        The tendency, with noise.
    """
    bits = np.random.PCG64(1729)
    tendency, score_noise = approx_normal((2, m), bits)
    found = np.empty((m, len(sizes)), np.int64)
    for j, (size, share) in enumerate(zip(sizes, np.linspace(0.8, 0.1, len(sizes)), strict=True)):
        value = share * tendency + np.sqrt(1 - share * share) * approx_normal((m,), bits)
        frequencies = np.cumsum(1 / np.arange(1.0, size + 1))
        bounds = np.quantile(-value, frequencies[:-1] / frequencies[-1])
        found[:, j] = np.searchsorted(bounds, -value)
    return found, tendency + 0.4 * score_noise


def snails(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sex, measures and rings of snails: lengths level off with age, weights are cubes.

    Returns
    -------
    is_sex : ndarray of bool, shape (m, 3)
        Male, female or infant.
    measures : ndarray, shape (m, 7)
        Length, diameter, height; whole, shucked, viscera and shell weight.
    rings : ndarray, shape (m,)
    """
    bits = np.random.PCG64(1729)
    normal = approx_normal((m,), bits)
    rings = np.clip(np.round(9.7 + 3.0 * normal + 0.25 * normal * normal), 1, 29)
    length = np.clip(0.72 * rings / (rings + 3) + 0.06 * approx_normal((m,), bits), 0.07, 0.82)
    ratios = np.array([1, 0.79, 0.26, 5.6, 2.4, 1.2, 1.6]) * (1 + 0.1 * approx_normal((m, 7), bits))
    weight = (length * length * length)[:, None]
    measures = np.hstack((np.tile(length[:, None], 3), np.tile(weight, 4))) * ratios
    sex = np.where(length < 0.51, 2, uniform((m,), bits) * 1.85).astype(np.int64)
    return np.eye(3, dtype=bool)[sex], np.round(measures, 4), rings


PHRASES = {
    "NP": ("DT", "JJ", "NN", "NN", "NNS"),
    "VP": ("VBD", "VBZ", "MD", "VB", "RB"),
    "PP": ("IN",),
    "SBAR": ("IN",),
    "ADVP": ("RB",),
    "ADJP": ("RB", "JJ"),
    "O": (",", "CC"),
}
"""Kind of phrase → its parts of speech, in the order in which they come; some are left out."""

FOLLOWERS = {
    "NP": ("VP", "VP", "PP", "O"),
    "VP": ("NP", "NP", "PP", "ADJP", "ADVP", "SBAR"),
    "PP": ("NP",),
    "SBAR": ("NP",),
    "ADVP": ("NP", "VP"),
    "ADJP": ("PP", "O"),
    "O": ("NP", "NP", "VP"),
}


def sentences(count: int, seed: int) -> bytes:
    """Return sentences in the columns word, part of speech and label of a chunk.

    Phrases are a Markov chain. The words of a part of speech are drawn by Zipf's law; 4 % of the
    parts of speech are wrong.
    """

    def draws() -> Iterator[float]:
        bits = np.random.PCG64([2000, seed])
        while True:
            yield from uniform((4096,), bits).tolist()

    draw, lines, tags = draws(), [], [tag for among in PHRASES.values() for tag in among]

    def one_of(values: Sequence[str]) -> str:
        return values[int(len(values) * next(draw))]

    for _ in range(count):
        kind = "O"
        for _ in range(3 + int(9 * next(draw))):
            kind = one_of(FOLLOWERS[kind])
            chosen = [tag for tag in PHRASES[kind] if next(draw) < 0.5] or [PHRASES[kind][-1]]
            for k, tag in enumerate(chosen):
                label = "O" if kind == "O" else f"{'I' if k else 'B'}-{kind}"
                word = f"{tag[:2].lower()}{int(500 ** next(draw))}"
                lines.append(f"{word} {one_of(tags) if next(draw) < 0.04 else tag} {label}\n")
        lines.append(". . O\n\n")
    return "".join(lines).encode()
