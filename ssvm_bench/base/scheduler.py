"""Connects to a dask scheduler within seconds, or raises an error that says what to do."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from ssvm_bench.base.errors import ConfigError, RunFailedError, described, needed, shown

SECONDS = 5.0
"""Time in which a scheduler has to answer, and time in which it has to have enough workers."""


def connect(address: str, workers: int) -> Any:
    """Return the client of a scheduler that has at least ``workers`` workers.

    Raises
    ------
    ConfigError
        If dask is not installed, or the address is not valid.
    RunFailedError
        If no scheduler answers, or it has fewer workers.
    """
    with needed("dask", f"The dask scheduler at {shown(address)}"):
        import distributed
        from distributed.comm.addressing import parse_host_port
    try:
        parse_host_port(address.rpartition("://")[2], 0)
    except ValueError as error:
        raise ConfigError(f"{shown(address)} is no address of a scheduler: {error}.") from None

    async def greet() -> None:
        comm = await asyncio.wait_for(distributed.comm.connect(address), SECONDS)
        await comm.close()

    try:
        asyncio.run(greet())  # a client itself waits forever for a server that sends nothing
        client: Any = distributed.Client(address, timeout=SECONDS, set_as_default=False)
    except Exception as error:  # of any kind, as servers with another protocol cause
        raise RunFailedError(
            f"No dask scheduler answers at {shown(address)} within {SECONDS:g} s "
            f"({described(error)}). Start one with `dask scheduler`, or give the address that it "
            "prints, such as tcp://127.0.0.1:8786."
        ) from error
    with suppress(TimeoutError):
        client.wait_for_workers(workers, timeout=SECONDS)
        return client
    there = count(client)
    client.close(timeout=SECONDS)
    raise RunFailedError(
        f"The dask scheduler at {shown(address)} has {there} of {workers} workers. Start them with "
        f"`dask worker {shown(address)} --nthreads 1`, in this program's environment."
    )


def count(client: Any) -> int:
    """Return the number of workers that a scheduler has."""
    return len(client.scheduler_info(n_workers=-1)["workers"])
