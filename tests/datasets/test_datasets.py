"""The loaders' content checks, and the subsets."""

import gzip
import os
import runpy
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import oracle
from program import real_data
from raw_data import packed
from scipy.sparse import csr_array
from sklearn.datasets import load_digits

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.random import approx_normal, permutation, uniform
from ssvm_bench.datasets import horseseg, ocr, optdigits, sources, usps
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.sources import status

pytestmark = pytest.mark.usefixtures("own_cache")


def ocr_lines(words=("cat", "on"), folds=(0, 3)):
    """Return the rows of a tiny file in the format of the OCR letters, as lists of fields."""
    rows, number = [], 0
    for word_id, (word, fold) in enumerate(zip(words, folds, strict=True), start=1):
        for position, letter in enumerate(word, start=1):
            number += 1
            next_id = -1 if position == len(word) else number + 1
            pixels = [(number + j) % 2 for j in range(128)]
            rows.append([number, letter, next_id, word_id, position, fold, *pixels])
    return rows


def usps_lines():
    return [[f"{k}.0000", *(f"{v:.4f}" for v in np.linspace(-1, 1, 256))] for k in (6, 0, 9)]


def pack(rows, separator="\t"):
    text = "".join(separator.join(map(str, row)) + separator + "\n" for row in rows)
    return gzip.compress(text.encode())


def test_ocr_parses_words():
    arrays = ocr.parse(pack(ocr_lines()))
    assert (arrays["offsets"].tolist(), arrays["fold"].tolist()) == ([0, 3, 5], [0, 3])
    assert arrays["y"].tolist() == [ord(c) - ord("a") for c in "caton"]
    assert (arrays["x"].dtype, arrays["x"][0, :3].tolist()) == (np.uint8, [1, 0, 1])


def test_usps_parses_digits_packed_or_not():
    came = pack(usps_lines(), " ")
    for content in (came, gzip.decompress(came)):  # some tools unpack on the way
        arrays = usps.parse(content)
        assert arrays["y"].tolist() == [6, 0, 9]
        assert arrays["x"].shape == (3, 256)
        np.testing.assert_array_equal(arrays["x"][0], np.linspace(-1, 1, 256).round(4))


@pytest.mark.parametrize(
    ("module", "row", "column", "value", "message"),
    [
        (ocr, 1, 1, "é", r"line 2: letter .*expected a … z"),
        (ocr, 1, 1, "ab", r"line 2: letter 'ab'"),
        (ocr, 2, 7, "nan", "line 3: nan in column 8, expected a number"),
        (ocr, 2, 7, "x", "line 3: x in column 8, expected a number"),
        (ocr, 2, 7, "2", "line 3: a pixel that is neither 0 nor 1"),
        (ocr, 4, 5, "10", "line 5: fold 10, expected 0 … 9"),
        (ocr, 4, 5, "7", "line 4: a word that continues in another fold"),
        (ocr, 0, 2, "7", "line 1: next_id 7, expected −1 or the id of the next line"),
        (ocr, 4, 2, "6", "line 5: next_id 6"),
        (usps, 1, 0, "10.0000", "line 2: label 10, expected 0 … 9"),
        (usps, 1, 0, "3.5", "line 2: label 3.5"),
        (usps, 1, 0, "-1", "line 2: label -1"),
        (usps, 2, 9, "NaN", "line 3: nan in column 10, expected a number"),
        (usps, 2, 9, "inf", "line 3: inf in column 10, expected a number"),
        (usps, 2, 9, "1.01", r"line 3: a grey value outside \[−1, 1\]"),
    ],
)
def test_the_first_bad_line_is_named(module, row, column, value, message):
    rows = ocr_lines() if module is ocr else usps_lines()
    rows[row][column] = value
    with pytest.raises(ContentError, match=f"(?i){message}"):
        module.parse(pack(rows, "\t" if module is ocr else " "))


