"""The files of an experiment: the same from raw runs as from what is stored of them."""

import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from program import figures_of
from traces import make_trace, set_columns

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.messages import shown_by
from ssvm_bench.cli.commands import main
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.overrides import variant
from ssvm_bench.figures import curves
from ssvm_bench.figures.convergence import SUBOPTIMALITY
from ssvm_bench.report import experiment_files, pages
from ssvm_bench.report.experiment_files import load
from ssvm_bench.results import folder, loading, optima, stored_traces
from ssvm_bench.results.table import Best, Runs, instance_of
from ssvm_bench.results.trace import COLUMNS, write_run

FILE = """
title: Two solvers
grid:
  dataset: [ocr]
  solver: [bcfw, mpbcfw]
  seed: [0, 1]
figures:
  suboptimality: [calls]
  selection: [iteration]
"""


def long_trace(rows=3000, seed=0, **changes):
    """Return a run like those of a block solver: noisy primal, smooth dual, working sets."""
    noise = 1 + 0.05 * np.random.default_rng(seed).random(rows)
    k = np.arange(rows)
    # counts beyond the whole numbers that 32 bits of a float tell apart
    columns = {"approx_calls": 70_001 * k, "working_set_mean": 1 + k / (10 + k)}
    spent = {"oracle_calls": 10 * k, "time": 0.1 * k + 0.01 * seed, "columns": columns}
    run = make_trace(1 + noise / (1 + k), 1 - 1 / (1 + k), seed=seed, **spent, **changes)
    run.end["best_primal"] = float(run["primal"].min())
    run.end["best_dual"] = float(run["dual"].max())
    return run


def test_a_thinned_trace_is_small_and_keeps_what_matters(tmp_path):
    runs = [long_trace(3000, 0), long_trace(2500, 1)]
    stored = stored_traces.write(runs, tmp_path, "some")
    assert [path.name for path in (tmp_path / "traces/some").iterdir()] == ["toy-bcfw.parquet"]
    types = {name: column.dtype for name, column in COLUMNS.items()}
    for run, kept in zip(runs, stored, strict=True):
        assert len(kept.frame) <= 150
        assert (kept.metadata, kept.end) == (run.metadata, run.end)
        assert kept.folder == tmp_path / run.folder
        assert kept.frame[[*types]].dtypes.astype(str).to_dict() == types
        whole = run.frame.set_index("iteration").loc[kept.frame["iteration"]].reset_index()
        exact = ["iteration", "oracle_calls", "approx_calls", "primal", "dual", "gap"]
        pd.testing.assert_frame_equal(kept.frame[exact], whole[exact], check_exact=True)
        pd.testing.assert_frame_equal(kept.frame, whole[kept.frame.columns], rtol=1e-6)
        for row in (0, -1):
            assert kept.frame["iteration"].iloc[row] == run["iteration"][row]
        assert kept.frame["primal"].min() == run.end["best_primal"]
        assert kept.frame["dual"].max() == run.end["best_dual"]
    shared = np.intersect1d(stored[0].frame["iteration"], stored[1].frame["iteration"])
    assert len(shared) > 120


def test_a_stored_run_does_not_tell_where_it_was_made(tmp_path):
    run = long_trace(5)
    run.metadata["config"]["results_dir"] = "/home/somebody/results"
    (kept,) = stored_traces.write([run], tmp_path, "some")
    assert "somebody" not in json.dumps(kept.metadata)
    there = {**run.metadata["config"], "results_dir": "results"}
    assert kept.metadata == {**run.metadata, "config": there}


def test_a_short_trace_is_kept_whole_and_thinning_again_changes_nothing(tmp_path):
    short = long_trace(30)
    assert len(stored_traces.write([short], tmp_path, "some")[0].frame) == 30
    once = stored_traces.write([long_trace()], tmp_path, "some")
    (path,) = (tmp_path / "traces/some").iterdir()
    content = path.read_bytes()
    stored_traces.write(once, tmp_path, "some")
    assert path.read_bytes() == content


