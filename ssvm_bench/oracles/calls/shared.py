"""A vector that a process and its children see, in memory that has no name.

It is reached through a descriptor that children inherit, and is gone with the last process that has
it, however that ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile

import numpy as np


class SharedVector:
    """A vector of float64.

    Attributes
    ----------
    descriptor : int
        What a child attaches to.
    values : ndarray of float64, shape (size,)
    """

    def __init__(self, size: int) -> None:
        self.descriptor = _anonymous_file()
        os.ftruncate(self.descriptor, max(size, 1) * np.dtype(np.float64).itemsize)
        self.values = attached(self.descriptor, size)

    def close(self) -> None:
        """Give the descriptor back; the memory goes with the last array on it."""
        os.close(self.descriptor)


def attached(descriptor: int, size: int) -> np.ndarray:
    """Return the vector behind a descriptor."""
    return np.frombuffer(mmap.mmap(descriptor, 0), np.float64, size)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):  # Linux
        return os.memfd_create("w")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
