"""A Gaussian prior of w: the planes that solvers see, the optimum that they find, what is refused.

The optimum is found in the original coordinates by another optimiser, which knows nothing of ŵ:

    max over the simplices of  −1/(2λ) φ⋆ᵀ Σ φ⋆ + ⟨μ, φ⋆⟩ + φ∘        w = μ − Σ φ⋆/λ
"""

import io
from pathlib import Path

import helpers
import numpy as np
import pytest
from program import USPS, call, config_of, error_of, run_folders, run_here
from rich.console import Console
from traces import make_trace

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config.schema import PriorConfig
from ssvm_bench.figures.convergence import SUBOPTIMALITY
from ssvm_bench.figures.style import problem_title
from ssvm_bench.oracles import multiclass, prior
from ssvm_bench.oracles.base import Problem
from ssvm_bench.oracles.prior import Prior, WithPrior, with_prior
from ssvm_bench.report.contents import Contents
from ssvm_bench.report.groups import Group, group, titles
from ssvm_bench.results import folder, optima
from ssvm_bench.results.provenance import provenance_of
from ssvm_bench.results.table import Runs, differences, flatten, instance_of, labels
from ssvm_bench.results.trace import read_trace
from ssvm_bench.runs import components, runner
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.resolved import check_requirements
from ssvm_bench.runs.terminal import Display, PlainLines

pytestmark = pytest.mark.processors

CHAINS = helpers.random_chains([2, 1, 2], 2, 2, seed=6)
DATA = {"chains": CHAINS, "multiclass": helpers.random_multiclass(4, 3, 2, seed=5)}
DATA |= {"graphs": helpers.random_graphs([3, 2, 4], 2, 3, seed=8)}
FORMS = ("mean", "diagonal", "full")
LAM = 0.25
D = 2560  # of USPS


def moments(form, d):
    """Return some μ and Σ of d weights."""
    rng = np.random.default_rng(7)
    mean, spread = rng.normal(size=d), rng.normal(size=(d, d))
    full = spread @ spread.T / d + 0.1 * np.eye(d)
    return mean, {"mean": 2.0 * np.eye(d), "diagonal": np.diag(np.diag(full)), "full": full}[form]


def config(folder, mean, variance):
    """Return the options of a prior that is in two files."""
    files = folder / "mean.npy", folder / "variance.npy"
    np.save(files[0], mean)
    np.save(files[1], variance)
    return PriorConfig(*files)


def made_of(folder, form, inner):
    """Return a prior of this form for an oracle, its mean and its variance."""
    mean, variance = moments(form, inner.d)
    return prior.build(config(folder, mean, variance), inner.d), mean, variance


def objective(table, w, mean, variance):
    """Return P(w), straight from its definition."""
    off = w - mean
    heights = [(planes @ np.append(w, 1)).max() for planes in table.planes]
    return 0.5 * LAM * off @ np.linalg.solve(variance, off) + sum(heights)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_planes_are_mapped_as_the_definition_says(data, form, tmp_path):
    inner, table = helpers.oracle(data), helpers.Table(data)
    made, mean, variance = made_of(tmp_path, form, inner)
    mapped = made.oracle(inner)
    assert isinstance(mapped, WithPrior)
    root = made.root if made.root.ndim == 2 else np.diag(made.root)
    np.testing.assert_allclose(made.scale * root @ root.T, variance, atol=1e-12)
    unseen = np.random.default_rng(1).normal(size=inner.d)
    w = mapped.weights(unseen)
    np.testing.assert_allclose(w, mean + root @ unseen, atol=1e-12)
    total, phi = 0.0, np.zeros(inner.d + 1)
    for i, planes in enumerate(table.planes):
        for y, plane in zip(table.labelings[i], planes, strict=True):
            labeling = np.asarray(y, np.uint8)
            dense = helpers.dense(mapped.plane(i, labeling), inner.d)
            expected = np.append(root.T @ plane[:-1], plane[-1] + mean @ plane[:-1])
            np.testing.assert_allclose(dense, expected, atol=1e-12)
            value = dense @ np.append(unseen, 1.0)
            assert value == pytest.approx(plane @ np.append(w, 1), abs=1e-12)
            score = mapped.joint_feature(i, labeling)
            linear = score[1] @ unseen[score[0]] + mapped.fixed_score(i, labeling)
            assert linear == pytest.approx(mapped.score(unseen, i, labeling), abs=1e-12)
        best, value = mapped.best_plane(unseen, i)
        assert value == pytest.approx((planes @ np.append(w, 1)).max(), abs=1e-12)
        phi, total = phi + helpers.dense(best, inner.d), total + value
        assert not helpers.dense(mapped.plane(i, mapped.truth(i)), inner.d).any()
    risk = mapped.risk(unseen)
    assert risk.value == pytest.approx(total, abs=1e-12)
    assert risk.value == mapped.risk(unseen, with_plane=False).value
    np.testing.assert_allclose(np.append(risk.star, risk.offset), phi, atol=1e-12)
    assert mapped.mean_loss(unseen) == inner.mean_loss(w)


