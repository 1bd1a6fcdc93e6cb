"""A problem instance: what runs have in common whose values may be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias


class ProblemInstance(NamedTuple):
    """The data, by their fingerprint, and λ.

    Behind the fingerprint are the latent values that are fixed (``@``), and a prior of w (after a
    space), if there are some.
    """

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
    latent = f"@{metadata['latent']}" if metadata.get("latent") else ""
    parts = f"{metadata['dataset']['fingerprint']}{latent}", str(metadata.get("prior") or "")
    return ProblemInstance(" ".join(filter(None, parts)), float(metadata["lam"]))


def prior_of(fingerprint: str) -> str:
    """Return the prior in the fingerprint of a problem instance; empty if there is none.

    >>> prior_of("5f0c N(0, 4)"), prior_of("5f0c")
    ('N(0, 4)', '')
    """
    return fingerprint.partition(" ")[2]


def columns_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table says of the problem instance of a run: ``COLUMNS``."""
    data, instance = metadata["dataset"], instance_of(metadata)
    values = data["name"], data["source"], data["n"], instance.lam, instance.fingerprint
    return dict(zip(COLUMNS, values, strict=True))
