"""The format of a user's file: recognised by evidence for it, the same for later files of a run."""

import gzip
import json
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from program import call, environment, error_of, run_here
from raw_data import TEXT, written
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_digits
from test_own_files import load, saved

from ssvm_bench import StructuredSVM
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.datasets.arrays import why_no_label
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.vocabulary import Vocabulary
from ssvm_bench.results.trace import read

NUMBERS = np.random.default_rng(0).integers(-500, 500, (30, 4)) / 1000
LABELS = np.arange(30) % 2
TABLE = [(label, [f"{value}" for value in row]) for label, row in zip(LABELS, NUMBERS, strict=True)]


def rows(label="{}", entry="{j}:{v}", query="", end="", first=1):
    """Return lines of LIBSVM's kind."""
    lines = []
    for k, values in TABLE:
        entries = (entry.format(j=j, v=value) for j, value in enumerate(values, first))
        lines.append(" ".join([label.format(k), *query.split(), *entries]) + end)
    return "\n".join(lines) + "\n"


def table(line):
    """Return lines made of a label and the values of an example."""
    return "".join(line(label, values) + "\n" for label, values in TABLE)


TUTORIAL = """
He        PRP  B-NP
reckons   VBZ  B-VP
the       DT   B-NP
current   JJ   I-NP
account   NN   I-NP
deficit   NN   I-NP
will      MD   B-VP
narrow    VB   I-VP
to        TO   B-PP
only      RB   B-NP
#         #    I-NP
1.8       CD   I-NP
billion   CD   I-NP
in        IN   B-PP
September NNP  B-NP
.         .    O
"""

SVMLIGHT = {
    "plain": rows(),
    "indices from 0": rows(first=0),
    "byte order mark": "\ufeff" + rows(),
    "queries": rows(query="qid:10"),
    "LETOR": rows(query="qid:10", end=" #docid = GX030-77 inc = 1"),
    "labels 1E+00": rows("{}E+00"),
    "labels +1": rows("+{}"),
    "line ends of Windows": rows().replace("\n", "\r\n"),
    "line ends of old Macs": rows().replace("\n", "\r"),
    "tabs and blanks at the end": rows(end=" \t").replace(" ", "\t"),
    "empty lines and a comment": "# rows\n\n" + rows().replace("\n", "\n\n"),
    "a row of zeros first": "1\n" + rows(),
}

COLUMNS = {
    "sentences": TEXT,
    "one sentence of a tutorial": TUTORIAL,
    "words and tags": "\n".join(" ".join(line.split()[:2]) for line in TUTORIAL.splitlines()),
    "a short sentence, all tags different": "I PRP\nlike VBP\ngreen JJ\napples NNS\n. .\n",
    "labels 0 and 1": "Hello 0\nworld 0\n. 1\n",
    "numbers as symbols, and empty lines": "6 L\n1 F\n\n3 F\n4 L\n",
    "words with colons": "12:30 CD T\n. . O\n\nmeet VB O\n:) UH O\n\nhttp://a.b:80 NN T\n, , O\n",
    "a column of line numbers": "1 He PRP\n2 reckons VBZ\n3 the DT\n",
    "byte order mark": "\ufeff" + TUTORIAL,
    "line ends of Windows": TUTORIAL.replace("\n", "\r\n"),
    "line ends of old Macs": TUTORIAL.replace("\n", "\r"),
    "tabs": "\n".join("\t".join(line.split()) for line in TUTORIAL.splitlines()),
    "blanks at the end, and in empty lines": TEXT.replace("\n", " \t\n"),
    "words with numbers as features": "He 0.5 3 B\nran -1.25 2 O\n\nIt 0.75 1 B\nis nan 2 O\n",
    "labels with colons": "the D:def\ndog N:sg\nruns V:pres\n\nthe D:def\ncats N:pl\n",
    "a line before the first sentence": "-DOCSTART- -X- O\n\n"
    + TUTORIAL.lstrip()
    + "\n"
    + TUTORIAL,
    "many numbers in a sentence": "1.8 CD\n, ,\n12 CD\n, ,\n1,000 CD\nand CC\n50% CD\n",
    "long sequences": "\n\n".join(
        "\n".join(f"w{k % 9} {'BIO'[k % 3]}" for k in range(90)) for _ in "ab"
    ),
}


def with_line(text, line, after):
    """Return a text with one more line, empty or not, after so many lines."""
    lines = text.split("\n")
    return "\n".join([*lines[:after], line, *lines[after:]])


DECIMALS = table(lambda k, v: f"{v[0]} {v[1]} {k}")
WHOLE = table(lambda k, v: f"{k} {v[0][-1]} {v[1][-1]}")
IRIS = table(lambda k, v: f"{v[0]}\t{v[1]}\tkind{k}")
ALMOST_TABLES = {
    "a head": with_line(DECIMALS, "x1 x2 cls", 0),
    "a head, integers": with_line(WHOLE, "sex age cls", 0),
    "a head, names": with_line(IRIS, "a\tb\tspecies", 0),
    "a head, a table of three lines": "a b kind\n0.5 0.25 x\n1.5 2 y\n2 3 x\n",
    "a head, words": "id\ttext\tlabel\n"
    + "".join(f"{k}\ttext{k % 5}\tL{k % 2}\n" for k in range(30)),
    "a head and an empty line": with_line(DECIMALS * 10, "x1 x2 cls\n", 0),
    "a head and an empty line, words": "w k\n\n" + "a x\nb y\n" * 60,
    "a missing entry": with_line(WHOLE, "? ? ?", 7),
    "missing entries": with_line(with_line(DECIMALS, "NA ? 1", 7), "0.5 0.25 n/a", 9),
    "nan": with_line(DECIMALS, "nan nan nan", 7),
    "an infinite number": with_line(DECIMALS, "-inf inf 1", 0),
    "an entry cut short": with_line(DECIMALS, "0.2x 0.5. 1", 20),
    "an empty line": with_line(with_line(DECIMALS * 10, "", 150), "nan ? 1", 9),
    "an empty line, names": with_line(IRIS * 10, "", 150),
    "an empty line, words": with_line("a x\nb y\n" * 150, "", 150),
    "commas in decimals": table(lambda k, v: f"{v[0]} {v[1]} kind{k}").replace(".", ","),
    "shares": table(lambda k, v: f"{v[0]}% {v[1]}% kind{k}"),
}
NAMED_VALUES = {
    "words": table(lambda k, v: f"{k} color:c{v[0][-1]} size:s{v[1][-1]}"),
    "one word": table(lambda k, v: f"{k} color:c{v[0][-1]}"),
    "quoted": table(lambda k, v: f'{k} 1:"{v[0]}" 2:"{v[1]}"'),
    "shares": table(lambda k, v: f"{k} 1:{v[0]}% 2:{v[1]}%"),
    "truths": table(lambda k, v: f"{k} 1:{v[0] > '0'} 2:{v[1] > '0'}"),
    "dates": table(lambda k, v: f"{k} 1:2024-01-0{v[0][-1]} 2:2024-02-0{v[1][-1]}"),
    "wide colons": rows(entry="{j}：{v}"),
    "small colons": rows(entry="{j}﹕{v}"),
    "with a head": "label first second\n" + table(lambda k, v: f"{k} 1:{v[0]}% 2:{v[1]}%"),
    "after names": table(lambda k, v: f"row{v[2]} color:c{v[0][-1]} kind{k}"),
}

