"""What the MP-BCFW paper says of the time of a call, a plane and a visit: its costs, as options.

They stand in one place, which also makes the runs: ``each`` of the experiment ``mpbcfw_costs``.

.. code-block:: text

    cost_call     c, the time of an oracle call (section 4.1)
    cost_visit    v = c (1 − s) / s, with s the oracle's share of BCFW's time (section 4.1)
    cost_plane    d · 3 µs / 2560: ten inner products over 256 features are a call on USPS
"""

from __future__ import annotations

from functools import cache

from ssvm_bench.config import catalog, yaml_files
from ssvm_bench.papers.variants import Costs

EXPERIMENT = "mpbcfw_costs"

DERIVATION = (
    "A call of the oracle takes “only a few microseconds” on USPS (3 µs here), “approximate 50 µs” "
    "on OCR and “1 to 5 milliseconds” on the images (section 4.1): the lower end on the horses, "
    "whose oracle is one cut, and the upper end on Stanford, whose oracle is several.",
    "A visit costs what makes the oracle's share of BCFW's time the paper's: “approximately 15 %” "
    "on USPS, “approximately 70 %” on OCR, “almost 99 %” on the images. It is the Θ(d) work of a "
    "step (section 3.3): 5 to 9 ns for each of the d weights on all four, which is why the ends of "
    "the range belong to these two datasets.",
    "A plane of a working set costs one inner product of d numbers (O(|W_i| d) for an approximate "
    "update, section 3.3), at 1.17 ns a number: on USPS, the call's 3 µs are ten inner products of "
    "256 numbers.",
)


@cache
def read() -> dict[str, Costs]:
    """Return dataset → the paper's costs."""
    content = yaml_files.read(catalog.entries("experiments")[EXPERIMENT])
    prefix = "oracle."
    return {
        dataset: Costs.of({key.removeprefix(prefix): value for key, value in options.items()})
        for dataset, options in content["each"].items()
    }
