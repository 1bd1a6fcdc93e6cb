"""A sixth paper is one folder: its claims, a kind of figure and a look, drawn by ``plot``."""

import sys
from pathlib import Path

import pandas as pd
import pytest
from program import USPS, call, error_of, python
from traces import make_trace

from ssvm_bench.config import registry
from ssvm_bench.figures import style
from ssvm_bench.report.experiment_files import kinds, load

PAPER = """
from ssvm_bench.claims.paper import Paper
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures.kind import Kind, Output

from . import measures


def outputs(data, names):
    for name in names:
        yield Output(name, data.runs[0].frame[["iteration", "oracle_calls"]], "Calls", ["All."])


KIND = Kind("toy", Choices(("calls",)), outputs)
PAPER = Paper.of(__file__, measures=vars(measures), kinds=(KIND,))
"""
ABOUT = """
title: the toy paper
file: claims-toy
experiments: [toy]
solvers: [bcfw]
looks: {toy_solver: [Toy, '#123456', ':'], bcfw: [Mine, '#000000']}
titles: {toy_data: Toys}
"""
MEASURES = """
from ssvm_bench.claims.claim import Measured


def calls(case, runs):
    return Measured([run["oracle_calls"][-1] for run in runs.of(case)])
"""
CLAIMS = """
runs:
  bcfw: {solver: bcfw}
claims:
  few:
    section: '1'
    text: BCFW makes few calls.
    measured: calls at the end, at most {high}
    paper: {usps: few}
    measure: {by: calls, runs: bcfw}
    high: 60
"""
QUESTIONS = """
order:
  question: Which order?
  section: '2'
  says: nothing
  datasets: [usps]
  made_by: ssvm-bench experiment toy
  option: solver.sampling
  default: uniform
  others: [permutation]
  claims: [few]
"""
EXPERIMENT = """
title: Toys
grid:
  - {dataset: usps, solver: bcfw, dataset.n_samples: 20, budget.max_iterations: 3}
figures:
  toy: [calls]
  claims: [toy]
  fidelity: [toy]
"""


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch):
    """Let no folder of one test be seen by another."""
    monkeypatch.setattr(registry._PLUG_INS, "__path__", [])


@pytest.fixture
def folder(tmp_path):
    """Return a folder of config files with a paper and its experiment."""
    files = {"paper.py": PAPER, "measures.py": MEASURES, "about.yaml": ABOUT}
    files |= {"claims.yaml": CLAIMS, "questions.yaml": QUESTIONS}
    files = {f"paper/toy/{name}": text for name, text in files.items()}
    files["experiments/toy.yaml"] = EXPERIMENT
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    yield tmp_path
    forget_papers()


def forget_papers():
    """Let what is in folders be imported again, as in a new process."""
    for name in [*sys.modules]:
        if name.startswith("ssvm_bench_plug_in.paper."):
            del sys.modules[name]
    registry._papers.cache_clear()


def test_a_paper_is_a_folder_that_plot_draws(folder):
    results = folder / "results"
    options = ("dataset.source=synthetic", f"results_dir={results}", "--config-dir", folder)
    assert call("experiment", "toy", *options).exit_code == 0
    for file in results.rglob("*toy*.md"):
        file.unlink()
    assert call("plot", "toy", *options).exit_code == 0
    claims = (results / "claims-toy-synthetic.md").read_text()
    assert "What the toy paper claims" in claims
    assert "**holds**" in claims
    table = pd.read_csv(results / "figures" / "toy" / "calls-synthetic.csv")
    assert table["oracle_calls"].iloc[-1] == 60
    assert "Which order?" in (results / "fidelity-toy-synthetic.md").read_text()
    # its own experiments define its settings
    toy = registry.papers()["toy"]
    for words, judged in (((), 1), (("dataset.n_samples=10",), 0)):
        (config,) = load("toy", [folder]).configs(["dataset.source=real", *words], [folder])
        run = make_trace([1.0], [0.0], hash=config.own_hash())
        assert len(toy.at_settings([run])[0]) == judged


def test_a_paper_has_its_own_kinds_looks_and_titles(folder):
    assert "toy" not in kinds()
    registry.use([folder])
    assert list(registry.papers())[-1] == "toy"
    assert list(kinds())[-1] == "toy"
    assert style.look("toy_solver T=5") == ("Toy", "#123456", ":", "", ())
    assert style.solver_label("toy_solver (T=5)") == "Toy ((T=5))"
    assert style.dataset_name("toy_data") == "Toys"
    assert style.solver_label("bcfw") == "BCFW"  # that of an earlier paper stays


