"""g241n: four Gaussians, two a class: neighbours differ (SSL benchmark, set 7)."""

from __future__ import annotations

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.ssl import benchmark

Config = benchmark.SplitConfig

RAW = benchmark.files(
    "ssl_g241n",
    number=7,
    n=1500,
    n_features=241,
    digests=(
        "e6cdd9d6d27a2eb426346bc53c20319f95a982592d14f216dd816808a16da48d",
        "97a36e3ee53c788786f39eff391169b96993fc21e9fdf54a7fbaf856c09dbedd",
        "6ef0c0cf99ce61943f8f148dcc2943b813cb738753e6fc2c4d708f2c3ea3ac3b",
    ),
    made=benchmark.Made(classes=(0, 1, 0, 1), apart=4.5, noise=1.0, seed=1707),
)


def load(config: Config) -> Dataset:
    """Return the points; see `benchmark.load`."""
    return benchmark.load(config, RAW)
