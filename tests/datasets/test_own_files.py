"""Users' own files: three forms, what is said of those that are wrong, and what runs make of them.

Features of columns are compared with templates that are applied token by token, in plain Python.
"""

import gzip
import itertools
import json
import tracemalloc
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from program import USPS, call, error_of, run_here
from raw_data import SENTENCES, TEXT, written
from scipy import sparse
from scipy.sparse import csr_array

from ssvm_bench.base import memory
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import arrays, base
from ssvm_bench.datasets import file as own
from ssvm_bench.datasets.own_files import columns, npz
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.vocabulary import BOUNDARIES, Vocabulary
from ssvm_bench.results.trace import NAMES, read, read_weights
from ssvm_bench.runs.components import load_dataset


def load(path, *words):
    """Return the dataset of a file."""
    (run,) = compose_runs(["dataset=file", f"dataset.path={path}", *words])
    return own.load(run.dataset)


def features_of(sentence, k, used, boundary):
    """Return the features of a token, each as often as it is there."""
    found = []
    for template in used:
        text = template.text
        for row, column in template.references:
            at = k + row
            if 0 <= at < len(sentence):
                value = sentence[at][column]
            elif boundary == "ends":
                break
            else:
                value = f"_B{at}" if at < 0 else f"_B+{at - len(sentence) + 1}"
            text = text.replace(f"%x[{row},{column}]", value, 1)
        else:
            own_name = template.text.startswith("U") and ":" in template.text
            found.append(text if own_name else f"{template.text}={text}")
    if boundary == "ends":
        found += ["__BOS__"] * (k == 0) + ["__EOS__"] * (k == len(sentence) - 1)
    return sorted(found)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(
    "used", [None, ["%x[-2,1]/%x[0,0]", "U:%x[-1,0]", "U:%x[0,0]", "a{%x[0,1]}b%x[3,0]"]]
)
def test_templates_make_the_features_that_they_say(tmp_path, boundary, used):
    words = [f"dataset.boundary={boundary}"]
    if used:
        words.append(f"dataset.templates={json.dumps(used)}")
    data = load(written(tmp_path, TEXT), *words)
    parsed = columns.default_templates(2) if used is None else [*map(columns.parse_template, used)]
    assert len(parsed) == (19 if used is None else 4)
    names, x = np.array(data.vocabulary.features), data.x.toarray()
    assert len(set(names)) == names.size == data.n_features
    assert data.offsets.tolist() == [0, 3, 7, 8]
    for i, sentence in enumerate(SENTENCES):
        for k in range(len(sentence)):
            row = x[data.offsets[i] + k]
            assert sorted(np.repeat(names, row)) == features_of(sentence, k, parsed, boundary)
    labels = [label for sentence in SENTENCES for _, _, label in sentence]
    assert [data.label_names[y] for y in data.y] == labels
    assert (data.structure, data.x.dtype, data.y.dtype) == ("chain", np.uint8, np.uint8)


def test_the_same_sentences_however_they_are_written(tmp_path):
    plain = load(written(tmp_path, TEXT))
    for content in (
        "\ufeff" + TEXT,
        TEXT.replace("\n", "\r\n"),
        "\n\n" + TEXT.replace("\n\n", "\n \t\n\n") + "\n\n",
        TEXT.replace(" ", "\t").replace("\tNN", " \tNN"),
        gzip.compress(TEXT.encode()),
    ):
        other = load(written(tmp_path, content, "other"))
        assert other.fingerprint == plain.fingerprint
        assert other.vocabulary == plain.vocabulary


def test_rare_features_are_left_out(tmp_path):
    data, some = (load(written(tmp_path, TEXT), f"dataset.min_count={k}") for k in (1, 2))
    kept = (data.x.toarray() > 0).sum(axis=0) >= 2
    assert 0 < kept.sum() < kept.size
    assert some.vocabulary.features == tuple(np.array(data.vocabulary.features)[kept])
    assert np.array_equal(some.x.toarray(), data.x.toarray()[:, kept])


def test_templates_are_read_from_a_file_of_crfpp(tmp_path):
    path = written(tmp_path, TEXT)
    given = written(tmp_path, "# words\nU00:%x[0,0]\n\nU01:%x[-1,1]/%x[0,1]\nB\n", "template")
    data = load(path, f"dataset.templates={given}")
    assert data.vocabulary.templates == ("U00:%x[0,0]", "U01:%x[-1,1]/%x[0,1]")
    assert {"U00:cat", "U01:_B-1/DT"} <= {*data.vocabulary.features}
    for text in ("'%x[0,0]'", "' %x[0,0]'", "['%x[0,0] ']"):
        assert load(path, f"dataset.templates={text}").vocabulary.templates == ("%x[0,0]",)
    given.write_bytes(b"\xef\xbb\xbfU0:%x[0,0]\n")
    assert load(path, f"dataset.templates={given}").vocabulary.templates == ("U0:%x[0,0]",)