def test_a_folder_without_claims_names_a_solver_and_its_colour(folder):
    """As `docs/own_solver.md` says."""
    place = folder / "paper" / "looks"
    place.mkdir()
    page = (Path(__file__).parents[2] / "docs" / "own_solver.md").read_text()
    code, _, said = page.partition("Its `paper.py` is\n\n```python\n")[2].partition("```")
    (place / "paper.py").write_text(code)
    (place / "about.yaml").write_text(said.partition("```yaml\n")[2].partition("```")[0])
    registry.use([folder])
    assert style.solver_label("averaged") == "Averaged subgradient"
    assert style.strokes(["averaged"])["averaged"] == ("#CC6677", "--")
    done = call("list", "experiments", "--config-dir", folder)
    assert done.exit_code == 0


def test_two_papers_have_different_names(folder):
    (folder / "paper" / "toy").rename(folder / "paper" / "mpbcfw")
    registry.use([folder])
    with pytest.raises(registry.ConfigError, match="Two papers have the same name"):
        registry.papers()


def test_a_paper_that_fails_is_named_with_its_line(folder):
    (folder / "paper" / "toy" / "paper.py").write_text("1 / 0")
    result = call("plot", "quickstart", f"results_dir={folder / 'none'}", "--config-dir", folder)
    error = error_of(result, 1)
    assert "The paper kind 'toy' is in" in error
    assert "paper.py, line 1, which failed: ZeroDivisionError" in error


def test_a_run_imports_no_paper_and_not_what_reads_results(tmp_path):
    code = (
        "import sys; from ssvm_bench.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "no = ('ssvm_bench.papers.', 'ssvm_bench.claims', 'pandas', 'matplotlib', 'sklearn')\n"
        "print([name for name in sys.modules if name.startswith(no)])\n"
    )
    words = [*USPS, "dataset.n_samples=5", "budget.max_iterations=1", f"results_dir={tmp_path}"]
    found = python("-c", code, "run", "solver=ssg", *words)
    assert found.stdout.splitlines()[-1] == "[]", found.stderr


def test_every_folder_of_a_paper_is_listed_by_itself():
    folders = {path.parent.name for path in registry.PAPERS.glob("*/paper.py")}
    assert folders == set(registry.own_papers())
    assert {paper.folder.name for paper in registry.papers().values()} == folders
    assert all(isinstance(paper.folder, Path) for paper in registry.papers().values())


@pytest.mark.parametrize(
    ("file", "entry", "instead", "said"),
    [
        ("about.yaml", "experiments: [toy]", "experiments: toy", "experiments has to be a list"),
        ("about.yaml", "experiments: [toy]", "partial: 1", "partial has to be true or false"),
        ("about.yaml", "[Toy, '#123456', ':']", "Toy", "the look toy_solver has to be a list"),
        ("about.yaml", "file: claims-toy", "file: ../claims", "file has to be one word"),
        ("about.yaml", "file: claims-toy", "flie: claims-toy", "no field flie.*file"),
        ("about.yaml", "title: the toy paper", "", "no title"),
        ("about.yaml", "title: the toy paper", "title: [", "line "),
        ("paper.py", "kinds=(KIND,)", "kinds=(KIND)", "kinds has to be a tuple"),
        ("paper.py", "PAPER = Paper.of", "PAPER = 3  # ", "PAPER has to be a Paper, but is 3"),
        ("paper.py", "PAPER = Paper.of", "NONE = Paper.of", "PAPER has to be a Paper"),
    ],
)
def test_a_mistake_about_a_paper_is_one_message_with_its_file(folder, file, entry, instead, said):
    path = folder / "paper" / "toy" / file
    assert entry in path.read_text()
    path.write_text(path.read_text().replace(entry, instead))
    registry.use([folder])
    with pytest.raises(registry.SsvmBenchError, match=said) as raised:
        registry.papers()
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("questions.yaml", "a: [", "line 1: "),
        ("questions.yaml", "a: 3", "The question a in "),
        ("questions.yaml", "a: {question: Which}", "The question a in .*section"),
        ("questions.yaml", QUESTIONS + "  numbers: [3]", "The question order in "),
        ("remarks.yaml", "- a", "a mapping"),
        ("remarks.yaml", "few: text", "few has to be a mapping, but is text"),
    ],
)
def test_a_mistake_in_questions_or_remarks_is_one_message_with_its_file(folder, file, text, said):
    path = folder / "paper" / "toy" / file
    path.write_text(text)
    registry.use([folder])
    toy = registry.papers()["toy"]
    with pytest.raises(registry.ConfigError, match=said) as raised:
        getattr(toy, path.stem)
    assert str(raised.value).count(str(path)) == 1


