"""A problem instance: what runs have in common whose values may be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias


class ProblemInstance(NamedTuple):
    """The data, by their fingerprint, and λ."""

    fingerprint: str
    lam: float


class Best(NamedTuple):
    """The lowest primal and the highest dual value seen on a problem instance."""

    primal: float
    dual: float


BestValues: TypeAlias = Mapping[ProblemInstance, Best]
"""As `optima.reference` gives them."""


def instance_of(metadata: Mapping[str, Any]) -> ProblemInstance:
    """Return the problem instance of a run."""
    return ProblemInstance(str(metadata["dataset"]["fingerprint"]), float(metadata["lam"]))
