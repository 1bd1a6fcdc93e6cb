"""Chunks as conlleval counts them: against its rules written as a loop, and on planted examples."""

import numpy as np
import pytest

from ssvm_bench.results import scores
from ssvm_bench.results.scores import Counts, count_chunks

# the script leaves out B- behind E-, where a chunk ends and another one begins, too


def ends(before, tag, kind_before, kind):
    """Tell whether a chunk ends between two labels, by the rules of conlleval."""
    pairs = {"BB", "BO", "IB", "IO", "EE", "EI", "EO", "EB"}
    return before + tag in pairs or (before != "O" and kind_before != kind)


def begins(before, tag, kind_before, kind):
    """Tell whether a chunk begins between two labels, by the rules of conlleval."""
    pairs = {"BB", "IB", "OB", "OI", "EE", "EI", "OE", "EB"}
    return before + tag in pairs or (tag != "O" and kind_before != kind)


def split(label):
    tag, _, kind = label.partition("-")
    return tag, kind


def conlleval(truth, predicted):
    """Return true, predicted and found chunks of sequences, as the script's main loop does."""
    found = of_truth = of_predicted = 0
    for true, guessed in zip(truth, predicted, strict=True):
        inside, (last_true, last_guess) = False, (("O", ""), ("O", ""))
        for pair in [*zip(true, guessed, strict=True), ("O", "O")]:
            (tag, kind), (guess, guess_kind) = map(split, pair)
            end = ends(last_true[0], tag, last_true[1], kind)
            guess_end = ends(last_guess[0], guess, last_guess[1], guess_kind)
            start = begins(last_true[0], tag, last_true[1], kind)
            guess_start = begins(last_guess[0], guess, last_guess[1], guess_kind)
            if inside:
                if end and guess_end and last_true[1] == last_guess[1]:
                    inside, found = False, found + 1
                elif end != guess_end or kind != guess_kind:
                    inside = False
            if start and guess_start and kind == guess_kind:
                inside = True
            of_truth, of_predicted = of_truth + start, of_predicted + guess_start
            last_true, last_guess = (tag, kind), (guess, guess_kind)
    return Counts(of_truth, of_predicted, found)


def counted(truth, predicted):
    names = sorted({label for each in (*truth, *predicted) for label in each})
    number = {name: k for k, name in enumerate(names)}
    codes = [np.array([number[y] for each in of for y in each]) for of in (truth, predicted)]
    return count_chunks(names, *codes, np.cumsum([0, *map(len, truth)]))


@pytest.mark.parametrize("tags", ["BI", "BIE"])
def test_random_labels_are_counted_as_by_conlleval(tags):
    rng = np.random.default_rng(0)
    names = ["O", *(f"{tag}-{kind}" for tag in tags for kind in "XY")]
    for _ in range(60):
        truth = [rng.choice(names, size).tolist() for size in rng.integers(1, 9, 12)]
        predicted = [
            [y if rng.random() < 0.7 else str(rng.choice(names)) for y in each] for each in truth
        ]
        found = counted(truth, predicted)
        assert found[""] == conlleval(truth, predicted)
        of_types = [each for kind, each in found.items() if kind]
        assert not of_types or tuple(found[""]) == tuple(np.sum(of_types, axis=0))


@pytest.mark.parametrize(
    ("truth", "predicted", "expected"),
    [
        ("O O B-X I-X I-X O", "O O B-X I-X I-X O", (1, 1, 1)),
        ("O O O B-X I-X I-X O", "O O B-X I-X I-X I-X O", (1, 1, 0)),  # seqeval's example
        ("B-X I-X", "I-X I-X", (1, 1, 1)),  # a chunk may begin with I-
        ("B-X B-X", "B-X I-X", (2, 1, 0)),
        ("B-X I-Y", "B-X I-Y", (2, 2, 2)),  # another type is another chunk
        ("S-X S-X E-X", "S-X S-X E-X", (3, 3, 3)),
        ("O O", "O B-X", (0, 1, 0)),
        ("B-X | I-X", "B-X | I-X", (2, 2, 2)),  # a chunk ends with its sequence
        ("B-X I-X", "B-X I-X", (1, 1, 1)),
    ],
)
def test_planted_chunks(truth, predicted, expected):
    sequences = ([part.split() for part in of.split("|")] for of in (truth, predicted))
    assert counted(*sequences)[""] == Counts(*expected)


def test_scores_are_shares_of_the_counts():
    names = ["B-X", "O", "B-Z"]  # training does not know the last
    truth, predicted = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 0, 1])
    found = scores.compare(names, 2, truth, predicted, np.array([0, 5]))
    assert (found.accuracy, found.unseen) == (0.4, 1)
    assert found.confusion(np.arange(3)).tolist() == [[1, 1, 0], [1, 1, 0], [0, 1, 0]]
    assert found.labels[0] == Counts(2, 2, 1)
    assert found.chunks[""] == Counts(3, 2, 1)
    assert (found.chunks[""].precision, found.chunks[""].recall) == (0.5, 1 / 3)
    assert found.chunks[""].f1 == pytest.approx(0.4)
    assert found.as_dict()["labels"]["B-X"]["f1"] == 0.5
    text = "\n".join(found.lines())
    assert "accuracy   40.00%  (2 of 5 parts)" in text
    assert scores.compare(["a", "O"], 2, truth[:4], predicted[:4], np.arange(5)).chunks == {}


def test_many_unknown_labels_take_little_memory():
    K = 40_000
    names, truth = [f"B-{k}" for k in range(K)], np.arange(K)
    found = scores.compare(names, 2, truth, truth % 2, np.array([0, K]))
    assert (found.unseen, found.accuracy) == (K - 2, 2 / K)
    written = found.as_dict()["confusion"]
    assert written["pairs"][2] == ["B-2", "B-0", 1]
    assert len(next(found.lines())) < 100
    assert max(map(len, found.lines())) < 400
