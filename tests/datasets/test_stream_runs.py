"""Runs on streams: which oracle, which hash, and what is told before any work."""

import numpy as np
import pytest
from helpers import random_chains
from program import call, config_of, error_of, run_here

from ssvm_bench.base import memory
from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import export, stream
from ssvm_bench.datasets.stream import DataStream
from ssvm_bench.results.trace import read_trace

CHAINS = random_chains([3] * 12, 3, 4)
ABOUT = {"oracle": "viterbi", "d": 21}
USPS = ("usps", "--source", "synthetic", "dataset.n_samples=30")


@pytest.fixture
def path(tmp_path):
    """Return a file of twelve chains."""
    made = tmp_path / "a.parquet"
    export.write(CHAINS, made, export.Export(), **ABOUT)
    return made


def test_a_run_on_a_stream_is_the_run_on_the_dataset(tmp_path):
    for data, solver in ((USPS, "bcfw"), (("ocr", *USPS[1:3], "dataset.n_samples=20"), "mpbcfw")):
        path = tmp_path / f"{data[0]}.parquet"
        result = call("data", "export", data[0], path, *data[1:])
        assert result.exit_code == 0, result.stderr
        assert f"{path}: {data[0]} (synthetic data), " in result.stdout
        assert " to train on; row groups: 1\n" in result.stdout
        words = (f"solver={solver}", "clock=work", "budget.max_iterations=3")
        ours = (f"dataset={data[0]}", "dataset.source=synthetic", data[-1])
        theirs = ("dataset=stream", f"dataset.path={path}")
        runs = [run_here(tmp_path / "r", *words, data=each) for each in (ours, theirs)]
        direct, streamed = [read_trace(run.folder) for run in runs]
        for column in ("primal", "dual", "time", "w_norm", "oracle_calls"):
            assert np.array_equal(direct.frame[column], streamed.frame[column]), column
        about, of_stream, found = direct.metadata, streamed.metadata, DataStream(path)
        assert of_stream["config"]["oracle"] == about["config"]["oracle"]
        assert of_stream["dataset"]["d"] == about["dataset"]["d"] == found.d
        assert of_stream["dataset"]["fingerprint"] == found.fingerprint
        assert run_here(tmp_path / "r", *words, data=theirs).status == "skipped"


def test_the_file_brings_its_oracle_and_an_explicit_one_wins(path):
    (config,) = compose_runs(["dataset=stream", f"dataset.path={path}"])
    assert config.oracle.name == "viterbi"
    (config,) = compose_runs(["dataset=stream", f"dataset.path={path}", "oracle=multiclass"])
    assert config.oracle.name == "multiclass"
    with pytest.raises(ConfigError, match="it handles independent labels"):
        run_here(path.parent, "oracle=multiclass", data=(f"dataset.path={path}", "dataset=stream"))


def test_a_run_is_known_by_its_examples_not_by_their_place(path, tmp_path):
    def digest(place, *words):
        (config,) = compose_runs(["dataset=stream", f"dataset.path={place}", *words])
        return config.with_source("synthetic").hash()

    moved, found = tmp_path / "b.parquet", digest(path)
    pinned = f"dataset.fingerprint={DataStream(path).fingerprint}"
    moved.write_bytes(path.read_bytes())
    assert digest(moved) == digest(path, "dataset.max_memory=100") == found
    assert digest(tmp_path / "nowhere.parquet", pinned, "oracle=viterbi") == found
    assert digest(path, "dataset.n_samples=3") != found
    export.write(CHAINS, moved, export.Export(order="shuffled"), **ABOUT)
    assert digest(moved) != found


def test_what_cannot_be_loaded_is_told_before_any_work(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def message(*words, status=1):
        result = call("run", "dataset=stream", f"results_dir={tmp_path / 'r'}", *words)
        return error_of(result, status)

    here = f"dataset.path={path}"
    assert "dataset=stream needs dataset.path=FILE.parquet" in message(status=2)
    missing = message(f"dataset.path={tmp_path / 'b.parquet'}", status=2)
    assert "b.parquet: there is no such file or folder" in missing
    named = message("dataset=digits")  # its file is not one that the call names
    assert "streams/digits.parquet: there is no such file or folder. It is that of" in named
    assert "`make streams`" in named
    assert "optdigits" in named
    assert "It is that of" not in message("dataset=digits", "dataset.path=b.parquet", status=2)
    assert "must be ≤ 12, the number of examples" in message(here, "dataset.n_samples=13", status=2)
    said = message(here, "dataset.source=real")
    assert "was made of synthetic data, and dataset.source=real" in said
    said = message(here, "dataset.fingerprint=a0")
    assert f"the fingerprint {DataStream(path).fingerprint}" in said
    said = message(here, "dataset.max_memory=0.002")
    assert f"The 12 examples in {path} take about 0 MB as a whole, and 0 MB are free" in said
    assert "dataset.n_samples=" in said
    monkeypatch.setattr(stream, "available", lambda: 1000)
    assert "a solver that reads them in chunks" in message(here)
    assert not (tmp_path / "r").exists()
    export.write(CHAINS.derived(source="real (altered)"), path, export.Export(), **ABOUT)
    monkeypatch.undo()
    assert "dataset.trust=true uses it" in message(here)
    config = config_of(tmp_path, data=("dataset=stream", here, "dataset.trust=true"))
    assert stream.load(config.dataset).source == "real (altered)"


def test_free_memory_is_that_of_machine_and_container(tmp_path, monkeypatch):
    assert memory.available() is None or memory.available() > 1 << 20
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER", tmp_path)
    assert memory.available() is None
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    8 kB\n")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert memory.available() == 8192
    (tmp_path / "memory.max").write_text("3000\n")
    assert memory.available() == 2000
