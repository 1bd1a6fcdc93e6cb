"""Oracles of few planes a term, all along one line; see :mod:`ssvm_bench.oracles.signed_features`.

Solvers that work on a fixed finite set of planes can have all of them at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ssvm_bench.oracles.labeling import LabelingOracle


class Constraints(NamedTuple):
    """All planes φ^{iy} of all terms but those of the ground truths, which are 0; scaled by 1/n.

    Attributes
    ----------
    term_start : ndarray of int64, shape (n + 1,)
        Term i has the planes ``term_start[i]:term_start[i + 1]``, in the order of their labels.
    indptr, indices, values : ndarrays of int64, int64 and float64
        φ⋆ of every plane, the rows of a CSR matrix of shape (planes, d).
    offset : ndarray of float64, shape (planes,)
        φ∘.
    """

    term_start: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    offset: np.ndarray


class SignedOracle(LabelingOracle):
    """An oracle over signed features."""

    def constraints(self) -> Constraints:
        """Return all planes."""
        features = self.features
        n, wrong = self.n, features.n_labels - 1
        term, label = np.nonzero(np.arange(features.n_labels) != features.truth[:, None])
        factor = features.signs[label] - features.signs[features.truth[term]]
        lengths = np.diff(features.indptr)[term]
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        source = np.arange(indptr[-1]) + np.repeat(features.indptr[term] - indptr[:-1], lengths)
        return Constraints(
            term_start=np.arange(n + 1) * wrong,
            indptr=indptr,
            indices=features.places[source].astype(np.int64),
            values=np.repeat(factor, lengths) * features.values[source] / n,
            offset=features.losses[term, label] / n,
        )
