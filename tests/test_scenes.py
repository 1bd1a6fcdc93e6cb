"""The stand-ins' pictures."""

import hashlib

import numpy as np
import pytest

from ssvm_bench.datasets.synthetic import scenes


def shares(pictures, n_labels):
    counts = [np.bincount(p.truth.ravel(), minlength=n_labels) for p in pictures]
    return np.array(counts) / (scenes.HEIGHT * scenes.WIDTH)


def test_figures_take_the_share_of_the_picture_that_horses_do():
    figure = shares(scenes.figures(60), 2)[:, 1]
    assert figure.min() >= 0.05
    assert figure.max() <= 0.45
    assert 0.22 <= figure.mean() <= 0.30


def test_labels_of_scenes_are_about_as_frequent_as_in_the_stanford_data():
    found = shares(scenes.layers(150), 9).mean(axis=0)
    stanford = [0.145, 0.140, 0.225, 0.069, 0.040, 0.226, 0.013, 0.137, 0.005]
    assert found == pytest.approx(stanford, abs=0.04)
    assert (found > 0).all()


def test_stand_ins_are_the_same_everywhere_and_differ_among_themselves():
    digest = hashlib.sha256()
    for pictures in (scenes.figures(3), scenes.layers(3)):
        for picture in pictures:
            assert picture.rgb.shape == (scenes.HEIGHT, scenes.WIDTH, 3)
            digest.update(picture.rgb.tobytes() + picture.truth.tobytes())
    assert digest.hexdigest()[:16] == "32ef3ec266746fd9"
    for make in (scenes.figures, scenes.layers):
        assert make(5)[4].rgb.tobytes() == make(9)[4].rgb.tobytes()
        assert make(5)[4].rgb.tobytes() != make(5)[3].rgb.tobytes()
        assert make(5)[4].rgb.tobytes() != make(5, seed=77)[4].rgb.tobytes()
