"""MNIST (LeCun, Cortes, Burges): handwritten digits, with a training and a test set.

The four files are in the idx format for bytes: two zeros, the type (8), the number of axes, their
lengths as big-endian 32-bit integers, then the entries. An image has 28 × 28 grey values 0
(background) to 255, row by row. It shows a digit of 20 × 20 pixels with its centre of mass in the
middle. There is no bias feature.

The 60000 training images are trained on. Of the 10000 test images, every second one is held out for
validation, and the others for the test. (The first half of the file is not representative: a linear
classifier makes nearly twice as many mistakes there as in the second.)

References
----------
Y. LeCun, L. Bottou, Y. Bengio, P. Haffner: Gradient-based learning applied to document
recognition. Proceedings of the IEEE, 1998.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ssvm_bench.config.validation import one_of
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset, Images, SourceConfig, split_by_fold
from ssvm_bench.datasets.reading import GZIP, Arrays, ContentError, check_equal
from ssvm_bench.datasets.sources import ParsedFile, home

CELL, BOX = 28, 20
N_PIXELS = CELL * CELL
N_LABELS = 10
IMAGES = Images((CELL, CELL), background=0.0)
N_TRAINING = 60000
N_SYNTHETIC = 6000, 1000
IDX = b"\0\0\x08"
"""First bytes of an idx file of bytes."""


@dataclass(frozen=True)
class Config(SourceConfig):
    """Options of the digits.

    Attributes
    ----------
    pixels : str
        Grey values k of 0 … 255 as features: ``"unit"``, k/255 in single precision; or ``"raw"``,
        k itself.
    """

    pixels: Annotated[str, one_of(("unit", "raw"))] = "unit"


def load(config: Config) -> Dataset:
    """Return the digits: x sparse, float32 or uint8 (60000, 784); see `sources.load`.

    The held-out sets are ``"validation"`` and ``"test"``.
    """

    def split(digits: Dataset) -> Dataset:
        if config.pixels == "unit":
            x: Any = digits.x.astype(np.float32)
            x.data[:] /= np.float32(255)
            digits = digits.derived(x=x)
        return split_by_fold(digits, "validation", "test")

    return sources.load(config, RAW, "independent", N_LABELS, split)


def parse(raw: bytes) -> np.ndarray:
    """Return the array of an uncompressed file of bytes in the idx format, of any shape.

    Raises
    ------
    ContentError
        It does not begin like such a file, or its length contradicts its header.
    """
    header = 4 + 4 * raw[3] if len(raw) > 3 else 4
    if not raw.startswith(IDX) or len(raw) < header:
        raise ContentError(f"not an idx file of bytes: it begins with {raw[:4]!r}")
    shape = tuple(np.frombuffer(raw[4:header], ">u4").tolist())
    entries = np.frombuffer(raw, np.uint8, offset=header)
    check_equal("number of entries", entries.size, int(np.prod(shape, dtype=object)))
    return entries.reshape(shape)


def combine(
    images: np.ndarray, labels: np.ndarray, test_images: np.ndarray, test_labels: np.ndarray
) -> Arrays:
    """Return the arrays to keep of all digits: CSR of the grey values, y, and fold.

    The fold of test images alternates between 2 (test) and 1 (validation).

    Raises
    ------
    ContentError
        The images are not 28 × 28, do not have one label each, or are too few.
    """
    for name, x, y, least in (("train", images, labels, 1), ("test", test_images, test_labels, 2)):
        if x.shape != (y.size, CELL, CELL) or y.ndim != 1 or y.size < least:
            raise ContentError(f"the {name} files have arrays of shapes {x.shape} and {y.shape}")
    x = np.concatenate((images, test_images)).reshape(-1, N_PIXELS)
    rows, columns = np.nonzero(x)
    return {
        "data": x[rows, columns],
        "indices": columns.astype(np.uint16),
        "indptr": np.searchsorted(rows, np.arange(len(x) + 1)).astype(np.int32),
        "y": np.concatenate((labels, test_labels)),
        "fold": np.concatenate((np.zeros(labels.size, int), 2 - np.arange(test_labels.size) % 2)),
    }


def simulate() -> Arrays:
    """Return the arrays of `combine` for a tenth as many synthetic digits, 20 × 20 each."""
    from ssvm_bench.datasets import handwriting

    n, n_test = N_SYNTHETIC
    counts = np.full(N_LABELS, (n + n_test) // N_LABELS)
    labels, ink = handwriting.digits(counts, (BOX, BOX), np.random.PCG64(1729))
    labels, edge = labels.astype(np.uint8), (CELL - BOX) // 2
    boxes = np.rint(255 * ink).astype(np.uint8).reshape(-1, BOX, BOX)
    images = np.pad(boxes, ((0, 0), (edge, edge), (edge, edge)))
    return combine(images[:n], labels[:n], images[n:], labels[n:])


RAW = ParsedFile(
    **home("mnist"),
    n=N_TRAINING,
    parse=parse,
    combine=combine,
    n_features=N_PIXELS,
    heads=(GZIP, IDX),
    synthetic=simulate,
    synthetic_size=N_SYNTHETIC[0],
    most=1 << 26,
    version=3,
)
