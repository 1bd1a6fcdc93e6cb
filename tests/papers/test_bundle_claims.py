"""What the bundle-method report says, judged by hand-made traces."""

import math

import pytest
from bundles import above, run_of, statement_runs
from traces import set_columns

from ssvm_bench.claims.judging import FAILS, HOLDS, UNKNOWN, judge
from ssvm_bench.figures.document import bold
from ssvm_bench.papers.bmrm import bundle_runs, paper
from ssvm_bench.papers.bmrm.bundle_runs import Data, Setup
from ssvm_bench.papers.bmrm.costs import costs, of_report, readings
from ssvm_bench.papers.bmrm.paper import PAPER

CLAIMS = {claim.key: claim for claim in PAPER.claims}


def judged(runs):
    found = costs(runs)
    return [judge(claim, found) for claim in CLAIMS.values()]


def test_all_statements_hold_where_they_should():
    found = judged(statement_runs())[:7]
    assert [one.verdict for one in found] == [HOLDS] * 7
    assert [one.ours for one in found] == [
        "150 against 500, at λ = 1",
        "λ = 10: 0.91, λ = 1: 4",
        "λ = 10: 0.92×, λ = 1: 1.2×",
        "P = 1, 2, 4; λ = 10: 100 → 90 → –, λ = 1: 500 → 400 → 300",
        "λ = 10: 10 % against 40 % (rises in 10 % and 40 %), "
        "λ = 1: 10 % against 40 % (rises in 20 % and 50 %)",
        "15 s against 60 s, at λ = 1",
        "Prox-BMRM: λ = 10: 0.91, λ = 1: 4; Prox-P=16-BMRM: λ = 10: 0.83, λ = 1: 5",
    ]


@pytest.mark.parametrize(
    ("number", "changes", "verdict"),
    [
        (0, {"prox_1": {"iterations": 500}}, FAILS),
        (0, {"plain_1": {"reached": False}}, HOLDS),
        (0, {"prox_1": {"reached": False}}, UNKNOWN),
        (0, {"prox_1": {"iterations": 500, "reached": False}}, FAILS),
        (0, {"prox_1": None, "prox_10": None}, UNKNOWN),
        (1, {"prox_1": {"seconds": 70}}, FAILS),
        (1, {"plain_1": {"reached": False}}, HOLDS),
        (1, {"plain_1": {"reached": False, "seconds": 10}}, UNKNOWN),
        (1, {"prox_1": None}, UNKNOWN),
        (2, {"both_1": {"seconds": 15}}, FAILS),
        (2, {"plain_1": {"reached": False}}, HOLDS),
        (2, {"both_1": {"P": 8}, "both_10": {"P": 8}}, UNKNOWN),
        (3, {"two_10": {"iterations": 100}}, FAILS),
        (3, {"four_1": {"reached": False}}, UNKNOWN),
        (3, {"two_10": None, "two_1": None, "four_1": None}, UNKNOWN),
        (3, {"two_10": None}, HOLDS),
        (3, {"two_10": None, "plain_1": None}, UNKNOWN),
        (4, {"plain_10": {"primal": above(0.15)}}, FAILS),
        (4, {"plain_10": {"primal": above(0.005)}, "prox_10": {"primal": above(0.0)}}, FAILS),
        (4, {"prox_1": {"rises": None}}, HOLDS),
        (5, {"prox_1": {"seconds": 60}}, FAILS),
        (6, {"prox_1": {"seconds": 12}}, FAILS),
        (6, {"both_10": {"seconds": 1}}, FAILS),
        (6, {"both_1": None, "both_10": None}, UNKNOWN),
        (6, {"plain_1": {"reached": False}, "prox_1": {"seconds": 11}}, UNKNOWN),
    ],
)
def test_each_statement_is_judged_by_its_condition(number, changes, verdict):
    assert judged(statement_runs(**changes))[number].verdict == verdict


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        ({"plates": 4, "mnist": 10, "landmarks": 20}, HOLDS),
        ({"plates": 10, "mnist": 4, "landmarks": 20}, FAILS),
        ({"plates": 4, "mnist": 20, "landmarks": 10}, HOLDS),
        ({"plates": 4, "mnist": 10}, UNKNOWN),
    ],
)
def test_where_several_planes_help_most_is_judged_by_all_benchmarks(seconds, verdict):
    runs = []
    for name, several in seconds.items():
        runs += [run_of(method, 1, dataset=name) for method in ("bmrm", "prox_bmrm")]
        runs += [run_of("prox_p_bmrm", 1, P=16, dataset=name, seconds=several)]
    (table,) = paper.across(costs(runs))
    assert table.title == "What the report says of its benchmarks"
    assert [row[3] for row in table.rows] == [bold(verdict)]