@pytest.mark.parametrize("axis", curves.AXES)
def test_thinning_does_not_change_a_figure_visibly(tmp_path, axis):
    def dual(traces):
        table = SUBOPTIMALITY.tabulate(
            Runs(traces, {instance_of(runs[0].metadata): Best(1.0, 1.0)}), axis
        )
        return table[table["quantity"] == "dual suboptimality"]

    runs = [long_trace(3000 - 50 * seed, seed) for seed in range(3)]
    whole, kept = dual(runs), dual(stored_traces.write(runs, tmp_path, "some"))
    between = np.interp(kept["x"], whole["x"], np.log10(whole["median"]))
    # a fiftieth of a decade is less than a line is wide; time has 101 points, whatever is kept
    shown = kept["x"] >= (kept["x"].max() / 100 if axis == "time" else 0)
    assert np.abs(np.log10(kept["median"]) - between)[shown].max() < 0.02
    assert kept["x"].max() == pytest.approx(whole["x"].max(), rel=1e-6)


def test_other_seeds_stay_and_other_configurations_make_way(tmp_path):
    def stored(*runs):
        stored_traces.write(runs, tmp_path, "some")
        return loading.stored(tmp_path, "some")

    stored(long_trace(20, 0), long_trace(20, 1))
    kept = stored(long_trace(10, 1), long_trace(10, 2))
    assert [len(run) for run in kept] == [20, 10, 10]
    moved = replace(long_trace(5), folder=tmp_path / "runs/toy/bcfw/new/seed=0")
    assert [run.folder.parent.name for run in stored(moved)] == ["new"]
    assert len(stored(long_trace(5, source="synthetic"))) == 2
    assert loading.stored(tmp_path, "another") == []


def test_further_columns_are_kept_for_the_runs_that_have_them(tmp_path):
    one, two = long_trace(5), long_trace(5, 1)
    set_columns(one, fixed=0.5)
    stored = stored_traces.write([one, two], tmp_path, "some")
    assert stored[0].frame["fixed"].tolist() == [0.5] * 5
    assert stored[1].frame.get("fixed", pd.Series(dtype=float)).isna().all()


@pytest.mark.parametrize("content", [b"", b"PAR1", "table"])
def test_a_damaged_file_is_one_message(tmp_path, content):
    stored_traces.write([long_trace(5)], tmp_path, "some")
    (path,) = (tmp_path / "traces/some").iterdir()
    if content == "table":
        pd.DataFrame({"run": ["{}"]}).to_parquet(path)
    else:
        path.write_bytes(content)
    with pytest.raises(RunFailedError, match="Restore the file") as error:
        loading.stored(tmp_path, "some")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def results(tmp_path, file):
    """Write all runs of the experiment; return the results folder."""
    make_runs(file, tmp_path / "results")
    return tmp_path / "results"


def make_runs(file, results, *overrides, source="real", year=2020):
    (grid,) = load(str(file)).grids
    for config in compose_runs([*grid.words, f"results_dir={results}", *overrides], True):
        config = config.with_source(source)
        run = long_trace(40, config.seed, solver=config.solver.name, source=source)
        if config.solver.name == "bcfw":
            set_columns(run, primal=run["primal"] + 0.1)
            set_columns(run, working_set_mean=0.0)
        metadata = {**run.metadata, "config": config.resolved(), "hash": config.own_hash()}
        metadata["dataset"] = {**run.metadata["dataset"], "name": "ocr"}
        metadata |= {"versions": {"numpy": "2.0"}, "git": "c0ffee", "concurrent_runs": config.seed}
        metadata["started"] = f"{year}-01-0{1 + config.seed}T00:00:00+00:00"
        write_run(config.folder, run.frame, metadata, {}, run.end, np.zeros(1))


def plot(file, results, *overrides):
    """Draw the experiment into a results folder, None for the usual one; return what is said."""
    said, where = [], [] if results is None else [f"results_dir={results}"]
    with shown_by(said.append):
        files = experiment_files.plot(str(file), ["svg"], [*where, *overrides])
    return figures_of(files), said


