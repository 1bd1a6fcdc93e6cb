"""What other programs read of ours: JSON, LaTeX, the options of a run, cards of data sets."""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest
import yaml
from program import OCR, USPS, call, error_of
from traces import make_trace

import ssvm_bench
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import catalog
from ssvm_bench.datasets import sources
from ssvm_bench.figures import drawing, style
from ssvm_bench.figures.document import Table
from ssvm_bench.figures.kind import Output, save
from ssvm_bench.results import stored_traces

ROOT = Path(__file__).parents[2]
RUN = (*USPS, "solver=bcfw", "clock=work", "budget.max_iterations=2")


def told(*words):
    """Return what a command prints as JSON, alone."""
    result = call(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_the_options_of_a_run_are_shown_as_it_stores_them(tmp_path):
    run = told("run", *RUN, f"results_dir={tmp_path}")
    shown = yaml.safe_load(call("config", "show", *RUN, f"results_dir={tmp_path}").stdout)
    with Path(f"{run['folder']}/config.yaml").open(encoding="utf-8") as file:
        assert shown == yaml.safe_load(file)
    assert told("config", "show", *RUN, f"results_dir={tmp_path}") == shown
    assert [each["lam"] for each in told("config", "show", "-m", "lam=1,2")] == [1.0, 2.0]
    message = error_of(call("config", "show", "solver=bcwf"), status=2)
    assert "Did you mean bcfw?" in message


@pytest.mark.parametrize("asked", [("--dry-run",), ("--cfg", "job")])
def test_a_dry_run_shows_the_options_and_runs_nothing(asked, tmp_path):
    words = (*RUN, f"results_dir={tmp_path / 'results'}")
    shown = call("config", "show", *words).stdout
    assert call("run", *words, *asked).stdout == shown
    assert (
        call(*["run", "-m", "lam=1,2"], *asked).stdout
        == call(*["config", "show", "-m", "lam=1,2"]).stdout
    )
    of_experiment = call("experiment", "quickstart", *words[-1:], *asked).stdout
    documents = [*yaml.safe_load_all(of_experiment)]
    assert documents == told("experiment", "quickstart", *words[-1:], *asked)
    runs = told("experiment", "quickstart", "--status", *words[-1:])
    assert [each["solver"]["name"] for each in documents] == [each["solver"] for each in runs]
    half = told("experiment", "quickstart", "--shard", "1/2", *words[-1:], *asked)
    assert 0 < len(half) < len(documents)
    assert [*tmp_path.iterdir()] == []
    assert "Did you mean bcfw?" in error_of(call("run", "solver=bcwf", *asked), status=2)
    assert "job" in error_of(call("run", "--cfg", "hydra"), status=2)


def test_a_run_tells_what_became_of_it_as_json(tmp_path):
    words = ("run", *RUN, f"results_dir={tmp_path}")
    first, again = told(*words), told(*words)
    assert (first["status"], again["status"]) == ("finished", "skipped")
    assert first["summary"]["iteration"] == 2
    assert first["summary"] == again["summary"]
    both = told(*words, "-m", "seed=0,1")
    assert [(each["seed"], each["status"]) for each in both] == [(0, "skipped"), (1, "finished")]
    failed = call(*words, "lam=-1", "--json")
    assert (failed.exit_code, failed.stdout) == (2, "")


def test_lists_and_where_things_stand_are_json(tmp_path):
    listed = told("list")
    assert set(listed) == {"datasets", "oracles", "solvers", "experiments"}
    assert told("list", "solvers")["solvers"] == listed["solvers"]
    assert {each["state"] for each in told("data", "status")} <= {"ready", "missing", "broken"}
    runs = told("experiment", "quickstart", "--status", f"results_dir={tmp_path}")
    assert {each["state"] for each in runs} == {"missing"}
    assert {each["solver"] for each in runs} >= {"bcfw", "mpbcfw"}
    asked = call("experiment", "quickstart", "--json", f"results_dir={tmp_path}")
    assert "--json is for --status" in error_of(asked, status=2)


def test_where_things_stand_tells_lam_or_its_rule(tmp_path):
    """The number takes the examples, which nothing loads: it is that of finished runs."""
    words = (*RUN, f"results_dir={tmp_path / 'results'}")
    assert call("run", *words).exit_code == 0
    file = tmp_path / "some.yaml"
    file.write_text("grid: {lam: [1/n, 10/n, 0.5]}\n")
    runs = told("experiment", file, *words, "--status")
    assert [each["lam"] for each in runs] == ["1/n", "10/n", 0.5]
    assert [each["lam_value"] for each in runs] == [pytest.approx(1 / 30), None, None]
    file.write_text("grid: {dataset: moons, solver: dcadmm, oracle.nu: 0.25}\n")
    (run,) = told("experiment", file, words[-1], "--status")
    assert (run["lam"], run["lam_value"]) == (0.25, None)


def test_a_report_tells_its_pages_and_verify_its_differences_as_json(tmp_path):
    run = told("run", *RUN, f"results_dir={tmp_path}")
    made = told("report", f"results_dir={tmp_path}")
    (page,) = made["pages"]
    assert made["page"] == page["page"] == str(tmp_path / "report.html")
    assert (page["datasets"], page["solvers"], page["runs"]) == (["usps"], ["bcfw"], 1)
    assert (page["experiment"], page["failures"]) == (None, [])
    verified = told("verify", f"results_dir={tmp_path}")
    assert verified["different"] == 0 < verified["same"]
    assert verified["same"] == sum(check["same"] for check in verified["checks"])

    summary = Path(run["folder"]) / "summary.json"
    summary.write_text(summary.read_text().replace('"iteration": 2', '"iteration": 3'))
    found = call("verify", f"results_dir={tmp_path}", "--json")
    differences = [
        each for check in json.loads(found.stdout)["checks"] for each in check["differences"]
    ]
    assert found.exit_code == 1
    assert "seed=0" in differences[0]["of"]
    page = told("report", f"results_dir={tmp_path}")["pages"][0]
    assert page["failures"][0]["path"] == run["folder"]


def test_details_are_told_when_they_are_asked_for(tmp_path):
    words = (*RUN, "quiet=true", f"results_dir={tmp_path}")
    assert "is in" not in call("run", *words).stderr
    for asked in (("run", *words, "-v"), ("-v", "run", *words)):
        assert re.search(r"solver=bcfw is in .*bcfw\.yaml", call(*asked).stderr)
    assert "is in" not in call("run", *words).stderr


def test_without_colour_there_is_none(tmp_path, monkeypatch):
    words = ("run", *RUN, f"results_dir={tmp_path}")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    found = call(*words)
    assert not re.search("\x1b\\[[0-9;]*3[0-7]m", found.stdout + found.stderr)


@pytest.mark.parametrize("name", [*catalog.entries("dataset")])
def test_every_dataset_has_a_card(name):
    if sources.has_raw_file(name) and sources.status(name).state == "ready":
        pytest.skip("real data are read")  # test_a_card_counts_the_examples does, once
    card = sources.card(name)
    assert card["name"] == name
    assert card["licence"]
    if sources.has_raw_file(name):
        assert card["citation"] != "see the source"
        assert card["source"].startswith("http")


def test_a_card_is_printed_or_json():
    shown, plain = call("data", "card", "usps").stdout, told("data", "card", "usps")
    assert plain["source"] in shown
    assert "7291" in plain["examples"]
    assert plain["licence"] == "none stated at its home"
    assert "There is no dataset 'upsp'" in error_of(call("data", "card", "upsp"), status=2)


def test_tables_are_latex_and_pgf_needs_it(tmp_path, monkeypatch):
    table = Table("Gaps", ["solver", "λ"], [["bcfw_avg", "0.1"]])
    output = Output("made", drawing.pd.DataFrame({"a": [1]}), "Made", [table])
    written = save(output, tmp_path / "made", ["tex"])
    assert sorted(path.suffix for path in written) == [".csv", ".md", ".tex"]
    assert r"bcfw\_avg & 0.1" in (tmp_path / "made.tex").read_text()
    monkeypatch.setattr(drawing.shutil, "which", lambda _: None)
    with pytest.raises(ConfigError, match="none of lualatex, xelatex is installed"):
        drawing.rendered(drawing.Figure(), "pgf")


STAND_IN = r"""#!{python}
import sys
for line in sys.stdin:
    if "\\@@end" in line:
        break
    if "pgf_backend_query_start" in line:
        print("*pgf_backend_query_start\n", end="\n*", flush=True)
    elif line.startswith(r"{{\catcode"):
        sys.exit("! Undefined control sequence.") if "BROKEN" in line else None
        print("20.0pt,7.0pt,2.0pt\n", end="\n*", flush=True)
"""
"""Answers matplotlib as LaTeX does: each text is as large as the next one."""

HOSTILE = "a_b & 5 % of #1, {x} ~ ^ \\input{/etc/passwd} $5 λ"
SET = (
    r"a\_b \& 5 \% of \#1, \{x\} \textasciitilde{} \textasciicircum{} "
    r"\textbackslash{}input\{/etc/passwd\} \$5 $\lambda$"
)


@pytest.fixture(params=["lualatex", "xelatex"])
def stand_in(request, tmp_path, monkeypatch):
    program = tmp_path / "programs" / request.param
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return program


def figure_of(title):
    legend = drawing.legend_of({title: style.Stroke("k", "-")})
    with drawing.page(title, [title], (1, 1), legend) as (figure, panels):
        panels[0, 0].set_title(style.as_written(title))
        panels[0, 0].set_yticks([1.0], [style.as_written(title)])
        panels[0, 0].set_xscale("log")
    return figure


def test_a_figure_as_pgf_has_its_names_as_they_are_written(stand_in):
    text = drawing.rendered(figure_of(HOSTILE), "pgf").decode()
    assert text.count(SET) == 4  # title, notes, panel and tick
    assert SET.replace(r"\& 5", r"(\& 5") in text  # legend: a solver with its options
    assert "\\input{/" not in text
    assert "\\mathdefault{10^{" in text  # a formula of matplotlib stays one
    assert "\\end{pgfpicture}" in text
    assert drawing.rendered(figure_of("costs"), "svg").startswith(b"<?xml")


def test_latex_that_fails_and_pictures_as_pgf_are_told_in_one_sentence(stand_in):
    with pytest.raises(RunFailedError, match=f"{stand_in.name} cannot set the figure.*format pdf"):
        drawing.rendered(figure_of("BROKEN"), "pgf")
    figure = drawing.Figure()
    figure.add_subplot().imshow([[1, 2], [3, 4]])
    with pytest.raises(ConfigError, match="with pictures cannot be pgf"):
        drawing.rendered(figure, "pgf")
    stand_in.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(RunFailedError, match=r"cannot set the figure.*format pdf"):
        drawing.rendered(figure_of("another"), "pgf")


def test_plot_writes_pgf(stand_in, tmp_path):
    runs = [
        make_trace([1.0, 0.5, 0.3], [0.0, 0.2, 0.29], solver=solver, hash=letter * 12)
        for solver, letter in (("bcfw", "a"), ("mpbcfw", "b"))
    ]
    stored_traces.write(runs, tmp_path, "made_up")
    words = ("compare", "bcfw", "mpbcfw", f"results_dir={tmp_path}", "--out", tmp_path / "both")
    result = call(*words, "--format", "pgf")
    assert result.exit_code == 0, result.stderr
    assert "\\begin{pgfpicture}" in (tmp_path / "both.pgf").read_text()


class Trial:
    """What an objective asks of a trial of Optuna, with fixed answers."""

    def __init__(self):
        self.attributes = {}

    def suggest_float(self, name, low, high, log=False):
        assert log
        return (low * high) ** 0.5

    def suggest_int(self, name, low, high):
        return low

    def set_user_attr(self, name, value):
        self.attributes[name] = value


def test_the_objective_of_the_documentation_s_search_is_a_run(tmp_path):
    objective = runpy.run_path(str(ROOT / "docs" / "optuna_search.py"))["objective"]
    words = (*OCR, "dataset.folds=[0]", "clock=work", "budget.max_iterations=3")
    first, again = Trial(), Trial()
    loss = objective(first, words, tmp_path)
    assert 0 < loss < 1
    assert objective(again, words, tmp_path) == loss
    assert first.attributes == again.attributes
    (run,) = ssvm_bench.load_runs(tmp_path)
    assert run.about["config"]["lam"] == pytest.approx(0.01)
    assert run.about["config"]["solver"]["T"] == 2
