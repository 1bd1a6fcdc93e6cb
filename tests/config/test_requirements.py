"""What a solver says of itself is checked before a dataset is read or a kernel compiled."""

import pytest
from program import USPS, call, error_of, run_folders

from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs import components, runner
from ssvm_bench.solvers.base import SolverConfig

GRAPHS = ("dataset=weizmann", "dataset.source=synthetic", "dataset.n_samples=4")
NEVER = ("budget.max_iterations=null", "budget.gap_tol=0.1")


@pytest.fixture
def untouched(monkeypatch):
    """Fail if data are loaded, or kernels warmed up."""
    for module, name in ((components, "load_dataset"), (runner, "warm_up")):
        monkeypatch.setattr(module, name, lambda *_, name=name: pytest.fail(name))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("solver=ssg", *NEVER), "solver=ssg has no dual value"),
        (("solver=ssg", "path=[0.5]", "lam=0.1"), "solver=ssg cannot continue with another λ"),
        (("solver=cutting_plane", "path=[0.5]", "lam=0.1"), "cannot continue with another λ"),
        (("solver=prox_bmrm", "solver.init=reuse"), "starts from the solution of a larger lam"),
        (("solver=bmrm", "path=[0.5]", "lam=0.1"), "set solver.init=reuse, or leave path empty"),
        (("solver=prox_bmrm", "path=[0.5]"), "solver.init=sgd does not begin at the solution of"),
        (("solver=eg", *GRAPHS), "solver=eg needs the expectations"),
        (("solver=excessive_gap", *GRAPHS), "solver=excessive_gap needs the expectations"),
    ],
)
def test_what_does_not_fit_is_refused_before_data_are_read(untouched, tmp_path, options, message):
    given = options if "dataset=weizmann" in options else (*USPS, *options)
    result = call("run", *given, f"results_dir={tmp_path}")
    assert message in error_of(result, 2)
    assert not run_folders(tmp_path)


def test_too_few_examples_are_refused_before_anything_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "warm_up", lambda *_: pytest.fail("compiled"))
    options = (*USPS, "solver=p_bmrm", "dataset.n_samples=10", f"results_dir={tmp_path}")
    assert "at most the number of examples, 10" in error_of(call("run", *options), 2)


def test_every_solver_says_what_it_is():
    for kind in registry.kinds("solver"):
        assert issubclass(registry.module("solver", kind).Config, SolverConfig)
    (run,) = compose_runs(["solver=p_bmrm"])
    assert run.solver.least_n == run.solver.P