def contents(results):
    """Return the digest of every file that is not of a raw run."""
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(results.rglob("*"))
        if path.is_file() and path.relative_to(results).parts[0] != "runs"
    }


def test_everything_is_drawn_again_without_the_raw_runs(file, results):
    files, said = plot(file, results)
    assert said == []
    names = ["oracle_calls.csv", "oracle_calls.svg", "selection.csv", "selection.svg"]
    assert sorted(path.name for path in files) == names
    before = contents(results)
    assert set(before) == {
        *(f"figures/two/{name}" for name in (*names, "provenance.json")),
        *("traces/two/ocr-bcfw.parquet", "traces/two/ocr-mpbcfw.parquet"),
        *("reference/optima.json", "reference/.optima.json.lock"),
    }
    (results / "runs").rename(results.with_name("moved"))
    for path in (results / "figures/two").iterdir():
        path.unlink()
    assert plot(file, results)[1] == []
    assert contents(results) == before
    (results / "reference/optima.json").unlink()
    plot(file, results)
    assert contents(results) == before


def test_raw_runs_and_stored_ones_are_drawn_together(file, results, blank):
    plot(file, results)
    before = contents(results)
    (results / "runs/ocr/bcfw").rename(results.with_name("moved"))
    assert plot(file, results)[1] == []
    assert contents(results) == before


def test_what_is_drawn_stays_stored_beside_new_runs_of_another_variant(file, tmp_path, blank):
    text = FILE.replace("seed: [0, 1]", "seed: [0, 1]\n  solver.N: [{}]")
    results = tmp_path / "results"
    for variants in ("10", "10, 20"):
        file.write_text(text.format(variants).replace("[bcfw, mpbcfw]", "mpbcfw"))
        make_runs(file, results, *(["solver.N=20"] if "20" in variants else []))
        assert all("before it changed" in said for said in plot(file, results)[1])
        (results / "runs").rename(tmp_path / f"moved {variants}")  # only those stored are left
    stored = loading.stored(results, "two")
    made = {run.metadata["config"]["solver"]["N"] for run in stored}
    assert (made, len(stored)) == ({10, 20}, 4)


def test_stored_runs_are_drawn_where_the_raw_ones_are_gone(file, results, blank):
    plot(file, results)
    (results / "runs").rename(results.with_name("moved"))
    for other in ("dataset.source=synthetic", "solver.T=7"):
        with pytest.raises(RunFailedError, match="ssvm-bench experiment"):
            plot(file, results, other)
    make_runs(file, results, "solver.T=7", "seed=0")
    files, said = plot(file, results, "solver.T=7")
    assert "2 of 4 runs are missing" in said[0]
    assert set(pd.read_csv(files[0])["repeats"]) == {1}


def test_where_the_numbers_come_from_is_beside_the_figures(file, results, blank):
    plot(file, results)
    content = json.loads((results / "figures/two/provenance.json").read_text())
    assert (content["runs"], content["timed_beside_other_runs"]) == (4, 2)
    assert content["commits"] == {"c0ffee": 4}
    assert content["versions"] == {"numpy": {"2.0": 4}}
    days = [content["started"][key][:10] for key in ("first", "last")]
    assert days == ["2020-01-01", "2020-01-02"]
    (data,) = content["datasets"]
    shown = [data[key] for key in ("name", "source", "fingerprint", "runs")]
    assert shown == ["ocr", "real", "f-real", 4]


def test_stand_ins_have_files_of_their_own(file, tmp_path, blank):
    results = tmp_path / "results"
    make_runs(file, results, source="synthetic")
    files, _ = plot(file, results)
    assert {path.stem for path in files} == {"oracle_calls-synthetic", "selection-synthetic"}
    assert (results / "figures/two/provenance-synthetic.json").is_file()
    assert (results / "traces/two/ocr-bcfw-synthetic.parquet").is_file()