def test_runs_that_differ_in_more_than_the_seed_are_not_judged():
    other = run_of("prox_bmrm", 1, options={"drop": 5})
    found = judged([*statement_runs(), other])
    assert found[0].verdict == UNKNOWN
    assert found[0].note == "runs of Prox-BMRM differ in more than the seed"


def test_both_rules_of_accepting_a_point_are_judged():
    slow = {"iterations": 600, "seconds": 70, "rises": 0.1}
    rules = {"sufficient": statement_runs(), "always": statement_runs(prox_1=slow, prox_10=slow)}
    runs = []
    for rule, of_rule in rules.items():
        for run in of_rule:
            solver = run.metadata["config"]["solver"]
            if "prox" in solver["name"]:
                solver["accept"] = rule
            if "prox" in solver["name"] or rule == "always":
                runs.append(run)
    costs_, *_, claims = paper.tables(costs(runs))
    names = ["Prox-BMRM (accept=always)", "Prox-BMRM (accept=sufficient)"] * 2
    assert [row[1] for row in costs_.rows if "Prox-BMRM" in row[1]] == names
    first = "Prox-BMRM needs fewer iterations than BMRM at low λ."
    assert [[row[0], row[3]] for row in claims.rows if first in row[0]] == [
        [f"{first} (4.4; accept=sufficient)", bold(HOLDS)],
        [f"{first} (4.4; accept=always)", bold(FAILS)],
    ]
    # which does not depend on it
    assert sum("falls steadily" in row[0] for row in claims.rows) == 1


def told(runs, key):
    """Return text and verdict of a claim by the runs, for each rule and reading."""
    found = paper.variants(CLAIMS[key], costs(runs))
    return {name: (row.ours or row.note, row.verdict) for name, row in found.items()}


def started(solver, lam_n, seconds, iterations, **more):
    """Return a run that begins with ten passes of SGD, which take half a second each."""
    run = run_of(solver, lam_n, seconds=seconds, iterations=iterations, **more)
    run.metadata["config"]["solver"]["init"] = "sgd"
    set_columns(run, 1, iteration=10, cpu_time=5.0, oracle_time=2.0)
    return run


def test_the_costs_are_read_without_the_start_by_sgd_too():
    runs = [run_of("bmrm", 1, seconds=20), run_of("bmrm", 10, seconds=10)]
    runs += [started("prox_bmrm", 1, 15.1, 49), started("prox_bmrm", 10, 8.9, 29)]
    found = readings(costs(runs))
    assert list(found) == ["", "without SGD"]
    prox = [cost for cost in found["without SGD"] if cost.setup.method.title == "Prox-BMRM"]
    # nine of ten passes are left out, and their seconds but for the last evaluation's
    assert [cost.iterations for cost in prox] == [(20, 20), (40, 40)]
    assert [round(cost.seconds.low, 9) for cost in prox] == [4.0, 10.2]
    assert told(runs, "growing_speedup") == {
        "as measured": ("λ = 10: 1.1, λ = 1: 1.3", HOLDS),
        "without SGD": ("λ = 10: 2.5, λ = 1: 2", FAILS),
    }
    _, others, *_ = paper.tables(costs(runs))
    assert [*others.rows[1]] == ["10", "Prox-BMRM", "1.1", "20", "4", "2.5", "4.6"]


def test_a_speed_up_of_sgd_is_none_of_prox_bmrm():
    """Ten passes, the last of them evaluated by the one iteration that there is after them."""
    runs = [run_of("bmrm", 1, seconds=20), run_of("bmrm", 10, seconds=10)]
    runs += [started("prox_bmrm", 1, 15.1, 49), started("prox_bmrm", 10, 8.9, 29)]
    set_columns(runs[-1], iteration=[0, 10, 10])
    for text, verdict in told(runs, "growing_speedup").values():
        assert text == "SGD alone reaches ε at λ = 10: speed-ups there are those of SGD"
        assert verdict == UNKNOWN


