"""The BCFW poster (Jaggi et al., ICML 2013).

The claims are about OCR at three λ, in passes and calls of the oracle. The poster's cutting-plane
method is taken to be 1-slack without a cache, as in BMRM. Comparisons with other cutting-plane
methods, comparisons in seconds, and self-checks are not counted.
"""

from ssvm_bench.claims.paper import Paper
from ssvm_bench.papers.bcfw_poster import measures, rates, rivals, theorems

PAPER = Paper.of(
    __file__, measures=vars(measures) | vars(theorems), kinds=(rivals.KIND, rates.KIND)
)