def test_no_selection_is_drawn_of_solvers_without_working_sets(file, results, blank):
    files, _ = plot(file, results, "solver=bcfw")
    assert [path.name for path in files] == ["oracle_calls.csv", "oracle_calls.svg"]


def test_the_claims_table_is_written_where_it_is_asked_for(file, results):
    file.write_text(FILE.partition("figures:")[0] + "figures: {claims: [mpbcfw]}")
    files, _ = plot(file, results)
    assert files == [results / "figures/two/claims.md", results / "figures/two/claims.csv"]
    assert "# What the MP-BCFW paper claims" in files[0].read_text()
    assert set(pd.read_csv(files[1])["dataset"]) == {"usps", "ocr", "horseseg", "stanford"}


def test_committed_results_change_only_where_that_is_asked_for(file, results, monkeypatch, blank):
    monkeypatch.chdir(results.parent)
    plot(file, "results")
    (results / folder.MARKER).touch()
    committed = contents(results)
    make_runs(file, "results", "solver.T=7")  # better ones, with other options

    drawn, said = plot(file, None, "solver.T=7")
    own = Path("results", folder.OWN)
    assert {path.parent for path in drawn} == {own / "figures/two/solver.T=7"}
    assert f"are in {own}" in said[-1]
    assert "results_dir=results" in said[-1]
    pages.report(folder.results_folder(Path("results"), ()))
    changed = {path for path in contents(results) if not path.startswith(folder.OWN)}
    assert changed == {*committed, "report.html"}
    assert {path: contents(results)[path] for path in committed} == committed

    # what is stored replaces the raw runs, and the best values are those of all of it
    (results / "runs").rename(results.with_name("moved"))
    where = folder.results_folder(Path("results"), ())
    stored = [run for name in stored_traces.names(where) for run in loading.stored(where, name)]
    assert len(stored) == 8
    assert {trace.metadata["config"]["solver"]["T"] for trace in stored} == {7, 10}
    assert optima.reference(stored, where) == optima.reference(stored, results)
    _, said = plot(file, None, "solver.T=7")
    assert not any("missing" in line for line in said)


def test_runs_that_have_just_been_made_are_drawn_as_they_are_later(tmp_path):
    file, results = tmp_path / "blocks.yaml", tmp_path / "results"
    block = "{dataset: [usps, ocr], solver: SOLVER, budget.max_iterations: 2}"
    grid = ", ".join(block.replace("SOLVER", name) for name in ("bcfw", "mpbcfw"))
    file.write_text(f"title: Blocks\ngrid: [{grid}]\nfigures: {{targets: [calls]}}\n")
    small = ("dataset.source=synthetic", "dataset.n_samples=10", f"results_dir={results}")
    drawn = []
    for command in ("experiment", "plot"):
        CliRunner().invoke(main, [command, str(file), *small], catch_exceptions=False)
        drawn.append(contents(results / "figures/blocks/dataset.n_samples=10"))
    assert "targets-synthetic.csv" in drawn[0]
    assert drawn[0] == drawn[1]


def test_several_experiments_are_drawn_by_one_call(file, results):
    more = file.with_name("more.yaml")
    more.write_text(FILE)
    words = ["plot", str(file), f"results_dir={results}", str(more), "--format=svg", "solver=bcfw"]
    CliRunner().invoke(main, words, catch_exceptions=False)
    made = [contents(results / "figures" / name / "solver=bcfw") for name in ("two", "more")]
    assert made[0].keys() == made[1].keys()
    assert made[0]["oracle_calls.csv"] == made[1]["oracle_calls.csv"]


def test_any_other_folder_of_results_is_written_to(file, results, monkeypatch):
    monkeypatch.chdir(results.parent)
    drawn, _ = plot(file, None)
    assert {path.parent for path in drawn} == {Path("results/figures/two")}
    assert not (results / folder.OWN).exists()


# ---- figures of different runs ------------------------------------------------------------------


