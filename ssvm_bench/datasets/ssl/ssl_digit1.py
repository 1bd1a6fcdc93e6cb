"""Digit1: pictures of the digit 1, which lean this way or that (SSL benchmark, set 1)."""

from __future__ import annotations

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.ssl import benchmark

Config = benchmark.SplitConfig

RAW = benchmark.files(
    "ssl_digit1",
    number=1,
    n=1500,
    n_features=241,
    digests=(
        "49aa23425965f0e40db8087d04be06a1888b72b9287f0e5b916847a84764050d",
        "a5485ce0adc6cc4fd8bf18cfa55222ccd5d3921511a62decbc52cff06abc5296",
        "314ed0b1511fcbf94afe84705a3268ad06375e1c0047b0fc2cbf052578c5eb23",
    ),
    made=benchmark.Made(classes=(0, 1, 0, 1, 0, 1), apart=9.0, noise=0.5, seed=1701),
)


def load(config: Config) -> Dataset:
    """Return the points; see `benchmark.load`."""
    return benchmark.load(config, RAW)
