"""What every folder stands on: errors, files, signals, clocks, random numbers, compiled kernels."""
