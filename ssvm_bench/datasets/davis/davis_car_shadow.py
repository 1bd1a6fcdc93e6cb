"""The sequence car-shadow of DAVIS 2016: 40 frames."""

from __future__ import annotations

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.davis import sequence
from ssvm_bench.datasets.images.scene import Scene

Config = sequence.SequenceConfig
LABELS = sequence.LABELS

RAW = sequence.raw_file(
    "davis_car_shadow",
    "car-shadow",
    40,
    "39b676eed756321dfc6e189b8751e08c6c824e940ad62b66ea2711adb67b2dec",
)


def load(config: Config) -> Dataset:
    """Return the superpixels of all frames; see `sequence.load`."""
    return sequence.load(config, RAW)


def scene(config: Config, number: int) -> Scene:
    """Return a frame as it is shown; see `sequence.scene`."""
    return sequence.scene(config, number, RAW)
