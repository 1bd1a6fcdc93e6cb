"""Segments and landmarks: their oracles against all labelings written down, data, bad input."""

import itertools
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from helpers import dense, solver, together
from PIL import Image
from program import call, error_of, run_here
from raw_data import face_folder, plate_folder
from structures import ALPHABET, BOXES, landmarks_of, marked, segmented, segments_of, texts

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.jit import allocating_kernel
from ssvm_bench.datasets import landmarks as faces
from ssvm_bench.datasets import plates
from ssvm_bench.datasets.structures import GRIDS, Alphabet
from ssvm_bench.figures import pictures
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.labeling import expect

# Sums of tens of numbers of order 1 to 100, each rounded to 2⁻⁵³.
CLOSE = 1e-11


def all_positions():
    """Return row and column of all landmarks, shape (3, 2), in the order of the labels."""
    columns, corners = np.array(BOXES.sizes)[:, 1], np.array(BOXES.corners)
    for z in itertools.product(*(range(rows * columns) for rows, columns in BOXES.sizes)):
        yield np.stack(np.divmod(z, columns), axis=1) + corners


def definition_of_landmarks(data, i, at):
    """Return ϕ of positions by its definition: patterns, then displacements."""
    maps = data.x[i].reshape(3, 14, 15)
    templates = []
    for row, column in at:
        for k, (scale, half) in enumerate(GRIDS):
            for r, c in itertools.product(range(-half, half + 1), repeat=2):
                code = maps[k, 4 + row + scale * r, 4 + column + scale * c]
                templates.append(np.arange(256) == code)
    deformations = []
    for l in (1, 2):
        d = (at[BOXES.parents[l]] - at[l]) / (6 / 4)
        deformations += [*d, *d**2]
    return np.concatenate((np.concatenate(templates), deformations))


def labeling_of(oracle, at):
    grids = oracle.features.grids
    edges = [at[BOXES.parents[l]] - at[l] for l in (1, 2)]
    place = np.concatenate((at, edges)) - grids[:, :2]
    return (place[:, 0] * grids[:, 3] + place[:, 1]).astype(np.uint8)


def definition_of_segments(data, i, y):
    """Return ϕ of a labeling by its definition: sums of the columns of each label."""
    phi = np.zeros((6, 2))
    np.add.at(phi, y, data.x[slice(*data.offsets[i : i + 2])])
    return phi.ravel()


def check_argmax(oracle, w, i, labelings, scores, losses, close):
    """Check that the first of the best labelings is found, with its loss and without."""
    for share, ask in ((1.0, oracle.argmax), (0.0, oracle.predict)):
        values, found = np.array(scores) + share * np.array(losses), ask(w, i)
        first = int(np.argmax(values >= values.max() - close))
        np.testing.assert_array_equal(found, labelings[first])
        assert oracle.loss(i, found) == pytest.approx(losses[first], rel=CLOSE)


def some_weights(d, seed=0):
    """Return w = 0, at which losses decide and predictions tie, whole numbers, and others."""
    rng = np.random.default_rng(seed)
    return np.zeros(d), rng.integers(-1, 2, d).astype(float), rng.normal(size=d)


def test_segments_are_maximised_over_all_texts():
    data = segmented()
    oracle = segments_of(data)
    assert (oracle.d, oracle.n) == (12, 4)
    for i, w in itertools.product(range(4), some_weights(12)):
        truth = data.y[slice(*data.offsets[i : i + 2])]
        choices = texts(ALPHABET, truth.size)
        scores = [w @ definition_of_segments(data, i, y) for y in choices]
        losses = [np.mean(y != truth) for y in choices]
        check_argmax(oracle, w, i, choices, scores, losses, CLOSE)


def test_expectations_of_segments_are_sums_over_all_texts():
    oracle, rng = segments_of(segmented()).compiled, np.random.default_rng(3)
    L, stride = 5, oracle.features.stride
    unary, mu = 3 * rng.normal(size=(L, stride)), np.zeros((L, stride))
    work = np.zeros((2, L + stride, stride))
    log_sum = _expect(oracle, L, unary, np.zeros(0), mu, np.zeros(0), work)
    choices = texts(ALPHABET, L)
    weights = np.exp([sum(unary[l, c] for l, c in enumerate(y)) for y in choices])
    expected = np.zeros((L, stride))
    for y, weight in zip(choices, weights, strict=True):
        expected[np.arange(L), y] += weight / weights.sum()
    assert log_sum == pytest.approx(np.log(weights.sum()), rel=CLOSE)
    np.testing.assert_allclose(mu, expected, atol=CLOSE)


@allocating_kernel
def _expect(oracle, L, unary, moves, mu, nu, work):
    return expect(oracle, L, unary, moves, mu, nu, work)


