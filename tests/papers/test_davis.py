"""Video: sequences of frames with masks, as points."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from helpers import iterated
from points import solver
from program import call, error_of, real_data
from raw_data import packed
from traces import make_trace

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.datasets.images.preparation import borders
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.papers.transduction import figures
from ssvm_bench.papers.transduction.datasets import davis
from ssvm_bench.papers.transduction.oracles import transduction
from ssvm_bench.results.table import Runs
from ssvm_bench.results.trace import write_run

BMX_TREES, CAR_SHADOW = davis.KINDS.values()
N_PICTURES = 4
pytestmark = pytest.mark.usefixtures("few_pictures")


def load(source="synthetic", **options):
    name = "davis_bmx_trees"
    return BMX_TREES.load(davis.SequenceConfig(name, name, source, **options))


def classified(data):
    """Return the problem of a sequence, the classifier of its labelled points, and its scores."""
    config = transduction.Config("tiny", "transduction", loss="crammer_singer", nu=1.0, potts=0.1)
    problem = transduction.build(config, data).problem(config.nu)
    made = iterated(solver(problem, "inductive"), 1)
    return problem, made, problem.measured(made.reported().w)[1]


def test_points_are_the_superpixels_of_all_frames_and_the_first_is_labelled():
    data, raw = load(), BMX_TREES.RAW
    maps, pictures = raw.segments("synthetic", range(4)), raw.pictures("synthetic")
    begin = 0
    for t, segments in enumerate(maps):
        of = np.flatnonzero(data.frame == t)
        assert (of == begin + np.arange(segments.max() + 1)).all()
        truth = pictures[t].truth
        for k in (0, 7, of.size - 1):
            inside = truth[segments == k]
            assert data.pixels[begin + k].tolist() == [(inside == 0).sum(), inside.sum()]
            assert data.y[begin + k] == (inside.mean() > 0.5)
        same = (data.frame[data.pairs] == t).all(axis=1)
        np.testing.assert_array_equal(data.pairs[same] - begin, borders(segments)[0])
        begin += of.size
    assert begin == data.n
    assert (data.frame[data.pairs[:, 0]] == data.frame[data.pairs[:, 1]]).all()
    np.testing.assert_array_equal(data.labeled, data.frame == 0)
    # the object moves, and keeps its look
    assert (pictures[0].truth != pictures[3].truth).any()


def test_the_first_frames_alone():
    whole, few = load(), load(frames=2)
    assert few.n == np.count_nonzero(whole.frame < 2)
    np.testing.assert_array_equal(few.pixels, whole.pixels[: few.n])
    assert few.pairs.max() < few.n
    for options, message in (
        ({"frames": 5}, "dataset.frames must be ≤ 4, the number of frames of davis_bmx_trees"),
        ({"frames": 1}, "dataset.frames must be ≥ 2"),
        ({"n_samples": 10}, "dataset.n_samples would tear the frames of a sequence apart"),
    ):
        with pytest.raises(ConfigError, match=message):
            load(**options)


def test_features_of_ones_own(tmp_path):
    data, file = load(frames=2), tmp_path / "features.npz"
    number = np.concatenate([np.arange(count) for count in np.bincount(data.frame)])
    np.savez(file, picture=data.frame, superpixel=number, features=data.pixels)
    np.testing.assert_array_equal(load(frames=2, features=file).x, data.pixels)
    with pytest.raises(ConfigError, match="lacks superpixel 0 of picture 2, of which it has none"):
        load(features=file)


def test_every_solver_scores_frames_that_are_not_labelled():
    problem, _, measured = classified(load())
    assert problem.overlap.counted.tolist() == [1, 2, 3]
    best = problem.overlap.mean_iou(problem.truth)
    assert 0.6 < best < 1.0  # superpixels are no pixels
    assert measured["iou"] > 0.2
    assert measured["truth_iou"] == best
    assert measured["told_iou"] > 0.9  # the classifier knows the first frame


def test_with_all_frames_annotated_the_classifier_alone_is_scored():
    whole = load(annotated="all")
    assert whole.labeled.all()
    problem, made, measured = classified(whole)
    assert np.isnan([measured[name] for name in ("iou", "accuracy", "false_pixels")]).all()
    scores, truth = made.scores.argmax(axis=1) == 1, problem.truth == 1
    assert measured["told_iou"] == (scores & truth).sum() / (scores | truth).sum()


def test_frames_are_shown(tmp_path):
    show, file = ("data", "show", "davis_bmx_trees", "--source", "synthetic"), tmp_path / "x.png"
    assert call(*show, 1, "--output", file).exit_code == 0
    assert file.stat().st_size > 10_000
    message = "There is no frame 4: davis_bmx_trees (synthetic data) has 0 to 3."
    assert message in error_of(call(*show, 4, "--output", file), 2)


def archive(tmp_path, sizes, mask_sizes):
    members = {}
    for folder, kind, shapes in (
        ("JPEGImages", "jpg", [(*size, 3) for size in sizes]),
        ("Annotations", "png", mask_sizes),
    ):
        for k, shape in enumerate(shapes):
            content = cv2.imencode(f".{kind}", np.full(shape, 255, np.uint8))[1].tobytes()
            members[f"DAVIS/{folder}/480p/bmx-trees/{k:05d}.{kind}"] = content
    return packed(tmp_path / "video.tar.gz", members)


def test_frames_and_masks_that_do_not_fit(tmp_path):
    found = davis.parse(archive(tmp_path, [(8, 10)] * 2, [(8, 10)] * 2), "bmx-trees")
    assert found.names == ("00000", "00001")
    assert found[1].truth.all()
    found = davis.parse(archive(tmp_path, [(8, 10)], [(8, 12)]), "bmx-trees")
    with pytest.raises(ContentError, match=r"another size \(12 × 8\) than the frame \(10 × 8\)"):
        found[0]
    with pytest.raises(ContentError, match=r"has no Annotations/480p/bmx-trees/00001.png"):
        davis.parse(archive(tmp_path, [(8, 10)] * 2, [(8, 10)]), "bmx-trees")


@real_data("davis/davis2016-480p-car-shadow.tar.gz")
@pytest.mark.parametrize(("module", "frames"), [(BMX_TREES, 80), (CAR_SHADOW, 40)])
def test_real_sequences(module, frames):
    path = module.RAW.find()
    with module.RAW.explained(path):
        module.RAW.check(path)
        pictures = module.RAW.open(path)
    assert len(pictures) == frames
    assert pictures[0].truth.shape == (480, 854)
    assert 0.003 < pictures[0].truth.mean() < 0.11


def test_the_overlap_of_each_frame_is_drawn_where_the_runs_are(tmp_path):
    data, name = load(), {"name": "davis_bmx_trees"}
    about = {"columns": {"iou": 1.0, "accuracy": 1.0}, "solver": "dcadmm", "source": "synthetic"}
    about["dataset"] = name | {"fingerprint": data.fingerprint}
    about["config"] = {"dataset": name | {"kind": "davis_bmx_trees", "source": "synthetic"}}
    run = replace(make_trace([8.0] * 2, [np.nan] * 2, **about), folder=tmp_path / "run")
    rows = run.frame.to_dict("records")
    summary = {**rows[-1], "stop_reason": "converged", "solver": "dcadmm", "wall_time": 1.0}
    write_run(run.folder, rows, run.metadata, {}, summary, {"w": np.zeros(2), "y": data.y})
    (output,) = figures.KINDS[0].files(FigureData(Runs([run]), "video"), ["frames"])
    assert output.table["frame"].tolist() == [1, 2, 3]
    chosen = data.y == 1
    for number, iou in zip((1, 2, 3), output.table["iou"], strict=True):
        here = data.frame == number
        both = data.pixels[chosen & here, 1].sum()
        union = data.pixels[chosen & here].sum() + data.pixels[here, 1].sum() - both
        assert iou == pytest.approx(both / union)
