"""Whether an oracle, a solver or a dataset keeps its contract, on instances of milliseconds."""
