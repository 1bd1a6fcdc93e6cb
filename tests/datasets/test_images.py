"""The pipeline from pictures to graphs of superpixels."""

import os
import platform
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from program import path_with, python
from scipy import ndimage
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from ssvm_bench.datasets.images import preparation, scenes
from ssvm_bench.datasets.images.pictures import Picture, Pictures
from ssvm_bench.datasets.progress import silence
from ssvm_bench.datasets.reading import ContentError

BLOCKS = (slice(0, 512), slice(512, 640), slice(640, 649))


@pytest.fixture(autouse=True)
def _few_samples(monkeypatch):
    parameters = replace(preparation.PARAMETERS, samples=1500)
    monkeypatch.setattr(preparation, "PARAMETERS", parameters)


def flat(height, width, value=90):
    rgb = np.full((height, width, 3), value, np.uint8)
    return Picture(rgb, np.zeros((height, width), np.uint8))


def noisy(height, width, seed=0):
    rng = np.random.default_rng(seed)
    rgb = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Picture(rgb, rng.integers(0, 2, (height, width), dtype=np.uint8))


def given_pictures(*pictures):
    return Pictures(tuple(f"p{i}" for i in range(len(pictures))), list(pictures), lambda p: p)


def prepare(pictures, folder, workers=1):
    folder.mkdir(exist_ok=True)
    with silence():
        return preparation.prepare(pictures, folder, "test", workers=workers)


def assert_identical(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        assert a[name].tobytes() == b[name].tobytes(), name


def components(n, edges):
    k, l = edges.T
    return connected_components(coo_array((np.ones(len(k)), (k, l)), shape=(n, n)))[0]


shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))
label_maps = hnp.arrays(np.uint16, shapes, elements={"max_value": 4})


def numbered(found):
    """Return a map whose labels are numbered without holes."""
    return np.unique(found, return_inverse=True)[1].reshape(found.shape).astype(np.uint16)


@given(label_maps)
def test_neighbours_are_the_pairs_with_a_common_border(found):
    segments = numbered(found)
    expected = set()
    for (i, j), k in np.ndenumerate(segments):
        for l in (*segments[i + 1 : i + 2, j], *segments[i, j + 1 : j + 2]):
            if k != l:
                expected.add((min(k, l), max(k, l)))
    edges = preparation.borders(segments)[0]
    assert (edges.dtype, edges.shape) == (np.int32, (len(expected), 2))
    assert [*map(tuple, edges)] == sorted(expected)
    assert components(int(segments.max()) + 1, edges) == 1


@given(label_maps, st.integers(0, 2**32 - 1))
def test_the_majority_is_what_counting_says(found, seed):
    segments = numbered(found)
    truth = np.random.default_rng(seed).integers(0, 4, segments.shape, dtype=np.uint8)
    y = preparation.majority(segments, truth)
    for k in range(int(segments.max()) + 1):
        labels = truth[segments == k].tolist()
        # of equally frequent labels, max takes the first
        assert y[k] == max(range(4), key=labels.count)


PICTURES = {
    "figure": scenes.figures(1)[0],
    "scene": scenes.layers(1)[0],
    "one colour": flat(80, 120),
    "noise": noisy(60, 7),
    "one row": flat(1, 9),
    "tiny": flat(2, 2),
}


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_superpixels_are_connected_and_numbered_without_holes(picture):
    segments = preparation.segment(picture.rgb, 200, 20.0)
    assert (segments.shape, segments.dtype) == (picture.truth.shape, np.uint16)
    n = int(segments.max()) + 1
    assert np.unique(segments).tolist() == list(range(n))
    if picture.truth.size > 9000:
        assert 100 <= n <= 250
    for k in range(n):
        assert ndimage.label(segments == k)[1] == 1
    assert components(n, preparation.borders(segments)[0]) == 1


@pytest.mark.parametrize(
    ("rgb", "message"),
    [
        (np.zeros((0, 5, 3), np.uint8), r"empty \(5 × 0 pixels\)"),
        (np.zeros((4, 5), np.uint8), r"uint8 of shape \(4, 5\)"),
        (np.zeros((4, 5, 3)), "float64"),
    ],
)
def test_what_is_no_picture_or_has_other_labels_is_refused(rgb, message):
    with pytest.raises(ContentError, match=message):
        preparation.segment(rgb, 200, 20.0)
    with pytest.raises(ContentError, match=r"expected 2 × 3 labels \(bytes\), found uint8 of sha"):
        preparation.majority(np.zeros((2, 3), np.uint16), np.zeros((3, 2), np.uint8))


