"""Synthetic data, for where the real ones cannot be had."""
