"""Examples of the estimator: names of columns, examples that are empty, and wrong ones."""

import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import random_chains, random_graphs, random_multiclass
from scipy.sparse import csr_array
from sklearn.model_selection import cross_val_score

from ssvm_bench import StructuredSVM

RANKING = Path(__file__).parents[2] / "examples" / "ranking" / "ranking" / "oracle"
FEW = {"solver": "bcfw", "lam": 0.1, "max_iterations": 3, "gap_tol": 0.0}
NAMES = ["u", "v", "w"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def pieces(data):
    """Return features and labels, an array for each example."""
    return np.split(data.x, data.offsets[1:-1]), np.split(data.y, data.offsets[1:-1])


def chains():
    return pieces(random_chains([3, 1, 4, 2] * 3, 3, 3))


def graphs(edge_features=0):
    """Return graphs of three features a part, and their labels."""
    data = random_graphs([3, 1, 4] * 3, 3, 3)
    x, y = pieces(data)
    edges = np.split(data.edges, data.edge_offsets[1:-1])
    if not edge_features:
        return [*zip(x, edges, strict=True)], y
    rng = np.random.default_rng(0)
    return [(a, b, rng.random((len(b), edge_features))) for a, b in zip(x, edges, strict=True)], y


def in_frames(X, names=NAMES, order=(0, 1, 2)):
    """Return the features of parts as data frames, with columns in another order."""

    def framed(x):
        return pd.DataFrame(x, columns=names).iloc[:, list(order)]

    return [(framed(x[0]), *x[1:]) if isinstance(x, tuple) else framed(x) for x in X]


def answers(model, X, y):
    """Return all that a model says of examples, as lists."""
    said = [model.predict(X), model.decision_function(X)]
    if model.structure == "chain":
        said.append(model.predict_marginals(X))
    lists = [[each.tolist() for each in one] for one in said]
    return [*lists, model.score(X, y), model.mean_loss(X, y)]


# ---- names of columns ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", [chains, graphs])
def test_columns_are_found_by_their_names_in_any_order(make):
    X, y = make()
    structure = "graph" if make is graphs else "chain"
    model = StructuredSVM(structure, potts=1.0, **FEW).fit(in_frames(X), y)
    plain = StructuredSVM(structure, potts=1.0, **FEW).fit(X, y)
    assert model.weights_.tolist() == plain.weights_.tolist()
    assert model.feature_names_in_.tolist() == NAMES
    assert {*model.top_features()["feature"]} == {*NAMES}
    expected = answers(plain, X, y)
    for other in (model, pickle.loads(pickle.dumps(model))):
        for order in ((0, 1, 2), (2, 0, 1)):
            assert answers(other, in_frames(X, order=order), y) == expected
    # within a fit, the first example has the order
    some = [in_frames([x], order=(1, 2, 0) if i % 2 else (0, 1, 2))[0] for i, x in enumerate(X)]
    assert model.fit(some, y).weights_.tolist() == plain.weights_.tolist()
    scores = [cross_val_score(StructuredSVM(structure, **FEW), each, y, cv=3) for each in (some, X)]
    assert scores[0].tolist() == scores[1].tolist()
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_columns_of_edges_are_found_by_their_names():
    X, y = graphs(edge_features=2)

    def framed(order, names=("p", "q")):
        frames = (pd.DataFrame(x, columns=names).iloc[:, order] for *_, x in X)
        return [(*each[:2], frame) for each, frame in zip(X, frames, strict=True)]

    model = StructuredSVM("graph", potts="learned", **FEW).fit(framed([0, 1]), y)
    expected = answers(model, framed([0, 1]), y)
    assert answers(pickle.loads(pickle.dumps(model)), framed([1, 0]), y) == expected
    with pytest.raises(ValueError, match=r"the edges of X\[0\]: .*\n.*unseen at fit time:\n- r"):
        model.predict(framed([0, 1], ["p", "r"]))


PAIRS = pd.MultiIndex.from_tuples([("a", "u"), ("a", "v"), ("b", "u")])


@pytest.mark.parametrize("make", [chains, graphs])
@pytest.mark.parametrize("names", [[0, 1, 2], [7, 3, 5], [2, 0, 1], [1.5, 0, -1], PAIRS])
def test_columns_are_found_by_names_that_are_no_texts(make, names):
    X, y = make()
    structure = "graph" if make is graphs else "chain"
    model = StructuredSVM(structure, potts=1.0, **FEW).fit(in_frames(X, names), y)
    plain = StructuredSVM(structure, potts=1.0, **FEW).fit(X, y)
    assert model.weights_.tolist() == plain.weights_.tolist()
    assert hasattr(model, "feature_names_in_") == ([*names] != [0, 1, 2])
    expected = answers(plain, X, y)
    for other in (model, pickle.loads(pickle.dumps(model))):
        for order in ((0, 1, 2), (2, 0, 1), (1, 0, 2)):
            assert answers(other, in_frames(X, names, order), y) == expected
    for orders in (((0, 1, 2), (1, 2, 0)), ((0, 1, 2), (1, 2, 0), (2, 1, 0))):
        some = [
            in_frames([x], names, orders[i % len(orders)])[0] for i, x in enumerate(X)
        ]  # within a fit, the first example has the order
        assert model.fit(some, y).weights_.tolist() == plain.weights_.tolist()
    others = in_frames(X, [8, 1, 2])
    with pytest.raises(
        ValueError, match=r"(?s)X\[0\]: .*unseen at fit time:\n- .*now missing:\n- "
    ):
        model.predict(others)
    with pytest.raises(ValueError, match=r"X\[1\]: "):
        model.fit([in_frames(X, names)[0], *others[1:]], y)


def test_columns_of_edges_are_found_by_their_numbers():
    X, y = graphs(edge_features=2)

    def framed(order):
        return [(*each[:2], pd.DataFrame(each[2]).iloc[:, order]) for each in X]

    model = StructuredSVM("graph", potts="learned", **FEW).fit(framed([0, 1]), y)
    assert answers(model, framed([1, 0]), y) == answers(model, X, y)


@pytest.mark.parametrize("names", [[0, 1], [4, 2], PAIRS[:2]])
def test_a_row_per_example_has_columns_of_any_names(names):
    x = np.random.default_rng(0).normal(size=(40, 2))
    frame, y = pd.DataFrame(x, columns=names), (x[:, 0] > 0).astype(int)
    model = StructuredSVM(**FEW).fit(frame, y)
    assert model.predict(frame).tolist() == StructuredSVM(**FEW).fit(x, y).predict(x).tolist()
    if [*names] == [0, 1]:
        assert model.predict(frame[[1, 0]]).tolist() == model.predict(x).tolist()
    else:
        with pytest.raises(ValueError, match="must be in the same order"):
            model.predict(frame.iloc[:, [1, 0]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.predict(pd.DataFrame(x, columns=[1, 5]))


def test_numbers_of_columns_mean_nothing_to_a_model_of_arrays():
    X, y = chains()
    model = StructuredSVM("chain", **FEW).fit(X, y)
    expected = [each.tolist() for each in model.predict(X)]
    assert [each.tolist() for each in model.predict(in_frames(X, [0, 1, 2]))] == expected
    with pytest.warns(UserWarning, match="X has feature names, but"):
        assert [each.tolist() for each in model.predict(in_frames(X, [1, 0, 2]))] == expected


@pytest.mark.parametrize(
    ("names", "order", "message"),
    [
        (["u", "v", "z"], (0, 1, 2), "unseen at fit time:\n- z\n.*now missing:\n- w"),
        (NAMES, (0, 1), "now missing:\n- w"),
        ([*NAMES, "z"], (3, 2, 1, 0), "unseen at fit time:\n- z"),
        (["u", "v", "v"], (0, 1, 2), "v"),
        (["U", "V", "W"], (0, 1, 2), "unseen at fit time:\n- U"),
        (["u ", "v", "w"], (0, 1, 2), "unseen at fit time:\n- u "),
    ],
)
def test_other_names_are_refused_in_the_words_of_scikit_learn(names, order, message):
    X, y = chains()
    model = StructuredSVM("chain", **FEW).fit(in_frames(X), y)
    wide = [np.hstack((x, x))[:, : len(names)] for x in X]
    for asked in (model.predict, model.decision_function, lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match=rf"(?s)X\[0\]: .*{message}"):
            asked(in_frames(wide, names, order))
    mixed = [*in_frames(X[:3]), *in_frames(wide[3:], names, order)]
    with pytest.raises(ValueError, match=r"X\[3\]: "):
        model.fit(mixed, y)


def test_names_on_one_side_alone_are_told():
    X, y = chains()
    named, plain = (StructuredSVM("chain", **FEW).fit(each, y) for each in (in_frames(X), X))
    expected = [each.tolist() for each in plain.predict(X)]
    for model, given, said in (
        (named, X, "X does not have valid feature names, but StructuredSVM was fitted with"),
        (named, in_frames(X, [0, 1, 2]), "X does not have valid feature names"),
        (plain, in_frames(X), "X has feature names, but StructuredSVM was fitted without"),
    ):
        with pytest.warns(UserWarning, match=said):
            assert [each.tolist() for each in model.predict(given)] == expected
    with pytest.raises(ValueError, match=r"X\[2\] has no names of columns, and X\[0\] has: give"):
        StructuredSVM("chain", **FEW).fit([*in_frames(X[:2]), *X[2:]], y)
    with pytest.raises(TypeError, match="only supported if all input features have string names"):
        StructuredSVM("chain", **FEW).fit(in_frames(X, ["u", 1, "w"]), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert named.predict([]) == []
        assert [each.tolist() for each in named.predict([[], []])] == [[], []]


def test_frames_of_any_kind_have_names():
    pa = pytest.importorskip("pyarrow")
    X, y = chains()
    frames = in_frames(X)
    expected = StructuredSVM("chain", **FEW).fit(X, y).weights_.tolist()
    for kind in (
        pa.Table.from_pandas,
        lambda frame: frame.astype("Float64"),
        lambda frame: frame.astype(pd.SparseDtype("float", 0.0)),
        lambda frame: frame.astype(object),
    ):
        model = StructuredSVM("chain", **FEW).fit([*map(kind, frames)], y)
        assert model.weights_.tolist() == expected
        assert model.feature_names_in_.tolist() == NAMES


# ---- empty lists and examples -------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"oracle": "multiclass"}, {"kernel": "rbf", "gamma": 1.0}])
@pytest.mark.parametrize("K", [2, 3])
def test_no_examples_have_no_labels(K, options):
    data = random_multiclass(20, K, 3)
    labels = np.array(["a", "b", "c"])[data.y]
    model = StructuredSVM(**FEW, **options).fit(data.x, labels)
    for X in ([], (), data.x[:0], csr_array(data.x[:0]), np.zeros(0), pd.DataFrame(data.x[:0])):
        assert (model.predict(X).shape, model.predict(X).dtype) == ((0,), labels.dtype)
        assert model.decision_function(X).shape == ((0,) if K == 2 else (0, K))
        assert model.predict_marginals(X).shape == (0, K)
    with pytest.raises(ValueError, match="X has 4 features"):
        model.predict(np.zeros((0, 4)))
    with pytest.raises(ValueError, match="there is nothing to score"):
        model.score([], [])
    with pytest.raises(ValueError, match=r".."):
        model.fit(data.x[:0], labels[:0])


NOTHING = [
    [],
    (),
    np.zeros((0, 3)),
    csr_array((0, 3)),
    np.zeros(0),
    in_frames([np.zeros((0, 3))])[0],
]
NOTHING += [pd.DataFrame()]


@pytest.mark.parametrize(
    "options",
    [{}, {"kernel": "rbf", "gamma": 1.0}, {"oracle": "latent_chain"}],
    ids=["viterbi", "kernel", "latent_chain"],
)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_an_empty_sequence_has_an_empty_labeling(options):
    X, y = chains()
    model = StructuredSVM("chain", **FEW, **options).fit(X, y)
    asked = [model.predict]
    if "oracle" not in options:
        asked += [model.decision_function, model.predict_marginals]
    for ask in asked:
        assert ask([]) == []
        whole = [each.tolist() for each in ask(X[:2])]
        for nothing in NOTHING:
            assert [(each.tolist(), each.dtype) for each in ask([nothing])] == [
                ([], ask(X[:1])[0].dtype)
            ]
            found = [each.tolist() for each in ask([nothing, X[0], nothing, X[1], nothing])]
            assert found == [[], whole[0], [], whole[1], []]
    beside = [[], *X, []], [[], *y, []]
    assert model.score(*beside) == model.score(X, y)
    assert model.mean_loss(*beside) == model.mean_loss(X, y)
    assert model.score([[], X[0]], [[], y[0]], [5, 1]) == model.score(X[:1], y[:1])
    for ask in (model.score, model.mean_loss):
        for nothing in ([], []), ([[]], [[]]):
            with pytest.raises(ValueError, match="there is nothing to score"):
                ask(*nothing)
    with pytest.raises(ValueError, match=r"y\[0\] has the shape \(1,\), and X\[0\] has 0 parts"):
        model.score([[], X[0]], [[0], y[0]])
    with pytest.raises(ValueError, match="X has 5 features a part, and 3 were trained with"):
        model.predict([np.zeros((0, 5))])
    with pytest.raises(ValueError, match=r"example 2 is empty: X\[2\] has no parts"):
        model.fit([*X[:2], [], *X[2:]], [*y[:2], [], *y[2:]])


def test_an_empty_sequence_of_named_features_has_an_empty_labeling():
    X = [[["a"], ["b"]], [["b"], []], [{"a": 1.0}]]
    model = StructuredSVM("chain", **FEW).fit(X, [["x", "y"], ["y", "x"], ["x"]])
    (whole,) = model.predict(X[:1])
    for nothing in ([], (), np.zeros((0, 3))):
        found = model.predict([nothing, X[0], nothing])
        assert [each.tolist() for each in found] == [[], whole.tolist(), []]
        assert [each.dtype for each in model.predict([nothing])] == [whole.dtype]
    assert [each.size for each in model.predict([[[], []], [[]]])] == [2, 1]  # parts without any
    words = StructuredSVM(**FEW).fit([["a"], ["b"]], ["x", "y"])
    assert (words.predict([]).shape, words.predict([[], []]).shape) == ((0,), (2,))


@pytest.mark.parametrize("edge_features", [0, 2])
@pytest.mark.parametrize("oracle", [None, "mincut"])
def test_an_empty_graph_has_an_empty_labeling(oracle, edge_features):
    X, y = graphs(edge_features)
    y = [np.minimum(each, 1) for each in y]
    model = StructuredSVM("graph", oracle=oracle, potts="learned", **FEW).fit(X, y)
    (whole,) = model.predict(X[:1])
    assert model.predict([]) == []
    more = ([],) * bool(edge_features)
    for nothing in (([], [], *more), (np.zeros((0, 3)), np.zeros((0, 2), int), *more)):
        for given in ([nothing], [nothing, X[0], nothing]):
            found = [each.tolist() for each in model.predict(given)]
            assert found == [[], whole.tolist(), []][: len(given)]
    assert model.score([([], [], *more), X[0]], [[], y[0]]) == model.score(X[:1], y[:1])
    one = model.predict([(X[0][0][:1], [], *more)])  # a part without neighbours
    assert [each.size for each in one] == [1]
    with pytest.raises(ValueError, match=r"example 0 is empty: X\[0\] has no parts"):
        model.fit([([], [], *more), *X], [[], *y])


def test_an_empty_example_of_an_own_oracle_has_an_empty_labeling(monkeypatch):
    monkeypatch.syspath_prepend(RANKING)
    ranking = __import__("ranking")
    monkeypatch.delitem(sys.modules, "ranking")
    relevant = [np.arange(6) % 3 == 0] * 4
    queries = [np.outer(y, [1.0, 2.0]) + k for k, y in enumerate(relevant)]
    model = StructuredSVM("queries", oracle=ranking.Ranking, bias=0, **FEW).fit(queries, relevant)
    (whole,) = model.predict(queries[:1])
    assert model.predict([]) == []
    assert [each.tolist() for each in model.predict([[], queries[0], []])] == [
        [],
        whole.tolist(),
        [],
    ]
    expected = model.score(queries, relevant)
    assert model.score([[], *queries], [[], *relevant]) == expected
    with pytest.raises(ValueError, match="there is nothing to score"):
        model.score([], [])


# ---- wrong examples -----------------------------------------------------------------------------

PART = "a mapping of features, a list of texts or a row of numbers"
WORDS = [[{"w": "He", "n": 1}, {"w": "is"}], [{"w": "so"}]]
ROWS = [np.ones((2, 3)), np.ones((1, 3))]


@pytest.mark.parametrize(
    ("structure", "X", "message"),
    [
        *(("multiclass", X, f"has several parts; an example is {PART}, and for sequences")
          for X in (ROWS, WORDS, [[["a"]], [["b"]]], in_frames(ROWS), [*map(csr_array, ROWS)])),
        ("multiclass", ["Paris", "Rome"], f"is the text 'Paris'; an example is {PART}"),
        ("multiclass", [["a"], "b"], r"X\[1\] is the text 'b'"),
        ("chain", WORDS[0], "is {'w': 'He', 'n': 1}; an example is a list of parts, each a map"),
        ("chain", ["Paris", "Rome"], f"is 'Paris'; an example is a list of parts, each {PART}"),
        ("chain", [["He", "is"], ["so"]], rf"X\[0\]\[0\] is 'He'; a part is {PART}"),
        ("chain", [[["He"], "is"], [["so"]]], "got 'is' as part 1 of example 0"),
        ("chain", [[[], WORDS[0]], WORDS[1]], r"X\[0\]\[1\] is \[\{'w': 'He', .*; a part"),
        ("chain", [WORDS, WORDS], r"X\[0\]\[0\] is \[\{'w': 'He', 'n': 1\}, .*; a part is"),
        ("graph", [(["He", "is"], []), ([["so"]], [])], r"X\[0\]\[0\] is 'He'; a part is"),
    ],
)  # fmt: skip
def test_examples_that_are_nested_wrongly_are_named(structure, X, message):
    y = ["a", "b"] if structure == "multiclass" else [["a", "b"], ["a"]]
    with pytest.raises(ValueError, match=message):
        StructuredSVM(structure, **FEW).fit(X, y)


def test_labels_of_sequences_are_not_those_of_single_parts():
    for X in (np.eye(2), [["a"], ["b"]]):
        with pytest.raises(
            ValueError, match=r"y\[0\] has 2 labels; an example has one, and for seq"
        ):
            StructuredSVM(**FEW).fit(X, [["a", "b"], ["a"]])


@pytest.mark.parametrize("value", [None, ["a"], {"a": 1}, np.nan, np.float32("inf"), 1j, b"a", len])
def test_a_feature_that_is_neither_number_nor_text_is_named_with_its_place(value):
    wrong = (
        "X has features that are neither numbers nor texts, or are NaN: 'w' of part 1 of example"
    )
    model = StructuredSVM("chain", **FEW).fit(WORDS, [["a", "b"], ["a"]])
    odd = [WORDS[0], [{"w": "He"}, {"w": value}]]
    with pytest.raises(ValueError, match=f"{wrong} 1"):
        StructuredSVM("chain", **FEW).fit(odd, [["a", "b"]] * 2)
    for key in ("w", "unknown"):
        with pytest.raises(ValueError, match=f"'{key}' of part 1 of example 0 is"):
            model.predict([[{"w": "He"}, {key: value}]])
    with pytest.raises(ValueError, match="'w' of example 1 is"):
        StructuredSVM(**FEW).fit([{"w": "He"}, {"w": value}], ["a", "b"])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.nan, "NaN, not finite"),
        (-np.inf, "-inf, not finite"),
        (1e200, r"1e\+200, over 1e\+100: scale the features"),
    ],
)
def test_a_number_out_of_range_is_named_with_its_place(value, said):
    X, y = chains()
    odd = [x.copy() for x in X]
    odd[2][1, 2] = value
    for form, name in (
        (list, "x2"),
        (in_frames, "w"),
        (lambda X: [csr_array(x) for x in X], "x2"),
        (lambda X: [x.astype(object) for x in X], "x2"),
    ):
        message = f"feature {name} of part 1 of example 2 is {said}"
        with pytest.raises(ValueError, match=message):
            StructuredSVM("chain", **FEW).fit(form(odd), y)
        model = StructuredSVM("chain", **FEW).fit(form(X), y)
        with pytest.raises(ValueError, match=message):
            model.predict(form(odd))
    rows = np.ones((4, 2))
    rows[3, 1] = value
    for x, name in (
        (rows, "x1"),
        (csr_array(rows), "x1"),
        (pd.DataFrame(rows, columns=NAMES[1:]), "w"),
    ):
        with pytest.raises(ValueError, match=f"feature {name} of example 3 is {said}"):
            StructuredSVM(**FEW).fit(x, [0, 1, 0, 1])
    graph = [(np.array([[1.0, value]]), [])]
    with pytest.raises(ValueError, match=f"feature x1 of example 0 is {said}"):
        StructuredSVM("graph", **FEW).fit(graph, [[0]])


def test_an_entry_that_is_no_number_is_named_with_its_place():
    frame = pd.DataFrame({"u": [1, 2], "v": [3, "x"]})
    with pytest.raises(
        ValueError, match=r"feature v of part 1 of example 0 is 'x', expected a number.*to_dict"
    ):
        StructuredSVM("chain", **FEW).fit([frame], [[0, 1]])
    words = StructuredSVM("chain", **FEW).fit([frame.to_dict("records")], [[0, 1]])
    assert words.predict([frame.to_dict("records")])[0].tolist() == [0, 1]
    missing = pd.DataFrame({"u": [1, 2], "v": [3, pd.NA]})
    with pytest.raises(ValueError, match="feature v of part 1 of example 0 is <NA>, expected a"):
        StructuredSVM("chain", **FEW).fit([missing], [[0, 1]])


@pytest.mark.parametrize("kind", [list, tuple, lambda y: np.array(y, object), pd.Series])
def test_a_missing_label_of_pandas_is_named_with_its_place(kind):
    y = kind([0, 1, pd.NA, 1])
    with pytest.raises(ValueError, match=r"y\[2\] is missing \(NA\)"):
        StructuredSVM().fit(np.eye(4), y)
