"""CoNLL-2000 text chunking (Tjong Kim Sang, Buchholz): the phrases of a sentence.

:mod:`ssvm_bench.datasets.own_files.columns` reads the files, which have the columns word, part of
speech and label. A label is B- or I- with one of eleven kinds of phrases, or O. The features are
those of CRFsuite's chunking example: 19 templates over words and tags nearby, and the ends of a
sentence. Sections 15 to 18 of the Wall Street Journal are the training set; section 20 is held out.
Its label I-LST does not occur in training.

References
----------
E. Tjong Kim Sang, S. Buchholz: Introduction to the CoNLL-2000 shared task: chunking. 2000.
N. Okazaki: CRFsuite: a fast implementation of conditional random fields. 2007.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ssvm_bench.base.random import uniform
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.arrays import csr
from ssvm_bench.datasets.base import Dataset, SourceConfig, split_by_fold
from ssvm_bench.datasets.own_files import columns
from ssvm_bench.datasets.reading import GZIP, Arrays, ContentError, ensure
from ssvm_bench.datasets.sources import ParsedFile, home
from ssvm_bench.datasets.vocabulary import UnknownLabels

Config = SourceConfig

N_TRAINING, N_TEST = 8936, 2012
N_SYNTHETIC = 1200, 300
N_COLUMNS = 3
BOUNDARY = "ends"

LABELS = (
    *("B-NP", "B-PP", "I-NP", "B-VP", "I-VP", "B-SBAR", "O", "B-ADJP", "B-ADVP", "I-ADVP"),
    *("I-ADJP", "I-SBAR", "I-PP", "B-PRT", "B-LST", "B-INTJ", "I-INTJ", "B-CONJP", "I-CONJP"),
    *("I-PRT", "B-UCP", "I-UCP"),
)
"""Labels in the order of their first occurrence in the file."""


def load(config: Config) -> Dataset:
    """Return the sentences: x sparse, uint8; see `sources.load`. Held out: ``"test"``."""
    return sources.load(config, RAW, "chain", len(LABELS), lambda all_: split_by_fold(all_, "test"))


def parse(raw: bytes) -> columns.Columns:
    """Return the sentences of a file, of any length.

    Raises
    ------
    ContentError
        Names the first line that does not have three columns.
    """
    found = columns.parse(raw)
    count = len(found.columns)
    ensure(count == N_COLUMNS, f"line 1: {count} columns, expected {N_COLUMNS}")
    return found


def combine(training: columns.Columns, test: columns.Columns) -> Arrays:
    """Return the arrays to keep of all sentences; ``fold`` is 1 for the test set.

    The features are those of the training set; ``names`` holds their names, one per line.

    Raises
    ------
    ContentError
        The training set has a label that is not in `LABELS`.
    """
    if others := sorted({*training.columns[-1].values} - {*LABELS}):
        raise ContentError(f"{others[0]!r} in the training set is no label of a chunk")
    from scipy.sparse import vstack

    vocabulary, first = columns.learned(training, None, BOUNDARY, 1, LABELS)
    sets = first, columns.fields(test, vocabulary)
    x = vstack([each["x"] for each in sets], format="csr")
    sizes = [each["y"].size for each in sets]
    unseen = sets[1].get("unseen", UnknownLabels(np.full(sizes[1], -1), ()))
    return {
        "data": x.data,
        "indices": x.indices,
        "indptr": x.indptr,
        "y": np.concatenate([each["y"] for each in sets]),
        "offsets": np.concatenate((sets[0]["offsets"], sizes[0] + sets[1]["offsets"][1:])),
        "unseen": np.concatenate((np.full(sizes[0], -1), unseen.codes)),
        "unseen_names": np.array(unseen.names, np.str_),
        "fold": np.repeat([0, 1], [each["offsets"].size - 1 for each in sets]),
        "names": np.frombuffer("\n".join(vocabulary.features).encode(), np.uint8),
    }


PHRASES = {
    "NP": ("DT", "JJ", "NN", "NN", "NNS"),
    "VP": ("VBD", "VBZ", "MD", "VB", "RB"),
    "PP": ("IN",),
    "SBAR": ("IN",),
    "ADVP": ("RB",),
    "ADJP": ("RB", "JJ"),
    "O": (",", "CC"),
}
"""Kind of phrase → its parts of speech, in order; a phrase omits some of them at random."""

FOLLOWERS = {
    "NP": ("VP", "VP", "PP", "O"),
    "VP": ("NP", "NP", "PP", "ADJP", "ADVP", "SBAR"),
    "PP": ("NP",),
    "SBAR": ("NP",),
    "ADVP": ("NP", "VP"),
    "ADJP": ("PP", "O"),
    "O": ("NP", "NP", "VP"),
}


def sentences(count: int, seed: int) -> bytes:
    """Return synthetic sentences in the columns word, part of speech and label.

    Phrases form a Markov chain. The words of a part of speech follow Zipf's law; 4 % of the parts
    of speech are replaced at random. All choices are made by words of a ``PCG64``.
    """

    def draws() -> Iterator[float]:
        bits = np.random.PCG64([2000, seed])
        while True:
            yield from uniform((4096,), bits).tolist()

    draw, lines, tags = draws(), [], [tag for among in PHRASES.values() for tag in among]

    def one_of(values: Sequence[str]) -> str:
        return values[int(len(values) * next(draw))]

    for _ in range(count):
        kind = "O"
        for _ in range(3 + int(9 * next(draw))):
            kind = one_of(FOLLOWERS[kind])
            chosen = [tag for tag in PHRASES[kind] if next(draw) < 0.5] or [PHRASES[kind][-1]]
            for k, tag in enumerate(chosen):
                label = "O" if kind == "O" else f"{'I' if k else 'B'}-{kind}"
                word = f"{tag[:2].lower()}{int(500 ** next(draw))}"
                lines.append(f"{word} {one_of(tags) if next(draw) < 0.04 else tag} {label}\n")
        lines.append(". . O\n\n")
    return "".join(lines).encode()


def simulate() -> Arrays:
    """Return the arrays of `combine` for synthetic sentences, fewer than the real ones."""
    return combine(*(parse(sentences(m, seed)) for seed, m in enumerate(N_SYNTHETIC)))


def to_fields(arrays: Arrays) -> dict[str, Any]:
    """Return the fields of all sentences."""
    names = arrays["names"].tobytes().decode().split("\n")
    used = columns.default_templates(N_COLUMNS - 1)
    return {
        "x": csr(arrays, len(names)),
        **{name: arrays[name] for name in ("y", "offsets", "fold")},
        "unseen": UnknownLabels(arrays["unseen"], tuple(arrays["unseen_names"].tolist())),
        "vocabulary": columns.vocabulary_of(LABELS, names, N_COLUMNS, used, BOUNDARY),
    }


RAW = ParsedFile(
    **home("conll2000"),
    n=N_TRAINING,
    synthetic_size=N_SYNTHETIC[0],
    parse=parse,
    combine=combine,
    to_fields=to_fields,
    heads=(GZIP, *(letter.encode() for letter in string.ascii_letters)),
    synthetic=simulate,
    version=2,
)
