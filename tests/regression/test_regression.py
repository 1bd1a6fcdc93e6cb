"""Convergence curves against those stored in ``tests/regression``."""

import os
from pathlib import Path

import pandas as pd
import pytest
from program import environment, python
from regression import reference

from ssvm_bench.base import linalg
from ssvm_bench.planes import dual_iterate
from ssvm_bench.solvers import fw

ADVICE = (
    "The convergence curves have changed. If that is wanted, accept it with "
    "`make update-reference`, look at the differences of tests/regression/*.csv, and raise "
    "CODE_VERSION of the solver or oracle module that has changed."
)


@pytest.fixture(scope="module", params=reference.PROBLEMS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def now(name):
    return reference.curves(name)


def test_the_data_is_that_of_the_reference(name, now):
    assert now[1] == reference.stored(name)[1], f"The data of {name} have changed. {ADVICE}"


@pytest.mark.processors
def test_the_curves_are_those_of_the_reference(name, now, tmp_path):
    found = reference.differences(now[0], reference.stored(name)[0])
    if found:
        picture = reference.draw(now[0], reference.stored(name)[0], tmp_path / f"{name}.png")
        pytest.fail("\n".join([ADVICE, *found, f"Both curves: {picture}"]))


def test_the_same_seed_gives_the_same_bits(name, now):
    again, _ = reference.curves(name)
    pd.testing.assert_frame_equal(again, now[0], check_exact=True)


@pytest.mark.parametrize("name", reference.STRUCTURAL, scope="module")
def test_the_reference_is_what_the_papers_say(name):
    """Weak duality, a rising dual, and approximate passes that pay."""
    table, _ = reference.stored(name)
    table["gap"] = table["primal"] - table["dual"]
    assert (table["gap"].dropna() >= 0).all()
    last = {}
    for solver, curve in table.groupby("solver"):
        iterations = list(curve["iteration"])
        assert iterations == list(range(len(iterations)))
        stops_by_itself = solver in (*reference.RIVALS, *reference.BUNDLES, "dcd_online")
        assert len(iterations) == reference.ITERATIONS + 1 or stops_by_itself
        assert curve["dual"].isna().all() == solver.startswith("ssg")
        # those beyond the papers come so near to the optimum that rounding shows; the lower bounds
        # of bundle methods may stand still
        least = 0.0 if solver in reference.OF_THE_PAPERS else -1e-12
        rises_always = not solver.endswith("_avg") and solver not in reference.SADDLE
        assert (curve["dual"].diff().dropna() > least).all() or not rises_always
        last[solver] = curve[curve["iteration"] <= 12].iloc[-1]  # all are near the optimum later
    assert last["mpbcfw"]["gap"] < last["bcfw"]["gap"] < last["fw"]["gap"]
    assert last["mpbcfw"]["working_set_mean"] > 1 > last["bcfw"]["working_set_mean"]


@pytest.mark.parametrize("name", reference.TRANSDUCTIVE, scope="module")
def test_the_reference_of_transduction_is_what_its_paper_says(name):
    """All begin at α = 0; the rivals stand still in the end, and weak duality bounds (27)."""
    table, _ = reference.stored(name)
    assert table["dual"].isna().all()
    curves = dict(list(table.groupby("solver")))
    assert set(curves) == set(reference.OF_TRANSDUCTION)
    assert len(table.groupby("solver").first()[["primal", "w_norm"]].drop_duplicates()) == 1
    for rival in ("coordinate_descent", "kernel_kmeans"):
        assert curves[rival]["label_changes"].iloc[-1] == 0
    assert curves["coordinate_descent"]["primal"].is_monotonic_decreasing
    assert len(curves["inductive"]) == 2
    ours = curves["dcadmm"]
    assert (ours["supervised_gap"].iloc[1:] >= 0).all()
    assert ours["oracle_calls"].tolist() == [*range(1, reference.ITERATIONS + 2)]


on_one_problem = pytest.mark.parametrize("name", ["usps"], indirect=True, scope="module")


def solvers_that_differ(name, *overrides):
    """Return the solvers whose curves, as they are now, are not those of the reference."""
    now, _ = reference.curves(name, *overrides)
    found = reference.differences(now, reference.stored(name)[0])
    return {line.partition(":")[0] for line in found}


@on_one_problem
def test_another_lambda_is_noticed(name, now):
    n = now[0]["oracle_calls"].iloc[-1] // reference.ITERATIONS
    assert solvers_that_differ(name, f"lam={(1 + 1e-6) / n}") == set(reference.solvers_of(name))


@on_one_problem
def test_a_slightly_wrong_line_search_is_noticed(name, monkeypatch):
    right = linalg.line_search
    monkeypatch.setattr(fw, "line_search", lambda *slope: (1 - 1e-7) * right(*slope))
    assert solvers_that_differ(name) == {"fw"}


@on_one_problem
def test_one_approximate_pass_too_many_is_noticed(name, monkeypatch):
    approximate = dual_iterate.visit_working_sets

    def twice(*arguments):
        return approximate(*arguments) + approximate(*arguments)

    monkeypatch.setattr(dual_iterate, "visit_working_sets", twice)
    assert solvers_that_differ(name) == {
        *(solver for solver in reference.SOLVERS if solver.startswith("mpbcfw")),
        *("one_slack", "cutting_plane", "dcd", "dcd_online"),
    }


def test_a_difference_is_explained():
    table, _ = reference.stored("usps")
    changed = table.copy()
    changed.loc[3, "oracle_calls"] += 1
    changed.loc[4, "primal"] *= 1 + 2 * reference.TOLERANCE
    changed.loc[5, "dual"] *= 1 + reference.TOLERANCE / 2
    first, second = reference.differences(changed, table)
    assert first == "fw: oracle_calls 181 instead of 180 in iteration 3"
    assert second.startswith("fw: primal ")
    assert reference.differences(table.iloc[1:], table) == ["fw: 20 rows instead of 21"]
    missing = reference.differences(table.query("solver != 'fw'"), table)
    assert missing == ["fw: 0 rows instead of 21"]


PROGRAM = """
from regression import reference
for name in reference.PROBLEMS:
    for line in reference.differences(reference.curves(name)[0], reference.stored(name)[0]):
        print(name, line)
"""


def test_another_machine_has_the_same_curves():
    """Another BLAS stands for another machine (where this one is no OpenBLAS, nothing changes)."""
    path = f"{environment()['PYTHONPATH']}{os.pathsep}{Path(__file__).parents[1]}"
    done = python("-c", PROGRAM, PYTHONPATH=path, OPENBLAS_CORETYPE="Prescott")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
