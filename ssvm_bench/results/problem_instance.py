"""A problem instance: what runs have in common whose values may be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias


class ProblemInstance(NamedTuple):
    """The data, by their fingerprint, with what else tells the objective behind it; and its λ or ν.

    That is the latent values that are fixed (``@``); and, after a space, the prior of w, the
    kernel, or what a family says with more than one objective.
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
    named = metadata.get("prior") or metadata.get("objective")
    parts = f"{metadata['dataset']['fingerprint']}{latent}", str(named or "")
    return ProblemInstance(" ".join(filter(None, parts)), float(metadata["lam"]))


def named_in(fingerprint: str) -> str:
    """Return what the fingerprint of a problem instance tells of the objective; mostly nothing.

    >>> named_in("5f0c N(0, 4)"), named_in("5f0c softmax, linear"), named_in("5f0c")
    ('prior N(0, 4)', 'softmax, linear', '')
    """
    named = fingerprint.partition(" ")[2]
    return f"prior {named}" if named.startswith("N(") else named


def weight_in(fingerprint: str) -> str:
    """Return the letter of the regulariser's weight: ν of a family with objectives of its own."""
    named = named_in(fingerprint)
    return "ν" if named and not named.startswith(("prior", "kernel")) else "λ"


def columns_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table says of the problem instance of a run: ``COLUMNS``."""
    data, instance = metadata["dataset"], instance_of(metadata)
    values = data["name"], data["source"], data["n"], instance.lam, instance.fingerprint
    return dict(zip(COLUMNS, values, strict=True))
