"""Runs whose oracle others call: their options, hashes and traces, and how they fail."""

import importlib
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import program
import pytest
from program import USPS, call, config_of, error_of, run_here

from ssvm_bench.base import messages, scheduler, threads
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import registry
from ssvm_bench.estimator import StructuredSVM
from ssvm_bench.figures import scaling
from ssvm_bench.oracles import workers
from ssvm_bench.results.run_folder import partial_folder
from ssvm_bench.results.table import Runs
from ssvm_bench.results.trace import read_trace
from ssvm_bench.runs import components

WORK = ("clock=work", "budget.max_iterations=5", "solver=mpbcfw", "parallel.batch=7")
RANKING = Path(__file__).parents[2] / "examples" / "ranking" / "ranking"
MEASURED = ["eval_time", "cpu_time"]
OF_CALLS = ["oracle_seconds", "oracle_wait"]


def frame_of(outcome):
    return read_trace(outcome.folder).frame


def check_same(*frames):
    """Compare all that is counted of two runs, bit by bit."""
    counted = [frame.drop(columns=[*MEASURED, *OF_CALLS]) for frame in frames]
    pd.testing.assert_frame_equal(*counted, check_exact=True)


def cluster_of(distributed, count):
    """Return a cluster of dask with so many workers, on this machine."""
    options = {"dashboard_address": None, "host": "127.0.0.1"}
    return distributed.LocalCluster(n_workers=count, threads_per_worker=1, **options)


def hash_of(*options):
    return config_of("results", "dataset.source=synthetic", *options).hash()


def test_the_hash_covers_what_changes_the_numbers():
    alone = hash_of()
    assert hash_of("parallel.batch=1", "parallel.workers=1") == alone
    assert len({alone, hash_of("parallel.batch=2"), hash_of("parallel.batch=3")}) == 3
    # times are numbers, too, unless they are counted
    here, there = "parallel.address=tcp://a:1", "parallel.address=tcp://b:2"
    two, dask = hash_of("parallel.workers=2"), hash_of("parallel.workers=2", here)
    assert len({alone, two, dask, hash_of("parallel.workers=4")}) == 4
    assert hash_of(here) == hash_of(there)
    counted = hash_of("clock=work")
    assert hash_of("clock=work", "parallel.workers=4") == counted
    assert hash_of("clock=work", here) == counted
    assert hash_of("clock=work", "parallel.batch=4") != counted
    assert hash_of("oracle.delay=0.01") != alone
    assert hash_of("parallel.threads=1") == alone
    threads = {hash_of(f"parallel.threads={count}") for count in (2, 4)}
    assert len({alone, two, *threads}) == 4
    assert hash_of("clock=work", "parallel.threads=4") == counted


def test_with_counted_work_a_trace_has_the_same_bits_with_workers(tmp_path):
    alone = run_here(tmp_path / "1", *WORK)
    two = run_here(tmp_path / "2", *WORK, "parallel.workers=2")
    frames = [frame_of(one) for one in (alone, two)]
    assert list(frames[0].columns[-2:]) == OF_CALLS
    check_same(*frames)
    weights = [np.load(one.folder / "weights.npz")["w"] for one in (alone, two)]
    np.testing.assert_array_equal(*weights)
    plain = run_here(tmp_path / "3", "clock=work", "budget.max_iterations=2", "solver=mpbcfw")
    assert not set(OF_CALLS) & set(frame_of(plain).columns)


