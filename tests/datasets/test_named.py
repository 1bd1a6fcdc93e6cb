"""Named features become the columns that scikit-learn's DictVectorizer gives them."""

import enum
from collections import OrderedDict
from types import MappingProxyType

import numpy as np
import pytest
from sklearn.feature_extraction import DictVectorizer

from ssvm_bench.datasets import named


class Colour(enum.StrEnum):
    RED = "red"


class Odd(str):
    """Is equal to a text, and shown as another one."""

    __slots__ = ()

    def __str__(self):
        return "odd"


LISTS = [["a", "b"], [], ("b", "c", "b"), ["a"] * 300, [np.str_("d"), Colour.RED, "red"]]
MAPPINGS = [
    {"w": "He", "length": 2, "title": True},
    OrderedDict(w="he", rest=-0.5),
    MappingProxyType({"length": np.float32(0.1), "w": np.str_("He"), 3: 2.0}),
    {"w=He": 2.5, "w": "He", "length": np.int64(1 << 40)},
    {1: "x"},
    {True: "x"},
    {Colour.RED: "x"},
    {"red": "x"},
    {"w": Odd("He")},
    {"w": "odd"},
]
SETS = [{"b", "a"}, frozenset("ca"), ["d"]]


def place(part):
    return f"part {part}"


def by_sklearn(features):
    """Return features as DictVectorizer takes them."""
    found = []
    for each in features:
        names = sorted(each) if isinstance(each, set | frozenset) else each
        found.append(each if hasattr(each, "items") else dict.fromkeys(names, 1.0))
    return found


@pytest.mark.parametrize(
    "features", [LISTS, MAPPINGS, SETS, LISTS + MAPPINGS + SETS, MAPPINGS[::-1], [{}, []]]
)
def test_columns_and_values_are_those_of_dict_vectorizer(features):
    vectorizer = DictVectorizer(sort=False)
    expected = vectorizer.fit_transform(by_sklearn(features))
    x, columns = named.numbered(features, place)
    assert type(columns) is dict
    assert [*columns.items()] == [*vectorizer.vocabulary_.items()]
    np.testing.assert_array_equal(x.toarray(), expected.toarray())
    assert x.has_canonical_format
    for other in (LISTS, MAPPINGS, SETS, MAPPINGS + LISTS):  # some names are not known
        x, same = named.numbered(other, place, columns)
        assert same is columns
        assert len(columns) == expected.shape[1]
        np.testing.assert_array_equal(
            x.toarray(), vectorizer.transform(by_sklearn(other)).toarray()
        )


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([["a"], ["a", 1]], r"or a list of texts, got \['a', 1\] as part 1"),
        ([["a"], [["a"]]], "as part 1"),
        ([{"a": 1}, "a"], "got 'a' as part 1"),
        ([["a"], {"a": 10**400}], "'a' of part 1 is 1000"),
        ([{"a": 1.0}, {"b": [1]}], r"'b' of part 1 is \[1\]"),
        ([{"a": "b"}, {"a": np.True_}], "'a' of part 1 is"),
        ([{"a": "b"}, {"a": np.timedelta64(1, "s")}], "'a' of part 1 is"),
    ],
)
def test_what_is_no_name_or_value_is_refused_with_its_place(features, message):
    for known in (None, {"a": 0}):
        with pytest.raises(ValueError, match=message):
            named.numbered(features, place, known)
