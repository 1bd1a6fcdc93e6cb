"""The program as its users start it, on instances that take milliseconds.

Compiled code and stand-ins are kept in the user's cache folder: what one test has made, the others
find there.
"""

import gc
import importlib
import os
import signal
import subprocess
import sys
import time
import traceback
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from ssvm_bench.__main__ import main as start
from ssvm_bench.base import children as of_program
from ssvm_bench.base import jit
from ssvm_bench.cli.commands import main
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs import components, runner  # jit says where compiled kernels are kept
from ssvm_bench.runs.terminal import Display

USPS = ("dataset=usps", "dataset.source=synthetic", "dataset.n_samples=30")
OCR = ("dataset=ocr", "dataset.source=real", "dataset.n_samples=20")  # they are on board
GRID = """
grid:
  seed: [0, 1]
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 30
  solver: [bcfw, mpbcfw]
  clock: work
  budget.max_iterations: 4
figures:
  suboptimality: [iteration]
"""
"""An experiment of four runs."""

TROUBLED = """
import ctypes, os, signal, time
from pathlib import Path
from ssvm_bench.runs import recorder
from ssvm_bench.solvers.fw import Config, FrankWolfe

recorder.KEEP_SECONDS = 0.0
CODE_VERSION = 1
MARKS = Path(os.environ["SSVM_BENCH_MARKS"])


def build(config, problem, clock, seed):
    if problem.n <= 2 and (MARKS / "slow-start").exists():
        (MARKS / "starting").touch()
        time.sleep(60)
    solver = Troubled(config, problem, clock, seed)
    solver.seed = seed
    return solver


class Troubled(FrankWolfe):
    def iterate(self):
        if self.problem.n > 2:  # not while kernels are compiled
            if self.seed == 9:
                raise RuntimeError("tired")
            if self.seed == 7:
                os._exit(0)
            if self.seed == 6:
                ctypes.CDLL(None)._exit(0)
            (MARKS / f"{self.seed}-{self.k}-{os.getpid()}").touch()
            if self.seed == 8 and not (MARKS / "died").exists():
                (MARKS / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if (MARKS / "slowly").exists():
                time.sleep(0.15)
        super().iterate()
"""
"""A solver that fails with seed 9, dies once with 8, leaves with 7 and 6; every row is on disk."""

PATIENCE = 300
"""Seconds to wait for what takes few, on however busy a machine."""

FILES = ["config.yaml", "summary.json", "trace.parquet", "weights.npz"]


def put_odd(path, kind):
    """Put what is no regular file in the place of one; of the kind ``missing``, nothing."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind != "missing":
        path.symlink_to({"loop": path, "endless": "/dev/zero"}[kind])


of_a_checkout = pytest.mark.skipif(
    not (Path(__file__).parents[1] / "results" / "traces").is_dir(),
    reason="an sdist has no stored results",
)
"""For tests of what is committed under ``results/``, and of pages that link to it."""


def real_data(file):
    """Skip a test whose real data is not there; ``file`` is below the data folder."""
    folder = os.environ.get("SSVM_BENCH_DATA")
    there = folder is not None and (Path(folder) / file).is_file()
    return pytest.mark.skipif(not there, reason=f"no $SSVM_BENCH_DATA/{file}")


def small_pictures(patch, count):
    """Let synthetic datasets of images have so many pictures, which this process prepares alone."""
    from ssvm_bench.datasets.images import preparation

    patch.setenv("LOKY_MAX_CPU_COUNT", "1")
    patch.setattr(preparation, "N_SYNTHETIC", count)
    patch.setattr(preparation, "PARAMETERS", replace(preparation.PARAMETERS, samples=1500))
    forget_data()


def forget_data():
    """Drop the dataset and the oracle that the runner keeps for the next run."""
    components.load_dataset.cache_clear()
    components.oracle_of_thread.cache_clear()


def config_of(results_dir, *overrides, data=USPS):
    """Return the config of one small run."""
    (config,) = compose_runs([*data, f"results_dir={results_dir}", *overrides])
    return config


def run_here(results_dir, *overrides, data=USPS):
    """Make one small run in this process."""
    return runner.run(config_of(results_dir, *overrides, data=data), Display())


def call(*arguments):
    """Call the program in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def figures_of(files):
    """Return those of the files written of an experiment that are figures, tables or numbers."""
    return [path for path in files if path.is_file() and path.suffix != ".json"]


def error_of(result, status):
    """Return the only error message of a failed call, which must come without a traceback."""
    stderr = result.stderr
    assert getattr(result, "exit_code", getattr(result, "returncode", None)) == status, stderr
    assert "Traceback" not in stderr
    messages = [line for line in stderr.splitlines() if "error:" in line]
    assert len(messages) == 1, stderr
    assert messages[0].startswith("ssvm-bench: error: ")
    assert stderr.endswith(f"{messages[0]}\n")
    return messages[0]


