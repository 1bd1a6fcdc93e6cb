"""One folder per paper: its claims, how they are measured, its figures and its solvers' looks.

The module ``paper`` of each folder defines ``PAPER``, a :class:`ssvm_bench.claims.paper.Paper`.
:func:`ssvm_bench.config.registry.papers` finds the folders; there is no other list of papers.
"""
