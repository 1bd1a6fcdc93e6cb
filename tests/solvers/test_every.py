"""Every solver on every type of features, and on every built-in dataset, with a report.

The whole grid takes hours, most of it compiling: ``pytest -m whole``. The normal suite has a sample
of it: every dataset with one solver, every solver on one dataset, and one on all types of features.
"""

import numpy as np
import pytest
from helpers import dataset, iterated, random_chains, random_multiclass
from helpers import problem as problem_of
from helpers import solver as solver_of
from program import call, forget_data, small_pictures

from ssvm_bench.config import catalog
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.objective import STRUCTURAL_SVM

SOLVERS = sorted(catalog.entries("solver"))
STRUCTURAL = [
    name for name in SOLVERS if compose_runs([f"solver={name}"])[0].solver.family == STRUCTURAL_SVM
]
DATASETS = sorted(set(catalog.entries("dataset")) - {"file", "stream", "digits", "neighbours"})
"""Without those that need a file of the user."""
VIDEOS = ("davis_bmx_trees", "davis_car_shadow")
PICTURES, N_PICTURES = ("horseseg", "stanford", "weizmann"), 4
POINTS = (
    *VIDEOS,
    "moons",
    "scribbles",
    "ssl_bci",
    "ssl_digit1",
    "ssl_g241c",
    "ssl_g241n",
    "ssl_usps",
)

KINDS = [np.uint8, np.int8, np.bool_, np.int16, np.int64, np.float16, np.float32, np.float64]
"""Types of numbers that a loader may return; they become one of three."""


@pytest.fixture(autouse=True)
def _few_pictures(picture_folder, monkeypatch):
    monkeypatch.setattr("ssvm_bench.datasets.reading.user_folder", lambda: picture_folder)
    small_pictures(monkeypatch, N_PICTURES)
    yield
    forget_data()


def run_of(data, solver, folder):
    """Run a solver on twelve examples for two iterations; return what became of it."""
    few = {
        **dict.fromkeys(POINTS, ""),
        **dict.fromkeys(VIDEOS, "dataset.frames=2"),
        **dict.fromkeys(PICTURES, f"dataset.n_samples={N_PICTURES}"),
    }.get(data, "dataset.n_samples=12")
    words = [f"dataset={data}", "dataset.source=synthetic", f"solver={solver}"]
    limits = ["budget.max_iterations=2", "clock=work", f"results_dir={folder}"]
    parts = "solver.P=3" if solver.endswith("p_bmrm") else ""
    return call("run", *words, *limits, *filter(None, [few, parts]))


def check_reported(folder):
    told = call("report", f"results_dir={folder}")
    assert told.exit_code == 0, told.stderr


@pytest.mark.parametrize("data", DATASETS)
def test_every_dataset_is_trained_on_and_reported(data, tmp_path):
    done = run_of(data, "inductive" if data in POINTS else "bmrm", tmp_path)
    assert done.exit_code == 0, done.stderr
    check_reported(tmp_path)


def test_several_steps_on_features_of_single_precision(tmp_path):
    done = run_of("plates", "mpbcfw_fast", tmp_path)
    assert done.exit_code == 0, done.stderr


@pytest.mark.whole
@pytest.mark.parametrize("data", DATASETS)
def test_every_solver_on_every_dataset(data, tmp_path):
    """One that does not fit is refused with the status of a wrong call, and nothing else."""
    status = {name: run_of(data, name, tmp_path) for name in SOLVERS}
    failed = {name: one.stderr for name, one in status.items() if one.exit_code not in (0, 2)}
    assert not failed
    refused = [name for name, one in status.items() if one.exit_code == 2]
    assert len(refused) < len(SOLVERS)
    assert "Traceback" not in "".join(one.stderr for one in status.values())
    check_reported(tmp_path)


def of_kind(structure, kind, few_zeros):
    """Return small examples whose features are of a type; some of them, or half of them, are 0."""
    data = (
        random_chains([3, 1, 4, 2] * 3, 3, 20)
        if structure == "chain"
        else random_multiclass(12, 3, 20)
    )
    x = np.clip(np.round(2.0 * np.abs(data.x)), 0, 1 if kind == np.bool_ else 100).astype(kind)
    drawn = np.random.default_rng(1).random(x.shape)
    x[drawn < (0.1 if few_zeros else 0.9)] = 0
    lengths = np.diff(data.offsets) if structure == "chain" else None
    return dataset(x, data.y, data.n_labels, lengths)


def check_types(name, structure, few_zeros, kinds):
    """Train on the same numbers in every type; results differ by rounding at most."""
    found = []
    for kind in kinds:
        posed = problem_of(of_kind(structure, kind, few_zeros), 0.1)
        made = solver_of(posed, name, **({"P": 3} if name.endswith("p_bmrm") else {}))
        w, dual = iterated(made, 2).reported()
        assert np.isfinite(w).all()
        assert not dual > posed.primal(w) + 1e-9
        found.append(w)
    for w in found[1:]:
        np.testing.assert_allclose(w, found[0], atol=1e-8)


NUMBERS = [kind for kind in KINDS if kind is not np.bool_]


@pytest.mark.parametrize("few_zeros", [True, False])
def test_bcfw_on_every_type_of_features(few_zeros):
    check_types("bcfw", "independent", few_zeros, NUMBERS)
    check_types("bcfw", "independent", few_zeros, [np.bool_])


@pytest.mark.whole
@pytest.mark.parametrize("structure", ["independent", "chain"])
@pytest.mark.parametrize("name", STRUCTURAL)
def test_every_solver_on_every_type_of_features(name, structure):
    for few_zeros in (True, False):
        for kinds in (NUMBERS, [np.bool_]):
            check_types(name, structure, few_zeros, kinds)


@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {*STRUCTURAL}))
def test_solvers_of_other_problems(name, tmp_path):
    done = run_of("moons", name, tmp_path)
    assert done.exit_code in (0, 2), done.stderr


@pytest.mark.parametrize("name", STRUCTURAL)
def test_every_solver_is_run_and_reported(name, tmp_path):
    done = run_of("usps", name, tmp_path)
    assert done.exit_code == 0, done.stderr
    check_reported(tmp_path)