@pytest.mark.parametrize("form", FORMS)
def test_listed_planes_are_those_that_are_mapped_one_by_one(form, tmp_path):
    inner = helpers.oracle(DATA["multiclass"])
    made, *_ = made_of(tmp_path, form, inner)
    for terms in (inner, made.oracle(inner)):
        helpers.check_constraints(terms, n_labels=3)
    assert made.oracle(helpers.oracle(CHAINS)).constraints() is None


@pytest.mark.parametrize("name", ["bcfw", "mpbcfw_fast"])
def test_standard_normal_planes_are_the_same_bit_for_bit(name):
    inner = helpers.Plain(helpers.oracle(CHAINS))
    standard = WithPrior(inner, Prior(np.zeros(inner.d), np.ones(inner.d)))
    one, other = (helpers.solver(Problem(terms, LAM), name) for terms in (inner, standard))
    for _ in helpers.together(8, one, other):
        assert one.reported().dual == other.reported().dual
        np.testing.assert_array_equal(one.reported().w, other.reported().w)


def test_one_variance_leaves_the_oracle_alone():
    inner = helpers.oracle(CHAINS)
    made = prior.build(PriorConfig(variance=4.0), inner.d)
    assert made.oracle(inner) is inner
    assert with_prior(inner, LAM, made).lam == LAM / 4


ENDS = {"fw": 0.05, "bcfw": 0.05, "mpbcfw": 0.05, "ssg": 0.1}
ENDS |= {"mpbcfw_fast": 1e-8, "dcd": 1e-8, "one_slack": 1e-6, "bmrm": 1e-6}
"""How far from the optimum each must come; SSG and Frank–Wolfe steps converge like 1/k."""

OPTIONS = {"one_slack": {"epsilon": 1e-7}, "bmrm": {"epsilon": 1e-7}, "dcd": {"tol": 1e-9}}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ENDS)
def test_solvers_find_the_optimum_in_the_original_coordinates(name, form, tmp_path):
    data = DATA["multiclass"] if name == "dcd" else CHAINS  # of which dcd has all planes
    inner, table = helpers.oracle(data), helpers.Table(data)
    of, mean, variance = made_of(tmp_path, form, inner)
    optimum, best = helpers.quadratic_program(table, LAM, mean, variance)
    assert objective(table, best, mean, variance) == pytest.approx(optimum, abs=1e-6)
    posed = with_prior(inner, LAM, of)
    made = helpers.solver(posed, name, **OPTIONS.get(name, {}))
    assert not getattr(made, "finds", False)
    most, fall = (300, 1e-14) if name == "dcd" else (100, np.inf)
    for w, _ in helpers.enclosing(made, optimum, most, fall=fall):
        primal = objective(table, posed.oracle.weights(w), mean, variance)
        assert posed.primal(w) == pytest.approx(primal, abs=1e-10)
    dual = made.reported().dual
    assert primal == pytest.approx(optimum, abs=ENDS[name])
    assert np.isnan(dual) or dual == pytest.approx(optimum, abs=ENDS[name])
    # P is strongly convex: λ/2 (w − w*)ᵀ Σ⁻¹ (w − w*) ≤ P(w) − P*
    off = posed.oracle.weights(w) - best
    distance = 0.5 * LAM * off @ np.linalg.solve(variance, off)
    assert distance <= primal - optimum + 1e-6


@pytest.fixture
def files(tmp_path):
    """Return a mean, a diagonal and where they are, for the weights of USPS."""
    rng = np.random.default_rng(3)
    mean, variance = 0.1 * rng.normal(size=D), rng.uniform(0.5, 2.0, D)
    config(tmp_path, mean, variance)
    options = (f"prior.mean={tmp_path}/mean.npy", f"prior.variance={tmp_path}/variance.npy")
    return mean, variance, options


