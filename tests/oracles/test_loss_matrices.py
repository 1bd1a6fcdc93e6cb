"""Loss matrices: Δ of any two labels, against enumeration of all labelings."""

import json
from dataclasses import replace

import helpers
import numpy as np
import pytest
from helpers import Table, optimum, random_chains, random_graphs, random_multiclass, solver
from program import call, config_of, error_of, run_here
from structures import latent_oracle, pictures

from ssvm_bench import StructuredSVM
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config import registry
from ssvm_bench.config.validation import NamedNumbers as Weights
from ssvm_bench.datasets.structures import Windows
from ssvm_bench.oracles.base import Problem
from ssvm_bench.results.trace import read_summary

# Sums of tens of numbers of order 1, each rounded to 2⁻⁵³.
CLOSE = 1e-12

# car, bus and person: a car that is taken for a person costs more than one taken for a bus
THREE = ((0.0, 1.0, 4.0), (0.5, 0.0, 3.0), (2.0, 0.0, 0.0))
TWO = ((0.0, 0.25), (4.0, 0.0))
CASES = {
    "multiclass": (random_multiclass(8, 3, 2, seed=4), THREE),
    "binary": (random_multiclass(8, 2, 3, seed=4), TWO),
    "viterbi": (random_chains([3, 1, 4, 2], 3, 2, seed=3), THREE),
    "mincut": (random_graphs([4, 2, 3], 2, 2, seed=1), TWO),
    "alpha_expansion": (random_graphs([4, 2, 3], 3, 2, seed=1), THREE),
}


def built(kind, loss, data=None, **options):
    module = registry.module("oracle", kind)
    config = module.Config(kind, kind, loss=loss, **options)
    return module.build(config, CASES[kind][0] if data is None else data)


def losses_of(table, data, matrix, of_class=None):
    """Return Δ(y_i, y) of all labelings of all terms, as the definition has it."""
    rows = (np.ones(data.n_labels) if of_class is None else of_class)[:, None] * matrix
    truths = np.split(data.y, data.offsets[1:-1])
    return [
        rows[truth, labelings].mean(axis=1)
        for truth, labelings in zip(truths, table.labelings, strict=True)
    ]


@pytest.mark.parametrize("kind", [kind for kind in CASES if kind != "binary"])
@pytest.mark.parametrize("weights", ["none", "balanced", Weights({"1": 3.0})])
@pytest.mark.parametrize("loss", ["zero_one", "matrix"])
def test_terms_are_those_of_all_labelings(kind, weights, loss):
    data, matrix = CASES[kind]
    matrix = matrix if loss == "matrix" else 1.0 - np.eye(data.n_labels)
    of_parts = kind != "multiclass"  # else classes weight the whole term
    made = built(kind, matrix if loss == "matrix" else loss, class_weight=weights)
    counts = np.bincount(data.y, minlength=data.n_labels)
    of_class = data.y.size / (np.count_nonzero(counts) * np.maximum(counts, 1))
    if weights != "balanced":
        of_class = np.where((np.arange(data.n_labels) == 1) & (weights != "none"), 3.0, 1.0)
    table, rng = Table(data), np.random.default_rng(0)
    losses = losses_of(table, data, matrix, of_class if of_parts else None)
    plain = losses_of(table, data, matrix)
    means = []
    for scale in (0.0, 0.3, 1.0, 3.0):
        w = scale * rng.normal(size=made.d)
        risk = 0.0
        for i in range(data.n):
            offsets = losses[i] + table.fixed[i]
            values = table.features[i] @ w + offsets
            weight = 1.0 if of_parts else of_class[data.y[i]]
            C = weight / data.n
            best = C * (values - values[table.truth[i]]).max()
            plane, value = made.best_plane(w, i)
            y = made.argmax(w, i)
            row = table.row(i, y)
            assert made.loss(i, y) == pytest.approx(weight * losses[i][row], rel=1e-15, abs=1e-15)
            if made.exact:
                assert (value, values[row]) == pytest.approx((best, values.max()), abs=CLOSE)
            assert 0 <= value <= best + CLOSE
            offset = C * (offsets[row] - offsets[table.truth[i]])
            assert plane.offset == pytest.approx(offset, abs=CLOSE)
            risk += value
        assert made.risk(w).value == pytest.approx(risk, abs=CLOSE)
        # what is reported knows no weights of classes
        rows = [table.row(i, made.predict(w, i)) for i in range(data.n)]
        means.append(np.mean([of[row] for of, row in zip(plain, rows, strict=True)]))
        assert made.mean_loss(w) == pytest.approx(means[-1], abs=CLOSE)
    assert max(means) > 0


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_costs_margins_and_losses_of_one_label_are_multiplied(kind):
    data = random_multiclass(8, 2, 3, seed=4)
    data = replace(data, costs=np.linspace(0.5, 2, 8), margins=np.linspace(0, 2, 8))
    made, rng = built(kind, TWO, data), np.random.default_rng(0)
    matrix = np.array(TWO)
    for _ in range(5):
        w = rng.normal(size=made.d)
        score = data.x @ (w if kind == "binary" else w[3:] - w[:3])
        wrong = matrix[data.y, 1 - data.y]
        hinge = np.maximum(0, data.margins * wrong - np.where(data.y, 1, -1) * score)
        assert made.risk(w).value == pytest.approx(np.mean(data.costs * hinge), rel=CLOSE)
        mean = np.mean(np.where((score > 0) != data.y, wrong, 0.0))
        assert made.mean_loss(w) == pytest.approx(mean, rel=CLOSE)