def test_landmarks_are_maximised_over_all_positions():
    data = marked()
    oracle = landmarks_of(data)
    assert oracle.d == 3 * 115 * 256 + 2 * 4
    every = list(all_positions())
    labelings = [labeling_of(oracle, at) for at in every]
    for i, w in itertools.product(range(2), some_weights(oracle.d)):
        true = BOXES.positions(data.y[3 * i : 3 * i + 3])
        unit = 100 / np.linalg.norm(true[:2].mean(axis=0) - true[2])
        scores = [w @ definition_of_landmarks(data, i, at) for at in every]
        losses = [unit * np.mean(np.linalg.norm(at - true, axis=1)) for at in every]
        check_argmax(oracle, w, i, labelings, scores, losses, 1e-9)


@pytest.mark.parametrize("structure", ["segments", "landmarks"])
def test_planes_are_those_of_the_definition(structure):
    data = segmented() if structure == "segments" else marked()
    oracle = (segments_of if structure == "segments" else landmarks_of)(data)

    def phi(y):
        if structure == "segments":
            return definition_of_segments(data, 0, y)
        (at,) = [a for a in all_positions() if (labeling_of(oracle, a) == y).all()]
        return definition_of_landmarks(data, 0, at)

    w = np.random.default_rng(1).normal(size=oracle.d)
    y = oracle.argmax(w, 0)
    plane, difference = oracle.plane(0, y), phi(y) - phi(oracle.truth(0))
    np.testing.assert_allclose(dense(plane, oracle.d)[:-1], difference / oracle.n, atol=CLOSE)
    best, value = oracle.best_plane(w, 0)
    np.testing.assert_allclose(best.values, plane.values, atol=CLOSE)
    assert value == pytest.approx(plane.values @ w[plane.indices] + plane.offset, rel=1e-9)
    assert np.linalg.norm(difference) <= oracle.radius() * (1 + CLOSE)


@pytest.mark.parametrize(
    ("oracle", "name"),
    [(segments_of(segmented()), "mpbcfw"), (landmarks_of(marked()), "bcfw")],
    ids=["segments", "landmarks"],
)
def test_solvers_agree_with_frank_wolfe_on_its_planes(oracle, name):
    problem = Problem(oracle, 1.0)
    both = solver(problem, "fw"), solver(problem, name)
    for _ in together(60, *both):
        (w, dual), (other, other_dual) = (made.reported() for made in both)
        lowest = min(problem.primal(w), problem.primal(other))
        # both bounds hold for both
        assert max(dual, other_dual) <= lowest + 1e-9 * max(1.0, lowest)
    assert problem.primal(other) - other_dual < 0.02 * problem.primal(np.zeros(oracle.d))
    assert oracle.mean_loss(other) <= problem.risk(other).value + CLOSE


def test_what_is_drawn_is_admissible_and_the_same_again():
    one, again = plates.draw(3, seed=5), plates.draw(3, seed=5)
    for name in one:
        np.testing.assert_array_equal(one[name], again[name])
    harder = plates.draw(3, seed=5, noise=6.0, free_width=0.25)
    assert plates.ALPHABET.first_inadmissible(harder["y"], harder["offsets"]) is None
    assert harder["pixels"].std() != one["pixels"].std()
    assert plates.ALPHABET.n_labels * plates.HEIGHT == 4059
    assert plates.ALPHABET.first_inadmissible(one["y"], one["offsets"]) is None
    pixels, positions = faces.draw(4, np.random.PCG64(1))
    assert pixels.shape == (4, 40, 40)
    boxes = faces.search_boxes(positions, (40, 40), 1)
    assert boxes.fault(1600) is None


@pytest.mark.parametrize(
    ("y", "part"),
    [
        *(([0, 2, 3, 4], 1), ([1, 2, 3, 4], 0)),  # the first column of a alone, or the second
        *(([2, 3, 4, 2], 3), ([2, 2, 0, 3], 3)),  # the end of c is missing, or its begin
        *(([2, 3, 4, 5], None), ([0, 1, 0, 1], None)),
    ],
)
def test_labels_that_are_no_text_are_found(y, part):
    found = ALPHABET.first_inadmissible(np.array(y, np.uint8), np.array([0, 4]))
    assert (None if found is None else found[0]) == part


PART_OF_A, BELOW = np.array([1, 0], np.uint8), marked().y.copy()
BELOW[4] = 41
OUTSIDE = BOXES._replace(sizes=((2, 3), (3, 2), (2, 9)))
REFUSED = [
    (segmented, {"widths": (2,), "y": PART_OF_A}, r"part 0 of example 0 has the label a\.1"),
    (segmented, {"admissible": Alphabet(("a", "b", "c"), (2, 0, 4))}, "and widths are 1 or more"),
    (segmented, {"admissible": None}, "segments need an Alphabet"),
    (marked, {"y": BELOW}, "part 1 of example 1 is the landmark 'left' in row 5"),
    (marked, {"admissible": OUTSIDE}, "the search box of 'right' leaves the image"),
    (marked, {"admissible": BOXES._replace(parents=(-1, 2, 0))}, "comes before it"),
]


@pytest.mark.parametrize(("make", "change", "message"), REFUSED)
def test_datasets_refuse_what_is_not_admissible(make, change, message):
    with pytest.raises(RunFailedError, match=message):
        make(**change)


