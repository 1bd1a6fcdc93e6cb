"""Which solver is recommended, and what it is expected to take: by a table that is known here."""

import json
import math
import runpy
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from program import OCR, USPS, call, error_of

from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs import Outcome, recommendation
from ssvm_bench.runs.components import load_dataset
from ssvm_bench.runs.recommendation import Problem, Table, Times, named, recommend, sooner

ROOT = Path(__file__).parents[2]
DIGITS = Problem("digits", "usps", "multiclass", "independent", 2000, 2560, 1.0, 1e-6, 2e-6)
WORDS = Problem("words", "ocr", "viterbi", "chain", 1500, 4004, 1.0, 5e-6, 1e-5)
PICTURES = Problem("pictures", "weizmann", "mincut", "graph", 300, 1300, 1.0, 1e-4, 1e-5)

ANY, NEVER = math.nan, (math.inf, math.inf)


def times(problem, gap, solver, cost, passes, outside, options=""):
    return Times(problem, gap, solver, options, cost, passes, outside)


TABLE = Table(
    [DIGITS, WORDS, PICTURES],
    [
        # calls that cost little: many of them, and little else
        times("digits", 0.1, "mpbcfw_fast", ANY, 4, 0.01),
        times("digits", 0.01, "mpbcfw_fast", 1e-6, 20, 0.10),
        times("digits", 0.01, "mpbcfw_fast", 1e-2, 10, 2.00),
        times("digits", 0.01, "cutting_plane", ANY, 7, 3.00, "solver.epsilon=0.0005"),
        times("digits", 0.01, "bcfw", ANY, *NEVER),
        times("digits", 0.001, "mpbcfw_fast", ANY, *NEVER),
        # the preset is far behind; what is first has no gap, and the second keeps no weight ≥ 0
        times("words", 0.01, "mpbcfw_fast", ANY, 90, 9.0),
        times("words", 0.01, "ssg_weighted", ANY, 10, 0.1),
        times("pictures", 0.1, "prox_bmrm", ANY, 10, 0.1),
        times("pictures", 0.1, "mpbcfw_newton", ANY, 30, 1.0),
        times("pictures", 0.1, "mpbcfw", ANY, 20, 1.0),
    ],
)


@pytest.fixture
def known(monkeypatch):
    """Let the package have this table, and let measuring find that a call costs two visits."""
    monkeypatch.setattr(recommendation, "table", lambda: TABLE)
    monkeypatch.setattr(recommendation, "measure", lambda config, dataset: (8e-6, 4e-6))


# ---- the table ----------------------------------------------------------------------------------


def test_the_nearest_problem_has_the_same_oracle_then_structure_then_sizes():
    far = DIGITS._replace(name="far", n=10**6, d=10**5, lam_n=100.0)
    trees = DIGITS._replace(oracle="part_tree", structure="figures")
    table = Table([WORDS, far, trees], [])
    assert table.nearest(DIGITS) == far  # though another one has its sizes
    assert table.nearest(DIGITS._replace(oracle="mine")) == far
    assert Table([far, DIGITS], []).nearest(DIGITS._replace(lam_n=9.0, d=3000)) == DIGITS
    assert Table([far, DIGITS], []).nearest(DIGITS._replace(n=10**6, lam_n=11.0)) == far
    regression = DIGITS._replace(oracle="regression", structure="regression", n=1400)
    assert Table([DIGITS, WORDS], []).nearest(regression._replace(d=4000)) == WORDS


def test_time_counts_calls_at_a_cost_by_the_run_at_the_nearest_one():
    for cost, passes, outside in ((1e-5, 20, 0.1), (2e-3, 10, 2.0), (1.0, 10, 2.0)):
        ranked = {one.solver: one for one in TABLE.ranked(DIGITS, 0.01, cost)}
        assert ranked["mpbcfw_fast"].seconds == pytest.approx(passes * 2000 * cost + outside)
        assert ranked["cutting_plane"].seconds == pytest.approx(7 * 2000 * cost + 3.0)
        assert ranked["bcfw"].ratio == math.inf
        assert min(one.ratio for one in ranked.values()) == 1.0
    order = [one.solver for one in TABLE.ranked(DIGITS, 0.01, 1.0)]
    assert order == ["cutting_plane", "mpbcfw_fast", "bcfw"]


