"""Features in the types that kernels are compiled for: another type would be compiled anew."""

from __future__ import annotations

from typing import Any

import numpy as np


def normalised(x: Any) -> Any:
    """Return features as uint8, if all are integers of a byte, or else as float64.

    Parameters
    ----------
    x : ndarray or csr_array, shape (parts, f)
    """
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x, _kind(x))
    return x.astype(_kind(x.data))


def _kind(values: np.ndarray) -> type:
    if values.dtype in (np.uint8, np.bool_):
        return np.uint8
    with np.errstate(invalid="ignore"):
        small = values.astype(np.uint8)
    return np.uint8 if np.array_equal(small, values) else np.float64
