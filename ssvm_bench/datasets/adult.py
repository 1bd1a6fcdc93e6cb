"""Adult (Kohavi, Becker): is a person's income above 50,000 dollars a year? Census of 1994.

The format is Platt's, known as a9a. The 14 attributes of a person become 123 features, each 0 or 1,
of which at most one per attribute is 1; numeric attributes are cut into five ranges. The labels −1
and 1 of the file are 0 and 1 here. There is no bias unless ``bias`` adds one.

References
----------
J. Platt: Fast training of support vector machines using sequential minimal optimization. 1998.
C.-C. Chang, C.-J. Lin: LIBSVM: a library for support vector machines. ACM TIST, 2011.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench.base.random import approx_normal
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import BiasConfig, Dataset, split_by_fold, with_bias
from ssvm_bench.datasets.own_files import svmlight
from ssvm_bench.datasets.reading import GZIP, Arrays, check_lines
from ssvm_bench.datasets.sources import ParsedFile, home
from ssvm_bench.datasets.vocabulary import Vocabulary

Config = BiasConfig

N_TRAINING, N_TEST = 32561, 16281
SHARE_RICH = 0.24
"""Share of label 1 among the synthetic examples, as among the real ones."""

LABELS = ("-1", "1")

ATTRIBUTES = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)
"""Number of features per attribute: age, work, weight, education, its years, …, country."""

N_FEATURES = sum(ATTRIBUTES)


def load(config: Config) -> Dataset:
    """Return the people: x sparse, uint8 (32561, 123); see `sources.load`.

    The test set is held out as ``"test"``.
    """

    def split(people: Dataset) -> Dataset:
        return split_by_fold(with_bias(people, config.bias), "test")

    return sources.load(config, RAW, "independent", len(LABELS), split)


def parse(raw: bytes) -> svmlight.SvmlightRows:
    """Return the rows of a file, of any length.

    Raises
    ------
    ContentError
        Names the first line that is malformed, has a label other than ±1, or a value other than 1.
    """
    rows = svmlight.parse(raw)
    rows = rows._replace(x=svmlight.counted(rows, zero_based=False, n_features=N_FEATURES))
    x, y = rows.x, rows.y
    check_lines(np.abs(y) == 1, lambda k: f"label {y[k]:g}, expected −1 or 1")
    row = np.repeat(np.arange(y.size), np.diff(x.indptr))
    good = np.bincount(row[x.data != 1], minlength=y.size) == 0
    check_lines(good, lambda k: "a value that is not 1")
    return rows


def combine(training: svmlight.SvmlightRows, test: svmlight.SvmlightRows) -> Arrays:
    """Return the arrays to keep: CSR of the features, y, and fold, which is 1 for test rows."""
    from scipy.sparse import vstack

    x = vstack((training.x, test.x), format="csr")
    return {
        "data": x.data.astype(np.uint8),
        "indices": x.indices.astype(np.uint8),
        "indptr": x.indptr.astype(np.int32),
        "y": np.concatenate((training.y, test.y)) > 0,
        "fold": np.repeat([0, 1], [training.y.size, test.y.size]),
    }


def simulate() -> Arrays:
    """Return as many synthetic people as there are real ones, with the same attributes.

    Attributes follow a latent tendency of the person, the first ones most. The categories of an
    attribute follow Zipf's law, the first one being the most frequent. Words of a ``PCG64`` are
    combined by + − × / √, comparisons and sorting only, so all machines agree.
    """
    bits, m = np.random.PCG64(1729), N_TRAINING + N_TEST
    tendency, score_noise = approx_normal((2, m), bits)
    columns = np.empty((m, len(ATTRIBUTES)), np.int64)
    shares = np.linspace(0.8, 0.1, len(ATTRIBUTES))
    for j, (size, share) in enumerate(zip(ATTRIBUTES, shares, strict=True)):
        value = share * tendency + np.sqrt(1 - share * share) * approx_normal((m,), bits)
        frequencies = np.cumsum(1 / np.arange(1.0, size + 1))
        bounds = np.quantile(-value, frequencies[:-1] / frequencies[-1])
        columns[:, j] = sum(ATTRIBUTES[:j]) + np.searchsorted(bounds, -value)
    score = tendency + 0.4 * score_noise
    return {
        "data": np.ones(columns.size, np.uint8),
        "indices": columns.ravel().astype(np.uint8),
        "indptr": (np.arange(m + 1) * len(ATTRIBUTES)).astype(np.int32),
        "y": score > np.quantile(score, 1 - SHARE_RICH),
        "fold": np.repeat([0, 1], [N_TRAINING, N_TEST]),
    }


def to_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of all people, with their vocabulary."""
    vocabulary = Vocabulary(LABELS, svmlight.FORMAT, "independent", N_FEATURES)
    return {**fields, "y": fields["y"].astype(np.uint8), "vocabulary": vocabulary}


class LibsvmFiles(ParsedFile):
    """The two files. Their home page has them unpacked, under names without ``.gz``."""

    def address(self, part: Path) -> str:
        """Return the file's address."""
        return super().address(part.with_suffix(""))


RAW = LibsvmFiles(
    **home("adult"),
    n=N_TRAINING,
    parse=parse,
    combine=combine,
    to_fields=to_fields,
    n_features=N_FEATURES,
    heads=(GZIP, b"+1 ", b"-1 "),
    synthetic=simulate,
    version=2,
)
