"""How far each solver is from the best value known: table and page."""

import math

import pytest
from traces import make_trace

from ssvm_bench.figures import convergence
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.results.table import Best, Runs, instance_of

RUNS = [
    make_trace([9.0, 2.5, 3.0], [0.0, 1.9, 1.5], solver="bcfw"),
    make_trace([9.0, 2.02, 2.01], [0.0, 1.5, 1.999], solver="bcfw", seed=1),
    make_trace([9.0, 2.0, 2.0], [0.0, 1.9, 2.0 - 2e-6], solver="mpbcfw"),
    make_trace([9.0, 2.5, 2.002], [math.nan] * 3, solver="ssg"),
]
KNOWN = {instance_of(RUNS[0].metadata): Best(2.0, 2.0 - 2e-6)}


def row(table, solver):
    (found,) = table[table["solver"] == solver].to_dict("records")
    return found


def test_distances_are_those_of_the_best_values_of_the_worst_repeat():
    found = row(convergence.agreement(Runs(RUNS, KNOWN)), "bcfw")
    assert found["primal"] == pytest.approx(0.25, rel=1e-5)
    assert found["dual"] == pytest.approx(0.05, rel=1e-4)
    shown = [found[name] for name in ("agrees_to", "repeats", "passes")]
    assert shown == [1, 2, 1]  # one pass: two calls, n = 2


def test_what_is_known_of_the_optimum_limits_the_agreement():
    found = row(convergence.agreement(Runs(RUNS, KNOWN)), "mpbcfw")
    assert found["dual"] == 0
    assert found["known_to"] == pytest.approx(1e-6, rel=1e-4)
    assert found["agrees_to"] == pytest.approx(1e-5)  # 1.000001e-6, rounded up


def test_without_a_dual_value_the_primal_one_says_it_all():
    found = row(convergence.agreement(Runs(RUNS, KNOWN)), "ssg")
    assert math.isnan(found["dual"])
    assert found["agrees_to"] == pytest.approx(0.01)
    (output,) = convergence.AGREEMENT.outputs(FigureData(Runs(RUNS, KNOWN)), ("table",))
    page = output.markdown()
    assert "| SSG (`ssg`) | 1 | 2 | max_iterations | 1.0e-03 | – | 0.01 |" in page
    assert "**1e-05**" in page
    assert "optimum known to 1e-06" in page


@pytest.mark.parametrize("dual", [math.nan, 0.0, -math.inf])
def test_nothing_is_said_where_no_dual_value_is_known(dual):
    unknown = {problem: Best(2.0, dual) for problem in KNOWN}
    table = convergence.agreement(Runs(RUNS, unknown))
    assert table.empty
    assert list(table) == convergence.AGREEMENT_COLUMNS
    assert not [*convergence.AGREEMENT.outputs(FigureData(Runs(RUNS, unknown)), ("table",))]