@pytest.mark.parametrize("parse", [ocr.parse, usps.parse])
def test_wrong_format_is_recognised(parse):
    packed = pack(usps_lines() if parse is usps.parse else ocr_lines(), " ")
    for raw, message in [
        (packed[: len(packed) // 2], "cut short or damaged"),
        (packed[:-4], "cut short or damaged"),
        (packed[:40] + b"\x00\xff" * 8 + packed[56:], "cut short or damaged"),
        (b"", "empty"),
        (gzip.compress(b"\n\n"), "empty"),
        (b"<!DOCTYPE html>\n<p>404 Not Found</p>\n", "line 1: 2 columns, expected"),
        (os.urandom(1000), "columns, expected"),
        (gzip.compress(b"1 2 3\n"), "line 1: 3 columns, expected"),
    ]:
        with pytest.raises(ContentError, match=message):
            parse(raw)


@pytest.mark.parametrize("change", [lambda row: row.pop(), lambda row: row.append("0")])
def test_wrong_number_of_columns(change):
    rows = ocr_lines()
    change(rows[3])
    with pytest.raises(ContentError, match=r"line 4: 13[35] columns, expected 134"):
        ocr.parse(pack(rows))


def test_copies_that_number_letters_in_another_way_are_the_same_words():
    def identity(rows, separator="\t"):
        return ocr.identity(gzip.decompress(pack(rows, separator)))

    lines = ocr_lines()
    same = [[100 + row[0], row[1], row[2] + 100 * (row[2] != -1), *row[3:]] for row in lines]
    assert identity(same, " ") == identity(lines)
    for row, column, value in ((1, 1, "x"), (0, 7, 1), (1, 5, 1), (1, 2, -1)):
        other = [list(line) for line in lines]
        other[row][column] = value
        assert identity(other) != identity(lines)


def test_a_file_that_is_packed_twice_is_told(tmp_path):
    path = tmp_path / "letter.data.gz"
    once = gzip.compress(b"1 a -1 1 1 0" + b" 0" * 128 + b"\n")
    for content, message in (
        (once, "has the sha256"),
        (gzip.compress(once), "it is no file of these data"),
    ):
        path.write_bytes(content)
        with pytest.raises(ContentError, match=message):
            ocr.RAW.check(path)


@pytest.mark.parametrize(("module", "rows"), [(ocr, ocr_lines), (usps, usps_lines)])
def test_small_files_are_read_on_trust(module, rows, tmp_path, monkeypatch):
    monkeypatch.setenv("SSVM_BENCH_DATA", str(tmp_path))
    path = module.RAW.places()[0]
    path.parent.mkdir()
    path.write_bytes(pack(rows(), " "))
    name = module.RAW.dataset
    with pytest.raises(RunFailedError, match=r"sha256 .*dataset\.trust=true"):
        module.load(module.Config(name, name))
    data = module.load(module.Config(name, name, trust=True))
    assert (data.source, data.y.size) == ("real (altered)", len(rows()))


def test_n_samples_are_nested_and_independent_of_everything():
    whole, large, small = (
        ocr.load(ocr.Config("ocr", "ocr", "synthetic", count)) for count in (None, 60, 25)
    )
    first = large.take(np.arange(25))
    assert (small.n, large.n, first.fingerprint) == (25, 60, small.fingerprint)
    assert np.array_equal(first.fold, small.fold)
    words, some = (
        {data.y[a:b].tobytes() for a, b in pairwise(data.offsets)} for data in (whole, small)
    )
    assert some <= words


def test_bad_options_are_refused():
    with pytest.raises(ConfigError, match=r"dataset\.n_samples must be ≤ 7291.*got 7292"):
        usps.load(usps.Config("usps", "usps", "synthetic", 7292))
    for n_samples in (0, -3, 2.5, True, "all"):
        with pytest.raises(ConfigError, match=r"dataset\.n_samples must be"):
            usps.Config("usps", "usps", "synthetic", n_samples)
    with pytest.raises(ConfigError, match=r"dataset\.source=fake is not known"):
        usps.Config("usps", "usps", "fake")


def test_biases_of_letters():
    def letters(**options):
        return ocr.load(ocr.Config("ocr", "ocr", "synthetic", **options))

    plain, constant, ends = (letters(n_samples=9, biases=biases) for biases in ocr.BIASES)
    assert constant.x.dtype == ends.x.dtype == plain.x.dtype
    assert len({plain.fingerprint, constant.fingerprint, ends.fingerprint}) == 3
    for more in (constant, ends):
        assert np.array_equal(more.x[:, :128], plain.x)
        assert (more.x[:, 128] == 1).all()
    assert constant.x.shape[1] == 129
    parts = np.arange(plain.y.size)
    bounds = [np.isin(parts, plain.offsets[:-1]), np.isin(parts, plain.offsets[1:] - 1)]
    assert np.array_equal(ends.x[:, 129:].T, bounds)
    assert letters(folds=(0,), biases="ends").held_out["test"].n_features == 131


IMAGES = ((4, [(0, 1), (1, 3), (2, 3)]), (3, [(0, 2), (1, 2)]), (2, []), (1, []))
"""Superpixels and neighbours of some images, in the form in which they are read."""


def horse_arrays(dtype=np.float64):
    """Return the arrays of a small file in the format of HorseSeg, by key."""
    rng = np.random.default_rng(0)
    arrays = {}
    for i, (size, edges) in enumerate(IMAGES):
        x = rng.random((size, 649)) * (rng.random((size, 649)) < 0.1)
        of_image = {
            "superpixel_count": size,
            "edge_count": len(edges),
            "edge_structure": np.array(edges, np.int32).reshape(-1, 2),
            "features": x.astype(dtype),
            "labels": rng.integers(0, 2, size),
        }
        arrays |= {f"{kind}_{i:06d}": value for kind, value in of_image.items()}
    return arrays


def write_hdf5(path, arrays):
    h5py = pytest.importorskip("h5py")
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for key, value in arrays.items():
            file[key] = value
    return path


def assert_read(path, expected):
    """Check what is read of a file against the arrays of :func:`horse_arrays`."""
    found = horseseg.parse(path)
    assert found["offsets"].tolist() == [0, 4, 7, 9, 10]
    assert found["edge_offsets"].tolist() == [0, 3, 5, 5, 5]
    assert [*map(tuple, found["edges"])] == [pair for _, edges in IMAGES for pair in edges]
    dtypes = {name: array.dtype.str[1:] for name, array in found.items() if name != "data"}
    bytes_8 = dict.fromkeys(("indptr", "offsets", "edge_offsets"), "i8")
    assert dtypes == {"indices": "u2", "y": "u1", "edges": "i4", **bytes_8}
    x = csr_array((found["data"], found["indices"], found["indptr"]), shape=(10, 649)).toarray()
    features, labels = joined(expected, "features"), joined(expected, "labels")
    assert x.dtype == (np.float32 if features.dtype == np.float32 else np.float64)
    assert np.array_equal(x, features)  # as they are
    assert np.array_equal(found["y"], labels)


def joined(arrays, kind):
    """Return the arrays of a kind of all images as one."""
    return np.concatenate([arrays[f"{kind}_{i:06d}"] for i in range(4)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ">f8"])
def test_horseseg_is_read_as_it_is(tmp_path, dtype):
    arrays = horse_arrays(dtype)
    assert_read(write_hdf5(tmp_path / "a", arrays), arrays)


def test_horseseg_may_be_stored_in_other_shapes(tmp_path):
    arrays = horse_arrays()
    for change in (
        {key: np.ravel(value) for key, value in arrays.items()},
        {key: np.transpose(value) for key, value in arrays.items() if np.size(value) != 4},
        {key: np.reshape(value, (-1, 1)) for key, value in arrays.items() if np.ndim(value) < 2},
        {key: np.asarray(value, np.float64) for key, value in arrays.items()},
        {key: value == 1 for key, value in arrays.items() if key.startswith("labels")},
        {"comment": "no array of an image", "labels": 7, "features_mean": 1.0},
        {  # pairs of neighbours are ordered, and counted once
            "edge_count_000000": 5,
            "edge_structure_000000": [(3, 2), (1, 0), (3, 1), (2, 3), (1, 0)],
            "edge_structure_000001": [(2, 1), (2, 0)],
        },
    ):
        assert_read(write_hdf5(tmp_path / "a", arrays | change), arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels_000001": None}, "has no labels_000001"),
        ({"edge_structure_000003": None}, "has no edge_structure_000003"),
        ({f"{kind}_000001": None for kind in horseseg.KINDS}, "has no superpixel_count_000001"),
        ({"superpixel_count_000005": 1}, "has no superpixel_count_000004"),
        ({"superpixel_count_000001": 4}, r"features_000001 has shape \(3, 649\), expected 4 × 649"),
        ({"superpixel_count_000001": 0}, "superpixel_count_000001 .* is 0, and must be at least 1"),
        ({"superpixel_count_000001": []}, "superpixel_count_000001 has shape"),
        ({"superpixel_count_000001": "three"}, "superpixel_count_000001 is not made of numbers"),
        ({"edge_count_000001": 3}, r"edge_structure_000001 has shape \(2, 2\), expected 3 × 2"),
        ({"edge_count_000001": -2}, "edge_count_000001 .* is -2, and must be at least 0"),
        ({"edge_count_000001": 1.5}, "edge_count_000001 .* is 1.5, and int64 does not hold"),
        ({"features_000001": np.full((3, 649), np.nan)}, "features_000001 .* not finite"),
        ({"features_000001": np.full((3, 649), -np.inf)}, "features_000001 .* not finite"),
        ({"features_000001": np.ones((3, 650))}, r"features_000001 has shape \(3, 650\)"),
        ({"labels_000001": [0, 2, 1]}, "labels_000001 .* is 2, and must be .* at most 1"),
        ({"labels_000001": [0, -1, 1]}, "labels_000001 .* is -1, and must be at least 0"),
        ({"labels_000001": [0.0, 0.5, 1.0]}, "labels_000001 .* is 0.5, and int64 does not hold"),
        ({"labels_000001": [0, 1]}, r"labels_000001 has shape \(2,\), expected 3"),
        *(
            ({"edge_structure_000001": pairs}, f"edge_structure_000001 .* {message}")
            for pairs, message in (
                ([(0, 1), (1, 3)], "is 3, .* at most 2"),
                ([(0, 1), (-1, 2)], "is -1, .* at most 2"),
                ([(0, 1), (2, 2)], "to itself"),
                (np.array([(0, 1), (2**64 - 1, 2)], np.uint64), "is 18446744073709551615, .* at m"),
            )
        ),
    ],
)
def test_horseseg_names_the_first_bad_array(tmp_path, change, message):
    arrays = {k: v for k, v in (horse_arrays() | change).items() if v is not None}
    with pytest.raises(ContentError, match=message):
        horseseg.parse(write_hdf5(tmp_path / "a", arrays))


@pytest.mark.parametrize("kind", ["pieces", "external", "link", "counts"])
def test_horseseg_that_would_fill_the_memory_is_refused(tmp_path, kind):
    h5py = pytest.importorskip("h5py")
    path = write_hdf5(tmp_path / "a", horse_arrays())
    key = "features_000001"
    with h5py.File(path, "a") as file:
        values = file[key][:]
        del file[key]
        if kind == "pieces":  # which are unpacked whole
            packed = {"maxshape": (None, 649), "chunks": (1 << 17, 649), "compression": "gzip"}
            file.create_dataset(key, data=values, **packed)
        elif kind == "external":
            file.create_dataset(key, (3, 649), "f8", external=[("/dev/zero", 0, 3 * 649 * 8)])
        elif kind == "link":
            file[key] = h5py.ExternalLink(write_hdf5(tmp_path / "b", horse_arrays()).name, key)
        else:  # of which nothing is stored
            file.create_dataset(key, (1 << 30, 649), "f8")
            file["superpixel_count_000001"][...] = 1 << 30
    said = r"000001 (is stored in pieces|lies in|of entry 0 is 10737)"
    with pytest.raises(ContentError, match=said):
        horseseg.parse(path)


def test_horseseg_that_is_damaged_is_recognised(tmp_path):
    path = write_hdf5(tmp_path / "a", horse_arrays())
    good = path.read_bytes()
    damaged = [good[:k] for k in (0, 4, 100, 5000, len(good) - 1)] + [b"<html>moved</html>"]
    for k in range(100, 3000, 50):  # tables of names and places; some of them are not in use
        damaged.append(good[:k] + b"\xff" * 50 + good[k + 50 :])
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            horseseg.parse(path)
        except ContentError as error:
            refused += "not an HDF5 file, or a damaged one" in str(error)
    assert refused > 20
    with pytest.raises(ContentError, match="has no superpixel_count_000000"):
        horseseg.parse(write_hdf5(tmp_path / "a", {"superpixels": 1}))


@pytest.fixture
def horse_file(tmp_path, monkeypatch):
    """Return the place of the HorseSeg file, which has only the images of `IMAGES`."""
    monkeypatch.setenv("SSVM_BENCH_DATA", str(tmp_path))
    monkeypatch.setattr(horseseg, "N_IMAGES", len(IMAGES))
    return tmp_path / "horseseg" / "horse-features.bin"


def findings_of(name):
    return {each.what: each for each in sources.integrity_report(name)[1]}


def test_a_copy_of_horseseg_is_checked(horse_file, monkeypatch):
    arrays = horse_arrays()
    arrays["edge_structure_000000"][2] = 3, 1  # of 1, 3, which is there
    write_hdf5(horse_file, arrays)
    found = findings_of("horseseg")
    assert not [fact for fact in found.values() if fact.expected]
    x, y = joined(arrays, "features"), joined(arrays, "labels")
    expected = {
        "superpixels an image": "1 to 4, 2.5 on average",
        "edges that are stored twice": "1 (each pair counts once)",
        "superpixels without a neighbour": "4",
        "features a superpixel": "649",
        "superpixels that are horse": f"{y.mean():.1%}",
        "their values": f"0 to {x.max():.6g}",
        "of which are not zero": f"{(x != 0).mean():.1%}",
    }
    assert {what: found[what].found for what in expected} == expected
    assert {what for what in found if "superpixel" in what or "edges" in what} <= expected.keys()

    monkeypatch.setattr(horseseg, "N_IMAGES", 9)
    del arrays["labels_000003"]
    arrays["features_000001"][0, 0] = np.nan
    arrays["mean_colour"] = 1.0
    write_hdf5(horse_file, arrays)
    found = findings_of("horseseg")
    assert {fact.what: (fact.found, fact.expected) for fact in found.values() if fact.expected} == {
        "images": ("4", "9"),
        "arrays that are missing": ("labels_000003", "none"),
        "images that cannot be used": ("features_000001 has entries that are not finite", "none"),
    }
    assert found["arrays of other names"].found == "mean_colour"
    assert found["superpixels an image"].found == "2 to 4, 3.0 on average"


def test_only_a_copy_that_is_there_can_be_checked(horse_file):
    with pytest.raises(RunFailedError, match=r"no .*horse-features\.bin to check.*data fetch"):
        sources.integrity_report("horseseg")
    horse_file.parent.mkdir()
    horse_file.write_bytes(b"<html>")
    with pytest.raises(RunFailedError, match="not an HDF5 file"):
        sources.integrity_report("horseseg")


def load_horses(n_samples=None):
    return horseseg.load(horseseg.Config("horseseg", "horseseg", "auto", n_samples))


def test_horseseg_is_a_dataset_that_mincut_accepts(horse_file):
    arrays = horse_arrays(np.float32)
    write_hdf5(horse_file, arrays)
    data = load_horses()
    assert (data.source, data.structure, data.n, data.n_labels) == ("real", "graph", 4, 2)
    assert load_horses().fingerprint == data.fingerprint
    assert horseseg.RAW.cache_place("real").is_file()
    assert list(horse_file.parent.iterdir()) == [horse_file]
    assert load_horses(2).n == 2
    cut = oracle(data)
    w = np.random.default_rng(1).standard_normal(2 * 649)
    for i, (size, edges) in enumerate(IMAGES):
        scores = arrays[f"features_{i:06d}"].astype(np.float64) @ w.reshape(2, 649).T

        def value(y, scores=scores, edges=edges):
            energy = sum(y[k] != y[l] for k, l in edges)
            return sum(row[k] for row, k in zip(scores, y, strict=True)) - energy

        best = max(np.ndindex(*(2,) * size), key=value)
        assert cut.predict(w, i).tolist() == list(best)


def test_horseseg_that_is_broken_is_never_replaced(horse_file, monkeypatch):
    write_hdf5(horse_file, horse_arrays() | {"labels_000001": [0, 2, 1]})
    with pytest.raises(RunFailedError, match="labels_000001 of entry 1 is 2") as failure:
        load_horses()
    assert str(horse_file) in str(failure.value)
    write_hdf5(horse_file, horse_arrays())
    monkeypatch.undo()
    monkeypatch.setenv("SSVM_BENCH_DATA", str(horse_file.parents[1]))
    with pytest.raises(RunFailedError, match="images: found 4, expected 2376"):
        load_horses()
    assert status("horseseg").state == "ready"  # its beginning is right
    horse_file.write_bytes(gzip.compress(b"something else"))
    assert status("horseseg").state == "broken"


def test_horseseg_is_unpacked_from_what_its_home_gives(tmp_path):
    members = {"data/README": b"x" * 600, "data/horse/horse-features.bin": b"y" * 9000}
    came = packed(tmp_path / "data.tar", members, "w")
    path = horseseg.RAW.unpack(came)
    assert path == tmp_path / "horse-features.bin"
    assert path.read_bytes() == b"y" * 9000
    content = came.read_bytes()
    for k in (0, 100, 1200, 4000):
        came.write_bytes(content[:k])
        with pytest.raises(ContentError, match="not a tar archive, or cut short"):
            horseseg.RAW.unpack(came)
    with pytest.raises(ContentError, match=r"there is no horse-features\.bin in it"):
        horseseg.RAW.unpack(packed(tmp_path / "data.tar", {"data/other.bin": b"z"}, "w"))


def letters_on_board(monkeypatch, tmp_path):
    """Return the words where there is no file of the user's."""
    monkeypatch.setenv("SSVM_BENCH_DATA", str(tmp_path))
    return ocr.load(ocr.Config("ocr", "ocr"))


def test_the_letters_on_board_are_the_genuine_ones(monkeypatch, tmp_path):
    words = letters_on_board(monkeypatch, tmp_path)
    assert (words.source, words.n, words.x.shape) == ("real", 6877, (52152, 128))
    assert np.array_equal(np.bincount(np.diff(words.offsets)), ocr.WORDS_PER_LENGTH)
    assert np.array_equal(np.bincount(words.fold), ocr.WORDS_PER_FOLD)
    assert not [each for each in findings_of("ocr").values() if each.expected]
    # a file like letter.data, made of them, has the digest of the genuine one
    ends, fold = set(words.offsets[1:] - 1), np.repeat(words.fold, np.diff(words.offsets))
    lines = (
        f"{k} {ocr.ALPHABET[y]} {-1 if k in ends else k + 1} 0 0 {fold[k]} "
        + " ".join(map(str, words.x[k]))
        for k, y in enumerate(words.y)
    )
    content = ocr.identity("\n".join(lines).encode())
    assert sources.sha256(content) == ocr.RAW.sha256[ocr.RAW.file]


def test_letters_are_packed_to_what_is_restored():
    packed = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "pack_letters.py"))["packed"]
    for words, folds in ((("cat", "on"), (0, 3)), (("zoo",), (9,)), (("a", "b", "a"), (1, 0, 1))):
        made = ocr.parse(pack(ocr_lines(words, folds)))
        restored = ocr.restore(gzip.decompress(packed(made)))
        assert restored.keys() == made.keys()
        for name, array in made.items():
            assert restored[name].dtype == array.dtype
            np.testing.assert_array_equal(restored[name], array)


