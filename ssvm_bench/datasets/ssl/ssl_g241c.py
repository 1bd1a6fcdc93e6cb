"""g241c: two Gaussians, one a class (SSL benchmark, set 5)."""

from __future__ import annotations

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.ssl import benchmark

Config = benchmark.SplitConfig

RAW = benchmark.files(
    "ssl_g241c",
    number=5,
    n=1500,
    n_features=241,
    digests=(
        "21e996d9c654ac91f32f5ba6af172b6f86034434b6cf17f059cfd2f821120e1e",
        "6560e5575bf4abd6f5d76bdb1396d009c867fc7f40e5bbb7f0aa5232cd17ac01",
        "449dcd8c2dc279c4380197154823abfd5001a74bacdc32115b18f035bcf8ddbe",
    ),
    made=benchmark.Made(classes=(0, 1), apart=2.5, noise=1.0, seed=1705),
)


def load(config: Config) -> Dataset:
    """Return the points; see `benchmark.load`."""
    return benchmark.load(config, RAW)
