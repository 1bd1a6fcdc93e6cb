"""Multiclass classification: the oracle enumerates the labels (MP-BCFW, equation 8).

.. code-block:: text

    H_i(w) = 1/n max_y { [y ≠ y_i] + ⟨w, ϕ(x_i,y) − ϕ(x_i,y_i)⟩ }

Exact; of several best labels the lowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar, NamedTuple

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.jit import implements
from ssvm_bench.oracles import joint_features
from ssvm_bench.oracles.base import OracleConfig
from ssvm_bench.oracles.joint_features import JointFeatures
from ssvm_bench.oracles.labeling import LabelingOracle, expect, maximise

# mypy: disable-error-code="no-untyped-def"

CODE_VERSION = 1


@dataclass(frozen=True)
class Config(OracleConfig):
    """Options of the oracle."""

    structures: ClassVar[tuple[str, ...]] = ("independent",)
    has_expectations: ClassVar[bool] = True


class Enumeration(NamedTuple):
    """The compiled oracle."""

    features: JointFeatures


def build(config: Config, dataset: Dataset) -> LabelingOracle:
    """Return the oracle of a dataset whose examples have one label each.

    Raises
    ------
    ConfigError
        If the dataset's labels form a structure.
    """
    config.check_structure(dataset)
    return LabelingOracle(Enumeration(joint_features.build(dataset)))


@implements(maximise, Enumeration)
def _enumerate(oracle, w, i, theta, loss, y):
    truth = oracle.features.truth[oracle.features.offsets[i]]
    best = 0
    highest = theta[0, 0] + (loss if truth != 0 else 0.0)
    for c in range(1, oracle.features.n_labels):
        value = theta[0, c] + (loss if c != truth else 0.0)
        if value > highest:
            highest = value
            best = c
    y[0] = best


@implements(expect, Enumeration)
def _softmax(oracle, L, unary, moves, mu, nu, work):
    K = oracle.features.n_labels
    highest = unary[0, 0]
    for c in range(1, K):
        highest = max(highest, unary[0, c])
    total = 0.0
    for c in range(K):
        mu[0, c] = exp(unary[0, c] - highest)
        total += mu[0, c]
    for c in range(K):
        mu[0, c] /= total
    return highest + log(total)
