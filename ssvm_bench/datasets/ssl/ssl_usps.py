"""USPS: digits 2 and 5 against the others, a fifth of the points (SSL benchmark, set 2)."""

from __future__ import annotations

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.ssl import benchmark

Config = benchmark.SplitConfig

RAW = benchmark.files(
    "ssl_usps",
    number=2,
    n=1500,
    n_features=241,
    digests=(
        "812b522414b4e744079e995c3f9516a663263254852c393e3b9dfac1b11ba620",
        "155238e71c8f53283dd658469c9abf94c9cd6b78f106343a9a378ab52abf96fe",
        "f3851cff60819b7fa280e43f7d1845ee44d57ba2643f7cdebad9de1e4e422239",
    ),
    made=benchmark.Made(classes=(0, 0, 1, 0, 0, 1, 0, 0, 0, 0), apart=9.0, noise=0.6, seed=1702),
)


def load(config: Config) -> Dataset:
    """Return the points; see `benchmark.load`."""
    return benchmark.load(config, RAW)
