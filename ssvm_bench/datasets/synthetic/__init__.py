"""Synthetic data, which replace real data that are not available."""
