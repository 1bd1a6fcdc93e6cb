"""Budgets say when a run ends, and not what it is: runs are extended, and cut."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from program import USPS, call, config_of, run_folders, run_here
from test_checkpoints import ALWAYS, MEASURED, broken_off
from traces import make_trace

import ssvm_bench
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.messages import shown_by
from ssvm_bench.config.schema import Budget
from ssvm_bench.report.contents import own
from ssvm_bench.results import loading
from ssvm_bench.results.budgets import Ending, ending, find_run, goes_as_far
from ssvm_bench.results.checkpoint_file import NAME as CHECKPOINT
from ssvm_bench.results.folder import SkippedFiles
from ssvm_bench.results.table import labels
from ssvm_bench.results.trace import read_run, read_weights
from ssvm_bench.runs import checkpoints, runner
from ssvm_bench.runs.terminal import Display

WORK = ("clock=work", "solver=mpbcfw")
KEPT = (*WORK, "checkpoint.keep=true")
TIMES = {*MEASURED, "wall_time", "checkpoint_time"}


def iterations(number):
    return f"budget.max_iterations={number}"


def made(folder, *options):
    """Make a run; return what became of it, and what was said."""
    said = []
    with shown_by(said.append):
        outcome = runner.run(config_of(folder, *options), Display())
    return outcome, [text for text in said if not text.startswith("Compiling")]


def check_equal(outcome, other):
    """Compare runs bit by bit: rows, weights and summaries, but for what was measured."""
    here, there = (read_run(one.folder) for one in (outcome, other))
    check_rows(here, there)
    np.testing.assert_array_equal(read_weights(outcome.folder)[0], read_weights(other.folder)[0])
    told = [{k: v for k, v in one.end.items() if k not in TIMES} for one in (here, there)]
    assert told[0] == told[1]


def check_rows(*traces):
    """Compare the rows of two runs, but for what was measured."""
    rows = [trace.frame.drop(columns=MEASURED) for trace in traces]
    pd.testing.assert_frame_equal(*rows, check_exact=True)


# relative gaps 1, 0.4, 0.1, 0.2, 0; iterations 0, 1, 2, 4, 6; one second each
RUN = make_trace([1.0] * 5, [0.0, 0.6, 0.9, 0.8, 1.0], iteration=[0, 1, 2, 4, 6]).frame
RUN["gap"] = RUN["primal"] - RUN["dual"]


@pytest.mark.parametrize(
    ("budget", "rows", "reason"),
    [
        ((4, None, 0.0), 4, "max_iterations"),
        ((0, None, 0.0), 1, "max_iterations"),
        ((None, 2.5, 0.0), 4, "max_seconds"),  # the first row that is late enough
        ((None, None, 0.4), 2, "gap_tol"),  # and not a later one
        ((None, None, 0.05), 5, "gap_tol"),
        ((2, 2.0, 0.1), 3, "max_iterations"),  # the order in which a run looks at them
        ((2, 1.0, 0.0), 2, "max_seconds"),
    ],
)
def test_where_another_budget_ends_a_run(budget, rows, reason):
    assert ending(RUN, "max_iterations", Budget(*budget)) == Ending(rows, reason)


def test_a_budget_that_a_run_does_not_have():
    more = Budget(7, 5.0, 0.0)
    assert ending(RUN, "max_seconds", more) is None
    assert not goes_as_far(RUN, "max_seconds", more)
    assert ending(RUN, None, more) is None  # it has not ended
    # what has converged is the run of every budget
    assert ending(RUN, "converged", more) == Ending(5, "converged")
    assert ending(RUN, "converged", Budget(None, None, 0.05)).reason == "converged"
    # after five iterations there was no row, where a run of five has its last one
    assert ending(RUN, "converged", Budget(5, None, 0.0)) is None
    assert goes_as_far(RUN, "max_iterations", Budget(5, None, 0.0))
    no_dual = RUN.assign(gap=math.nan)
    assert ending(no_dual, "max_iterations", Budget(None, None, 0.4)) is None


def test_which_budget_contains_another():
    one = Budget(10, 5.0, 0.1)
    for larger in ((11, 5.0, 0.1), (10, 6.0, 0.1), (10, 5.0, 0.01), (None, 5.0, 0.0)):
        assert Budget(*larger).contains(one)
        assert not one.contains(Budget(*larger))
    assert not Budget(20, 4.0, 0.1).contains(one)
    assert one.contains(one)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((iterations(5),), (iterations(12),)),
        # the last row of the first run is none of the second one
        ((iterations(5), "eval.every=4"), (iterations(12), "eval.every=4")),
        (("budget.gap_tol=0.95",), ("budget.gap_tol=0.85",)),
        (("budget.max_seconds=0.0009",), ("budget.max_seconds=0.002",)),
    ],
)
def test_an_extended_run_is_one_that_was_made_at_once(tmp_path, first, second):
    before, _ = made(tmp_path / "a", *KEPT, *first)
    outcome, said = made(tmp_path / "a", *KEPT, *second)
    at = before.summary["iteration"]
    assert said[-1].startswith(f"Resuming after iteration {at}, from the checkpoint in")
    assert outcome.folder == before.folder
    assert run_folders(tmp_path / "a", hidden=True) == ["seed=0"]
    whole, _ = made(tmp_path / "b", *KEPT, *second)
    assert whole.summary["iteration"] > at > 0
    check_equal(outcome, whole)
    assert read_run(outcome.folder).metadata["resumed"][0]["iteration"] == at


def test_a_run_is_extended_again(tmp_path):
    options = (*KEPT, "eval.every=4")
    for number in (2, 5, 9):
        outcome, _ = made(tmp_path / "a", *options, iterations(number))
    check_equal(outcome, made(tmp_path / "b", *options, iterations(9))[0])
    resumed = read_run(outcome.folder).metadata["resumed"]
    assert [entry["iteration"] for entry in resumed] == [2, 5]


def test_without_a_checkpoint_it_begins_anew_and_says_why(tmp_path):
    before, _ = made(tmp_path / "a", *WORK, iterations(4))
    outcome, (told,) = made(tmp_path / "a", *WORK, iterations(6))
    assert told == (
        f"{before.folder} has ended before, after iteration 4 (max_iterations), and has no "
        "checkpoint to resume from: the run starts again. A run made with "
        "checkpoint.keep=true can be extended."
    )
    assert outcome.folder == before.folder
    check_equal(outcome, made(tmp_path / "b", *WORK, iterations(6))[0])


def test_less_is_answered_from_the_trace(tmp_path):
    longer, _ = made(tmp_path / "a", *WORK, iterations(9))
    written = (longer.folder / "trace.parquet").stat().st_mtime_ns
    outcome, (told,) = made(tmp_path / "a", *WORK, iterations(4))
    assert told.startswith("A longer run has finished before, of 9 iterations: ")
    assert outcome.status == "skipped"
    assert (longer.folder / "trace.parquet").stat().st_mtime_ns == written
    alone, _ = made(tmp_path / "b", *WORK, iterations(4))
    found = find_run(config_of(tmp_path / "a", *WORK, iterations(4)).with_source("synthetic"))
    there = read_run(alone.folder)
    check_rows(found, there)
    assert found.end["train_loss"] is None
    for key in there.end.keys() - TIMES - {"train_loss"}:
        assert found.end[key] == there.end[key], key
    # what it is called does not depend on how it was made
    assert found.own_folder.parts[-4:] == there.own_folder.parts[-4:]
    assert found.metadata["config"]["budget"] == there.metadata["config"]["budget"]
    assert (found.is_truncated, there.is_truncated) == (True, False)


def test_by_force_a_shorter_run_stands_beside_the_longer_one(tmp_path):
    longer, _ = made(tmp_path, *WORK, iterations(6))
    shorter, _ = made(tmp_path, *WORK, iterations(3), "force=true")
    assert shorter.folder != longer.folder
    assert len(run_folders(tmp_path)) == 2
    again, _ = made(tmp_path, *WORK, iterations(3))
    assert again.folder == shorter.folder
    assert again.summary["train_loss"] == shorter.summary["train_loss"]
    assert made(tmp_path, *WORK, iterations(6))[0].folder == longer.folder


def test_a_run_that_was_not_evaluated_there_is_made_by_itself(tmp_path):
    options = (*KEPT, "eval.every=4")
    longer, _ = made(tmp_path / "a", *options, iterations(9))
    outcome, (told,) = made(tmp_path / "a", *options, iterations(6))
    reason = "was not evaluated at iteration 6: this one is made by itself."
    assert told == f"A longer run, {longer.folder}, {reason}"
    check_equal(outcome, made(tmp_path / "b", *options, iterations(6))[0])
    assert read_run(longer.folder).summary["iteration"] == 9


def test_a_run_that_was_left_further_on_ends_there(tmp_path, monkeypatch):
    """Of seven iterations of ten, four are asked for: they are the beginning of what is there."""
    broken_off(config_of(tmp_path / "a", *WORK, ALWAYS, iterations(10)), monkeypatch, 7)
    outcome, _ = made(tmp_path / "a", *WORK, iterations(4))
    assert (outcome.status, outcome.summary["iteration"]) == ("finished", 4)
    assert read_run(outcome.folder).summary["iteration"] == 7
    whole, _ = made(tmp_path / "b", *WORK, iterations(7))
    check_equal(made(tmp_path / "a", *WORK, iterations(7))[0], whole)


@pytest.mark.parametrize("shorter", [(4,), (9,), (3, 6, 2)])
def test_a_shorter_run_does_not_cost_what_a_longer_one_has_computed(tmp_path, monkeypatch, shorter):
    """Of ten iterations, seven were made: whatever shorter runs come between, the rest is left."""
    broken_off(config_of(tmp_path / "a", *WORK, ALWAYS, iterations(10)), monkeypatch, 7)
    for number in shorter:
        outcome, _ = made(tmp_path / "a", *WORK, iterations(number))
        assert outcome.status in ("finished", "skipped")
        assert outcome.summary["iteration"] == number
    longer, said = made(tmp_path / "a", *WORK, iterations(10))
    assert int(re.search(r"Resuming after iteration (\d+)", said[0])[1]) >= 7
    check_equal(longer, made(tmp_path / "b", *WORK, iterations(10))[0])
    assert not (longer.folder / CHECKPOINT).exists()  # it asked for none


def test_a_shorter_run_that_resumes_on_the_way_keeps_its_state(tmp_path, monkeypatch):
    """The only checkpoint is of iteration 3, and the rows go on to 7."""
    write = checkpoints.Checkpoints.write_if_due

    def once(self, solver, recorder, progress, reason):
        if progress.iteration == 3:
            self._due = 0.0
        write(self, solver, recorder, progress, reason)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.Checkpoints, "write_if_due", once)
        broken_off(config_of(tmp_path / "a", *WORK, iterations(10)), monkeypatch, 7)
    shorter, said = made(tmp_path / "a", *WORK, iterations(5))
    assert "Resuming after iteration 3" in said[0]
    assert (shorter.folder / CHECKPOINT).is_file()
    longer, said = made(tmp_path / "a", *WORK, iterations(10))
    assert "Resuming after iteration 5" in said[0]
    check_equal(longer, made(tmp_path / "b", *WORK, iterations(10))[0])


def test_a_run_that_was_killed_after_its_last_evaluation_has_no_row_twice(tmp_path, monkeypatch):
    options = (*KEPT, "budget.gap_tol=0.95")
    original = runner.loop

    def killed(config, solver, recorder, warm_started, progress, look):
        def until(solver, recorder, progress, reason):
            look(solver, recorder, progress, reason)
            if reason == "gap_tol":
                raise ZeroDivisionError

        return original(config, solver, recorder, warm_started, progress, until)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "loop", killed)
        with pytest.raises(RunFailedError, match="ZeroDivisionError"):
            made(tmp_path / "a", *options)
    outcome, _ = made(tmp_path / "a", *options)
    whole, _ = made(tmp_path / "b", *options)
    assert outcome.stop_reason == whole.stop_reason == "gap_tol"
    check_rows(*(read_run(one.folder) for one in (outcome, whole)))


def test_runs_of_older_versions_are_found_by_the_hash_of_their_budget(tmp_path):
    config = config_of(tmp_path, *WORK, iterations(4)).with_source("synthetic")
    outcome = run_here(tmp_path, *WORK, iterations(4))
    config.own_folder.parent.parent.mkdir(parents=True, exist_ok=True)
    outcome.folder.parent.rename(config.own_folder.parent)
    again, _ = made(tmp_path, *WORK, iterations(4))
    assert (again.status, again.folder) == ("skipped", config.own_folder)
    assert not find_run(config_of(tmp_path, *WORK, iterations(3)).with_source("synthetic"))


@pytest.mark.parametrize("option", ["path=[1.0]", "solver.latent_rounds=2"])
def test_where_a_run_ends_matters_along_a_path_and_in_rounds(tmp_path, option):
    configs = [
        config_of(tmp_path, "solver=mpbcfw", *more, iterations(number)).with_source("synthetic")
        for more in ((), (option,))
        for number in (4, 5)
    ]
    plain, same, one, other = (config.folder for config in configs)
    assert plain == same
    assert len({plain, one, other}) == 3
    assert [len(config.folders) for config in configs] == [2, 2, 1, 1]


GRID = """
grid:
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 30
  solver: mpbcfw
  clock: work
  budget.max_iterations: [3, 6, 5]
