"""The execution of runs: components, loop, checkpoints, status, predictions and contracts."""