def test_only_measures_are_offered_where_a_claim_names_none(folder):
    path = folder / "paper" / "toy" / "claims.yaml"
    path.write_text(CLAIMS.replace("by: calls", "by: cals"))
    registry.use([folder])
    with pytest.raises(registry.ConfigError) as raised:
        _ = registry.papers()["toy"].claims
    said = "Did you mean calls? Valid: above_start, calls, share_ahead."
    assert str(raised.value) == f"The claim few in {path}: it has no measure 'cals'. {said}"


def test_a_claim_about_a_dataset_that_does_not_exist_is_one_message(folder):
    path = folder / "paper" / "toy" / "claims.yaml"
    registry.use([folder])
    path.write_text(CLAIMS.replace("usps: few", "uspx: few"))
    with pytest.raises(registry.ConfigError) as raised:
        _ = registry.papers()["toy"].claims
    said = f"The claim few in {path}: there is no dataset uspx. Did you mean usps? Valid: "
    assert str(raised.value).startswith(said)
    path.write_text(CLAIMS.replace("usps: few", "usps: few, toy_data: few, own: few"))
    (folder / "dataset").mkdir()
    (folder / "dataset" / "own.yaml").write_text("# my examples\n")
    forget_papers()
    assert registry.papers()["toy"].datasets == ("usps", "toy_data", "own")


def test_a_wrong_claim_is_one_difference_that_verify_finds_beside_others(folder):
    results = folder / "results"
    options = ("dataset.source=synthetic", f"results_dir={results}", "--config-dir", folder)
    assert call("experiment", "toy", *options).exit_code == 0
    wrong = MEASURES.replace("    return", "    1 / 0\n    return")
    (folder / "paper" / "toy" / "measures.py").write_text(wrong)
    forget_papers()
    done = call("verify", *options[1:])
    assert done.exit_code == 1
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("    ✗")]
    assert "The claim few in" in said
    assert "ZeroDivisionError" in said
    assert "measures.py, line 6" in said
    assert "primal values at stored weights" in done.stdout


def test_a_report_leaves_out_a_paper_whose_claims_have_a_mistake(folder):
    results = folder / "results"
    options = (f"results_dir={results}", "--config-dir", folder)
    assert call("experiment", "toy", "dataset.source=synthetic", *options).exit_code == 0
    (folder / "paper" / "toy" / "claims.yaml").write_text("claims: {few: text}")
    forget_papers()
    done = call("report", *options)
    assert done.exit_code == 0, done.output
    assert "The claim few in" in done.output
    (folder / "paper" / "toy" / "about.yaml").write_text("title: [")
    forget_papers()
    for words in ((), ("--all",)):
        done = call("report", *words, *options)
        assert done.exit_code == 0, done.output
        assert done.stderr.count("Left out on all pages, a paper: ") == 1
        assert str(folder / "paper" / "toy" / "about.yaml") in done.stderr
    assert "Left out, the page toy: " in done.stderr
    assert call("plot", "toy", *options).exit_code == 2


@pytest.mark.parametrize("file", ["about.yaml", "questions.yaml", "paper.py"])
def test_a_paper_that_cannot_be_read_is_one_difference_that_verify_finds(folder, file):
    results = folder / "results"
    options = (f"results_dir={results}", "--config-dir", folder)
    assert call("experiment", "toy", "dataset.source=synthetic", *options).exit_code == 0
    (folder / "paper" / "toy" / file).write_text("a: [")
    forget_papers()
    done = call("verify", *options)
    assert done.exit_code == 1, done.output
    (said,) = [line for line in done.stdout.splitlines() if line.startswith("    ✗")]
    assert str(folder / "paper" / "toy" / file) in said
    assert "primal values at stored weights" in done.stdout
