"""Oracles in the regime of the dual-coordinate paper."""
