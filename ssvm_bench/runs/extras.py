"""Extras of ``pyproject.toml`` that runs take: looked for before the first run, without imports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ssvm_bench.base.errors import check_installed, shown
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets import sources


def check_extras(configs: Iterable[RunConfig]) -> None:
    """Check that the packages that runs take are installed, before any of the runs begins.

    Raises
    ------
    ConfigError
        Names what takes the first one that is missing, and how to install it.
    """
    asked = dict.fromkeys(need for config in configs for need in _needs(config))
    for extra, by in asked:
        check_installed(extra, by)


def _needs(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Yield the extras that a run takes, each with what takes it."""
    if extra := sources.extra_of(config.dataset):
        yield extra, f"dataset={shown(config.dataset.name)}"
    if extra := getattr(config.oracle, "extra", ""):
        yield extra, f"oracle.engine={shown(config.oracle.engine)}"
    if config.parallel.address is not None:
        yield "dask", f"The dask scheduler at {shown(config.parallel.address)}"
