"""Extensions and merges that are killed at one event of the file system after the other.

At no moment is there no finished run: `plot`, `report`, `predict` and `load_runs` read one at once,
the old or the new. The same command, given again, makes what it makes undisturbed, and leaves
nothing behind. Also where two folders cannot be exchanged by a single call.
"""

import contextlib
import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import ssvm_bench
from ssvm_bench.cli import runs  # noqa: F401 — loaded once, for all calls
from ssvm_bench.cli.commands import main
from ssvm_bench.figures import drawing  # noqa: F401
from ssvm_bench.report import experiment_files, page  # noqa: F401
from ssvm_bench.results import run_folder
from ssvm_bench.runs import runner  # noqa: F401
from tests.faults.case import Case, Done, call, copied
from tests.faults.kills import litter, traces

FILE = """
grid:
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 20
  solver: mpbcfw
  clock: work
  checkpoint.keep: true
  checkpoint.every: 0
  budget.max_iterations: [3]
figures:
  suboptimality: [iteration]
"""
RUN = (
    *("dataset=usps", "dataset.source=synthetic", "dataset.n_samples=20", "clock=work"),
    *("solver=mpbcfw", "checkpoint.keep=true", "checkpoint.every=0", "quiet=true"),
)
FIRST, SECOND = 3, 6
EVENTS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "exchange")
READERS = (*3 * ("load_runs", "predict", "nobody"), "report", "plot")


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Kill for ever: each command at each of its events, in turn."""
    file, base = folder / "some.yaml", folder / "base"
    file.write_text(FILE)
    log, part = folder / "log", folder / "part"
    for iterations, place in ((FIRST, base), (SECOND, part)):  # here: copies have all compiled
        with contextlib.suppress(SystemExit):
            main(list(command("run", iterations, place)))
    expected = traces(part / "results")
    while True:
        for kind in ("run", "merge"):
            for exchanges in (True, False):
                number, alive = 0, True
                while alive:
                    number += 1
                    place = copied(base, folder / "place")
                    arguments = command(kind, SECOND, place, part)
                    alive = killed(arguments, number, exchanges, folder / "log")
                    reader = rng.choice(READERS)
                    failure = unreadable(reader, place, file, log)
                    done = call(log, *arguments)
                    if not failure and done.returncode != 0:
                        failure = f"made again: {done.stderr}"
                    if not failure and traces(place / "results") != expected:
                        failure = "made again, it is another run"
                    if not failure:
                        failure = litter(place)
                    how = "" if exchanges else ", no exchange"
                    yield Case(f"{kind}{how}", f"event {number}, read by {reader}", failure)


def command(kind: str, iterations: int, place: Path, part: Path = Path()) -> tuple[str, ...]:
    """Return the arguments of a call that makes or brings the longer run."""
    results = str(place / "results")
    if kind == "merge":
        return "merge", str(part / "results"), "--into", results
    return "run", *RUN, f"budget.max_iterations={iterations}", f"results_dir={results}"


def killed(arguments: tuple[str, ...], number: int, exchanges: bool, log: Path) -> bool:
    """Call the program in a copy of this process that dies at an event; return whether it did."""
    if not (process := os.fork()):
        left = number
        exchange = run_folder._exchange

        def count(event: str, details: tuple) -> None:
            nonlocal left
            if event not in EVENTS:
                return
            if event == "open" and not (details[2] or 0) & (os.O_WRONLY | os.O_RDWR):
                return
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        def counted(one: Path, other: Path) -> bool:
            sys.audit("exchange")
            return exchanges and exchange(one, other)

        run_folder._exchange = counted
        with log.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.addaudithook(count)
        try:
            main(list(arguments))
        finally:
            os._exit(0)
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status)


def unreadable(reader: str, place: Path, file: Path, log: Path) -> str:
    """Return what a reader does not find right after the kill."""
    results = place / "results"
    if reader == "nobody":
        return ""
    if reader == "load_runs":
        ends = [run.trace["iteration"].iloc[-1] for run in ssvm_bench.load_runs(results)]
        return "" if ends in ([FIRST], [SECOND]) else f"runs of {ends} iterations"
    done: Done = {
        "predict": lambda: call(log, "predict", results),
        "report": lambda: call(log, "report", f"results_dir={results}"),
        "plot": lambda: call(log, "plot", file, "--format=svg", f"results_dir={results}"),
    }[reader]()
    for name in ("figures", "traces", "reference"):
        shutil.rmtree(results / name, ignore_errors=True)
    return "" if done.returncode == 0 else f"{reader}: {done.stderr}"
