"""The transduction paper (Laude et al. 2018); repeats are other draws, splits or pictures."""

from ssvm_bench.claims.paper import Paper
from ssvm_bench.papers.transduction import accuracies, figures, measures, tables

PAPER = Paper.of(
    __file__,
    measures=vars(measures),
    tables=measures.EACH,
    draws=measures.DRAWS,
    kinds=(*tables.KINDS, accuracies.KIND, *figures.KINDS),
)
