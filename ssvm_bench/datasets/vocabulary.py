"""Names of labels and features, by which files are read.

A run stores the vocabulary of its examples beside its weights. Other files are then read with the
same numbers of labels and features, regardless of their order in the file.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.base.memory import check_room
from ssvm_bench.datasets.arrays import LARGEST, MOST_LABELS, label_type, why_no_label
from ssvm_bench.datasets.arrays import names as checked_names
from ssvm_bench.datasets.reading import ContentError, content, ensure, parsing, unpacked

_ORACLES = {
    "independent": ("multiclass", "binary"),
    "regression": ("regression", None),
    "chain": ("viterbi", "viterbi"),
    "graph": ("alpha_expansion", "mincut"),
}
"""Structure → oracle for any number of labels, and for two."""

LEARNED_POTTS = {"potts": "learned"}
"""The default for graphs of a user: how alike neighbours are is not known."""

PYTHON = "python"
"""Form of a vocabulary that is not used for files; its labels may have any name."""

FORMAT = 1
"""Version of the JSON object; a reader refuses any other."""

BOUNDARIES = ("marks", "ends")
"""What templates can see beyond the ends of a sequence."""

BLANKS = "blanks"
SEPARATORS = {BLANKS: None, "tab": b"\t", "comma": b",", "semicolon": b";", "bar": b"|"}
"""What separates columns: any number of blanks and tabs, or one character."""

OPTION = "dataset.templates"

MOST_TEMPLATES = 1000
"""Each template takes a pass over all parts."""

_REFERENCE = re.compile(r"%x\[\s*(-?\d{1,4})\s*,\s*(\d{1,4})\s*\]")
_IDENTIFIER = re.compile(r"U\w*:")
_CONSTANT = re.compile(r"U\w*:?")
_BIGRAM = re.compile(r"B\w*:?")

_MOST = 1 << 30
"""Largest unpacked vocabulary, in bytes."""

_OF_TEXT, _OF_LIST = 20, 190
"""Bytes of memory for a byte of JSON with short texts, and for each list or mapping, at most."""

_MOST_FEATURES = np.iinfo(np.int32).max


def check_classes(names: Sequence[str]) -> None:
    """Check the names of the labels that occur in training, wherever they come from.

    Raises
    ------
    ContentError
        There is one class only, or a label has an invisible end.
    """
    for name in names:
        ensure(not (why := why_no_label(name)), why)
    if len(names) == 1:
        raise ContentError(f"there is one class only, {shown(names[0])}: there is nothing to learn")


class Template(NamedTuple):
    """A text with references.

    Attributes
    ----------
    text : str
    format : str
        Format that makes the name of a feature from the values of the references.
    references : tuple of (row, column)
        Without one, every part has the feature.
    """

    text: str
    format: str
    references: tuple[tuple[int, int], ...]


def parse_template(text: str, where: str = "") -> Template:
    """Parse a template; the message of an error begins with ``where``.

    Raises
    ------
    ConfigError
        The text has no reference, or one in another notation; or is a bigram of labels.
    """
    if text.startswith("B"):
        raise ConfigError(
            f"{where}{OPTION}: {shown(text)} is a bigram of labels with an observation. Bigrams of "
            "labels are learned without: write a unigram, U…."
        )
    pieces = _REFERENCE.split(text)
    literals = pieces[::3]
    without = len(literals) == 1 and not _CONSTANT.fullmatch(text)
    if without or any("%" in literal for literal in literals):
        what = shown(text or repr(text))
        raise ConfigError(
            f"{where}{OPTION}: {what} is no template. Write what makes a feature as "
            "%x[row,column] of a line relative to this one, and a column from 0: %x[-1,0]/%x[0,1]."
        )
    name, *escaped = (each.replace("{", "{{").replace("}", "}}") for each in (text, *literals))
    filled = "{}".join(escaped)
    rows, columns = [*map(int, pieces[1::3])], map(int, pieces[2::3])
    return Template(
        text,
        filled if _IDENTIFIER.match(text) or not rows else f"{name}={filled}",
        tuple(zip(rows, columns, strict=True)),
    )


def read_templates(given: tuple[str, ...] | Path) -> tuple[str, ...]:
    """Return checked templates; a path is a file of CRF++ templates, or is a template itself.

    Raises
    ------
    ConfigError
        The file cannot be read, or a line is no template; or there are no templates, or too many.
    """
    if isinstance(given, Path) and "%x[" not in str(given):
        try:
            lines = content(given).decode("utf-8-sig").splitlines()
        except (OSError, UnicodeError, ContentError) as error:
            raise ConfigError(f"{OPTION}={given} cannot be read: {error}.") from error
        found = [
            parse_template(line, f"Line {k} of {given}: ").text
            for k, line in enumerate(map(str.strip, lines), 1)
            if line and line[0] != "#" and not _BIGRAM.fullmatch(line)  # these are learned anyway
        ]
        if not found:
            raise ConfigError(f"{OPTION}: there is no template in {given}.")
    else:
        texts = map(str.strip, (str(given),) if isinstance(given, Path) else given)
        found = [parse_template(text).text for text in texts if not _BIGRAM.fullmatch(text)]
    if not 0 < len(found) <= MOST_TEMPLATES:
        raise ConfigError(
            f"{OPTION} must be 1 to {MOST_TEMPLATES} templates, got {len(found)}; leave it out "
            "for the usual ones."
        )
    return tuple(found)


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
    """Names of labels and features, and how they describe the parts of a file.

    Attributes
    ----------
    labels : tuple of str
        Names of the labels 0, …, K − 1.
    form : str
        Format of the files: ``"columns"``, ``"svmlight"`` or ``"npz"``; or `PYTHON`.
    structure : str
        As in a `Dataset`.
    n_features : int
        Number of features of a file.
    features : tuple of str
        Names of the features; empty if they have only numbers.
    columns : int
        Number of columns of a file, including that of the labels; 0 in other forms.
    templates : tuple of str
        Templates that turn columns into features (:mod:`ssvm_bench.datasets.own_files.columns`).
    boundary : str
        What templates see beyond the ends of a sequence.
    bias : float
        Value of an additional last feature of all parts; 0: there is none.
    edge_features : int
        Number of features of an edge in a file.
    zero_based : bool
        Whether the indices in files of the format ``"svmlight"`` begin at 0.
    separator : str
        What separates columns: one of `SEPARATORS`.
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
    edge_features: int = 0
    zero_based: bool = False
    separator: str = BLANKS

    @classmethod
    def of(cls, dataset: Any) -> Vocabulary:
        """Return the vocabulary of a dataset; by default, its label names, for ``.npz`` files."""
        if dataset.vocabulary is not None:
            return dataset.vocabulary
        about = tuple(dataset.label_names), "npz", dataset.structure, dataset.n_features
        return cls(*about, edge_features=dataset.n_edge_features)

    @property
    def of_files(self) -> bool:
        """Whether files have the names of its labels as texts."""
        return self.form != PYTHON

    @property
    def oracles(self) -> tuple[str, ...]:
        """Names of the oracles that fit: the default one, and that of any number of labels."""
        found = self.oracle, *_ORACLES.get(self.structure, ())[:1]
        return tuple(dict.fromkeys(name for name in found if name is not None))

    @property
    def oracle(self) -> str | None:
        """Name of the oracle that fits; None if the structure has no default oracle."""
        return _ORACLES.get(self.structure, (None, None))[len(self.labels) == 2]

    @cached_property
    def number_of_feature(self) -> dict[str, int]:
        """Name of each feature → its number."""
        return {name: k for k, name in enumerate(self.features)}

    def fields(
        self,
        names: Sequence[str],
        codes: np.ndarray,
        place: Callable[[int], str] = "part {}".format,
    ) -> dict[str, Any]:
        """Return the fields ``y`` and ``unseen`` of a `Dataset`.

        Parameters
        ----------
        names : sequence of str
        codes : ndarray of integers, shape (parts,)
            The label of part p is ``names[codes[p]]``.
        place : callable
            Name of part p in messages.

        Raises
        ------
        ContentError
            A label has an invisible end.
        """
        for k, name in enumerate(names):
            if why := why_no_label(name):
                parts = np.flatnonzero(codes == k)
                raise ContentError(f"{place(int(parts[0]))}: {why}" if parts.size else why)
        known = {name: k for k, name in enumerate(self.labels)}
        numbers = np.array([known.get(name, -1) for name in names], np.int64)
        others = numbers < 0
        kind = label_type(len(self.labels))
        found: dict[str, Any] = {"y": np.where(others, 0, numbers).astype(kind)[codes]}
        if others[codes].any():
            there = np.where(others, np.cumsum(others) - 1, -1)[codes]
            found["unseen"] = UnknownLabels(there, tuple(np.array(names, object)[others]))
        return found

    def dumped(self) -> bytes:
        """Return the bytes to write: compressed JSON, the same for equal vocabularies."""
        text = json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, indent=0)
        return gzip.compress(text.encode(), mtime=0)

    @classmethod
    def read(cls, content: bytes, what: str = "The names of labels and features") -> Vocabulary:
        """Return the vocabulary that `dumped` has written; ``what`` begins a message on memory.

        Raises
        ------
        RunFailedError
            It does not fit into memory.
        ContentError
            The content is no vocabulary, or of another version; or no file can be read with it.
        ConfigError
            One of its templates is invalid.
        """
        with parsing("it is no vocabulary"):
            blocks, needed = [], 0
            with unpacked(io.BytesIO(content), _MOST) as stream:
                for block in stream:
                    blocks.append(block)
                    lists = block.count(b"[") + block.count(b"{")
                    needed += _OF_TEXT * len(block) + _OF_LIST * lists
                    check_room(needed, what, "Free memory, or delete that folder and run again.")
            values = json.loads(b"".join(blocks))
            if (version := values.pop("format")) != FORMAT:
                raise ContentError(f"it has format version {version}; this program reads {FORMAT}")
            several = {name for name, value in values.items() if isinstance(value, list)}
            found = cls(**values | {name: tuple(values[name]) for name in several})
            found._check()
            return found

    def _check(self) -> None:
        """Raise an error of `read`, or ``UnicodeError``, if no file can be read with this."""
        for name in ("labels", "features", "templates"):
            texts = getattr(self, name)
            if not isinstance(texts, tuple) or not all(isinstance(each, str) for each in texts):
                raise ContentError(f"its {name} are no list of texts")
            "".join(texts).encode()
        ensure(len({*self.features}) == len(self.features), "its features are not distinct")
        checked_names(list(self.labels), "its labels")
        for name in ("form", "structure", "boundary"):
            ensure(isinstance(getattr(self, name), str), f"its {name} is no text")
        for name, least, most in (
            ("n_features", 1, _MOST_FEATURES),
            ("columns", 0, 1 << 16),
            ("edge_features", 0, _MOST_FEATURES),
        ):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise ContentError(f"its {name} is no integer from {least} to {most}")
        ensure(type(self.zero_based) is bool, "its zero_based is not true or false")
        ensure(self.separator in [*SEPARATORS], "its separator is not known")
        bias = self.bias
        if type(bias) not in (int, float) or not math.isfinite(bias) or abs(bias) > LARGEST:
            raise ContentError("its bias is no number of a feature")
        least = int(self.structure != "regression")
        if not least <= len(self.labels) <= least * MOST_LABELS:
            raise ContentError(f"it has {len(self.labels)} labels, its structure {self.structure}")
        if len(self.features) not in (0, self.n_features):
            raise ContentError(
                f"it has the names of {len(self.features)} features, and n_features is "
                f"{self.n_features}"
            )
        of_columns = self.templates and self.features and self.boundary in BOUNDARIES
        if self.form == "columns" and not (of_columns and self.columns > 1):
            raise ContentError("it lacks what features of columns are made by")
        count = len(self.templates)
        ensure(count <= MOST_TEMPLATES, f"it has {count} templates")
        for text in self.templates:
            used = [column for _, column in parse_template(text).references]
            if max(used, default=0) > self.columns - 2:
                raise ContentError(f"{shown(text)} refers to a column that is not observed")