@real_data("ocr/letter.data.gz")
def test_the_letters_on_board_are_those_of_the_raw_file(monkeypatch, tmp_path):
    raw = ocr.load(ocr.Config("ocr", "ocr", "real"))
    restored = letters_on_board(monkeypatch, tmp_path)
    assert restored.fingerprint == raw.fingerprint
    for name in ("x", "y", "offsets", "fold"):
        np.testing.assert_array_equal(getattr(restored, name), getattr(raw, name))


@real_data("ocr/letter.data.gz")
def test_real_ocr():
    dataset = ocr.load(ocr.Config("ocr", "ocr", "real"))
    assert (dataset.source, dataset.n, dataset.x.shape) == ("real", 6877, (52152, 128))
    first = dataset.y[: dataset.offsets[1]]
    assert "".join(ocr.ALPHABET[c] for c in first) == "ommanding"
    assert dataset.fold[0] == 0


def test_digits_of_scikit_learn_are_real_on_every_machine(monkeypatch, tmp_path):
    x, y = load_digits(return_X_y=True)
    dataset = optdigits.load(optdigits.Config("optdigits", "optdigits"))
    assert dataset.source == "real"
    np.testing.assert_array_equal(dataset.x, x)
    np.testing.assert_array_equal(dataset.y, y)
    assert not [each for each in findings_of("optdigits").values() if each.expected]

    other = tmp_path / "optdigits" / "digits.csv.gz"  # a file of the user's counts first
    other.parent.mkdir()
    other.write_text(",".join(["3"] * 65) + "\n")
    monkeypatch.setenv("SSVM_BENCH_DATA", str(tmp_path))
    with pytest.raises(RunFailedError, match=r"what is in digits\.csv\.gz has the sha256"):
        optdigits.load(optdigits.Config("optdigits", "optdigits"))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (64, "10", "line 2: label 10, expected 0 … 9"),
        (3, "17", "line 2: ink that is no whole number from 0 to 16"),
        (3, "0.5", "line 2: ink that is no"),
        (3, "nan", "line 2: nan in column 4"),
    ],
)
def test_a_bad_line_of_scikit_learns_digits_is_named(column, value, message):
    rows = [[*range(16)] * 4 + [0] for _ in range(3)]
    rows[1][column] = value
    text = "".join(",".join(map(str, row)) + "\n" for row in rows)
    with pytest.raises(ContentError, match=message):
        optdigits.parse(text.encode())