def test_a_run_that_ended_in_its_start_is_not_read_without_it():
    run = started("prox_bmrm", 1, 2, 4)
    set_columns(run, iteration=[0, 2, 4])
    _, prox = costs([run_of("bmrm", 1), run])
    assert math.isnan(prox.start_iterations)


def test_the_costs_are_read_at_the_seconds_of_the_report_s_passes():
    pass_seconds = 3600 * 0.04878 / 157
    runs = [run_of("bmrm", 1, seconds=10), run_of("prox_bmrm", 1, seconds=20, iterations=10)]
    for run in runs:
        set_columns(run, gram_time=1.0, qp_time=2.0)
    plain, prox = readings(costs(runs))["at the report's pass"]
    many, few = 100 * pass_seconds + 3, 10 * pass_seconds + 3
    found = [plain.seconds.low, prox.seconds.low, prox.speedup.low]
    assert found == pytest.approx([many, few, many / few])


def test_the_report_s_own_numbers_are_judged_by_the_same_measures():
    """On its landmarks the speed-up does not grow; P = 16 helps more there than on MNIST."""
    names, claim = ("mnist", "landmarks", "plates"), CLAIMS["growing_speedup"]
    found = {name: judge(claim, of_report(name)) for name in names}
    assert [row.verdict for row in found.values()] == [HOLDS, FAILS, HOLDS]
    assert found["landmarks"].ours == "λ = 10000: 3.6, λ = 1000: 5.4, λ = 100: 2.1, λ = 10: 2.4"
    curves = judge(CLAIMS["fluctuates"], of_report("mnist"))
    assert curves.verdict == UNKNOWN  # Table 2 has no curves
    row = judge(CLAIMS["planes_by_data"], [cost for name in found for cost in of_report(name)])
    assert (row.ours, row.verdict) == ("mnist: 1.3×, landmarks: 1.4×, plates: 1.9×", HOLDS)


def test_what_the_report_s_iterations_take_is_told():
    """On its landmarks, speed-ups in iterations fall with λ: passes of BMRM differ in length."""
    about = {"dataset": "landmarks", "source": "synthetic"}
    runs = [run_of(method, 10, **about) for method in ("bmrm", "prox_bmrm")]
    for run in runs:
        run.metadata["dataset"]["n"], run.metadata["lam"] = 7000, 10 / 7000
    (table,) = (one for one in paper.tables(costs(runs)) if one.title.startswith("The report's"))
    plain, prox = ([row for row in table.rows if row[1] == name] for name in ("BMRM", "Prox-BMRM"))
    assert [row[3] for row in plain] == ["83.1", "144", "79.8", "159"]
    assert [row[3] for row in prox] == ["89.1", "90.8", "93.1", "90.9"]
    assert [row[4] for row in prox] == ["3.9", "3.4", "2.5", "1.4"]
    assert [row[5:] for row in prox] == [["3.6"], ["5.4"], ["2.1"], ["2.4"]]
    others = paper.tables(costs([run_of("bmrm", 5)]))  # a λ that is not in its Table 2
    assert not [one for one in others if one.title.startswith("The report's")]


def test_figure_3_is_of_mnist():
    about = {"dataset": "plates", "source": "synthetic", "rises": 0.0}
    *_, claims = paper.tables(costs([run_of(of, 1, **about) for of in ("bmrm", "prox_bmrm")]))
    assert not [row for row in claims.rows if "fluctuates" in row[0] or "steadily" in row[0]]


def test_lambda_is_matched_where_bmrm_takes_the_report_s_iterations():
    about = {"dataset": "plates", "source": "synthetic"}
    setup = Setup(Data("plates", "synthetic", 6788, "", ""), 2000 / 6788, bundle_runs.BMRM, 0.01)
    assert setup.report_lam == 100
    assert bundle_runs.printed(setup, "iterations") == 840
    few = setup._replace(data=setup.data._replace(n=10), lam=200)
    assert few.report_lam == 100
    assert math.isnan(bundle_runs.printed(few, "iterations"))
    run = run_of("bmrm", 2000, **about)
    run.metadata["dataset"]["n"], run.metadata["lam"] = 6788, 2000 / 6788
    costs_, *_ = paper.tables(costs([run]))
    assert costs_.rows[0][:5] == ["2000 (for 100)", "BMRM", "100", "0", "840"]