NEITHER = {
    "labels as words": (rows("spam{}"), r"svmlight \(line 1, .*the label spam0 is no number"),
    "several labels": (rows("{},3"), "several labels for one example, 0,3, are not supported"),
    "weights of examples": (rows("{}:0.5"), "it begins with 0:0.5, and not with a label"),
    "named features": (rows(entry="f{j}:{v}"), "f1:.* is no index:value"),
    "blanks after colons": (rows(entry="{j}: {v}"), "1: is no index:value"),
    "blanks around colons": (rows(entry="{j} : {v}"), "1 is no index:value"),
    "fields, features and values": (rows(entry="{j}:{j}:{v}"), "is no index:value"),
    "rows without labels": (rows("")[1:].replace("\n ", "\n"), "begins with 1:.*, and not with"),
    "namespaces": (rows("{} |f", "a{j}:{v}"), r"\|f is no index:value"),
    "words in namespaces": (table(lambda k, _: f"{k} |f a b{k} c"), r"'\|f' has a separator"),
    "fastText": (table(lambda k, _: f"__label__{k} red b{k}"), "'__label__0' has a separator"),
    "CRFsuite": (table(lambda k, _: f"B{k}\tw=a\tpos=b{k}"), "'pos=b0' joins several entries"),
    "words with tags": (table(lambda k, _: f"a/D{k} b/N{k}"), "'b/N0' joins several entries"),
    "dense": (table(lambda k, v: f"{k} {' '.join(v)}"), "the last column has numbers"),
    "dense, tabs": (table(lambda k, v: "\t".join([*v, str(k)])), "may be a table of numbers"),
    "dense, integers": (table(lambda k, v: f"{k} {v[0][-1]} {v[1][-1]}"), "a table of numbers"),
    "dense, names": (table(lambda k, v: f"{' '.join(v)} N{k}"), "may be a table of numbers"),
    "dense, names first": (table(lambda k, v: f"N{k} {' '.join(v)}"), "the last column has num"),
    "dense, empty lines": (table(lambda k, v: f"{' '.join(v)} N{k}\n"), "may be a table of num"),
    "words and numbers": (table(lambda k, v: f"a{v[0]} 3 {v[1]} b{k}"), "may be a table of num"),
    "frequencies": (table(lambda k, v: f"w{v[0]} {abs(int(1000 * float(v[1])))}"), "a table of"),
    "commas": (table(lambda k, v: ",".join([*v, f"N{k}"])), r"columns \(line 1, .*: one column"),
    "commas and blanks": (table(lambda k, v: ", ".join([*v, f"N{k}"])), "has a separator"),
    "semicolons": (table(lambda k, v: "; ".join([*v, f"N{k}"])), "has a separator"),
    "commas in two words": (table(lambda k, _: f"red apple,N{k}"), "joins several entries"),
    "a head line": ("a,b,label\n" + table(lambda k, v: ",".join([*v[:2], str(k)])), "one column"),
    "JSON lines": (table(lambda k, v: json.dumps({"x": v, "y": int(k)})), "it is JSON, which is"),
    "a JSON list": (json.dumps([[1, 2], [3, 4]]), "it is JSON, which is not read"),
    "JSON lines of words": ('{"w": "He"}\n\n{"w": "is here"}\n', "it is JSON, which is not read"),
    "JSON, indented": (json.dumps([{"w": "He", "y": "O"}], indent=2), "it is JSON, which is not"),
    "CSV with quotes": ('He,PRP,O\nis,VB,O\n\n0,CD,B\n",",",",O\n', "it is CSV with quotes"),
    "CSV, all quoted": ('"He","PRP","O"\n\n"is","VB","B"\n"so","R","O"\n', "it is CSV with quotes"),
    "tabs and quotes": ('He\tO\nis\tO\n\n"a\tb"\tB\n', "it is CSV with quotes"),
    "YAML": ("a: 1\nb: 2\n", "'a:' has a separator"),
    "names": (table(lambda k, v: f"John{v[0]} Smith{v[1]}"), "has 30 different labels in 30 lines"),
    "one word a line": ("He\nreckons\n", "one column, expected two or more"),
    "numbers, a line": ("1\n2\n", "no line has an index:value.* one column"),
    "prose": ("of several words\nsome lines\n", r"columns \(line 2, 'some lines': 2 columns, and"),
    "CoNLL-U": ("# text\n1\tHe\the\tPRON\n", "columns .line 2, .*: 4 columns, and line 1 has 2"),
    "CoNLL-U, no comment": (
        "1\tHe\the\tPRON" + "\tx" * 5 + "\t_\n2\tis\tbe\tAUX" + "\tx" * 5 + "\tSpaceAfter=No\n",
        "it may be CoNLL-U, whose 10 columns do not end with a label",
    ),
    "a table of words": ("a A x\nb B y\n" * 60, "no empty line ends a sequence in 120 lines"),
    "a pickle": (pickle.dumps({"x": 1}), "it is a pickle, which could run any program"),
    "an array": (b"\x93NUMPY\x01\0" + bytes(90), "it is a single array"),
    "Parquet": (b"PAR1\x15\x04" + bytes(90), "it is a Parquet file: dataset=stream"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(90), "it is an HDF5 file"),
    "xz": (b"\xfd7zXZ\0" + bytes(90), "it is packed"),
    "gzip twice": (gzip.compress(gzip.compress(b"1 1:1\n", mtime=0), mtime=0), "packed twice"),
    "UTF-16": (TEXT.encode("utf-16"), "it is text in UTF-16"),
    "UTF-16, no mark": (TEXT.encode("utf-16-le"), "it is no text, and no .npz"),
    "another zip": (b"PK\x05\x06" + bytes(18), "it has no array x"),
}