@pytest.mark.parametrize("solver", ["mpbcfw", "bmrm"])
def test_with_counted_work_a_trace_has_the_same_bits_with_threads(tmp_path, monkeypatch, solver):
    monkeypatch.setattr(threads, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(threads, "_LEAST_ITEM", 0.0)
    monkeypatch.setattr(threads, "available", lambda: 3)
    monkeypatch.setattr(components, "available", lambda: 3)
    options = (*WORK, f"solver={solver}")
    made = [
        run_here(tmp_path / f"{count}", *options, f"parallel.threads={count}")
        for count in (1, 2, 3)
    ]
    frames = [frame_of(one) for one in made]
    check_same(frames[0], frames[1])
    check_same(frames[0], frames[2])
    weights = [np.load(one.folder / "weights.npz")["w"] for one in made]
    np.testing.assert_array_equal(weights[1:], weights[:1] * 2)
    assert len({one.summary["train_loss"] for one in made}) == 1


def test_there_is_a_thread_a_core_at_most_and_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(components, "available", lambda: 2)
    config = config_of(tmp_path, "parallel.threads=7", "solver=bmrm")
    with messages.shown_by((shown := []).append):
        assert components.caller_of(config, "fingerprint").team.size == 2
    assert shown == ["parallel.threads=7: there are 2, as this process may use no more cores."]
    assert components.team_of(config_of(tmp_path, "parallel.threads=1").parallel).size == 1


def test_a_delay_counts_as_work_and_takes_its_time(tmp_path):
    options = ("solver=bcfw", "budget.max_iterations=2", "oracle.delay=0.002")
    counted, last = (
        frame_of(run_here(tmp_path, *options, f"clock={clock}")).iloc[-1]
        for clock in ("work", "wall")
    )
    assert counted["time"] == pytest.approx(60 * (0.002 + config_of(tmp_path).oracle.cost_call))
    assert last["time"] >= last["oracle_time"] >= 60 * 0.002
    assert last["oracle_wait"] >= last["oracle_seconds"] >= 60 * 0.002
    assert last["eval_time"] < 60 * 0.002 + 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("parallel.workers=2", "clock=cpu"), "clock=cpu counts"),
        (("oracle.delay=0.1", "clock=cpu"), "clock=cpu counts"),
        (("parallel.workers=2", "solver=eg"), "asks the oracle for expectations"),
        (("parallel.threads=2", "clock=cpu"), "parallel.threads would seem to gain nothing"),
        (("parallel.threads=2", "parallel.workers=2"), "Leave one of them out"),
        (("parallel.threads=2", "oracle.kernel=rbf", "oracle.gamma=1"), "kernel values that do"),
        (
            ("dataset=stanford", "oracle.warm_start=true", "parallel.threads=2"),
            "by several threads",
        ),
        (("parallel.threads=0",), "parallel.threads must be ≥ 1"),
        (("parallel.workers=0",), "parallel.workers must be ≥ 1"),
        (("parallel.batch=0",), "parallel.batch must be ≥ 1"),
        (("oracle.delay=-1",), "oracle.delay must be ≥ 0"),
        (("dataset=moons", "solver=dcadmm", "oracle.delay=1"), "without one"),
        (("dataset=latent", "parallel.workers=2", "solver.latent_rounds=2"), "Latent values"),
        (("dataset=stanford", "oracle.warm_start=true", "parallel.workers=2"), "its earlier calls"),
    ],
)
def test_what_cannot_be_called_elsewhere_is_said_before_anything_is_done(tmp_path, options, said):
    words = ("dataset.source=synthetic", "dataset.n_samples=30", f"results_dir={tmp_path}")
    data = words if options[0] not in ("dataset=moons", "dataset=latent") else words[2:]
    assert said in error_of(call("run", "dataset=usps", *data, *options), status=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("solver=mpbcfw",),
            "solver=mpbcfw has work for at most 1 of 3 workers at a time. Set par",
        ),
        (("solver=ssg",), "With parallel.batch=1, solver=ssg has work for at most 1 of 3 workers"),
        (("solver=dcd", "solver.planes=found"), "solver=dcd has work for at most 1 of 3 workers"),
        (("solver=bcfw", "parallel.batch=2"), "has work for at most 2 of 3 workers"),
        (("solver=dcd_online",), "one term at a time: parallel.workers=3 has little effect"),
        (("solver=bcfw", "parallel.batch=3"), None),
        (("solver=fw",), None),
        (("solver=bmrm",), None),
        (("solver=cutting_plane",), None),
    ],
)
def test_workers_without_work_are_told(tmp_path, options, said):
    config = config_of(tmp_path, *options, "parallel.workers=3")
    with messages.shown_by((shown := []).append):
        assert components.caller_of(config, "fingerprint") is not None
    assert len(shown) == (said is not None)
    assert said is None or said in shown[0]


