"""Kernels: their optimum by other programs, what does not change a curve, and their predictions."""

import copy
import io
import pickle
import shutil
from dataclasses import replace

import helpers
import numpy as np
import pytest
from helpers import iterated, minimised_over_simplices, random_chains, random_multiclass, solver
from program import call, config_of, error_of, run_here
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC
from traces import sealed

from ssvm_bench import StructuredSVM, load_runs
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.state import StateError
from ssvm_bench.oracles import multiclass, viterbi
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.kernels import KernelFunction, KernelPoints
from ssvm_bench.results.trace import WEIGHTS
from ssvm_bench.runs.checkpoints import of_solver, restore_solver

pytestmark = pytest.mark.processors

RBF = {"kernel": "rbf", "gamma": 0.2}
GIVEN = ("oracle.kernel=rbf", "oracle.gamma=1")
AS_LINEAR = {"kernel": "poly", "gamma": 1.0, "degree": 1}
"""1 + ⟨x, x′⟩: the linear kernel of features with a constant 1."""
FIXED = {"rule": "fixed", "M": 2}
"""The slope rule compares gains: a last digit can make it end one pass later."""
STEADY = ("bcfw_avg", "mpbcfw_avg", "mpbcfw_need", "mpbcfw_accelerated")
"""Pairwise steps depend on which weights are 0, not nearly: roundings change their curves."""


def posed(data, lam=None, **options):
    """Return the problem of a dataset with an oracle of these options."""
    module = viterbi if data.structure == "chain" else multiclass
    config = module.Config("tiny", "tiny", cost_call=1e-6, cost_plane=1e-7, **options)
    return Problem(module.build(config, data), 1 / data.n if lam is None else lam)


def with_constant(data):
    return data.derived(x=np.column_stack((data.x, np.ones(len(data.x)))))


def curve(made, count):
    """Return primal and dual of each of so many iterations."""
    size, primal = made.problem.size, made.problem.primal
    rows = helpers.reports(made, count)
    return np.array([(primal(w), dual, size(w), made.approx_passes) for w, dual in rows])


@pytest.mark.parametrize("sparse", [False, True])
def test_values_are_those_of_scikit_learn(sparse):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    points = [KernelPoints.of(csr_array(each) if sparse else each) for each in (x, z)]
    for kernel, theirs in (
        (KernelFunction("rbf", 0.3, 1, 0), rbf_kernel(x, z, gamma=0.3)),
        (KernelFunction("poly", 0.3, 3, 0), polynomial_kernel(x, z, gamma=0.3, degree=3, coef0=1)),
    ):
        np.testing.assert_allclose(kernel.values(*points), theirs, rtol=1e-12)
        own = kernel.values(points[0], points[0])
        np.testing.assert_allclose(kernel.at_themselves(points[0]), own.diagonal(), rtol=1e-12)


def examples(chains):
    return random_chains([3, 1, 4, 2] * 3, 3, 4) if chains else random_multiclass(30, 4, 5)


def weighted():
    rng = np.random.default_rng(1)
    some = {"costs": rng.uniform(0.2, 3, 20), "margins": rng.uniform(0.5, 2, 20)}
    return replace(random_multiclass(20, 3, 4), **some)


@pytest.mark.parametrize("path", [False, True])
@pytest.mark.parametrize(
    ("data", "name", "options"),
    [
        *((examples(False), name, {}) for name in STEADY),
        (examples(False), "mpbcfw_gram", {"in_out": 0.5}),
        (examples(True), "mpbcfw_gram", {}),
        (weighted(), "mpbcfw_avg", {}),  # costs and margins multiply as in the linear problem
    ],
)
def test_a_linear_kernel_gives_the_linear_curve(data, name, options, path):
    options, curves = options | (FIXED if name.startswith("mpbcfw") else {}), []
    for problem in (posed(data, **AS_LINEAR), posed(with_constant(data))):
        made = solver(problem, name, **options)
        if path:
            iterated(made, 4).warm_start(problem.lam / 5, made.clock)
        curves.append(curve(made, 12))
    # the same steps, summed in another order
    np.testing.assert_allclose(*curves, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("name", "options"), [("mpbcfw_avg", {}), ("mpbcfw_gram", {"in_out": 0.5})]
)
def test_memory_changes_no_curve_and_saves_kernel_values(name, options):
    data = random_multiclass(200, 3, 4)
    curves, evaluations = [], []
    for rows in (200, 30, 1):
        made = solver(posed(data, kernel_memory=rows * 200 * 8e-6, **RBF), name, **options)
        curves.append(curve(made, 12))
        evaluations.append(made.diagnostics()["kernel_evaluations"])
        assert made.diagnostics()["kernel_rows"] <= rows
        np.testing.assert_allclose(curves[-1], curves[0], rtol=1e-9, atol=1e-11)
    assert evaluations[0] <= 200**2 < min(evaluations[1:])  # every row once, at most