def test_a_run_reports_and_stores_the_w_of_the_problem(files, tmp_path):
    mean, variance, options = files
    fast = ("solver=mpbcfw_fast", "budget.max_iterations=6", "lam=0.05")
    made = run_here(tmp_path, *options, *fast)
    trace = read_trace(made.folder)
    frame, w = trace.frame, np.load(made.folder / "weights.npz")["w"]
    assert (frame["dual"] <= frame["primal"]).all()
    first, last = frame.iloc[0], frame.iloc[-1]
    assert last["gap"] < 0.1 * first["gap"]
    norms = np.linalg.norm(mean), np.linalg.norm(w)  # it begins at ŵ = 0
    assert (first["w_norm"], last["w_norm"]) == pytest.approx(norms)
    assert trace.metadata["lam"] == 0.05
    run = config_of(tmp_path, *options, *fast)
    data = components.load_dataset(run.dataset)
    risk = components.build_oracle(run.oracle, run.dataset).risk(w, with_plane=False).value
    off = w - mean
    assert last["primal"] == pytest.approx(0.025 * off @ (off / variance) + risk, rel=1e-12)
    wrong = (data.x @ w.reshape(10, 256).T).argmax(axis=1) != data.y
    assert made.summary["train_loss"] == pytest.approx(wrong.mean(), abs=1e-15)


def test_one_variance_and_lam_give_the_same_rows(tmp_path):
    rows = []
    for lam, options in ((0.2, ("lam=0.2", "prior.variance=4")), (0.05, ("lam=0.05",))):
        made = run_here(tmp_path, *options, "clock=work", "budget.max_iterations=4")
        trace = read_trace(made.folder)
        assert trace.metadata["lam"] == lam
        rows.append(trace.frame.drop(columns=["eval_time", "cpu_time"]))
        rows[-1].loc[:, "w"] = np.load(made.folder / "weights.npz")["w"].sum()
    assert rows[0].equals(rows[1])


def test_losses_on_held_out_examples_are_those_of_w(tmp_path):
    data = {"train": helpers.random_multiclass(6, 3, 2)}
    data["test"] = helpers.random_multiclass(40, 3, 2, 1)
    run = config_of(tmp_path, "solver=mpbcfw", "budget.max_iterations=3")
    inner, test = (multiclass.build(run.oracle, data[name]) for name in ("train", "test"))
    mean, variance = moments("diagonal", inner.d)
    posed = with_prior(inner, LAM, prior.build(config(tmp_path, 3 * mean, variance), inner.d))
    recorder = Recorder(posed, Display(), {"test": test.mean_loss})
    made = helpers.solver(posed, "mpbcfw", clock=Clock("work"))
    runner.loop(run, made, recorder)
    seen = made.reported().w
    np.testing.assert_array_equal(recorder.w, posed.oracle.weights(seen))

    def wrong(w, name):
        scores = data[name].x @ w.reshape(3, 2).T
        return (scores.argmax(axis=1) != data[name].y).mean()

    for name in data:
        assert recorder.losses[name] == pytest.approx(wrong(recorder.w, name), abs=1e-15)
    # else nothing has been tested
    assert any(wrong(recorder.w, name) != wrong(seen, name) for name in data)


def test_a_path_of_lam_ends_where_a_direct_run_does(files, tmp_path):
    options, ends = files[2], []
    words = ("solver=mpbcfw_fast", "lam=0.1", "budget.max_iterations=10")
    for path in ("path=[0.5,0.2]", "path=[]"):
        frame = read_trace(run_here(tmp_path, *options, path, *words).folder).frame
        assert (frame["dual"] <= frame["primal"]).all()
        ends.append(frame.iloc[-1])
    assert len(run_folders(tmp_path)) == 4
    assert ends[0]["dual"] <= ends[1]["primal"]
    assert ends[1]["dual"] <= ends[0]["primal"]
    assert max(end["gap"] for end in ends) < 1e-3


def test_a_neutral_prior_leaves_the_hash_alone(tmp_path):
    def hashed(*options):
        return config_of(tmp_path, *options).hash()

    assert hashed("prior.mean=0", "prior.variance=1") == hashed()
    assert config_of(tmp_path, "prior.variance=2").resolved()["prior"]["variance"] == 2.0
    options = ("prior.mean=0", "prior.variance=2", "prior.mean=2", "prior.mean=[1,2]")
    assert len({hashed(option) for option in options}) == 4


def test_a_file_enters_by_its_content(tmp_path):
    hashes = []
    for name, first in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        np.save(tmp_path / f"{name}.npy", first + np.arange(4.0))
        hashes.append(config_of(tmp_path, f"prior.variance={tmp_path / name}.npy").hash())
    assert hashes[0] == hashes[1] != hashes[2]