def test_a_preset_is_named_if_it_is_close_to_the_best_solver():
    def ranked(**seconds):
        of = [times("digits", 0.1, name, ANY, 0.0, value) for name, value in seconds.items()]
        return TABLE._replace(times=of).ranked(DIGITS, 0.1, 1e-6)

    assert named(ranked(bcfw=1.0, mpbcfw_fast=1.19)).solver == "mpbcfw_fast"
    assert named(ranked(bcfw=1.0, mpbcfw_fast=1.21)).solver == "bcfw"
    assert named(ranked(bcfw=1.0, mpbcfw_fast=1.19, mpbcfw_newton=1.1)).solver == "mpbcfw_fast"
    assert named(ranked(bcfw=1.0, mpbcfw_fast=2.0, mpbcfw_newton=1.1)).solver == "mpbcfw_newton"
    assert named(ranked(bcfw=1.0, mpbcfw_fast=1.21, mpbcfw_costly=1.19)).solver == "mpbcfw_costly"


def test_the_table_of_the_package_is_read_as_it_was_written(tmp_path, monkeypatch):
    made = runpy.run_path(str(ROOT / "docs" / "which_solver.py"))
    for name, content in made["contents"](TABLE).items():
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(recommendation, "FOLDER", tmp_path)
    recommendation.table.cache_clear()
    read = recommendation.table()
    assert list(read.problems) == list(TABLE.problems)
    for one, other in zip(read.times, TABLE.times, strict=True):
        np.testing.assert_equal(tuple(one), tuple(other))
    (tmp_path / "times.csv").write_text("a,b\n")
    recommendation.table.cache_clear()
    message = error_of(call("recommend", *USPS), 1)
    assert "the first line of times.csv is not problem,gap" in message
    recommendation.table.cache_clear()


# ---- the recommendation -------------------------------------------------------------------------


def test_passes_are_those_of_the_nearest_problem_and_time_is_scaled_by_n_and_a_visit(known):
    found = recommend(USPS)
    n, call_, visit = 30, 8e-6, 4e-6
    assert found.problem[1:7] == ("usps", "multiclass", "independent", n, 2560, 1.0)
    assert found.nearest == DIGITS
    assert found.cost == pytest.approx(call_ / visit * DIGITS.visit)  # as many visits
    assert (found.asked, found.gap, found.named.solver) == (0.01, 0.01, "mpbcfw_fast")
    assert [target.gap for target in found.targets] == [0.1, 0.01, 0.001]
    scale = n * visit / (DIGITS.n * DIGITS.visit)
    for target, passes, outside in zip(found.targets, (4, 20), (0.01, 0.1), strict=False):
        assert target.passes == passes
        assert target.seconds == pytest.approx(passes * n * call_ + outside * scale)
    assert found.targets[2].passes == math.inf
    assert "the next, cutting_plane, takes 11.8×" in found.reason


def test_the_gap_of_the_table_that_decides_is_the_next_smaller_one_that_is_reached(known):
    for asked, decides in ((0.5, 0.1), (0.05, 0.01), (0.01, 0.01), (0.001, 0.01), (1e-6, 0.01)):
        found = recommend(USPS, asked)
        assert (found.asked, found.gap) == (asked, decides)
        assert f"budget.gap_tol={asked:g}" in found.command
        assert ("knows no time" in "\n".join(found.lines())) == (asked != decides)
    found = recommend([*USPS, "budget.gap_tol=0.1", "budget.max_iterations=7"])
    assert (found.asked, found.gap) == (0.1, 0.1)
    assert found.command.count("budget.") == 2


def test_what_the_estimated_time_leaves_out_is_said(known, monkeypatch):
    text = "\n".join(recommend(USPS).lines())
    assert "Evaluations" not in text
    assert "one process" not in text
    monkeypatch.setattr(recommendation, "measure", lambda config, dataset: (0.5, 4e-6))
    text = "\n".join(recommend([*USPS, "parallel.workers=2", "parallel.batch=4"]).lines())
    assert "calls the oracle for every example, for 15 s. eval.every=10 makes fewer." in text
    assert "The time is that of one process" in text


def test_where_no_preset_is_close_another_solver_is_named_and_it_is_said(known):
    found = recommend([*OCR, "lam=2/n"])
    assert (found.nearest, found.named.solver) == (WORDS, "ssg_weighted")
    assert "No preset is within 1.2×: mpbcfw_fast takes 29.2×." in found.reason
    (config,) = compose_runs(shlex.split(found.command)[2:])
    assert config.budget.max_iterations == 10  # it has no gap that could end the run


def test_the_command_is_a_run_of_the_named_solver_with_its_options(known, monkeypatch):
    monkeypatch.setattr(recommendation, "measure", lambda config, dataset: (1.0, 4e-6))
    found = recommend([*USPS, "seed=3"])
    assert found.named.solver == "cutting_plane"  # seven of ten passes
    (config,) = compose_runs(shlex.split(found.command)[2:])
    assert (config.solver.name, config.solver.epsilon, config.seed) == ("cutting_plane", 0.0005, 3)
    assert (config.budget.gap_tol, config.budget.max_iterations) == (0.01, None)
    found = recommend([*USPS, "path=[100/n,10/n]", "lam=1/n"])  # which cutting planes do not follow
    assert found.named.solver == "mpbcfw_fast"
    (config,) = compose_runs(shlex.split(found.command)[2:])
    assert len(config.path_steps()) == 3


