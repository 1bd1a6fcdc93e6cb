"""Where φ begins: at the ground truths' planes, or at those of the oracle at w = 0."""

import os
import signal
import time

import numpy as np
import pytest
from helpers import COST_CALL, SOLVERS, Plain, Table, oracle, problem, solver, working_sets
from helpers import SMALL as DATA
from program import OCR, USPS, config_of, run_here

from ssvm_bench.base.clock import Clock
from ssvm_bench.oracles.base import Problem
from ssvm_bench.results.trace import read_trace
from ssvm_bench.runs import components, runner
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.terminal import Display

ROUNDING = 1e-14
"""Of sums of a few dozen planes, relative to the largest number in them."""


def problems(data):
    """Return a problem with its own storage of planes, and one with rows."""
    posed, has_rows = problem(data), data.structure == "graph"
    return [posed] if has_rows else [posed, Problem(Plain(oracle(data)), posed.lam)]


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_phi_begins_at_the_best_planes_at_w_0(data, name):
    table = Table(data)
    best = [int(planes[:, -1].argmax()) for planes in table.planes]  # at w = 0: the highest φ∘
    phi = sum(planes[row] for planes, row in zip(table.planes, best, strict=True))
    for posed in problems(data):
        made = solver(posed, name, start="oracle")
        w, dual = -phi[:-1] / posed.lam, phi[-1] - phi[:-1] @ phi[:-1] / (2 * posed.lam)
        size = abs(phi[-1]) + phi[:-1] @ phi[:-1] / (2 * posed.lam)
        np.testing.assert_allclose(made.reported().w, w, rtol=0, atol=ROUNDING * abs(w).max())
        assert made.reported().dual == pytest.approx(dual, rel=0, abs=ROUNDING * size)
        assert dual < 0  # it is worse than w = 0 here
        assert made.clock.oracle_calls == table.n
        assert made.clock.now() == made.clock.oracle_time == table.n * COST_CALL
        if name != "fw" and made.visits.policy.N > 0:
            assert working_sets(made, table) == [[row] for row in best]
        elif name != "fw":
            assert not made.phi.blocks.n_planes.any()


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_both_starts_lead_to_one_optimum(data, name):
    for posed in problems(data):
        made, usual = (solver(posed, name, start=start) for start in ("oracle", "truth"))
        for _ in range(40):
            for one in (made, usual):
                reported = one.reported()
                primal = posed.primal(reported.w)
                assert reported.dual <= primal + ROUNDING * max(abs(reported.dual), primal)
                one.iterate()
        ours, theirs = made.reported(), usual.reported()
        for one, other in ((ours, theirs), (theirs, ours)):  # each bounds the other's suboptimality
            assert one.dual <= posed.primal(other.w) + ROUNDING
        assert posed.primal(ours.w) - ours.dual < 0.5


@pytest.mark.parametrize("data", [OCR, USPS], ids=["ocr", "usps"])
@pytest.mark.parametrize("name", ["fw", "mpbcfw_avg", "mpbcfw_fast"])
def test_the_calls_of_the_start_are_those_of_iteration_0(tmp_path, name, data):
    options = (f"solver={name}", "clock=work", "budget.max_iterations=3")
    usual = run_here(tmp_path, *options, data=data)
    ours = run_here(tmp_path, *options, "solver.start=oracle", data=data)
    assert ours.folder != usual.folder
    trace = read_trace(ours.folder)
    n, cost = (trace.metadata["dataset"]["n"], trace.metadata["config"]["oracle"]["cost_call"])
    first, before = trace.frame.iloc[0], read_trace(usual.folder).frame.iloc[0]
    assert (before["oracle_calls"], before["time"], before["dual"]) == (0, 0, 0)
    assert (first["oracle_calls"], first["approx_calls"], first["iteration"]) == (n, 0, 0)
    assert first["time"] == first["oracle_time"] == pytest.approx(n * cost)
    assert first["dual"] < 0
    assert first["w_norm"] > 0
    assert trace.metadata["config"]["solver"]["start"] == "oracle"
    assert trace["oracle_calls"][1] > n


def test_the_time_of_the_start_counts(tmp_path):
    tested = Plain(oracle(DATA["chains"]))
    answer = tested.argmax
    tested.argmax = lambda w, i: (time.sleep(0.002), answer(w, i))[1]
    _, rows = rows_of(tmp_path, tested, "solver=bcfw", clock=Clock("wall"))
    assert rows[0]["oracle_time"] >= 0.002 * tested.n
    assert rows[0]["time"] >= rows[0]["oracle_time"]


def test_the_first_lambda_of_a_path_starts_and_the_others_go_on(tmp_path):
    options = ("solver=mpbcfw", "solver.start=oracle", "clock=work", "budget.max_iterations=3")
    path = config_of(tmp_path, *options, "path=[0.5,0.1]", "lam=0.02").with_source("synthetic")
    runner.run(path, Display())
    first, *others = (read_trace(stage.folder).frame.iloc[0] for stage in path.path_steps())
    assert (first["oracle_calls"], first["dual"] < 0) == (30, True)
    for row in others:
        assert (row["oracle_calls"], row["time"], row["dual"] >= 0) == (0, 0, True)


def rows_of(folder, tested, *options, clock=None):
    """Run on a tiny problem from the oracle's start; return the rows and the stop reason."""
    config = config_of(folder, *options, "solver.start=oracle", "budget.max_iterations=2")
    posed = Problem(tested, 0.1)
    recorder = Recorder(posed, Display())
    made = components.build_solver(config, posed, clock or Clock("work"))
    reason = runner.loop(config, made, recorder)
    return reason, recorder.rows


@pytest.mark.parametrize(("signals", "rows", "calls"), [(1, 1, 8), (2, 0, 3)])
@pytest.mark.parametrize("name", ["fw", "bcfw", "mpbcfw_fast"])
def test_a_start_can_be_interrupted(tmp_path, name, signals, rows, calls):
    """After one signal the start is finished and evaluated, after two it is given up."""
    tested, asked = Plain(oracle(DATA["chains"])), []
    answer = tested.argmax

    def argmax(w, i):
        asked.append(i)
        if len(asked) == 3:
            for _ in range(signals):
                os.kill(os.getpid(), signal.SIGINT)
        return answer(w, i)

    tested.argmax = argmax
    previous = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        reason, found = rows_of(tmp_path, tested, f"solver={name}")
    finally:
        signal.signal(signal.SIGINT, previous)
    assert (reason, len(found)) == ("interrupted", rows)
    assert asked[:calls] == list(range(calls))
    assert len(asked) == calls + rows * tested.n  # and the evaluation's
