"""Runs from Python: those of the command line, and what they leave as pandas objects."""

from pathlib import Path

import numpy as np
import pytest
from program import USPS, call, python

import ssvm_bench
from ssvm_bench import api
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import overrides
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.results import stored_traces
from ssvm_bench.results.folder import MARKER, results_folder

ODD = Path("it's a \\ {folder}, \\'too\\\\")
FEW = {"budget.max_iterations": 2, "clock": "work"}


def test_the_package_shows_what_it_has_before_that_is_imported():
    done = python("-c", "import ssvm_bench, sys; print(*dir(ssvm_bench), 'numpy' in sys.modules)")
    assert done.stdout.split() == [*sorted(ssvm_bench.__all__), "False"]
    assert all(hasattr(ssvm_bench, name) for name in dir(ssvm_bench))
    with pytest.raises(AttributeError, match="no attribute 'load_run'"):
        _ = ssvm_bench.load_run


def test_a_run_from_python_is_that_of_the_command_line(tmp_path, capsys):
    words, options = ("solver=bcfw", *USPS), {"results_dir": tmp_path, "lam": 0.5, **FEW}
    ssvm_bench.run(*words, **options | {"results_dir": tmp_path / "other"})
    capsys.readouterr()  # it may be the first one that needs its kernels
    made = ssvm_bench.run(*words, **options)
    assert made.trace["iteration"].tolist() == [0, 1, 2]
    assert made.summary["primal"] == made.trace["primal"].iloc[-1]
    assert (made.about["lam"], made.weights.shape) == (0.5, (2560,))
    assert capsys.readouterr() == ("", "")
    typed = [f"{name}={value}" for name, value in options.items()]
    assert "has finished before" in call("run", *words, *typed).stderr
    (same,) = ssvm_bench.load_runs(tmp_path, solver="bcfw")
    assert same.trace.equals(made.trace)
    assert ssvm_bench.load_runs(tmp_path, dataset="ocr") == []
    ssvm_bench.run(*words, progress=True, **options)
    assert "has finished before" in capsys.readouterr().err


def test_a_sweep_returns_its_runs_in_order(tmp_path):
    made = ssvm_bench.sweep("solver=bcfw", *USPS, "seed=range(2)", results_dir=tmp_path, **FEW)
    assert [run.about["seed"] for run in made] == [0, 1]
    assert len(ssvm_bench.load_runs(tmp_path)) == 2


def test_your_own_traces_come_before_committed_ones(tmp_path):
    mine, committed = (
        ssvm_bench.run("solver=bcfw", *USPS, results_dir=tmp_path, lam=lam, **FEW)
        for lam in (0.5, 1.0)
    )
    (tmp_path / MARKER).touch()
    stored_traces.write([committed], tmp_path, "of_all")
    stored_traces.write([committed], tmp_path, "of_one")
    stored_traces.write([mine], results_folder(tmp_path, ()), "of_all")
    for experiment, lam in (("of_all", 0.5), ("of_one", 1.0)):
        (run,) = ssvm_bench.load_runs(tmp_path, experiment=experiment)
        assert (run.lam, run.best is None) == (lam, False)
    with pytest.raises(ConfigError, match=r"stored with of_al\. Did you mean of_all\?"):
        ssvm_bench.load_runs(tmp_path, experiment="of_al")


def test_mistakes_are_errors(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="There is no option lamb"):
        ssvm_bench.run(*USPS, lamb=1)
    with pytest.raises(ConfigError, match="lam must be a number, text, path, list or mapping"):
        ssvm_bench.run(*USPS, lam=object())
    outcome = type("Outcome", (), {"status": "interrupted", "folder": tmp_path})
    monkeypatch.setattr(api.runner, "run", lambda *_: outcome)
    with pytest.raises(RunFailedError, match="The run was interrupted"):
        ssvm_bench.run(*USPS, results_dir=tmp_path)
    with pytest.raises(AttributeError, match="no attribute 'runs_of'"):
        _ = ssvm_bench.runs_of


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("lam", 1e-3, 1e-3),
        ("lam", np.float64(0.25), 0.25),
        ("lam", None, None),
        ("lam", "10/n", "10/n"),
        ("force", True, True),
        ("path", [4.0, "30/n"], (4.0, "30/n")),
        ("results_dir", ODD, ODD),
        ("oracle.class_weight", {"1": 2, "B-NP": 0.5}, {"1": 2.0, "B-NP": 0.5}),
    ],
)
def test_values_are_what_they_were(name, value, expected):
    (config,) = compose_runs(["dataset=usps", *overrides.words({name: value})])
    for part in name.split("."):
        config = getattr(config, part)
    assert config == expected
