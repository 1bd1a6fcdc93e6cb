"""Names of labels and features, with which files are read.

A run keeps the vocabulary of its examples beside its weights. Other files are then read into the
same labels and features, whatever their order there.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.datasets import reading
from ssvm_bench.datasets.checks import label_type
from ssvm_bench.datasets.reading import ContentError

_ORACLES = {
    ("independent", False): "multiclass",
    ("independent", True): "binary",
    ("regression", False): "regression",
    ("chain", False): "viterbi",
    ("chain", True): "viterbi",
    ("graph", False): "alpha_expansion",
    ("graph", True): "mincut",
}
"""Structure, and whether there are two labels → oracle."""

FORMAT = 1
"""Version of the JSON object; a reader refuses any other."""


class UnknownLabels(NamedTuple):
    """Labels of parts that do not occur in training.

    Attributes
    ----------
    codes : ndarray of int64, shape (parts,)
        −1 where the label is known.
    names : tuple of str
        The label of any other part p is ``names[codes[p]]``.
    """

    codes: np.ndarray
    names: tuple[str, ...]

    @property
    def mask(self) -> np.ndarray:
        """Whether each part's label is unknown."""
        return self.codes >= 0


@dataclass(frozen=True)
class Vocabulary:
    """Names, and how the parts of a file are described by them.

    Attributes
    ----------
    labels : tuple of str
        Names of the labels 0, …, K − 1.
    form : str
        Of the files: ``"columns"``, ``"svmlight"`` or ``"npz"``.
    structure : str
        As of a `Dataset`.
    n_features : int
        Number of features of a file.
    features : tuple of str
        Their names; empty where they are known by their numbers.
    columns : int
        Columns of a file, that of the labels counted; 0 in other forms.
    templates : tuple of str
        What makes features of columns (:mod:`ssvm_bench.datasets.own_files.columns`).
    boundary : str
        What templates see beyond the ends of a sequence.
    bias : float
        Another feature, the last one, which is this for all parts; 0: there is none.
    """

    labels: tuple[str, ...]
    form: str
    structure: str
    n_features: int
    features: tuple[str, ...] = ()
    columns: int = 0
    templates: tuple[str, ...] = ()
    boundary: str = ""
    bias: float = 0.0

    @property
    def oracle(self) -> str | None:
        """Name of the oracle that fits; None: the structure is none of ours."""
        return _ORACLES.get((self.structure, len(self.labels) == 2))

    @cached_property
    def number_of_label(self) -> dict[str, int]:
        """Name of each label → its number."""
        return {name: k for k, name in enumerate(self.labels)}

    @cached_property
    def number_of_feature(self) -> dict[str, int]:
        """Name of each feature → its number."""
        return {name: k for k, name in enumerate(self.features)}

    def fields(self, names: Sequence[str], codes: np.ndarray) -> dict[str, Any]:
        """Return the fields ``y`` and ``unseen`` of a `Dataset`.

        Parameters
        ----------
        names : sequence of str
        codes : ndarray of integers, shape (parts,)
            The label of part p is ``names[codes[p]]``.
        """
        known = self.number_of_label
        numbers = np.array([known.get(name, -1) for name in names], np.int64)
        others = numbers < 0
        kind = label_type(len(self.labels))
        found: dict[str, Any] = {"y": np.where(others, 0, numbers).astype(kind)[codes]}
        if others[codes].any():
            there = np.where(others, np.cumsum(others) - 1, -1)[codes]
            found["unseen"] = UnknownLabels(there, tuple(np.array(names, object)[others]))
        return found

    def dumped(self) -> bytes:
        """Return what to write: compressed JSON, the same bytes for equal vocabularies."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, indent=0)
        return gzip.compress(text.encode(), mtime=0)

    @classmethod
    def read(cls, content: bytes) -> Vocabulary:
        """Return the vocabulary that `dumped` has written.

        Raises
        ------
        ContentError
            It is none, or of another version.
        """
        with reading.parsing("it is no vocabulary"):
            values = json.loads(gzip.decompress(content))
            if (version := values.pop("format")) != FORMAT:
                raise ContentError(f"it has format version {version}; this program reads {FORMAT}")
            lists = {name for name, value in values.items() if isinstance(value, list)}
            return cls(**values | {name: tuple(values[name]) for name in lists})
