"""USPS handwritten digits (LeCun et al. 1990), the training set of the ZIP code data.

The file has one line per digit: the label, written as 6.0000, and 16 × 16 grey values in [−1, 1],
row by row; the background is −1. There is no bias feature.

References
----------
T. Hastie, R. Tibshirani, J. Friedman: The Elements of Statistical Learning, 2nd ed., 2009.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.random import approx_normal
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.base import Dataset, Images, SourceConfig
from ssvm_bench.datasets.sources import ParsedFile, home

Config = SourceConfig

CELL = (16, 16)
IMAGES = Images(CELL, background=-1.0)
N_COLUMNS = 1 + CELL[0] * CELL[1]
SAMPLES_PER_DIGIT = np.array([1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644])
N_SAMPLES = int(SAMPLES_PER_DIGIT.sum())


def load(config: Config) -> Dataset:
    """Return the digits: x float64 (7291, 256), one part per example; see `sources.load`."""
    return sources.load(config, RAW, structure="independent", n_labels=SAMPLES_PER_DIGIT.size)


def parse(raw: bytes) -> dict[str, np.ndarray]:
    """Return the arrays ``x, y`` of a file in this format, of any length.

    Raises
    ------
    ContentError
        Names the first line that is not a digit with grey values in [−1, 1].
    """
    table = reading.read_table(raw, N_COLUMNS).to_numpy(dtype=np.float64)
    labels, x = table[:, 0], np.ascontiguousarray(table[:, 1:])
    reading.check_lines(
        np.isin(labels, np.arange(SAMPLES_PER_DIGIT.size)),
        lambda k: f"label {labels[k]:g}, expected 0 … {SAMPLES_PER_DIGIT.size - 1}",
    )
    reading.check_lines((np.abs(x) <= 1).all(axis=1), lambda k: "a grey value outside [−1, 1]")
    return {"x": x, "y": labels.astype(np.uint8)}


def simulate() -> dict[str, np.ndarray]:
    """Return synthetic digits, as many as in the real file: warped, blurred and noisy."""
    from ssvm_bench.datasets import handwriting

    bits = np.random.PCG64(1729)
    y, ink = handwriting.digits(SAMPLES_PER_DIGIT, CELL, bits)
    x = 2 * ink - 1 + 0.05 * approx_normal(ink.shape, bits) * (ink > 0)
    # three decimals, as in the real file
    return {"x": np.round(np.clip(x, -1, 1), 3), "y": y.astype(np.uint8)}


RAW = ParsedFile(**home("usps"), n=N_SAMPLES, parse=parse, synthetic=simulate, version=2)
