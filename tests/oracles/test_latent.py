"""Detection with a latent position, against all windows written down; and its rounds."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from helpers import Plain, reports, solver, together
from program import call, config_of, error_of, run_here
from scipy.sparse import csr_array
from structures import latent_oracle, pictures

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.datasets import latent as canvases
from ssvm_bench.datasets.structures import Windows
from ssvm_bench.oracles.base import Problem
from ssvm_bench.results.table import instance_of
from ssvm_bench.results.trace import read_summary, read_trace, read_weights

# Sums of tens of numbers of order 1, each rounded to 2⁻⁵³.
CLOSE = 1e-12
LATENT = (
    *("dataset=latent", "dataset.source=synthetic", "dataset.canvas=31", "dataset.positives=12"),
    *("dataset.negatives=18", "dataset.held_out=10", "oracle.start=centre"),
)


def windows_of(data, bias):
    """Return ψ of all positions of all examples, shape (n, positions, d), by cutting them out."""
    (H, W), (h, w), step = data.windows.canvas, data.windows.size, data.windows.step
    x = (data.x if isinstance(data.x, np.ndarray) else data.x.toarray()).reshape(-1, H, W)
    corners = itertools.product(range(0, H - h + 1, step), range(0, W - w + 1, step))
    cut = [x[:, top : top + h, left : left + w].reshape(len(x), -1) for top, left in corners]
    return np.insert(np.stack(cut, axis=1).astype(float), h * w, bias, axis=2)


SMALL = Windows((5, 6), (3, 3), 1)
COSTLY = pictures(9, SMALL, costs=np.linspace(0.5, 2, 9), margins=np.linspace(0, 2, 9))
CASES = {"dense": (pictures(9, SMALL), {})}
CASES["sparse and wide steps"] = pictures(9, Windows((9, 8), (3, 4), 2), noise=0.0), {}
CASES["costs and margins"] = COSTLY, {"class_weight": "balanced"}


@pytest.mark.parametrize(("data", "options"), CASES.values(), ids=CASES)
def test_the_oracle_finds_the_best_of_all_windows(data, options):
    data = replace(data, x=csr_array(data.x)) if data.windows.step > 1 else data
    made, every, n = latent_oracle(data, **options), windows_of(data, 0.5), data.n
    weight = {0: n / (2 * (data.y == 0).sum()), 1: n / (2 * data.y.sum())} if options else {}
    C = np.array([weight.get(y, 1.0) for y in data.y])
    C = C if data.costs is None else C * data.costs
    m = np.ones(n) if data.margins is None else data.margins
    down, across = data.windows.shape
    centre = down // 2 * across + across // 2
    assert made.d == every.shape[2]
    for seed in range(5):
        w = np.random.default_rng(seed).normal(size=made.d)
        scores = every @ w
        highest = scores.max(axis=1)
        hinge = np.where(data.y == 1, m - scores[:, centre], m + highest)
        terms = C * np.maximum(0.0, hinge) / n
        risk = made.risk(w)
        assert risk.value == pytest.approx(terms.sum(), rel=CLOSE)
        assert risk.star @ w + risk.offset == pytest.approx(terms.sum(), rel=1e-10)
        assert made.mean_loss(w) == np.mean((highest > 0) != data.y)
        for i in range(n):
            plane, value = made.best_plane(w, i)
            assert value == pytest.approx(terms[i], abs=CLOSE)
            y = made.argmax(w, i)
            if terms[i] > 0:  # of a positive example nothing else than its window; then the best
                assert y[0] == (0 if data.y[i] else 1 + scores[i].argmax())
            assert made.predict(w, i)[0] == (1 + scores[i].argmax() if highest[i] > 0 else 0)
            again = made.plane(i, y)
            np.testing.assert_allclose(again.values, plane.values, rtol=CLOSE)
        better, changes = made.update_latent(w)
        wanted = np.where(data.y == 1, 1 + scores.argmax(axis=1), 0)
        np.testing.assert_array_equal(better.latent(), wanted)
        assert changes == np.count_nonzero(wanted != made.latent())
        fall = C * np.maximum(0.0, np.where(data.y == 1, m - highest, m + highest)) / n
        assert better.risk(w).value == pytest.approx(fall.sum(), rel=CLOSE)
        assert better.update_latent(w)[1] == 0
    norms = np.linalg.norm(every, axis=2) * C[:, None]
    assert norms.max() <= made.radius() < 3 * norms.max()


def test_of_equal_windows_the_first_but_the_present_one_stays():
    data = replace(pictures(3, SMALL), x=np.ones((3, 30)))
    made = latent_oracle(data)
    w = np.ones(made.d)
    assert [made.argmax(w, i)[0] for i in (1, 2)] == [1, 1]
    assert made.update_latent(w)[1] == 0
    assert latent_oracle(data, start="ink").latent().tolist() == [1, 0, 0]
    assert made.predict(0 * w, 0)[0] == 0  # not above 0


def test_where_training_starts():
    data = pictures(12, SMALL, noise=0.0)
    assert (
        latent_oracle(data, start="planted").latent() == np.where(data.y, 1 + data.places, 0)
    ).all()
    ink = windows_of(data, 0.0).sum(axis=2).argmax(axis=1)
    assert (latent_oracle(data, start="ink").latent() == np.where(data.y, 1 + ink, 0)).all()
    with pytest.raises(ConfigError, match=r"oracle\.start=planted needs to know where"):
        latent_oracle(replace(data, places=None), start="planted")


def solved(made, gap=1e-4, most=400):
    """Iterate to a relative gap; return the dual value."""
    for w, dual in reports(made, most):
        primal = made.problem.primal(w)
        assert dual <= primal + CLOSE
        if primal - dual <= gap * primal:
            return dual
    raise AssertionError("no optimum")


def test_planes_are_the_same_as_labels_and_as_rows():
    posed = Problem(latent_oracle(pictures(12, SMALL, seed=3)), 0.02)
    called = replace(posed, oracle=Plain(posed.oracle))
    labels, rows = (solver(of, "dcd") for of in (posed, called))
    for _ in together(4, labels, rows):
        assert labels.reported().dual == pytest.approx(rows.reported().dual, rel=1e-9)


def test_dcd_cannot_have_all_planes_and_no_solver_expectations(tmp_path):
    with pytest.raises(ConfigError, match=r"solver\.planes=all needs terms with few planes"):
        solver(Problem(latent_oracle(pictures(6, SMALL)), 0.1), "dcd", planes="all")
    message = error_of(call("run", "dataset=latent", "solver=eg", f"results_dir={tmp_path}"), 2)
    assert "needs the expectations" in message


@pytest.mark.parametrize("name", ["dcd", "mpbcfw"])
def test_a_solver_goes_on_with_other_positions(name):
    posed = Problem(latent_oracle(pictures(12, SMALL, seed=3)), 0.2)
    made = solver(posed, name)
    solved(made, gap=0.1)
    oracle_, changes = posed.oracle.update_latent(made.reported().w)
    assert changes > 0
    better = replace(posed, oracle=oracle_)
    assert made.update_latent(better)
    hot = made.reported()
    assert 0 < hot.dual <= better.primal(hot.w)
    planes = [better.oracle.plane(i, np.zeros(1, np.uint8)) for i in range(4)]
    assert any(hot.w[plane.indices] @ plane.values for plane in planes)
    assert solved(made) == pytest.approx(solved(solver(better, "dcd")), rel=1.1e-4)


def test_the_positions_are_found():
    data = pictures(45, Windows((8, 8), (5, 5), 1), seed=1)
    posed = Problem(latent_oracle(data), 0.01)
    made, values = solver(posed, "dcd"), []
    for _ in range(8):
        solved(made, gap=0.02)
        values.append(made.problem.primal(made.reported().w))
        better, changes = made.problem.oracle.update_latent(made.reported().w)
        if changes == 0:
            break
        made.update_latent(replace(posed, oracle=better))
    assert changes == 0 < len(values) - 1
    assert values[-1] < 0.8 * values[0]
    assert 1.5 * aligned(posed.oracle, data) < aligned(better, data)


def aligned(made, data):
    """Return the largest share of objects that lie at the same place of their windows."""
    places = np.stack((data.places, made.latent().astype(int) - 1))[:, data.y == 1]
    top, left = np.diff(data.windows.corners(places), axis=1)[:, 0]
    _, counts = np.unique(np.stack((top, left)), axis=1, return_counts=True)
    return counts.max() / data.y.sum()


def check_rounds(frame):
    """Check that the objective of a trace never rises from round to round; return the rounds."""
    rounds = [rows for _, rows in frame.groupby("latent_round")]
    assert frame["latent_round"].is_monotonic_increasing
    for rows in rounds:
        assert rows["primal"].iloc[-1] == rows["primal"].min()
        assert (rows["dual"].to_numpy() <= rows["primal"].to_numpy() + CLOSE).all()
    for before, after in itertools.pairwise(rounds):
        assert after["primal"].iloc[0] <= before["primal"].iloc[-1] + CLOSE
        assert after["latent_changes"].iloc[0] > 0
    return rounds


@pytest.mark.parametrize("name", ["dcd", "fw"])  # fw begins every round anew
def test_the_objective_never_rises_from_round_to_round(tmp_path, name):
    budget = ("budget.max_iterations=3", "lam=0.02", "clock=work")
    words = (f"solver={name}", "solver.latent_rounds=3", *budget)
    outcome = run_here(tmp_path, *words, data=LATENT)
    trace = read_trace(outcome.folder)
    rounds = check_rounds(trace.frame)
    assert len(rounds) == 3
    summary = read_summary(outcome.folder)
    assert summary["best_primal"] == summary["primal"] == rounds[-1]["primal"].iloc[-1]
    assert summary["best_dual"] == rounds[-1]["dual"].max()
    w, _ = read_weights(outcome.folder)
    data = canvases.load(config_of(tmp_path, *words, data=LATENT).dataset)
    for name_, examples in (("train", data), ("validation", data.held_out["validation"])):
        found = (windows_of(examples, 1.0) @ w).max(axis=1) > 0
        assert summary[f"{name_}_loss"] == np.mean(found != examples.y)
    # another problem than that of the first positions
    alone = read_trace(run_here(tmp_path, words[0], *words[2:], data=LATENT).folder)
    assert instance_of(trace.metadata) != instance_of(alone.metadata)
    assert "latent_round" not in alone.frame
    np.testing.assert_array_equal(rounds[0]["primal"][: len(alone.frame)], alone.frame["primal"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("dataset=usps", "solver.latent_rounds=2"), "are for oracles with latent values"),
        (("dataset=latent", "solver.latent_rounds=2", "path=[1.0]"), "leave path empty"),
        (("dataset=latent", "solver.latent_rounds=0"), r"solver.latent_rounds must be ≥ 1"),
        (("dataset=usps", "oracle=latent"), "oracle=latent does not fit dataset=usps"),
        (("dataset=latent", "oracle=binary"), "oracle=binary does not fit dataset=latent"),
        (("dataset=latent", "dataset.canvas=60"), "is for up to 255 positions"),
        (("dataset=latent", "dataset.canvas=27"), "dataset.canvas must be ≥ 28"),
        (("dataset=latent", "dataset.digit=10"), "dataset.digit must be 0 to 9"),
        (("dataset=latent", "dataset.n_samples=3001"), "dataset.n_samples must be ≤ 3000"),
    ],
)
def test_bad_calls_are_one_message(words, message, tmp_path):
    result = call("run", *words, "dataset.source=synthetic", f"results_dir={tmp_path}")
    assert message in error_of(result, 2)


def config(**options):
    return canvases.Config("latent", "latent", **{"source": "synthetic", **options})


def test_canvases_show_one_digit_each_at_its_place():
    chosen = config(digit=7, canvas=40, step=3, positives=30, negatives=50, held_out=16)
    data = canvases.load(chosen)
    assert (data.n, int(data.y.sum()), data.windows.shape) == (80, 30, (5, 5))
    sizes = {name: (each.n, int(each.y.sum())) for name, each in data.held_out.items()}
    assert sizes == {"validation": (16, 6), "test": (16, 6)}
    (top, left), x = data.windows.corners(data.places), data.x.toarray().reshape(-1, 40, 40)
    for i in range(data.n):
        cell = x[i, top[i] : top[i] + 28, left[i] : left[i] + 28]
        assert cell.sum() > 10
        assert x[i].sum() == pytest.approx(cell.sum())
    assert np.unique(data.places).size > 20
    assert canvases.load(chosen).fingerprint == data.fingerprint
    assert canvases.load(replace(chosen, seed=1)).fingerprint != data.fingerprint
    cluttered = canvases.load(replace(chosen, clutter=1))
    np.testing.assert_array_equal(cluttered.places, data.places)
    assert (cluttered.x.toarray() >= data.x.toarray()).all()
    assert cluttered.x.sum() > 1.5 * data.x.sum()
    assert canvases.load(replace(chosen, n_samples=20)).windows == data.windows
    more = canvases.load(config(positives=700, negatives=1, held_out=0))  # than there are digits
    assert (more.y.sum(), dict(more.held_out)) == (700, {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"windows": None}, "needs windows, two labels"),
        ({"n_labels": 3}, "needs windows, two labels"),
        ({"windows": Windows((5, 6), (6, 3), 1)}, "do not fit 30 pixels"),
        ({"windows": Windows((5, 5), (3, 3), 1)}, "do not fit 30 pixels"),
        ({"windows": Windows((5, 6), (3, 3), 0)}, "must be integers above 0"),
        ({"places": np.full(6, 12)}, "places of example 0 is 12, .* at least 0, and at most 11"),
        ({"places": np.zeros(5, np.int64)}, r"places must be an array of integers of shape \(6,\)"),
        ({"structure": "latent", "windows": SMALL, "offsets": np.array([0, 6])}, "one part an"),
    ],
)
def test_windows_that_do_not_fit_are_refused(change, message):
    with pytest.raises(RunFailedError, match=message):
        replace(pictures(6, SMALL), **change)


def test_export_and_stream(tmp_path):
    file = tmp_path / "canvases.parquet"
    words = ("dataset.canvas=30", "dataset.positives=6", "dataset.negatives=6")
    done = call("data", "export", "latent", file, "--source=synthetic", *words)
    assert done.exit_code == 0, done.stderr
    same = ("dataset=latent", "dataset.source=synthetic", *words)
    datasets = (("dataset=stream", f"dataset.path={file}"), same)
    one, other = (run_here(tmp_path, "solver=fw", data=data).summary for data in datasets)
    assert one["primal"] == other["primal"]
