"""Handwritten digits that scikit-learn brings along: real on every machine, without a download.

The file has one line per digit: 8 × 8 numbers of ink, 0 to 16, each of a square of 4 × 4 pixels,
row by row, and the label. There is no bias feature. It is the test set of the dataset at UCI.

References
----------
E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository,
1998.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.base import Dataset, Images, SourceConfig
from ssvm_bench.datasets.sources import ParsedFile, home, of_package

Config = SourceConfig

CELL = (8, 8)
INK = 16
IMAGES = Images(CELL, background=0.0)
SAMPLES_PER_DIGIT = np.array([178, 182, 177, 183, 181, 182, 181, 179, 174, 180])
N_SAMPLES = int(SAMPLES_PER_DIGIT.sum())


def load(config: Config) -> Dataset:
    """Return the digits: x uint8 (1797, 64), one part per example; see `sources.load`."""
    return sources.load(config, RAW, structure="independent", n_labels=SAMPLES_PER_DIGIT.size)


def parse(raw: bytes) -> dict[str, np.ndarray]:
    """Return the arrays ``x, y`` of a file in this format, of any length.

    Raises
    ------
    ContentError
        Names the first line that is not a digit with whole numbers of ink, 0 to 16.
    """
    spaced = reading.unpack(raw).replace(b",", b" ")
    table = reading.read_table(spaced, CELL[0] * CELL[1] + 1).to_numpy(dtype=np.float64)
    x, labels = table[:, :-1], table[:, -1]
    reading.check_lines(
        np.isin(labels, np.arange(SAMPLES_PER_DIGIT.size)),
        lambda k: f"label {labels[k]:g}, expected 0 … {SAMPLES_PER_DIGIT.size - 1}",
    )
    reading.check_lines(
        np.isin(x, np.arange(INK + 1)).all(axis=1),
        lambda k: f"ink that is no whole number from 0 to {INK}",
    )
    return {"x": x.astype(np.uint8), "y": labels.astype(np.uint8)}


def simulate() -> dict[str, np.ndarray]:
    """Return synthetic digits, as many as in the real file."""
    from ssvm_bench.datasets import handwriting

    y, ink = handwriting.digits(SAMPLES_PER_DIGIT, CELL, np.random.PCG64(1998))
    return {"x": np.rint(INK * ink).astype(np.uint8), "y": y.astype(np.uint8)}


RAW = ParsedFile(
    **home("optdigits"),
    n=N_SAMPLES,
    parse=parse,
    synthetic=simulate,
    version=1,
    on_board=of_package("sklearn", "datasets/data/digits.csv.gz"),
)
