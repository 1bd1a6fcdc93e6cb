"""What is verified, and what a check has found of it."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import catalog, registry, validation
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.results import optima
from ssvm_bench.results.folder import ResultsFolder
from ssvm_bench.results.problem_instance import BestValues
from ssvm_bench.results.trace import Trace

SAME, DIFFERENT, SKIPPED = "same", "different", "skipped"


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes
    ----------
    outcome : str
        ``SAME``, ``DIFFERENT``, or ``SKIPPED`` where something that it takes is missing.
    of : str
        What it is: a file, a run, a dataset.
    why : str
        What differs, or is missing.
    """

    outcome: str
    of: str = ""
    why: str = ""


def compared(of: str, differs: str = "") -> Finding:
    """Return that something is the same, if nothing is said of what differs."""
    return Finding(DIFFERENT if differs else SAME, of, differs)


def skipped(of: str, why: object) -> Finding:
    """Return that something could not be looked at."""
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
    runs : list of Trace
        Raw runs; those that cannot be read are none of them.
    config_dirs : sequence of Path
        Further folders of config files.
    """

    where: ResultsFolder
    stored: defaultdict[str, dict[Path, Trace]]
    runs: list[Trace]
    config_dirs: Sequence[Path] = ()

    @cached_property
    def best(self) -> tuple[BestValues, BestValues]:
        """What `optima.untold` returns of the stored traces."""
        return optima.untold(self.traces, self.where)

    @property
    def traces(self) -> list[Trace]:
        """The stored traces of all experiments, each run once."""
        return [*ChainMap(*self.stored.values()).values()]

    def named(self, path: Path) -> str:
        """Return a path as it is told: below the results folder."""
        return path.relative_to(self.where.root).as_posix()


def config_of(trace: Trace) -> RunConfig:
    """Return the options of a run as those of a run of today, on data of the same source.

    Raises
    ------
    ConfigError, RunFailedError
        If there is no such component or option any more, or an option is not understood.
    """
    options = dict(trace.config)
    try:
        for group in catalog.COMPONENTS:
            options[group] = registry.config(group, options[group])
        config = validation.build(RunConfig, options)
    except KeyError as error:
        raise RunFailedError(f"its options lack {error}") from error
    return config.with_source(str(trace.data["source"]))
