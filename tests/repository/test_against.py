"""The bench against another checkout: both are measured in turn, each by its own bench."""

import json
import re
import subprocess

import pytest
from click.testing import CliRunner

from benchmarks import against
from benchmarks.__main__ import main
from benchmarks.jobs import Job
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.results.provenance import THREAD_VARIABLES

BENCH = """
from dataclasses import dataclass
@dataclass
class Row:
    subject: str; source: str; quantity: str; value: float; unit: str
def measure_graphs(call, by={by}):
    from pathlib import Path
    with Path("log").open("a") as log:
        log.write("x")
    for k, what in enumerate({rows}, 1):
        yield Row("usps", "real", what, by * k * len(Path("log").read_text()), "s")
"""


def checkout(folder, package, by, rows):
    """Make a checkout whose bench tells ``by`` times the number of the round, and of the row."""
    place = folder.joinpath(*package.split("."))
    place.mkdir(parents=True)
    for part in (place, *place.relative_to(folder).parents):
        (folder / part / "__init__.py").touch()
    (place / "__main__.py").touch()
    (place / "graphs.py").write_text(BENCH.format(by=by, rows=rows))
    return folder


def test_checkouts_are_measured_in_turn_by_their_own_bench(tmp_path, monkeypatch):
    here = checkout(tmp_path / "here", "benchmarks", 3.0, ["new", "one", "two"])
    there = checkout(tmp_path / "there", "ssvm_bench.bench", 2.0, ["one", "two", "old"])
    monkeypatch.setattr(against, "HERE", here)
    job = Job("usps", "graphs", (["dataset=usps"],))
    found = list(against.compare(job, there, rounds=3))
    assert [one.row[2] for one in found] == ["one", "two"]
    assert (found[0].here, found[0].there) == ([6.0, 12.0, 18.0], [2.0, 4.0, 6.0])
    assert (found[0].ratio, found[1].ratio) == (3.0, 2.25)
    assert found[1].rounds == [2.25, 2.25, 2.25]
    assert against.line(found[0]) == "usps: one: 12 / 4 s = 3.000"
    assert [one.row[2] for one in against.compare(job._replace(most=2), there, 1)] == ["one"]


def test_the_ratios_of_checkouts_are_shown(tmp_path, monkeypatch):
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "1")
    monkeypatch.delenv("NUMBA_OPT", raising=False)
    monkeypatch.setattr(against, "HERE", checkout(tmp_path / "a", "benchmarks", 2.0, ["what"]))
    there = checkout(tmp_path / "b", "benchmarks", 2.5, ["what"])
    arguments = ("--dataset", "usps", "--against", str(there), "--rounds", "1")
    result = CliRunner().invoke(main, arguments)
    # of the other modules, these checkouts have none
    assert isinstance(result.exception, RunFailedError)
    assert re.search(r"usps real +\| what +\| +2 s \| +2\.5 s \| +0\.800 \|", result.stdout)
    assert "ModuleNotFoundError" in result.stderr
    with pytest.raises(RunFailedError, match="no checkout of ssvm-bench"):
        against.package_of(tmp_path)
    CliRunner().invoke(main, (*arguments, "--json", str(tmp_path / "x.json")))
    (row,) = json.loads((tmp_path / "x.json").read_text())["measurements"]
    assert (row["quantity"], row["value"]) == ("what, relative to b", 0.8)


def test_ratios_to_another_checkout_are_rows_of_their_own():
    row = "ocr", "real", "mpbcfw_fast: time to a gap of 0.01", "s"
    found = against.Comparison(row, [2.0, 4.0, 6.0], [8.0, 10.0, 10.0]).stored("0123abcd")
    assert found.quantity == "mpbcfw_fast: time to a gap of 0.01, relative to 0123abcd"
    assert (found.value, found.low, found.high, found.unit) == (0.4, 0.25, 0.6, "×")
    assert found.seconds == 4.0
    assert against.Comparison((*row[:3], "MB"), [1.0], [2.0]).stored("").seconds is None


def test_a_checkout_is_named_by_its_commit_or_else_by_its_folder(tmp_path):
    assert against.commit_of(tmp_path) == tmp_path.name
    asked = ["git", "-c", "user.name=A", "-c", "user.email=a@b", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*asked, *words], check=True)
    assert re.fullmatch("[0-9a-f]{8}", against.commit_of(tmp_path))
