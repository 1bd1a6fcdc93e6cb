"""A constant feature: the bias of a linear predictor, which is regularised as all weights are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ssvm_bench.config.validation import NotNegative
from ssvm_bench.datasets.base import Dataset, SourceConfig


@dataclass(frozen=True)
class BiasConfig(SourceConfig):
    """Options of a dataset with a bias.

    Attributes
    ----------
    bias : float
        The value of a constant feature, the last one, of all examples; 0: none. The larger, the
        less the bias is regularised.
    """

    bias: NotNegative = 0.0

    def with_bias(self, dataset: Dataset) -> Dataset:
        """Return the dataset with the constant feature, if there is to be one."""
        if self.bias == 0.0:
            return dataset
        x = dataset.x
        column = np.full((x.shape[0], 1), self.bias)
        if np.array_equal(column, column.astype(x.dtype)):
            column = column.astype(x.dtype)
        if isinstance(x, np.ndarray):
            return dataset.derived(x=np.hstack((x, column)))
        from scipy.sparse import csr_array, hstack

        return dataset.derived(x=csr_array(hstack((x, csr_array(column)), format="csr")))