@pytest.mark.parametrize("name", SVMLIGHT)
def test_what_deviates_a_little_from_svmlight_is_read_as_it(tmp_path, name):
    data, plain = load(written(tmp_path, SVMLIGHT[name])), load(written(tmp_path, rows(), "plain"))
    assert data.vocabulary.form == "svmlight"
    x, wanted = data.x.toarray(), NUMBERS
    if name == "a row of zeros first":
        x = x[1:]
    np.testing.assert_array_equal(x, wanted)
    assert data.label_names == plain.label_names


@pytest.mark.parametrize("name", COLUMNS)
def test_what_has_columns_is_read_as_columns(tmp_path, name):
    data = load(written(tmp_path, COLUMNS[name]))
    lines = (
        COLUMNS[name].removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    )
    words = [line.split() for line in lines if line.strip()]
    assert (data.vocabulary.form, data.structure) == ("columns", "chain")
    assert data.vocabulary.columns == len(words[0])
    assert [data.label_names[y] for y in data.y] == [line[-1] for line in words]


@pytest.mark.parametrize("name", NEITHER)
def test_what_fits_no_format_is_refused_with_what_speaks_against_each(tmp_path, name):
    content, message = NEITHER[name]
    with pytest.raises(RunFailedError, match=message) as failure:
        load(written(tmp_path, content))
    assert len(str(failure.value)) < 700


@pytest.mark.parametrize("name", ALMOST_TABLES)
def test_one_odd_line_makes_no_columns_of_a_table(tmp_path, name):
    with pytest.raises(RunFailedError, match=r"not columns \(line 1, .*: ") as failure:
        load(written(tmp_path, ALMOST_TABLES[name]))
    assert "not svmlight (line 1, " in str(failure.value)


@pytest.mark.parametrize("name", NAMED_VALUES)
def test_values_that_are_no_numbers_make_no_columns_of_named_values(tmp_path, name):
    with pytest.raises(RunFailedError, match="is a feature and its value") as failure:
        load(written(tmp_path, NAMED_VALUES[name]))
    assert "not svmlight (line 1, " in str(failure.value)


def test_a_refused_file_is_one_message_and_nothing_is_computed(tmp_path):
    path = written(tmp_path, rows("spam{}"), "spam.txt")
    result = call("run", "dataset=file", f"dataset.path={path}", f"results_dir={tmp_path / 'r'}")
    message = error_of(result, 1)
    for part in ("not svmlight (line 1, 'spam0 1:", "not columns (line 1,", "dataset.format="):
        assert part in message
    assert not (tmp_path / "r").exists()


def test_the_nearest_format_alone_is_named_where_only_it_comes_near(tmp_path):
    with pytest.raises(RunFailedError, match=r"not columns \(line 5, 'b B'") as failure:
        load(written(tmp_path, "a A x\nb B y\n\nc C x\nb B\n"))
    assert "svmlight (" not in str(failure.value)
    with pytest.raises(RunFailedError, match=r"not svmlight \(line 31, '1,3 1:1'") as failure:
        load(written(tmp_path, rows() + "1,3 1:1\n"))
    assert "columns (" in str(failure.value)  # its rows have as many columns


def uneven(label, entry="{j}:{v}"):
    """Return rows that have two features, or three."""
    return table(
        lambda k, v: " ".join(
            [label.format(k), *(entry.format(j=j, v=v[j]) for j in range(1, 3 + k))]
        )
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (uneven("spam{}"), r"not svmlight \(line 1, .*the label spam0 is no number"),
        (uneven("{},3"), r"not svmlight \(line 1, .*several labels for one example, 0,3"),
        ("{}spam 1:1\n".format("1 1:1 2:1\n" * 9), r"not svmlight \(line 10, .*spam is no number"),
        ("label x y z\n" + rows(), r"not svmlight \(line 1, .*the label label is no number"),
    ],
)
def test_rows_of_which_only_the_labels_deviate_come_near_svmlight(tmp_path, content, message):
    with pytest.raises(RunFailedError, match=message):
        load(written(tmp_path, content))


@pytest.mark.parametrize("name", [*NEITHER, *ALMOST_TABLES, *NAMED_VALUES])
def test_only_formats_are_advised_that_would_read_the_file(tmp_path, name):
    content = (NEITHER | ALMOST_TABLES | NAMED_VALUES)[name]
    path = written(tmp_path, content[0] if isinstance(content, tuple) else content)
    with pytest.raises(RunFailedError) as failure:
        load(path)
    advised = re.findall(r"dataset\.format=(\w+) would read it", str(failure.value))
    for form in ("columns", "svmlight"):
        if form in advised:
            assert load(path, f"dataset.format={form}").n_labels > 1
        else:
            with pytest.raises(RunFailedError):
                load(path, f"dataset.format={form}")


def test_a_format_that_is_stated_decides(tmp_path):
    numbers = written(tmp_path, "1 0\n2 1\n3 0\n", "numbers")
    with pytest.raises(RunFailedError, match="no format is recognised"):
        load(numbers)
    data = load(numbers, "dataset.format=columns")
    assert data.label_names == ("0", "1")
    assert load(numbers, "dataset.templates='%x[0,0]'").n_features == 3  # only columns have them
    assert load(numbers.rename(tmp_path / "numbers.conll")).structure == "chain"
    with pytest.raises(RunFailedError, match=r"not columns .*: 'a:1' is a feature and its value"):
        load(written(tmp_path, "1 a:1\n2 b:1\n", "pairs.conll"))
    with pytest.raises(RunFailedError, match=r"line 1 is no row.*the label He is no number"):
        load(written(tmp_path, TUTORIAL.lstrip(), "rows.svm"))
    with pytest.raises(RunFailedError, match=r"it is no .npz that can be read"):
        load(written(tmp_path, TEXT, "text.npz"))
    assert load(saved(tmp_path, "x.npz", x=NUMBERS, y=LABELS).rename(tmp_path / "x.svm")).n == 30


def test_options_of_two_formats_are_refused(tmp_path):
    path = written(tmp_path, rows())
    for words in (
        ("dataset.format=svmlight", "dataset.min_count=2"),
        ("dataset.zero_based=true", "dataset.boundary=ends"),
        ("dataset.format=npz", "dataset.zero_based=true"),
    ):
        with pytest.raises(ConfigError, match=r"options of .* and .*, and a file has one format"):
            load(path, *words)


