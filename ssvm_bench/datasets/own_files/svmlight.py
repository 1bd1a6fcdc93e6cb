"""LIBSVM's format, as users bring it: two classes or more, called by integers.

With comments, and blank lines; parsed by :mod:`ssvm_bench.datasets.tables`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ssvm_bench.datasets.own_files.numbers import normalised
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.tables import Rows, parse_libsvm
from ssvm_bench.datasets.vocabulary import Vocabulary

FORM = "svmlight"


def parse(raw: bytes) -> Rows:
    """Return the rows of an unpacked file; raise `ContentError` where one is none."""
    return parse_libsvm(raw, comments=True)


def learned(found: Rows) -> Vocabulary:
    """Return the vocabulary of a file to train on; labels are numbered as they rise.

    Raises
    ------
    ContentError
        A label is no integer; or all labels are the same.
    """
    wrong = found.y != np.rint(found.y)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ContentError(
            f"line {found.lines[k]}: label {found.y[k]:g}, and classes are called by integers (a "
            "regression comes as .npz, with structure='regression')"
        )
    labels = np.unique(found.y)
    if labels.size < 2:
        raise ContentError(f"all rows have the label {labels[0]:g}: there is nothing to learn")
    return Vocabulary(tuple(map(_name, labels)), FORM, "independent", int(found.x.shape[1]))


def fields(found: Rows, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the fields of a `Dataset`; features that the vocabulary has not are passed over."""
    x = found.x[:, : vocabulary.n_features]
    x.resize(found.y.size, vocabulary.n_features)
    names, codes = np.unique(found.y, return_inverse=True)
    return {
        "x": normalised(x),
        "offsets": np.arange(found.y.size + 1),
        **vocabulary.fields([*map(_name, names)], codes),
    }


def _name(label: float) -> str:
    return f"{label:.17g}"
