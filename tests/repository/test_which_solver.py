"""The table of the crossover in the package, and the page of it, are those of the results."""

import math
import runpy
from pathlib import Path

import pandas as pd
import pytest
from program import call

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.runs import recommendation

ROOT = Path(__file__).parents[2]
MADE = runpy.run_path(str(ROOT / "docs" / "which_solver.py"))

EXPERIMENT = """
grid:
  - dataset: optdigits
    solver: [bcfw, mpbcfw]
    lam: 10/n
    clock: cpu
    budget.max_iterations: 12
  - dataset: optdigits
    solver: cutting_plane
    solver.epsilon: 0.0005
    lam: 10/n
    clock: cpu
    budget.max_iterations: 12
  - dataset: optdigits
    solver: mpbcfw
    lam: 10/n
    clock: work
    oracle.cost_call: [0.00001, 0.1]
    budget.max_iterations: 12
each:
  optdigits: {dataset.n_samples: 40}
gaps: [0.3, 0.0001]
figures:
  crossover: [table]
"""


def test_the_table_and_the_page_are_those_of_the_committed_results():
    if not (MADE["RESULTS"] / "figures" / MADE["NAMES"][0]).is_dir():
        assert not recommendation.FOLDER.exists()
        pytest.skip("no crossover is committed")
    table = MADE["table"]()
    for name, content in MADE["contents"](table).items():
        assert (recommendation.FOLDER / name).read_text(encoding="utf-8") == content, "make answer"
    text = MADE["PAGE"].read_text(encoding="utf-8")
    assert MADE["page"](text, recommendation.table()) == text, "make answer"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return a results folder with a small crossover."""
    folder = tmp_path_factory.mktemp("crossover")
    file = folder / "small.yaml"
    file.write_text(EXPERIMENT)
    done = call("experiment", file, f"results_dir={folder / 'results'}")
    assert done.exit_code == 0, done.stderr
    return folder / "results"


def test_times_at_every_cost_follow_from_the_table(results):
    table = MADE["table"](results, ["small"])
    (problem,) = table.problems
    assert (problem.dataset, problem.oracle, problem.structure) == (
        *("optdigits", "multiclass", "independent"),
    )
    assert (problem.n, problem.d, problem.lam_n) == (40, 640, pytest.approx(10.0))
    assert 0 < problem.call < 1
    assert 0 < problem.visit < 1
    assert table.gaps(problem) == [0.3, 0.0001]
    drawn = pd.read_csv(results / "figures" / "small" / "crossover.csv")
    assert table.costs(problem) == pytest.approx(sorted(set(drawn["cost"])), rel=1e-3)
    for row in drawn.itertuples():
        ranked = table.ranked(problem, row.gap, row.cost)
        (found,) = [one for one in ranked if one.solver == row.solver]
        if math.isnan(row.time):
            assert math.isinf(found.seconds)
        else:
            assert found.seconds == pytest.approx(row.time, rel=1e-3)
            assert found.ratio == pytest.approx(row.ratio, rel=2e-3)
            assert found.times.passes == row.passes


def test_one_row_has_what_is_the_same_at_all_costs_and_options_are_those_of_the_runs(results):
    times = MADE["table"](results, ["small"]).times
    at = {one.solver: [each.cost for each in times if each.solver == one.solver] for one in times}
    assert all(map(math.isnan, at["bcfw"] + at["cutting_plane"]))
    assert sum(map(math.isnan, at["mpbcfw"])) <= 1  # a gap that is never reached has one
    options = {one.solver: one.options for one in times}
    assert options == {"bcfw": "", "mpbcfw": "", "cutting_plane": "solver.epsilon=0.0005"}


def test_the_page_names_a_solver_for_every_cost(results):
    table = MADE["table"](results, ["small"])
    text = "\n".join(MADE["lines"](table))
    assert "### Independent labels, oracle `multiclass`" in text
    rows = [line for line in text.splitlines() if line.startswith("| Digits of scikit-learn")]
    assert {line.count("|") for line in rows} == {len(MADE["HEAD"]) + 2}
    (problem,) = table.problems
    named = {
        recommendation.named(ranked).solver
        for gap in table.gaps(problem)
        for cost in table.costs(problem)
        if math.isfinite((ranked := table.ranked(problem, gap, cost))[0].seconds)
    }
    assert {name for name in named if f"`{name}`" in text} == named
    page = MADE["page"](f"before\n{MADE['BEGIN']}\nold\n{MADE['END']}\nafter\n", table)
    assert "old" not in page
    assert MADE["page"](page, table) == page


def test_without_a_crossover_it_is_said_how_to_make_one(tmp_path):
    with pytest.raises(RunFailedError, match="ssvm-bench experiment crossover"):
        MADE["table"](tmp_path)