@pytest.mark.parametrize(
    ("of_file", "text", "message"),
    [
        (True, "U0:%x[0]\n", "Line 1 of .*is no template"),
        (True, "U0:%x[0,0]\nB1:%x[0,0]\n", "Line 2 of .*bigram of labels with an observation"),
        (True, "# none\n", "there is no template in"),
        (True, "U:%x[0,0]\n" * 1001, "must be 1 to 1000 templates, got 1001"),
        (False, "['B01:%x[0,0]']", "is a bigram of labels with an observation"),
        (False, "[' B01:%x[0,0]']", "is a bigram of labels with an observation"),
        (False, "['%x[0,2]']", r"%x\[0,2\] refers to column 2.* 0 to 1"),
        (False, "['%y[0,2]']", r"%y\[0,2\] is no template"),
        (False, "['']", "dataset.templates: '' is no template"),
        (False, "['%x[0,0]', '  ']", "dataset.templates: '' is no template"),
    ],
)
def test_templates_that_are_none_are_refused(tmp_path, of_file, text, message):
    given = written(tmp_path, text, "template") if of_file else text
    with pytest.raises(ConfigError, match=message):
        load(written(tmp_path, TEXT), f"dataset.templates={given}")


def test_templates_of_crfpp_without_references(tmp_path):
    path = written(tmp_path, TEXT)
    given = written(tmp_path, "U00:%x[0,0]\nU99:\nU98\n\nB\nB00\nB01:\n", "template")
    data = load(path, f"dataset.templates={given}")
    assert data.vocabulary.templates == ("U00:%x[0,0]", "U99:", "U98")
    column = data.vocabulary.features.index("U99:")
    assert data.x.toarray()[:, column].tolist() == [1] * 8
    again = load(path, "dataset.templates=['U00:%x[0,0]','U99:',U98,B01]")
    assert again.fingerprint == data.fingerprint
    ends = load(path, f"dataset.templates={given}", "dataset.boundary=ends")
    assert {"U98", "U99:", "__BOS__"} <= {*ends.vocabulary.features}
    assert Vocabulary.read(data.vocabulary.dumped()) == data.vocabulary
    with pytest.raises(ConfigError, match=r"Line 1 of .*bigram of labels with an observation"):
        load(path, f"dataset.templates={written(tmp_path, 'B1:%x[0,0]', 'bigram')}")
    with pytest.raises(ConfigError, match="word is no template"):
        load(path, "dataset.templates=[word]")


WRONG_COLUMNS = {
    "ragged": ("a A x\nb B\n", r".*not columns \(line 2, 'b B': 2 columns, and line 1 has 3\)"),
    "one column": ("a\n\nb\n", r".*not columns \(line 1, 'a': one column, expected two or more"),
    "nothing": ("\n \n", "the file is empty"),
    "no text": (b"a A x\nb \xff x\n", "line 2, column 2: .* is no text in UTF-8"),
    "zeros": (b"a A x\nb B \0\n", "it is no text, and no .npz"),
    "a zero, later": (b"a A x\n\n" * 2000 + b"b \0 y\n", "line 4001, column 2: .* is no text in"),
    "a long line": (b"a A x\n" + b"b " * 5_000_000, r".*line 2, 'b b b.*: 5000000 columns"),
    "long lines": (b"b " * 20_000 + b"\n", "line 1: more than 10000 columns: 'b b b"),
    "many columns": (b"b " * 85 + b"\n", "it has 85 columns, too many for the usual templates"),
    "a long word": (b"a A x\n" + b"b" * 10_000_000, r".*line 2, 'b.*: 1 columns, and line 1 has 3"),
    "ragged, later": ("a A x\nb B y\n\n" * 900 + "b B\n", "line 2701: 2 columns, and line 1 has 3"),
}


@pytest.mark.parametrize("case", WRONG_COLUMNS)
def test_what_is_wrong_in_columns_is_named_with_its_place(tmp_path, case):
    content, message = WRONG_COLUMNS[case]
    with pytest.raises(RunFailedError, match=f"data cannot be used: {message}") as failure:
        load(written(tmp_path, content))
    assert len(str(failure.value)) < 600


ROWS = "# three classes\n+3 1:1 4:1\n-1 2:1 # one\n\n10 \n3 1:1\n"


@pytest.mark.parametrize("packed", [False, True])
def test_rows_of_libsvm(tmp_path, packed):
    content = gzip.compress(ROWS.encode()) if packed else ROWS
    data = load(written(tmp_path, content))
    assert (data.structure, data.label_names) == ("independent", ("-1", "3", "10"))
    assert data.y.tolist() == [1, 0, 2, 1]
    assert data.x.toarray().tolist() == [[1, 0, 0, 1], [0, 1, 0, 0], [0] * 4, [1, 0, 0, 0]]
    assert data.x.dtype == np.uint8
    real = load(written(tmp_path, ROWS.replace("4:1", "4:0.25"), "real"), "dataset.bias=1")
    assert (real.x.dtype, real.x.toarray()[0].tolist()) == (np.float64, [1, 0, 0, 0.25, 1])


