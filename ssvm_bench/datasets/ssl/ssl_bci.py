"""BCI: imagined movements of the left or right hand, seen by electrodes (SSL benchmark, set 4)."""

from __future__ import annotations

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.ssl import benchmark

Config = benchmark.SplitConfig

RAW = benchmark.files(
    "ssl_bci",
    number=4,
    n=400,
    n_features=117,
    digests=(
        "45170f338525e0542c0d1d132da9df8c6c6fbc773b1df803dcc98c0eb4fb369c",
        "21511ccd5a1ac2486ac2f0e428c9bcbd55e7c76007c67fec9f1f0325361580ce",
        "03aebf6fd4e402d244dde020328d2c64db0c934777eb5251d57b15a9e557bacc",
    ),
    made=benchmark.Made(classes=(0, 1), apart=1.5, noise=1.0, seed=1704),
)


def load(config: Config) -> Dataset:
    """Return the points; see `benchmark.load`."""
    return benchmark.load(config, RAW)
