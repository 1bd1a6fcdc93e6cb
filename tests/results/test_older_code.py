"""Runs of older code: no repeats of newer ones, left out with a line that says where they are."""

from dataclasses import replace
from pathlib import Path

import pytest
from program import USPS, call
from traces import make_trace

import ssvm_bench
from ssvm_bench.config import registry
from ssvm_bench.figures import pairs
from ssvm_bench.results import loading, older_code, stored_traces
from ssvm_bench.results.folder import as_folder
from ssvm_bench.results.table import Runs, labels
from ssvm_bench.runs import runner

OLD, NEW = "0" * 12, "f" * 12
KINDS = {"name": "mine", "kind": "mine"}


def run_of(code=NEW, day=1, solver="mine", oracle=1, **more):
    """Return a run by a solver, by default a plug-in's, that was started on a day."""
    about = {"code": {"oracle": oracle, "solver": code}} if code else {}
    made = make_trace([1.0, 0.5], [0.0, 0.4], solver=solver, **about, **more)
    made.metadata["started"] = f"2026-11-{day:02}T00:00:00+00:00"
    return placed(made, f"{oracle}-{code}")


def placed(run, name):
    """Return a run with another folder, named after all that its hash covers."""
    return replace(run, folder=Path("runs", "toy", run.solver, name, f"seed={run.seed}"))


def test_other_code_is_no_repeat():
    old, new = run_of(OLD), run_of(NEW, seed=1)
    assert labels([old, new]) == [f"mine code={OLD}", f"mine code={NEW}"]
    assert labels([new, run_of(NEW, seed=2)]) == ["mine", "mine"]
    known, unknown = run_of(1, solver="bcfw"), run_of(None, solver="bcfw")
    assert labels([known, unknown]) == ["bcfw", "bcfw"]


def test_the_newest_code_is_that_of_the_latest_run():
    old, again = run_of(OLD, 1), run_of(OLD, 5, seed=1)
    new = [run_of(NEW, day, seed=day) for day in (2, 3)]
    assert older_code.among([old, *new]) == [old]
    assert older_code.among([old, *new, again]) == new
    assert older_code.among([run_of(1, 1, "fw"), run_of(2, 2, "fw")])[0].code["solver"] == 1


@pytest.mark.parametrize(
    "options", [{"options": {"step": 2.0}}, {"lam": 7.0}, {"prior": "N(1, 1)"}]
)
def test_runs_that_differ_in_more_than_the_code_stay(options):
    assert not older_code.among([run_of(OLD, **options), run_of(NEW, 2, options={"step": 1.0})])


def test_budget_evaluation_and_clock_keep_no_older_run():
    old = run_of(OLD, clock="work", config={"budget": {"max_iterations": 50}, "eval": {"every": 2}})
    assert older_code.among([old, run_of(NEW, 2, config={"budget": {"max_iterations": 52}})]) == [
        old
    ]


def test_runs_that_do_not_name_their_code():
    unknown, new = run_of(None, 3), run_of(NEW, 1)
    assert older_code.among([unknown, new]) == [unknown]
    ours = [run_of(None, 1, "bcfw"), run_of(1, 2, "bcfw"), run_of(None, 3, "bcfw")]
    assert not older_code.among(ours)
    assert not older_code.among([placed(run_of(None, seed=4), new.folder.parent.name), new])


def test_other_code_of_an_own_oracle_is_another_problem():
    """The best values of a wrong oracle would be those of the right one, too."""
    old, new = (run_of(1, day, "bcfw", oracle=of) for day, of in ((1, OLD), (2, NEW)))
    assert old.problem != new.problem
    assert not pairs.paired(Runs([old]), Runs([run_of(1, 2, "fw", oracle=NEW)]), same_curve=False)
    assert older_code.among([old, new]) == [old]


def test_two_folders_compare_two_states_of_the_code():
    old, new = run_of(OLD), run_of(NEW)
    (both,) = pairs.paired([old], [new], same_curve=True)
    assert both.a == both.b == "mine"


def test_a_folder_of_results_has_the_newest_only(tmp_path):
    new = run_of(NEW, 2)
    for name, run in (("one", run_of(OLD)), ("two", new)):
        stored_traces.write([run], tmp_path, name)
    found = loading.load(as_folder(tmp_path))
    assert [run.code["solver"] for run in found.runs] == [NEW]
    said = older_code.left_out(found.older, tmp_path)
    assert said == f"1 run of older code (mine) left out: runs/toy/mine/1-{OLD}."


@pytest.fixture
def edited(tmp_path, monkeypatch):
    """Make runs of a solver, two with its first file and one with a later one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry._PLUG_INS, "__path__", [])
    assert call("new", "solver", "twice").exit_code == 0
    days = iter(range(1, 9))
    monkeypatch.setattr(runner, "_now", lambda: f"2026-11-0{next(days)}T00:00:00+00:00")
    file = tmp_path / "twice" / "solver" / "twice.py"
    for budget, seeds, thought in ((6, "0,1", "\n# a thought\n"), (4, "0", "")):
        words = (f"budget.max_iterations={budget}", f"seed={seeds}", *USPS, "clock=work")
        done = call("run", "-m", "solver=twice,bcfw", *words, "--config-dir", "twice")
        assert done.exit_code == 0, done.stderr
        file.write_text(file.read_text() + thought)
    made = ssvm_bench.load_runs("results", solver="twice")
    of = {run.folder.parent: run for run in made}
    older, newer = sorted(of, key=lambda folder: of[folder].metadata["started"])
    return older, newer


def test_commands_take_the_newest_code_and_say_what_they_leave_out(edited):
    older, newer = edited
    (newest,) = ssvm_bench.load_runs("results").where(lambda run: run.folder.parent == newer)
    newer_digest = newest.code["solver"]
    line = f"2 runs of older code (twice) left out: {older}."
    done = call("compare", "bcfw", "twice", "--gap", 0.9)
    assert done.exit_code == 0, done.stderr
    assert line in done.stdout
    assert "(1 pair)" in done.stdout
    assert line in call("report").stderr
    page = Path("results/report.html").read_text()
    assert f"2 runs of older code (twice) left out: runs/usps/twice/{older.name}." in page
    assert page.count(older.name) == 1
    assert f"solver/twice.py {newer_digest}…. It is not included here." in page
    assert line in call("publish", "public").stderr
    stored = loading.load(as_folder(Path("public"))).runs
    assert {run.folder.parent.name for run in stored.where(solver="twice")} == {newer.name}
    Path("own.yaml").write_text(
        "title: Two steps a visit\n"
        "grid: {dataset: usps, dataset.source: synthetic, dataset.n_samples: 30, clock: work,\n"
        "  solver: [twice, bcfw], budget.max_iterations: 4}\n"
        "figures: {suboptimality: [iteration]}\n"
    )
    done = call("plot", "own.yaml", "--config-dir", "twice")
    assert done.exit_code == 0, done.stderr
    assert line in done.stderr
    assert call("publish", "public", "--replace").exit_code == 0
    index = Path("public/index.html").read_text()
    assert "Two steps a visit" in index
    assert "Experiments of other files" in index


def test_a_run_names_the_files_that_are_no_part_of_the_program(edited):
    of = ssvm_bench.load_runs("results")
    (file,) = {*of.where(solver="twice")[0].about["plug_ins"]}
    assert file == "solver/twice.py"
    assert "plug_ins" not in of.where(solver="bcfw")[0].about
    assert [run.is_of_plug_in for run in of] == [run.solver == "twice" for run in of]