def digests(folder):
    """Return name → digest of the files directly in a folder."""
    return {name: of for name, of in contents(folder).items() if "/" not in name}


def test_runs_that_overrides_choose_have_files_of_their_own(file, results, blank):
    """A figure of other runs never replaces one, nor its traces and claims."""
    file.write_text(FILE + "  claims: [mpbcfw]\n")
    plot(file, results)
    before = contents(results)
    others = (("solver.T=7",), ("seed=0",), ("solver=bcfw",), ("solver.T=7", "seed=0"))
    for chosen in others:
        make_runs(file, results, *chosen)
        files, _ = plot(file, results, *chosen)
        assert {path.parent.parent for path in files} == {results / "figures/two"}
        assert {"claims.md", "claims.csv"} < {path.name for path in files}
        now = contents(results)
        assert {name: now[name] for name in before if not name.startswith("reference")} == {
            name: of for name, of in before.items() if not name.startswith("reference")
        }
    names = {path.name for path in (results / "figures/two").iterdir() if path.is_dir()}
    assert names == {"solver.T=7", "seed=0", "solver=bcfw", "seed=0,solver.T=7"}
    assert stored_traces.names(results) == ["two", *sorted(f"two/{name}" for name in names)]
    # nor do options that change no run make another figure
    files, _ = plot(file, results, "quiet=true", "dataset.source=real", "force=true")
    assert {path.parent for path in files} == {results / "figures/two"}


def test_the_name_of_overrides_tells_every_set_of_runs_from_the_others():
    told = [
        ["lam=10/n"],
        ["lam=10_n"],
        ["solver=bcfw,mpbcfw"],
        ["solver=bcfw"],
        ["dataset.folds=[0,1]"],
        ["dataset.folds=0,1"],
        ["seed=range(100)"],
        ["seed=range(101)"],
        ["seed=0,1", "lam=0.1"],
        ["seed=0", "lam=0.1,1"],
        ["solver.step=2n/(k+2n)"],
        ["solver=glob(mp*)"],
    ]
    names = [variant(words) for words in told]
    assert len({name.lower() for name in names}) == len(told)
    for name in names:
        assert len(name) <= 120
        assert re.fullmatch(r"[\w.=+,-]+", name, re.ASCII), name
    same = ["seed=range(2)", "lam=1e-1"], ["lam=0.1", "seed=0,1"], ["seed=5", "lam=0.1", "seed=0,1"]
    assert {variant(words) for words in same} == {"lam=0.1,seed=0+1"}
    where = ["results_dir=x", "quiet=true", "checkpoint.every=5", "dataset.source=real"]
    assert variant(where) == variant([]) == ""


def test_all_formats_of_a_figure_show_the_same_runs(file, results):
    def drawn(*formats):
        experiment_files.plot(str(file), formats, [f"results_dir={results}"])
        return digests(results / "figures/two")

    first = drawn("svg", "pdf")
    shutil.rmtree(results / "runs/ocr/mpbcfw")
    shutil.rmtree(results / "traces")
    again = drawn("png")
    assert {*again} - {*first} == {"oracle_calls.png"}  # selection is of working sets
    one = {name for name in again if name.startswith("oracle_calls") or name == "provenance.json"}
    assert all(again[name] != first.get(name) for name in one)
    shutil.rmtree(results / "figures")
    assert drawn("svg", "pdf", "png") == {name: again[name] for name in one}


def test_what_an_earlier_drawing_has_left_is_named_and_stays(file, results, blank):
    _, said = plot(file, results)
    assert said == []
    (results / "figures/two/notes.txt").write_text("mine")
    (results / "figures/two/selection-synthetic.csv").write_text("of other data")
    _, said = plot(file, results)
    assert said == []
    file.write_text(FILE.replace("  selection: [iteration]\n", ""))
    _, (said,) = plot(file, results)
    assert "selection.csv, selection.svg were not drawn now, and may show other runs" in said
    assert (results / "figures/two/selection.svg").is_file()


