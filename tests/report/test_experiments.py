"""Experiments: their files, which runs are made, and what is drawn from those that finished."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from program import call, error_of, figures_of

import ssvm_bench.runs
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.messages import shown_by
from ssvm_bench.config.experiment import along_paths
from ssvm_bench.datasets import sources
from ssvm_bench.jobs import status
from ssvm_bench.report import experiment_files
from ssvm_bench.report.experiment_files import load
from ssvm_bench.results.folder import SHOWN
from ssvm_bench.results.run_folder import lock
from ssvm_bench.results.trace import COLUMNS, is_finished, read_run, write_partial, write_run

OURS = Path(__file__).parents[2] / "experiments"

FILE = """# Two solvers
title: Two solvers
grid:
  dataset: [usps]
  solver: [bcfw, mpbcfw]
  seed: [0, 1]
figures:
  suboptimality: [iteration, time]
"""


def make_run(config, source):
    """Write the folder of a finished run."""
    config = config.with_source(source)
    frame = zeros(3)
    frame["iteration"], frame["time"] = [0, 1, 2], [0.0, 1.0, 2.0]
    frame["primal"], frame["dual"] = [1.0, 0.6, 0.5 + 0.01 * config.seed], [0.0, 0.2, 0.3]
    dataset = {"name": "usps", "source": source, "n": 4, "d": 2, "fingerprint": source}
    metadata = {"config": config.resolved(), "hash": config.own_hash(), "dataset": dataset}
    best = {"best_primal": 0.5, "best_dual": 0.3}
    summary = {"stop_reason": "max_iterations", "source": source, **best}
    about = {**metadata, "lam": 0.25, "clock": "wall"}
    write_run(config.folder, frame, about, {}, summary, np.zeros(2))
    return config.folder


def zeros(rows):
    """Return a trace of which only the columns are right."""
    return pd.DataFrame({name: np.zeros(rows, column.dtype) for name, column in COLUMNS.items()})


@pytest.fixture
def runner(monkeypatch):
    """Replace the runner by one that writes a run at once, or does as told by ``behave``."""
    fake = SimpleNamespace(calls=[], behave=lambda config: None, source="real")

    def run(config, display, wait):
        fake.calls.append(f"{config.solver.name} {config.seed}")
        special = fake.behave(config)
        if special is not None:
            return special
        folder = config.with_source(fake.source).folder
        status = "skipped" if is_finished(folder) else "finished"
        summary = {"source": fake.source}
        return SimpleNamespace(status=status, folder=make_run(config, fake.source), summary=summary)

    fake.run = run
    monkeypatch.setattr(ssvm_bench.runs, "runner", fake, raising=False)
    return fake


@pytest.fixture
def write(tmp_path):
    """Return a function that writes the file of an experiment, and returns its path."""
    (tmp_path / "experiments").mkdir()

    def write(name, text):
        file = tmp_path / "experiments" / f"{name}.yaml"
        file.write_text(text)
        return str(file)

    return write


@pytest.fixture
def name(write):
    return write("two", FILE)


def into_results(file, overrides=()):
    return [*overrides, f"results_dir={Path(file).parents[1] / 'results'}"]


def run(name, *overrides):
    said = []
    with shown_by(said.append):
        return experiment_files.make(name, into_results(name, overrides)), said


def plot(name, *overrides, formats=("png",)):
    said = []
    with shown_by(said.append):
        files = experiment_files.plot(name, formats, into_results(name, overrides))
    return figures_of(files), said


def names(paths):
    return sorted(path.name for path in paths)


ALL = ["iterations.csv", "iterations.pdf", "iterations.png", "time.csv", "time.pdf", "time.png"]


def test_all_runs_are_made_then_the_figures(name, runner, tmp_path):
    outcome, said = run(name)
    assert runner.calls == ["bcfw 0", "bcfw 1", "mpbcfw 0", "mpbcfw 1"]
    assert said[1] == "run 2/4 usps bcfw seed=1"
    assert (outcome.interrupted, outcome.failed) == (False, 0)
    folder = tmp_path / "results" / "figures" / "two"
    assert sorted(figures_of(outcome.files)) == [folder / file for file in ALL]
    table = pd.read_csv(folder / "iterations.csv")
    assert (set(table["solver"]), set(table["repeats"])) == ({"bcfw", "mpbcfw"}, {2})


def test_a_failed_run_does_not_stop_the_others(name, runner, blank):
    def behave(config):
        if config.solver.name in failing:
            raise RunFailedError("no data here")

    runner.behave, failing = behave, {"bcfw"}
    outcome, said = run(name)
    assert len(runner.calls) == 4
    assert (outcome.interrupted, outcome.failed) == (False, 2)
    assert "usps bcfw seed=1 failed: no data here" in said
    assert set(pd.read_csv(outcome.files[0])["solver"]) == {"mpbcfw"}
    failing.add("fw")
    outcome, _ = run(name, "solver=fw")
    assert (outcome.failed, outcome.files) == (2, [])


def test_an_interrupt_stops_the_experiment(name, runner, tmp_path):
    interrupted = SimpleNamespace(status="interrupted", folder=tmp_path)
    runner.behave = lambda config: interrupted if config.seed == 1 else None
    outcome, said = run(name)
    assert runner.calls == ["bcfw 0", "bcfw 1"]
    assert (outcome.interrupted, outcome.failed, outcome.files) == (True, 3, [])
    assert "same command" in said[-1]


def test_data_that_the_paper_drew_are_drawn_with_real_ones(name, blank, tmp_path):
    (one, *_, other) = load(name).configs(into_results(name))
    traces = [read_run(make_run(one, "real")), read_run(make_run(other, "drawn"))]
    written = experiment_files.draw(load(name), traces, (), tmp_path / "both", ("png",), None)
    assert {path.stem for path in figures_of(written)} == {"iterations", "time"}
    assert set(pd.read_csv(written[0])["source"]) == {"real", "drawn"}


def test_plot_draws_what_is_finished_and_says_what_is_missing(name, runner, blank):
    run(name, "solver=bcfw")
    calls = list(runner.calls)
    files, said = plot(name, formats=("svg",))
    assert names(files) == ["iterations.csv", "iterations.svg", "time.csv", "time.svg"]
    assert said == ["2 of 4 runs are missing: usps mpbcfw seed=0; usps mpbcfw seed=1."]
    assert runner.calls == calls


def test_plot_prefers_real_data_and_never_mixes(name, runner, blank):
    runner.source = "synthetic"
    run(name)
    assert "time-synthetic.png" in names(plot(name)[0])
    runner.source = "real"
    run(name, "solver=bcfw")
    files, said = plot(name)
    assert names(files) == ["iterations.csv", "iterations.png", "time.csv", "time.png"]
    assert "2 of 4 runs are missing" in said[0]
    table = pd.read_csv(files[0])
    assert (set(table["source"]), set(table["solver"])) == ({"real"}, {"bcfw"})
    assert "time-synthetic.png" in names(plot(name, "dataset.source=synthetic")[0])


def test_plot_passes_over_damaged_runs_and_says_which(name, runner, blank):
    first = run(name)[0].finished[0].folder
    run(name, "solver=fw")
    (foreign,) = first.parents[2].glob("fw/*/seed=0")
    (foreign / "trace.parquet").write_bytes(b"PAR1")
    files, said = plot(name)
    assert len(files) == 6  # png, and pdf again
    assert str(foreign) in said[0]
    (first / "trace.parquet").write_bytes(b"PAR1")
    files, said = plot(name)
    assert len(files) == 6  # png, and pdf again
    assert f"Passed over: Cannot read the run {first}: trace.parquet: " in said[0]
    assert "force=true" in said[0]
    assert said[1] == "1 of 4 runs are missing: usps bcfw seed=0."
    assert str(foreign) in said[2]
    assert set(pd.read_csv(files[0])["repeats"]) == {1, 2}


def test_of_many_damaged_runs_the_first_are_told_and_none_left_is_an_error(name, runner, blank):
    outcome, _ = run(name, "seed=0,1,2,3,4,5,6,7")
    first, *others = (config.folder for config in outcome.finished)
    for folder in others:
        (folder / "trace.parquet").write_bytes(b"PAR1")
    files, said = plot(name, "seed=0,1,2,3,4,5,6,7")
    assert len(files) == 6  # png, and pdf again
    assert said[-1] == f"Passed over: {15 - SHOWN} more that cannot be read."
    assert len(said) == SHOWN + 2
    assert sum(map(len, said)) < 2000
    (first / "trace.parquet").unlink()
    shutil.rmtree(outcome.results_dir / "traces")
    with pytest.raises(RunFailedError, match=r"No run of the experiment two .* force=true"):
        plot(name, "seed=0,1,2,3,4,5,6,7")


def test_where_an_experiment_stands(write, tmp_path):
    data = "dataset: usps, dataset.source: synthetic, budget.max_seconds: 10"
    file = write("status", f"grid: {{{data}, solver: [fw, bcfw], seed: range(3)}}")
    configs = load(file).configs([f"results_dir={tmp_path}"])

    def lines(jobs=1):
        return status.lines(status.survey(configs), jobs)

    table = ["      fw         bcfw", "usps  3 missing  3 missing", ""]
    assert lines() == [*table, "6 missing, of 6 runs; ETA 1:00 with --jobs 1"]
    summary = {"stop_reason": "max_seconds", "wall_time": 16.0}
    run = make_run(configs[0], "synthetic")
    metadata = read_run(run).metadata
    write_run(run, zeros(1), metadata, {}, summary, np.zeros(2))
    for k, reason in ((1, "diverged"), (3, "interrupted")):
        write_partial(configs[k].folder, zeros(1), metadata, {"stop_reason": reason})
    with lock(configs[4].folder):
        found = lines(2)
    assert found[1] == "usps  1 done, 1 failed, 1 missing  1 running, 2 missing"
    assert found[3] == "1 done, 1 running, 1 failed, 3 missing, of 6 runs; ETA 0:31 with --jobs 2"
    assert found[4:] == [f"failed: {configs[1].folder}.partial"]
    assert "1 running" not in lines()[1]


def test_the_command_tells_where_an_experiment_stands(tmp_path):
    options = ("dataset=usps", "dataset.source=synthetic", f"results_dir={tmp_path}")
    result = call("experiment", "--status", "quickstart", *options)
    assert result.exit_code == 0
    assert "12 missing, of 12 runs; ETA unknown" in result.stdout
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    assert "--jobs" in error_of(call("experiment", "quickstart", "--jobs=0"), 2)


def test_values_are_written_as_the_command_line_reads_them(write):
    values = "[1, 2.5, null, true, word, '2n/(k+2n)', 1e-3]"
    (grid,) = load(write("values", f"grid: {{a: {values}, b: range(3), c: 0.1, d: null}}")).grids
    first = "a=1,2.5,null,true,word,'2n/(k+2n)',0.001"
    assert grid.words == (first, "b=range(3)", "c=0.1", "d=null")


def test_options_can_differ_between_datasets(write):
    text = (
        "grid: {dataset: [usps, ocr], budget.max_iterations: 7, seed: range(2)}\n"
        "each: {ocr: {budget.max_iterations: 3, eval.every: 2}, weizmann: {lam: 1.0}}"
    )
    experiment = load(write("each", text))

    def budgets(*overrides):
        configs = experiment.configs(overrides)
        return [(run.dataset.name, run.budget.max_iterations, run.eval.every) for run in configs]

    assert budgets() == [("usps", 7, 1)] * 2 + [("ocr", 3, 2)] * 2
    # what is asked for on the command line counts more than the file
    assert budgets("budget.max_iterations=5", "seed=0") == [("usps", 5, 1), ("ocr", 5, 2)]
    assert budgets("dataset=ocr", "seed=0") == [("ocr", 3, 2)]


def test_several_grids_are_run_in_turn_and_nothing_twice(write):
    text = (
        "grid:\n"
        "  - {dataset: [usps, ocr], solver: [fw, mpbcfw], seed: 1}\n"
        "  - {dataset: ocr, solver: mpbcfw, solver.T: [5, 10], seed: 1}\n"
        "each: {usps: {eval.every: 3}, ocr: {eval.every: 2}}"
    )
    experiment = load(write("grids", text))

    def found(*overrides):
        configs = experiment.configs(overrides)
        assert {(run.dataset.name, run.eval.every) for run in configs} <= {("usps", 3), ("ocr", 2)}
        return [(run.dataset.name, run.solver.name, getattr(run.solver, "T", 0)) for run in configs]

    first, second = [("usps", "fw", 0), ("usps", "mpbcfw", 10)], [("ocr", "fw", 0)]
    # T = 10 is in both
    assert found() == [*first, *second, ("ocr", "mpbcfw", 10), ("ocr", "mpbcfw", 5)]
    # what is asked for on the command line counts in every grid
    assert found("solver=bcfw", "dataset=ocr") == [("ocr", "bcfw", 10), ("ocr", "bcfw", 5)]
    assert {config.seed for config in experiment.configs(["seed=7,8"])} == {7, 8}


def test_an_override_chooses_among_the_datasets_and_solvers_that_the_grids_list(write):
    grids = load(
        write(
            "chosen",
            "grid:\n"
            "  - {dataset: [usps, ocr], solver: [bcfw, eg]}\n"
            "  - {dataset: weizmann, solver: mpbcfw, solver.T: 5}\n"
            "  - {dataset: [ocr, weizmann], solver: bcfw, lam: 0.1}\n",
        )
    )

    def runs(*overrides):
        return [(run.dataset.name, run.solver.name) for run in grids.configs(overrides)]

    weizmann = [("weizmann", "mpbcfw"), ("weizmann", "bcfw")]
    assert runs("dataset=weizmann") == weizmann
    assert runs("dataset=usps,weizmann") == [("usps", "bcfw"), ("usps", "eg"), *weizmann]
    assert runs("dataset=ocr", "solver=bcfw") == [("ocr", "bcfw")] * 2
    assert runs("solver=mpbcfw") == [("weizmann", "mpbcfw")]
    assert set(runs("dataset=mnist", "solver=bcfw")) == {("mnist", "bcfw")}  # listed by none
    with pytest.raises(ConfigError, match=r"No grid of .* has dataset=weizmann with solver=eg"):
        runs("dataset=weizmann", "solver=eg")


def test_a_dataset_without_options_in_the_experiment_is_named(write):
    name = write(
        "budgets",
        "grid: {dataset: [usps, ocr], solver: [bcfw, fw], budget.max_iterations: null}\n"
        "each: {usps: {budget.max_seconds: 1}, ocr: {budget.max_seconds: 2}}\n",
    )
    said = error_of(call("experiment", name, "dataset=mnist", "--status"), 2)
    assert "budgets has no options for dataset=mnist: it lists usps, ocr. Choose one" in said
    assert "Without them: The run would never end. Set budget.max_iterations" in said
    # mistakes of the call itself are told as ever, as are those of datasets that it lists
    for words, message in (
        (("dataset=mnist", "lam=-1"), "error: lam must be a positive number"),
        (("dataset=mnsit",), "error: dataset=mnsit is not known. Did you mean mnist?"),
        (("dataset=usps", "budget.max_seconds=null"), "error: The run would never end."),
    ):
        assert message in error_of(call("experiment", name, *words, "--status"), 2)
    assert load(name).configs(["dataset=mnist", "budget.max_seconds=3"])


def test_runs_along_a_path_are_made_by_the_run_at_its_end(write):
    file = write(
        "paths",
        "grid:\n"
        "  - {dataset: usps, solver: bcfw, lam: [100/n, 10/n]}\n"
        "  - {dataset: usps, solver: bcfw, path: '[100/n,10/n]', lam: [1/n, 0.1/n]}\n",
    )
    configs, along = load(file).configs(), ("100/n", "10/n")
    # 100/n is the beginning of both paths; 10/n from w = 0 is another run than along the path
    ends = [(along, None), (along, "0.1/n")]
    assert [(run.path, run.lam) for run in configs] == [((), "10/n"), *ends]
    begun = [((), "10/n"), ((), "100/n"), (("100/n",), "10/n")]
    assert [(run.path, run.lam) for run in along_paths(configs)] == begun + ends


def test_an_experiment_can_show_the_runs_of_another(write, tmp_path):
    grid = "grid: {dataset: ocr, lam: 0.1}\neach: {ocr: {eval.every: 3}}\n"
    write("one", f"{grid}figures: {{claims: [mpbcfw]}}")
    write("two", "title: Two\nlike: one\nfigures: {suboptimality: [calls]}")
    one, two = load("one", [tmp_path]), load("two", [tmp_path])
    assert (two.name, two.runs, two.title) == ("two", "one", "Two")
    assert two.figures == {"suboptimality": ("calls",)}
    source = ["dataset.source=synthetic"]
    assert two.configs(source) == one.configs(source)
    write("two", "like: three")
    with pytest.raises(ConfigError, match="no experiment 'three'"):
        load("two", [tmp_path])


def test_an_experiment_can_show_the_runs_of_several(write, tmp_path):
    write("one", "grid: {dataset: [ocr, usps]}\neach: {ocr: {eval.every: 3}}")
    write("two", "grid: {dataset: ocr, lam: [0.1, 0.2]}\neach: {ocr: {eval.every: 4}}")
    write("three", "grid: {dataset: usps}")
    write("all", "like: [one, two, three]\nfigures: {claims: [mpbcfw]}")
    every = load("all", [tmp_path])
    assert (every.name, every.runs, every.origins) == ("all", "all", ("one", "two", "three"))
    source = ["dataset.source=real"]
    one, two = (load(name, [tmp_path]).configs(source) for name in ("one", "two"))
    configs = every.configs(source)
    assert configs == [*one, *two]  # that of three is in one, too
    assert [config.eval.every for config in configs] == [3, 1, 4, 4]
    origin_of = every.expanded(source).origin_of
    assert [origin_of[config.own_folder] for config in configs] == ["one", "one", "two", "two"]
    assert {config.lam for config in every.configs([*source, "lam=3"])} == {3.0}
    write("all", "like: []")
    with pytest.raises(ConfigError, match="like must be the name"):
        load("all", [tmp_path])


def test_runs_of_several_experiments_stay_stored_with_their_own(write, runner, blank, tmp_path):
    write("one", "grid: {dataset: usps, solver: bcfw, seed: 0}")
    write("two", "grid: {dataset: usps, solver: mpbcfw, seed: 0}")
    results = into_results(write("both", "like: [one, two]\nfigures: {suboptimality: [iteration]}"))
    outcome = experiment_files.make("both", results, [tmp_path])
    assert (runner.calls, outcome.failed) == (["bcfw 0", "mpbcfw 0"], 0)
    traces = tmp_path / "results" / "traces"
    stored = [path.relative_to(traces).as_posix() for path in sorted(traces.glob("*/*"))]
    assert stored == ["one/usps-bcfw.parquet", "two/usps-mpbcfw.parquet"]
    shutil.rmtree(tmp_path / "results" / "runs")
    said = []
    with shown_by(said.append):
        experiment_files.plot("both", ["svg"], results, [tmp_path])
        assert said == []
        write("two", "grid: {dataset: usps, solver: bcfw, seed: 1}")
        experiment_files.plot("both", ["svg"], results, [tmp_path])
    assert said == ["1 of 2 runs are missing: usps bcfw seed=1."]


def test_another_dataset_where_its_raw_data_are_at_hand(write, monkeypatch):
    states = {"horseseg": "missing"}
    monkeypatch.setattr(sources, "status", lambda name: SimpleNamespace(state=states[name]))

    def words(grid):
        file = write("instead", f"grid: {grid}\ninstead: {{weizmann: horseseg}}\nfigures:")
        return [" ".join(grid.words) for grid in load(file).grids]

    assert words("{dataset: [usps, weizmann]}") == ["dataset=usps,weizmann"]
    states["horseseg"] = "ready"
    assert words("{dataset: [usps, weizmann]}") == ["dataset=usps,horseseg"]
    assert words("{dataset: weizmann}") == ["dataset=horseseg"]
    several = words("[{dataset: usps}, {seed: 1, dataset: weizmann}]")
    assert several == ["dataset=usps", "seed=1 dataset=horseseg"]


def test_the_papers_figures_show_one_set_of_runs():
    four, five, six = (load(f"mpbcfw_fig{k}") for k in (4, 5, 6))
    assert five.runs == six.runs == four.name
    configs = four.configs()
    assert len(configs) == len({config.with_source("real").folder for config in configs}) == 160
    assert {(run.seed, run.lam) for run in configs} == {(seed, None) for seed in range(10)}
    planes = {(c.solver.N, c.solver.M, c.solver.T) for c in configs if "mp" in c.solver.name}
    assert planes == {(1000, 1000, 10)}
    seconds = sum(config.budget.max_seconds for config in configs)
    # of one core, if no run ends at its gap; beside it: evaluation, loading, compiling
    assert seconds < 8 * 3600


def test_the_claims_are_judged_for_both_starts_and_at_the_paper_s_costs():
    claims = load("mpbcfw_claims")
    of_figures = ("mpbcfw_fig4", "mpbcfw_start", "mpbcfw_costs", "mpbcfw_fixed")
    assert claims.origins == (*of_figures, "mpbcfw_horses")
    assert claims.figures == {"claims": ("mpbcfw",)}
    start, counted = load("mpbcfw_start").configs(), load("mpbcfw_costs").configs()
    assert {config.solver.start for config in start} == {"oracle"}
    assert {config.solver.start for config in counted} == {"truth", "oracle"}
    assert (len(start), len(counted), len(claims.configs())) == (160, 96, 506)
    assert {config.clock for config in counted} == {"work"}
    of_figures = load("mpbcfw_fig4").configs()
    assert set(of_figures) < set(claims.configs())
    alike = zip(start, of_figures, strict=True)  # but for how long they run
    assert all(
        replace(one, solver=replace(one.solver, start="truth"), budget=other.budget) == other
        for one, other in alike
    )


def test_the_relative_gaps_of_targets_can_be_chosen(write):
    file = write("gaps", "grid: {}\nfigures: {targets: [time]}\ngaps: [0.01, 1, 1.0e-4]")
    assert load(file).gaps == (1.0, 0.01, 1e-4)
    assert load("beyond").gaps == (0.1, 0.05, 0.02, 0.01)
    assert load(write("none", "grid: {}\nfigures: {targets: [time]}")).gaps == ()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "must be a mapping"),
        ("{", "Cannot read"),
        ("- 1", "must be a mapping"),
        ("title: a", "grid must be a mapping"),
        ("gird: {}", "Did you mean grid"),
        ("grid: []", "grid must be a mapping of keys to values, or a list of them"),
        ("grid: [{}, 3]", r"grid\[1\] must be a mapping"),
        ("grid: [{}, {seed: []}]", r"grid\[1\].seed must be"),
        ("grid: [{dataset: ocr}, {}]\ninstead: {ocr: usps}", r"grid\[1\].dataset must be a name"),
        ("grid: {}\neach: {ocr: 3}", "each.ocr must be a mapping"),
        ("grid: {}\neach: {ocrr: {lam: 1}}", "each: there is no dataset ocrr. Did you mean ocr"),
        ("grid: {}\neach: {ocr: {seed: 1}}", "each.ocr.seed: what varies"),
        ("grid: {}\neach: {ocr: {lam: [1, 2]}}", "each.ocr.lam: what varies"),
        ("grid: {dataset: [[ocr]]}", "grid.dataset must be"),
        ("grid: {dataset: 'usps,ocr'}\ninstead: {ocr: usps}", "grid.dataset must be a name"),
        ("grid: {dataset: [ocr]}\ninstead: {ocr: ups}", "instead.ocr: .*Unknown dataset kind"),
        ("like: nothing", "like: There is no experiment"),
        ("like: mpbcfw_fig5", "is itself like mpbcfw_fig4"),
        ("like: 3", "like must be the name"),
        ("grid: {}\neach: {ocr: {lam: {a: 1}}}", "each.ocr.lam must be a value"),
        ("grid: {}\ninstead: ocr", "instead must be a mapping"),
        ("grid: {}\nlike: quickstart", "leave one out"),
        ("grid: {seed: []}", "grid.seed must be"),
        ("grid: {seed: {a: 1}}", "grid.seed must be"),
        ("grid: {}\nfigures: {suboptimalty: [time]}", "Did you mean suboptimality"),
        ("grid: {}\nfigures: {suboptimality: [times]}", "Did you mean time"),
        ("grid: {}\nfigures: {suboptimality: time}", "list of x axes"),
        ("grid: {}\ngaps: [0.1]", "gaps are for the figures targets"),
        *(
            (f"grid: {{}}\nfigures: {{targets: [time]}}\ngaps: {gaps}", "gaps must be a list")
            for gaps in ("0.1", "[]", "[0.1, 0]", "[0.1, 0.1]", "[0.1, true]", "[1e+400]")
        ),
        ("grid: {}\ntitle: [a]", "title must be one line of text"),
        ('grid: {}\ntitle: "a\\nb"', "title must be one line of text"),
        (f"grid: {{}}\ntitle: {'x' * 500}", "title must be one line of text"),
        ("grid: {'a b': 1}", "no name of an option"),
        ("grid: {}\nfigures: {claims: [mpbcf]}", "has no paper mpbcf. Did you mean mpbcfw"),
        ("grid: {}\nfigures: {claims: mpbcfw}", "list of papers"),
    ],
)
def test_a_wrong_file_is_one_clear_message(write, text, match):
    file = write("wrong", text)
    with pytest.raises(ConfigError, match=match) as error:
        load(file)
    assert file in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("file", sorted(OURS.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_experiment_that_comes_along_can_be_read(file):
    """Only plain values: no anchors and aliases, which are refused."""
    experiment = load(file.stem)
    assert experiment.grids or experiment.runs != experiment.name


def test_an_unknown_experiment_names_the_nearest(write):
    for name, message in (
        ("quikstart", "Did you mean quickstart"),
        ("nowhere/quickstart.yaml", "no experiment"),
        ("nowhere/quickstart", r"ends in \.yaml"),
        (write("quickstart", FILE), "has the name of .*Rename it"),  # it comes along
    ):
        with pytest.raises(ConfigError, match=message):
            load(name)