@pytest.mark.parametrize(
    ("chains", "name"), [(False, "bcfw"), (False, "mpbcfw_fast"), (True, "mpbcfw_fast")]
)
def test_weak_duality_and_a_gap_that_closes(chains, name):
    primal, dual, *_ = curve(solver(posed(examples(chains), **RBF), name), 80).T
    assert (dual <= primal + 1e-12).all()
    assert (np.diff(dual) >= -1e-12).all()
    assert primal[-1] - dual[-1] < (1e-4 if name == "mpbcfw_fast" else 0.05) * primal[-1]


def test_two_classes_have_the_optimum_of_an_svc():
    """With v = w_1 − w_0 and w_1 = −w_0, P = λ/4 ‖v‖² + 1/n Σ hinge: SVC's C is 2/(λn).

    SVC has an intercept. Beside every example, its negative with the other label is given: then the
    optimum has none, and each hinge is there twice, so that C is half as large.
    """
    data, lam = random_multiclass(60, 2, 3), 0.01
    K = rbf_kernel(data.x, gamma=0.2)
    both, signs = np.block([[K, -K], [-K, K]]), np.where(data.y == 1, 1, -1)
    svc = SVC(C=1 / (lam * data.n), kernel="precomputed", tol=1e-9)
    svc.fit(both, np.concatenate((signs, -signs)))
    alpha = np.zeros(2 * data.n)
    alpha[svc.support_] = svc.dual_coef_
    scores = both[: data.n] @ alpha
    hinge = np.maximum(0, 1 - signs * scores).mean()
    assert abs(svc.intercept_[0]) < 1e-6
    theirs = lam / 4 * alpha @ both @ alpha + hinge

    problem = posed(data, lam, **RBF)
    w, dual = iterated(solver(problem, "mpbcfw_fast"), 200).reported()
    assert problem.primal(w) - dual < 1e-7
    assert problem.primal(w) == pytest.approx(theirs, abs=1e-6)
    own = problem.oracle.features.scores(problem.oracle.pack(w))
    np.testing.assert_allclose(own[1] - own[0], scores, atol=1e-3)


def test_three_classes_have_the_optimum_of_the_dual_program():
    """F(α) = 1/n Σ_i Σ_{y≠y_i} α_iy − 1/(2λn²) Σ_ij K_ij ⟨e_{y_i} − α_i, e_{y_j} − α_j⟩."""
    data, lam = random_multiclass(16, 3, 3), 0.05
    n, K, truth = data.n, rbf_kernel(data.x, gamma=0.2), np.eye(3)[data.y]

    def minus_dual(alpha):
        apart = truth - alpha.reshape(n, 3)
        loss = (alpha.reshape(n, 3) * (1 - truth)).sum() / n
        value = np.sum(apart * (K @ apart)) / (2 * lam * n * n) - loss
        return value, (-K @ apart / (lam * n * n) - (1 - truth) / n).ravel()

    theirs = -minimised_over_simplices(minus_dual, [3] * n)[1]
    problem = posed(data, lam, **RBF)
    w, dual = iterated(solver(problem, "mpbcfw_fast"), 200).reported()
    assert problem.primal(w) - dual < 1e-7
    assert dual == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("chains", [False, True])
def test_a_root_of_the_kernel_matrix_as_features_gives_the_same_curve(chains):
    data = examples(chains)
    root = np.linalg.cholesky(rbf_kernel(data.x, gamma=0.2))
    kernel = curve(solver(posed(data, **RBF), "mpbcfw_gram", **FIXED), 12)
    linear = curve(solver(posed(data.derived(x=root)), "mpbcfw_gram", **FIXED), 12)
    np.testing.assert_allclose(kernel, linear, rtol=1e-8, atol=1e-10)


def test_a_solver_goes_on_from_its_state_with_the_same_work():
    data, options = random_multiclass(60, 3, 4), {"kernel_memory": 40 * 60 * 8e-6, **RBF}
    problems = (posed(data, **options) for _ in range(2))
    whole, other = (solver(problem, "mpbcfw_avg", clock=counting()) for problem in problems)
    restore_solver(other, copy.deepcopy(of_solver(iterated(whole, 4))))
    np.testing.assert_allclose(curve(other, 8), curve(whole, 8), rtol=1e-9, atol=1e-11)
    assert other.diagnostics() == whole.diagnostics()
    assert other.clock.now() == whole.clock.now()


def counting():
    return Clock("work", 1e-6, 1e-7, 0.0, 1e-8)


