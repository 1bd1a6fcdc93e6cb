"""From the words of a command line to typed configs.

``catalog`` finds and reads YAML files, ``validation`` turns plain values into dataclasses,
``schema`` defines a run and its folder, ``overrides`` parses a command line (the only importer of
Hydra), ``compose`` builds runs from files and overrides. Import the module that you need: this
package imports none of them, so that ``ssvm-bench --help`` stays quick.
"""

ALTERED = "real (altered)"
"""Source of raw files with unknown checksums; ``dataset.trust=true`` accepts them."""

SIMULATED = "drawn"
"""Source of data that the program simulates as the paper does, without files."""

GENUINE = ("real", SIMULATED)
"""Sources of the data that papers use. Results on them are never shown with those on others."""

LOADED_FROM = (*GENUINE, ALTERED, "synthetic")
"""Where a loaded dataset came from."""

SOURCES = ("auto", "real", "synthetic")
"""Sources that can be requested; ``auto``: real data if available or on board, else synthetic."""

ORDERS = ("dataset", "shuffled", "neighbours")
"""Orders in which a dataset's examples can be exported."""

FORMATS = ("columns", "svmlight", "npz")
"""Formats of a user's own file."""

LOCAL = "local"
"""The engine whose processes the program starts itself."""


def shown_as(source: str) -> str:
    """Return the source under which results on a source are shown.

    >>> shown_as("drawn"), shown_as("synthetic")
    ('real', 'synthetic')
    """
    return "real" if source in GENUINE else source
