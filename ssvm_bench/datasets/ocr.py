"""OCR letters (Kassel, Taskar): handwritten words, one chain of letters each.

The raw file has one line per letter: id, letter, next_id (−1 ends a word), word_id, position, fold,
and 16 × 8 pixels, 0 or 1, row by row. The first (capital) letter of every word was removed.
The ten folds are of about the same size. Some can be chosen for training; the others are then the
test set.

The same letters are on board, packed to bits: ``on_board/SOURCE.md`` describes that file.

References
----------
B. Taskar, C. Guestrin, D. Koller: Max-margin Markov networks. NIPS 2003.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.random import permutation
from ssvm_bench.config.validation import one_of
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.sources import ParsedFile, home, of_package

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
BIASES = {"none": 0, "constant": 1, "ends": 3}
"""Choice of features that do not come from pixels → their number."""

CELL = (16, 8)
N_COLUMNS = 6 + CELL[0] * CELL[1]
WORDS_PER_FOLD = np.array([626, 704, 684, 698, 693, 651, 739, 717, 690, 675])
# number of words of each length 0..14
WORDS_PER_LENGTH = np.array([0, 0, 0, 1283, 0, 568, 768, 695, 750, 1047, 584, 304, 298, 313, 267])
N_WORDS = int(WORDS_PER_LENGTH.sum())


@dataclass(frozen=True)
class Config(SourceConfig):
    """Options of the words.

    Attributes
    ----------
    folds : tuple of int, optional
        The folds to train on, sorted; the words of the others are held out as ``"test"``. None, or
        all ten: nothing is held out.
    biases : str
        Features that do not come from pixels: ``"none"``; ``"constant"``: 1 for every letter;
        ``"ends"``: that one, and two that are 1 for the first and for the last letter of a word.
    """

    folds: tuple[int, ...] | None = None
    biases: Annotated[str, one_of(tuple(BIASES))] = "none"

    def __post_init__(self) -> None:
        """Check the folds and sort them; all ten become None."""
        super().__post_init__()
        if self.folds is None:
            return
        known = range(WORDS_PER_FOLD.size)
        if not self.folds or len(set(self.folds)) < len(self.folds) or set(self.folds) - set(known):
            raise ConfigError(
                f"dataset.folds must be null or different numbers of 0 … {known[-1]}, at least "
                f"one, as in dataset.folds=[0,1]; got {list(self.folds)}."
            )
        every = len(self.folds) == len(known)
        object.__setattr__(self, "folds", None if every else tuple(sorted(self.folds)))

    def split(self, words: Dataset) -> Dataset:
        """Return the words of the chosen folds, with the others held out."""
        constant, first, last = biases = np.zeros((3, words.y.size), words.x.dtype)
        constant[:] = first[words.offsets[:-1]] = last[words.offsets[1:] - 1] = 1
        words = words.derived(x=np.column_stack((words.x, *biases[: BIASES[self.biases]])))
        if self.folds is None:
            return words
        assert words.fold is not None
        chosen = np.isin(words.fold, self.folds)
        test = words.take(np.flatnonzero(~chosen))
        return words.take(np.flatnonzero(chosen)).derived(held_out={"test": test})


def load(config: Config) -> Dataset:
    """Return the letters: x uint8 (52152, 128 to 131), words as chains; see `sources.load`."""
    return sources.load(config, RAW, "chain", len(ALPHABET), config.split)


def parse(raw: bytes) -> dict[str, np.ndarray]:
    """Return the arrays ``x, y, offsets, fold`` of a file in this format, of any length.

    Raises
    ------
    ContentError
        Names the first line that is not a letter, or does not continue its word.
    """
    table = reading.read_table(raw, N_COLUMNS, text_columns=(1,))
    letters = table[1].astype(str)
    reading.check_lines(
        letters.isin(list(ALPHABET)), lambda k: f"letter {letters[k]!r}, expected a … z"
    )
    pixels = table.loc[:, 6:].to_numpy()
    binary = (pixels == 0) | (pixels == 1)
    reading.check_lines(binary.all(axis=1), lambda k: "a pixel that is neither 0 nor 1")
    folds = table[5].to_numpy()
    reading.check_lines(
        np.isin(folds, np.arange(WORDS_PER_FOLD.size)),
        lambda k: f"fold {folds[k]:g}, expected 0 … {WORDS_PER_FOLD.size - 1}",
    )

    ids, next_ids = table[0].to_numpy(), table[2].to_numpy()
    last = next_ids == -1
    chained = last | (next_ids == np.append(ids[1:], np.nan))
    reading.check_lines(
        chained, lambda k: f"next_id {next_ids[k]:g}, expected −1 or the id of the next line"
    )
    same_fold = last | (folds == np.append(folds[1:], np.nan))
    reading.check_lines(same_fold, lambda k: "a word that continues in another fold")
    ends = np.flatnonzero(last) + 1
    return {
        "x": pixels.astype(np.uint8),
        "y": letters.to_numpy("U1").view(np.uint32).astype(np.uint8) - np.uint8(ord("a")),
        "offsets": np.concatenate(([0], ends)).astype(np.int64),
        "fold": folds[ends - 1].astype(np.int64),
    }


def identity(text: bytes) -> bytes:
    """Return the content that all copies share; they number letters and words differently."""
    lines = (line.split(None, 6) for line in text.rstrip().split(b"\n"))
    return b"\n".join(
        b" ".join((letter, b"." if next_id == b"-1" else b"", fold, b"".join(pixels.split())))
        for _, letter, next_id, _, _, fold, pixels in lines
    )


def restore(packed: bytes) -> dict[str, np.ndarray]:
    """Return the arrays that `parse` returns, from what ``docs/pack_letters.py`` wrote.

    These are lines of a fold and a word, an empty line, and 128 bits for each letter: first all
    letters a, in the order of the words, at last all letters z.
    """
    lines, _, bits = packed.partition(b"\n\n")
    folds, words = zip(*(line.split() for line in lines.split(b"\n")), strict=True)
    y = np.frombuffer(b"".join(words), np.uint8) - np.uint8(ord("a"))
    x = np.empty((y.size, CELL[0] * CELL[1]), np.uint8)
    x[np.argsort(y, kind="stable")] = np.unpackbits(np.frombuffer(bits, np.uint8)).reshape(x.shape)
    return {
        "x": x,
        "y": y,
        "offsets": np.cumsum([0, *map(len, words)], dtype=np.int64),
        "fold": np.array(folds, dtype=np.int64),
    }


def simulate() -> dict[str, np.ndarray]:
    """Return synthetic words in many handwritings, with the real counts per length and fold."""
    from ssvm_bench.datasets import handwriting

    bits = np.random.PCG64(1729)
    lengths = np.repeat(np.arange(WORDS_PER_LENGTH.size), WORDS_PER_LENGTH)
    lengths = lengths[permutation(N_WORDS, bits)]
    fold = np.repeat(np.arange(WORDS_PER_FOLD.size), WORDS_PER_FOLD)[permutation(N_WORDS, bits)]
    y, ink = handwriting.words(lengths, CELL, bits)
    return {
        "x": ink.astype(np.uint8),
        "y": y.astype(np.uint8),
        "offsets": np.cumsum([0, *lengths]),
        "fold": fold,
    }


RAW = ParsedFile(
    **home("ocr"),
    n=N_WORDS,
    parse=parse,
    identity=identity,
    synthetic=simulate,
    version=1,
    on_board=of_package("ssvm_bench", "datasets/on_board/letters.gz"),
    restore=restore,
)
