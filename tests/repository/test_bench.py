"""The bench: what its numbers are made of, its report, and the targets of the Makefile."""

import importlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import oracle, problem, random_chains, random_graphs, solver
from program import forget_data, real_data

from benchmarks import (
    checks,
    chunking,
    first_minute,
    first_sweep,
    graphs,
    newcomer,
    passes,
    processes,
    report,
    serving,
    threads,
)
from benchmarks.__main__ import main
from benchmarks.estimator import measure_estimator
from benchmarks.jobs import FUNCTIONS, MATTERS, SOLVERS, Part, jobs, part_of
from benchmarks.passes import FIRST, Stopwatch, Timings, summarise
from benchmarks.streams import measure_streams
from benchmarks.transductive import growth
from ssvm_bench import __version__
from ssvm_bench.base import compiler
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.precompiled import Precompiled
from ssvm_bench.cli.commands import main as cli
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import conll2000
from ssvm_bench.results.provenance import THREAD_VARIABLES
from ssvm_bench.runs import runner
from ssvm_bench.runs.components import load_dataset
from ssvm_bench.runs.terminal import Display

ROOT = Path(__file__).parents[2]
N_PICTURES = 6
TARGETS = (
    *("run", "test", "test-processors", "test-whole", "test-site", "coverage", "check"),
    *("kernels", "docs", "bench", "bench-all", "answer", "quickstart", "rivals", "beyond"),
    *("figures", "options", "pictures", "papers-pages", "update-reference", "lock", "clean"),
    *("streams", "dual-coordinate"),  # those of the papers, by folder
    *("reproduce", "reproduce-quick", "fidelity"),
    *("transduction", "network"),
)


def timings(exact, approximate=np.nan, product=1.0, planes=np.nan, shape=(2, 12)):
    parts = (product, exact, approximate, 0.5, planes)
    return Timings(*(np.full(shape, part) for part in parts))


def row(quantity, *samples, subject="usps", source="synthetic", **more):
    return report.from_samples(subject, source, quantity, list(samples), **more)


def ours(*arguments):
    """Call the bench in this process; what it raises is raised."""
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture
def one_thread(monkeypatch):
    """Set the variables that `main` sets, so that they end with the test; unset that of `make`."""
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "1")
    monkeypatch.delenv("NUMBA_OPT", raising=False)


def test_numbers_of_other_kernels_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_OPT", "1")
    with pytest.raises(ConfigError, match=r"NUMBA_OPT is set.*Unset it, or leave out --json"):
        ours("--dataset", "usps", "--json", str(tmp_path / "x.json"))


def measured(**solvers):
    return {one.quantity: one for one in summarise(("ocr", "real"), solvers)}


def test_a_measurement_is_the_median_of_its_samples_and_meets_what_it_does_not_exceed():
    one = row("x", 3.0, 1.0, 2.0, note="why")
    assert (one.value, one.low, one.high, one.note) == (2.0, 1.0, 3.0, "why")
    ((subject, quantity), target), *_ = report.TARGETS.items()
    for factor, met in ((0.5, True), (1.0, True), (1.01, False)):
        assert row(quantity, factor * target, subject=subject, source="real").met is met
    assert row("anything else", 1.0, source="real").met is None


def test_exact_passes_are_averaged_over_the_first_ones_of_all_runs():
    times = timings(exact=4.0, product=2.0)
    times.exact[:, 0] = 24.0
    times.exact[:, FIRST:] = 1e9
    exact = measured(bcfw=times)[f"bcfw: {report.EXACT}"]
    assert exact.series == (12.0, *(FIRST - 1) * [2.0])
    assert exact.value == pytest.approx(3.0)
    assert (exact.low, exact.high, exact.seconds, exact.target) == (2.0, 12.0, 4.0, 4.0)
    assert list(measured(bcfw=times)) == [exact.quantity]


def test_approximate_passes_are_compared_late_and_with_their_own_iteration():
    times = timings(exact=4.0, approximate=3.0, planes=2.0)
    times.approximate[:, -3:], times.planes[:, -3:] = 1.0, 9.0
    approximate = measured(mpbcfw=times)[f"mpbcfw: {report.APPROXIMATE}"]
    assert (approximate.value, approximate.seconds) == (0.25, 1.0)
    assert approximate.note == "at 9.0 planes a term"