def environment(**changes):
    """Return the environment of a program that a test starts; None removes a variable."""
    variables = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "PYTHONIOENCODING": "utf-8",
        "NUMBA_CACHE_DIR": jit.CACHE_ROOT,
        **changes,
    }
    return {key: str(value) for key, value in variables.items() if value is not None}


def python(*arguments, **changes):
    """Let Python run to its end, with changes of its environment; return what became of it."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=environment(**changes),
        timeout=PATIENCE,
        check=False,
    )


def install_solver(folder, name, code):
    """Put a package with one solver into a folder, and a config file for it; return its options."""
    (folder / f"{name}.py").write_text(code)
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[ssvm_bench.solvers]\n{name} = {name}\n")
    (folder / "solver").mkdir()
    (folder / "solver" / f"{name}.yaml").write_text(
        f"# of another package\nname: {name}\nkind: {name}\nstep: line_search\n"
    )
    return (f"solver={name}", f"--config-dir={folder}")


def marks(folder, seed="*", k="*"):
    """Return what `TROUBLED` solvers have left in a folder, one file an iteration and process."""
    return list(Path(folder).glob(f"{seed}-{k}-*"))


def path_with(folder):
    """Return a PYTHONPATH with a folder of packages before this project."""
    return f"{folder}{os.pathsep}{Path(__file__).parents[1]}"


class Copy:
    """The program in a copy of this process, which has imported it; to use like a ``Popen``.

    Parameters
    ----------
    arguments : list of str
    log : Path
        Gets its stderr.
    stdout : Path, optional
        Gets its stdout, which can be read else.
    changes : dict
        Of its environment.
    """

    returncode = None

    def __init__(self, arguments, log, stdout, changes):
        reading, writing = os.pipe()
        if stdout is not None:
            os.dup2(os.open(stdout, os.O_WRONLY), writing)
        if not (pid := os.fork()):
            leave, status = os._exit, 70
            gc.freeze()  # finalizers of its garbage wait for processes that this process holds
            try:
                os.close(reading)
                status = _program(arguments, log, writing, changes)
            except BaseException:  # it must not go on as a second pytest
                traceback.print_exc()
            finally:
                leave(status)
        os.close(writing)
        self.pid, self.stdout = pid, os.fdopen(reading)

    def poll(self):
        """Return its exit status; None while it goes on."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout=PATIENCE):
        """Wait for its end; return its exit status."""
        wait_until(lambda: self.poll() is not None)
        return self.returncode

    def send_signal(self, number):
        """Send a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        """End it at once."""
        self.send_signal(signal.SIGKILL)


def _program(arguments, log, stdout, changes):
    """Be the program; return its exit status."""
    os.environ.update({key: str(value) for key, value in changes.items()})
    sys.path[:0] = str(changes.get("PYTHONPATH", "")).split(os.pathsep)
    importlib.invalidate_caches()
    os.dup2(stdout, 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.stdout, sys.stderr = (os.fdopen(k, "w", encoding="utf-8", closefd=False) for k in (1, 2))
    sys.argv = ["ssvm-bench", *arguments]
    of_program._lifeline.cache_clear()  # its children end with it, not with pytest
    try:
        start()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        return int(end.code or 0)


@contextmanager
def started(*arguments, log, stdout=None, anew=False, **changes):
    """Start the program; its stderr goes to the file ``log``. Whatever is left of it is killed.

    It is a copy of this process; ``anew``, another one, as a user starts it.
    """
    arguments = [*map(str, arguments)]
    if anew:
        command = [sys.executable, "-m", "ssvm_bench", *arguments]
        with Path(log).open("w") as stderr:
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env=environment(**changes),
            )
    else:
        Path(log).write_text("")
        process = Copy(arguments, log, stdout, changes)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def completed(log, *arguments, **changes):
    """Let a copy of this process be the program to its end; return what became of it."""
    with started(*arguments, log=log, **changes) as process:
        stdout = process.stdout.read()
        status = process.wait()
    return SimpleNamespace(returncode=status, stdout=stdout, stderr=Path(log).read_text())


def wait_until(condition, process=None):
    """Wait until a condition holds; a program that ends before that is an error."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process is None or process.poll() is None, "the program has ended"
        assert time.monotonic() < deadline, f"nothing happened in {PATIENCE} s"
        time.sleep(0.01)


def end(process, number=signal.SIGKILL):
    """Send a signal and return the exit status."""
    process.send_signal(number)
    return process.wait(PATIENCE)


def children(pid):
    """Return the processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid):
    """Tell whether a process goes on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def run_folders(folder, *, hidden=False):
    """Return the names of the run folders, partial ones included, below a results folder."""
    found = Path(folder).glob("runs/*/*/*/*")
    return sorted(path.name for path in found if path.is_dir() and (hidden or path.name[0] != "."))


@contextmanager
def count_calls():
    """Count the functions that a block calls: what it costs on any machine."""
    counted = SimpleNamespace(calls=0)

    def count(frame, event, argument):
        counted.calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(before)


@contextmanager
def at_most_calls(most):
    """Fail if a block calls more functions than that."""
    with count_calls() as counted:
        yield
    assert counted.calls <= most
