"""The sequence bmx-trees of DAVIS 2016: 80 frames."""

from __future__ import annotations

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.davis import sequence
from ssvm_bench.datasets.images.scene import Scene

Config = sequence.SequenceConfig
LABELS = sequence.LABELS

RAW = sequence.raw_file(
    "davis_bmx_trees",
    "bmx-trees",
    80,
    "2fe30becabd6c693db06b0b7cb7f1dac936dd05e6ab17502e1bc78d9ae638a99",
)


def load(config: Config) -> Dataset:
    """Return the superpixels of all frames; see `sequence.load`."""
    return sequence.load(config, RAW)


def scene(config: Config, number: int) -> Scene:
    """Return a frame as it is shown; see `sequence.scene`."""
    return sequence.scene(config, number, RAW)
