"""``StructuredSVM``, with its own options but for the gap or the number of passes at its end."""

from ssvm_bench import StructuredSVM


def train(X, y, structure, **options):
    return StructuredSVM(structure, **options).fit(X, y).predict