def test_a_run_begins_with_what_was_read(tmp_path):
    path = written(tmp_path, TEXT, "train.txt")
    words = (
        "run",
        "dataset=file",
        f"dataset.path={path}",
        "solver=bcfw",
        "budget.max_iterations=1",
    )
    said = call(*words, f"results_dir={tmp_path / 'r'}").stderr.splitlines()
    assert said[0].endswith(
        "train.txt: format columns, chain; 3 examples, 8 parts, 5 labels, 111 features"
    ), said
    quiet = call(*words, f"results_dir={tmp_path / 'q'}", "quiet=true")
    assert (quiet.exit_code, quiet.stderr) == (0, "")
    ranked = written(tmp_path, rows(query="qid:3"), "ranked")
    said = call(
        "run", "dataset=file", f"dataset.path={ranked}", *words[3:], f"results_dir={tmp_path / 'r'}"
    ).stderr
    assert "its queries (qid:…) are not used" in said


# ---- indices from 0 or from 1 -------------------------------------------------------------------


def dumped(tmp_path, name, X, y, zero_based):
    path = tmp_path / name
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    return path


@pytest.mark.parametrize("first", [0.0, 1.0], ids=["first feature 0", "first feature used"])
def test_files_that_count_from_0_are_the_same_data(tmp_path, first):
    X = np.abs(NUMBERS[:, :3]) + 0.5
    X[:-1, 0] = 0.0
    X[-1, 0] = first  # an index 0 comes in the last line, or never
    from_0, from_1 = (dumped(tmp_path, f"{k}", X, LABELS, k == 0) for k in (0, 1))
    one = load(from_1)
    np.testing.assert_array_equal(one.x.toarray(), X[:, : one.n_features])
    zero = load(from_0, *(["dataset.zero_based=true"] if first == 0.0 else []))
    np.testing.assert_array_equal(zero.x.toarray(), X)
    assert (one.vocabulary.zero_based, zero.vocabulary.zero_based) == (False, True)
    if first:
        with pytest.raises(
            RunFailedError, match="line 30: an index 0, and features are counted from 1"
        ):
            load(from_0, "dataset.zero_based=false")


def test_the_smallest_file_from_0(tmp_path):
    data = load(written(tmp_path, "1 0:1\n2 1:1\n1 0:2\n2 1:3\n"))
    assert data.x.toarray().tolist() == [[1, 0], [0, 1], [2, 0], [0, 3]]


def test_what_a_file_counts_from_holds_for_the_files_of_its_run(tmp_path):
    digits = load_digits()
    X, y = digits.data[:120, 2:8], digits.target[:120] % 2
    train = dumped(tmp_path, "train", X[:80], y[:80], True)
    test = dumped(tmp_path, "test", np.where(np.arange(6) == 0, 0.0, X[80:]), y[80:], True)
    assert " 0:" not in test.read_text()
    data = ("dataset=file", f"dataset.path={train}", f"dataset.test={test}", "seed=3")
    held_out = load(train, f"dataset.test={test}").held_out["test"].x.toarray()
    np.testing.assert_array_equal(held_out[:, 1:], X[80:, 1:])
    made = run_here(tmp_path / "r", "solver=bcfw", "budget.max_iterations=3", data=data)
    assert read(made.folder).vocabulary.zero_based
    own_test, of_file = (
        call("predict", made.folder, *words).stdout for words in ((), ("--data", test))
    )
    assert own_test == of_file
    as_npz = saved(tmp_path, "test.npz", x=held_out)
    assert call("predict", made.folder, "--data", as_npz, "--format", "npz").stdout == own_test


def test_an_index_0_is_refused_by_what_counts_from_1(tmp_path):
    train = written(tmp_path, "1 1:1\n2 2:1\n1 1:2\n", "train")
    test = written(tmp_path, "1 1:1\n2 0:1\n", "test")
    message = (
        "line 2: an index 0, and features are counted from 1 .*train with dataset.zero_based=true"
    )
    with pytest.raises(RunFailedError, match=message):
        load(train, f"dataset.test={test}")
    data = ("dataset=file", f"dataset.path={train}")
    made = run_here(tmp_path / "r", "solver=bcfw", "budget.max_iterations=1", data=data)
    assert "line 2: an index 0" in error_of(call("predict", made.folder, "--data", test), 1)


def test_a_vocabulary_of_an_earlier_version_counts_from_1():
    known = Vocabulary(("0", "1"), "svmlight", "independent", 3)
    values = json.loads(gzip.decompress(known.dumped()))
    del values["zero_based"]
    assert Vocabulary.read(json.dumps(values).encode()) == known


def test_an_exported_file_from_0_is_the_same(tmp_path):
    path, out = written(tmp_path, SVMLIGHT["indices from 0"], "rows"), tmp_path / "out.npz"
    assert call("data", "export", "file", out, f"dataset.path={path}").exit_code == 0
    assert load(out).fingerprint == load(path).fingerprint


# ---- files to predict ---------------------------------------------------------------------------

WORDS = "He PRP B\nsaw VBD O\n12:30 CD O\n\n:) UH O\nthe DT B\n\n12:30 CD O\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return format → folder of a run on a file of it; words and labels alone: ``"words"``."""
    folder = tmp_path_factory.mktemp("models")
    contents = {
        "columns": WORDS * 3,
        "words": "\n".join(" ".join(line.split()[::2]) for line in (WORDS * 3).split("\n")),
        "svmlight": rows(),
    }
    files = {name: written(folder, content, name) for name, content in contents.items()}
    offsets = {"offsets": np.arange(0, 31, 3)}
    edges = {"edges": np.array([[0, 1], [1, 2]] * 10), "edge_offsets": np.arange(0, 21, 2)}
    of_arrays = {"independent": {}, "chain": offsets, "graph": offsets | edges}
    for name, more in of_arrays.items():
        files[name] = saved(folder, f"{name}.npz", x=NUMBERS, y=LABELS, **more)
    made = {}
    for name, path in files.items():
        data = ("dataset=file", f"dataset.path={path}")
        words = ("solver=bcfw", "budget.max_iterations=3", "lam=0.01")
        made[name] = run_here(folder / f"of-{name}", *words, data=data).folder
    return made


def labels_of(result):
    """Return the labels that a call has predicted."""
    assert result.exit_code == 0, result.stderr
    return result.stdout.split("\n")[:-1]


@pytest.mark.parametrize("content", ["12:30\nhttp://a.b:80\n", ":)\n12:30\n", "1\n2\n", "7 1:2\n"])
def test_what_a_run_was_trained_on_decides_what_a_file_is(models, tmp_path, content):
    model = models["columns" if " " in content else "words"]
    data = written(tmp_path, content)
    predicted = labels_of(call("predict", model, "--data", data))
    assert len(predicted) == content.count("\n") + 1
    assert {*predicted[:-1]} <= {"B", "O"}


