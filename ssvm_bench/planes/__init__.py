"""How φ^i and the working sets W_i of all terms are stored, and the operations on them.

Two storages, chosen by the oracle: :mod:`~ssvm_bench.planes.labelings` (a plane is a labeling, φ^i
its label marginals) and :mod:`~ssvm_bench.planes.rows` (a plane is a row over the coordinates that
the planes of its term touch). The solvers see only the operations of
:mod:`~ssvm_bench.planes.blocks`.
"""
