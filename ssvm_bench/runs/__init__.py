"""Making runs: one run, what it is put together from, all runs of an experiment, workers."""
