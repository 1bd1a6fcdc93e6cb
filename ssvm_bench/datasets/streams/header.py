"""What a file of examples says of itself: everything that must be known before a row is read.

It is a JSON object in the metadata of the Parquet file, with a checksum beside it, and has that of
every row group, so that what is read can be compared with what was written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.config import LOADED_FROM
from ssvm_bench.datasets.checks import MOST_LABELS
from ssvm_bench.datasets.streams.blocks import OF_PARTS
from ssvm_bench.datasets.streams.features import Features
from ssvm_bench.datasets.windows import Windows

KEY, CHECKSUM_KEY = b"ssvm_bench_stream", b"ssvm_bench_stream_checksum"

FORMAT = 2

_PLACES = {"rows": {"columns", "nonzeros"}, "bits": {"bits"}}
"""Form → columns of the file that say where non-zeros are."""

TRAIN = "train"
"""The split of the examples to train on; the others are held out."""


def fingerprint_of(*content: Any) -> str:
    """Return a letter, so that no YAML file or override takes it for a number, and 15 digits."""
    return f"s{hashlib.sha256(repr(content).encode()).hexdigest()[:15]}"


class HeaderError(Exception):
    """The message says what is wrong with a file's metadata."""


class RowGroup(NamedTuple):
    """One row group of the file.

    Attributes
    ----------
    split : str
        ``"train"``, or the name of held-out examples.
    n, parts, nbytes : int
        Its examples, their parts, and the bytes that they take in a `Dataset`.
    seal : int
        The checksum of its content.
    """

    split: str
    n: int
    parts: int
    nbytes: int
    seal: int


@dataclass(frozen=True)
class Header:
    """What is known of a file of examples.

    Attributes
    ----------
    dataset, source : str
        What was exported: its name, and where its data came from.
    structure, n_labels, n_features
        As of a `Dataset`.
    features : Features
        How features are kept.
    dtypes : mapping
        Column of the file → type of its entries.
    largest : float
        The largest absolute value of a feature.
    oracle : str
        The oracle that the dataset brings.
    d : int
        Number of weights, with that oracle.
    row_groups : tuple of RowGroup
        Those to train on come first.
    fingerprint : str
        By `fingerprint_of`: equal for examples to train on that are equal, and kept in the same
        form, however they lie in row groups.
    made : mapping
        How: options, versions, time.
    windows : Windows, optional
        As of a `Dataset`.
    """

    dataset: str
    source: str
    structure: str
    n_labels: int
    n_features: int
    features: Features
    dtypes: Mapping[str, str]
    largest: float
    oracle: str
    d: int
    row_groups: tuple[RowGroup, ...]
    fingerprint: str
    made: Mapping[str, Any]
    windows: Windows | None = None

    @cached_property
    def splits(self) -> dict[str, list[int]]:
        """Name of each split → its row groups."""
        found: dict[str, list[int]] = {}
        for k, group in enumerate(self.row_groups):
            found.setdefault(group.split, []).append(k)
        return found

    def total(self, what: str, split: str = TRAIN) -> int:
        """Return a sum over the row groups of a split: ``n``, ``parts`` or ``nbytes``."""
        return sum(getattr(self.row_groups[k], what) for k in self.splits[split])

    def metadata(self) -> dict[bytes, bytes]:
        """Return what to write."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        content = json.dumps({"format": FORMAT, **values}, allow_nan=False).encode()
        return {KEY: content, CHECKSUM_KEY: hashlib.sha256(content).hexdigest().encode()}

    @classmethod
    def read(cls, metadata: Mapping[bytes, bytes]) -> Header:
        """Return the header of a file with this metadata.

        Raises
        ------
        HeaderError
            There is none, or it is not as written.
        """
        content = metadata.get(KEY)
        if content is None:
            raise HeaderError(
                "it is a Parquet file, but not one that `ssvm-bench data export` wrote"
            )
        if hashlib.sha256(content).hexdigest().encode() != metadata.get(CHECKSUM_KEY):
            raise HeaderError("its metadata have changed since they were written")
        try:
            values = json.loads(content)
            version = values.pop("format")
            if version == FORMAT:
                values["features"] = Features(**values["features"])
                values["row_groups"] = tuple(RowGroup(*each) for each in values["row_groups"])
                if "windows" in values:
                    canvas, window, step = values["windows"]
                    values["windows"] = Windows(tuple(canvas), tuple(window), step)
                header = cls(**values)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise HeaderError("its metadata are not as this program writes them") from None
        if version != FORMAT:
            raise HeaderError(
                f"its layout has version {version!r}; this program reads {FORMAT}: export it again"
            )
        if not header._is_sound():
            raise HeaderError("its metadata are not as this program writes them")
        return header

    def _is_sound(self) -> bool:
        """Tell whether all values are of the kind, and in the range, that readers rely on."""
        counts = [number for group in self.row_groups for number in group[1:4]]
        seals = [group.seal for group in self.row_groups]
        numbers = (self.n_labels, self.n_features, self.d, *counts)
        texts = (self.dataset, self.structure, self.oracle, self.fingerprint)
        first = self.row_groups[0].split if self.row_groups else ""
        try:
            kinds = {name: np.dtype(dtype).kind for name, dtype in self.dtypes.items()}
        except (TypeError, AttributeError):
            return False
        needed = {"y", "x"} | _PLACES.get(self.features.form, set())
        return (
            all(type(number) is int and number >= 0 for number in [*numbers, *seals])
            and all(isinstance(text, str) for text in texts)
            and self.n_labels <= MOST_LABELS
            and self.n_features >= 1
            and min(counts, default=0) >= 1
            and first == TRAIN
            and self.source in LOADED_FROM
            and isinstance(self.largest, float)
            and self.features.is_known
            and needed <= kinds.keys()
            and set(kinds) & OF_PARTS - {"edges"} == needed
            and set(kinds.values()) <= set("iuf")
            and self.dtypes["x"] == self.features.stored
            and self.dtypes.get("bits", "|u1") == "|u1"
        )