def test_a_row_that_is_wrong_makes_no_other_format_of_a_file(models, tmp_path):
    for content, message in (
        ("1 1:1\nfoo bar\n", "line 2 is no row"),
        ("foo bar\n1 1:1\n1 2:1\n", "line 1 is no row"),
        (WORDS, "its format is columns, and that of the file trained on svmlight"),
    ):
        data = written(tmp_path, content)
        for command in ("predict", "score"):
            message_of = error_of(call(command, models["svmlight"], "--data", data), 1)
            assert message in message_of
    message = error_of(call("predict", models["columns"], "--data", written(tmp_path, rows())), 1)
    assert "its format is svmlight, and that of the file trained on columns" in message


def test_a_held_out_file_has_the_format_that_training_was_forced_to(tmp_path):
    path = written(tmp_path, "1 2:1 \n2\n", "few")
    data = load(path, "dataset.format=svmlight", f"dataset.test={path}")
    assert data.held_out["test"].fingerprint == data.fingerprint
    numbers = written(tmp_path, "1 0\n2 1\n", "numbers")
    data = load(numbers, "dataset.format=columns", f"dataset.test={numbers}")
    assert data.held_out["test"].fingerprint == data.fingerprint


def test_another_format_can_be_named(models, tmp_path):
    data = saved(tmp_path, x=NUMBERS)
    own = labels_of(call("predict", models["svmlight"]))
    assert labels_of(call("predict", models["svmlight"], "--data", data, "--format", "npz")) == own
    message = error_of(call("predict", models["svmlight"], "--data", data), 1)
    assert "its format is npz, and that of the file trained on svmlight" in message
    assert "had no columns" in error_of(
        call(
            "predict", models["svmlight"], "--data", written(tmp_path, WORDS), "--format", "columns"
        ),
        1,
    )
    assert "its rows are examples by themselves" in error_of(
        call(
            "predict",
            models["columns"],
            "--data",
            written(tmp_path, rows()),
            "--format",
            "svmlight",
        ),
        1,
    )
    assert "--format is that of a file" in error_of(
        call("score", models["words"], "--format", "npz"), 2
    )


@pytest.mark.parametrize(("name", "packed"), [("-", False), ("/dev/stdin", True), ("fifo", False)])
def test_standard_input_is_a_file(models, tmp_path, name, packed):
    content = gzip.compress(WORDS.encode()) if packed else WORDS.encode()
    words = [sys.executable, "-m", "ssvm_bench", "predict", str(models["columns"]), "--data"]
    expected = labels_of(call(*words[3:], written(tmp_path, WORDS)))
    if name == "fifo":  # as a shell's <(…) is one that is open already
        ours, theirs = os.pipe()
        os.write(theirs, content)
        os.close(theirs)
        how = {"pass_fds": [ours], "stdin": subprocess.DEVNULL}
        done = subprocess.run(
            [*words, f"/dev/fd/{ours}"], capture_output=True, env=environment(), **how
        )
        os.close(ours)
    else:
        done = subprocess.run([*words, name], input=content, capture_output=True, env=environment())
    assert done.stdout.decode().split("\n")[:-1] == expected, done.stderr


