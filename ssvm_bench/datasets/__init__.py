"""Datasets: one module each, with the loader of its real data and synthetic ones."""