def test_one_prior_has_one_name_however_it_is_written(tmp_path):
    def named(mean, variance):
        np.save(tmp_path / "v.npy", variance)
        return PriorConfig(mean, tmp_path / "v.npy").text()

    assert named(0.0, np.ones(3)) == named(0.0, np.eye(3)) == PriorConfig().text() == ""
    assert named((0.0, -0.0), 4 * np.eye(2)) == PriorConfig(variance=4.0).text() == "N(0, 4)"
    diagonal = named(0.5, np.array([1.0, 2.0]))
    assert diagonal == named(0.5, np.diag([1.0, 2.0]))
    assert diagonal == PriorConfig(0.5, (1.0, 2.0)).text()
    assert diagonal.startswith("N(0.5, diagonal ")
    names = {diagonal, named(0.5, np.array([2.0, 1.0])), named(0.5, np.array([[2.0, 1], [1, 2]]))}
    assert len(names) == 3
    assert PriorConfig((1.0, 2.0)).text().startswith("N(vector ")


def test_problem_instances_titles_and_curves_tell_priors_apart(tmp_path):
    plain, other = make_trace([2.0, 1.5], [0.0, 0.5]), make_trace([4.0, 3.0], [1.0, 2.0])
    other.metadata["prior"] = "N(0, 4)"
    other.metadata["config"]["prior"] = {"variance": 4.0}
    of_plain, of_other = (instance_of(run.metadata) for run in (plain, other))
    assert of_plain != of_other
    best = optima.reference([plain, other], tmp_path)
    assert best[of_other].dual != best[of_plain].dual
    assert optima.reference([other], tmp_path) == best  # as they are read again
    assert labels([plain, other])[0] == labels([plain, other])[1]
    table = SUBOPTIMALITY.tabulate(Runs([plain, other], best), "iteration")
    headings = [problem_title(rows.iloc[0]) for _, rows in table.groupby(["fingerprint", "lam"])]
    assert ["prior" in heading for heading in headings].count(True) == 1
    groups = {of_plain: [Group(Runs([plain]))], of_other: [Group(Runs([other]))]}
    assert list(titles(groups).values()) == ["toy", "toy (prior N(0, 4))"]
    found = Contents("report", "Your runs", Runs([plain, other]), folder.as_folder(tmp_path))
    assert len(group(found)) == 2
    datasets = provenance_of([plain, other])["datasets"]
    assert sorted(data.get("prior") is None for data in datasets) == [False, True]


def test_runs_of_a_sweep_are_told_apart_by_their_priors(tmp_path):
    runs = config_of(tmp_path), config_of(tmp_path, "prior.variance=2")
    told = differences([flatten(run.resolved()) for run in runs], ["", ""], {"results_dir"})
    assert told == ["prior.variance=1.0", "prior.variance=2.0"]


@pytest.mark.parametrize(("options", "named"), [(("prior.variance=2",), True), ((), False)])
def test_the_first_line_of_a_run_names_its_prior(options, named, tmp_path):
    text = io.StringIO()
    PlainLines(Console(file=text)).start(config_of(tmp_path, *options), "synthetic", 30, D, 0.1)
    assert ("= 0.1, prior N(0, 2), clock = wall" in text.getvalue()) == named


PER_WEIGHT = "must be one number per weight, got the shape "
POSITIVE, MISSING = "must be positive numbers, and the least is ", "cannot be read: No such file or"


def square(d):
    return np.eye(d) + 0.5 * np.eye(d, k=1) + 0.5 * np.eye(d, k=-1)


FILES = {"negative": [1.0, -2.0], "nan": [1.0, np.nan], "text": ["1", "2"], "complex": [1.0, 2.0j]}
FILES |= {"empty": np.zeros(0), "oblong": np.ones((2, 3)), "cube": np.ones((2, 2, 2))}
FILES |= {"skew": [[1.0, 0.1], [0.2, 1.0]], "singular": np.ones((3, 3)), "large": square(2001)}
FILES |= {"indefinite": [[1.0, 2.0], [2.0, 1.0]], "objects": np.array([1.0, None], dtype=object)}


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory):
    """Return a folder of files that cannot be used."""
    folder = tmp_path_factory.mktemp("spoilt")
    for name, values in FILES.items():
        np.save(folder / f"{name}.npy", values, allow_pickle=name == "objects")
    (folder / "nonsense.npy").write_bytes(b"nothing of the kind")
    (folder / "short.npy").write_bytes((folder / "negative.npy").read_bytes()[:-1])
    (folder / "folder.npy").mkdir()
    np.savez(folder / "several.npz", one=np.ones(2))
    (folder / "several.npz").rename(folder / "several.npy")
    return folder


