"""Growth of oracle calls with n, λ and ε, from runs whose calls are known."""

import math

import numpy as np
import pytest
from traces import make_trace, set_columns

from ssvm_bench.figures.kind import FigureData
from ssvm_bench.papers.bcfw_poster import rates
from ssvm_bench.results.table import Best, Runs, instance_of

ERRORS = (0.1, 0.05, 0.02)
P, D = 3.0, 2.999


def run(solver, n, lam, needed, seed=0, **columns):
    """Return a run with the error ``rates`` is about: ε after ``needed(ε)`` calls."""
    kind = rates.ORDERS[solver].error
    errors = np.array([1.0, 0.5, *ERRORS, 0.01])
    primal = {"dual error": np.full(6, 4.0), "primal error": D + errors}.get(kind, 2.0 + errors)
    dual = {"dual error": P - errors, "primal error": np.full(6, math.nan)}.get(kind, 2.0)
    if kind == "saddle gap":
        columns["saddle_dual"], dual = 2.0, np.full(6, math.nan)
    calls = [0, *(round(needed(e)) for e in errors[1:])]
    about = {"solver": solver, "seed": seed, "lam": lam, "columns": columns}
    about["dataset"] = {"n": n, "fingerprint": f"{n}"}
    about["config"] = {"dataset": {"name": "toy", "n_samples": n}}
    return make_trace(primal, dual, oracle_calls=calls, **about)


def known(runs):
    return {instance_of(made.metadata): Best(P, D) for made in runs}


def measured(runs):
    needed = rates.calls(Runs(runs, known(runs)), ERRORS)
    return needed, rates.ratios(needed)


@pytest.mark.parametrize("solver", rates.ORDERS)
def test_calls_as_in_table_1_have_the_predicted_ratios(solver):
    order = rates.ORDERS[solver]

    def calls(n, lam):
        return lambda eps: 1e4 * n**order.n * lam**order.lam * eps**order.eps

    runs = [run(solver, n, lam, calls(n, lam)) for n, lam in [(20, 0.1), (40, 0.1), (20, 0.01)]]
    _, table = measured(runs)
    assert set(table["varied"]) == {"n", "lam", "eps"}
    assert len(table) == 3 + 3 + 3 * 2
    np.testing.assert_allclose(table["ratio"], table["predicted"], rtol=1e-4)
    assert set(table["error"]) == {order.error}
    (output,) = rates.KIND.outputs(FigureData(Runs(runs, known(runs)), gaps=ERRORS), ("table",))
    said = output.markdown()
    assert f"{order.n:.2f} ({order.n:g}) | {order.lam:.2f} ({order.lam:g})" in said


def test_calls_that_grow_otherwise_have_another_ratio():
    runs = [run("bcfw", n, 0.1, lambda eps, n=n: 100 * n / eps) for n in (20, 40)]
    _, table = measured(runs)
    rows = table[table["varied"] == "n"]
    assert rows["ratio"].tolist() == pytest.approx([2.0] * 3)
    assert rows["predicted"].tolist() == [1.0] * 3
    (output,) = rates.KIND.outputs(FigureData(Runs(runs, known(runs)), gaps=ERRORS), ("table",))
    assert "2 (1)" in output.markdown()


def test_errors_reached_never_or_in_the_first_pass_are_not_compared():
    runs = [run("fw", 20, lam, lambda eps: 1.0 / eps) for lam in (0.1, 0.01)]
    needed = rates.calls(Runs(runs, known(runs)), (0.1, 0.02, 0.001))
    assert needed["calls"].isna().tolist() == [True, False, True] * 2  # 10 < n, 50, never
    assert rates.ratios(needed)["ratio"].notna().sum() == 1


def test_medians_are_over_repeats_that_count_as_infinite_where_they_end_early():
    runs = [run("bcfw", 20, 0.1, lambda eps, k=k: k / eps, seed=k) for k in (10, 20, 30)]
    needed = rates.calls(Runs(runs, known(runs)), ERRORS)
    assert needed["calls"].tolist() == pytest.approx([20 / eps for eps in ERRORS])
    for made in runs[1:]:
        set_columns(made, gap=1.0, dual=made["primal"] - 1.0)
    assert rates.calls(Runs(runs, known(runs)), ERRORS)["calls"].isna().all()


@pytest.mark.parametrize(("factor", "said"), [(2.0, 0.5), (0.5, 2.0)])
def test_an_error_above_what_is_proved_shows(factor, said):
    error = np.array([1.0, 0.5, *ERRORS, 0.01])
    made = run("extragradient", 20, 0.1, lambda eps: 100 / eps, gap_bound=factor * error)
    needed, table = measured([made])
    assert needed["bound"].tolist() == pytest.approx([said] * 3)
    data = FigureData(Runs([made], known([made])), gaps=ERRORS)
    (output,) = rates.KIND.outputs(data, ("table",))
    assert f"| {said:.2g} |" in output.markdown()
    plain, _ = measured([run("fw", 20, 0.1, lambda eps: 100 / eps)])
    assert plain["bound"].isna().all()
    assert len(table) == 2


def test_nothing_is_written_without_solvers_of_table_1():
    runs = [make_trace([2.0, 1.0], [0.0, 0.5], solver="mpbcfw")]
    assert not list(
        rates.KIND.outputs(FigureData(Runs(runs, known(runs)), gaps=ERRORS), ("table",))
    )


def test_subsets_of_other_examples_are_not_compared():
    runs = [run("fw", n, 0.1, lambda eps: 1000 / eps) for n in (20, 40)]
    runs[0].metadata["config"]["dataset"]["folds"] = "[0]"
    _, table = measured(runs)
    assert set(table["varied"]) == {"eps"}
