"""Stanford Background (Gould, Fulton, Koller): outdoor scenes in eight classes.

A picture is ``images/ID.jpg`` with ``labels/ID.regions.txt``, which has one number per pixel:
0 … 7, or −1 for unknown, the ninth label here.

References
----------
S. Gould, R. Fulton, D. Koller: Decomposing a scene into geometric and semantically consistent
regions. ICCV 2009.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images import scenes
from ssvm_bench.datasets.images.pictures import Picture, Pictures, decoded, pairs
from ssvm_bench.datasets.images.preparation import PictureConfig, PictureFile
from ssvm_bench.datasets.reading import ensure, parsing
from ssvm_bench.datasets.sources import home

Config = PictureConfig

LABELS = (
    *("sky", "tree", "road", "grass", "water", "building", "mountain", "foreground object"),
    "unknown",
)
UNKNOWN = LABELS.index("unknown")
N_PHOTOGRAPHS = 715


def load(config: Config) -> Dataset:
    """Return the superpixels of 715 photographs, nine labels."""
    return sources.load(config, RAW, "graph", len(LABELS), config.prepare)


def parse(path: Path) -> Pictures:
    """Return the pictures of an archive in this format, in the order of their names.

    Raises
    ------
    ContentError
        The archive is damaged, or a photograph has no labels, or labels no photograph.
    """
    found = pairs(path, "images/{}.jpg", "labels/{}.regions.txt", r"\w+")
    return Pictures(tuple(found), list(found.values()), decode)


def decode(encoded: tuple[bytes, bytes]) -> Picture:
    """Decode a photograph and its labels; raise `ContentError` if they do not fit together."""
    rgb = decoded(encoded[0], colour=True, what="photograph")
    height, width = rgb.shape[:2]
    lines = [line.split() for line in encoded[1].splitlines() if line.strip()]
    ensure(len(lines) == height, f"regions.txt has {len(lines)} lines, expected {height}")
    for k, line in enumerate(lines, 1):
        ensure(len(line) == width, f"regions.txt, line {k}: {len(line)} labels, expected {width}")
    with parsing("regions.txt has a label that is not a number"):
        truth = np.array(lines, dtype=np.int64)
    low, high = truth.min(), truth.max()
    why = f"regions.txt has labels {low} … {high}, expected −1 … {UNKNOWN - 1}"
    ensure(low >= -1 and high < UNKNOWN, why)
    truth[truth == -1] = UNKNOWN
    return Picture(rgb, truth.astype(np.uint8))


RAW = PictureFile(
    **home("stanford"), n=N_PHOTOGRAPHS, version=1, labels=LABELS, open=parse, scenes=scenes.layers
)
