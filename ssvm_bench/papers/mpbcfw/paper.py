"""The MP-BCFW paper (Shah, Kolmogorov, Lampert, CVPR 2015).

The paper's times of an oracle call, a plane's evaluation and a visit are its costs, set by options.
They are written only in ``each`` of the experiment ``mpbcfw_costs``, which also runs with them.

.. code-block:: text

    cost_call     c, the time of an oracle call (section 4.1)
    cost_visit    v = c (1 − s) / s, with s the oracle's share of BCFW's time (section 4.1)
    cost_plane    d · 3 µs / 2560: ten inner products over 256 features are a call on USPS
"""

from ssvm_bench.claims.paper import Paper
from ssvm_bench.papers.mpbcfw import measures, tables

PAPER = Paper.of(__file__, measures=vars(measures), kinds=tables.KINDS)