def test_of_a_latent_position_the_loss_is_that_of_the_sign():
    data = pictures(9, Windows((5, 6), (3, 3), 1))
    plain, made = latent_oracle(data), latent_oracle(data, loss=TWO)
    same = latent_oracle(replace(data, margins=np.where(data.y, TWO[1][0], TWO[0][1])))
    w = np.random.default_rng(0).normal(size=plain.d)
    assert made.risk(w).value == same.risk(w).value
    _, other = made.update_latent(w), made.with_latent(made.latent())
    predicted = np.array([other.predict(w, i)[0] > 0 for i in range(data.n)]).astype(int)
    assert plain.mean_loss(w) == np.mean(predicted != data.y) > 0
    assert other.mean_loss(w) == np.mean(np.array(TWO)[data.y, predicted])


@pytest.mark.parametrize("name", ["zero_one", "absolute"])
@pytest.mark.parametrize("kind", CASES)
def test_names_stand_for_matrices(kind, name):
    labels = range(CASES[kind][0].n_labels)
    far = np.abs(np.subtract.outer(labels, labels)) * 1.0
    matrix = np.minimum(far, 1.0) if name == "zero_one" else far
    one, other = built(kind, name), built(kind, tuple(map(tuple, matrix.tolist())))
    w = np.random.default_rng(1).normal(size=one.d)
    assert one.risk(w).value == pytest.approx(other.risk(w).value, abs=CLOSE)
    assert one.mean_loss(w) == pytest.approx(other.mean_loss(w), abs=CLOSE)


@pytest.mark.parametrize("kind", ["multiclass", "viterbi"])
def test_expectations_are_those_of_all_labelings(kind):
    data, matrix = CASES[kind]
    made, table = built(kind, matrix), Table(data)
    z = np.append(np.random.default_rng(2).normal(size=made.d), 0.7)
    for planes, losses in zip(table.planes, losses_of(table, data, matrix), strict=True):
        planes[:, -1] = losses / data.n
    helpers.check_gibbs(made, z, table.planes, rtol=0, atol=CLOSE)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("multiclass", ("bcfw", "mpbcfw_fast", "dcd", "bmrm", "one_slack", "eg")),
        ("viterbi", ("mpbcfw", "mpbcfw_gram", "dcd", "cutting_plane")),
        ("mincut", ("mpbcfw_fast", "bmrm")),
    ],
)
def test_solvers_agree_and_duality_is_weak(kind, names):
    posed = Problem(built(kind, CASES[kind][1]), 0.2)
    best = optimum(posed)
    assert abs(best - optimum(Problem(built(kind, "zero_one"), 0.2))) > 0.05
    for name in names:
        *_, (w, dual) = helpers.enclosing(solver(posed, name), best, 60, 1e-8)
        assert posed.primal(w) - dual < 0.2 * best


