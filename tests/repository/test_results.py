"""What is committed under ``results/``: redrawn from the stored traces, it is the same."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from program import of_a_checkout

from ssvm_bench.base.messages import shown_by
from ssvm_bench.report import experiment_files
from ssvm_bench.results import stored_traces

pytestmark = of_a_checkout
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Return a results folder with what figures are drawn from alone; curves are only tabulated."""
    monkeypatch.setattr("ssvm_bench.figures.drawing.draw_curves", lambda *_: Figure())
    for folder in ("traces", "reference"):
        shutil.copytree(RESULTS / folder, tmp_path / folder)
    return tmp_path


@pytest.mark.parametrize("name", ["mpbcfw_fig4", "mpbcfw_fig5", "mpbcfw_fig6", "mpbcfw_start"])
def test_the_stored_traces_give_the_stored_numbers(copy, name):
    said = []
    with shown_by(said.append):
        files = experiment_files.plot(name, ["svg"], [f"results_dir={copy}"])
    assert said == []
    check_tables(files, copy)


def test_the_stored_traces_give_the_stored_claims(copy):
    where = [f"results_dir={copy}"]
    check_tables(experiment_files.plot("mpbcfw_claims", ["svg"], where), copy)


def check_tables(files, copy):
    tables = [path for path in files if path.suffix in (".csv", ".md")]
    assert tables
    for path in tables:
        stored = RESULTS / path.relative_to(copy)
        if path.suffix == ".md":
            assert path.read_text() == stored.read_text()
        else:
            pd.testing.assert_frame_equal(pd.read_csv(path), pd.read_csv(stored), rtol=1e-4)


@pytest.mark.parametrize("name", ["mpbcfw_fig4", "mpbcfw_start"])
def test_the_paper_s_runs_are_of_real_data_and_of_one_commit_a_dataset(name):
    about = json.loads((RESULTS / "figures" / name / "provenance.json").read_text())
    assert about["runs"] == 160
    assert not any("changes" in commit for commit in about["commits"])
    commits = {}
    for path in stored_traces.files_of(RESULTS, name):
        for trace in stored_traces.read_file(path, RESULTS):
            commits.setdefault(trace.dataset, []).append(trace.metadata["git"])
    assert [len(of_runs) for of_runs in commits.values()] == [40] * 4
    assert all(len(set(of_runs)) == 1 for of_runs in commits.values())
    table = pd.read_csv(RESULTS / "figures" / name / "iterations.csv")
    assert set(table["source"]) == {"real"}
    # whole runs, of all repeats, at the beginning of each curve
    assert (table[table["x"] == 0]["repeats"] == 10).all()