def test_an_estimator_has_slow_oracles():
    x, y = [np.eye(4)[[k]] for k in range(4)], [[0], [1], [0], [1]]
    options = {"oracle.delay": 0.001, "parallel.batch": 2}
    made = StructuredSVM("chain", solver="bcfw", options=options, max_iterations=3)
    assert made.fit(x, y).history_["oracle_seconds"].iloc[-1] >= 4 * 0.001


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells who is whose child")
def test_a_run_survives_a_worker_and_goes_on_where_a_signal_ended_it(tmp_path):
    options = ("solver=bcfw", "clock=work", "oracle.delay=0.02", "parallel.batch=6")
    options += ("parallel.workers=2", "budget.max_iterations=12")
    log, words = tmp_path / "log", (*USPS, *options, f"results_dir={tmp_path}")
    with program.started("run", *words, log=log) as process:
        program.wait_until(lambda: len(log.read_text().splitlines()) > 3, process)
        victim = program.children(process.pid)[0]
        os.kill(victim, signal.SIGKILL)
        program.wait_until(lambda: "has ended (signal 9)" in log.read_text(), process)
        left = program.children(process.pid)
        process.send_signal(signal.SIGINT)
        process.wait(program.PATIENCE)
    assert "make its oracle calls again" in log.read_text()
    program.wait_until(lambda: not any(Path(f"/proc/{pid}").is_dir() for pid in left))
    assert partial_folder(config_of(tmp_path, *options).folder).is_dir()
    gone_on = frame_of(run_here(tmp_path, *options))
    check_same(gone_on, frame_of(run_here(tmp_path / "whole", *options)))


