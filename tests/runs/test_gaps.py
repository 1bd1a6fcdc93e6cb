"""A run that asks for a gap gets it, or says why not; what it computes depends on no budget."""

import warnings

import pandas as pd
import pytest
from program import call, config_of
from sklearn.exceptions import ConvergenceWarning
from test_checkpoints import ALWAYS, MEASURED, broken_off
from test_extension import check_equal, check_rows, made

from ssvm_bench import StructuredSVM
from ssvm_bench.results.budgets import find_run, truncate
from ssvm_bench.results.trace import read_run
from ssvm_bench.runs import runner

OWN = [
    "one_slack",
    "cutting_plane",
    "bmrm",
    "p_bmrm",
    "prox_bmrm",
    "prox_p_bmrm",
    "classical_bundle",
    "fw",
    "dcd",
    "dcd_online",
]
"""Solvers with a precision of their own; here, that of all is 0.05."""
OTHERS = ["mpbcfw_fast", "mpbcfw_costly", "mpbcfw_newton"]
SLOW = ["classical_bundle", "fw"]
"""These approach an optimum slowly, whatever gap is asked for."""


def gaps_of(name):
    return (0.04, 0.02) if name in SLOW else (1e-3, 1e-5)


def options(name, *more, own=0.05):
    """Return the options of a run with enough iterations."""
    own_tol = (
        [f"solver.{'tol' if name.startswith('dcd') else 'epsilon'}={own}"] if name in OWN else []
    )
    if name.startswith("prox"):
        own_tol.append("solver.init=sgd")
    if "p_bmrm" in name:
        own_tol.append("solver.P=3")
    enough = ("budget.max_iterations=3000", "clock=work", "lam=0.1")
    return (f"solver={name}", *own_tol, *enough, *more)


def gap_of(outcome):
    last = read_run(outcome.folder).frame.iloc[-1]
    return last["gap"] / last["primal"]


@pytest.mark.parametrize("name", OWN)
def test_the_gap_that_is_asked_for_is_reached(tmp_path, name):
    own, _ = made(tmp_path / "own", *options(name))
    assert own.stop_reason == "converged"
    before = read_run(own.folder).frame.drop(columns=MEASURED)
    for gap in gaps_of(name):
        asked = f"budget.gap_tol={gap}"
        outcome, said = made(tmp_path / str(gap), *options(name, asked))
        assert outcome.stop_reason in ("gap_tol", "converged")
        assert gap_of(outcome) <= gap < gap_of(own)
        assert not said
        # up to its own precision, and then up to the larger gap, it is the same run
        after = read_run(outcome.folder).frame.drop(columns=MEASURED)
        pd.testing.assert_frame_equal(after[: len(before)], before, check_exact=True)
        before = after


@pytest.mark.parametrize("name", OWN)
def test_a_run_that_has_ended_at_its_own_precision_is_extended(tmp_path, name):
    keep = "checkpoint.keep=true"
    before, _ = made(tmp_path / "a", *options(name, keep))
    assert before.stop_reason == "converged"
    again, _ = made(tmp_path / "a", *options(name, keep))
    assert again.status == "skipped"
    asked = options(name, keep, f"budget.gap_tol={gaps_of(name)[1]}")
    assert find_run(config_of(tmp_path / "a", *asked).with_source("synthetic")) is None
    outcome, said = made(tmp_path / "a", *asked)
    assert f"Resuming after iteration {before.summary['iteration']}" in said[0]
    whole, _ = made(tmp_path / "b", *asked)
    check_equal(outcome, whole)
    assert outcome.folder == before.folder
    # and it still is the run that asks for no gap
    alone, _ = made(tmp_path / "a", *options(name, keep))
    assert (alone.status, alone.stop_reason) == ("skipped", "converged")
    cut = find_run(config_of(tmp_path / "a", *options(name, keep)).with_source("synthetic"))
    first, _ = made(tmp_path / "c", *options(name, keep))
    check_rows(cut, read_run(first.folder))


@pytest.mark.parametrize("name", ["one_slack", "prox_bmrm", "dcd"])
def test_a_run_without_a_gap_does_not_go_on_from_beyond_its_precision(tmp_path, name, monkeypatch):
    """What is left of a run with a gap contains the run without one, which costs it nothing."""
    asked = options(name, "budget.gap_tol=1e-4")
    whole, _ = made(tmp_path / "b", *asked)
    at = whole.summary["iteration"] - 1
    assert at > whole.summary["converged_at"]
    broken_off(config_of(tmp_path / "a", *asked, ALWAYS), monkeypatch, at)
    own, _ = made(tmp_path / "a", *options(name))
    assert own.stop_reason == "converged"
    assert own.summary["iteration"] == whole.summary["converged_at"]
    outcome, _ = made(tmp_path / "a", *asked)
    assert read_run(outcome.folder).metadata["resumed"]
    check_rows(*(read_run(one.folder) for one in (outcome, whole)))


