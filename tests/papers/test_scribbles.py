"""Interactive segmentation: scribbles, contrast, the dataset, and intersection over union."""

import json
from dataclasses import replace

import numpy as np
import pytest
from points import clouds, posed
from program import call, error_of
from scipy.ndimage import label

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.datasets.images import preparation
from ssvm_bench.figures import pictures
from ssvm_bench.papers.transduction.datasets import scenes, scribbles
from ssvm_bench.papers.transduction.datasets.scribbles import NOTHING, scribbled, stroke
from ssvm_bench.papers.transduction.oracles.transduction import overlap_of

SYNTHETIC = ("dataset=scribbles", "dataset.source=synthetic")
N_PICTURES = 3
pytestmark = pytest.mark.usefixtures("few_pictures")


def config(**options):
    return scribbles.Config("scribbles", "scribbles", "synthetic", **options)


def disc(height=40, width=60):
    y, x = np.mgrid[:height, :width]
    return ((y - height / 2) ** 2 / 100 + (x - width / 2) ** 2 / 400 < 1).astype(np.uint8)


def test_a_stroke_is_a_connected_part_of_the_skeleton():
    mask = disc() == 1
    whole = stroke(mask, 0.999, np.random.PCG64(0))
    length = np.count_nonzero(whole)
    assert (whole <= mask).all()
    for share in (0.1, 0.5):
        drawn = stroke(mask, share, np.random.PCG64(0))
        assert (drawn <= whole).all()
        assert label(drawn, np.ones((3, 3)))[1] == 1
        assert share * length <= np.count_nonzero(drawn) <= share * length + 4
    # as thin as a line is, and from end to end
    assert length < 0.1 * np.count_nonzero(mask)
    others = {stroke(mask, 0.3, np.random.PCG64(seed)).tobytes() for seed in range(5)}
    assert len(others) > 1


def test_scribbles_are_drawn_in_every_label_and_only_there():
    truth = disc()
    found = scribbled(truth, 0.5, 3)
    np.testing.assert_array_equal(found, scribbled(truth, 0.5, 3))
    drawn = found != NOTHING
    np.testing.assert_array_equal(found[drawn], truth[drawn])
    assert set(found[drawn]) == {0, 1}
    assert stroke(np.ones((1, 1), bool), 0.5, np.random.PCG64(0)).all()


def test_contrast_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    segments = np.repeat(np.repeat(np.array([[0, 1], [2, 3], [2, 4]], np.uint16), 3, 0), 4, 1)
    rgb = rng.integers(0, 256, (*segments.shape, 3)).astype(np.uint8)
    pairs, weights = scenes.contrast(rgb, segments)
    means = [rgb[segments == k].mean(axis=0) for k in range(5)]
    borders = {(0, 1): 3, (0, 2): 4, (1, 3): 4, (2, 3): 3, (2, 4): 3, (3, 4): 4}
    assert [tuple(pair) for pair in pairs] == list(borders)
    np.testing.assert_array_equal(preparation.borders(segments)[1], list(borders.values()))
    apart = np.array([((means[k] - means[l]) ** 2).sum() for k, l in borders])
    lengths = np.array(list(borders.values()))
    expected = lengths / lengths.mean() * np.exp(-apart / (2 * apart.mean()))
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    assert scenes.contrast(rgb, np.zeros_like(segments))[0].shape == (0, 2)
    flat = scenes.contrast(np.zeros_like(rgb), segments)[1]
    np.testing.assert_allclose(flat, lengths / lengths.mean(), atol=1e-6)


@pytest.mark.parametrize("pictures", ["weizmann", "stanford"])
def test_points_are_superpixels_and_labelled_are_those_that_are_scribbled(pictures):
    options = config(pictures=pictures, picture=1)
    data = scribbles.load(options)
    _, picture, segments, strokes = scribbles.drawn(options, "synthetic")
    truth = picture.truth
    assert data.pixels.sum() == truth.size
    for k in range(data.n):
        inside = segments == k
        assert data.pixels[k, 1] == truth[inside].sum()
        assert data.y[k] == (truth[inside].mean() > 0.5)
        assert data.labeled[k] == (strokes[inside] == data.y[k]).any()
    assert set(data.y[data.labeled]) == {0, 1}
    assert data.labeled.sum() < data.n / 2
    np.testing.assert_array_equal(data.pairs, preparation.borders(segments)[0])
    again, other = scribbles.load(options), scribbles.load(replace(options, draw=1))
    assert data.fingerprint == again.fingerprint != other.fingerprint
    few = scribbles.load(replace(options, n_samples=50))
    assert few.n == 50
    assert few.pixels.shape == (50, 2)


def test_pictures_that_there_are_not(monkeypatch):
    with pytest.raises(ConfigError, match=r"dataset.picture=3: weizmann .* has the pictures 0 to"):
        scribbles.load(config(picture=3))
    with pytest.raises(ConfigError, match=r"dataset.pictures=ocr is not known"):
        config(pictures="ocr")
    with pytest.raises(ConfigError, match=r"dataset.length must be above 0 and below 1"):
        config(length=1.5)
    monkeypatch.setitem(scribbles.PICTURES, "weizmann", (scribbles.weizmann, 7))
    with pytest.raises(ConfigError, match="no superpixel that is mostly figure is scribbled"):
        scribbles.load(config())


