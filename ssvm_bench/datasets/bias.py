"""A constant feature: the bias of a linear predictor, which is regularised as all weights are."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
        return with_bias(dataset, self.bias)


def with_bias(dataset: Dataset, bias: float) -> Dataset:
    """Return the dataset with a constant feature, unless that is 0; its vocabulary tells."""
    if bias == 0.0:
        return dataset
    x, vocabulary = dataset.x, dataset.vocabulary
    column = np.full((x.shape[0], 1), bias)
    if np.array_equal(column, column.astype(x.dtype)):
        column = column.astype(x.dtype)
    if vocabulary is not None:
        vocabulary = replace(vocabulary, bias=bias)
    if isinstance(x, np.ndarray):
        return dataset.derived(x=np.hstack((x, column)), vocabulary=vocabulary)
    from scipy.sparse import csr_array, hstack

    wider = csr_array(hstack((x, csr_array(column)), format="csr"))
    return dataset.derived(x=wider, vocabulary=vocabulary)