def refused(option, folder, tmp_path):
    """Return why a run with such a prior is refused."""
    return error_of(call("run", *USPS, option.format(folder), f"results_dir={tmp_path}"), 2)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        *(("mean=[]", PER_WEIGHT + "(0,)"), ("mean={}/empty.npy", PER_WEIGHT + "(0,)")),
        ("mean={}/singular.npy", PER_WEIGHT + "(3, 3)"),
        ("mean=.nan", "must be a number, a list of numbers in brackets, or the path of an"),
        *(
            ("mean=true", "prior.mean must be a number"),
            ("mean=abc", "path of an .npy file, got abc"),
        ),
        ("mean={}/text.npy", "its entries are no real numbers"),
        ("mean={}/complex.npy", "its entries are no real numbers, but complex128"),
        *((f"{name}={{}}/nan.npy", "must be finite numbers") for name in ("mean", "variance")),
        *((f"{name}={{}}/missing.npy", MISSING) for name in ("mean", "variance")),
        *(("variance=0", POSITIVE + "0"), ("variance=-1", POSITIVE + "-1")),
        *(("variance=[1,0]", POSITIVE + "0"), ("variance={}/negative.npy", POSITIVE + "-2")),
        ("variance=[]", "must be one number per weight or a square matrix, got the shape"),
        ("variance=[[1,0],[0,1]]", "prior.variance must be a number"),
        ("variance={}/folder.npy", "cannot be read: it is not a regular file"),
        *(
            (f"variance={{}}/{name}.npy", "it is no .npy file of numbers")
            for name in ("nonsense", "several", "short")
        ),
        ("variance={}/objects.npy", "Object arrays cannot be loaded"),
        ("variance={}/oblong.npy", "or a square matrix, got the shape (2, 3)"),
        ("variance={}/cube.npy", "or a square matrix, got the shape (2, 2, 2)"),
        ("variance={}/skew.npy", "is not symmetric"),
        ("variance={}/singular.npy", "is not positive definite"),
        ("variance={}/indefinite.npy", "is not positive definite"),
        ("variance={}/large.npy", "is a matrix for 2001 weights, and matrices can be for at"),
    ],
)
def test_a_prior_that_is_none_is_refused_before_data_are_read(
    option, message, spoilt, tmp_path, monkeypatch
):
    for module, name in ((components, "load_dataset"), (runner, "warm_up")):
        monkeypatch.setattr(module, name, lambda *_, name=name: pytest.fail(name))
    said = refused(f"prior.{option}", spoilt, tmp_path)
    assert message in said
    assert f"prior.{option}".partition("=")[0] in said
    assert not run_folders(tmp_path)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("prior.mean=[1,2]", "prior.mean is for 2 weights, and with this dataset and oracle there"),
        ("prior.variance=[1,2,3]", "prior.variance is for 3 weights"),
        ("prior.variance={}/square.npy", "prior.variance is for 4 weights"),
        ("prior.variance=1e305", "is too small for features of up to"),
        ("prior.variance=1e-305", "prior.variance=1e-305 is too small"),
        ("prior.mean=1e305", "prior.mean is too large"),
    ],
)
def test_what_does_not_fit_the_data_is_refused_before_anything_is_compiled(
    option, message, tmp_path, monkeypatch
):
    monkeypatch.setattr(runner, "warm_up", lambda *_: pytest.fail("compiled"))
    np.save(tmp_path / "square.npy", square(4))
    said = refused(option, tmp_path, tmp_path)
    assert message in said
    assert str(D) in said or "weights" not in said


@pytest.mark.parametrize("name", ["eg", "excessive_gap", "extragradient"])
def test_expectations_know_no_prior_but_one_variance(name, tmp_path):
    check_requirements(config_of(tmp_path, f"solver={name}", "prior.variance=2"))
    for option in ("prior.mean=1", "prior.variance=[1,2]"):
        with pytest.raises(ConfigError, match=f"solver={name} needs the expectations"):
            check_requirements(config_of(tmp_path, f"solver={name}", option))


def test_relative_paths_are_those_of_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.ones(3))
    made = PriorConfig(variance=Path("v.npy"))
    assert made.stated["variance"].values.tolist() == [1, 1, 1]