def test_a_pipe_that_nobody_writes_to_is_refused(models, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    message = error_of(call("predict", models["words"], "--data", tmp_path / "pipe"), 1)
    assert "not a regular file" in message
    missing = call("predict", models["words"], "--data", tmp_path / "missing")
    assert "missing: there is no such file or folder" in error_of(missing, 2)
    for command in ("predict", "score"):
        folder = call(command, models["words"], "--data", tmp_path)
        assert f"{tmp_path} is a folder. Name a file." in error_of(folder, 2)


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/0"])
def test_messages_call_standard_input_by_its_name(models, name):
    words = [sys.executable, "-m", "ssvm_bench", "predict", str(models["columns"]), "--data", name]
    for content, message in (
        (b"one\n", "standard input cannot be used: line 1: 1 columns"),
        (b"\x1f\x8bdamaged", "standard input cannot be used: the gzip file is cut short"),
        (b"neu X B\n", "standard input: none of the entries of its columns 1, 2 was trained on"),
        (b"", "standard input: 0 examples, 0 parts"),
    ):
        done = subprocess.run(words, input=content, capture_output=True, env=environment())
        assert message in done.stderr.decode()


@pytest.mark.parametrize("boundary", ["marks", "ends"])
@pytest.mark.parametrize("template", ["U01:%x[9,0]", "%x[-9,0]", "U:%x[9,0]"])
def test_a_column_of_which_training_saw_no_entry_is_not_warned_of(
    tmp_path, caplog, template, boundary
):
    path = written(tmp_path, WORDS)
    used = f"dataset.templates=['{template}','U02:%x[0,1]']"
    load(path, used, f"dataset.boundary={boundary}", f"dataset.test={path}")
    assert "trained on" not in caplog.text
    other = written(tmp_path, "He X B\n12:30 Y O\n", "other")
    load(path, used, f"dataset.boundary={boundary}", f"dataset.test={other}")
    assert "none of the entries of its column 2 was trained on" in caplog.text


def test_a_file_in_the_home_folder_may_begin_with_a_tilde(models, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("data", "~data", "a,b,c.txt", "a=b,[c"):
        written(tmp_path, WORDS, name)
    expected = labels_of(call("predict", models["columns"], "--data", "data"))
    assert labels_of(call("predict", models["columns"], "--data=~/data")) == expected
    assert labels_of(call("predict", models["columns"], "--data=~data")) == expected
    plain = load("data")
    for name in ("~/data", "~data", "a,b,c.txt"):
        assert load(name).fingerprint == plain.fingerprint
    with pytest.raises(ConfigError, match=r"""quote it: 'dataset.path="a,d"'"""):
        load("a,d")
    assert load('"a,b,c.txt"').fingerprint == plain.fingerprint


# ---- columns that are missing, and features that nobody knows -----------------------------------


def cut(text, *kept):
    """Return some columns of lines."""
    lines = (line.split() for line in text.split("\n"))
    return "\n".join(" ".join(line[k] for k in kept if line) for line in lines)


def test_a_missing_column_of_features_is_named(models, tmp_path):
    for kept, missing in (((0, 2), 2), ((1, 2), 1)):
        data = written(tmp_path, cut(WORDS, *kept))
        for command in ("predict", "score"):
            message = error_of(call(command, models["columns"], "--data", data), 1)
            assert "2 columns, the last of them with labels, and 3 were trained on: " in message
            assert f": column {missing} is missing" in message
    bare = written(tmp_path, cut(WORDS, 0, 1))
    assert labels_of(call("predict", models["columns"], "--data", bare)) == labels_of(
        call("predict", models["columns"], "--data", written(tmp_path, WORDS, "whole"))
    )
    message = error_of(call("score", models["columns"], "--data", bare), 2)
    assert "has no labels to compare with: column 3, the last one, is missing" in message
    one = written(tmp_path, cut(WORDS, 0))
    assert "line 1: 1 columns, and the file trained on had 3" in error_of(
        call("predict", models["columns"], "--data", one), 1
    )
    labels = written(tmp_path, cut(WORDS, 2))
    assert "column 1 is missing" in error_of(call("predict", models["words"], "--data", labels), 1)


def test_a_file_of_which_no_feature_is_known_is_told(models, tmp_path):
    for model, content, message in (
        ("columns", cut(WORDS, 1, 0, 2), "none of the entries of its columns 1, 2 was trained on"),
        ("columns", WORDS.replace("CD", "X").replace("UH", "X"), ""),
        ("words", "neu\nfremd\n", "none of the entries of its column 1 was trained on"),
        ("svmlight", "1 17:1 20:1\n", "none of its features was trained on"),
        ("svmlight", "1\n", ""),
    ):
        result = call("predict", models[model], "--data", written(tmp_path, content))
        assert result.exit_code == 0, result.stderr
        assert (
            (message or "trained on") in result.stderr
            if message
            else "trained on" not in result.stderr
        )
    other = written(tmp_path, "neu X B\nfremd Y O\n", "other")
    words = (
        "dataset=file",
        f"dataset.path={written(tmp_path, WORDS, 'train')}",
        f"dataset.test={other}",
    )
    said = call("run", *words, "budget.max_iterations=1", f"results_dir={tmp_path / 'r'}").stderr
    assert "other: none of the entries of its columns 1, 2 was trained on" in said


# ---- labels -------------------------------------------------------------------------------------

ONE_CLASS = "there is one class only, {}: there is nothing to learn"


def test_one_class_alone_is_refused_everywhere_alike(tmp_path):
    ones, offsets = np.ones((4, 2)), np.array([0, 2, 4])
    for path, name in (
        (written(tmp_path, "a x\nb x\n\nc x\n"), "x"),
        (written(tmp_path, "1 1:1\n1 2:1\n", "rows"), "1"),
        (saved(tmp_path, "i.npz", x=ones, y=np.full(4, 7)), "7"),
        (saved(tmp_path, "c.npz", x=ones, y=np.full(4, "B"), offsets=offsets), "B"),
        (saved(tmp_path, "l.npz", x=ones, y=np.ones(4, int), labels=np.array(["a", "b"])), "b"),
    ):
        with pytest.raises(RunFailedError, match=ONE_CLASS.format(name)):
            load(path)
    for structure, X, y in (
        ("multiclass", ones, [7] * 4),
        ("chain", [ones, ones], [["B"] * 4] * 2),
        ("graph", [(ones, [[0, 1]])], [[7] * 4]),
    ):
        with pytest.raises(ValueError, match=ONE_CLASS.format("7|B").replace("7|B", "(7|B)")):
            StructuredSVM(structure).fit(X, y)
    assert load(saved(tmp_path, x=ones, y=np.ones(4), structure="regression")).n_labels == 0


IGNORABLE = "034f 061c 115f 1160 17b4 180b 180f 3164 fe00 fe0f ffa0 fff0 1bca0 1d173 e0001 e0100"
UNSEEN = [" ", "\u00a0", "\u2009", "\u200b", "\u200d", "\ufeff", "\u2060", "\u2800"]
UNSEEN += [chr(int(code, 16)) for code in IGNORABLE.split()]
UNSEEN = [pytest.param(blank, id=f"{ord(blank):x}") for blank in UNSEEN]


@pytest.mark.parametrize("blank", UNSEEN)
@pytest.mark.parametrize("where", ["before", "behind"])
def test_a_label_with_an_invisible_end_is_refused_everywhere(tmp_path, blank, where):
    label = f"{blank}a" if where == "before" else f"a{blank}"
    message = "the label .* begins or ends with a blank or an invisible character"
    y = np.array(["a", label, "b"])
    with pytest.raises(RunFailedError, match=f"part 1: {message}"):
        load(saved(tmp_path, x=np.ones((3, 1)), y=y))
    with pytest.raises(RunFailedError, match=message):
        load(saved(tmp_path, x=np.ones((2, 1)), y=np.arange(2), labels=np.array(["b", label])))
    with pytest.raises(ValueError, match=message):
        StructuredSVM().fit(np.eye(3), y)
    with pytest.raises(ValueError, match=message):
        StructuredSVM("chain").fit([np.eye(3)], [y.tolist()])
    if blank != " ":
        path = written(tmp_path, f"u a\nv b\n\nw {label}\n")
        with pytest.raises(RunFailedError, match=f"line 4, column 2: {message}"):
            load(path)
        good = written(tmp_path, "u a\nv b\n\nw a\n", "good")
        with pytest.raises(RunFailedError, match=f"line 4, column 2: {message}"):
            load(good, f"dataset.test={path}")
        assert f"{blank.encode('unicode_escape').decode()}" in why_no_label(label)


@pytest.mark.parametrize("name", ["", " ", "\u3164", "\u200b\ufe0f", "\U000e0001"])
def test_a_label_that_nobody_sees_is_refused_everywhere(tmp_path, name):
    message = "is no name: it is empty or invisible"
    y = np.array(["a", name, "b"])
    with pytest.raises(RunFailedError, match=message):
        load(saved(tmp_path, x=np.ones((3, 1)), y=y))
    with pytest.raises(RunFailedError, match=message):
        load(saved(tmp_path, x=np.ones((3, 1)), y=np.arange(3) % 2, labels=np.array(["b", name])))
    with pytest.raises(ValueError, match=message):
        StructuredSVM().fit(np.eye(3), y)
    with pytest.raises(ValueError, match=message):
        StructuredSVM("chain").fit([np.eye(3)], [y.tolist()])
    if name.strip():
        with pytest.raises(RunFailedError, match=message):
            load(written(tmp_path, f"u a\nv b\n\nw {name}\n"))


# ---- examples without parts ---------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["chain", "graph"])
def test_an_example_without_parts_has_an_empty_labeling(models, tmp_path, structure):
    whole = labels_of(call("predict", models[structure]))[:8]
    arrays = {"x": NUMBERS[:6], "offsets": np.array([0, 0, 3, 3, 6, 6])}
    if structure == "graph":
        arrays |= {
            "edges": np.array([[0, 1], [1, 2]] * 2),
            "edge_offsets": np.array([0, 0, 2, 2, 4, 4]),
        }
    path = saved(tmp_path, **arrays)
    predicted = labels_of(call("predict", models[structure], "--data", path))
    assert predicted == ["", *whole[:4], "", *whole[4:], ""]
    scored = call("score", models[structure], "--data", saved(tmp_path, y=LABELS[:6], **arrays))
    assert "of 6 parts" in scored.stdout, scored.stderr
    empties = {"x": NUMBERS[:0], "offsets": np.zeros(3, int)}
    if structure == "graph":
        empties |= {"edges": np.zeros((0, 2), int), "edge_offsets": np.zeros(3, int)}
        wrong = saved(tmp_path, **arrays | {"edge_offsets": np.array([0, 2, 2, 2, 4, 4])})
        assert "an example without parts has edges" in error_of(
            call("predict", models[structure], "--data", wrong), 1
        )
    assert labels_of(call("predict", models[structure], "--data", saved(tmp_path, **empties))) == [
        "",
        "",
    ]


def test_no_examples_have_no_labels(models, tmp_path):
    empty, sparse_x = written(tmp_path, "\n \n", "empty"), sparse.csr_array((0, 4))
    none = saved(tmp_path, "none.npz", x=NUMBERS[:0])
    of_csr = saved(
        tmp_path,
        "csr.npz",
        **{k: np.array(getattr(sparse_x, k)) for k in ("data", "indices", "indptr", "shape")},
    )
    for name, path in (
        ("columns", empty),
        ("svmlight", empty),
        ("independent", none),
        ("independent", of_csr),
    ):
        result = call("predict", models[name], "--data", path)
        assert (result.exit_code, result.stdout) == (0, ""), result.stderr
        assert "0 examples, 0 parts" in result.stderr
        message = error_of(call("score", models[name], "--data", path), 2)
        assert "has no examples, and so nothing to compare" in message
    with pytest.raises(RunFailedError, match="the file is empty"):
        load(empty)
    with pytest.raises(RunFailedError, match="its y has no labels"):
        load(saved(tmp_path, x=NUMBERS[:0], y=LABELS[:0]))


# ---- what separates columns ---------------------------------------------------------------------

PLACES = (
    "He\tPRP\tO\nleft\tVBD\tO\nNew York\tNNP\tB-LOC\n.\t.\tO\n\n"
    "She\tPRP\tO\nsaw\tVBD\tO\nSan José\tNNP\tB-LOC\n\n"
)
NAMED = {"tab": "\t", "comma": ",", "semicolon": ";", "bar": "|"}


@pytest.mark.parametrize("separator", [",", ";", "\t", " "])
@pytest.mark.parametrize("head", ["", "width,height,kind\n"])
def test_csv_of_numbers_is_told_what_to_be(tmp_path, separator, head):
    """A newcomer's first file; "Correct the file" left them alone."""
    rows = "".join(f"{k / 7:.3f},{-k / 3:.3f},{'red' if k % 2 else 'blue'}\n" for k in range(20))
    path = written(tmp_path, (head + rows).replace(",", separator), "table.csv")
    with pytest.raises(RunFailedError, match=r"A table of numbers comes as an \.npz with x and y"):
        load(path)
    with pytest.raises(RunFailedError, match=r"Correct the file\.$"):
        load(written(tmp_path, "one\ntwo\n\none\n", "one.txt"))


@pytest.mark.parametrize("name", NAMED)
def test_entries_with_blanks_have_another_separator(tmp_path, name):
    path = written(tmp_path, PLACES.replace("\t", NAMED[name]), "places.txt")
    dataset = load(path, f"dataset.separator={name}")
    assert np.diff(dataset.offsets).tolist() == [4, 3]
    assert dataset.label_names == ("O", "B-LOC")
    assert "%x[0,0]=New York" in dataset.vocabulary.features
    same = load(written(tmp_path, PLACES.replace(" ", "_"), "joined.txt"))
    assert (dataset.x != same.x).nnz == 0
    other = "comma" if name == "tab" else "tab"
    for options in ((), (f"dataset.separator={other}",), ("dataset.format=columns",)):
        with pytest.raises(RunFailedError, match=rf"\. dataset.separator={name} would read it\.$"):
            load(path, *options)
    blanks = written(tmp_path, PLACES.replace(" ", "_").replace("\t", " "), "blanks.txt")
    with pytest.raises(RunFailedError, match=r"dataset.separator=blanks would read it\.$"):
        load(blanks, f"dataset.separator={name}")


def test_csv_with_quotes_is_named_whatever_separates_it(tmp_path):
    path = written(tmp_path, 'He,PRP,O\nis,VB,O\n\n0,CD,B\n",",",",O\n')
    for options in ((), ("dataset.separator=comma",), ("dataset.format=columns",)):
        with pytest.raises(RunFailedError, match=r"CSV with quotes.*to_csv\(.*sep=.\\t"):
            load(path, *options)
    tokens = 'He,PRP,O\n",SYM,B\n\nis,VB,O\n",SYM,B\n'  # quotes are tokens like others
    assert load(written(tmp_path, tokens), "dataset.separator=comma").n == 2


def test_no_separator_is_advised_for_what_none_reads(tmp_path):
    for content in ("a\tX\nb\t\n", "a\tX\nb\tX\tY\n", "a\nb\n"):
        path = written(tmp_path, content)
        with pytest.raises(RunFailedError, match=r"Correct the file\.$"):
            load(path, "dataset.separator=tab")


def test_lines_of_separators_end_a_sequence_and_entries_may_be_empty(tmp_path):
    lines = "a\tX\n\tY\n\t\nb\tX\n \t \nc\tY\n"
    dataset = load(written(tmp_path, lines), "dataset.separator=tab")
    assert np.diff(dataset.offsets).tolist() == [2, 1, 1]
    assert "%x[0,0]=" in dataset.vocabulary.features
    for wrong, message in (
        ("a\tX\nb\t\n", "label"),
        ("a\tX\nb\tX\tY\n", "line 2.*3 columns, and line 1 has 2"),
        ("a X\nb Y\n", "one column, expected two or more"),
        ("\t\n\t\n", "separators|empty"),
    ):
        with pytest.raises(RunFailedError, match=message):
            load(written(tmp_path, wrong), "dataset.separator=tab")
    with pytest.raises(ConfigError, match="Valid: bar, blanks, comma"):
        load(written(tmp_path, lines), "dataset.separator=;")
    with pytest.raises(ConfigError, match="a file has one format"):
        load(written(tmp_path, lines), "dataset.separator=tab", "dataset.zero_based=true")


def test_a_run_remembers_what_separates_columns(tmp_path):
    path = written(tmp_path, PLACES, "places.tsv")
    data = ("dataset=file", f"dataset.path={path}", "dataset.separator=tab", f"dataset.test={path}")
    made = run_here(tmp_path / "r", "solver=bcfw", "budget.max_iterations=5", data=data)
    assert read(made.folder).vocabulary.separator == "tab"
    unlabelled = written(tmp_path, "New York\tNNP\n.\t.\n", "new.tsv")
    predicted = call("predict", made.folder, "--data", unlabelled)
    assert predicted.stdout.split() == ["B-LOC", "O"], predicted.stderr
    assert call("score", made.folder, "--data", path).exit_code == 0


def test_a_vocabulary_of_an_earlier_version_has_blanks_between_columns():
    known = Vocabulary(("0", "1"), "svmlight", "independent", 3)
    values = json.loads(gzip.decompress(known.dumped()))
    del values["separator"]
    assert Vocabulary.read(json.dumps(values).encode()) == known
    with pytest.raises(ContentError, match="separator is not known"):
        Vocabulary.read(json.dumps({**values, "separator": "x"}).encode())


# ---- a head, and one long sequence --------------------------------------------------------------

HEADS = {
    "names": "word pos tag",
    "capitals": "Token POS NER_Tag",
    "plural": "words tags labels",
    "a comment's sign": "#form upos label",
    "one name is a feature's": "token is_title label",
}


def with_head(head, copies=1, separator="\t"):
    """Return sentences behind a head, so many files of them one after another."""
    text = "\n".join([*head.split(), ""]).replace("\n", separator).rstrip(separator) + "\n"
    return (text + TEXT.replace(" ", separator) + "\n") * copies


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("copies", [1, 3])
def test_a_head_is_no_part(tmp_path, name, copies):
    """It was trained on as a word of its own label, without a word."""
    first = HEADS[name]
    path = written(tmp_path, with_head(first, copies), "small.tsv")
    said = rf"line 1, '{first}', is a head: .*label {first.split()[-1]} is in no other line"
    for options in ((), ("dataset.separator=tab",), ("dataset.boundary=ends",)):
        with pytest.raises(RunFailedError, match=said + r".*Leave line 1 out"):
            load(path, *options)
    if copies == 1:
        with pytest.raises(RunFailedError, match=said):
            load(path.rename(tmp_path / "small.conll"))


def test_a_head_that_is_wanted_is_read_and_told(tmp_path, caplog):
    path = written(tmp_path, with_head("word pos tag"))
    assert "tag" in load(path, "dataset.format=columns").label_names
    assert "line 1, 'word pos tag', looks like a head, and is read as a part" in caplog.text


def test_what_may_be_a_head_is_told(tmp_path, caplog):
    """Nobody knows all languages' names of columns."""
    load(written(tmp_path, "Wort Etikett\n" + "der A\nHund N\nbellt V\n\n" * 9))
    assert "line 1, 'Wort Etikett', looks like a head" in caplog.text


@pytest.mark.parametrize("name", COLUMNS)
def test_a_part_is_no_head(tmp_path, name, caplog):
    load(written(tmp_path, COLUMNS[name]))
    assert "head" not in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        "great pos\nawful neg\n\nfine pos\n",
        "great pos\nawful neg\n",
        "word NN label\nis VB O\n\nlabel NN label\n",
        "Text NN B-X\nis VB O\n\n",
    ],
)
def test_a_word_or_a_label_of_such_a_name_is_no_head(tmp_path, text, caplog):
    load(written(tmp_path, text))
    assert "head" not in caplog.text