def test_another_experiment_of_the_same_name_does_not_replace_figures_silently(
    file, results, blank, tmp_path
):
    plot(file, results)
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / file.name
    other.write_text(FILE.replace("seed: [0, 1]", "seed: [0]"))
    _, said = plot(other, results)
    assert any(
        "the former figures are of another two.yaml, or of that file before" in one for one in said
    )
    _, said = plot(other, results)
    assert said == []


def test_a_drawing_that_cannot_be_written_changes_none_of_its_files(file, results, monkeypatch):
    plot(file, results)
    before = digests(results / "figures/two")
    make_runs(file, results)
    monkeypatch.setattr("ssvm_bench.figures.kind.curves.notes", lambda *_: ["other runs"])
    full = OSError(28, "No space left on device")

    def fsync(descriptor, calls=[]):  # noqa: B006
        calls.append(descriptor)
        if len(calls) > 3:
            raise full

    monkeypatch.setattr("ssvm_bench.base.files.os.fsync", fsync)
    with pytest.raises(RunFailedError, match="figures/two: No space left"):
        plot(file, results)
    assert digests(results / "figures/two") == before


def test_tables_where_there_are_none_are_refused(file, results, blank):
    words = ["plot", str(file), f"results_dir={results}", "--format=tex"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "two has no tables" in done.stderr
    done = CliRunner().invoke(main, [*words, "--format=svg"])
    assert done.exit_code == 0
    assert "two has no tables" in done.stderr
    file.write_text(FILE + "  targets: [calls]\n")
    done = CliRunner().invoke(main, words)
    assert f"figure: {results}/figures/two/targets.tex\n" in done.stdout


def test_every_file_that_is_written_is_printed(file, results, blank):
    said = CliRunner().invoke(main, ["plot", str(file), f"results_dir={results}"]).stdout
    there = {str(results / path) for path in contents(results) if not path.endswith(".lock")}
    printed = [line.partition(": ")[2] for line in said.splitlines()]
    assert {path for path in there if not path.startswith(tuple(printed))} == set()
    assert all(Path(path).exists() for path in printed)


def test_a_figure_shows_own_runs_or_committed_ones(file, results, monkeypatch, blank):
    monkeypatch.chdir(results.parent)
    plot(file, "results")
    (results / folder.MARKER).touch()
    shutil.rmtree(results / "runs")

    def drawn(*words):
        done = CliRunner().invoke(main, ["plot", str(file), "--format=svg", *words])
        (path,) = re.findall(r"^provenance: (.*)$", done.stdout, re.MULTILINE)
        made = json.loads(Path(path).read_text())
        assert (made["runs"] == 4) == ("/two/runs=committed/" in path)
        return done, made["runs"], made["started"]["first"][:4]

    done, *about = drawn()
    assert (done.exit_code, about) == (0, [4, "2020"])
    assert "own runs" not in done.stderr
    make_runs(file, results, "seed=0", year=2031)  # half of them
    done, *about = drawn()
    assert about == [2, "2031"]
    assert "2 of 4 runs are missing" in done.stderr
    assert "--runs committed" in done.stderr
    assert drawn("--runs=committed")[1:] == (4, "2020")
    assert drawn("--runs=mine")[1:] == (2, "2031")
    # the page of the experiment as well
    for words, runs in (((), "2 runs of"), (("--runs=committed",), "4 runs of")):
        CliRunner().invoke(main, ["report", "--experiment", str(file), *words])
        assert runs in (results / "report/two.html").read_text()
    shutil.rmtree(results / "runs")
    shutil.rmtree(results / "own")
    done = CliRunner().invoke(main, ["plot", str(file), "--runs=mine"])
    assert done.exit_code == 1
    assert "No run of your own" in done.stderr
    (results / folder.MARKER).unlink()
    done = CliRunner().invoke(main, ["plot", str(file), "--runs=committed"])
    assert done.exit_code == 2
    assert "has no results that came with it" in done.stderr
