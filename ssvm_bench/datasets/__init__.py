"""Datasets: one module each, with its real loader and its stand-in."""
