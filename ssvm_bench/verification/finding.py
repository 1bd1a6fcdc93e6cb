"""The subject of verification, and the findings of its checks."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.results import optima
from ssvm_bench.results.folder import ResultsFolder
from ssvm_bench.results.table import BestValues, Run

SAME, DIFFERENT, SKIPPED = "same", "different", "skipped"


class Finding(NamedTuple):
    """The result of one check of one thing.

    Attributes
    ----------
    outcome : str
        ``SAME``, ``DIFFERENT``, or ``SKIPPED`` if something that the check needs is missing.
    of : str
        What was checked: a file, a run, a dataset.
    why : str
        What differs, or what is missing.
    """

    outcome: str
    of: str = ""
    why: str = ""


def compared(of: str, differs: str = "") -> Finding:
    """Return the finding ``DIFFERENT`` if ``differs`` says what differs, else ``SAME``."""
    return Finding(DIFFERENT if differs else SAME, of, differs)


def skipped(of: str, why: object) -> Finding:
    """Return the finding that something could not be checked."""
    return Finding(SKIPPED, of, str(why))


@dataclass
class Subject:
    """A results folder, whose files have been read.

    Attributes
    ----------
    where : ResultsFolder
        The folder, and the part of it that is verified (``made``).
    stored : dict
        Experiment → own folder of a run → its trace as it is stored.
    runs : list of Run
        Raw runs, without those that cannot be read.
    config_dirs : sequence of Path
        Further folders of config files.
    """

    where: ResultsFolder
    stored: defaultdict[str, dict[Path, Run]]
    runs: list[Run]
    config_dirs: Sequence[Path] = ()

    @cached_property
    def best(self) -> tuple[BestValues, BestValues]:
        """The result of `optima.untold` for the stored traces."""
        return optima.untold(self.traces, self.where)

    @property
    def traces(self) -> list[Run]:
        """The stored traces of all experiments, each run once."""
        return [*ChainMap(*self.stored.values()).values()]

    def named(self, path: Path) -> str:
        """Return a path as findings name it: relative to the results folder."""
        return path.relative_to(self.where.root).as_posix()
