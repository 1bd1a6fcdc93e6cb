"""Which engine makes the runs of an experiment; its module is loaded when there are any."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec

from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.engines.conductor import Conductor
from ssvm_bench.engines.contract import Engine, Ticket
from ssvm_bench.engines.options import Options
from ssvm_bench.results.provenance import LOCAL

PACKAGES = {"dask": "distributed", "ray": "ray", "submitit": "submitit"}
"""Engine → what its extra installs."""


def chosen(backend: str, options: Options) -> Conductor | None:
    """Return what makes runs; None stands for processes of this machine.

    Raises
    ------
    ConfigError
        If the engine is not installed, or an option means nothing to it.
    """
    options.check(backend)
    if backend == LOCAL:
        return None
    if find_spec(PACKAGES[backend]) is None:
        raise ConfigError(
            f"--backend {backend} needs the package {PACKAGES[backend]}, which is not installed: "
            f"pip install 'ssvm-bench[{backend}]'."
        )

    def opened(ticket: Ticket, say: Callable[[str], object]) -> Engine:
        try:
            module = importlib.import_module(f"ssvm_bench.engines.{backend}")
        except ImportError as error:
            raise RunFailedError(
                f"--backend {backend} cannot be loaded: {shown(error, 300)}. Install it again: "
                f"pip install 'ssvm-bench[{backend}]'."
            ) from error
        engine: Engine = module.opened(ticket, say, options)
        return engine

    return Conductor(backend, opened)