def test_what_is_wrong_in_rows_is_named_with_its_line(tmp_path):
    for content, message in (
        ("# one\n0.5 1:1\n1 1:1\n", "line 2: label 0.5, and classes are called by integers"),
        ("1\n2\n", "no line has an index:value"),
        ("1 1:1\n# a\n2 2:1 1:1\n", "line 3 is no row.*indices rise"),
    ):
        with pytest.raises(RunFailedError, match=message):
            load(written(tmp_path, content, "rows.svm"))


def saved(tmp_path, name="data.npz", **arrays):
    np.savez(tmp_path / name, **arrays)
    return tmp_path / name


TWO = {"x": np.ones((2, 1)), "y": np.arange(2)}
OF_CSR = {"indices": np.array([0, 2]), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 3])}
ROWS_OF_TWO = {"data": np.ones(2), "y": np.arange(2), **OF_CSR}
HIDDEN = ("\u200b", "\u2060 \xad", "\u3164", "\u2800\ufe0f", "\U000e0041", "b\u202e")


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_what_scipy_saves_is_read(tmp_path, make):
    x = np.arange(6.0).reshape(2, 3)
    sparse.save_npz(tmp_path / "x.npz", make(x))
    with np.load(tmp_path / "x.npz") as found:
        data = load(saved(tmp_path, **found, y=np.arange(2)))
    np.testing.assert_array_equal(data.x.toarray(), x)


@pytest.mark.parametrize("kind", ["csc", "coo", "dia"])
def test_other_matrices_of_scipy_are_refused_by_name(tmp_path, kind):
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(np.eye(3)).asformat(kind))
    with pytest.raises(RunFailedError, match=rf"scipy's format {kind}: save x.tocsr\(\) instead"):
        load(tmp_path / "x.npz")


GRAPHS = {
    "x": np.arange(12.0).reshape(6, 2),
    "offsets": np.array([0, 3, 6]),
    "edges": np.array([[0, 1], [1, 2], [0, 1]]),
    "edge_offsets": np.array([0, 2, 3]),
}


@pytest.mark.parametrize(("K", "name"), [(2, "mincut"), (3, "alpha_expansion")])
def test_a_graph_decides_its_oracle_and_learns_its_potts_weight(tmp_path, K, name):
    path = saved(tmp_path, y=np.arange(6) % K, **GRAPHS)

    def oracle(*words):
        return compose_runs(["dataset=file", f"dataset.path={path}", *words])[0].oracle

    assert (oracle().name, oracle().potts) == (name, "learned")
    assert oracle("oracle.potts=learned").name == name
    assert (oracle("oracle.potts=2").name, oracle("oracle.potts=2").potts) == (name, 2.0)
    chosen = oracle("oracle=alpha_expansion", "oracle.partial_optimality=true")
    assert (chosen.name, chosen.potts) == ("alpha_expansion", "learned")
    with pytest.raises(ConfigError, match=r"no option oracle\.pots with"):
        oracle("oracle.pots=1")
    with pytest.raises(
        ConfigError,
        match=r"solver=fw does not keep .*; or give a number for potts, as oracle\.potts=1",
    ):
        run_here(tmp_path / "r", "solver=fw", data=("dataset=file", f"dataset.path={path}"))
    out = tmp_path / "g.parquet"
    assert call("data", "export", "file", out, f"dataset.path={path}").exit_code == 0
    (of_stream,) = compose_runs(["dataset=stream", f"dataset.path={out}"])
    assert (of_stream.oracle.name, of_stream.oracle.potts) == (name, "learned")
    (of_paper,) = compose_runs(["dataset=weizmann"])
    assert of_paper.oracle.potts == 1.0


def test_an_option_of_an_oracle_that_the_data_do_not_decide_for_is_explained(tmp_path):
    def message(path):
        with pytest.raises((ConfigError, RunFailedError)) as error:
            compose_runs(["dataset=file", f"dataset.path={path}", "oracle.potts=learned"])
        return str(error.value)

    rows = message(saved(tmp_path, **TWO))
    assert "no option oracle.potts with oracle=binary: it is one of oracle=alpha_expansion" in rows
    assert "none: there is no such file" in message(tmp_path / "none")
    assert "cannot be used" in message(written(tmp_path, "a\n"))


