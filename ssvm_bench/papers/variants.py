"""Variants of runs, which claims are judged by apart: where a solver begins, and what time is.

========  =========================================================================================
start     ``truth``: φ^i = φ^{i y_i} = 0; ``oracle``: the plane of the labeling at w = 0
counted   whether time is counted at a paper's costs: ``clock=work`` with ``oracle.cost_visit``,
          in place of seconds that were measured
========  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ssvm_bench.results.trace import Trace

STARTS = ("truth", "oracle")


class Variant(NamedTuple):
    """Where the runs begin, and whether their time is counted at the costs of a paper."""

    start: str = STARTS[0]
    counted: bool = False

    @property
    def suffix(self) -> str:
        """What remarks on this variant have behind the dataset's name."""
        return f" start={self.start}" * (self.start != USUAL.start) + " counted" * self.counted


USUAL = Variant()
"""Runs that begin at the truth, and whose time was measured."""


class Costs(NamedTuple):
    """Seconds of an exact call, of a plane's evaluation, and of what else a visit takes."""

    call: float
    plane: float
    visit: float

    @property
    def share(self) -> float:
        """The oracle's share of BCFW's time, where each visit makes one call."""
        return self.call / (self.call + self.visit)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Costs:
        """Return what options name ``cost_call``, ``cost_plane`` and ``cost_visit``."""
        return cls(*(float(options[f"cost_{name}"]) for name in cls._fields))


def variant_of(trace: Trace) -> Variant:
    """Return the variant that a run is of."""
    config = trace.metadata["config"]
    counted = trace.metadata.get("clock") == "work" and "cost_visit" in config.get("oracle", {})
    start = config["solver"].get("start")  # that of `eg` is a number
    return Variant(start if start in STARTS else USUAL.start, counted)
