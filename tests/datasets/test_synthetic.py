"""Synthetic data: of the real ones' structure, and the same on every machine."""

import hashlib

import numpy as np
import pytest

from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import abalone, adult, conll2000, mnist, ocr, optdigits, sources, usps
from ssvm_bench.datasets.images import scenes
from ssvm_bench.runs import components

pytestmark = pytest.mark.usefixtures("own_cache")


def load(name):
    (config,) = compose_runs([f"dataset={name}", "dataset.source=synthetic"])
    return components.load_dataset(config.dataset)


@pytest.mark.parametrize(
    ("module", "version", "expected"),
    [
        (ocr, 1, "953c0251ddb6222b"),
        (optdigits, 1, "c9cff59d8e5ab31c"),
        (usps, 2, "2dfa58dc3148e3ab"),
        (mnist, 3, "de606b3657bbd392"),
        (adult, 2, "53fa875c886a9824"),
        (abalone, 3, "576aeb5ec46eb3d4"),
        (conll2000, 2, "819388e87f8a6df1"),
    ],
)
def test_arrays_are_the_same_everywhere(module, version, expected):
    """A change here needs a new `version`: cached arrays carry the old one."""
    (_, arrays), digest = sources.arrays(module.RAW, "synthetic"), hashlib.sha256()
    for name in sorted(arrays):
        digest.update(arrays[name].tobytes())
    assert (module.RAW.version, digest.hexdigest()[:16]) == (version, expected)


def test_pictures_are_the_same_everywhere_and_differ_among_themselves():
    digest = hashlib.sha256()
    for pictures in (scenes.figures(3), scenes.layers(3)):
        for picture in pictures:
            assert picture.rgb.shape == (scenes.HEIGHT, scenes.WIDTH, 3)
            digest.update(picture.rgb.tobytes() + picture.truth.tobytes())
    assert (scenes.VERSION, digest.hexdigest()[:16]) == (3, "1a75acf5c96501b8")
    for make in (scenes.figures, scenes.layers):
        last = make(5)[4].rgb.tobytes()
        assert last == make(9)[4].rgb.tobytes()
        assert last not in (make(5)[3].rgb.tobytes(), make(5, seed=77)[4].rgb.tobytes())


def shares(pictures, n_labels):
    counts = [np.bincount(p.truth.ravel(), minlength=n_labels) for p in pictures]
    return np.array(counts) / (scenes.HEIGHT * scenes.WIDTH)


def test_figures_take_the_share_of_the_picture_that_horses_do():
    figure = shares(scenes.figures(60), 2)[:, 1]
    assert 0.05 <= figure.min() < figure.max() <= 0.45
    assert 0.22 <= figure.mean() <= 0.30


def test_labels_of_scenes_are_about_as_frequent_as_in_the_stanford_data():
    found = shares(scenes.layers(150), 9).mean(axis=0)
    stanford = [0.145, 0.140, 0.225, 0.069, 0.040, 0.226, 0.013, 0.137, 0.005]
    assert found == pytest.approx(stanford, abs=0.04)
    assert (found > 0).all()


def test_words_have_the_real_structure():
    dataset = load("ocr")
    assert (dataset.source, dataset.structure) == ("synthetic", "chain")
    assert (dataset.x.shape, dataset.x.dtype) == ((52152, 128), np.uint8)
    assert set(np.unique(dataset.x)) == {0, 1}
    assert abs(dataset.x.mean() - 0.22) < 0.01
    assert (dataset.n, dataset.n_labels) == (6877, 26)
    assert np.array_equal(np.bincount(np.diff(dataset.offsets)), ocr.WORDS_PER_LENGTH)
    assert np.array_equal(np.bincount(dataset.fold), ocr.WORDS_PER_FOLD)
    assert np.bincount(dataset.y, minlength=26).min() > 100
    assert len(np.unique(dataset.x, axis=0)) > 45000  # next to no letter occurs twice


def test_digits_have_the_real_structure():
    dataset = load("usps")
    assert (dataset.source, dataset.structure) == ("synthetic", "independent")
    assert (dataset.x.shape, dataset.x.dtype) == ((7291, 256), np.float64)
    assert (dataset.x.min(), dataset.x.max()) == (-1, 1)
    assert np.array_equal(np.bincount(dataset.y), usps.SAMPLES_PER_DIGIT)
    assert np.array_equal(dataset.offsets, np.arange(7292))
    assert np.mean(dataset.x[:, [0, 15, 240, 255]] == -1) > 0.8  # a background of −1
    dataset = load("mnist")
    assert (dataset.x.shape, dataset.n_labels) == ((6000, 784), 10)
    assert [data.n for data in dataset.held_out.values()] == [500, 500]
    assert np.bincount(dataset.y).min() > 500
    images = dataset.x.toarray().reshape(-1, 28, 28)
    assert (images.min(), images.max(), len(np.unique(images, axis=0))) == (0, 1, 6000)
    assert not images[:, :4].any()
    assert not images[:, :, 24:].any()  # a box of 20 pixels in the middle


def test_people_have_the_real_structure():
    dataset = load("adult")
    (test,) = dataset.held_out.values()
    assert (dataset.x.shape, test.x.shape) == ((32561, 123), (16281, 123))
    assert (dataset.y.mean(), test.y.mean()) == pytest.approx((0.24, 0.24), abs=0.01)
    starts = np.cumsum(adult.ATTRIBUTES) - adult.ATTRIBUTES
    assert (np.add.reduceat(dataset.x.toarray(), starts, axis=1) == 1).all()
    assert dataset.x.sum(axis=0).min() > 0


def test_snails_have_the_real_structure():
    dataset = load("abalone")
    found = (dataset.x.shape, dataset.structure, dataset.y.dtype)
    assert found == ((4177, 10), "regression", np.float64)
    assert 1 <= dataset.y.min() < 4 < 20 < dataset.y.max() <= 29
    assert dataset.y.mean() == pytest.approx(9.934, abs=0.1)
    assert set(dataset.x[:, :3].sum(axis=1)) == {1.0}
    assert (dataset.x[:, 3:].min(axis=0) == -1).all()
    assert (dataset.x[:, 3:].max(axis=0) == 1).all()
    counts = dataset.x[:, :3].sum(axis=0)
    np.testing.assert_allclose(counts / 4177, np.array([1528, 1307, 1342]) / 4177, atol=0.05)


def test_sentences_have_the_real_structure():
    dataset = load("conll2000")
    (test,) = dataset.held_out.values()
    assert (dataset.n, test.n, dataset.n_labels, dataset.structure) == (1200, 300, 22, "chain")
    assert np.unique(dataset.y).size >= 9