def test_the_options_of_a_call_choose_among_the_oracles_that_fit(tmp_path):
    graph = saved(
        tmp_path,
        x=np.eye(4),
        y=np.array([0, 1, 0, 1]),
        offsets=np.array([0, 2, 4]),
        edges=np.array([[0, 1], [2, 3]]),
    )
    rows = written(tmp_path, "0 1:1\n1 2:1\n0 1:2\n", "rows.svm")

    def oracle_of(path, *words):
        return compose_runs(["dataset=file", f"dataset.path={path}", *words])[0].oracle.kind

    assert oracle_of(graph) == "mincut"
    assert oracle_of(graph, "oracle.potts=1") == "mincut"
    assert oracle_of(graph, "oracle.partial_optimality=true") == "alpha_expansion"
    assert oracle_of(graph, "oracle.partial_optimality=true", "oracle.potts=1") == "alpha_expansion"
    assert oracle_of(rows) == "binary"
    assert oracle_of(rows, "oracle.kernel=rbf", "oracle.gamma=1") == "multiclass"
    for path, its in ((graph, "oracle=mincut"), (rows, "oracle=binary")):
        with pytest.raises(ConfigError, match=f"oracle.nonsense.*{its}"):
            oracle_of(path, "oracle.nonsense=1")
    with pytest.raises(ConfigError, match=r"oracle.kernel.*oracle=binary"):
        oracle_of(rows, "oracle=binary", "oracle.kernel=rbf")  # what is chosen remains


def test_arrays_say_their_structure(tmp_path):
    x, numbers = np.arange(8.0).reshape(4, 2) / 2, np.array([300, -2, 300, 7])
    plain = load(saved(tmp_path, x=x, y=np.array(["b", "a", "b", "c"])))
    found = (plain.structure, plain.label_names, plain.y.tolist())
    assert found == ("independent", ("a", "b", "c"), [1, 0, 1, 2])
    of_chains = {"x": x, "offsets": np.array([0, 3, 4])}
    chains = load(saved(tmp_path, "c.npz", y=numbers, **of_chains))
    assert (chains.structure, chains.label_names) == ("chain", ("-2", "7", "300"))
    edges = {"edges": np.array([[0, 1], [1, 2]]), "edge_offsets": np.array([0, 2, 2])}
    of_graphs = {"y": numbers > 0, **of_chains, **edges}
    graph = load(saved(tmp_path, "g.npz", **of_graphs))
    assert (graph.structure, graph.edges.tolist()) == ("graph", [[0, 1], [1, 2]])
    assert graph.edge_x is None
    of_edges = {**of_graphs, "edge_x": np.array([[1, 2], [0, 3]])}
    graph = load(saved(tmp_path, "e.npz", **of_edges))
    assert (graph.edge_x.tolist(), graph.vocabulary.edge_features) == ([[1, 2], [0, 3]], 2)
    held_out = {f"test.{name}": array for name, array in of_graphs.items()}
    with pytest.raises(RunFailedError, match="edge_x has 0 features an edge, and 2 were trained"):
        load(saved(tmp_path, "m.npz", **of_edges, **held_out))
    targets = load(saved(tmp_path, "r.npz", x=x, y=x[:, 0], structure="regression"))
    assert (targets.structure, targets.y.tolist()) == ("regression", x[:, 0].tolist())
    oracles = {"data": "multiclass", "c": "viterbi", "g": "mincut", "r": "regression"}
    for name, oracle in oracles.items():
        (run,) = compose_runs(["dataset=file", f"dataset.path={tmp_path / name}.npz"])
        assert run.oracle.name == oracle


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.array([[object()]], object)}, "array 'x' cannot be used: pickled objects"),
        ({"z": np.ones(2)}, "has an array 'z', which is not a known name. Valid: "),
        ({"y": np.ones(2)}, "it has no array x"),
        ({"x": np.ones((2, 2))}, "it has no array y"),
        ({**TWO, "x": np.ones(2)}, r"x must be an array of numbers.* shape \(2,\)"),
        ({**TWO, "y": np.array([0.5, 1])}, "y must be texts or integers"),
        ({**TWO, "y": np.array([0, 2]), "labels": np.array(["a", "b"])}, "part 1 is 2, .* most 1"),
        ({**TWO, "structure": "tree"}, "structure is 'tree'"),
        ({**TWO, "costs": np.array(["a", "b"])}, "costs must be"),
        ({**TWO, "edges": np.ones((1, 2))}, "a graph needs edges"),
        ({**TWO, "y": np.array([0, np.inf])}, "y must be texts or integers"),
        ({**TWO, "test.x": np.ones((1, 1))}, "its test examples: there a"),
        ({**ROWS_OF_TWO, "indices": np.array([0, 3])}, "row 1 of x has feature 3, and features"),
        ({**ROWS_OF_TWO, "indices": np.array([0, -1])}, "row 1 of x has feature -1, and features"),
        ({**ROWS_OF_TWO, "indptr": np.array([0, 2, 1])}, "row ends of x end at 1, and there are 2"),
        ({**ROWS_OF_TWO, "indptr": np.array([0, 3, 2])}, "ends before it begins"),
        ({**ROWS_OF_TWO, "data": np.ones(1)}, "x has 2 columns for 1 non-zeros"),
        ({**ROWS_OF_TWO, "data": np.array(["a", "b"])}, "the non-zeros of x must be an array of n"),
        ({**ROWS_OF_TWO, "shape": np.array([3, 3])}, "its CSR matrix has 2 rows, and its shape 3"),
        ({**ROWS_OF_TWO, "shape": np.array([2.0, 3])}, "shape must be an array of integers"),
        ({**ROWS_OF_TWO, "shape": np.array([2, 2**40])}, "shape of entry 1 is 1099511627776"),
        ({**ROWS_OF_TWO, "indptr": np.array([0, 2, 0])}, "row ends of x end at 0, and there are 2"),
        ({**ROWS_OF_TWO, "indices": np.array([0, 1 << 24], ">i4")}, "row 1 of x has feature 16777"),
        ({**TWO, "x": np.array([[2**53 + 1], [0]])}, "x of row 0 is 9007199254740993, and float64"),
        ({**TWO, "x": np.ones((2, 1)).astype("m8[s]")}, "x must be an array of numbers"),
        ({**TWO, "x": np.zeros((2, 0))}, "no features"),
        ({**TWO, "y": np.array([1e300, 1])}, r"y must be texts or integers .* is 1e\+300"),
        ({**TWO, "y": np.array([2**64 - 1, 0], np.uint64)}, "y of part 0 is 18446744073709551615"),
        ({**TWO, "y": np.array([2.0**53 + 2, 1])}, "y must be texts or integers"),
        ({**TWO, "y": np.array([1, np.inf], np.float16)}, "y of part 1 is inf"),
        ({**TWO, "offsets": np.arange(3).astype("m8[s]")}, "offsets must be an array of integers"),
        ({**TWO, "costs": np.ones(2) + 1j}, "costs must be an array of numbers"),
        ({**TWO, "labels": np.array(["a", "a"])}, "the name 'a' is twice in labels"),
        ({**TWO, "labels": np.array(["a", "\ud800"])}, "in labels is no name"),
        ({**TWO, "labels": np.array(["a", "b\x1b"])}, "in labels is no name"),
        ({**TWO, "y": np.array(["a\nb", "c"])}, r"'a\\nb' in y is no name"),
        ({**TWO, "y": np.array([" ", "c"])}, "in y is no name"),
        *(({**TWO, "labels": np.array(["a", text])}, "in labels is no name") for text in HIDDEN),
        ({**TWO, "features": np.array(["\0a"])}, "in features is no name"),
        ({**TWO, "features": np.array(["a", "b"])}, "has 2 names of features for 1 columns of x"),
        ({**ROWS_OF_TWO, "x": np.ones((2, 3))}, "features twice: x, and data, indices, indptr, sh"),
        ({**TWO, "data": np.ones(2)}, "features twice: x, and data of a CSR matrix. Leave one out"),
        ({**TWO, "y": np.array(["a" * 5000, "b"])}, "each of its texts takes 20000 bytes"),
        ({**TWO, "labels": np.zeros(1 << 18, "S1")}, "has 262144 different labels, over 65536"),
        ({**TWO, "y": np.arange(1 << 17)}, "y has 131072 different labels, over 65536"),
        ({"X": np.ones((2, 1)), "y": np.arange(2)}, "which is not a known name. Did you mean x"),
        ({**TWO, "test.x": TWO["x"], "test.y": np.ones((2, 2))}, "its test examples: y must"),
    ],
)
def test_arrays_that_cannot_be_used_are_refused(tmp_path, arrays, message):
    with pytest.raises(RunFailedError, match=message):
        load(saved(tmp_path, **arrays))


