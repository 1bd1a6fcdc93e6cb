"""Oracles of few planes a term, all along one line; see :mod:`ssvm_bench.oracles.signed_features`.

Solvers that work on a fixed finite set of planes can have all of them at once.
"""

from __future__ import annotations

import numpy as np

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
