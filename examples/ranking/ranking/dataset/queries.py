"""Queries with documents: examples of several parts, labeled 1 where they are relevant."""

from dataclasses import dataclass

import numpy as np

from ssvm_bench.base.random import approx_normal
from ssvm_bench.config.validation import Count, NotNegative
from ssvm_bench.datasets.base import Dataset, DatasetConfig


@dataclass(frozen=True)
class Config(DatasetConfig):
    """Options: how many queries, documents of each, and how noisy their features are."""

    queries: Count
    documents: Count
    noise: NotNegative


def load(config: Config) -> Dataset:
    """Return queries, in each of which every third document is relevant."""
    bits = np.random.PCG64(5)
    parts = config.queries * config.documents
    y = (np.arange(parts) % config.documents % 3 == 0).astype(np.uint8)
    x = np.outer(y, approx_normal((5,), bits)) + config.noise * approx_normal((parts, 5), bits)
    return Dataset(
        name=config.name,
        source="drawn",  # simulated by intention; of files, "real", which is the default
        x=x,
        y=y,
        offsets=np.arange(config.queries + 1) * config.documents,
        n_labels=2,
        structure="queries",
    )