@pytest.mark.parametrize("dtype", ["u1", "u8", ">i4", "i2"])
def test_integers_of_any_type_are_offsets_and_edges(tmp_path, dtype):
    edges = {"edges": np.array([[0, 1], [0, 1]], dtype), "edge_offsets": np.array([0, 1, 2], dtype)}
    arrays = {"x": np.ones((4, 1)), "y": np.arange(4), "offsets": np.array([0, 2, 4], dtype)}
    data = load(saved(tmp_path, **arrays, **edges)).take(np.array([1, 0]))
    assert (data.offsets.tolist(), data.edges.tolist()) == ([0, 2, 4], [[0, 1], [0, 1]])
    assert (data.offsets.dtype, data.edges.dtype) == (np.int64, np.int32)


def test_entries_at_one_place_are_added_up_whatever_their_type(tmp_path):
    twice = {"indices": np.zeros(2, int), "indptr": np.array([0, 2, 2])}
    data = load(saved(tmp_path, **{**ROWS_OF_TWO, **twice, "data": np.array([100, 100], np.int8)}))
    assert data.x.toarray().tolist() == [[200, 0, 0], [0, 0, 0]]
    assert load(saved(tmp_path, **ROWS_OF_TWO)).x.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]
    often = load(written(tmp_path, TEXT), f"dataset.templates={300 * ['U:%x[0,0]']}")
    assert often.x.toarray().max() == 300


