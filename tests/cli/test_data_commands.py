"""``ssvm-bench data``: where datasets stand, what is prepared, and what is drawn."""

import cv2
import numpy as np
import pytest
from program import call, error_of, forget_data, run_here, small_pictures

from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import cache, reading, sources, weizmann
from ssvm_bench.figures import pictures
from ssvm_bench.runs import components

N = 4  # pictures of a stand-in: one chunk, for which this process does all the work
FEW = "budget.max_iterations=2"
SYNTHETIC = ("dataset.source=synthetic", FEW, "clock=work")


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """Return the user's cache folder, which is new; stand-ins are small."""
    monkeypatch.setattr(reading, "user_folder", lambda: tmp_path / "user")
    monkeypatch.setenv("SSVM_BENCH_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    small_pictures(monkeypatch, N)
    yield tmp_path / "user"
    forget_data()


@pytest.fixture
def drawn(monkeypatch):
    """Return what has been drawn: rows, names of the labels, source."""
    found, draw = [], pictures.draw_rows
    monkeypatch.setattr(pictures, "draw_rows", lambda *rows: found.append(rows) or draw(*rows))
    return found


def shown(*arguments):
    result = call("data", *arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_status_tells_what_is_prepared(user):
    assert "prepared" not in shown("status", "weizmann")
    shown("prepare", "weizmann", "--source", "synthetic")
    kept = user / "weizmann" / "stand-in.ssvm-bench.npz"
    assert f"synthetic data prepared: {kept}\n" in shown("status", "weizmann")
    path = weizmann.RAW.places()[0]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\x1f\x8b")
    line, content, hint = shown("status", "weizmann", "--verify").splitlines()
    assert "content: broken: the archive is damaged" in content
    assert line.startswith(f"weizmann  ready    {path}")
    assert "Not prepared yet: `ssvm-bench data prepare weizmann`" in hint
    kept = user / "weizmann" / f"{path.name}.ssvm-bench.npz"
    cache.cached(kept, f"{weizmann.RAW.key('real')} sha256=0", dict)
    assert shown("status", "weizmann").splitlines()[1:] == [f"          prepared: {kept}"]
    cache.cached(kept, "weizmann v0 sha256=0", dict)
    assert "Not prepared yet" in shown("status", "weizmann")


TAR = bytes(257) + b"ustar\x0000"


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        *(("weizmann", b"\x1f\x8b", None), ("weizmann", b"<html>", "a tar archive")),
        *(("stanford", TAR, None), ("stanford", b"6.0000 -1", "a tar archive")),
        *(("horseseg", each, "an HDF5 file") for each in (b"\x1f\x8b", TAR)),
        ("horseseg", b"\x89HDF\r\n\x1a\n", None),
        ("usps", b"6.0000 -1", None),
        *(("usps", each, "a gzip file") for each in (b"<html>", b"")),
        *(("mnist", each, None) for each in (b"\x1f\x8b", b"\0\0\x08\x03")),
        ("mnist", b"\0\0\x0d\x03", "a gzip file"),
    ],
)
def test_status_knows_the_first_bytes(name, head, kind):
    raw = sources.raw_file(name)
    for part in raw.parts(raw.places()[0]):
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(head)
    output = shown("status", name)
    assert ("ready" if kind is None else f"broken   {raw.parts(raw.find())[0]}") in output
    assert kind is None or f"Not {kind}. Delete the file" in output


def test_prepare_says_where_and_what(user):
    output = shown("prepare", "stanford", "--source=synthetic")
    _, arrays = sources.arrays(sources.raw_file("stanford"), "synthetic")
    lengths, edges = np.diff(arrays["offsets"]), len(arrays["edges"])
    rate = arrays["data"].size / arrays["y"].size
    for part in (
        f"stanford (synthetic data): {user}/stanford/stand-in.ssvm-bench.npz\n",
        f" {N} images of {lengths.min()} to {lengths.max()} superpixels, {lengths.mean():.1f} on",
        f" {edges} pairs of neighbours, {edges / N:.1f} an image",
        f" 649 features, of which {rate:.1f} are not zero",
        f"sky {np.mean(arrays['y'] == 0):.1%}, tree {np.mean(arrays['y'] == 1):.1%}, road",
        f"unknown {np.mean(arrays['y'] == 8):.1%}\n",
    ):
        assert part in output
    # a run finds the very same
    (config,) = compose_runs(["dataset=stanford", *SYNTHETIC])
    assert components.load_dataset(config.dataset).y.tobytes() == arrays["y"].tobytes()


def test_prepare_without_a_place_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(reading, "user_folder", lambda: tmp_path / "file" / "below")
    assert "not kept" in shown("prepare", "weizmann", "--source", "synthetic")


def test_show_draws_pictures_and_ground_truth(tmp_path, drawn):
    output = shown("show", "weizmann", 2, 0, "--source", "synthetic")
    assert output == "figure: weizmann-2-0.png\n"
    assert cv2.imread(str(tmp_path / "weizmann-2-0.png")).shape[1] > 800
    ((rows, labels, source_),) = drawn
    assert (labels, source_) == (("background", "horse"), "synthetic")
    pictures = weizmann.RAW.pictures("synthetic")
    _, arrays = sources.arrays(weizmann.RAW, "synthetic")
    for row, i in zip(rows, (2, 0), strict=True):
        assert (row.title, len(row.predictions)) == (f"weizmann {i}: {pictures.names[i]}", 0)
        assert np.array_equal(row.rgb, pictures[i].rgb)
        assert np.array_equal(row.truth, pictures[i].truth)
        assert (row.segments.shape, row.segments.max() + 1) == (row.truth.shape, row.y.size)
        assert np.array_equal(row.y, arrays["y"][slice(*arrays["offsets"][i : i + 2])])
        for k in (0, row.y.size - 1):
            assert row.y[k] == (row.truth[row.segments == k].mean() > 0.5)


