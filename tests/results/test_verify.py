"""`ssvm-bench verify` on a folder of tiny runs, and on what somebody has changed in it."""

import math
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from program import GRID, call, config_of, error_of
from traces import make_trace, sealed

from ssvm_bench import verification
from ssvm_bench.results import checks, stored_traces
from ssvm_bench.results.table import Best
from ssvm_bench.results.trace import WEIGHTS, find_runs
from ssvm_bench.verification import DIFFERENT, SKIPPED


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a folder of config files, whose experiment of four runs was made in `results`."""
    folder = tmp_path_factory.mktemp("verify")
    (folder / "experiments").mkdir()
    (folder / "experiments" / "tiny.yaml").write_text(f"{GRID}  claims: [mpbcfw]\n")
    done = call("experiment", "tiny", f"results_dir={folder / 'results'}", "--config-dir", folder)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def results(made, tmp_path):
    """Return a copy of the results folder."""
    return shutil.copytree(made / "results", tmp_path / "results")


@pytest.mark.parametrize(("dataset", "outcome"), [("scribbles", SKIPPED), ("usps", DIFFERENT)])
def test_features_of_pictures_may_depend_on_the_machine(tmp_path, monkeypatch, dataset, outcome):
    config = config_of(tmp_path, f"dataset={dataset}", "dataset.source=synthetic")
    here = SimpleNamespace(fingerprint="of here")
    monkeypatch.setattr(verification, "dataset_of", lambda _: here)
    monkeypatch.setattr(verification, "config_of", lambda _: config)
    trace = make_trace([1.0], [0.0], config=config.resolved())
    (found,) = verification.fingerprints(SimpleNamespace(runs=[trace]))
    assert found.outcome == outcome


def verified(made, results, *more):
    """Return what is printed, after a look at the exit status."""
    done = call("verify", f"results_dir={results}", "--config-dir", made, *more)
    assert done.exit_code == int(" 0 different" not in done.stdout), done.output
    return done.stdout


def differences(printed):
    return [line.strip() for line in printed.splitlines() if line.startswith("    ✗")]


def visible(folder):
    return sorted(path for path in folder.rglob("*") if not path.name.startswith("."))


def raised(path, column, seal):
    """Raise the last value of a column of stored traces, with or without its checksum."""
    table = pq.read_table(path)
    about = dict(table.schema.metadata)
    values = table[column].to_numpy().copy()
    values[-1] += 0.5
    place = table.column_names.index(column)
    table = table.replace_schema_metadata(None).set_column(place, column, pa.array(values))
    if seal:
        about[stored_traces.CHECKSUM_KEY] = checks.table_checksum(table).encode()
    pq.write_table(table.replace_schema_metadata(about), path)


def test_all_is_the_same_and_runs_are_made_again(made, results):
    before = visible(results)
    printed = verified(made, results, "--rerun", 2, "--seed", 3)
    assert differences(printed) == []
    assert "skipped" in printed.splitlines()[0]
    assert not [line for line in printed.splitlines() if line.startswith("–")]  # all were looked at
    (again,) = [line for line in printed.splitlines() if "repeated runs (seed 3)" in line]
    assert again.split()[-4:-1] == ["2", "0", "0"]
    assert visible(results) == before


TRACES = "traces/tiny/usps-mpbcfw-synthetic.parquet"


def test_a_damaged_trace_is_found(made, results):
    raised(results / TRACES, "primal", seal=False)
    assert differences(verified(made, results))[0].startswith(f"✗ {TRACES}: ")


def test_values_that_nobody_has_computed_are_found(made, results):
    raised(results / TRACES, "dual", seal=True)
    found = "\n".join(differences(verified(made, results, "--rerun", 4)))
    for said in ("above P", "the summary has", "repeated, at iteration"):
        assert said in found


def test_a_changed_claim_is_found(made, results):
    path = results / "figures/tiny/claims-synthetic.md"
    path.write_text(path.read_text().replace("**holds**", "**does not hold**", 1))
    (found,) = differences(verified(made, results))
    assert found.startswith(f"✗ figures/tiny/{path.name}: line ")
    assert "does not" in found


def test_changed_and_missing_figures_are_found(made, results):
    folder = results / "figures" / "tiny"
    table = folder / "iterations-synthetic.csv"
    text = table.read_text()
    line = text.splitlines()[3]
    number = next(cell for cell in line.split(",") if cell.startswith("0.") and len(cell) > 5)

    def changed(factor, digits):
        other = line.replace(number, f"{float(number) * factor:.{digits}g}", 1)
        table.write_text(text.replace(line, other))

    changed(1 + 1e-6, 9)
    assert differences(verified(made, results)) == []  # the last digit depends on the machine
    changed(1.01, 6)
    for end in ("png", "pdf"):
        table.with_suffix(f".{end}").unlink()
    (folder / "other.csv").write_text("1\n")
    printed = verified(made, results)
    assert [of.split(":")[0] for of in differences(printed)] == [
        f"✗ figures/tiny/iterations-synthetic.{end}" for end in ("csv", "png")
    ]
    assert "1 skipped: it takes data" in printed


def test_swapped_weights_are_found(made, results):
    first, other = find_runs(results)[0], find_runs(results)[-1]
    sealed(first, {WEIGHTS: (other / WEIGHTS).read_bytes()})
    (found,) = differences(verified(made, results))
    assert first.parent.name in found
    assert "at the stored weights" in found


def test_missing_data_and_nothing_at_all(made, results, tmp_path, monkeypatch):
    monkeypatch.setattr(verification, "has_raw_file", lambda kind: True)
    monkeypatch.setattr(verification.raw_file("usps").__class__, "prepared", True)
    monkeypatch.setattr(verification, "kept_in", lambda raw, source: None)
    printed = verified(made, results)
    assert "skipped: the data of usps are not prepared" in printed
    assert error_of(call("verify", f"results_dir={tmp_path / 'empty'}"), 2)
    assert "results_dir=" in error_of(call("verify", "seed=3"), 2)


def test_weak_duality_of_rows_and_of_runs_together():
    def below(dual, best=None, kind="multiclass"):
        trace = make_trace([1.0, 0.6], [0.1, dual], config={"oracle": {"kind": kind}})
        return checked(replace(trace, best=best))

    def checked(run):
        (found,) = verification.of_runs([run], verification.above_primal)
        return found

    assert below(0.5, Best(0.5, 0.5)).outcome == "same"
    assert below(0.5, Best(0.4, 0.4)).why.endswith("which another run saw")
    assert below(0.7).why == "iteration 1: F = 0.7 above P = 0.6"
    assert below(0.7, kind="alpha_expansion").outcome == "skipped"
    without = make_trace([1.0, 0.6], np.full(2, math.nan))
    assert checked(without).outcome == "skipped"
