"""MNIST (LeCun, Cortes, Burges): handwritten digits, to train on and to test with.

Four files of bytes in the idx format: two zeros, the type (8), the number of axes, their lengths
as big-endian 32-bit integers, then the entries. An image has 28 × 28 grey values 0 (background) to
255, row by row: a digit of 20 × 20 whose centre of mass is in the middle. There is no bias feature.

The 60000 training images are trained on. Of the 10000 test images, every second one is held out for
validation, and the others for the test. (The first half of the file would be no fair sample of it:
a linear classifier makes nearly twice as many mistakes there as in the second.)

References
----------
Y. LeCun, L. Bottou, Y. Bengio, P. Haffner: Gradient-based learning applied to document
recognition. Proceedings of the IEEE, 1998.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from ssvm_bench.base.random import approx_normal, permutation, uniform
from ssvm_bench.config.validation import one_of
from ssvm_bench.datasets import cache, sources, tables
from ssvm_bench.datasets.base import Dataset, Images, SourceConfig
from ssvm_bench.datasets.cache import Arrays
from ssvm_bench.datasets.raw_files import FileSet
from ssvm_bench.datasets.reading import GZIP, ContentError
from ssvm_bench.datasets.synthetic import handwriting

CELL, BOX = 28, 20
N_PIXELS = CELL * CELL
N_LABELS = 10
IMAGES = Images((CELL, CELL), background=0.0)
N_TRAINING, N_TEST = 60000, 10000
IDX = b"\0\0\x08"
"""How a file of bytes in the idx format begins."""


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

    Those held out are ``"validation"`` and ``"test"``.
    """
    from scipy.sparse import csr_array

    def split(digits: Dataset) -> Dataset:
        assert digits.fold is not None
        training, others = (np.flatnonzero(digits.fold == k) for k in (0, 1))
        test, validation = others[::2], others[1::2]
        held_out = {"validation": some(digits, validation), "test": some(digits, test)}
        return some(digits, training).derived(held_out=held_out)

    def some(digits: Dataset, numbers: np.ndarray) -> Dataset:
        taken = digits.take(numbers)
        if config.pixels == "raw":
            return taken
        rows = csr_array(taken.x)
        values = rows.data.astype(np.float32) / np.float32(255)
        return taken.derived(x=csr_array((values, rows.indices, rows.indptr), shape=rows.shape))

    return sources.load(config, RAW, "independent", N_LABELS, split)


def parse(raw: bytes) -> np.ndarray:
    """Return the array of an uncompressed file of bytes in the idx format, of any shape.

    Raises
    ------
    ContentError
        It begins with something else, or has another length than it says.
    """
    header = 4 + 4 * raw[3] if len(raw) > 3 else 4
    if not raw.startswith(IDX) or len(raw) < header:
        raise ContentError(f"not an idx file of bytes: it begins with {raw[:4]!r}")
    shape = tuple(np.frombuffer(raw[4:header], ">u4").tolist())
    entries = np.frombuffer(raw, np.uint8, offset=header)
    tables.check_equal("number of entries", entries.size, int(np.prod(shape, dtype=object)))
    return entries.reshape(shape)


def combine(
    images: np.ndarray, labels: np.ndarray, test_images: np.ndarray, test_labels: np.ndarray
) -> Arrays:
    """Return what is kept of all digits: CSR of the grey values, y, and fold, 1 of the test images.

    Raises
    ------
    ContentError
        The images have another size, or not one label each; or there are too few.
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
        "fold": np.repeat([0, 1], [labels.size, test_labels.size]),
    }


N_MADE, N_MADE_TEST = 6000, 1000
"""Images of the stand-in: a tenth of the real ones, made in seconds."""


def stand_in() -> Arrays:
    """Return arrays of 6000 digits to train on and 1000 held out: warped, and softly drawn.

    As in the original, they are drawn in a box of 20 × 20 pixels, which is then moved, by whole
    pixels, until the centre of mass is in the middle.
    """
    bits = np.random.PCG64(1729)
    m = N_MADE + N_MADE_TEST
    y = permutation(m, bits) % N_LABELS
    style = handwriting.Style(
        slant=0.1 + 0.22 * approx_normal((m,), bits),
        aspect=np.clip(0.95 + 0.2 * approx_normal((m,), bits), 0.5, 1.6),
        size=np.full(m, 0.82),
        shift=np.zeros((m, 2)),
        wobble=0.85 + 0.85 * np.square(uniform((m,), bits)),  # some write badly
    )
    habit = uniform((m,), bits)
    distance = handwriting.distances("0123456789", y, habit, style, (BOX, BOX), bits)
    radius = np.clip(1.2 + 0.3 * approx_normal((m, 1), bits), 0.5, 1.8)
    ink = np.rint(255 * np.clip(0.5 + (radius - distance) / 1.2, 0, 1)).astype(np.uint8)
    images = _centred(ink.reshape(m, BOX, BOX))
    labels = y.astype(np.uint8)
    return combine(images[:N_MADE], labels[:N_MADE], images[N_MADE:], labels[N_MADE:])


def _centred(ink: np.ndarray) -> np.ndarray:
    """Return the boxes in cells whose middle is at the centre of mass, as far as there is room."""
    m = len(ink)
    cells = np.zeros((m, CELL, CELL), np.uint8)
    counted = ink.astype(np.int64)  # integers: the same sums on every machine
    mass, along = counted.sum(axis=(1, 2)), np.arange(BOX)
    places = []
    for moment in (counted.sum(axis=2) @ along, counted.sum(axis=1) @ along):
        start = (mass * (CELL + 1) - 2 * moment) // (2 * mass)  # of CELL/2 − moment/mass, rounded
        places.append(np.clip(start, 0, CELL - BOX)[:, None] + along)
    rows, columns = places
    cells[np.arange(m)[:, None, None], rows[:, :, None], columns[:, None, :]] = ink
    return cells


class IdxFiles(FileSet):
    """The four files."""

    def recognises(self, head: bytes) -> bool:
        """Tell gzip, or an idx file that was unpacked on the way."""
        return head.startswith((GZIP, IDX))

    def fields(self, arrays: Arrays) -> dict[str, Any]:
        """Return the fields of all digits, with raw grey values."""
        x = cache.sparse_rows(arrays, N_PIXELS)
        y = arrays["y"]
        return {"x": x, "y": y, "offsets": np.arange(y.size + 1), "fold": arrays["fold"]}


RAW = IdxFiles(
    dataset="mnist",
    folder="mnist",
    url="https://ossci-datasets.s3.amazonaws.com/mnist/",
    n=N_TRAINING,
    sha256={
        "train-images-idx3-ubyte.gz": (
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
        ),
        "train-labels-idx1-ubyte.gz": (
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
        ),
        "t10k-images-idx3-ubyte.gz": (
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
        ),
        "t10k-labels-idx1-ubyte.gz": (
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
        ),
    },
    parse=parse,
    combine=combine,
    stand_in=stand_in,
    n_made=N_MADE,
    version=2,
)
