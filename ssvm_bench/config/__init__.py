"""From the words of a command line to typed configs.

``catalog`` finds and reads YAML files, ``validation`` turns plain values into dataclasses,
``schema`` says what a run is and which folder is its own, ``overrides`` reads a command line (the
only importer of Hydra), ``compose`` makes runs of both. Import the module that you need: this
package imports none of them, so that ``ssvm-bench --help`` stays quick.
"""

ALTERED = "real (altered)"
"""Raw files with another checksum than the known ones; ``dataset.trust=true`` accepts them."""

SIMULATED = "drawn"
"""Data that the program simulates, as the paper does: there is no file of them."""

GENUINE = ("real", SIMULATED)
"""What papers use. Both are shown together, and never with anything else."""

LOADED_FROM = (*GENUINE, ALTERED, "synthetic")
"""Where a loaded dataset came from."""

SOURCES = ("auto", "real", "synthetic")
"""What can be asked for; ``auto`` is what can be had."""

ORDERS = ("dataset", "shuffled", "neighbours")
"""In which a dataset's examples can be exported."""


LOCAL = "local"
"""The engine of runs whose processes are started by the program itself."""


def shown_as(source: str) -> str:
    """Return the source that stands for all that are shown together with one.

    >>> shown_as("drawn"), shown_as("synthetic")
    ('real', 'synthetic')
    """
    return "real" if source in GENUINE else source