def test_a_scheduler_that_is_not_there_is_said(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(scheduler, "SECONDS", 1)
    for address, status, message in (
        ("tcp://127.0.0.1:9", 1, "No dask scheduler answers at tcp://127.0.0.1:9 within 1 s"),
        ("x:y:z", 2, "is no address of a scheduler"),
    ):
        words = (f"parallel.address={address}", f"results_dir={tmp_path}")
        assert message in error_of(call("run", *USPS, *words), status)


def test_the_workers_of_a_scheduler_find_the_same(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    alone = frame_of(run_here(tmp_path / "1", *WORK))
    with cluster_of(distributed, 2) as cluster:
        at = (f"parallel.address={cluster.scheduler_address}", "parallel.workers=2")
        two = frame_of(run_here(tmp_path / "2", *WORK, *at))
        check_same(two, alone)
        with monkeypatch.context() as changed:
            changed.setattr(scheduler, "SECONDS", 2)
            three = call("run", *USPS, at[0], "parallel.workers=3", f"results_dir={tmp_path}")
        assert "has 2 of 3 workers" in error_of(three, status=1)
        os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)
        again = frame_of(run_here(tmp_path / "3", *WORK, at[0], "force=true"))
        check_same(again, alone)


@pytest.fixture
def no_folders():
    """Let no folder of one test be seen by another."""
    registry.forget()
    yield
    registry.forget()


def changed_copy(folder, loss):
    """Copy the example of a ranking to a folder; its oracle has another loss."""
    shutil.copytree(RANKING, folder)
    file = folder / "oracle" / "ranking.py"
    code = file.read_text().replace("float(y.mean())", f"{loss} * float(y.mean())")
    code = code.replace(
        "(2.0 * (self.differences[i] @ w) <", f"(2.0 * (self.differences[i] @ w) < {loss} *"
    )
    file.write_text(code)
    return folder


def test_the_workers_of_a_scheduler_find_the_plug_ins_of_each_run(
    tmp_path, monkeypatch, no_folders
):
    distributed = pytest.importorskip("distributed")
    site, words = tmp_path / "site", ("dataset=queries", *WORK)
    (site / "installed-1.dist-info").mkdir(parents=True)
    shutil.copy(RANKING / "oracle" / "ranking.py", site / "ranking_of_a_package.py")
    about = {"METADATA": "Name: installed\nVersion: 1\n"}
    about["entry_points.txt"] = "[ssvm_bench.oracles]\npackaged = ranking_of_a_package\n"
    for name, text in about.items():
        (site / "installed-1.dist-info" / name).write_text(text)
    monkeypatch.syspath_prepend(site)
    folders = [changed_copy(tmp_path / str(loss), loss) for loss in (1.0, 3.0)]
    shutil.copy(RANKING / "oracle" / "ranking.yaml", folders[0] / "oracle" / "packaged.yaml")

    def run(place, folder, *more):
        registry.forget()
        program.forget_data()
        where = tmp_path / "results" / place
        made = call("run", *words, *more, f"results_dir={where}", "--config-dir", folder)
        assert made.exit_code == 0, made.stderr
        (found,) = where.glob("runs/queries/mpbcfw/*/seed=0")
        return read_trace(found).frame

    with cluster_of(distributed, 2) as cluster:
        at = (f"parallel.address={cluster.scheduler_address}", "parallel.workers=2")
        alone = [run(f"alone-{k}", folder) for k, folder in enumerate(folders)]
        assert alone[0]["dual"].iloc[-1] != alone[1]["dual"].iloc[-1]
        for k, folder in enumerate(folders):  # the same modules, in other folders
            check_same(run(f"there-{k}", folder, *at), alone[k])
        check_same(run("packaged", folders[0], *at, "oracle=packaged"), alone[0])
        shutil.rmtree(folders[0])
        changed_copy(folders[0], 3.0)  # another content
        check_same(run("edited", folders[0], *at), alone[1])

        file, dumped = folders[0] / "oracle" / "ranking.py", workers.dumped
        for change, message in (  # while the run begins
            (
                lambda: file.write_text(f"{file.read_text()}\n"),
                "another file of the module ssvm_be",
            ),
            (lambda: shutil.move(folders[0], tmp_path / "gone"), "cannot load the oracle (ModuleN"),
        ):
            registry.forget()
            with monkeypatch.context() as changed:
                changed.setattr(workers, "dumped", lambda *of, do=change: (dumped(*of), do())[0])
                where = (f"results_dir={tmp_path / 'none'}", "--config-dir", folders[0])
                failed = call("run", *words, *at, *where, f"oracle.cost_call={len(message)}")
            assert message in error_of(failed, status=1)

        relevant = [np.arange(6) % 3 == 0] * 8
        queries = [np.outer(y, [1.0, 2.0]) + k for k, y in enumerate(relevant)]
        options = {"parallel.address": cluster.scheduler_address}
        ranking = importlib.import_module("ranking_of_a_package").Ranking
        ours = {"structure": "queries", "solver": "bcfw", "bias": 0, "gap_tol": 0.1}
        one = StructuredSVM(**ours, oracle=ranking, options={"parallel.batch": 16})
        one.fit(queries, relevant)
        for oracle in (ranking, lambda made: ranking(made)):
            two = StructuredSVM(**ours, oracle=oracle, n_jobs=2, options=options)
            assert two.fit(queries, relevant).weights_.tolist() == one.weights_.tolist()
            assert two.history_["oracle_wait"].iloc[-1] > 0


def test_when_no_worker_of_a_scheduler_is_left_that_is_said(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    config = config_of(tmp_path, "dataset.source=synthetic")
    dataset = components.load_dataset(config.dataset)
    oracle = components.build_oracle(config.oracle, config.dataset)
    w, terms = np.zeros(oracle.inner_d), np.arange(5)
    with cluster_of(distributed, 1) as cluster:
        at = replace(config.parallel, address=cluster.scheduler_address)
        caller = components.caller_of(replace(config, parallel=at), dataset.fingerprint)
        caller.start(oracle)
        found = caller.labelings(oracle, w, terms)
        assert all(map(np.array_equal, found, oracle.own_labelings(w, terms, 1.0)))
        other = components.caller_of(replace(config, parallel=at), "another")
        with pytest.raises(RunFailedError, match="A worker has other data of usps than the run"):
            other.start(oracle)
        other.close()
        cluster.scale(0)
        program.wait_until(lambda: scheduler.count(caller._client) == 0)
        monkeypatch.setattr(scheduler, "SECONDS", 1.0)
        with pytest.raises(RunFailedError, match="None of the workers of the dask scheduler"):
            caller.labelings(oracle, w, terms)
        caller.close()


def test_speed_ups_and_losses_are_read_off_traces(tmp_path):
    options = ("solver=bcfw", "oracle.delay=0.005", "parallel.batch=10", "lam=200/n")
    options += ("budget.max_iterations=15",)
    made = [run_here(tmp_path, *options, f"parallel.workers={workers}") for workers in (1, 2)]
    runs = [read_trace(run.folder) for run in made]
    table = scaling.scaling(Runs(runs), [0.5, 1e-9])
    assert table["workers"].tolist() == [1, 2]
    assert set(table["gap"]) == {0.5}
    assert table["calls"].nunique() == 1
    assert table["speedup"].iloc[0] == 1.0
    assert table["speedup"].iloc[1] > 1.0
    parts = table[["calling", "steps", "others"]]
    np.testing.assert_allclose(parts.sum(axis=1), 1.0)
    assert (parts > -0.01).to_numpy().all()
    assert (table["more"] == 0.0).all()
    tables = list(scaling.tables(table))
    assert (len(tables), len(tables[1].rows)) == (2, 1)