def test_a_picture_may_have_more_superpixels(monkeypatch):
    options = config(picture=1, superpixels=600)
    coarse, fine = scribbles.load(config(picture=1)), scribbles.load(options)
    assert 2 * coarse.n < fine.n
    assert fine.x.shape == (fine.n, preparation.N_FEATURES)
    np.testing.assert_array_equal(fine.pixels.sum(axis=0), coarse.pixels.sum(axis=0))
    _, picture, segments, _ = scribbles.drawn(options, "synthetic")
    assert segments.shape == picture.truth.shape
    monkeypatch.setattr(preparation, "prepare", None)  # it is kept
    assert scribbles.load(options).fingerprint == fine.fingerprint


def test_features_of_ones_own_take_the_place_of_those_of_pictures(tmp_path):
    data, file = scribbles.load(config(picture=1)), tmp_path / "features.npz"
    rows = {"picture": np.ones(data.n, int), "superpixel": np.arange(data.n)}
    np.savez(file, **rows, features=data.pixels)
    other = scribbles.load(config(picture=1, features=file))
    np.testing.assert_array_equal(other.x, data.pixels)
    np.testing.assert_array_equal(other.labeled, data.labeled)
    assert other.fingerprint != data.fingerprint
    with pytest.raises(ConfigError, match="lacks superpixel 0 of picture 0, of which it has none"):
        scribbles.load(config(picture=0, features=file))


def test_intersection_over_union_is_that_of_pixels():
    rng = np.random.default_rng(1)
    pixels, y = rng.integers(1, 20, (12, 3)), rng.integers(0, 3, 12)
    observed = np.full(12, -1)
    both, union = pixels[y == 1, 1].sum(), pixels[:, 1].sum() + pixels[y == 1][:, [0, 2]].sum()
    assert overlap_of(pixels, None, observed).mean_iou(y) == pytest.approx(both / union)
    # picture by picture: 0 is labelled and does not count, 1 has no figure, 2 is half right
    pixels = np.array([[5, 0], [0, 5], [3, 0], [4, 0], [0, 6], [0, 6]])
    frame, observed = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, -1, -1, -1, -1])
    scorer = overlap_of(pixels, frame, observed)
    np.testing.assert_array_equal(scorer.iou(np.array([1, 0, 0, 0, 1, 0])), [1.0, 0.5])
    np.testing.assert_array_equal(scorer.iou(np.array([0, 1, 0, 1, 1, 1])), [0.0, 1.0])
    shares = {"false_pixels": 4 / 19, "missed_pixels": 6 / 19}
    found = scorer.measured(np.array([0, 0, 0, 1, 1, 0]))
    assert found == {"iou": 0.25, **shares, "truth_iou": 1.0}
    found = overlap_of(pixels, frame, np.zeros(6, int)).measured(np.zeros(6))
    assert np.isnan([*found.values()]).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"pixels": np.ones((5, 2), int)}, r"pixels .* \(6, 2\), got int64 of shape \(5, 2\)"),
        ({"pixels": np.zeros((6, 2), int)}, "a point has no pixels"),
        ({"frame": np.array([0, 0, 0, 1, 1, -1])}, "frame of point 5 is -1, and must be at"),
    ],
)
def test_pixels_and_frames_are_checked(more, message):
    with pytest.raises(RunFailedError, match=message):
        clouds(6, **more)


def test_taking_points_keeps_their_pixels_and_frames():
    pixels, frame = np.arange(1, 13).reshape(6, 2), np.arange(6)
    data = clouds(6, pixels=pixels, frame=frame).take(np.array([4, 2, 0, 1]))
    np.testing.assert_array_equal(data.pixels, pixels[[4, 2, 0, 1]])
    np.testing.assert_array_equal(data.frame, [4, 2, 0, 1])
    assert posed(clouds(6)).overlap is None


def test_a_run_tells_the_overlap_and_is_shown(tmp_path, monkeypatch):
    options = (*SYNTHETIC, "solver=inductive", f"results_dir={tmp_path}")
    call("run", *options, "budget.max_iterations=2")
    (file,) = tmp_path.glob("runs/scribbles/inductive/*/seed=0/summary.json")
    summary = json.loads(file.read_text())
    assert 0 < summary["iou"] <= 1
    assert 0 < summary["accuracy"] <= 1
    shown, draw_rows = [], pictures.draw_rows
    monkeypatch.setattr(
        pictures, "draw_rows", lambda rows, *rest: (shown.extend(rows), draw_rows(rows, *rest))[1]
    )
    show = ("data", "show", "scribbles", "--source", "synthetic")
    output = ("--run", file.parent, "--output", tmp_path / "shown.png")
    assert call(*show, 0, *output).exit_code == 0
    assert (tmp_path / "shown.png").stat().st_size > 10_000
    (row,) = shown
    wrong = (1 - summary["accuracy"]) * np.mean(~scribbles.load(config()).labeled)
    assert np.mean(row.predictions[0][1] != row.y) == pytest.approx(wrong)
    *_, strokes = scribbles.drawn(config(), "synthetic")
    np.testing.assert_array_equal(row.scribbles, strokes)
    assert "is a run on other points" in error_of(call(*show, 1, *output), 1)
    assert "has the pictures 0 to 2" in error_of(call(*show, 3), 2)
    assert "dataset.picture=9" in error_of(call("run", *options, "dataset.picture=9"), 2)
