"""Signals and dying parents: what a program leaves, and that no child survives it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import program
import pytest
from program import USPS, end, marks, run_folders, started, wait_until

from ssvm_bench.base.children import Child, DiedError, map_in_order
from ssvm_bench.results.trace import read_trace


@pytest.fixture
def slow(tmp_path):
    """Install a solver whose iterations take 0.1 s, with every row on disk; return its options."""
    (tmp_path / "slowly").touch()
    options = program.install_solver(tmp_path, "slow", program.TROUBLED)
    results = f"results_dir={tmp_path / 'results'}"
    return (*options, *USPS, "budget.max_iterations=600", results)


def variables(tmp_path, **changes):
    return {"SSVM_BENCH_MARKS": tmp_path, "PYTHONPATH": program.path_with(tmp_path), **changes}


def test_a_burst_of_signals_keeps_the_rows(tmp_path, slow):
    log = tmp_path / "log"
    with started("run", *slow, log=log, anew=True, **variables(tmp_path)) as process:
        wait_until(lambda: marks(tmp_path, k=3), process)
        for k in range(20):
            process.send_signal((signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[k % 3])
        assert process.wait(program.PATIENCE) == 1
    assert "interrupted. The trace so far is in" in log.read_text().splitlines()[-1]
    assert "Traceback" not in log.read_text()
    assert run_folders(tmp_path / "results", hidden=True) == ["seed=0.partial"]
    (partial,) = (tmp_path / "results").glob("runs/*/*/*/*.partial")
    assert len(read_trace(partial).frame) >= 4


def test_a_first_signal_says_at_once_what_happens_and_what_a_second_one_does(tmp_path):
    (tmp_path / "oracle").mkdir()
    (tmp_path / "oracle" / "pondering.py").write_text(PONDERING)
    (tmp_path / "oracle" / "pondering.yaml").write_text("# slow\n")
    options = ("oracle=pondering", f"--config-dir={tmp_path}", "solver=bcfw", *USPS)
    log, words = tmp_path / "log", ("run", *options, f"results_dir={tmp_path / 'results'}")
    with started(*words, log=log, **variables(tmp_path)) as process:
        wait_until(lambda: (tmp_path / "pondering").exists(), process)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: "Ctrl-C again ends at once." in log.read_text(), process)
        assert process.poll() is None  # the pass of 15 s has not ended
        process.send_signal(signal.SIGINT)
        assert process.wait(program.PATIENCE) == 1
    assert log.read_text().count("Ctrl-C again") == 1
    assert any(line.startswith("Ending after this") for line in log.read_text().splitlines())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_before_the_run_ends_it_at_once(tmp_path, slow, number):
    log = tmp_path / "log"
    (tmp_path / "slow-start").touch()
    with started("run", *slow, log=log, **variables(tmp_path)) as process:
        wait_until(lambda: (tmp_path / "starting").exists(), process)
        process.send_signal(number)
        assert end(process, number) == 1
    assert log.read_text().splitlines()[-1] == "ssvm-bench: error: Interrupted."
    assert "Traceback" not in log.read_text()
    assert run_folders(tmp_path / "results", hidden=True) == []


def test_nohup_is_respected(tmp_path, slow):
    command = ["nohup", sys.executable, "-m", "ssvm_bench", "run", *slow]
    command += ["budget.max_iterations=10"]
    how = {"env": program.environment(**variables(tmp_path)), "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **how) as process:
        wait_until(lambda: marks(tmp_path, k=3), process)
        process.send_signal(signal.SIGHUP)
        assert process.wait(program.PATIENCE) == 0


PONDERING = """
import os, time
from pathlib import Path
from helpers import Plain
from ssvm_bench.oracles import multiclass

CODE_VERSION = 1
Config = multiclass.Config


def build(config, dataset):
    return Pondering(multiclass.build(config, dataset))


class Pondering(Plain):
    calls = 0

    def argmax(self, w, i):
        self.calls += 1
        if self.n > 2 and self.calls > 40:
            with Path(os.environ["SSVM_BENCH_MARKS"], "pondering").open("a") as marks:
                marks.write(".")
            time.sleep(0.5)
        return super().argmax(w, i)