def test_averages_are_compared_with_the_solver_without():
    found = measured(bcfw=timings(2.0), bcfw_avg=timings(3.0), fw_avg=timings(1.0))
    assert found["bcfw_avg / bcfw: exact pass"].value == 1.5
    assert not [name for name in found if name.startswith("fw_avg /")]


def test_a_stopwatch_sees_every_pass_of_a_solver():
    clock = Stopwatch(1e-6, 1e-9)
    tiny = solver(problem(random_chains([3, 2, 4], K=3, f=2)), "mpbcfw", clock=clock, M=3)
    tiny.iterate()
    assert len(clock.passes) == tiny.approx_passes > 0
    assert all(spent > 0 for spent, _ in clock.passes)
    assert clock.passes[0][1] == tiny.working_set_mean()
    assert 0 < clock.share < 1


def test_processes_have_their_own_memory_and_say_why_they_fail():
    with pytest.raises(RunFailedError, match=r"solver=nope failed: ssvm-bench: error: .*mpbcfw"):
        processes.launch("run", "solver=nope")
    ours = np.ones(50_000_000)
    assert 10**7 < processes.launch("--help").peak < ours.nbytes


def launched_here(*words, **environment):
    """Do in this process what `processes.launch` does in one of its own."""
    CliRunner().invoke(cli, words, catch_exceptions=False)
    return processes.Finished(1000.0, 1000.0, 100_000_000)


def test_the_bench_measures_small_instances(tmp_path, monkeypatch, one_thread):
    for name, value in {"REPEATS": 1, "LONG": 2, "launch": launched_here}.items():
        monkeypatch.setattr(processes, name, value)
    folder = tmp_path / "new"
    data = ("--dataset", "usps", "dataset.source=synthetic", "dataset.n_samples=30")
    arguments = ("--passes", "2", "--repeats", "2", "--json", str(folder), *data)
    result = ours(*arguments)
    assert result.exit_code == 0
    assert "usps (synthetic data)" in result.stdout

    (path,) = folder.iterdir()
    assert path.name.startswith(f"{__version__}-")
    assert path.suffix == ".json"
    content = json.loads(path.read_text(encoding="utf-8"))
    assert set(content) == {"provenance", "measurements"}
    (origin,) = content["provenance"]
    assert {origin["threads"][name] for name in THREAD_VARIABLES} == {"1"}
    rows = {row["quantity"]: row for row in content["measurements"]}
    assert {f"{name}: {report.EXACT}" for name in SOLVERS} <= set(rows)
    assert {f"mpbcfw: {what}" for what in (report.OVERHEAD, report.MEMORY)} <= set(rows)
    assert {"mpbcfw_avg / mpbcfw: approximate pass", report.HELP, "product"} <= set(rows)
    # these are differences, and may be noise
    differences = (report.CHECKED_ANSWERS, report.RESTART, report.ESTIMATOR)
    for quantity, row in rows.items():
        assert row["low"] <= row["value"] <= row["high"], row
        assert row["low"] > 0 or quantity.endswith(differences), row
        assert row["quantity"] in result.stdout
        assert row["met"] in (None, True, False)
    exact = rows[f"bcfw: {report.EXACT}"]
    assert (len(exact["series"]), exact["target"]) == (2, 8.0)

    for module, function in FUNCTIONS.items():
        if module != "passes":
            monkeypatch.setattr(f"benchmarks.{module}.{function}", lambda *_: iter(()))
    again = ours(*arguments, "--solver", "fw")
    (line,) = (line for line in again.stdout.splitlines() if f"fw: {report.EXACT}" in line)
    assert re.search(r"\| +\d+\.\d\d \|", line)  # divided by what the file held


def test_worse_ratios_than_the_stored_ones_are_red(tmp_path):
    path = tmp_path / "bench.json"
    assert report.stored(path) == report.stored(None) == {}
    names = ("old", "same", "noise", "worse")
    report.write(path, [*(row(name, 1.0) for name in names), row("time", 1.0, unit="s")], {})
    before = report.stored(path)
    assert before == {("usps", "synthetic", name): 1.0 for name in names}
    now = {"same": 1.0, "noise": 1.29, "worse": 1.31, "new": 9.0}
    against = {
        name: report._against(row(name, value), before.get(("usps", "synthetic", name)))
        for name, value in now.items()
    }
    assert against == {"same": "1.00", "noise": "1.29", "worse": "[bold red]1.31[/]", "new": ""}
    # no seconds: those depend on the machine
    assert report._against(row("time", 9.0, unit="s"), 1.0) == ""


