"""Basis of all other packages: errors, files, signals, clocks, random numbers, compiled kernels."""
