"""A problem instance: what runs have in common whose values may be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias


class ProblemInstance(NamedTuple):
    """The data, by their fingerprint and what else tells the objective, and its weight λ or ν."""

    fingerprint: str
    lam: float


COLUMNS = ("dataset", "source", "n", "lam", "fingerprint")
"""What a table says of a problem instance."""


class Best(NamedTuple):
    """The lowest primal and the highest dual value seen on a problem instance."""

    primal: float
    dual: float


BestValues: TypeAlias = Mapping[ProblemInstance, Best]
"""As `optima.reference` gives them."""


def instance_of(metadata: Mapping[str, Any]) -> ProblemInstance:
    """Return the problem instance of a run."""
    parts = metadata["dataset"]["fingerprint"], metadata.get("objective")
    return ProblemInstance(" ".join(filter(None, parts)), float(metadata["lam"]))


def columns_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table says of the problem instance of a run: ``COLUMNS``."""
    data, instance = metadata["dataset"], instance_of(metadata)
    values = data["name"], data["source"], data["n"], instance.lam, instance.fingerprint
    return dict(zip(COLUMNS, values, strict=True))
