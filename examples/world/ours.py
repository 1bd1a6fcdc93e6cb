"""``StructuredSVM``, with its own options but for the gap at which it ends."""

from ssvm_bench import StructuredSVM


def train(X, y, structure, gap_tol):
    return StructuredSVM(structure, gap_tol=gap_tol).fit(X, y).predict
