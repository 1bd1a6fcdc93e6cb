"""`eval.after_exact_pass`: primal and dual before the approximate passes of an iteration."""

import numpy as np
import pytest
from helpers import oracle, random_chains, random_graphs, solver, together
from program import config_of, run_here

from ssvm_bench.base.clock import Clock
from ssvm_bench.oracles.base import Problem
from ssvm_bench.results import stored_traces
from ssvm_bench.results.trace import read_trace
from ssvm_bench.runs import components, runner
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.terminal import Display
from ssvm_bench.solvers.fw import STARTS

COLUMNS = ["primal_after_exact", "dual_after_exact"]
OPTIONS = ("clock=work", "budget.max_iterations=6")


BEGUN = [{"average": average, "start": start} for average in (False, True) for start in STARTS]


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, begun) for name in ("mpbcfw", "mpbcfw_fast") for begun in BEGUN), ("dcd", {})],
)
def test_it_is_the_iterate_that_approximate_passes_begin_at(name, options, monkeypatch):
    posed = Problem(oracle(random_chains([3, 1, 4, 2, 3], 3, 2, seed=3)), 0.1)
    made = solver(posed, name, **options)
    assert made.after_exact_pass is None
    made.keep_after_exact_pass()
    np.testing.assert_array_equal(made.after_exact_pass.w, made.reported().w)
    begun, approximate = [], type(made)._approximate_passes

    def watched(self, order, rule):
        begun.append(self.reported())
        approximate(self, order, rule)

    monkeypatch.setattr(type(made), "_approximate_passes", watched)
    for _ in together(6, made):
        w, dual = made.after_exact_pass
        np.testing.assert_array_equal(w, begun[-1].w)
        assert dual == begun[-1].dual < made.reported().dual
        assert dual <= posed.primal(w)


@pytest.mark.parametrize("name", ["bcfw", "mpbcfw", "mpbcfw_avg", "mpbcfw_fast", "dcd"])
def test_the_other_columns_are_what_they_are_without(tmp_path, name):
    options = (f"solver={name}", *OPTIONS)
    plain = run_here(tmp_path, *options)
    ours = run_here(tmp_path, *options, "eval.after_exact_pass=true")
    assert ours.folder != plain.folder
    usual, frame = read_trace(plain.folder).frame, read_trace(ours.folder).frame
    assert list(frame) == [*usual, *COLUMNS]
    (stored,) = stored_traces.write([read_trace(ours.folder)], tmp_path, "some")
    assert stored.frame[COLUMNS].equals(frame[COLUMNS])  # to all digits
    measured = [column for column in usual if column not in ("cpu_time", "eval_time")]
    assert frame[measured].equals(usual[measured])
    alone = frame["approx_passes"] == 0
    assert alone.all() == (name == "bcfw")
    for ours, theirs in zip(COLUMNS, ("primal", "dual"), strict=True):
        assert (frame[ours] == frame[theirs])[alone].all()
        assert (frame[ours] != frame[theirs])[~alone].all()
    assert (frame["dual_after_exact"] <= frame["primal_after_exact"]).all()


@pytest.mark.parametrize("name", ["fw", "ssg", "cutting_plane"])
def test_other_solvers_have_no_such_columns(tmp_path, name):
    outcome = run_here(tmp_path, f"solver={name}", *OPTIONS, "eval.after_exact_pass=true")
    assert not set(COLUMNS) & set(read_trace(outcome.folder).frame)


def test_the_default_is_neutral(tmp_path):
    config, same, other = (
        config_of(tmp_path, "solver=mpbcfw", *more).with_source("synthetic").hash()
        for more in ((), ("eval.after_exact_pass=false",), ("eval.after_exact_pass=true",))
    )
    assert config == same != other


def test_an_oracle_with_a_memory_is_asked_aside(tmp_path):
    """Where answers depend on earlier calls, the usual primal values must not change."""
    data, found = random_graphs([6, 5, 7, 4], 3, 3, seed=1), []
    for value in ("false", "true"):
        posed = Problem(oracle(data, warm_start=True), 0.05)
        options = ("solver=mpbcfw", f"eval.after_exact_pass={value}", *OPTIONS)
        config, recorder = config_of(tmp_path, *options), Recorder(posed, Display())
        made = components.build_solver(config, posed, Clock("work", 1e-6, 1e-7))
        runner.loop(config, made, recorder)
        found.append([(row["primal"], row["dual"], row["approx_passes"]) for row in recorder.rows])
    assert found[0] == found[1]


def test_every_lambda_of_a_path_begins_anew(tmp_path):
    path = ("solver=mpbcfw", *OPTIONS, "path=[0.5]", "lam=0.1", "eval.after_exact_pass=true")
    first = read_trace(run_here(tmp_path, *path).folder).frame.iloc[0]
    assert first["primal_after_exact"] == first["primal"]
    assert first["dual_after_exact"] == first["dual"]