def test_each_grid_point_serves_the_pixels_nearest_to_it():
    # words that say where the grid point is, in superpixels of one pixel each
    height, width, step = 14, 9, 4
    rows, columns = preparation.gradients(flat(height, width).rgb, step, 4.0).shape[:2]
    assert (rows, columns) == (3, 2)
    grid = np.arange(rows * columns).reshape(rows, columns)
    segments = np.arange(height * width, dtype=np.uint16).reshape(height, width)
    x = preparation.describe(segments, grid, np.zeros((height, width), int), step)
    at = np.array([[(2 + 4 * i, 2 + 4 * j) for j in range(columns)] for i in range(rows)])
    pixels = np.indices((height, width)).transpose(1, 2, 0)[:, :, None, None]
    distance = ((pixels + 0.5 - at) ** 2).sum(-1).reshape(height, width, -1)
    assert np.array_equal(x[:, :512].argmax(axis=1), distance.argmin(axis=-1).ravel())
    cell = 3 * (np.arange(height) * 3 // height)[:, None] + np.arange(width) * 3 // width
    assert np.array_equal(x[:, 640:].argmax(axis=1), cell.ravel())


def test_features_are_roots_of_the_shares_of_pixels():
    segments = np.array([[0, 0, 0, 0, 1]], np.uint16)
    colours = np.array([[7, 7, 7, 2, 2]])
    x = preparation.describe(segments, np.array([[5, 6]]), colours, 4)
    assert x.shape == (2, preparation.N_FEATURES) == (2, 649)
    assert x[0, [5, 512 + 7, 512 + 2]].tolist() == pytest.approx([1, np.sqrt(0.75), 0.5])
    assert np.flatnonzero(x[1]).tolist() == [6, 512 + 2, 640 + 2]
    assert x[1].max() == 1


def test_words_are_the_nearest_centres():
    rng = np.random.default_rng(0)
    points, centres = rng.random((5, 7, 3)), rng.random((11, 3)).astype(np.float32)
    distance = ((points[:, :, None] - centres) ** 2).sum(-1)
    assert np.array_equal(preparation.words(points, centres), distance.argmin(-1))


def test_a_vocabulary_of_fewer_points_than_words_is_learned_without_warnings():
    points = np.repeat(np.array([[0, 0, 0], [90, 0, 0], [0, 200, 0]], np.uint8), 50, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        centres = preparation.vocabulary(points, 128, seed=0)
    assert centres.shape == (128, 3)
    assert np.array_equal(centres[preparation.words(points, centres)], points)


def test_descriptors_have_unit_length_or_are_zero():
    sharp = preparation.rooted(preparation.gradients(noisy(30, 40).rgb, 4, 4.0))
    assert np.linalg.norm(sharp, axis=-1) == pytest.approx(preparation.LENGTH, rel=3e-3)  # rounded
    assert np.array_equal(sharp, np.round(sharp))
    assert not preparation.rooted(preparation.gradients(flat(30, 40).rgb, 4, 4.0)).any()


PREPARE = """
import sys, numpy, pathlib, test_images
pictures = test_images.given_pictures(*(test_images.noisy(60, 80, seed) for seed in range(3)))
numpy.savez(sys.argv[1], **test_images.prepare(pictures, pathlib.Path(sys.argv[2])))
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of this kind")
def test_arrays_are_the_same_on_older_processors(tmp_path):
    # what the libraries would choose on a processor without AVX
    older = {
        "OPENBLAS_CORETYPE": "Nehalem",
        "OPENCV_CPU_DISABLE": "AVX2,AVX,SSE4_2,SSE4_1",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3",
    }
    found, here = [], Path(__file__).parent
    for k, features in enumerate(({}, older)):
        path = tmp_path / f"{k}.npz"
        words = ("-W", "ignore", "-c", PREPARE, path, tmp_path / f"{k}")
        done = python(*words, **features, PYTHONPATH=path_with(f"{here}{os.pathsep}{here.parent}"))
        assert done.returncode == 0, done.stderr
        found.append(dict(np.load(path)))
    assert_identical(*found)


def test_arrays_fit_together(tmp_path):
    pictures = scenes.layers(4)
    arrays = prepare(pictures, tmp_path)
    parts, n = arrays["y"].size, len(pictures)
    types = {"data": "f4", "y": "u1", "edges": "i4", "shapes": "i4"}
    types |= dict.fromkeys(("indices", "segments"), "u2")
    types |= dict.fromkeys(("indptr", "offsets", "edge_offsets"), "i8")
    assert arrays["names"].tolist() == list(pictures.names)
    found = {name: array.dtype.str[1:] for name, array in arrays.items() if name != "names"}
    assert found == types
    assert arrays["offsets"][[0, -1]].tolist() == [0, parts]
    assert arrays["edge_offsets"][[0, -1]].tolist() == [0, len(arrays["edges"])]
    counts = np.diff(arrays["offsets"])
    assert ((counts >= 100) & (counts <= 250)).all()
    ends = np.cumsum(arrays["shapes"].prod(axis=1))
    for i, segments in enumerate(np.split(arrays["segments"], ends[:-1])):
        mine = slice(*arrays["offsets"][i : i + 2])
        edges = arrays["edges"][slice(*arrays["edge_offsets"][i : i + 2])]
        segments = segments.reshape(arrays["shapes"][i])
        assert np.array_equal(arrays["y"][mine], preparation.majority(segments, pictures[i].truth))
        assert np.array_equal(edges, preparation.borders(segments)[0])
    assert arrays["segments"].size == n * scenes.HEIGHT * scenes.WIDTH

    x = csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(parts, 649))
    assert x.has_canonical_format
    assert (x.data > 0).all()
    for block in BLOCKS:
        assert np.linalg.norm(x.toarray()[:, block], axis=1) == pytest.approx(1, abs=1e-6)


def test_a_second_build_is_identical_whatever_the_workers_and_the_interruptions(tmp_path):
    pictures = scenes.figures(7)
    first = prepare(pictures, tmp_path / "a")
    assert_identical(first, prepare(pictures, tmp_path / "b", workers=2))

    seen = []

    def decode(encoded):
        seen.append(encoded[1])
        if len(seen) == 5:
            raise KeyboardInterrupt
        return pictures.decode(encoded)

    counted = replace(pictures, decode=decode)
    with pytest.raises(KeyboardInterrupt):
        prepare(counted, tmp_path / "c")
    seen[:] = range(20)
    assert_identical(first, prepare(counted, tmp_path / "c"))
    # the first pictures were there: decoded for their features only
    assert seen[20:] == [*range(4, 7), *range(7)]

    seen[:] = range(20)
    (tmp_path / "c" / "outlines-00003.npz").write_bytes(b"half a piece")
    (tmp_path / "c" / "words-128.npz").unlink()
    assert_identical(first, prepare(counted, tmp_path / "c"))
    assert seen[20:] == [3]


def test_pieces_of_other_pictures_or_parameters_are_not_used(tmp_path, monkeypatch):
    prepare(scenes.figures(3), tmp_path)
    other = prepare(scenes.figures(3, seed=8), tmp_path)
    assert_identical(other, prepare(scenes.figures(3, seed=8), tmp_path / "new"))
    before = preparation.key()
    monkeypatch.setattr(preparation, "PARAMETERS", replace(preparation.PARAMETERS, n_segments=120))
    assert preparation.key() != before
    fewer = prepare(scenes.figures(3, seed=8), tmp_path)
    assert fewer["y"].size < 0.8 * other["y"].size


def test_tiny_grey_and_plain_pictures_are_prepared(tmp_path):
    rgb = np.repeat(noisy(40, 50).rgb[:, :, :1] // 8, 3, axis=2)
    grey = Picture(rgb, np.zeros((40, 50), np.uint8))
    pictures = given_pictures(flat(1, 1), noisy(3, 2), grey, flat(33, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arrays = prepare(pictures, tmp_path)
    assert np.diff(arrays["offsets"])[0] == 1
    assert np.diff(arrays["edge_offsets"])[0] == 0
    assert arrays["data"][: arrays["indptr"][1]].tolist() == [1, 1, 1]
    assert (np.diff(arrays["indptr"]) >= 3).all()


def _decode_or_fail(item):
    if item is None:
        raise ContentError("not a JPEG file")
    return scenes.draw_figure(item)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_picture_that_cannot_be_decoded_is_named(tmp_path, workers):
    encoded = [(1, i) for i in range(9)] + [None]
    pictures = Pictures(tuple("abcdefghij"), encoded, _decode_or_fail)
    with pytest.raises(ContentError, match=r"^picture j: not a JPEG file$"):
        prepare(pictures, tmp_path, workers)


def test_an_empty_picture_is_named_and_no_pictures_are_refused(tmp_path):
    with pytest.raises(ContentError, match="picture p1: the picture is empty"):
        prepare(given_pictures(flat(9, 9), flat(0, 4)), tmp_path)
    with pytest.raises(ContentError, match="no pictures"):
        prepare(given_pictures(), tmp_path)


def test_progress_is_told_in_plain_lines(tmp_path, capsys):
    preparation.prepare(scenes.figures(2), tmp_path, "horses", workers=1)
    assert "horses: superpixels 2/2\n" in capsys.readouterr().err
