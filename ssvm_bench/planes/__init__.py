"""φ^i and the working sets W_i of all terms: how they are stored, and passes over them.

Three kinds of storage implement the operations of :mod:`~ssvm_bench.planes.operations`: labelings,
where φ^i is kept as label marginals; rows over the coordinates that the planes of a term touch; and
rows of terms whose planes are all given at the beginning. Solvers hold a
:class:`~ssvm_bench.planes.dual_iterate.DualIterate`, and do not see the storage.
"""
