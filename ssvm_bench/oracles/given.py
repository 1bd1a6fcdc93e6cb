"""An oracle that a callable of a Python program makes from the examples: its own class, say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ssvm_bench.base.errors import RunFailedError, SsvmBenchError, described, shown
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
    """Return the oracle.

    Raises
    ------
    RunFailedError
        If the callable raises anything.
    """
    try:
        return config.make(dataset)
    except SsvmBenchError:
        raise
    except Exception as error:  # the user's code may raise anything
        raise RunFailedError(
            f"The oracle {shown(repr(config.make))} cannot be made: {described(error)}. Correct it."
        ) from error
