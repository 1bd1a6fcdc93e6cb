"""What a paper leaves open, on planted runs: verdicts that change or stay, and what is missing."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from program import call, of_a_checkout
from test_claims import BEST, EVERY, ITERATIONS, dataset_of, paper, run, solver_of, varied
from traces import columns_of

from benchmarks.report import CLOCK_READS
from ssvm_bench.claims import fidelity
from ssvm_bench.claims.cases import cases
from ssvm_bench.claims.questions import QUANTITIES, Number, number_claim, sides, usual
from ssvm_bench.config.catalog import entries
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.figures.kind import FigureData
from ssvm_bench.papers.mpbcfw.paper import PAPER as MPBCFW
from ssvm_bench.report.experiment_files import kinds, load
from ssvm_bench.results import measurements
from ssvm_bench.results.table import Runs, instance_of

QUESTIONS = {question.key: question for question in MPBCFW.questions}
OPEN = [question for question in QUESTIONS.values() if question.option]
GROUPS = {name: group for group, name in (one.option.split(".") for one in OPEN)}


def at(traces, option, value):
    """Return runs as they would be with an option at another value; data are then others."""
    group = GROUPS[option]
    found = []
    for trace in traces:
        config = trace.metadata["config"]
        metadata = {**trace.metadata, "config": {**config}}
        metadata["config"][group] = {**config.get(group, {}), option: value}
        if group == "dataset":
            data = metadata["dataset"]
            metadata["dataset"] = {**data, "fingerprint": f"{data['fingerprint']}-{value}"}
        found.append(replace(trace, metadata=metadata))
    return found


def of_solvers(traces, *names):
    return [trace for trace in traces if solver_of(trace) in names]


def effects(traces, results_dir=None):
    best = {instance_of(trace.metadata): BEST for trace in traces}
    return fidelity.find(MPBCFW, traces, best, results_dir, "real")


def find(traces, results_dir=None, key=None):
    """Return the effects on all questions, or on one, with their columns as attributes."""
    found = [SimpleNamespace(**effect) for effect in effects(traces, results_dir)]
    return [effect for effect in found if key in (None, effect.question)]


def answers(traces, results_dir=None):
    """Return question → answers in words, one for each other value."""
    found = {}
    for effect in effects(traces, results_dir):
        found.setdefault((effect["question"], effect["other"]), []).append(effect)
    return {key: fidelity.answer(QUESTIONS[key[0]], mine) for key, mine in found.items()}


def test_a_verdict_that_changes_is_told_with_both_numbers():
    plain = paper("usps", "ocr", "weizmann", "stanford")
    later = [one for one in of_solvers(plain, "mpbcfw") if dataset_of(one) != "stanford"]
    few = 1 + 9 * np.exp(-(((ITERATIONS - 8) / 20.0) ** 2))  # planes in the end
    later += [run("stanford", "mpbcfw", seed, working_set_mean=few) for seed in range(3)]
    traces = plain + at(later, "T", 11)
    found = {(f.key, f.dataset): f for f in find(traces, key="inactive")}
    asked = QUESTIONS["inactive"].claims
    assert found.keys() == {(key, dataset) for key, dataset in EVERY if key in asked}
    changed = {key for key, f in found.items() if f.change == fidelity.CHANGES}
    assert changed == {("planes_grow", "stanford"), ("planes_stable", "stanford")}
    assert {f.change for f in found.values()} == {fidelity.CHANGES, fidelity.STAYS}
    grown = found["planes_grow", "stanford"]
    assert (grown.our_verdict, grown.their_verdict) == ("holds", "does not hold")
    assert (grown.number, grown.repeats, grown.default, grown.other) == (23, 3, "10", "11")
    assert grown.our_median == pytest.approx(1, abs=0.01)
    assert grown.their_median == pytest.approx(0.17, abs=0.01)
    said = answers(traces)["inactive", "11"]
    assert said.startswith(
        f"**2 of {len(found)} verdicts of claims 18, 19, 20, 21, 22, 23, 24, 25, 26 change**: "
        f"claim 23 on Stanford (holds, {grown.ours} → does not hold, {grown.theirs}); claim 24"
    )
    assert "**Lower in all repeats**: claim 23 on Stanford (1 → 0.17)" in said


def test_a_verdict_that_stays_is_told():
    plain = paper("weizmann", "stanford")
    traces = plain + at(of_solvers(plain, "mpbcfw", "bcfw"), "histograms", "shares")
    found = {(f.change, f.ours == f.theirs) for f in find(traces, key="histograms")}
    assert found == {(fidelity.STAYS, True)}
    said = answers(traces)["histograms", "shares"]
    assert said == "**No verdict of claims 1, 7, 22, 23, 24, 25, 26 changes**"


def test_what_has_no_runs_is_not_measured_and_how_to_make_it_is_told(tmp_path):
    said = answers(paper(), tmp_path)
    made_by = {key: QUESTIONS[key[0]].made_by for key in said}
    assert said == {key: f"**not measured**: make it with `{made_by[key]}`" for key in said}
    assert {key for key, _ in said} == QUESTIONS.keys()
    assert {("biases", "constant"), ("biases", "ends")} <= said.keys()


def test_what_is_missing_in_part_is_named():
    plain = paper("weizmann", "stanford")
    multi = of_solvers(plain, "mpbcfw")  # no BCFW with shares
    said = answers(plain + at(multi, "histograms", "shares"))["histograms", "shares"]
    assert said.startswith("**No verdict of claims 22, 23, 24, 25, 26 changes**. Not measured (")
    assert "(no finished runs of BCFW): claim 1 on Weizmann (for HorseSeg); claim 1 on S" in said
    one = at([t for t in multi if dataset_of(t) == "stanford"], "T", 11)
    by = {(f.key, f.dataset): f for f in find(plain + one, key="inactive")}
    assert by["planes_small", "usps"].note == "no finished runs"
    assert by["planes_low", "weizmann"].change == fidelity.MISSING
    assert by["planes_grow", "stanford"].change == fidelity.STAYS
    assert by["passes_slowly", "stanford"].change == fidelity.MISSING  # no horses with T = 11


@pytest.mark.parametrize(
    ("factor", "shift"), [(0.5, fidelity.LOWER), (1, fidelity.ALIKE), (2, fidelity.HIGHER)]
)
def test_numbers_are_lower_higher_or_alike_by_all_their_repeats(factor, shift):
    plain = paper("ocr")
    other = [scaled(trace, factor) for trace in of_solvers(plain, "bcfw", "mpbcfw")]
    traces = plain + at(other, "biases", "ends")
    found = [f for f in find(traces, key="biases") if f.other == "ends"]
    assert {f.key: (f.change, f.shift) for f in found} == {
        "below_plain": (fidelity.STAYS, fidelity.ALIKE),
        "gap_bcfw_10": (fidelity.MEASURED, shift),
        "gap_mpbcfw_10": (fidelity.MEASURED, shift),
        "gap_bcfw_50": (fidelity.MISSING, ""),  # they end at iteration 40
        "gap_mpbcfw_50": (fidelity.MISSING, ""),
    }
    said = answers(traces)["biases", "ends"]
    told = f"{fidelity.SAID[shift]}**: relative gap of BCFW after 10 iterations on OCR ("
    assert said.startswith(f"**No verdict of claim 1 changes**. **{told}")
    assert "(a run ended before iteration 50): relative gap of BCFW after 50 iterations on" in said


@pytest.mark.parametrize("factors", [[1.0, 0.5, 0.5], [0.5]])
def test_repeats_that_overlap_are_alike_and_a_single_one_tells_no_difference(factors):
    plain = paper("ocr", seeds=len(factors))
    both = of_solvers(plain, "bcfw", "mpbcfw")
    other = [scaled(trace, factors[trace.metadata["config"]["seed"]]) for trace in both]
    found = find(plain + at(other, "biases", "ends"), key="biases")
    assert {f.shift for f in found if f.change != fidelity.MISSING} == {fidelity.ALIKE}
    (gap,) = (f for f in found if (f.key, f.other) == ("gap_bcfw_10", "ends"))
    assert gap.their_median < gap.our_min


def scaled(trace, factor):
    """Return a run whose gap is so many times as large."""
    primal, dual = (1 + factor * (trace.frame[name] - 1) for name in ("primal", "dual"))
    frame = trace.frame.assign(primal=primal, dual=dual, gap=primal - dual)
    return replace(trace, columns=columns_of(frame))


def test_a_number_is_that_of_the_last_evaluated_iteration():
    trace = run("stanford", "bcfw", keep=[0, 1, 2, 8, 20])
    (case,) = cases([trace], {})
    last = trace.frame.iloc[3]
    numbers = {"primal": last["primal"], "dual": last["dual"], "call": 2e-3}
    for what, expected in {**numbers, "gap": last["gap"] / last["primal"]}.items():
        found = number_claim(Number(what, "bcfw", 10), ["stanford"]).measure(case)
        assert found.values.tolist() == pytest.approx([expected])
        assert found.note == "evaluated at iteration 8"


def test_runs_are_compared_that_differ_in_one_option():
    plain = paper("ocr", "usps")
    multi, others = of_solvers(plain, "mpbcfw"), ("bcfw", "bcfw_avg", "mpbcfw_avg")
    both = at(at(multi, "T", 11), "approx_order", "fresh")
    traces = plain + at(multi, "T", 11) + at(multi, "approx_order", "fresh") + both
    traces += at(plain, "biases", "ends")
    for key, value in (("inactive", 11), ("order", "fresh")):
        ours, theirs = sides(QUESTIONS[key], value, MPBCFW.questions, traces)
        assert ours == plain
        assert sum(map(QUESTIONS[key].varied, theirs)) == len(multi)
        assert of_solvers(theirs, *others) == of_solvers(plain, *others)
    ours, theirs = sides(QUESTIONS["biases"], "ends", MPBCFW.questions, traces)
    assert {dataset_of(one) for one in (*ours, *theirs)} == {"ocr"}
    assert len(ours) == len(theirs) == 4 * 3


def test_the_same_seeds_and_variants_are_compared():
    plain, counted = paper("ocr", seeds=5), varied(paper("ocr"), dataset_costs=MPBCFW.costs)
    fresh = at(of_solvers(counted, "mpbcfw"), "approx_order", "fresh")[:2]
    ours, theirs = sides(QUESTIONS["order"], "fresh", MPBCFW.questions, plain + counted + fresh)
    assert {one.metadata["clock"] for one in (*ours, *theirs)} == {"work"}
    assert {one.metadata["config"]["seed"] for one in (*ours, *theirs)} == {0, 1}
    found = [f for f in find(plain + counted + fresh, key="order") if f.dataset == "ocr"]
    assert {(f.counted, f.repeats) for f in found if f.change != fidelity.MISSING} == {(True, 2)}


def test_claims_are_judged_by_the_usual_runs():
    plain = paper()
    multi = of_solvers(plain, "mpbcfw")
    for option, value in (("T", 11), ("approx_order", "fresh"), ("biases", "ends")):
        other = at(multi, option, value)
        assert usual(MPBCFW.questions, plain + other) == plain
        assert usual(MPBCFW.questions, other) == other  # there is nothing else
    sweep = plain + at(multi, "T", 5)  # no question: all is judged
    assert usual(MPBCFW.questions, sweep) == sweep

    def claims(traces):
        (output,) = kinds()["claims"].outputs(FigureData(Runs(traces)), ["mpbcfw"])
        return output.markdown()

    assert claims(plain + at(multi, "T", 11)) == claims(plain)


def bench(folder, *rows, machine="cpu"):
    named = dict.fromkeys(measurements.Measurement._fields, "")
    content = {"measurements": [{**named, **row, "more": 1} for row in rows]}
    path = folder / measurements.FOLDER / f"{machine}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def test_the_bench_s_row_is_the_answer(tmp_path):
    quantity = {"quantity": CLOCK_READS, "unit": "%", "low": 1.5, "high": 3.25}
    real = {"subject": "usps", "source": "real", "value": 2.5, **quantity}
    bench(tmp_path, real, {"subject": "ocr", "source": "synthetic", "value": 9.0, **quantity})
    found = {f.dataset: f for f in find(paper(), tmp_path, "clock")}
    assert (found["usps"].their_median, found["usps"].change) == (2.5, fidelity.MEASURED)
    assert found["ocr"].change == fidelity.MISSING
    assert found["ocr"].note == "no such row in bench/"
    assert answers(paper(), tmp_path)["clock", ""] == (
        "Reads of the clock, of an exact pass: **2.5 % (1.5 – 3.25) on USPS**. Not measured (no "
        "such row in bench/): reads of the clock, of an exact pass on OCR"
    )


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"measurements": [3]}', "\x00", '{"measurements": {}}']
)
def test_a_damaged_bench_file_says_nothing(tmp_path, text):
    path = tmp_path / measurements.FOLDER / "cpu.json"
    path.parent.mkdir()
    path.write_text(text)
    assert {f.change for f in find(paper(), tmp_path, "clock")} == {fidelity.MISSING}


def test_of_two_machines_the_row_that_was_measured_last_counts(tmp_path):
    row = {"subject": "usps", "source": "real", "quantity": CLOCK_READS}
    bench(tmp_path, {**row, "value": 1.0, "date": "2026-11-25"}, machine="a")
    bench(tmp_path, {**row, "value": 2.0}, machine="b")  # before rows had dates
    bench(tmp_path, {**row, "value": 3.0, "date": "2026-09-30"}, machine="c")
    assert [one.value for one in measurements.read(tmp_path)] == [1.0]


def test_the_document_has_a_row_for_each_question_and_value():
    plain = paper()
    traces = plain + at(of_solvers(plain, "mpbcfw"), "T", 11)
    (made,) = kinds()["fidelity"].outputs(FigureData(Runs(traces)), ["mpbcfw"])
    assert made.name == "fidelity"
    text = made.markdown()
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) == sum(len(question.others) or 1 for question in QUESTIONS.values())
    assert "`solver.T=10` → `11`" in text
    assert "`oracle.partial_optimality=false` → `true`" in text
    numbers = {line.split(" | ")[0] for line in text.splitlines() if line.endswith(" |")}
    assert {f"| {number}" for number in range(18, 27)} <= numbers
    assert "NOT on the real data" not in text
    assert made.table["change"].notna().all()


def test_every_question_is_about_what_there_is():
    claims = {claim.key: claim for claim in MPBCFW.claims}
    assert len(claims) == 35
    for question in QUESTIONS.values():
        assert set(question.claims) <= claims.keys()
        assert {number.what for number in question.numbers} <= QUANTITIES.keys()
        assert set(question.datasets) <= entries("dataset").keys()
        assert bool(question.option) != bool(question.bench)
        assert all([question.section, question.says, question.made_by])
        assert question.question.endswith("?")
        for dataset in question.datasets if question.option else ():
            (config,) = compose_runs([f"dataset={dataset}", "solver=mpbcfw"])
            group, name = question.option.split(".")
            assert getattr(getattr(config, group), name) == question.default
            for other in question.others:
                assert other != question.default
                compose_runs([f"dataset={dataset}", f"{question.option}={str(other).lower()}"])
    assert QUESTIONS["clock"].bench == CLOCK_READS


def test_the_experiment_answers_every_question():
    def value(config, question):
        group, name = question.option.split(".")
        return getattr(getattr(config, group), name, question.default)

    experiment = load("fidelity")
    assert experiment.figures == {"fidelity": ("mpbcfw",)}
    configs = experiment.configs()
    multi = [config for config in configs if config.solver.name == "mpbcfw"]
    for question in OPEN:
        for dataset in question.datasets:
            values = {value(each, question) for each in multi if each.dataset.name == dataset}
            assert values >= {question.default, *question.others}
    # what is by default has been run before, as part of the paper's figures and costs
    usual_ones = [c for c in configs if not any(value(c, one) in one.others for one in OPEN)]
    assert set(usual_ones) < {*load("mpbcfw_fig4").configs(), *load("mpbcfw_costs").configs()}
    assert len(usual_ones) == 3 * (2 * 2 + 4 * 2)


@of_a_checkout
def test_runs_become_a_document(tmp_path):
    file = tmp_path / "mine.yaml"
    grid = "{seed: range(2), dataset: usps, solver: [bcfw, mpbcfw], solver.T: [1, 10, 11]}"
    file.write_text(f"grid: {grid}\nfigures: {{fidelity: [mpbcfw]}}\n")
    options = ("clock=work", "budget.max_iterations=12", f"results_dir={tmp_path}")
    small = ("dataset.source=synthetic", "dataset.n_samples=30")
    assert call("experiment", file, *small, *options, "quiet=true").exit_code == 0
    (page,) = tmp_path.glob("figures/mine/*/fidelity-synthetic.md")
    plotted = page.read_bytes()
    assert not [*tmp_path.glob("fidelity*")]
    assert "NOT on the real data" in page.read_text()
    table = pd.read_csv(page.with_suffix(".csv"))
    committed = Path(__file__).parents[2] / "results/fidelity.csv"
    assert list(table) == list(pd.read_csv(committed, nrows=0))
    made = table[table["change"] != fidelity.MISSING].set_index("key")
    assert set(made["question"]) == {"inactive"}
    assert set(made.index) == {"planes_small", "passes_small"}
    assert set(made["repeats"]) == {2}
    assert call("plot", file, *small, *options).exit_code == 0
    assert page.read_bytes() == plotted
