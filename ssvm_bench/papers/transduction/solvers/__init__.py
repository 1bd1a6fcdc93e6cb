"""Solvers of transduction: a classifier and labels, found together."""
