"""What is known of the genuine data of a dataset, and what a copy has in its place."""

from __future__ import annotations

from typing import NamedTuple


class Fact(NamedTuple):
    """One of them.

    Attributes
    ----------
    what : str
        Of what.
    found : str
        What the copy has.
    expected : str
        What the genuine data have; empty where that is the same, or not known.
    """

    what: str
    found: str
    expected: str = ""


def fact(what: str, found: object, expected: object) -> Fact:
    """Return a fact that is known."""
    return Fact(what, str(found), "" if found == expected else str(expected))
