"""From the grids of an experiment file, and its options per dataset, to overrides; shards of runs.

Text is written as on the command line, so that ``range(3)`` is a sweep.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ssvm_bench.base.errors import ConfigError, shown

T = TypeVar("T")

OF_THE_GRID = ("seed", "results_dir", "force", "quiet")
"""Options that cannot differ between datasets."""

_KEY = re.compile(r"\w+(\.\w+)*")


def mapping(value: Any, where: str) -> dict[Any, Any]:
    """Return a value; raise ``ConfigError`` unless it is a mapping."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a mapping of keys to values.")
    return value


def grids(value: Any, where: str) -> dict[str, dict[Any, Any]]:
    """Return location in the file (``grid``, or ``grid[0]`` and so on) → grid."""
    if not isinstance(value, list):
        return {where: dict(mapping(value, where))}
    if not value:
        raise ConfigError(f"{where} must be a mapping of keys to values, or a list of them.")
    places = {f"{where}[{k}]": grid for k, grid in enumerate(value)}
    return {place: dict(mapping(grid, place)) for place, grid in places.items()}


def words(options: Any, where: str, of_one: bool = False) -> tuple[str, ...]:
    """Return options and values as overrides; options ``of_one`` dataset must not vary."""
    found = []
    for key, value in mapping(options, where).items():
        option = f"{where}.{shown(key)}"
        if of_one and (isinstance(value, list) or key in OF_THE_GRID):
            raise ConfigError(f"{option}: what varies between runs belongs into the grid.")
        if not _KEY.fullmatch(key):
            raise ConfigError(f"{where}: {shown(key)} is no name of an option.")
        values = value if isinstance(value, list) else [value]
        if not values or any(isinstance(each, (dict, list)) for each in values):
            raise ConfigError(f"{option} must be a value or a list of values.")
        text = value if isinstance(value, str) else ",".join(_word(option, each) for each in values)
        found.append(f"{key}={text}")
    return tuple(found)


def _word(option: str, value: Any) -> str:
    """Return one value as it is written on the command line."""
    if value is not None and re.fullmatch(r"[\w.+-]+", str(value)) and type(value) is not bool:
        return str(value)
    from ssvm_bench.config.overrides import written

    return written(option, value)


@dataclass(frozen=True)
class Shard:
    """One of several parts of an experiment, for machines that share nothing.

    Attributes
    ----------
    number, count : int
        Its number, from 1, and the number of shards.
    """

    number: int
    count: int

    @classmethod
    def parsed(cls, text: str) -> Shard:
        """Return the shard of a text like ``2/4``.

        Raises
        ------
        ConfigError
            If the text names no shard.
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ConfigError(
                f"--shard must be I/K, the I-th of K parts with 1 ≤ I ≤ K, got {shown(text)}."
            )
        return cls(int(found[1]), int(found[2]))

    def of(self, runs: Sequence[T]) -> list[T]:
        """Return its part of all runs, in their order.

        The runs are shuffled, always in the same way, and dealt like cards. So runs that are costly
        by their solver, dataset or λ are spread over the shards.
        """
        import numpy as np

        from ssvm_bench.base import random

        shuffled = random.permutation(len(runs), np.random.PCG64(0))
        return [runs[k] for k in sorted(shuffled[self.number - 1 :: self.count].tolist())]

    def __str__(self) -> str:
        """Return the text that `parsed` reads."""
        return f"{self.number}/{self.count}"
