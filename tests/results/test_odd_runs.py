"""Runs whose metadata are odd, with right checksums: each is harmless, or passed over in words."""

import json
import os
import re
import shutil

import pytest
from program import GRID, call, completed
from traces import sealed, with_metadata

from ssvm_bench import api
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results import trace


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Return a results folder with four runs, and the experiment that made them."""
    root = tmp_path_factory.mktemp("odd")
    experiment = root / "grid.yaml"
    experiment.write_text(GRID)
    assert call("experiment", experiment, f"results_dir={root / 'results'}").exit_code == 0
    shutil.rmtree(root / "results" / "traces")
    return root / "results", experiment


@pytest.fixture
def odd(base, tmp_path):
    """Return a copy of it, and the folder of one of its runs."""
    results = shutil.copytree(base[0], tmp_path / "results")
    (run,) = results.glob("runs/*/mpbcfw/*/seed=0")
    return results, run, base[1]


def put(document, way, value):
    """Set a value deep in a document."""
    *way, last = way.split(".")
    inner = document
    for key in way:
        inner = inner[key]
    inner[last] = value
    return document


def readers(results, run, experiment):
    """Return a call of every command that reads runs."""
    into = results.with_name("merged")
    return {
        "report": ["report", f"results_dir={results}"],
        "plot": ["plot", experiment, f"results_dir={results}"],
        "compare": ["compare", "bcfw", "mpbcfw", f"results_dir={results}"],
        "verify": ["verify", f"results_dir={results}"],
        "status": ["experiment", experiment, "--status", f"results_dir={results}"],
        "merge": ["merge", results, "--into", into],
        "score": ["score", run],
        "predict": ["predict", run, "--out", into.with_name("labels.txt")],
        "show": ["data", "show", "usps", "--run", run],
    }


def check_calm(result):
    """A call has ended with its answer, or with messages for people."""
    assert result.exit_code in (0, 1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert "--debug" not in result.output


REFUSED = [
    ("config.oracle", None),
    ("config.oracle", []),
    ("config.oracle.cost_visit", None),
    ("config.oracle.cost_visit", "0.1"),
    ("config.oracle.cost_call", -1.0),
    ("config.oracle.delay", {}),
    ("config.parallel", None),
    ("config.parallel.workers", "two"),
    ("config.path", "10/n"),
    ("config.dataset", None),
    ("config.dataset.name", [1]),
    ("config.budget", None),
    ("config.solver.kind", [[1]]),
    ("config.solver.name", ""),
    ("config.solver.name", "x" * 5000),
    ("config.seed", 1.5),
    ("versions", None),
    ("versions", {"numpy": 2}),
    ("threads", [1]),
    ("clock", None),
    ("node", {}),
    ("hash", None),
    ("cut_from", None),
    ("resumed", [1]),
    ("dataset.n", 0),
    ("dataset.radius", "1"),
    ("dataset.radius", 1e305),
    ("lam", 0.0),
    ("lam", True),
]


@pytest.mark.parametrize(("way", "value"), REFUSED)
def test_metadata_of_another_kind_are_refused(odd, way, value):
    run = odd[1]
    with_metadata(run, lambda about: put(about, way, value))
    with pytest.raises(RunFailedError, match=re.escape(f"trace.parquet: {way} ")):
        trace.read_run(run)


def test_a_run_with_odd_metadata_is_passed_over_with_its_reason(odd):
    results, run, _ = odd
    with_metadata(run, lambda about: put(about, "config.oracle", None))
    with pytest.raises(RunFailedError, match="config"):
        api.load_runs(results)
    result = call("report", f"results_dir={results}")
    check_calm(result)
    assert result.exit_code == 0
    assert f"Passed over: Cannot read the run {run}: trace.parquet: config.oracle" in result.stderr


@pytest.mark.parametrize(
    ("way", "value"),
    [
        ("config.oracle", None),
        ("config.solver.N", {}),
        ("config.solver.M", "many"),
        ("config.solver.T", None),
        ("config.lam", [[]]),
        ("config.dataset.folds", {"a": 1}),
        ("more", {"a": [[1]]}),
    ],
)
def test_every_reader_is_calm_about_odd_metadata(odd, way, value):
    with_metadata(odd[1], lambda about: put(about, way, value))
    for words in readers(*odd).values():
        check_calm(call(*words))


@pytest.mark.parametrize(
    ("way", "value"),
    [("gap", "x"), ("best_dual", 1e305), ("train_loss", []), ("iteration", None), ("source", None)],
)
def test_every_reader_is_calm_about_an_odd_summary(odd, way, value):
    results, run, _ = odd
    summary = put(json.loads((run / "summary.json").read_text()), way, value)
    sealed(run, {"summary.json": json.dumps(summary).encode()})
    for words in readers(*odd).values():
        check_calm(call(*words))
    assert "summary.json" in call("report", f"results_dir={results}").stderr


def test_one_run_that_a_figure_fails_on_is_named_and_the_others_are_shown(odd):
    results, run, _ = odd
    with_metadata(run, lambda about: put(about, "config.solver.M", {}))
    result = call("report", f"results_dir={results}")
    assert f"Passed over in claims: the run {run}: " in result.stderr
    assert "Left out" not in result.stderr
    assert result.exit_code == 0


def test_a_folder_that_is_not_utf_8_works_in_every_command(base, tmp_path):
    place = tmp_path / os.fsdecode(b"\xff\xc3 \xed\xa0\x80")
    place.mkdir()
    experiment = shutil.copy(base[1], place / "grid.yaml")
    results, log = place / "results", tmp_path / "log"
    made = completed(log, "experiment", experiment, f"results_dir={results}")
    assert made.returncode == 0, made.stderr
    (run,) = results.glob("runs/*/mpbcfw/*/seed=0")
    for command, words in readers(results, run, experiment).items():
        done = completed(log, *words)
        assert done.returncode == (2 if command == "show" else 0), done.stderr
        assert "Passed over" not in done.stderr
    assert len(api.load_runs(results)) == 4