@pytest.mark.parametrize(
    ("rows", "words"),
    [([0] * 60, "_owner has an entry twice"), ([60] + [-1] * 59, "_owner is out of range")],
)
def test_a_state_with_rows_that_cannot_be_is_refused(rows, words):
    made = solver(posed(random_multiclass(60, 3, 4), **RBF), "mpbcfw_avg")
    state = {**made.phi.state(), "_owner": np.array(rows)}
    with pytest.raises(StateError, match=words):
        made.phi.restore(state)


def test_kernel_values_cost_what_they_are_said_to():
    data = random_multiclass(60, 3, 4)
    made = iterated(solver(posed(data, **RBF), "bcfw", clock=counting()), 5)
    values = made.diagnostics()["kernel_evaluations"]
    assert values > 0
    assert made.clock.kernel_values == values
    assert made.clock.now() == pytest.approx(5 * 60 * 1e-6 + values * 1e-8, rel=1e-12)
    config = multiclass.Config("tiny", "tiny", cost_kernel=3e-9, **RBF)
    assert config.costs == (config.cost_call, config.cost_plane, 0.0, 3e-9)


def test_other_examples_are_scored_over_the_basis():
    train, test = random_multiclass(40, 3, 4), random_multiclass(25, 3, 4, seed=1)
    made = iterated(solver(posed(train, **RBF), "mpbcfw"), 10)
    w = made.reported().w
    other = posed(test, **RBF).oracle.over(train.x)
    assert other.d == w.size
    scores = w.reshape(3, 40) @ rbf_kernel(train.x, test.x, gamma=0.2)
    np.testing.assert_array_equal(other.predictions(w), scores.argmax(axis=0))


