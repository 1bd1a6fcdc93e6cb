"""φ^i and the working sets W_i of all terms: how they are stored, and passes over them.

Storages implement the operations of :mod:`~ssvm_bench.planes.operations`: labelings, where φ^i is
kept as label marginals, rows over the coordinates that the planes of a term touch, and rows given
once, of terms whose planes are all known. Solvers hold a
:class:`~ssvm_bench.planes.dual_iterate.DualIterate`, and see none of them.
"""
