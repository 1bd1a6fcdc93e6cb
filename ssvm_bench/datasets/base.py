"""What every dataset gives: examples made of labeled parts.

Example i of n owns the parts ``offsets[i]:offsets[i+1]``. A part (a letter, a digit, later a
superpixel) has one row of ``x`` and one label of ``y``. A multiclass problem is the case of one
part an example.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import numpy as np

from ssvm_bench.errors import ConfigError


@dataclass(frozen=True)
class Dataset:
    """Examples made of labeled parts.

    Attributes
    ----------
    name : str
        The dataset's name on the command line.
    source : str
        ``"real"`` or ``"synthetic"``: what the numbers show. Never mixed.
    x : ndarray, shape (parts, f), C-contiguous, uint8 or float64
        Features of the parts.
    y : ndarray of uint8, shape (parts,)
        Ground-truth labels, in ``0 .. n_labels - 1``.
    offsets : ndarray of int64, shape (n + 1,)
        Example i owns the parts ``offsets[i]:offsets[i + 1]``.
    n_labels : int
        Number of labels K of a part.
    structure : str
        How the labels of an example depend on each other: ``"independent"`` or ``"chain"``.
        An oracle says which structures it can handle.
    fold : ndarray of int64, shape (n,), optional
        The fold of each example, where the original data has folds.
    """

    name: str
    source: str
    x: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    n_labels: int
    structure: str
    fold: np.ndarray | None = None
    fingerprint: str = field(default="", init=False)

    def __post_init__(self) -> None:
        """Compute the fingerprint: equal for equal examples, whatever made them."""
        digest = hashlib.sha256()
        for array in (self.x, self.y, self.offsets):
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
        object.__setattr__(self, "fingerprint", digest.hexdigest()[:16])

    @property
    def n(self) -> int:
        """Number of examples."""
        return self.offsets.size - 1

    @property
    def n_features(self) -> int:
        """Number of features f of a part."""
        return int(self.x.shape[1])

    def take(self, examples: np.ndarray) -> Dataset:
        """Return the dataset of the given examples (indices), in that order."""
        lengths = np.diff(self.offsets)[examples]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        first = np.repeat(self.offsets[examples] - offsets[:-1], lengths)
        parts = np.arange(offsets[-1]) + first
        return replace(
            self,
            x=self.x[parts],
            y=self.y[parts],
            offsets=offsets,
            fold=None if self.fold is None else self.fold[examples],
        )


@dataclass(frozen=True)
class SourceConfig:
    """Options of a dataset that has real data and a stand-in.

    Attributes
    ----------
    name, kind : str
        The dataset's name, and the module that loads it.
    source : str
        ``"auto"``: the real data, or the stand-in with a warning; ``"real"``; ``"synthetic"``.
    n_samples : int, optional
        Only the first examples of a fixed permutation, the same for every seed.
    """

    name: str
    kind: str
    source: str = "auto"
    n_samples: int | None = None

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.source not in ("auto", "real", "synthetic"):
            raise ConfigError(
                f"dataset.source must be auto, real or synthetic, got {self.source!r}."
            )
        n = self.n_samples
        if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
            raise ConfigError(f"dataset.n_samples must be null or an integer ≥ 1, got {n!r}.")
