"""Solvers: one module a family; the contract is in :mod:`ssvm_bench.solvers.base`."""
