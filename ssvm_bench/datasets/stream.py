"""Examples in a file that ``ssvm-bench data export`` wrote: in chunks, or as a whole.

`open` gives a `DataStream`, of which a chunk is in memory at a time; solvers that are made for it
train on data of any length. `load` gives all of them as a `Dataset`, for the other solvers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.memory import available
from ssvm_bench.config import ALTERED
from ssvm_bench.config.validation import Positive
from ssvm_bench.datasets.base import Dataset, SourceConfig

if TYPE_CHECKING:  # they load numba, which `data status` does without
    from ssvm_bench.datasets.streams.data_stream import DataStream
    from ssvm_bench.datasets.streams.header import Header

_AS_A_WHOLE = 3
"""Times the size of a dataset that loading it and arranging it for kernels takes."""


@dataclass(frozen=True)
class Config(SourceConfig):
    """Options of the examples.

    Attributes
    ----------
    path : Path
        The file.
    fingerprint : str, optional
        That of the examples, to be sure of them; None: whatever is in the file.
    max_memory : float, optional
        Megabytes that they may take as a whole; None: what is free.
    """

    path: Path | None = None
    fingerprint: str | None = None
    max_memory: Positive | None = None

    NOT_HASHED: ClassVar[tuple[str, ...]] = ("path", "max_memory")
    NEUTRAL: ClassVar[Mapping[str, Any]] = {**SourceConfig.NEUTRAL, "max_memory": None}

    def __post_init__(self) -> None:
        """Check the options; the fingerprint becomes known where the file is there."""
        super().__post_init__()
        if self.path is None:
            raise ConfigError(
                "dataset=stream needs dataset.path=FILE.parquet, a file that `ssvm-bench data "
                "export NAME FILE.parquet` has written."
            )
        if self.fingerprint is None and self._header is not None:
            object.__setattr__(self, "fingerprint", self._header.fingerprint)

    @property
    def brings(self) -> str | None:
        """The oracle of these examples; None where the file cannot be read."""
        return None if self._header is None else self._header.oracle

    @cached_property
    def _header(self) -> Header | None:
        """What the file says of itself; None where it cannot be read, which `open` tells."""
        from ssvm_bench.datasets.streams.data_stream import DataStream

        assert self.path is not None
        with suppress(RunFailedError):
            return DataStream(self.path).header
        return None


def open(config: Config) -> DataStream:
    """Return the examples, of which none is read yet.

    Raises
    ------
    ConfigError
        There are fewer than ``n_samples``.
    RunFailedError
        The file cannot be read; or it has other examples than those that were asked for.
    """
    from ssvm_bench.datasets.streams.data_stream import DataStream

    assert config.path is not None
    stream = DataStream(config.path, config.name, config.n_samples)
    header, n = stream.header, stream.header.total("n")
    if config.n_samples is not None and config.n_samples > n:
        raise ConfigError(
            f"dataset.n_samples must be ≤ {n}, the number of examples in {config.path}, got "
            f"{config.n_samples}."
        )
    if config.fingerprint not in (None, header.fingerprint):
        raise RunFailedError(
            f"{config.path} has examples of the fingerprint {header.fingerprint}, and "
            f"dataset.fingerprint is {config.fingerprint}. Name the file that has those, or leave "
            "the option out."
        )
    asked = "synthetic" if header.source == "synthetic" else "real"
    if config.source not in ("auto", asked):
        raise RunFailedError(
            f"{config.path} was made of {header.source} data, and dataset.source={config.source}. "
            "Name another file, or leave the option out."
        )
    if header.source == ALTERED and not config.trust:
        raise RunFailedError(
            f"{config.path} was made of raw files that are not the genuine ones. "
            f"dataset.trust=true uses it, as source `{ALTERED}`."
        )
    return stream


def load(config: Config) -> Dataset:
    """Return all examples as a dataset, with those that are held out.

    Raises
    ------
    ConfigError, RunFailedError
        As of `open`; or they do not fit into the memory.
    """
    stream = open(config)
    share = stream.n / stream.header.total("n")
    needed = _AS_A_WHOLE * share * stream.header.total("nbytes")
    room = available() if config.max_memory is None else config.max_memory * 1e6
    if room is not None and needed > room:
        raise RunFailedError(
            f"The {stream.n} examples in {config.path} take about {needed / 1e6:.0f} MB as a "
            f"whole, and {room / 1e6:.0f} MB are free. Use fewer, as dataset.n_samples="
            f"{max(1, int(stream.n * room / needed))}, a solver that reads them in chunks, or, if "
            "you know better, a larger dataset.max_memory (in MB)."
        )
    (dataset,) = stream.chunks(stream.n)
    return dataset.derived(held_out=stream.held_out, fingerprint=stream.fingerprint)
