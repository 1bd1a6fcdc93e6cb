"""Chunks as conlleval counts them: against its rules written as a loop, and on planted examples."""

import numpy as np
import pytest

from ssvm_bench.results import scores
from ssvm_bench.results.scores import Counts, count_chunks

# the script leaves out B- behind E-, where a chunk ends and another one begins, too, and knows
# neither S- and U-, chunks of one part that end as E- and begin as B-, nor L-, another word for E-
END, BEGIN = ({"L": "E", "S": kind, "U": kind} for kind in "EB")


def ends(before, tag, kind_before, kind):
    """Tell whether a chunk ends between two labels, by the rules of conlleval."""
    pairs = {"BB", "BO", "IB", "IO", "EE", "EI", "EO", "EB"}
    both = END.get(before, before) + BEGIN.get(tag, tag)
    return both in pairs or (before != "O" and kind_before != kind)


def begins(before, tag, kind_before, kind):
    """Tell whether a chunk begins between two labels, by the rules of conlleval."""
    pairs = {"BB", "IB", "OB", "OI", "EE", "EI", "OE", "EB"}
    both = END.get(before, before) + BEGIN.get(tag, tag)
    return both in pairs or (tag != "O" and kind_before != kind)


def split(label):
    tag, _, kind = label.partition("-")
    if tag == "O" or (not kind and tag not in {*"BIELSUM"}):
        return "O", ""
    return tag if tag in {*"BELSU"} else "I", kind  # other prefixes are inside of a chunk, too


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


SCHEMES = {
    "one type": [f"{tag}-X" for tag in "BI"],
    "IOB": [f"{tag}-{kind}" for tag in "BI" for kind in "XY"],
    "IOE": [f"{tag}-{kind}" for tag in "IE" for kind in "XY"],
    "BIOES": [f"{tag}-{kind}" for tag in "BIES" for kind in "XY"],
    "BILOU": [f"{tag}-{kind}" for tag in "BILU" for kind in "XY"],
    "all at once": [f"{tag}-{kind}" for tag in "BIELSU" for kind in ("X", "X-Y", "Y")],
    "BMES": [f"{tag}-{kind}" for tag in "BMES" for kind in "XY"],
    "other prefixes": [f"{tag}-{kind}" for tag in ("B", "b", "", "S") for kind in "XY"],
    "no types": [*"BI"],
    "no types, ends": [*"BIELSU"],
    "some types": [*"BIE", "B-X", "I-X", "E-X"],
    "extra labels": ["B-X", "I-X", "E-X", "PAD", "_", "X", ".", "-", "X-", ""],
    "no chunks": [],
}


@pytest.mark.parametrize("names", SCHEMES.values(), ids=SCHEMES)
def test_random_labels_are_counted_as_by_conlleval(names):
    rng = np.random.default_rng(0)
    names = ["O", *names]
    for _ in range(60):
        truth = [rng.choice(names, size).tolist() for size in rng.integers(0, 9, 12)]
        predicted = [
            [y if rng.random() < 0.7 else str(rng.choice(names)) for y in each] for each in truth
        ]
        found = counted(truth, predicted)
        assert found["all"] == conlleval(truth, predicted)
        of_types = [each for kind, each in found.items() if kind != "all"]
        assert not of_types or tuple(found["all"]) == tuple(np.sum(of_types, axis=0))


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
        ("| B-X I-X || O I-X |", "| B-X I-X || O I-X |", (2, 2, 2)),  # empty sequences
        ("I-X I-X B-X", "B-X I-X B-X", (2, 2, 2)),  # IOB1 and IOB2
        ("I-X E-X I-X", "B-X I-X B-X", (2, 2, 2)),  # IOE1 and IOB2
        ("B-A-B I-A-C", "B-A-B I-A-B", (2, 1, 0)),  # the first hyphen separates the type
        ("I-X PAD I-X", "I-X O I-X", (2, 2, 2)),
        ("O-X I-X", "O I-X", (1, 1, 1)),
    ],
)
def test_planted_chunks(truth, predicted, expected):
    sequences = ([part.split() for part in of.split("|")] for of in (truth, predicted))
    assert counted(*sequences)["all"] == Counts(*expected)


def test_scores_are_shares_of_the_counts():
    names = ["B-X", "O", "B-Z"]  # training does not know the last
    truth, predicted = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 0, 1])
    found = scores.compare(names, 2, truth, predicted, np.array([0, 5]))
    assert (found.accuracy, found.unseen) == (0.4, 1)
    assert found.confusion(np.arange(3)).tolist() == [[1, 1, 0], [1, 1, 0], [0, 1, 0]]
    assert found.labels[0] == Counts(2, 2, 1)
    assert found.chunks["all"] == Counts(3, 2, 1)
    assert (found.chunks["all"].precision, found.chunks["all"].recall) == (0.5, 1 / 3)
    assert found.chunks["all"].f1 == pytest.approx(0.4)
    assert found.as_dict()["labels"]["B-X"]["f1"] == 0.5
    text = "\n".join(found.lines())
    assert "accuracy   40.00%  (2 of 5 parts)" in text
    assert scores.compare(["a", "O"], 2, truth[:4], predicted[:4], np.arange(5)).chunks == {}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ("B-NP I-NP", True),
        ("I-PER I-LOC O", True),  # IOB1 without neighbours of one type
        ("E-PER I-PER", True),
        ("S-PER U-LOC O", True),
        ("B-NP I-NP O PAD", True),
        ("B I O", True),
        ("O", False),
        ("B O", False),
        ("A B O", False),
        ("B I N G O", False),
        ("NN VB O", False),
        ("I-beam T-shirt X-ray O", False),
        ("S-Bahn", False),
        ("", False),
    ],
)
def test_labels_are_those_of_chunks_by_evidence_unless_it_is_said(labels, expected):
    names = labels.split()
    assert scores.are_chunks(names) is expected
    parts = np.arange(len(names))
    for said in (None, True, False):
        found = scores.compare(names, len(names), parts, parts, np.array([0, parts.size]), said)
        assert bool(found.chunks) is (expected if said is None else said)


def test_a_type_is_not_taken_for_the_sum_of_all():
    found = counted([["B-all", "O", "B", "B-X"]], [["B-all", "O", "O", "B-X"]])
    assert [*found] == ["all", "(no type)", "X", "(all)"]
    assert found["all"] == Counts(3, 2, 2)
    assert [*counted([[*"BIO"]], [[*"BIO"]])] == ["all"]


def test_many_unknown_labels_take_little_memory():
    K = 40_000
    names, truth = [f"B-{k}" for k in range(K)], np.arange(K)
    found = scores.compare(names, 2, truth, truth % 2, np.array([0, K]))
    assert (found.unseen, found.accuracy) == (K - 2, 2 / K)
    written = found.as_dict()["confusion"]
    assert written["pairs"][2] == ["B-2", "B-0", 1]
    assert len(next(found.lines())) < 100
    assert max(map(len, found.lines())) < 400
