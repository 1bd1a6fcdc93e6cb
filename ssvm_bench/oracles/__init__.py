"""Max-oracles: one module a kind; the contract is in :mod:`ssvm_bench.oracles.base`."""
