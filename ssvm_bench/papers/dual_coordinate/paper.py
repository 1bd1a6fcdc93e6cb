"""The dual-coordinate paper (Ramanan 2013).

The batch algorithm is ``dcd`` with M = 0, which only sweeps over all terms. The online algorithm is
``dcd_online`` with the schedule ``gap``. The bench measures what traces do not record.
"""

from ssvm_bench.claims.paper import Paper
from ssvm_bench.papers.dual_coordinate import figures, measures

PAPER = Paper.of(__file__, measures=vars(measures), kinds=(figures.KIND,))
