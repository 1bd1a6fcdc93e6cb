"""Labels of chunks in every scheme, mixed, and spoilt; counted by the rules of conlleval as well.

Whatever texts the labels are, the counts are those of a loop over the parts. What is no text is
refused with its place.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench import chunk_scores
from tests.faults.case import Case
from tests.faults.estimator import SCALARS, _raw
from tests.results.test_chunks import conlleval

PREFIXES = ("BI", "IE", "BIES", "BILU", "BMES", "BIELSUM", "B", "I", "S")
TYPES = (
    "X",
    "Y",
    "X-Y",
    "all",
    "(no type)",
    "",
    "O",
    "é",
    " ",
    "B",
    "-",
    "x" * 300,
    "\ud800",
    "\0",
)
OTHERS = ("O", "X", "PAD", "_", "-", "--", "", ".", "o", "O-X", "-X", "B", "I", "é", "BI", "b-X")
FORMS = (list, tuple, lambda each: np.array(each, object), iter)


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Yield cases without end."""
    while True:
        kinds = rng.choices(TYPES, k=rng.choice((1, 2, 3)))
        names = [f"{prefix}-{kind}" for prefix in rng.choice(PREFIXES) for kind in kinds]
        if rng.random() < 0.2:
            names = [*rng.choice(PREFIXES)]
        names += ["O"] * rng.choice((0, 1, 3)) + rng.sample(OTHERS, rng.choice((0, 0, 1, 3)))
        truth = [rng.choices(names, k=rng.choice((0, 1, 2, 9))) for _ in range(rng.randrange(6))]
        predicted = [
            [y if rng.random() < 0.7 else rng.choice(names) for y in labels] for labels in truth
        ]
        yield Case("chunk schemes", f"{truth} {predicted}", _failure(rng, truth, predicted))


def _failure(rng: random.Random, truth: list[list[str]], predicted: list[list[str]]) -> str:
    """Return what did not hold."""
    odd = _spoilt(rng, truth) if rng.random() < 0.2 else None
    form = rng.choice(FORMS)
    given = [form(labels) for labels in (truth if odd is None else odd)]
    try:
        found = chunk_scores(given, predicted, chunks=rng.random() < 0.5)
    except Exception as error:
        names = {name.partition("-")[0] for of in truth for name in of}
        texts = odd is None and bool(names & {*"BIELSU"})
        return _raw(error) or ("refused" if texts and "not those of chunks" in str(error) else "")
    if odd is not None:
        return (
            "" if all(isinstance(y, str) for of in odd for y in of) else "what is no text is taken"
        )
    expected = conlleval(truth, predicted)
    counts = tuple(found.loc["all", ["true", "predicted", "found"]])
    return "" if counts == tuple(expected) else f"{counts} for {tuple(expected)}"


def _spoilt(rng: random.Random, truth: list[list[str]]) -> list[list[Any]]:
    """Return labels of which one is something else."""
    odd: list[list[Any]] = [list(labels) for labels in truth]
    filled = [labels for labels in odd if labels]
    if filled:
        labels = rng.choice(filled)
        labels[rng.randrange(len(labels))] = rng.choice(SCALARS)
    return odd