def test_only_solvers_that_can_run_on_the_problem_are_named(known, monkeypatch):
    data = ("dataset=weizmann", "dataset.source=synthetic", "dataset.n_samples=4")
    found = recommend([*data, "oracle.potts=1"])
    assert (found.gap, found.named.solver) == (0.1, "prox_bmrm")
    learned = recommend([*data, "oracle.potts=learned"])
    assert learned.named.solver == "mpbcfw_newton"
    assert [one.solver for one in learned.ranking] == ["mpbcfw", "mpbcfw_newton"]
    assert learned.ranking[0].ratio == 1.0
    only = [one for one in TABLE.times if one.solver == "prox_bmrm"]
    monkeypatch.setattr(recommendation, "table", lambda: TABLE._replace(times=only))
    message = error_of(call("recommend", *data, "oracle.potts=learned"), 2)
    assert "No solver of the crossover can run on dataset=weizmann" in message


def test_a_problem_of_another_kind_gets_a_weak_guide(known):
    found = recommend(["dataset=abalone", "dataset.source=synthetic", "dataset.n_samples=50"])
    assert found.likeness == "none has regression labels, so that it is a weak guide"


@pytest.mark.parametrize(
    ("lam", "said"),
    [
        ("lam=1/n", None),
        ("lam=5/n", None),
        ("lam=200/n", "Its λ is 200/n, and there 1/n: the passes may be far fewer"),
        ("lam=0.01/n", "Its λ is 0.000333, and there 1/n: the passes may be far more"),
    ],
)
def test_a_lambda_that_is_far_from_the_nearest_problems_is_said(known, lam, said):
    """44 passes were expected where 11 were needed: of λ, nothing was said."""
    found = recommend([*USPS, lam])
    about = [line for line in found.lines() if line.startswith("Its λ")]
    assert about == ([f"{said}."] if said else [])
    assert found.as_plain()["lam_ratio"] == pytest.approx(found.problem.lam_n)


def test_json_says_the_same(known):
    found = recommend(USPS)
    printed = json.loads(call("recommend", *USPS, "--json").stdout)
    assert printed["solver"] == "mpbcfw_fast"
    assert printed["command"] == found.command
    assert printed["problem"]["source"] == "synthetic"
    assert printed["targets"][2] == {"gap": 0.001, "passes": None, "seconds": None}
    ratios = {one["solver"]: one["ratio"] for one in printed["ranking"]}
    assert ratios["mpbcfw_fast"] == 1.0
    assert ratios["bcfw"] is None
    text = call("recommend", *USPS).stdout
    assert text == "\n".join(found.lines()) + "\n"
    said = "The passes are those of the nearest problem; this one may take several times as many, "
    assert f"\n{said}or a fraction of them.\n" in text
    assert text.endswith(f"{found.command}\n")


def test_mistakes_end_in_one_message(known, monkeypatch):
    for words, status, said in (
        (("dataset=uspx",), 2, "Did you mean usps?"),
        ((*USPS, "solver=bcfw"), 2, "the solver is what is recommended"),
        ((*USPS, "solver.T=3"), 2, "the solver is what is recommended"),
        ((*USPS, "seed=1,2"), 2, "asks for several runs"),
        (("dataset=moons",), 2, "Solvers of transduction: coordinate_descent, dcadmm"),
        (("dataset=usps", "oracle=viterbi"), 2, "does not fit dataset=usps"),
        ((*USPS, "--gap", "0"), 2, "--gap"),
    ):
        assert said in error_of(call("recommend", *words), status)
    monkeypatch.setattr(recommendation, "table", lambda: None)
    message = error_of(call("recommend", *USPS), 1)
    assert "There is no crossover table in this package." in message


def test_an_oracle_that_fails_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(recommendation, "table", lambda: TABLE)
    monkeypatch.chdir(tmp_path)
    assert call("new", "oracle", "mine").exit_code == 0
    file = tmp_path / "mine" / "oracle" / "mine.py"
    text = file.read_text()
    asked = "dataset=queries", "oracle=mine", "clock=cpu", "--config-dir", "mine"
    file.write_text(text.replace("return (2.0 *", "return 1 // 0 + (2.0 *"))
    message = error_of(call("recommend", *asked), 1)
    assert "mine.py" in message
    assert "ZeroDivisionError" in message


# ---- measuring ----------------------------------------------------------------------------------


