"""The grids of an experiment file and its options of single datasets as overrides; shards of runs.

A text stands as it would on the command line, so that ``range(3)`` is a sweep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ssvm_bench.base.errors import ConfigError, shown

T = TypeVar("T")

OF_THE_GRID = ("seed", "results_dir", "force", "quiet")
"""Options that cannot differ between datasets."""

_KEY = re.compile(r"\w+(\.\w+)*")


def mapping(value: Any, where: str) -> dict[Any, Any]:
    """Return a value that must be a mapping."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a mapping of keys to values.")
    return value


def grids(value: Any, where: str) -> dict[str, dict[Any, Any]]:
    """Return each grid by where it is in the file: ``grid``, or ``grid[0]`` and so on."""
    if not isinstance(value, list):
        return {where: dict(mapping(value, where))}
    if not value:
        raise ConfigError(f"{where} must be a mapping of keys to values, or a list of them.")
    places = {f"{where}[{k}]": grid for k, grid in enumerate(value)}
    return {place: dict(mapping(grid, place)) for place, grid in places.items()}


def overrides(options: Any, where: str) -> Iterable[str]:
    """Yield options and values as overrides."""
    for key, value in mapping(options, where).items():
        yield _override(key, value, where)


def own_options(options: Any, where: str) -> Iterable[str]:
    """Yield the options of the runs on one dataset as overrides."""
    for key, value in mapping(options, where).items():
        if isinstance(value, list) or key in OF_THE_GRID:
            raise ConfigError(
                f"{where}.{shown(key)}: what varies between runs belongs into the grid."
            )
        yield _override(key, value, where)


def option(override: str) -> str:
    """Return the option that an override sets."""
    return override.partition("=")[0].lstrip("+")


def _override(key: str, value: Any, where: str) -> str:
    if not _KEY.fullmatch(key):
        raise ConfigError(f"{where}: {shown(key)} is no name of an option.")
    return f"{key}={_values(value, f'{where}.{shown(key)}')}"


def _values(value: Any, where: str) -> str:
    """Return the right-hand side of an override: a value, or the values of a sweep."""
    nested = isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value)
    if isinstance(value, dict) or nested or value == []:
        raise ConfigError(f"{where} must be a value or a list of values.")
    if isinstance(value, list):
        return ",".join(_word(item) for item in value)
    return value if isinstance(value, str) else _word(value)


def _word(value: Any) -> str:
    """Return one value as the command line reads it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = str(value)
    if isinstance(value, str) and not re.fullmatch(r"[\w.+-]+", text):
        escaped = text.replace("'", "\\'")
        return f"'{escaped}'"
    return text


@dataclass(frozen=True)
class Shard:
    """One of several parts of an experiment, for machines that share nothing.

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
        import numpy as np

        from ssvm_bench.base import random

        shuffled = random.permutation(len(runs), np.random.PCG64(0))
        return [runs[k] for k in sorted(shuffled[self.number - 1 :: self.count].tolist())]

    def __str__(self) -> str:
        """Return how it is written."""
        return f"{self.number}/{self.count}"