figures:
  suboptimality: [iteration]
"""


def test_an_experiment_with_budgets_shows_each_of_them(tmp_path, blank):
    file = tmp_path / "budgets.yaml"
    file.write_text(GRID)
    result = call("experiment", file, f"results_dir={tmp_path}")
    assert result.exit_code == 0, result.output
    assert run_folders(tmp_path) == ["seed=0"]  # the longest is made first
    status = call("experiment", file, "--status", f"results_dir={tmp_path}")
    assert "3 done, of 3 runs" in status.output
    stored = loading.stored(tmp_path, "budgets")
    ends = {trace.end["iteration"]: len(trace) for trace in stored}
    assert ends == {3: 4, 5: 6, 6: 7}
    table = pd.read_csv(tmp_path / "figures" / "budgets" / "iterations-synthetic.csv")
    drawn = {f"mpbcfw budget.max_iterations={number}": number for number in (3, 5, 6)}
    assert table.groupby("solver")["x"].max().to_dict() == drawn
    # on the page, a run and what is stored of it are one
    found = own(tmp_path, SkippedFiles()).runs
    assert sorted(trace.end["iteration"] for trace in found) == [3, 5, 6]


def test_weights_of_another_iterate_are_not_handed_out(tmp_path):
    def run(number, **options):
        words = (*USPS, *WORK, iterations(number))
        return ssvm_bench.run(*words, results_dir=tmp_path, **options)

    run(5)
    cut = run(2)
    assert list(cut.trace["iteration"]) == [0, 1, 2]
    with pytest.raises(RunFailedError, match="after 5 iterations, not those after 2"):
        _ = cut.weights
    assert run(2, force=True).weights.shape == (2560,)


def test_runs_that_can_be_extended_are_repeats_of_others():
    def of(**options):
        trace = make_trace([1.0], [0.0])
        trace.metadata["config"] |= options
        return trace

    kept = of(checkpoint={"every": 60.0, "keep": True}, seed=1)
    assert labels([of(), kept]) == ["bcfw", "bcfw"]
    assert len(set(labels([of(clock="wall"), of(clock="cpu")]))) == 2