def test_show_writes_where_it_is_told(tmp_path):
    path = tmp_path / "new" / "folder" / "a.png"
    again = ("show", "stanford", 1, "--source", "synthetic", "--output")
    assert shown(*again, path) == f"figure: {path}\n"
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    shown(*again, path)
    assert path.read_bytes() == content
    assert f"Cannot write {path}" in error_of(call("data", *again, path / "below.png"), 1)


def made_run(tmp_path, *overrides, name="weizmann"):
    folder = run_here(tmp_path / "results", *overrides, data=(f"dataset={name}", *SYNTHETIC)).folder
    forget_data()
    return folder


def test_show_predicts_at_the_w_of_a_run(tmp_path, drawn):
    runs = [made_run(tmp_path, solver) for solver in ("solver=bcfw", "solver=mpbcfw")]
    # the run says which source; so there is no warning of a stand-in either
    result = call("data", "show", "weizmann", 3, "--run", runs[0], "--run", runs[1])
    assert (result.exit_code, result.stderr) == (0, "")
    (config,) = compose_runs(["dataset=weizmann", *SYNTHETIC])
    oracle = components.build_oracle(config.oracle, config.dataset)
    ((((_, _, _, _, y, predictions, _),), _, _),) = drawn
    assert [title for title, _ in predictions] == ["bcfw, iteration 2", "mpbcfw, iteration 2"]
    for run, (_, labels) in zip(runs, predictions, strict=True):
        w = np.load(run / "weights.npz")["w"]
        assert np.array_equal(labels, oracle.predict(w, 3))
    assert np.array_equal(y, oracle.truth(3))


def test_show_takes_a_folder_with_one_run_as_score_does(tmp_path, drawn):
    run = made_run(tmp_path, "solver=bcfw")
    assert call("data", "show", "weizmann", 3, "--run", run.parents[1]).exit_code == 0
    ((((_, _, _, _, _, predictions, _),), _, _),) = drawn
    assert [title for title, _ in predictions] == ["bcfw, iteration 2"]
    made_run(tmp_path, "solver=fw")
    told = error_of(call("data", "show", "weizmann", 3, "--run", run.parents[2]), 2)
    assert "There are 2 finished runs in" in told


def test_borders_of_small_superpixels_do_not_hide_the_picture():
    def outlined(segments):
        of, shape = np.zeros(1, np.uint8), segments.shape
        black, truth = np.zeros((*shape, 3), np.uint8), np.zeros(shape, np.uint8)
        row = pictures.LabeledPicture("small", black, truth, segments, of[segments * 0], [])
        return next(pictures._shown(row, np.zeros((1, 3))))[0]

    large, small = np.zeros((2, 40, 40), int)
    large[:, 20:] = 1
    small[:] = np.arange(40 * 40).reshape(40, 40) // 2
    assert outlined(large)[5, 19].tolist() == [255, 230, 0]
    assert 0 < outlined(small).mean() <= outlined(large).max() * pictures.FAINT


def test_borders_are_between_superpixels():
    segments = np.array([[0, 0, 1], [0, 2, 2]])
    expected = [[False, True, True], [True, False, False]]
    assert pictures.borders(segments).tolist() == expected
    assert not pictures.borders(np.zeros((3, 4), int)).any()


def test_titles_say_what_is_wrong_and_the_legend_names_the_labels():
    truth = np.array([[0, 0, 1, 1]], np.uint8)
    rgb, segments = np.full((1, 4, 3), 90, np.uint8), np.array([[0, 0, 0, 1]])
    y, predicted = np.array([0, 1], np.uint8), np.array([0, 0], np.uint8)
    row = pictures.LabeledPicture("my picture", rgb, truth, segments, y, [("mine", predicted)])
    for source_, note in (("real", ""), ("synthetic", "synthetic, no real data")):
        figure = pictures.draw_rows([row], ("ground", "horse"), source_)
        titles = [panel.get_title() for panel in figure.axes]
        assert titles[:2] == ["my picture", "ground truth"]
        assert "25.0% of pixels" in titles[2]
        assert titles[3] == "mine\n50.0% of superpixels wrong"
        (legend,) = figure.legends
        assert [text.get_text() for text in legend.get_texts()] == ["ground", "horse"]
        assert legend.get_title().get_text() == note


def test_labels_are_told_apart_without_colour_vision():
    """Distances in Lab, as seen by those without red or green cones (Viénot 1999)."""
    from matplotlib.colors import to_rgb
    from skimage.color import rgb2lab

    blind = [
        [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
        [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
    ]
    for colours in (pictures.TWO, pictures.NINE):
        linear = np.array([to_rgb(colour) for colour in colours]) ** 2.2
        for matrix in blind:
            seen = rgb2lab(np.clip(linear @ np.array(matrix).T, 0, 1) ** (1 / 2.2))
            for k, colour in enumerate(seen):
                others = np.delete(seen, k, axis=0)
                assert np.linalg.norm(others - colour, axis=1).min() > 20, colours[k]
