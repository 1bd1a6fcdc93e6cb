"""A problem instance: what two runs must have in common for their values to be comparable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias


class ProblemInstance(NamedTuple):
    """The fingerprint of the data, followed by details of the objective; and its λ or ν.

    These details are the fixed latent values (after ``@``) and, after a space, the prior of w, the
    kernel, or the name of the objective in a family with several.
    """

    fingerprint: str
    lam: float


COLUMNS = ("dataset", "source", "n", "lam", "fingerprint")
"""Columns that describe a problem instance in a table."""


class Best(NamedTuple):
    """The lowest primal and the highest dual value seen on a problem instance."""

    primal: float
    dual: float


BestValues: TypeAlias = Mapping[ProblemInstance, Best]
"""As `optima.reference` returns them."""


def instance_of(metadata: Mapping[str, Any]) -> ProblemInstance:
    """Return the problem instance of a run."""
    latent = f"@{metadata['latent']}" if metadata.get("latent") else ""
    named = metadata.get("prior") or metadata.get("objective")
    parts = f"{metadata['dataset']['fingerprint']}{latent}", str(named or "")
    return ProblemInstance(" ".join(filter(None, parts)), float(metadata["lam"]))


def named_in(fingerprint: str) -> str:
    """Return the details of the objective in a problem instance's fingerprint; mostly empty.

    >>> named_in("5f0c N(0, 4)"), named_in("5f0c softmax, linear"), named_in("5f0c")
    ('prior N(0, 4)', 'softmax, linear', '')
    """
    named = fingerprint.partition(" ")[2]
    return f"prior {named}" if named.startswith("N(") else named


def weight_in(fingerprint: str) -> str:
    """Return the letter of the regulariser's weight: ν if the objective has a name, else λ."""
    named = named_in(fingerprint)
    return "ν" if named and not named.startswith(("prior", "kernel")) else "λ"


def columns_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of ``COLUMNS`` for the problem instance of a run."""
    data, instance = metadata["dataset"], instance_of(metadata)
    values = data["name"], data["source"], data["n"], instance.lam, instance.fingerprint
    return dict(zip(COLUMNS, values, strict=True))