def test_a_head_of_a_later_file_is_told(tmp_path, caplog):
    train, test = written(tmp_path, TEXT), written(tmp_path, "word pos tag\n" + TEXT, "test.txt")
    load(train, f"dataset.test={test}")
    assert "test.txt: line 1, 'word pos tag', looks like a head" in caplog.text


def numbered(separator=",", head="sentence,word,pos,tag\n", of=str):
    """Return a table of words whose first column numbers the sentences."""
    lines = [f"{of(k // 5)},w{k % 7},{'NV'[k % 2]},{'BIO'[k % 3]}\n" for k in range(300)]
    return (head + "".join(lines)).replace(",", separator)


def test_one_long_sequence_must_be_stated(tmp_path):
    """An option of columns says nothing of where a sequence ends."""
    path = written(tmp_path, "a x\nb y\n" * 60)
    for options in (("dataset.separator=blanks",), ("dataset.min_count=2",)):
        with pytest.raises(RunFailedError, match="no empty line ends a sequence in 120 lines"):
            load(path, *options)
    named = written(tmp_path, "a x\nb y\n" * 60, "long.conll")
    with pytest.raises(RunFailedError, match=r"dataset\.format=columns would read it as such"):
        load(named)
    assert load(named, "dataset.format=columns").n == 1
    commas = written(tmp_path, "a,x\nb,y\n" * 60)
    assert load(commas, "dataset.format=columns", "dataset.separator=comma").n == 1


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_a_column_that_numbers_sequences_is_named(tmp_path, separator):
    name = {",": "comma", "\t": "tab", ";": "semicolon"}[separator]
    for text in (
        numbered(separator),
        numbered(separator, head=""),
        numbered(separator, of=lambda k: f"Sentence: {k}"),
    ):
        path = written(tmp_path, text, "words.csv")
        for options in ((f"dataset.separator={name}",), ()):
            with pytest.raises(RunFailedError, match="no empty line ends a sequence") as failure:
                load(path, *options)
            assert "Column 1 seems to number the sequences" in str(failure.value)
            assert f"dataset.separator={name}" in str(failure.value) or options or name == "tab"


def test_a_column_that_names_first_parts_is_named(tmp_path):
    """As in Kaggle's table of entities: the other parts of a sentence have nothing there."""
    lines = [
        f"{f'Sentence: {k // 5}' * (k % 5 == 0)},w{k % 7},{'BIO'[k % 3]}\n" for k in range(300)
    ]
    path = written(tmp_path, "Sentence #,Word,Tag\n" + "".join(lines), "ner.csv")
    with pytest.raises(RunFailedError, match="Column 1 seems to number the sequences"):
        load(path, "dataset.separator=comma")