def test_a_run_is_stored_and_predicts(tmp_path):
    overrides = "oracle.kernel=rbf", "oracle.gamma=0.01", "solver=mpbcfw", "dataset.n_samples=80"
    data = "dataset=usps", "dataset.source=synthetic", "budget.max_iterations=4"
    outcome = run_here(tmp_path, *overrides, data=data)
    result = call("predict", outcome.folder)
    assert result.exit_code == 0, result.stderr
    assert outcome.summary["kernel_evaluations"] > 0
    assert 0 < outcome.summary["support"] <= 80
    config = config_of(tmp_path, *overrides, data=data)
    assert config.hash() != config_of(tmp_path, *overrides[2:], data=data).hash()


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Return a run on chains of a file, dense or sparse; the file is gone. And what it predicts."""
    made = {}
    for form in ("dense", "sparse"):
        folder = tmp_path_factory.mktemp(form)
        train, test = random_chains([3, 1, 4, 2] * 6, 3, 4), random_chains([2, 5] * 4, 3, 4, seed=1)
        for name, data in (("train", train), ("test", test)):
            x = {"x": data.x}
            if form == "sparse":
                rows = csr_array(np.where(data.x > 0, data.x, 0.0))
                x = {key: getattr(rows, key) for key in ("data", "indices", "indptr")}
                x["shape"] = np.array(rows.shape)
            np.savez(folder / f"{name}.npz", y=data.y, offsets=data.offsets, **x)
        data = "dataset=file", f"dataset.path={folder}/train.npz", "dataset.bias=1"
        options = "oracle.kernel=rbf", "oracle.gamma=0.2", "solver=mpbcfw"
        run = run_here(folder / "r", *options, "budget.max_iterations=5", data=data).folder
        before = call("predict", run, "--data", folder / "test.npz")
        (folder / "train.npz").unlink()
        made[form] = run, folder / "test.npz", before.stdout
    return made


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_run_predicts_without_its_training_data(words, form):
    run, test, before = words[form]
    result = call("predict", run, "--data", test)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == before != ""
    (read,) = load_runs(run.parents[4])
    stored = weights(run)
    support = int(stored["w"][:-9].reshape(3, -1).any(axis=0).sum())
    rows = len(stored["support"]) if form == "dense" else stored["support_indptr"].size - 1
    assert support == read.summary["support"] == rows


def refused(words, form, folder, changes):
    """Return why a run is refused that got other weights, with their checksum; None takes one."""
    run, test, _ = words[form]
    copied = shutil.copytree(run, folder / run.name)
    file = io.BytesIO()
    np.savez(file, **{k: v for k, v in {**weights(run), **changes}.items() if v is not None})
    sealed(copied, {WEIGHTS: file.getvalue()})
    return error_of(call("predict", copied, "--data", test), 1)


def weights(run):
    with np.load(run / WEIGHTS) as stored:
        return {**stored}


@pytest.mark.parametrize(
    ("form", "changes", "said"),
    [
        *(("dense", {"support": np.ones((m, 5))}, f"its support has {m} rows") for m in (0, 2)),
        *(
            ("dense", {"support": support}, "support must be an array of numbers")
            for support in (np.ones((60, 7)), np.ones(5), np.full((60, 5), "x"))
        ),
        ("dense", {"support": np.full((60, 5), np.nan)}, "support of entry 0 is nan"),
        ("dense", {"support": np.array([{}])}, "weights.npz: "),  # an object: never unpickled
        ("dense", {"support_data": np.ones(3)}, "it has support, support_data of"),
        *(("dense", {"w": np.ones(m)}, "0 parts have coefficients") for m in (3, 8)),
        ("sparse", {"support_indices": None}, "it has support_data, support_indptr of"),
        ("sparse", {"support_indices": np.ones(3, int)}, "and there are 3 non-zeros"),
        ("sparse", {"support_data": np.ones(3)}, "columns for 3 non-zeros"),
        ("sparse", {"support_indptr": np.zeros(3, int)}, "row ends of x end at 0"),
    ],
)
def test_a_support_that_cannot_be_is_refused(words, tmp_path, form, changes, said):
    assert said in refused(words, form, tmp_path, changes)


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("support_indices", -1, "has feature -1"),
        ("support_indices", 5, "has feature 5"),
        ("support_data", np.nan, "support_data of entry 3 is nan"),
    ],
)
def test_columns_and_numbers_of_a_sparse_support_are_checked(words, tmp_path, name, wrong, said):
    array = weights(words["sparse"][0])[name]
    array[3] = wrong
    assert said in refused(words, "sparse", tmp_path, {name: array})


@pytest.mark.parametrize("K", [2, 3])
def test_the_estimator_predicts_from_its_support(K):
    train, test = random_multiclass(80, K, 4), random_multiclass(40, K, 4, seed=1)
    model = StructuredSVM(kernel="rbf", gamma=0.2, lam=0.01, gap_tol=1e-6)
    assert not hasattr(model, "top_features")
    model = pickle.loads(pickle.dumps(model.fit(train.x, train.y)))
    m = model.support_.size
    assert 0 < m < 80
    np.testing.assert_array_equal(model.support_vectors_[:, :4], train.x[model.support_])
    scores = rbf_kernel(test.x, train.x[model.support_], gamma=0.2) @ model.weights_.reshape(K, m).T
    np.testing.assert_array_equal(model.predict(test.x), scores.argmax(axis=1))
    theirs = scores if K > 2 else scores[:, 1] - scores[:, 0]
    np.testing.assert_allclose(model.decision_function(test.x), theirs, rtol=1e-9, atol=1e-12)
    marginals = np.exp(scores) / np.exp(scores).sum(axis=1)[:, None]
    np.testing.assert_allclose(model.predict_marginals(test.x), marginals, rtol=1e-9)
    assert not hasattr(model, "coef_")
    if K == 2:  # no intercept there: the classes are as many, and SVC's is small
        svc = SVC(C=2 / (0.01 * 80), gamma=0.2).fit(train.x, train.y)
        assert np.mean(svc.predict(test.x) == model.predict(test.x)) >= 0.9


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kernel": "rbf"}, "needs oracle.gamma"),
        ({"kernel": "rbf", "gamma": "scale"}, "gamma must be a number above 0 or None"),
        ({"kernel": "rbf", "gamma": 1, "oracle": "binary"}, "oracle=binary has no kernel"),
    ],
)
def test_the_estimator_refuses_kernels_that_cannot_be(parameters, words):
    data = random_multiclass(20, 2, 3)
    with pytest.raises(ConfigError, match=words):
        StructuredSVM(**parameters).fit(data.x, data.y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["oracle.kernel=rbf"], "needs oracle.gamma"),
        (["oracle.kernel=rbf", "oracle.gamma=0"], "oracle.gamma must be a positive number, got 0"),
        (["oracle.kernel=poly", "oracle.gamma=1", "oracle.degree=0"], "oracle.degree must be ≥ 1"),
        (["oracle.kernel=cosine"], "oracle.kernel=cosine is not known"),
        (["dataset=weizmann", "oracle.kernel=rbf"], "oracle.kernel"),
        ([*GIVEN, "solver=bmrm"], "needs weights of features"),
        ([*GIVEN, "prior.variance=2"], "prior is one of"),
        ([*GIVEN, "parallel.workers=2"], "kernel values that do"),
        ([*GIVEN, "oracle.kernel_memory=1e-5"], "is too small"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(tmp_path, options, words):
    where = "dataset.source=synthetic", "dataset.n_samples=30", f"results_dir={tmp_path}"
    result = call("run", "solver=bcfw", "dataset=usps", *where, *options)
    assert words in error_of(result, 2)
