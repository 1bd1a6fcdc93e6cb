"""One process at a time compiles, and nobody waits for long, or for nothing."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from program import environment

from ssvm_bench.base import compiler, jit, messages
from ssvm_bench.runs import compiling
from ssvm_bench.runs.compiling import in_turn

HOLDS = """
import sys, time
from pathlib import Path
from ssvm_bench.base import jit
from ssvm_bench.runs.compiling import in_turn
jit.CACHE_ROOT = Path(sys.argv[1])

@jit.kernel
def plus(x):
    return x + 1.0

def work():
    plus(1.0)
    print("held", flush=True)
    sys.stdin.readline()

in_turn(work)
print("free", flush=True)
"""
"""A process that compiles, and hangs in its warm-up until it is told to go on."""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "CACHE_ROOT", tmp_path)
    monkeypatch.setattr(compiler, "FOLDER", tmp_path / "kernels")
    monkeypatch.setattr(compiling, "_NOTICE", 0.1)
    return tmp_path


@contextmanager
def another(place):
    command = [sys.executable, "-c", HOLDS, place]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(place / "of-its-own")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def called(kernel, seconds=0.0):
    """Call a kernel in turn, and sleep; return what it gives."""
    found = []

    def work():
        found.append(kernel(2.0))
        time.sleep(seconds)

    in_turn(work)
    return found


def times(k):
    """Return a kernel that is nowhere yet."""
    return jit.kernel(lambda x: k * x)


def double(x):
    return 2.0 * x


def test_kernels_in_memory_or_in_the_cache_need_no_turn(place):
    jit.kernel(double)(1.0)
    with another(place), messages.shown_by((said := []).append):
        for kernel in (jit.kernel(double), jit.kernel(double)):
            assert called(kernel, 0.3) == called(kernel) == [4.0]
    assert said == []


def test_a_process_waits_for_what_another_compiles_and_says_for_whom(place):
    with another(place) as process, messages.shown_by((said := []).append):
        threading.Timer(1.0, process.stdin.write, ["\n"]).start()
        threading.Timer(1.1, process.stdin.flush).start()
        assert called(times(3.0), 0.3) == [6.0]
        assert process.stdout.readline() == "free\n"
        first, second = said
        assert first.startswith(f"Waiting for what another process compiles: process {process.pid}")
        assert second.startswith("Compiling")


def test_a_python_program_is_told_of_what_is_compiled_and_of_nothing_else(capsys):
    assert in_turn(lambda: (times(3.5)(2.0), time.sleep(0.3))[0], "kernels of mine") == 7.0
    said = "Compiling kernels of mine: up to a minute, once for such data; they are cached …\n"
    assert capsys.readouterr() == ("", said)
    kernel = jit.kernel(double)
    kernel(1.0)
    called(kernel, 0.3)
    with messages.shown_by(lambda _: None):  # as quiet=true does
        called(times(3.6), 0.3)
    assert capsys.readouterr() == ("", "")


FIT = """
import numpy as np
from ssvm_bench import StructuredSVM
StructuredSVM(solver="bcfw").fit(np.eye(4), [0, 1, 0, 1])
"""
RUN = """
import ssvm_bench
words = "solver=bcfw", "dataset=usps", "dataset.source=synthetic", "dataset.n_samples=30"
ssvm_bench.run(*words, results_dir="here")
"""


@pytest.mark.parametrize("program", [FIT, RUN], ids=["fit", "run"])
def test_the_first_fit_and_the_first_run_say_what_they_compile(place, program):
    command = [sys.executable, "-c", program]
    empty = environment(NUMBA_CACHE_DIR=place / "empty")
    with subprocess.Popen(
        command, env=empty, cwd=place, stderr=subprocess.PIPE, text=True
    ) as process:
        first = process.stderr.readline()  # after two seconds; it would go on for ten
        process.kill()
    assert first.startswith("Compiling kernels of solver=bcfw for single labels: up to a minute, ")


@pytest.mark.parametrize("how", ["hangs", "stopped"])
def test_a_process_without_a_sign_of_life_is_waited_for_with_a_limit(place, monkeypatch, how):
    monkeypatch.setattr(compiling, "PATIENCE", 0.5)
    with another(place) as process:
        if how == "stopped":
            process.send_signal(signal.SIGSTOP)
        assert called(times(4.0)) == [8.0]
        assert process.poll() is None


def test_the_wait_is_bounded_however_lively_the_other_is(place, monkeypatch):
    monkeypatch.setattr(compiling, "LONGEST", 1.0)
    ended = threading.Event()

    def live():
        while not ended.wait(0.05):
            (place / ".warm-up.lock").touch()

    with another(place) as process:
        thread = threading.Thread(target=live)
        thread.start()
        begin = time.monotonic()
        found = called(times(5.0))
        ended.set()
        thread.join()
        assert found == [10.0]
        assert time.monotonic() - begin >= 1.0
        assert process.poll() is None


def test_a_lock_that_cannot_be_had_costs_nothing(place, monkeypatch):
    (place / ".warm-up.lock").mkdir()
    assert called(times(6.0)) == [12.0]
    monkeypatch.setattr(jit, "CACHE_ROOT", None)
    assert called(times(7.0)) == [14.0]


def test_the_lock_is_free_afterwards_whatever_has_happened(place):
    def work():
        times(8.0)(1.0)
        raise KeyError("a plug-in's")

    with pytest.raises(KeyError):
        in_turn(work)
    with compiling._locked(place / ".warm-up.lock"):
        pass


def test_another_thread_compiles_what_it_likes(place):
    found, kernel = [], times(9.0)

    def work():
        thread = threading.Thread(target=lambda: found.append(kernel(1.0)))
        thread.start()
        thread.join()

    with another(place) as process:
        in_turn(work)
        assert found == [9.0]
        assert process.poll() is None