def test_all_planes_of_a_multiclass_problem_have_its_losses():
    helpers.check_constraints(built("multiclass", CASES["multiclass"][1]), n_labels=3)


def overlapping(seed):
    """Return two Gaussians that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 400)
    return rng.normal(size=(400, 2)) + y[:, None], y


def test_what_costs_more_is_avoided():
    costly = np.array([[0, 1], [10, 0]])  # a missed 1 costs ten times a false one
    (X, y), (others, truth) = overlapping(0), overlapping(1)
    models = [StructuredSVM(lam="1/n", loss=loss).fit(X, y) for loss in (None, costly)]
    errors = [truth - model.predict(others) for model in models]
    missed, false = ([(error == sign).mean() for error in errors] for sign in (1, -1))
    assert missed[1] < 0.3 * missed[0]
    assert false[1] > false[0]
    assert 10 * missed[1] + false[1] < 0.7 * (10 * missed[0] + false[0])
    assert models[1].mean_loss(others, truth) == pytest.approx(10 * missed[1] + false[1])
    assert models[0].mean_loss(others, truth) == pytest.approx(1 - models[0].score(others, truth))


def test_the_estimator_takes_names_arrays_and_files(tmp_path):
    data = random_chains([3, 1, 4] * 4, 3, 3)
    X, y = np.split(data.x, data.offsets[1:-1]), np.split(data.y, data.offsets[1:-1])
    far = np.abs(np.subtract.outer(range(3), range(3)))
    np.savetxt(tmp_path / "far.txt", far, header="row: truth")
    losses = ("absolute", far, far.tolist(), tmp_path / "far.txt", str(tmp_path / "far.txt"))
    models = [StructuredSVM("chain", loss=loss).fit(X, y) for loss in losses]
    assert len({model.weights_.tobytes() for model in models}) == 1
    assert models[0].weights_.tolist() != StructuredSVM("chain").fit(X, y).weights_.tolist()
    predicted = models[1].predict(X)
    means = [np.abs(a.astype(int) - b).mean() for a, b in zip(y, predicted, strict=True)]
    assert models[1].mean_loss(X, y) == pytest.approx(np.mean(means))
    # weights of examples are those of an oracle around it
    weighted, repeated = (StructuredSVM("chain", loss=far, lam=0.1, gap_tol=1e-6) for _ in range(2))
    weighted.fit(X, y, np.arange(12) % 3)
    repeated.fit(*([row for i, row in enumerate(rows) for _ in range(i % 3)] for rows in (X, y)))
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=0.02)
    with pytest.raises(ValueError, match="y has the label 7, which training has not seen"):
        models[0].mean_loss(X[:1], [[0, 7, 1]])


@pytest.fixture
def mine(tmp_path):
    columns = "".join(f"{'ab'[k % 2]} {'XZY'[k % 3]}\n" + "\n" * (k % 4 == 3) for k in range(40))
    (tmp_path / "train.txt").write_text(columns)
    (tmp_path / "test.txt").write_text("a X\nb Y\n\na Q\n")  # training has not seen Q
    (tmp_path / "loss.txt").write_text("# X, Z, Y\n0 1 4\n.5, 0, 3\n\n2 2.5 0  # Y\n")
    data = "dataset=file", f"dataset.path={tmp_path}/train.txt", f"dataset.test={tmp_path}/test.txt"
    return tmp_path, (*data, "budget.max_iterations=3", "solver=bcfw", "clock=work")


def test_a_run_is_known_by_the_matrix_wherever_it_is(mine):
    folder, words = mine
    (folder / "again.txt").write_text("0 1 4\n0.5 0 3\n2 2.5 0\n")
    (folder / "other.txt").write_text("0 1 4\n0.5 0 3\n2 2.6 0\n")

    def hashed(*options):
        return config_of(folder, *options, data=words).with_source("real").hash()

    files = [folder / name for name in ("loss.txt", "again.txt", "other.txt")]
    losses = (*files, "[[0,1,4],[0.5,0,3],[2,2.5,0]]", "zero_one", "absolute")
    found = [hashed(f"oracle.loss={loss}") for loss in losses]
    assert found[0] == found[1] == found[3]
    assert len(set(found)) == 4
    assert found[4] == hashed()


def test_a_run_reports_the_loss_that_it_was_trained_with(mine):
    folder, words = mine
    outcome = run_here(folder, f"oracle.loss={folder}/loss.txt", data=words)
    (folder / "loss.txt").unlink()  # the run has what was in it
    told = call("score", outcome.folder, "--out", folder / "scores.json").output
    predicted = ["XZY".index(name) for name in call("predict", outcome.folder).stdout.split()]
    # the part of an unknown label has the largest loss
    mean = ((0, 1, 4)[predicted[0]] / 2 + (2, 2.5, 0)[predicted[1]] / 2 + 4) / 2
    summary = read_summary(outcome.folder)
    assert summary["test_loss"] == pytest.approx(mean)
    assert json.loads((folder / "scores.json").read_text())["mean_loss"] == pytest.approx(mean)
    assert f"mean loss {mean:.6g}" in told


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe0 1", "neither zero_one nor absolute, and a file of this name cannot be read"),
        ("0 1\n1 0 2\n", "line 2: the numbers are 3, and the rows 2. A loss matrix has a row and"),
        ("# X\n\n0 1 2\n1 0 2\n", "line 3: the numbers are 3, and the rows 2"),
        ("0 1\n-1 0\n", "line 2, column 1: a loss must be a number ≥ 0, got -1"),
        ("0 nan\n1 0\n", "line 1, column 2: a loss must be a number ≥ 0, got nan"),
        ("0 1\ninf 0\n", "line 2, column 1: a loss must be a number ≥ 0, got inf"),
        ("0 1\n1 2\n", "line 2, column 2: the loss of the true label must be 0, got 2"),
        ("0 1\none 0\n", "line 2: one 0 is no row of numbers"),
        ("# nothing\n", "is empty: a loss matrix has a row for each label"),
        ("0 1\n1 0\n", "is a matrix for 2 labels, and file has 3, in this order: X, Z, Y"),
        (None, "neither zero_one nor absolute, and a file of this name cannot be read: No such"),
    ],
)
def test_a_file_that_is_no_matrix_is_one_message(mine, content, message):
    folder, words = mine
    (folder / "loss.txt").unlink()
    if content is not None:
        raw = content if isinstance(content, bytes) else content.encode()
        (folder / "loss.txt").write_bytes(raw)
    failed = call("run", *words, f"oracle.loss={folder}/loss.txt", f"results_dir={folder}")
    said = error_of(failed, 2)
    assert message in said
    assert "oracle.loss" in said


IN_BRACKETS = "oracle.loss must be a name, a file, or a matrix in brackets"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[[0,1],[1,1]]", r"oracle.loss, row 2, column 2: the loss of the true label must be 0"),
        ("[[0,1]]", r"oracle.loss, row 1: the numbers are 2, and the rows 1"),
        *(("[0,1]", IN_BRACKETS), ("3", IN_BRACKETS), ("[]", "oracle.loss is empty")),
    ],
)
def test_bad_values_are_one_message(value, message):
    with pytest.raises(ConfigError, match=message):
        config_of("results", f"oracle.loss={value}")


def test_a_loss_that_is_too_large_is_refused(mine):
    folder, words = mine
    loss = "oracle.loss=[[0,1e200,1],[1,0,1],[1,1,0]]"
    assert "can overflow" in error_of(call("run", *words, loss, f"results_dir={folder}"), 2)