def test_a_row_keeps_what_it_was_measured_by_until_it_is_measured_again(tmp_path):
    path = tmp_path / "bench.json"
    keys = [("usps", "a"), ("usps", "b"), ("ocr", "a")]

    def rows(*values):
        return [row(key[1], v, subject=key[0]) for key, v in zip(keys, values, strict=False)]

    def stored():
        content = json.loads(path.read_text(encoding="utf-8"))
        origins = content["provenance"]
        assert all(set(origin) == {"git"} for origin in origins)
        return [
            (row["subject"], row["quantity"], row["value"], origins[row["provenance"]]["git"])
            for row in content["measurements"]
        ]

    report.write(path, rows(1.0, 2.0, 3.0), {"git": "old"})
    report.write(path, rows(4.0), {"git": "new"})
    expected = [("usps", "a", 4.0, "new"), ("usps", "b", 2.0, "old"), ("ocr", "a", 3.0, "old")]
    assert sorted(stored()) == sorted(expected)
    for one in rows(5.0, 6.0, 7.0):
        report.write(path, [one], {"git": "new"})
    expected = [("usps", "a", 5.0, "new"), ("usps", "b", 6.0, "new"), ("ocr", "a", 7.0, "new")]
    assert sorted(stored()) == sorted(expected)
    assert json.loads(path.read_text(encoding="utf-8"))["provenance"] == [{"git": "new"}]
    assert report.stored(path)["usps", "synthetic", "a"] == 5.0


def test_a_row_that_fails_is_told_and_the_others_are_measured(tmp_path, monkeypatch, one_thread):
    path, held = tmp_path / "bench.json", []

    def measure(what):
        for number in (1.0, 2.0):
            yield row(f"{what} {number:g}", number)
            # what has been measured so far is in the file already
            held.append({key[2] for key in report.stored(path)})

    def fail(*_):
        yield from measure("before")
        raise ValueError("no such cut")

    for module, function in FUNCTIONS.items():
        does = fail if module == "passes" else lambda *_, module=module: measure(module)
        monkeypatch.setattr(f"benchmarks.{module}.{function}", does)
    result = CliRunner().invoke(main, ("--dataset", "usps", "--json", str(path)))
    assert isinstance(result.exception, RunFailedError)
    assert result.exception.exit_status == 1
    assert "usps: passes failed" in str(result.exception)
    assert "failed: ValueError: no such cut" in result.stderr
    measured = {*FUNCTIONS, "before"} - {"passes", "transductive"}
    expected = {f"{name} {k}" for name in measured for k in (1, 2)}
    assert {key[2] for key in report.stored(path)} == expected
    assert [len(rows) for rows in held] == list(range(1, len(expected) + 1))
    for name in expected:
        assert name in result.stdout
        assert f"  usps (synthetic): {name}: " in result.stderr


def plan(parts, few=True):
    return jobs(parts, {name: (f"dataset={name}",) for name in parts}, 20, 3, True, few)


def test_what_matters_is_planned_wherever_its_data_come_from(monkeypatch):
    planned = {}
    monkeypatch.setattr("benchmarks.__main__._each", lambda work, keep, line: planned.update(work))
    assert ours().exit_code == 0
    assert set(planned) == {job.title for job in plan(MATTERS)}


def test_everything_that_fits_is_measured_on_a_dataset_that_is_named():
    planned = plan({"usps": Part(), "ocr": Part()}, few=False)
    assert [job.title for job in planned[:2]] == ["usps: processes", "ocr: processes"]
    modules = {job.module for job in planned if job.subject == "ocr"}
    assert modules == FUNCTIONS.keys() - {"transductive"}
    assert all(job.most is None for job in planned)
    assert {job.arguments[1] for job in planned if job.module == "passes"} == {SOLVERS}
    others = plan({"ssl_bci": part_of("ssl_bci")}, few=False)
    assert [job.module for job in others] == ["transductive"]
    assert part_of("usps") == Part()


