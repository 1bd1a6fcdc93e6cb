"""Options of who calls the oracle: this process, several, or the workers of a dask scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ssvm_bench.config.validation import Count, Options


@dataclass(frozen=True)
class Parallel(Options):
    """Options of oracle calls in parallel.

    Attributes
    ----------
    workers : int
        Processes that call the oracle at once; 1 without an ``address``: this one.
    batch : int
        τ, the terms that a solver which moves w in between asks for at one w.
    address : str or None
        Of a dask scheduler, whose workers call, as ``tcp://host:port``.
    """

    section: ClassVar[str] = "parallel"

    workers: Count = 1
    batch: Count = 1
    address: str | None = None

    @property
    def elsewhere(self) -> bool:
        """Whether other processes call."""
        return self.workers > 1 or self.address is not None

    def hashed(self, clock: str) -> dict[str, Any]:
        """Return what of it a hash covers; empty if that is what it is without it.

        τ changes the iterates. Who calls changes what a clock measures, and with that what is
        decided by time, unless the clock only counts. Where a scheduler is, changes nothing.
        """
        found: dict[str, Any] = {"batch": self.batch} if self.batch > 1 else {}
        if clock != "work" and self.elsewhere:
            found |= {"workers": self.workers, "engine": "dask" if self.address else "processes"}
        return found
