"""An oracle that a Python program makes of the examples, by a callable: its own class, say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import OracleConfig
from ssvm_bench.oracles.objective import Terms

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options.

    Attributes
    ----------
    make : callable
        Dataset → oracle.
    """

    make: Any = field(hash=False)  # some callables have no hash


def build(config: Config, dataset: Dataset) -> Terms:
    """Return the oracle."""
    return config.make(dataset)