def test_a_call_and_a_visit_are_measured(monkeypatch):
    monkeypatch.setattr(recommendation, "SECONDS", 0.01)
    (config,) = compose_runs([*USPS, "solver=bcfw"])
    data = load_dataset(config.dataset)
    call_, visit = recommendation.measure(config, data)
    assert 0 < call_ < 0.01
    assert 0 < visit < 0.01
    slow = replace(config, oracle=replace(config.oracle, delay=3.0))
    assert 3.0 < recommendation.measure(slow, data)[0] < 3.01


def test_few_costly_calls_are_measured_on_few_examples(monkeypatch):
    made = []

    def counted(config, dataset):
        made.append(dataset.n)
        return 0.5, 1e-6

    monkeypatch.setattr(recommendation, "_first_passes", counted)
    monkeypatch.setattr(recommendation, "SECONDS", 1e-9)
    (config,) = compose_runs([*USPS, "solver=bcfw"])
    assert recommendation.measure(config, load_dataset(config.dataset)) == (0.5, 1e-6)
    assert made == [2]
    monkeypatch.setattr(recommendation, "SECONDS", 1000.0)
    monkeypatch.setattr(Clock, "wall", lambda self: 1000.0 * (len(made) > 3))
    recommendation.measure(config, load_dataset(config.dataset))
    assert made[1:] == [2, 8, 30]  # until a pass takes a hundredth of the time


def test_it_is_said_if_the_clocks_disagree(monkeypatch, caplog):
    monkeypatch.setattr(recommendation, "_first_passes", lambda config, dataset: (1.0, 1.0))
    monkeypatch.setattr(Clock, "wall", lambda self: 2.0)
    for processor, clock, said in ((1.9, "wall", False), (1.0, "wall", True), (1.0, "cpu", False)):
        monkeypatch.setattr(Clock, "cpu", lambda self, of=processor: of)
        (config,) = compose_runs([*USPS, "solver=bcfw", f"clock={clock}"])
        caplog.clear()
        recommendation.measure(config, load_dataset(config.dataset))
        assert ("with clock=cpu, which is processor time" in caplog.text) == said
        assert ("If the oracle waits" in caplog.text) == said  # for which that clock is wrong


# ---- after a run --------------------------------------------------------------------------------


@pytest.fixture
def ended(known, tmp_path):
    """Return what says how a run ended, with other numbers in its summary."""
    from program import config_of, run_here

    config = config_of(tmp_path, "solver=bcfw", "budget.max_iterations=2")
    outcome = run_here(tmp_path, "solver=bcfw", "budget.max_iterations=2")

    def end(config=config, status="finished", **changes):
        usual = {"time": 5.0, "oracle_time": 30 * 2e-6, "oracle_calls": 30, "gap": 0.005}
        summary = {**outcome.summary, "primal": 1.0, **usual, **changes}
        return sooner(config, Outcome(status, "max_iterations", outcome.folder, summary))

    end.config = config
    return end


def test_a_run_is_told_of_a_solver_that_is_much_sooner(ended, monkeypatch):
    line = ended()
    assert "mpbcfw_fast reaches a relative gap of 0.01 where bcfw does not" in line
    assert "`ssvm-bench recommend dataset=usps`" in line
    both = [times("digits", 0.1, name, ANY, 10, of) for name, of in (("bcfw", 8), ("mpbcfw", 2))]
    monkeypatch.setattr(recommendation, "table", lambda: Table([DIGITS], both))
    assert "mpbcfw reaches a relative gap of 0.1 in 25 % of the time of bcfw" in ended(gap=0.3)
    # at a call of a second, passes decide, and they are the same
    assert ended(gap=0.3, oracle_time=30.0) is None


def test_most_runs_are_told_nothing(ended, monkeypatch):
    assert ended(time=0.5) is None
    assert ended(status="skipped") is None
    assert ended(gap=math.nan) is None
    assert ended(config=replace(ended.config, clock="work")) is None
    assert ended(config=replace(ended.config, path=(1.0,))) is None
    (other,) = compose_runs([*USPS, "solver=bcfw", "solver.average=true"])
    assert ended(config=replace(ended.config, solver=other.solver)) is None
    monkeypatch.setattr(recommendation, "table", lambda: Table([WORDS], TABLE.times))
    assert ended() is None  # of another oracle
    monkeypatch.setattr(recommendation, "table", lambda: None)
    assert ended() is None


def test_the_line_is_on_stderr_unless_a_run_is_quiet(monkeypatch, tmp_path):
    monkeypatch.setattr(recommendation, "sooner", lambda config, outcome: "quicker")
    words = ("run", *USPS, "solver=bcfw", "budget.max_iterations=1", f"results_dir={tmp_path}")
    done = call(*words)
    assert done.stderr.endswith("quicker\n")
    assert "quicker" not in done.stdout
    for more in ("quiet=true", "--json"):
        assert "quicker" not in call(*words, more).stderr