@pytest.mark.parametrize("name", sorted({*OWN, *OTHERS} - {*SLOW}))
def test_a_gap_that_cannot_be_reached_is_told(tmp_path, name, capsys):
    asked = ("budget.gap_tol=1e-30", "budget.max_iterations=5000")
    outcome, said = made(tmp_path, *options(name), *asked)
    assert outcome.status == "finished"
    assert outcome.stop_reason in ("stalled", "qp_steps", "cache_full", "gap_tol")
    if outcome.stop_reason == "gap_tol":  # P = F to the last bit
        assert gap_of(outcome) <= 0
        return
    assert 0 < gap_of(outcome) < 1e-7
    (told,) = said
    assert f"The run ended as {outcome.stop_reason} at a relative gap of" in told
    assert "budget.gap_tol=1e-30" in told
    # no smaller gap begins it anew, and one that it has reached is read from it
    again, _ = made(tmp_path, *options(name), "budget.gap_tol=1e-31", asked[1])
    assert (again.status, again.stop_reason) == ("skipped", outcome.stop_reason)
    less, _ = made(tmp_path, *options(name), "budget.gap_tol=1e-6", asked[1])
    assert less.status == "skipped"
    assert less.stop_reason in ("gap_tol", "converged")


def test_the_command_line_warns_and_succeeds(tmp_path):
    words = options("bmrm", "budget.gap_tol=1e-30", "dataset=usps", "dataset.source=synthetic")
    result = call("run", *words, "dataset.n_samples=20", f"results_dir={tmp_path}")
    assert result.exit_code == 0
    assert "budget.gap_tol=1e-30" in result.stderr


def test_what_an_earlier_version_called_converged_is_not_done(tmp_path):
    """With the same budget, too: it had ended at the solver's own precision."""
    words = options("bmrm", "budget.gap_tol=1e-4")
    outcome, _ = made(tmp_path / "a", *options("bmrm"))
    config = config_of(tmp_path / "a", *words).with_source("synthetic")
    trace = read_run(outcome.folder)
    trace.metadata["config"]["budget"]["gap_tol"] = 1e-4
    assert truncate(trace, config) is None


def rows(primal, dual):
    return [{"primal": p, "dual": d} for p, d in zip(primal, dual, strict=True)]


@pytest.mark.parametrize(
    ("primal", "dual", "stalls"),
    [
        ([1.0] * 100, [0.5] * 100, False),  # it has not lasted yet
        ([1.0] * 101, [0.5] * 101, True),
        ([1.0] * 100 + [0.9], [0.5] * 101, False),
        ([1.0] * 101, [0.5] * 100 + [0.6], False),
        ([1.0, 1.5] * 101, [0.5, 0.4] * 101, True),
        ([1.0, 0.9] + [1.0] * 100, [0.5] * 102, True),  # the best was reached before
    ],
)
def test_when_nothing_improves_any_more(primal, dual, stalls):
    assert runner._has_stalled(rows(primal, dual)) is stalls


@pytest.mark.parametrize("solver", ["one_slack", "bmrm", "dcd", "mpbcfw_fast"])
def test_the_estimator_reaches_its_gap(solver):
    X = [[0.0, 1.0], [1.0, 0.2], [0.9, 1.0], [0.1, 0.3], [0.6, 0.5]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = StructuredSVM(solver=solver, gap_tol=1e-6).fit(X, [0, 1, 1, 0, 0])
    primal, gap = model.history_[["primal", "gap"]].iloc[-1]
    assert gap <= 1e-6 * primal


def test_the_estimator_says_that_it_does_not_reach_its_gap():
    X = [[0.0, 1.0], [1.0, 0.2], [0.9, 1.0], [0.1, 0.3], [0.6, 0.5]]
    with pytest.warns(ConvergenceWarning, match="at a relative gap of .*; gap_tol is 1e-30"):
        model = StructuredSVM(solver="bmrm", gap_tol=1e-30).fit(X, [0, 1, 1, 0, 0])
    assert model.stop_reason_ in ("stalled", "qp_steps")
