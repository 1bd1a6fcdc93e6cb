"""Checks of what an oracle returns, before anything is computed with it.

An index that is out of range would corrupt memory in a kernel, and a labeling that is worse than
the ground truth gives a dual value that bounds nothing:

.. code-block:: text

    H_i(w) = max_y ⟨φ^{iy}, [w 1]⟩ ≥ ⟨φ^{iy_i}, [w 1]⟩ = 0

Kernels return one of the faults below, and stop; functions called from Python raise. An oracle with
``exact = False`` may return labelings worse than the ground truth, but must have no other fault.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.jit import kernel
from ssvm_bench.base.linalg import dot_at
from ssvm_bench.datasets.arrays import label_type

Oracle = Any
"""The class of :mod:`ssvm_bench.oracles.base`, which imports this module."""

# mypy: disable-error-code="no-untyped-def"

NONE, LABEL, BELOW_TRUTH, INDEX, NUMBER, REPEAT = range(6)
"""Faults."""

ROUNDING = 1e-9
"""Rounding error of a value, relative to the size of its summands."""

_SAID = {
    LABEL: "its labeling has a label that does not exist",
    INDEX: "its plane has an index outside 0 … d − 1",
    NUMBER: "its plane has an entry that is not a finite number",
    REPEAT: "its plane has an index twice",
    BELOW_TRUTH: (
        "its labeling scores less than the ground truth, which no maximiser does (an approximate "
        "oracle says `exact = False`)"
    ),
}


def fail(oracle: Oracle, i: int, what: str) -> RunFailedError:
    """Return the error for a wrong result of an oracle at example i; ``what`` is the fault."""
    return RunFailedError(
        f"the oracle {type(oracle).__name__} is wrong at example {i}: {what}. "
        "Test it against brute force"
    )


def check_fault(oracle: Oracle, i: int, fault: int) -> None:
    """Raise ``RunFailedError`` if a kernel has found a fault at example i."""
    if fault != NONE:
        raise fail(oracle, i, _SAID[fault])


def check_labeling(oracle: Oracle, i: int, y: Any, parts: int, n_labels: int) -> None:
    """Raise ``RunFailedError`` unless y is one label, 0 to ``n_labels`` − 1, for each part."""
    kind = label_type(n_labels)
    if not isinstance(y, np.ndarray) or y.dtype != kind or y.shape != (parts,):
        found = f"{y.dtype} of shape {y.shape}" if isinstance(y, np.ndarray) else type(y).__name__
        raise fail(oracle, i, f"its labeling is {found}, not {kind} of shape ({parts},)")
    if not labels_exist(y, y.size, n_labels):
        raise fail(oracle, i, _SAID[LABEL])


def check_loss(oracle: Oracle, i: int, loss: Any) -> float:
    """Return the loss if it is a number, finite and at least 0; else raise ``RunFailedError``."""
    if not isinstance(loss, (float, int, np.floating, np.integer, np.bool_)):
        shape = f" of shape {loss.shape}" if isinstance(loss, np.ndarray) else ""
        found = f"{type(loss).__name__}{shape}"
        raise fail(
            oracle, i, f"loss(i, y) returned {found}, and the loss of a labeling is a number"
        )
    if not 0.0 <= loss < np.inf:
        raise fail(oracle, i, f"the loss of its labeling is {loss}, and losses are at least 0")
    return float(loss)


def check_plane(
    oracle: Oracle, i: int, plane: Any, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return a plane of example i, in the types that kernels take, and its value at w.

    Raises
    ------
    RunFailedError
        If the plane is invalid.
    """
    try:
        indices, values, offset = plane
        indices, values = np.ascontiguousarray(indices), np.ascontiguousarray(values)
        right = indices.dtype.kind in "iu" and values.dtype.kind in "fiu"
        right = right and indices.ndim == 1 and indices.shape == values.shape
        offset = float(offset)
    except (TypeError, ValueError):
        right = False
    if not right:
        raise fail(oracle, i, "its plane is not (indices, values, offset), two arrays of one size")
    indices, values = indices.astype(np.int64, copy=False), values.astype(np.float64, copy=False)
    fault, value = _plane_fault(indices, values, offset, w)
    if fault == REPEAT and np.unique(indices).size == indices.size:
        fault = NONE  # the indices are only unsorted
    check_fault(oracle, i, fault)
    return indices, values, offset, value


def check_value(oracle: Oracle, i: int, y: np.ndarray, value: float, w: np.ndarray) -> None:
    """Raise ``RunFailedError`` if ``value``, n H_i(w) or H_i(w) by labeling y, is below 0.

    A value that is negative by rounding only passes; only negative values need the tolerance.
    """
    if value < 0.0 and oracle.exact:
        size = 0.0
        for labeling in (y, oracle.truth(i)):
            indices, values = oracle.joint_feature(i, labeling)
            size += float(np.abs(values) @ np.abs(w[indices]))
            size += abs(oracle.fixed_score(i, labeling))
        if value < -ROUNDING * max(size, 1.0):
            check_fault(oracle, i, BELOW_TRUTH)


def check_risk(oracle: Oracle, risk: Any) -> None:
    """Raise ``RunFailedError`` unless ``oracle.risk`` has returned a ``Risk``."""
    star = getattr(risk, "star", None)
    if not isinstance(star, np.ndarray) or star.shape != (oracle.d,) or star.dtype != np.float64:
        raise RunFailedError(
            f"the oracle {type(oracle).__name__} is wrong: its risk is no Risk with a star of "
            f"float64 of shape ({oracle.d},)"
        )


def contradicted(oracle: Oracle, w: np.ndarray, earlier: np.ndarray) -> int | None:
    """Return an example whose labeling from ``earlier`` has a higher value at w than that from w.

    So the oracle's labeling at w is no maximiser. None if there is no such example.
    """
    for begin, part in oracle.chunks():
        for i in range(part.n):
            planes = [part.plane(i, part.argmax(at, i)) for at in (w, earlier)]
            now, then = (float(plane.values @ w[plane.indices]) + plane.offset for plane in planes)
            if then - now > ROUNDING * max(abs(now), abs(then), 1.0 / part.n):
                return begin + i
    return None


@kernel
def labels_exist(y, L, n_labels):
    """Return whether the first L entries of y are labels."""
    for l in range(L):
        if y[l] >= n_labels:
            return False
    return True


@kernel
def _plane_fault(indices, values, offset, w):
    """Return a fault and the plane's value at w; any indices that do not rise are `REPEAT`."""
    falls = 0
    for k in range(1, indices.size):
        falls |= np.int64(indices[k] <= indices[k - 1])
    # if indices rise, the first and the last bound all
    for k in range(0, indices.size, 1 if falls else max(indices.size - 1, 1)):
        if indices[k] < 0 or indices[k] >= w.size:
            return INDEX, 0.0
    value = dot_at(values, indices, w) + offset
    if not np.isfinite(value):  # any entry that is not finite causes this, even where w is 0
        for entry in values:
            if not np.isfinite(entry):
                return NUMBER, 0.0
        if not np.isfinite(offset):
            return NUMBER, 0.0
    return REPEAT if falls else NONE, value