SHARES = f"bcfw: {report.OUTSIDE_ORACLE}", f"mpbcfw: {report.IN_ORACLE}"
PARTIALLY = "superpixels that are partially optimal"
SERVING = [report.SIZE, report.LOADED]
SERVING += [f"{of}{rival}" for of in (report.ONE, report.BATCH) for rival in ("", " / LinearSVC")]
THREADS = [report.THREADS.format(kind) for kind in ("exact pass", "evaluation")]
BY_TWO = [
    report.THREADS.format(f"{threads.ITERATIONS} iterations of {', '.join(solver)}")
    for solver in threads.SOLVERS["mnist"]
]
ROWS = [  # dataset, examples, what is measured of it, the rows
    ("ssl_bci", 200, "transductive", [report.CONVERGENCE.format(one) for one in ("linear", "rbf")]),
    ("usps", 120, "rivals", [report.RIVAL]),
    ("usps", 4, "rivals", []),  # not all digits are among them
    ("ocr", 4, "rivals", []),
    ("adult", 80, "coordinate", [report.OPTIMA, report.LIBLINEAR]),
    ("abalone", 80, "coordinate", [report.OPTIMA, report.LIBLINEAR]),
    ("usps", 80, "coordinate", [report.COORDINATE]),  # which LIBLINEAR does not solve
    ("abalone", 200, "first_sweep", [first_sweep.FIRST_SWEEP]),
    ("usps", 200, "first_sweep", []),
    ("weizmann", 6, "graphs", [report.BARE, *SHARES]),
    ("stanford", 6, "graphs", [report.CALL, report.PARTIAL, PARTIALLY, *SHARES]),
    ("usps", 6, "graphs", []),
    ("usps", 6, "checks", [report.CHECKED_ANSWERS, report.CLOCK_READS]),
    ("weizmann", 6, "checks", [report.CHECKED_ANSWERS]),
    ("weizmann", 5, "estimator", []),
    ("weizmann", 5, "serving", []),
    ("usps", 80, "serving", SERVING),
    ("usps", 80, "threads", THREADS),
    ("mnist", 80, "threads", [*THREADS, *BY_TWO]),
    ("ssl_bci", 200, "threads", []),
    ("usps", 4, "first_minute", []),
    ("ocr", 6, "chunking", []),
]
NOTES = {
    report.RIVAL: r"LinearSVC \d+\.\d s with tol=\S+",
    first_sweep.FIRST_SWEEP: r"LIBLINEAR \S+ ms",
    report.CHECKED_ANSWERS: "5 passes",
    **dict.fromkeys(ROWS[0][3], ".*converged.*"),
}


@pytest.mark.parametrize(("name", "n", "module", "quantities"), ROWS)
def test_what_is_measured_of_small_instances(name, n, module, quantities, monkeypatch, request):
    if name in ("weizmann", "stanford"):
        request.getfixturevalue("few_pictures")
    monkeypatch.setattr(graphs, "ROUNDS", 2)
    monkeypatch.setattr(checks, "MOST_PASSES", 5)
    call = (f"dataset={name}", "dataset.source=synthetic", f"dataset.n_samples={n}")
    measure = getattr(importlib.import_module(f"benchmarks.{module}"), FUNCTIONS[module])
    rows = {row.quantity: row for row in measure(call)}
    assert sorted(rows) == sorted(quantities)
    for row in rows.values():
        assert (row.subject, row.source) == (name, "synthetic")
        # the time of LIBLINEAR's sweep is a difference of two times, of whatever else ran
        may_be_negative = row.quantity in (
            report.OPTIMA,
            report.CHECKED_ANSWERS,
            first_sweep.FIRST_SWEEP,
        )
        assert may_be_negative or 0 < row.low <= row.value <= row.high
        assert re.fullmatch(NOTES.get(row.quantity, ".*"), row.note)
    assert all(rows[share].value < 100 for share in rows.keys() & {*SHARES})
    assert report.OPTIMA not in rows or rows[report.OPTIMA].met


