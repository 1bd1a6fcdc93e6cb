"""What a campaign says of one fault."""

from typing import NamedTuple


class Case(NamedTuple):
    """One fault, and what the program made of it.

    Attributes
    ----------
    kind : str
        What was done, in a few words; cases are counted by it.
    what : str
        The fault itself, so that it can be made again: the command, the file, the bytes.
    failure : str
        What did not hold; empty if all did.
    """

    kind: str
    what: str
    failure: str = ""
