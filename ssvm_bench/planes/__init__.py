"""φ^i and the working sets W_i of all terms: how they are stored, and passes over them.

Two storages implement the operations of :mod:`~ssvm_bench.planes.operations`: labelings, where φ^i
is kept as label marginals, and rows over the coordinates that the planes of a term touch. Solvers
hold a :class:`~ssvm_bench.planes.dual_iterate.DualIterate`, and see neither.
"""

from ssvm_bench.planes import labeling_products, labeling_steps, row_products, rows

__all__ = ["labeling_products", "labeling_steps", "row_products", "rows"]
