"""Executes the runs of an experiment: one after the other, or by several workers.

The results folder is the queue: a worker takes the next run that is missing there and that nobody
makes, wherever it was started. A call with several workers has a file in that folder, which says
which runs these are (:mod:`ssvm_bench.jobs.call`). Each worker is a process with one thread that
makes one run after the other (:mod:`ssvm_bench.jobs.worker`). A backend only starts workers
(:mod:`ssvm_bench.jobs.backends`), and a supervisor starts new ones for those that die, and shows
what happens (:mod:`ssvm_bench.jobs.supervisor`).

============  ==============================================================================
``local``     workers are processes of this machine
``dask``      tasks of a dask scheduler, or of a cluster of its own
``ray``       tasks of a ray cluster, or of one of its own
``submitit``  an array job of SLURM
============  ==============================================================================

The options of backends on the command line are here, and which backend accepts which.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ssvm_bench.base.errors import ConfigError, needed, shown
from ssvm_bench.config import LOCAL

if TYPE_CHECKING:
    from ssvm_bench.jobs.backends import Backend

MEANT = {
    LOCAL: ("jobs",),
    "dask": ("jobs", "address"),
    "ray": ("jobs", "address"),
    "submitit": ("partition", "time_limit", "memory", "parallel"),
}
"""Backend → the options that it accepts."""

_NEEDS = {"dask": "distributed", "ray": "ray"}
"""Backend, whose extra has the same name → the package to import."""


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


def chosen(backend: str, options: Options) -> Backend | None:
    """Return the backend; None means that this process executes one run after the other.

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
        with needed(backend, f"--backend {backend}"):
            importlib.import_module(_NEEDS[backend])
    from ssvm_bench.jobs import backends, slurm

    kinds = (backends.Local, backends.Dask, backends.Ray, slurm.Slurm)
    return next(kind for kind in kinds if kind.name == backend)(options)