@pytest.mark.parametrize("name", ["\u0e31", "a\u200db", "a\u00a0x", "\U0001f469\u200d\U0001f52c"])
def test_names_of_all_scripts_are_names(tmp_path, name):
    assert load(saved(tmp_path, **TWO, labels=np.array(["a", name]))).label_names == ("a", name)


def header_says(path, name, shape, dtype="<f8"):
    """Let an array of an npz say another shape than it has."""
    with zipfile.ZipFile(path) as stored:
        members = {of: stored.read(of) for of in stored.namelist()}
    said = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    members[name] = b"\x93NUMPY\x01\0" + len(said).to_bytes(2, "little") + said + bytes(80)
    with zipfile.ZipFile(path, "w") as stored:
        for of, content in members.items():
            stored.writestr(of, content)


def test_an_array_is_as_large_as_it_says(tmp_path):
    for shape, dtype in (("(10**9,)", "<f8"), ("(1000000000,)", "<f8"), ("(10000, )", "<U0")):
        path = saved(tmp_path, **TWO)
        header_says(path, "y.npy", shape, dtype)
        with pytest.raises(RunFailedError, match="its array 'y' cannot be used"):
            load(path)


def test_small_files_take_little_memory(tmp_path, monkeypatch):
    """What would take more than there is, is refused before it is there."""
    monkeypatch.setattr(memory, "available", lambda: 10_000_000)
    for content, message in (
        (gzip.compress(b"a A\nb B" + b"\n" * 1_000_000), "The 1000001 lines of a file would take"),
        (gzip.compress(b"1 1:1\n" * 300_000), "The 300000 lines of a file would take"),
        (gzip.compress(bytes(6_000_000)), r"data would take about 1\d MB, and 10 MB are free"),
        ("1 1:1\n2 2147483647:1\n", "Weights of 2147483647 features would take about 68719 MB"),
        ("a b c\n\n" * 30_000, "19 features of each of 30000 parts would take about"),
    ):
        with pytest.raises(RunFailedError, match=message):
            load(written(tmp_path, content))
    np.savez_compressed(tmp_path / "small.npz", x=np.ones((1_000_000, 2)), y=np.arange(2))
    with pytest.raises(RunFailedError, match=r"The arrays of an .npz would take about 16 MB"):
        load(tmp_path / "small.npz")


@pytest.mark.parametrize(
    ("given", "what", "megabytes"),
    [
        ({"x": np.zeros((1000, 1000), np.float32)}, "Converting x", 2),
        ({"x": np.full((1000, 1000), 0.5, np.float32)}, "Converting x", 8),
        ({"x": np.zeros((1000, 2000), np.uint8)}, "A copy of the features", 2),
        ({"x": np.full((1000, 1000), -1, np.int8)}, "Converting x", 8),
        ({"x": np.full((1000, 1000), -1, np.int64)}, "Converting x", 10),
        ({"x": np.zeros((1000, 1000), np.uint8, order="F")}, "Converting x", 1),
        ({"y": np.zeros(1_000_000, np.uint8)}, "Finding the labels in y", 17),
        ({"y": np.zeros(1_000_000, "S2")}, "Finding the labels in y", 18),
        ({"x": np.zeros((1_000_000, 1), np.uint8)}, "Where each part begins", 16),
        ({"offsets": np.arange(1_000_000, dtype=np.uint32)}, "Converting offsets", 8),
    ],
)
def test_there_must_be_room_for_what_is_made_of_arrays(
    tmp_path, monkeypatch, given, what, megabytes
):
    asked = {}

    def check_room(needed, of, _):
        asked[of.split(",")[0]] = round(needed / 1e6)

    for module in (arrays, base, npz, own):
        monkeypatch.setattr(module, "check_room", check_room)
    path = saved(tmp_path, **{"y": np.arange(1000) % 2, "x": np.zeros((1000, 1)), **given})
    with suppress(RunFailedError):
        load(path, "dataset.test=0.5")
    assert asked[what] == megabytes


def test_reading_takes_little_more_than_the_arrays(tmp_path):
    for value, dtype, expected in ((1, np.uint8, 1.0), (0.5, np.float64, 1.25), (-1, np.int8, 9.0)):
        x = np.full((2000, 2000), value, dtype)
        np.savez_compressed(tmp_path / "large.npz", x=x, y=np.arange(2000) % 2)
        tracemalloc.start()
        load(tmp_path / "large.npz")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < (expected + 0.3) * x.nbytes + 2_000_000


