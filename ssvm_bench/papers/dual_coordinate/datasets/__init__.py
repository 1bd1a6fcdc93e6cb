"""Simulated data in the regime of the dual-coordinate paper."""
