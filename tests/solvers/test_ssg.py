"""The stochastic subgradient method against its formulas, written down densely."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import TINY as DATA
from helpers import Plain, Table, iterated, optimum, oracle, problem, reports, solver
from program import call

from ssvm_bench.oracles.base import Problem
from ssvm_bench.solvers.block import averages
from ssvm_bench.solvers.orders import Orders

LAM = 0.1
SOLVERS = {"ssg": "none", "ssg_weighted": "weighted", "ssg_tail": "tail"}


def iterates(data, order, passes):
    """Yield w_1, w_2, … of the textbook's update."""
    table, w = Table(data), np.zeros(Table(data).d)
    for k, i in enumerate(np.concatenate([next(order) for _ in range(passes)])):
        row = int(np.argmax(table.values(w, i)))
        w = w - (LAM * w + table.n * table.planes[i][row][:-1]) / (LAM * (k + 1))
        yield w


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("sampling", ["uniform", "permutation"])
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_the_iterates_are_those_of_the_update(data, name, sampling, rows):
    plain = rows and data.structure != "graph"
    posed = Problem(Plain(oracle(data)), LAM) if plain else problem(data, LAM)
    made = solver(posed, name, sampling=sampling)
    ws = np.array(list(iterates(data, Orders(data.n, sampling, 0), 6)))
    for p, (w, dual) in enumerate(reports(made, 6), 1):
        k = p * data.n
        t = np.arange(1, k + 1)
        expected = {
            "none": ws[k - 1],
            "weighted": (2 * t[:, None] * ws[:k]).sum(axis=0) / (k * (k + 1)),
            "tail": ws[p // 2 * data.n : k].mean(axis=0),
        }[SOLVERS[name]]
        np.testing.assert_allclose(w, expected, atol=1e-9)
        assert np.isnan(dual)
        assert made.clock.oracle_calls == k


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_it_comes_as_near_to_the_optimum_as_theory_says(data, name):
    posed, passes = problem(data, LAM), 1000
    made = iterated(solver(posed, name), passes)
    k = passes * data.n
    planes = np.concatenate(Table(data).planes)[:, :-1]
    G2 = data.n**2 * (planes**2).sum(axis=1).max()
    # expected suboptimality: Shamir and Zhang 2013, Theorem 1; Lacoste-Julien et al. 2012;
    # Rakhlin et al. 2012, Theorem 5
    factor = {"ssg": 17 * (1 + np.log(k)), "ssg_weighted": 2.0, "ssg_tail": 7.5}[name]
    suboptimality = posed.primal(made.reported().w) - optimum(posed)
    assert -1e-9 <= suboptimality <= factor * G2 / (LAM * k)


def test_the_tail_is_the_second_half_up_to_a_little(monkeypatch):
    monkeypatch.setattr(averages, "_MOST_SUMS", 8)
    data = DATA["multiclass"]
    made = solver(problem(data, LAM), "ssg_tail")
    for p, _ in enumerate(reports(made, 99), 1):
        ends = [k // data.n for k, _ in made.tail.sums]
        assert len(ends) <= 8
        assert ends == list(range(0, p + 1, made.tail.stride))
        begin = max(k for k in ends if 2 * k <= p)
        assert p / 2 - begin <= max(p / 4, 0.5)


EXPERIMENT = """
grid:
  - {seed: [0, 1], solver: [ssg, ssg_tail, bcfw], clock: work}
  - {seed: 0, solver: ssg, clock: work, lam: 10/n}   # nobody has a dual value there
figures:
  suboptimality: [iteration]
  selection: [iteration]
  targets: [calls]
gaps: [0.5, 0.1]
"""


def test_an_experiment_and_the_report_show_solvers_without_a_dual(tmp_path, blank):
    file, results = tmp_path / "mixed.yaml", tmp_path / "results"
    file.write_text(EXPERIMENT)
    options = ("dataset=usps", "dataset.source=synthetic", "dataset.n_samples=30")
    options += ("budget.max_iterations=20", f"results_dir={results}")
    made = call("experiment", file, *options)
    assert made.exit_code == 0, made.stderr
    (summary, *_) = (
        json.loads(path.read_text()) for path in results.glob("runs/usps/ssg/*/*/*.json")
    )
    assert summary["dual"] is summary["gap"] is summary["best_dual"] is None
    (folder,) = (results / "figures/mixed").iterdir()
    table = pd.read_csv(folder / "iterations-synthetic.csv").groupby(["solver", "quantity"])
    curves = table["median"].count() > 0
    assert curves["ssg"][curves["ssg"]].index.tolist() == ["primal suboptimality"]
    assert curves["bcfw"].all()
    page = (folder / "targets-synthetic.md").read_text()
    for part in ("| SSG (`ssg`) |", "| BCFW (`bcfw`) |", "λ = 10/n", "to a distance P − F⋆"):
        assert part in page
    assert call("report", f"results_dir={results}").exit_code == 0
    text = (results / "report.html").read_text()
    assert "SSG-tavg†" in text
    assert "no dual value is known" in text
    assert ">nan<" not in text