"""


@pytest.mark.parametrize("solver", ["bcfw", "fw", "ssg"])
def test_two_signals_end_a_pass_of_slow_calls(tmp_path, solver):
    (tmp_path / "oracle").mkdir()
    (tmp_path / "oracle" / "pondering.py").write_text(PONDERING)
    (tmp_path / "oracle" / "pondering.yaml").write_text("# slow\ncost_call: 1.0\ncost_plane: 1.0\n")
    options = ("oracle=pondering", f"--config-dir={tmp_path}", f"solver={solver}", *USPS)
    words = ("run", *options, f"results_dir={tmp_path / 'results'}")
    with started(*words, log=tmp_path / "log", **variables(tmp_path)) as process:
        wait_until(lambda: (tmp_path / "pondering").exists(), process)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        before = (tmp_path / "pondering").stat().st_size
        assert process.wait(program.PATIENCE) == 1
        assert (tmp_path / "pondering").stat().st_size - before <= 3  # and not 30
    (partial,) = tmp_path.glob("results/runs/*/*/*/*.partial")
    assert len(read_trace(partial).frame) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_experiment(tmp_path, slow, number):
    grid = tmp_path / "grid.yaml"
    grid.write_text("grid: {seed: [0, 1]}\nfigures: {}\n")
    log, words = tmp_path / "log", ("experiment", grid, *slow, "--jobs=2")
    with started(*words, log=log, **variables(tmp_path)) as process:
        wait_until(lambda: len(marks(tmp_path, k=3)) == 2, process)
        workers = program.children(process.pid)
        assert len(workers) == 2
        end(process, number)
        wait_until(lambda: not any(map(program.is_alive, workers)))
    left = run_folders(tmp_path / "results", hidden=True)
    assert left == ["seed=0.partial", "seed=1.partial"]
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_workers_of_a_preparation_end_with_it(tmp_path, number):
    log = tmp_path / "log"
    command = ("data", "prepare", "stanford", "--source=synthetic")
    folders = {"XDG_CACHE_HOME": tmp_path, "LOKY_MAX_CPU_COUNT": 2}
    with started(*command, log=log, anew=True, **folders) as process:
        pieces = tmp_path / "ssvm-bench" / "stanford" / "preparing-synthetic"
        wait_until(lambda: list(pieces.glob("outlines-*.npz")), process)
        workers = program.children(process.pid)
        end(process, number)
        wait_until(lambda: not any(map(program.is_alive, workers)))
    assert "Traceback" not in log.read_text()
    if number != signal.SIGKILL:
        assert process.returncode == 1
        assert log.read_text().splitlines()[-1] == "ssvm-bench: error: Interrupted."


def sleep(connection, seconds):
    connection.send(os.getpid())
    time.sleep(seconds)


def test_a_child_ends_with_its_parent(tmp_path):
    folders = [str(folder) for folder in Path(__file__).parents[:2]]
    code = (
        f"import sys, time; sys.path[:0] = {folders}\n"
        "import test_signals, ssvm_bench.base.children as c\n"
        "one = c.Child(test_signals.sleep, 60)\n"
        "print(one.receive(), flush=True)\n"
        "time.sleep(60)\n"
    )
    how = {"env": program.environment(), "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **how) as parent:
        child = int(parent.stdout.readline())
        assert program.is_alive(child)
        parent.kill()
    wait_until(lambda: not program.is_alive(child))


def test_results_come_in_order_and_errors_are_passed_on():
    found = list(map_in_order(divmod, [(k, 3) for k in range(7)], 2))
    assert found == [divmod(k, 3) for k in range(7)]
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(divmod, [(1, 1), (1, 0)], 2))
    with pytest.raises(DiedError, match="signal"):
        list(map_in_order(signal.raise_signal, [(signal.SIGKILL,)], 1))
    child = Child(sleep, 0)
    child.end(now=False)
    assert child.process.returncode == 0


IMPORTING = """
import os, signal, sys
_, wanted, number = sys.argv

class Sends:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), int(number))

sys.meta_path.insert(0, Sends())
from ssvm_bench.__main__ import main
sys.argv = ["ssvm-bench", "list"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("name", ["base", "base.interrupts", "base.errors", "cli", "cli.commands"])
def test_a_signal_while_the_program_is_loaded_ends_it_at_once(name, number):
    command = [sys.executable, "-c", IMPORTING, f"ssvm_bench.{name}", str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "ssvm-bench: error: Interrupted.\n"


def test_a_signal_that_is_ignored_while_the_program_is_loaded_stays_ignored():
    ignoring = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + IMPORTING
    command = [sys.executable, "-c", ignoring, "ssvm_bench.base.errors", str(int(signal.SIGHUP))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
