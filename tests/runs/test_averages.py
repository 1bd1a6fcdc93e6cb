"""Runs with averages: their dual is the best bound at hand, and their average's own is kept."""

import numpy as np
import pytest
from program import run_here
from traces import make_trace, set_columns

from ssvm_bench.figures.convergence import SUBOPTIMALITY
from ssvm_bench.results import stored_traces
from ssvm_bench.results.table import DUAL_OF_AVERAGE, Best, Runs, instance_of, labels
from ssvm_bench.results.trace import read_trace

AVERAGED = {"solver": "bcfw_avg", "options": {"average": True}}


def averaged(primal, dual, own=None, **about):
    """Return a run with averages; without their own dual, one of the time before it was kept."""
    trace = make_trace(primal, dual, **{**AVERAGED, **about})
    if own is not None:
        set_columns(trace, **{DUAL_OF_AVERAGE: own})
    return trace


def curves_of(traces):
    best = {instance_of(trace.metadata): Best(2.0, 1.75) for trace in traces}
    table = SUBOPTIMALITY.tabulate(Runs(traces, best), "iteration")
    return {key: list(rows["median"]) for key, rows in table.groupby(["solver", "quantity"])}


def test_curves_of_dual_suboptimality_show_the_averages_own():
    found = curves_of([averaged([4.0, 3.0], [1.0, 1.5], [0.5, 1.25]), make_trace([4.0], [1.5])])
    assert found["bcfw_avg", "dual suboptimality"] == pytest.approx([1.5, 0.75])
    assert found["bcfw_avg", "duality gap"] == pytest.approx([3.0, 1.5])
    assert found["bcfw", "dual suboptimality"] == pytest.approx([0.5])


def test_two_meanings_of_dual_make_two_curves():
    new, old = averaged([4.0], [1.5], [1.0]), averaged([4.0], [1.0], seed=1)
    plain = make_trace([4.0], [1.5])
    assert labels([new, plain]) == labels([old, plain]) == ["bcfw_avg", "bcfw"]
    assert labels([new, old, plain]) == ["bcfw_avg dual=best", "bcfw_avg dual=own", "bcfw"]
    assert curves_of([old])["bcfw_avg", "dual suboptimality"] == pytest.approx([1.0])


def test_stored_traces_keep_all_digits_of_it_and_invent_none(tmp_path):
    runs = [averaged([4.0], [1.5], [1 / 3]), averaged([4.0], [1.5], seed=1)]
    new, old = stored_traces.write(runs, tmp_path, "some")
    assert new.frame[DUAL_OF_AVERAGE].tolist() == [1 / 3]
    assert DUAL_OF_AVERAGE not in old.frame


def test_the_trace_of_a_run(tmp_path):
    options = ("solver=mpbcfw_avg", "clock=work", "budget.max_iterations=5")
    ours, plain = (run_here(tmp_path, *options, *more) for more in ((), ("solver=mpbcfw",)))
    frame, other = read_trace(ours.folder).frame, read_trace(plain.folder).frame
    assert DUAL_OF_AVERAGE not in other
    np.testing.assert_array_equal(frame["dual"], np.maximum(frame[DUAL_OF_AVERAGE], other["dual"]))
    np.testing.assert_array_equal(frame["gap"], frame["primal"] - frame["dual"])
    assert (frame["dual"] > frame[DUAL_OF_AVERAGE]).any()
    assert ours.summary["best_dual"] == frame["dual"].max()
