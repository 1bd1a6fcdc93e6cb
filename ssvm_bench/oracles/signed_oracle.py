"""Oracles of few planes a term, all along one line; see :mod:`ssvm_bench.oracles.signed_features`.

Solvers that work on a fixed finite set of planes can have all of them at once.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.oracles.constraints import Constraints, of_wrong_labels
from ssvm_bench.oracles.labeling import LabelingOracle


class SignedOracle(LabelingOracle):
    """An oracle over signed features."""

    def constraints(self) -> Constraints:
        """Return all planes."""
        features = self.features
        n, wrong = self.n, features.n_labels - 1
        term, label = of_wrong_labels(features.truth, features.n_labels)
        factor = features.signs[label] - features.signs[features.truth[term]]
        narrow = np.int32 if features.values.size < 1 << 31 else np.int64  # half the memory
        bounds = features.indptr.astype(narrow)
        psi = csr_array((features.values, features.places, bounds), (n, self.d))
        star = psi if wrong == 1 else psi[term]
        return Constraints(
            term_start=np.arange(n + 1) * wrong,
            indptr=star.indptr,
            indices=star.indices,
            values=np.repeat(factor, np.diff(star.indptr)) * star.data / n,
            offset=features.losses[term, label] / n,
        )