def test_the_first_minute_is_that_of_processes_of_their_own(tmp_path, monkeypatch):
    commands, packages = [], []

    def launched(command, environment):
        commands.append((command[2], environment["NUMBA_CACHE_DIR"]))
        packages.append(environment["PYTHONPATH"])
        if command[2] != "run":  # it would end this process
            newcomer.main(*command[2:])
        return processes.Finished(1.0, float(len(commands)), 1)

    monkeypatch.setattr(first_minute, "launched", launched)
    monkeypatch.setattr(first_minute, "find_spec", lambda name: None)
    monkeypatch.setattr(first_minute, "REPEATS", 1)
    rows = {row.quantity: row for row in first_minute.measure_first_minute(("dataset=ocr",))}
    assert [what for what, _ in commands] == ["fit", "chain", "predict", "run", "fit", "linear"]
    first, chain, prediction, run, warm, _ = (folder for _, folder in commands)
    assert first == chain == warm
    assert len({first, prediction, run}) == 3
    assert rows[report.FIRST_FIT.format("an empty")].value == 1.0
    assert rows[report.FIRST_FIT.format("a full") + " / LinearSVC"].value == 5.0 / 6.0

    monkeypatch.setattr(first_minute, "find_spec", lambda name: name)
    monkeypatch.setattr(compiler, "PRECOMPILED", Precompiled())
    with pytest.raises(RunFailedError, match="is installed and does not fit"):
        next(first_minute.measure_first_minute(("dataset=ocr",)))
    monkeypatch.setattr(compiler, "PRECOMPILED", Precompiled(tmp_path))
    with_wheel = [row.quantity for row in first_minute.measure_first_minute(("dataset=ocr",))]
    assert len(with_wheel) == 4
    assert not rows.keys() & {*with_wheel}

    assert {path.split(os.pathsep)[0] for path in packages} == {str(ROOT)}
    monkeypatch.setenv(first_minute.CHECKOUT, "elsewhere")
    monkeypatch.setenv("PYTHONPATH", "libraries")
    list(first_minute.measure_first_minute(("dataset=ocr",)))
    assert packages[-1] == f"elsewhere{os.pathsep}libraries"


def test_growth_is_measured():
    table = growth((50, 100))
    assert table["n"].tolist() == [50, 100]
    assert (table["min"] <= table["seconds"]).all()


@pytest.mark.parametrize(("name", "lam"), [("usps", "1/n"), ("ocr", "200/n")])
def test_the_estimator_makes_the_iterations_of_a_run(name, lam):
    call = (f"dataset={name}", "dataset.source=synthetic", "dataset.n_samples=100")
    (row,) = measure_estimator(call)
    assert (row.quantity, row.unit) == (report.ESTIMATOR, "%")
    assert row.seconds > 0.0
    words = (f"lam={lam}", "solver=mpbcfw_fast", "clock=work", "budget.gap_tol=0.01")
    (config,) = compose_runs((*call, *words, "budget.max_iterations=null"))
    trained = runner.train(config, load_dataset(config.dataset), Display()).recorder
    assert row.note.startswith(f"{trained.rows[-1]['iteration']} iterations")


def test_chunks_are_found_as_well_as_by_crfsuite_and_both_are_timed(tmp_path, monkeypatch):
    pytest.importorskip("pycrfsuite")
    # few features, whose numbers are as narrow as those of pixels: their kernels are compiled
    every = conll2000.columns.default_templates(2)
    few = every[1:4] + every[7:12]  # words and tags
    monkeypatch.setattr("ssvm_bench.datasets.reading.user_folder", lambda: tmp_path)
    monkeypatch.setattr(conll2000, "N_SYNTHETIC", (60, 300))
    monkeypatch.setattr(conll2000.columns, "default_templates", lambda _: few)
    monkeypatch.setattr(chunking, "PATH", (200, 100))
    monkeypatch.setattr(chunking, "peak_of_run", lambda *_: 200.0)
    forget_data()
    call = ("dataset=conll2000", "dataset.source=synthetic")
    rows = {row.quantity: row for row in chunking.measure_chunking(call)}
    expected = [report.PREDICTION, report.WRONG_CHUNKS.format("mpbcfw_fast"), report.CHUNKING_LONG]
    for algorithm in chunking.ALGORITHMS.values():
        both = (report.CHUNKING, report.CHUNKING_GAP, report.CHUNKING_MEMORY)
        timed, to_gap, memory = (quantity.format(algorithm) for quantity in both)
        wrong = report.WRONG_CHUNKS.format(f"CRFsuite's {algorithm}")
        expected += [timed, to_gap, memory, wrong]
        assert 0.0 < rows[timed].value < rows[to_gap].value
        theirs = float(re.search(r"CRFsuite ([\d.]+) s", rows[timed].note)[1])
        seconds = rows[timed].value * theirs
        assert rows[timed].seconds == pytest.approx(seconds, rel=0.2, abs=0.1)
        assert rows[wrong].value < 30.0
    assert list(rows) == expected
    monkeypatch.setattr(serving, "launched", lambda *_: processes.Finished(1.0, 1.0, 10**8))
    rows = {row.quantity: row for row in serving.measure_serving(call)}
    expected = [report.FIT_NAMED, report.FIT_MEMORY, report.SIZE, report.LOADED]
    for quantity in (report.ONE, report.BATCH):
        expected += [quantity, f"{quantity} / CRFsuite"]
        assert rows[quantity].value / rows[f"{quantity} / CRFsuite"].seconds == pytest.approx(1e3)
    assert list(rows) == [*expected, report.FIT.format("CRFsuite")]
    assert rows[report.FIT_MEMORY].value == 100.0
    forget_data()