@real_data("usps/zip.train.gz")
def test_real_usps():
    dataset = usps.load(usps.Config("usps", "usps", "real"))
    assert (dataset.source, dataset.n, dataset.x.shape) == ("real", 7291, (7291, 256))
    assert (dataset.y[0], dataset.x[0, 7]) == (6, -0.631)
    assert not [each for each in findings_of("usps").values() if each.expected]


def test_permutations_are_pinned_and_uniform():
    assert permutation(10, np.random.PCG64(0)).tolist() == [1, 2, 3, 0, 6, 7, 8, 5, 4, 9]
    bits = np.random.PCG64(3)
    places = np.array([permutation(5, bits) for _ in range(4000)])
    counts = np.array([np.bincount(column, minlength=5) for column in places.T])
    # 4000 draws: 800 in each cell, a standard deviation of 25
    assert np.abs(counts - 800).max() < 5 * 25
    highest = SimpleNamespace(random_raw=lambda n: np.full(n, 2**64 - 1, dtype=np.uint64))
    assert permutation(0, highest).size == 0
    assert permutation(1000, highest).tolist() == list(range(1000))


def test_noise_has_the_moments_it_promises():
    bits = np.random.PCG64(5)
    flat, round_ = uniform((200, 500), bits), approx_normal((200, 500), bits)
    assert 0 <= flat.min() < flat.max() < 1
    # 10⁵ draws: five standard errors of the mean and of the variance
    assert abs(flat.mean() - 0.5) < 5 * 0.29 / 316
    assert abs(round_.mean()) < 5 / 316
    assert abs(round_.var() - 1) < 5 * 1.2 / 316