@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize(("solved", "verdict"), [(250, HOLDS), (100, FAILS), (400, FAILS)])
def test_inner_problems_are_counted_by_iteration(solved, verdict, share):
    run = run_of("prox_bmrm", 1)
    set_columns(run, qps=share * solved, rejected=100.0 * (1 - share))
    runs = [run_of("bmrm", 1), run]
    ((_, found),) = told(runs, "few_qps").values()
    assert found == verdict
    # rejected points are no iterations
    assert told(runs, "fewer_iterations")[""][0].startswith("100 against")
    assert told(statement_runs(), "few_qps")[""][1] == UNKNOWN


@pytest.mark.parametrize(("best", "verdict"), [(50, HOLDS), (100, HOLDS), (49, FAILS)])
def test_the_constants_are_held_against_the_best(best, verdict):
    def prox(iterations, **options):
        return run_of("prox_bmrm", 1, iterations=iterations, options=options)

    runs = [run_of("bmrm", 1), prox(100, T=100, K=0.01), prox(best, T=10, K=0.01)]
    runs += [prox(200, T=100, K=0.1)]
    (found,) = told(runs, "constants").values()
    assert found[1] == verdict
    # the other claims are judged by the usual ones
    assert told(runs, "fewer_iterations")[""][0] == "100 against 100, at λ = 1"


def test_the_constants_are_judged_on_the_report_s_number_of_examples():
    runs = [run_of("bmrm", 1)]
    runs += [run_of("prox_bmrm", 1, options={"T": T, "K": K}) for T, K in ((100, 0.01), (9, 0.1))]
    for run in runs:
        run.metadata["dataset"]["n"] = 6000
    note = "the report has no experiment on 6000 examples, only on 60000"
    assert told(runs, "constants")[""] == (note, UNKNOWN)


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        ({1: 9, 16: 5, 32: 6}, HOLDS),
        ({1: 9, 16: 5, 32: 4}, FAILS),
        ({1: 4, 16: 5}, FAILS),
        ({1: 9, 16: 5}, UNKNOWN),
        ({1: 9, 8: 5}, UNKNOWN),
    ],
)
def test_the_best_number_of_planes_needs_a_larger_one(seconds, verdict):
    runs = [run_of("p_bmrm" if P > 1 else "bmrm", 1, P=P, seconds=seconds[P]) for P in seconds]
    assert told(runs, "best_planes")[""][1] == verdict


def test_the_classical_method_is_judged_for_each_rule_of_its_prox_term():
    def classical(alpha, lam, iterations=100):
        return run_of("classical_bundle", lam, iterations=iterations, options={"alpha": alpha})

    claims = [claim for key, claim in CLAIMS.items() if key.startswith("classical_")]
    runs = statement_runs()
    *_, said = paper.tables(costs(runs))
    assert not any("classical" in row[0] for row in said.rows)
    for alpha, iterations in ((None, 600), (10.0, 400)):
        runs += [classical(alpha, 1, iterations), classical(alpha, 10, 50)]
    table = costs(runs)
    *_, said = paper.tables(table)
    assert sum("classical" in row[0] for row in said.rows) == 2
    found = [judge(claim, table) for claim in claims]
    assert [one.verdict for one in found] == [FAILS, HOLDS]
    assert found[1].ours == "λ = 10: 50 against 100, λ = 1: 400 against 500"
    only = costs([*statement_runs(), classical(1.0, 1)])
    assert [judge(claim, only).verdict for claim in claims] == [UNKNOWN, UNKNOWN]


def test_methods_that_were_timed_on_another_processor_than_bmrm_are_named():
    runs = [run_of("bmrm", 1), run_of("prox_bmrm", 1), run_of("p_bmrm", 1, P=2)]
    for run, processor in zip(runs, ("A", "B", "A"), strict=True):
        run.metadata["cpu"] = processor
    (note,) = bundle_runs.elsewhere(runs)
    assert note.startswith("Timed on another processor than BMRM: Prox-BMRM.")
    assert bundle_runs.elsewhere(runs[::2]) == bundle_runs.elsewhere(runs[1:]) == []
