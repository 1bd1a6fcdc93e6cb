"""Sentences in columns, of a small grammar: a stand-in for CoNLL-2000.

Phrases follow one another as a Markov chain has it, each with its parts of speech; words are drawn
by Zipf's law, and some are both nouns and verbs. A share of the tags is wrong, as a tagger's are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ssvm_bench.base.random import uniform

SIZES = 1200, 300
"""Sentences to train on, and held out."""

_WRONG_TAGS = 0.04
_WORDS = {"NN": 900, "NNS": 500, "VBD": 400, "VBZ": 300, "JJ": 400, "RB": 120, "IN": 40, "DT": 6}
_SHARED = 200  # the first nouns are also forms of verbs

_PHRASES = {
    "NP": (("DT", "NN"), ("DT", "JJ", "NN"), ("NNS",), ("JJ", "NNS"), ("NN", "NN"), ("PRP",)),
    "VP": (("VBD",), ("VBZ",), ("MD", "VB"), ("VBZ", "RB", "VBN"), ("TO", "VB")),
    "PP": (("IN",),),
    "SBAR": (("IN",),),
    "ADVP": (("RB",), ("RB", "RB")),
    "ADJP": (("JJ",), ("RB", "JJ")),
    "O": ((",",), ("CC",)),
}
_NEXT = {
    "": ("NP", "NP", "NP", "PP", "ADVP"),
    "NP": ("VP", "VP", "VP", "PP", "PP", "O"),
    "VP": ("NP", "NP", "PP", "ADJP", "ADVP", "SBAR"),
    "PP": ("NP",),
    "SBAR": ("NP",),
    "ADVP": ("NP", "VP", "O"),
    "ADJP": ("PP", "O"),
    "O": ("NP", "NP", "VP"),
}


def made() -> tuple[bytes, bytes]:
    """Return the texts of both files."""
    draws = _draws()
    first, second = ("".join(_sentence(draws) for _ in range(size)).encode() for size in SIZES)
    return first, second


def _draws() -> Iterator[float]:
    bits = np.random.PCG64(2000)
    while True:
        yield from uniform((4096,), bits).tolist()


def _sentence(draws: Iterator[float]) -> str:
    lines, kind = [], ""
    for _ in range(3 + int(9 * next(draws))):
        kind = _one_of(_NEXT[kind], draws)
        for k, tag in enumerate(_one_of(_PHRASES[kind], draws)):
            label = "O" if kind == "O" else f"{'I' if k else 'B'}-{kind}"
            lines.append(_line(tag, label, draws))
    return "".join([*lines, ". . O\n", "\n"])


def _line(tag: str, label: str, draws: Iterator[float]) -> str:
    size = _WORDS.get(tag, 3)
    rank = int(size ** next(draws))  # log-uniform: Zipf's law
    stem = "NN" if tag.startswith("VB") and rank < _SHARED else tag
    seen = tag if next(draws) >= _WRONG_TAGS else _one_of(tuple(_WORDS), draws)
    word = tag if tag == "," else f"{stem.lower()}{rank}"
    return f"{word} {seen} {label}\n"


def _one_of(values: tuple, draws: Iterator[float]) -> str:
    return values[int(len(values) * next(draws))]
