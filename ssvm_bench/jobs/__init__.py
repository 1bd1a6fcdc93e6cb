"""Executes the runs of an experiment: several at once, on this machine or on others.

============  ==============================================================================
``local``     processes of this machine: :mod:`ssvm_bench.jobs.processes`
``dask``      the workers of a dask scheduler, or of a cluster of its own
``ray``       the workers of a ray cluster, or of one of its own
``submitit``  an array job of SLURM
============  ==============================================================================

Each backend is an `Executor`. One loop, `Dispatcher.make`, submits jobs to it and receives their
results (:mod:`ssvm_bench.jobs.dispatch`). Every run is executed by a separate process with one
thread. Nodes share the results folder. There, the process that executes a run locks it, and resumes
it from its checkpoint if an earlier process has died: a job may be started twice, but no run is
executed twice.

The options of backends on the command line are here: which backend accepts which, and its
dispatcher.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ssvm_bench.base.errors import ConfigError, needed, shown
from ssvm_bench.config import LOCAL

if TYPE_CHECKING:
    from ssvm_bench.jobs.dispatch import Dispatcher, Executor
    from ssvm_bench.jobs.tokens import CancelToken

MEANT = {
    LOCAL: ("jobs",),
    "dask": ("jobs", "address"),
    "ray": ("jobs", "address"),
    "submitit": ("partition", "time_limit", "memory", "parallel"),
}
"""Backend → the options that it accepts."""

_NEEDS = {"dask": ("dask", "distributed"), "ray": ("ray", "ray"), "submitit": ("slurm", "submitit")}
"""Backend → the extra that it needs, and the package to import."""


@dataclass(frozen=True)
class Options:
    """Options given for a backend; None: not given.

    Attributes
    ----------
    jobs : int or None
        Runs at once: processes of this machine, or workers of a cluster of its own.
    address : str or None
        Address of an existing cluster.
    partition : str or None
        Partition of SLURM.
    time_limit : int or None
        Time limit of a SLURM job, in minutes.
    memory : str or None
        Memory of a SLURM job: ``4G``.
    parallel : int or None
        Largest number of SLURM jobs at once.
    """

    jobs: int | None = None
    address: str | None = None
    partition: str | None = None
    time_limit: int | None = None
    memory: str | None = None
    parallel: int | None = None

    def check(self, backend: str) -> None:
        """Raise ``ConfigError`` if a given option means nothing to a backend, or is not valid."""
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        for name in given:
            if name not in MEANT[backend]:
                meant = " or ".join(f"--backend {one}" for one in MEANT if name in MEANT[one])
                own = ", ".join(map(_written, MEANT[backend]))
                raise ConfigError(
                    f"{_written(name)} means nothing to --backend {backend}, whose options are "
                    f"{own}; it is for {meant}."
                )
        if self.jobs is not None and self.address is not None:
            raise ConfigError(
                "--jobs is the size of a cluster of its own, and that at --address has one already."
                " Leave one of them out."
            )
        self.slurm_memory()

    def slurm_memory(self) -> str | None:
        """Return the memory in SLURM's form: ``4096M`` for ``4G``; None if it is not given.

        Raises
        ------
        ConfigError
            If it is not a size.
        """
        if self.memory is None:
            return None
        found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)([MGT])B?", self.memory.strip().upper())
        if found is None or float(found[1]) == 0:
            raise ConfigError(
                f"--memory must be a size such as 500M or 4G, got {shown(self.memory)}."
            )
        return f"{round(float(found[1]) * 1024 ** 'MGT'.index(found[2]))}M"


def _written(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def chosen(backend: str, options: Options) -> Dispatcher | None:
    """Return the dispatcher; None means that this process executes one run after the other.

    Raises
    ------
    ConfigError
        If what the backend needs is not installed, or an option means nothing to it.
    RunFailedError
        If what it needs cannot be loaded.
    """
    options.check(backend)
    if backend == LOCAL and options.jobs in (None, 1):
        return None
    if backend in _NEEDS:
        extra, package = _NEEDS[backend]
        with needed(extra, f"--backend {backend}"):
            importlib.import_module(package)
    from ssvm_bench.jobs.dispatch import Dispatcher

    def open_executor(token: CancelToken | None) -> Executor:
        module = "processes" if backend == LOCAL else backend
        made = getattr(importlib.import_module(f"ssvm_bench.jobs.{module}"), module.title())
        return made(options, token)

    return Dispatcher(backend, open_executor)