def test_a_folder_of_plates(tmp_path):
    data = plates.load(plate_folder(tmp_path / "p"))
    assert (data.source, data.n, data.n_labels, data.n_features) == ("real", 2, 6, 4)
    assert data.y.tolist() == [0, 1, 2, 3, 4, 5]
    assert data.held_out["test"].y.tolist() == [2, 2, 2]
    assert data.x[:3].mean() == pytest.approx(0, abs=1e-6)
    assert data.x[:3].std() == pytest.approx(1, rel=1e-6)
    moved = plate_folder(tmp_path / "p2")
    assert moved.fingerprint == plate_folder(tmp_path / "p").fingerprint  # what is in it, not where


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"segments": ("a@0", "c@0", "b@0 b@1 b@2")}, "end at column 1, and it has 3 columns"),
        ({"segments": ("b@0 a@2", "c@0", "c@0")}, "leave a gap before a@2"),
        ({"segments": ("a@0 b@1", "c@0", "c@0")}, "overlap at b@1"),
        ({"segments": ("a@0 x@2", "c@0", "c@0")}, "character 'x', without a width"),
        ({"segments": ("a b", "c@0", "c@0")}, "not CHARACTER@COLUMN"),
        ({"widths": "a,2\nb,0\nc,3\n"}, "the width of character 'b' is '0'"),
    ],
)
def test_bad_plates_are_told_in_one_sentence(tmp_path, change, message):
    with pytest.raises(RunFailedError, match=message):
        plates.load(plate_folder(tmp_path / "p", **change))


def test_bad_images_are_told_in_one_sentence(tmp_path):
    config = plate_folder(tmp_path)

    def refused(message):
        with pytest.raises(RunFailedError, match=message):
            plates.load(config)

    Image.new("L", (3, 5)).save(tmp_path / "1.png")
    refused(r"1\.png is 5 pixels high, and 0\.png 4")
    (tmp_path / "1.png").write_text("no image")
    refused(r"1\.png cannot be decoded")
    (tmp_path / "1.png").unlink()
    refused(r"no image '1\.png', which its table names")
    (tmp_path / "widths.csv").unlink()
    refused(r"no widths\.csv in it")


def test_a_folder_of_faces(tmp_path):
    config = face_folder(tmp_path / "f")
    data = faces.load(config)
    assert (data.n, data.n_labels, data.x.shape) == (5, 1600, (5, 3 * 48 * 48))
    _, positions = faces.draw(6, np.random.PCG64(2))
    np.testing.assert_array_equal(data.admissible.positions(data.y).reshape(5, 8, 2), positions[:5])
    assert data.held_out["test"].n == 1
    with pytest.raises(ConfigError, match="must be ≤ 5"):
        faces.load(replace(config, n_samples=6))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"move": np.array([[30, 0]])}, "outside the image of 40 × 40"),
        ({"move": np.array([[-13, 0]])}, "outside its search box of rows"),
        ({"size": (40, 41)}, "5.png has 41 × 40 pixels, and 0.png 40 × 40"),
    ],
)
def test_bad_faces_are_told_in_one_sentence(tmp_path, change, message):
    with pytest.raises(RunFailedError, match=message):
        faces.load(face_folder(tmp_path / "f", **change))


@pytest.mark.parametrize(
    ("source", "path", "message"),
    [("real", None, "are synthetic unless"), ("synthetic", "somewhere", "data of your own")],
)
def test_drawn_and_own_data_are_not_mixed_up(source, path, message):
    with pytest.raises(ConfigError, match=message):
        plates.Config("plates", "plates", source, path=path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"free_width": 0.6}, "free_width must be at most 0.5"),
        ({"noise": 2.0, "path": "somewhere"}, "are of simulated plates"),
    ],
)
def test_harder_plates_are_simulated_ones(options, message):
    source = "real" if "path" in options else "synthetic"
    with pytest.raises(ConfigError, match=message):
        plates.Config("plates", "plates", source, **options)
    default, harder = (plates.Config("plates", "plates", "synthetic", noise=x) for x in (1.0, 2.0))
    assert default.variant == ""
    assert harder.variant == "noise 2 free 0"


def test_a_run_on_plates_of_ones_own_and_its_picture(tmp_path):
    folder = plate_folder(tmp_path / "p").path
    options = (f"dataset.path={folder}", "solver=bcfw", "budget.max_iterations=2")
    run = run_here(tmp_path / "r", *options, data=("dataset=plates",))
    assert run.summary["test_loss"] in (0.0, 1 / 3, 2 / 3, 1.0)
    picture = tmp_path / "plates.png"
    result = call("data", "show", "plates", 0, 2, "--run", run.folder, "--output", picture)
    assert result.exit_code == 0, result.stderr
    assert Image.open(picture).format == "PNG"
    with mock.patch.object(pictures, "show", wraps=pictures.show) as shown:
        call("data", "show", "plates", 0, "--run", run.folder, "--output", picture)
    titles = [of.args[2].splitlines()[0] for of in shown.call_args_list]
    assert titles == ["plates 0", "w = 0", "bcfw, iteration 2"]
    result = call("data", "show", "plates", 3, "--run", run.folder)
    assert "has 0 to 2" in error_of(result, 2)
