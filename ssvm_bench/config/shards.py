"""Parts of an experiment, for machines that share nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ssvm_bench.base import random
from ssvm_bench.base.errors import ConfigError, shown

T = TypeVar("T")


@dataclass(frozen=True)
class Shard:
    """One of several parts.

    Attributes
    ----------
    number, count : int
        Which, from 1, and of how many.
    """

    number: int
    count: int

    @classmethod
    def parsed(cls, text: str) -> Shard:
        """Return the shard that ``2/4`` stands for.

        Raises
        ------
        ConfigError
            If it stands for none.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(
                f"--shard must be I/K, the I-th of K parts with 1 ≤ I ≤ K, got {shown(text)}."
            )
        return cls(int(found[1]), int(found[2]))

    def of(self, runs: Sequence[T]) -> list[T]:
        """Return its part of all runs, in their order.

        They are dealt as shuffled cards are, always in the same way: of whatever makes runs costly,
        solver, dataset or λ, every shard gets some.
        """
        shuffled = random.permutation(len(runs), np.random.PCG64(0))
        return [runs[k] for k in sorted(shuffled[self.number - 1 :: self.count].tolist())]

    def __str__(self) -> str:
        """Return how it is written."""
        return f"{self.number}/{self.count}"