def test_streams_are_measured_by_what_processes_of_their_own_take(monkeypatch):
    launched = []

    def launch(*words):
        launched.append(words)
        found = launched_here(*words) if words[0] == "data" else processes.Finished(1.0, 1.0, 10**8)
        return found._replace(peak=100_000_000 + len(launched))

    for module in ("streams", "processes"):
        monkeypatch.setattr(f"benchmarks.{module}.launch", launch)
    call = ("dataset=mnist", "dataset.source=synthetic", "dataset.n_samples=20")
    rows = {one.quantity: one for one in measure_streams(call, (2, 4))}
    expected = [report.STREAM_MEMORY.format(n) for n in (80, 40)]
    assert list(rows) == [*expected, report.GROWTH.format(40), report.STREAM, report.ONLINE]
    assert rows[expected[1]].value == pytest.approx(100.000004)
    assert rows[report.GROWTH.format(40)].value == pytest.approx(100_000_002 / 100_000_004)
    assert rows[report.STREAM].target == 3.0
    assert min(rows[report.STREAM].low, rows[report.ONLINE].low) > 0
    export, run = ("data", "export"), ("run", "dataset=stream")
    told = [words[:2] for words in launched]
    assert told == [export, run, run, export, run]  # the first run compiles
    assert not list(measure_streams(("dataset=usps",), (2, 4)))


@real_data("usps/zip.train.gz")
def test_the_cost_of_checks_is_measured_of_loading(monkeypatch):
    monkeypatch.setattr(checks, "MOST_PASSES", 5)
    data, *_ = checks.measure_checks(("dataset=usps", "dataset.source=real"))
    assert data.quantity == report.CHECKED_DATA
    assert data.low > 0


def test_the_bare_cut_is_the_oracle_s():
    data = random_graphs([30, 40], 2, 3, seed=3)
    w = np.random.default_rng(0).normal(size=6)
    for i in range(2):
        cut = graphs.bare_cut(graphs.capacities(data, w, i))
        assert cut.astype(int).tolist() == oracle(data).argmax(w, i).tolist()


def test_kinds_of_rows_are_measured_alone(one_thread):
    data = ("dataset.source=synthetic", "dataset.n_samples=30")
    result = ours("--dataset", "usps", "--only", "gaps", *data)
    told = [line for line in result.output.splitlines() if line.endswith(" …")]
    assert told == ["usps: gaps …"], result.output
    with pytest.raises(ConfigError, match=r"--only=gap is not known.*gaps"):
        ours("--only", "gap")
    with pytest.raises(ConfigError, match="no such rows on moons"):
        ours("--dataset", "moons", "--only", "gaps")


def test_an_unknown_dataset_is_an_error_of_the_call():
    with pytest.raises(ConfigError, match="usps"):
        ours("--dataset", "upsp")


def test_more_approximate_passes_than_wanted_are_cut():
    (config,) = passes.compose_runs(["solver=mpbcfw"])
    assert passes.fix_work(config).solver.M == passes.APPROXIMATE_PASSES
    (config,) = passes.compose_runs(["solver=fw"])
    assert passes.fix_work(config) == config


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_make_knows_its_targets():
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^make (\S+)", listed, re.MULTILINE) == ["help", *TARGETS]
    dry = ["make", "--dry-run", *TARGETS]
    recipes = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "ssvm-bench experiment main" in recipes
    assert "tests/regression/reference.py" in recipes
    assert (ROOT / "tests" / "regression" / "reference.py").is_file()
