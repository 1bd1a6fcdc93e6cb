"""Number plates: images of text, to be cut into their characters (Uřičář and Franc 2012, 4.3).

An example is an image of 33 rows and as many columns as its text needs; a part is a column, its
features are the 33 grey values, less the mean of the image and over their standard deviation. Its
label is a pair of a character and a column in it, of which there are 123 in the built-in data:
33 · 123 = 4059 weights, as many as in the report. The report's images are not public: those built
in are simulated (:mod:`ssvm_bench.datasets.synthetic.number_plates`): 6788 to train on, and 846
each for validation and test.

A folder of one's own has, beside the images, all of one height, two tables
(:mod:`ssvm_bench.datasets.picture_table`):

=====================  =============================================================================
``segmentations.csv``  ``image,split,segments``: characters with the column where each begins, from
                       0, as ``A@0 1@9 B@17``
``widths.csv``         ``character,width``: of every character, in columns
=====================  =============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from ssvm_bench.datasets import picture_table
from ssvm_bench.datasets.base import SEGMENTS, Dataset
from ssvm_bench.datasets.cache import Arrays
from ssvm_bench.datasets.picture_table import TableConfig
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.structures import Alphabet
from ssvm_bench.datasets.synthetic import number_plates

TABLE, WIDTHS = "segmentations.csv", "widths.csv"
N_TRAINING, N_HELD_OUT = 6788, 1692
VERSION = 1


@dataclass(frozen=True)
class Config(TableConfig):
    """Options of the plates."""

    TABLES: ClassVar[tuple[str, ...]] = (TABLE, WIDTHS)


def load(config: Config) -> Dataset:
    """Return the plates: x float32 (columns, rows), chains of columns that are segments.

    Raises
    ------
    ConfigError
        There are fewer than ``n_samples``.
    RunFailedError
        What is in the folder cannot be used.
    """
    return picture_table.split(config, with_images(config)[0])


def with_images(config: Config) -> tuple[Dataset, list[np.ndarray]]:
    """Return all plates, those held out as well, and their images: uint8 (rows, columns) each."""
    drawn = partial(number_plates.arrays, N_TRAINING, N_HELD_OUT)
    found = picture_table.arrays(config, VERSION, drawn, _read)
    dataset = Dataset(
        name=config.name,
        source=config.source,
        x=_features(found["pixels"], found["offsets"]),
        y=found["y"],
        offsets=found["offsets"],
        n_labels=int(found["widths"].sum()),
        structure=SEGMENTS,
        fold=found["fold"],
        admissible=Alphabet(tuple(found["names"].tolist()), tuple(found["widths"].tolist())),
    )
    return dataset, np.split(found["pixels"].T, found["offsets"][1:-1], axis=1)


def _features(pixels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return grey values less the mean of each image, over their standard deviation."""
    counts = np.diff(offsets) * pixels.shape[1]
    exact = pixels.astype(np.int64)  # integers: the same sums on every machine
    total = np.add.reduceat(exact.sum(axis=1), offsets[:-1])
    squares = np.add.reduceat((exact**2).sum(axis=1), offsets[:-1])
    mean = total / counts
    deviation = np.sqrt(np.maximum(squares / counts - mean**2, 1.0))
    image = np.repeat(np.arange(counts.size), np.diff(offsets))
    return ((pixels - mean[image, None]) / deviation[image, None]).astype(np.float32)


def _read(folder: Path) -> Arrays:
    """Return the plates of a folder; raise `ContentError` where they contradict each other."""
    alphabet = _alphabet(picture_table.lines(folder, WIDTHS, ("character", "width")))
    table = picture_table.lines(folder, TABLE, (*picture_table.HEAD, "segments"))
    fold = picture_table.folds(table)
    columns: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for line in table:
        seen = picture_table.image(folder, line["image"])
        if columns and seen.shape[0] != columns[0].shape[1]:
            raise ContentError(
                f"{line['image']} is {seen.shape[0]} pixels high, and {table[0]['image']} "
                f"{columns[0].shape[1]}"
            )
        columns.append(seen.T)
        labels.append(_labels(line["image"], line["segments"], alphabet, seen.shape[1]))
    return {
        "pixels": np.concatenate(columns),
        "y": np.concatenate(labels),
        "offsets": np.cumsum([0, *map(len, labels)]),
        "fold": fold,
        "names": np.array(alphabet.names),
        "widths": np.array(alphabet.widths),
    }


def _alphabet(table: picture_table.Lines) -> Alphabet:
    widths: dict[str, int] = {}
    for line in table:
        name, width = line["character"], line["width"]
        if not width.isdecimal() or int(width) < 1:
            raise ContentError(f"the width of character {name!r} is {width!r}, not 1 or more")
        if not name or "@" in name or len(name.split()) != 1 or name in widths:
            raise ContentError(
                f"a character of {WIDTHS} is {name!r}: empty, there twice, or with @"
            )
        widths[name] = int(width)
    return Alphabet(tuple(widths), tuple(widths.values()))


def _labels(image: str, text: str, alphabet: Alphabet, W: int) -> np.ndarray:
    """Return the labels of the columns of an image, whose segments must fill it."""
    characters, end = [], 0
    for segment in text.split():
        name, _, begin = segment.rpartition("@")
        if not begin.isdecimal():
            raise ContentError(f"the segments of {image} have {segment!r}, not CHARACTER@COLUMN")
        if name not in alphabet.names:
            raise ContentError(f"{image} has the character {name!r}, without a width in {WIDTHS}")
        if int(begin) != end:
            what = "leave a gap before" if int(begin) > end else "overlap at"
            raise ContentError(
                f"the segments of {image} {what} {segment}: the one before ends at column {end - 1}"
            )
        characters.append(alphabet.names.index(name))
        end += alphabet.widths[characters[-1]]
    if end != W or not characters:
        raise ContentError(
            f"the segments of {image} end at column {end - 1}, and it has {W} columns"
        )
    return alphabet.columns(characters)