def test_features_with_names_may_come_in_any_order():
    known = Vocabulary(("0", "1"), "npz", "independent", 3, ("a", "b", "c"))
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    names = {"features": np.array(["c", "z", "a"])}
    keys = ("data", "indices", "indptr", "shape")
    for given in ({"x": x}, {k: np.array(getattr(csr_array(x), k)) for k in keys}):
        found = npz.fields({**given, **names}, known)["x"]
        dense = found if isinstance(found, np.ndarray) else found.toarray()
        assert dense.tolist() == [[3, 0, 1], [6, 0, 4]]
    with pytest.raises(ContentError, match="no name of its features, as x, was trained on"):
        npz.fields({"x": x, "features": np.array(["x", "y", "z"])}, known)


@pytest.mark.parametrize("name", ["ocr", "usps"])
def test_an_exported_dataset_is_the_same(tmp_path, name):
    words = ["dataset.n_samples=30", *["dataset.folds=[0]"] * (name == "ocr")]
    path = tmp_path / "out.npz"
    result = call("data", "export", name, path, "--source", "synthetic", *words)
    assert result.exit_code == 0, result.stderr
    (run,) = compose_runs([f"dataset={name}", "dataset.source=synthetic", *words])
    before, after = load_dataset(run.dataset), load(path)
    assert after.fingerprint == before.fingerprint
    assert [*after.label_names] == [*before.label_names]
    for split, examples in before.held_out.items():
        assert after.held_out[split].fingerprint == examples.fingerprint


def test_shares_and_files_are_held_out(tmp_path):
    path = written(tmp_path, (TEXT + "\n") * 5)
    other = written(tmp_path, TEXT, "other")
    data = load(path, "dataset.validation=0.2", f"dataset.test={other}")
    assert (data.n, data.held_out["validation"].n, data.held_out["test"].n) == (12, 3, 3)
    again = load(path, "dataset.validation=0.2", f"dataset.test={other}", "dataset.n_samples=5")
    assert again.n == 5
    assert again.held_out["validation"].fingerprint == data.held_out["validation"].fingerprint
    for words, message in (
        (("dataset.test=1.5",), "dataset.test must be above 0 and below 1"),
        (("dataset.test=0.5", "dataset.validation=0.5"), "leave no example to train on"),
        (("dataset.test=0.99",), "hold out all 15 examples"),
        (("dataset.source=synthetic",), "has no synthetic data"),
        (("dataset.n_samples=99",), "must be ≤ 15"),
    ):
        with pytest.raises(ConfigError, match=message):
            load(path, *words)
    with pytest.raises(ConfigError, match="dataset=file needs dataset"):
        compose_runs(["dataset=file"])


def test_a_run_is_known_by_what_is_in_its_files(tmp_path):
    def run_on(path, *words):
        return compose_runs(["dataset=file", f"dataset.path={path}", *words])[0]

    def digest(*words):
        return run_on(*words).with_source("real").hash()

    path, moved = written(tmp_path, TEXT), written(tmp_path, gzip.compress(TEXT.encode()), "b.gz")
    assert digest(path) == digest(moved)
    others = [
        digest(path, "dataset.min_count=2"),
        digest(path, "dataset.test=0.5"),
        digest(path, f"dataset.test={moved}"),
        digest(written(tmp_path, TEXT + TEXT, "c")),
    ]
    assert len({digest(path), *others}) == 5
    run = run_on(path)
    path.write_text(TEXT.replace("cat", "dog"))
    with pytest.raises(RunFailedError, match="has the fingerprint"):
        own.load(run.dataset)
    missing = call("run", "dataset=file", f"dataset.path={tmp_path / 'x'}")
    assert "x: there is no such file or folder" in error_of(missing, 2)
    for option in ("path", "test", "validation"):
        folder = call("run", "dataset=file", f"dataset.path={path}", f"dataset.{option}={tmp_path}")
        assert f"{tmp_path} is a folder. Name a file." in error_of(folder, 2)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return the folder of a run on a file, its sentences, and a test file with an odd label."""
    folder = tmp_path_factory.mktemp("own")
    path = written(folder, (TEXT + "\n") * 4, "train.txt")
    test = TEXT.replace("sat VBD O", "sat VBD B-QP") + "\nxyz XY B-NP\n"
    test = written(folder, test, "test.txt")
    data = ("dataset=file", f"dataset.path={path}", f"dataset.test={test}")
    made = run_here(folder / "r", "solver=mpbcfw", "budget.max_iterations=5", data=data)
    return made, test


def test_predictions_are_those_of_the_weights(trained, tmp_path):
    made, test = trained
    vocabulary, (w, _) = read(made.folder).vocabulary, read_weights(made.folder)
    assert (made.folder / NAMES).is_file()
    K, f = len(vocabulary.labels), vocabulary.n_features
    found = columns.fields(columns.parse(test.read_bytes()), vocabulary)
    expected = []
    for begin, end in itertools.pairwise(found["offsets"]):
        theta = found["x"][begin:end].toarray() @ w[: K * f].reshape(K, f).T
        moves = w[K * f :].reshape(K, K)
        labelings = np.array(list(itertools.product(range(K), repeat=end - begin)))
        score = theta[np.arange(end - begin), labelings].sum(axis=1)
        score += moves[labelings[:, :-1], labelings[:, 1:]].sum(axis=1)
        expected += [vocabulary.labels[y] for y in labelings[score.argmax()]] + [""]
    result = call("predict", made.folder)
    assert result.stdout.splitlines() == expected, result.stderr
    assert "the test examples of file: 4 examples, 9 parts" in result.stderr
    bare = "\n".join(line.rpartition(" ")[0] for line in test.read_text().splitlines())
    bare, out = written(tmp_path, bare), tmp_path / "labels"
    result = call("predict", made.folder.parents[2], "--data", bare, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert out.read_text().splitlines() == expected


def test_unknown_labels_are_counted_and_wrong(trained, tmp_path):
    made, test = trained
    labels = [line.split()[-1] for line in test.read_text().splitlines() if line]
    predicted = [line for line in call("predict", made.folder).stdout.splitlines() if line]
    right = np.array([one == other for one, other in zip(labels, predicted, strict=True)])
    shares = [part.mean() for part in np.split(right, [3, 7, 8])]
    assert made.summary["test_loss"] == pytest.approx(1 - np.mean(shares))
    result = call("score", made.folder, "--data", test, "--out", tmp_path / "s.json")
    assert result.exit_code == 0, result.stderr
    assert "1 parts have labels that training does not know, and are wrong: B-QP" in result.stdout
    numbers = json.loads((tmp_path / "s.json").read_text())
    assert (numbers["accuracy"], numbers["unseen_labels"]) == (right.mean(), 1)
    assert (numbers["chunks"]["QP"]["true"], numbers["chunks"]["QP"]["found"]) == (1, 0)
    for word, shown in (("--chunks", True), ("--no-chunks", False)):
        assert ("\nchunks " in call("score", made.folder, "--data", test, word).stdout) is shown


def test_what_does_not_fit_the_run_is_refused(trained, tmp_path):
    made, _ = trained
    rows = written(tmp_path, ROWS, "rows")
    chain = saved(tmp_path, x=np.ones((2, 3)), y=np.arange(2))
    four = written(tmp_path, "a A B x\n", "four")
    for data, message in (
        (rows, "its format is svmlight, and that of the file trained on columns"),
        (chain, "its format is npz"),
        (four, "line 1: 4 columns, and the file trained on had 3"),
    ):
        assert message in error_of(call("predict", made.folder, "--data", data), 1)
    bare = written(tmp_path, "the DT\ncat NN\n", "bare")
    no_labels = call("score", made.folder, "--data", bare)
    assert "has no labels to compare with" in error_of(no_labels, 2)
    assert "There is no finished run in" in error_of(call("score", tmp_path / "nowhere"), 2)


def test_a_run_on_known_data_predicts_an_npz(tmp_path):
    made = run_here(tmp_path / "r", "solver=bcfw", "budget.max_iterations=3")
    path = tmp_path / "usps.npz"
    assert call("data", "export", "usps", path, *USPS[1:]).exit_code == 0
    own_data = call("predict", made.folder).stdout
    assert call("predict", made.folder, "--data", path).stdout == own_data
    assert set(own_data.split()) <= set(map(str, range(10)))
    right, scored = 1 - made.summary["train_loss"], call("score", made.folder).stdout
    assert f"accuracy {right:8.2%}  ({round(30 * right)} of 30 parts)" in scored
    other = call("predict", made.folder, "--data", saved(tmp_path, **{**TWO, "x": np.ones((2, 5))}))
    assert "x has 5 columns, and 256 were trained on" in error_of(other, 1)


def test_more_labels_than_a_byte_holds(tmp_path):
    K, rng = 300, np.random.default_rng(0)
    y = np.concatenate((np.arange(K), rng.integers(0, K, 20)))
    x = np.zeros((y.size, 20))
    x[np.arange(y.size), y % 20] = 1.0
    x += 0.1 * rng.normal(size=x.shape)
    data = ("dataset=file", f"dataset.path={saved(tmp_path, x=x, y=y)}", "lam=0.01")
    made = run_here(tmp_path / "r", "solver=bcfw", "budget.max_iterations=3", data=data)
    w, _ = read_weights(made.folder)
    scores = x @ w.reshape(K, 20).T
    predicted = [int(line) for line in call("predict", made.folder).stdout.split()]
    assert predicted == scores.argmax(axis=1).tolist()
    assert max(predicted) > 255
    augmented = (scores + 1 - np.eye(K)[y]).max(axis=1) - scores[np.arange(y.size), y]
    primal = 0.005 * w @ w + augmented.mean()
    assert made.summary["primal"] == pytest.approx(primal, rel=1e-9)
    assert made.summary["dual"] <= primal
