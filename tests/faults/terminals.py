"""Outputs that are closed, full, gone or of few characters, for every command.

Lost status costs nothing; lost results are told by the exit status and one message.
"""

import os
import pty
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ssvm_bench.results.reading import find_runs
from tests.faults.case import Case

RUN = (
    *("dataset=usps", "dataset.source=synthetic", "dataset.n_samples=20", "solver=fw"),
    "budget.max_iterations=3",
)
EXPERIMENT = """
grid:
  dataset: usps
  solver: [bcfw, fw]
  dataset.source: synthetic
  dataset.n_samples: 20
  budget.max_iterations: 3
figures:
  suboptimality: [iteration]
"""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
OUTPUTS = {
    "as usual": ("", {}),
    "status full": ("2>/dev/full", {}),
    "status closed": ("2>&-", {}),
    "status read-only": ("2</dev/null", {}),
    "results full": (">/dev/full", {}),
    "results closed": (">&-", {}),
    "all closed": (">&- 2>&- <&-", {}),
    "all full": (">/dev/full 2>&1", {}),
    "ASCII": ("", ASCII),
    "ASCII, strict": ("", {**ASCII, "PYTHONIOENCODING": "ascii:strict"}),
    "Latin-1": ("", {"PYTHONIOENCODING": "latin-1"}),
    "no reader": ("| true", {}),
    "terminal gone": (None, {}),
}
NAMES = ("results", "Prüfung λ", "\N{PILE OF POO}", "\udcff\udc80", "a b")


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Run commands with broken outputs for ever."""
    number = 0
    while True:
        number += 1
        place = folder / f"case-{number}" / rng.choice(NAMES)
        place.mkdir(parents=True)
        grid = place.parent / "é.yaml"
        grid.write_text(EXPERIMENT)
        command, n_runs = rng.choice(
            [
                (("run", *RUN), 1),
                (("run", "-m", *RUN, "seed=0,1"), 2),
                (("experiment", grid), 2),
                (("experiment", grid, "--status"), 0),
                (("report",), 0),
                (("list",), 0),
                (("--help",), 0),
                (("run", "solver=é"), 0),
                (("plot", "λ"), 0),
                (("data", "status"), 0),
            ]
        )
        results = () if command[0] in ("list", "--help", "data") else (f"results_dir={place}",)
        name = rng.choice(sorted(OUTPUTS))
        failure = broken(name, (*command, *results), place, n_runs)
        yield Case(f"{command[0]}: {name}", f"{command} in {str(place)!a}", failure)


def broken(name: str, command: tuple, place: Path, n_runs: int) -> str:
    """Run a command with a broken output; return what did not hold."""
    redirection, variables = OUTPUTS[name]
    program = [sys.executable, "-m", "ssvm_bench", *map(str, command)]
    environment = {**os.environ, "SSVM_BENCH_OFFLINE": "1", **variables}
    if redirection is None:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            program, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(ours)
        os.close(theirs)
        status, text = process.wait(120), b""
    else:
        inner = f'"$@" {redirection}' if "|" not in redirection else f'{{ "$@"; }} {redirection}'
        done = subprocess.run(
            ["sh", "-c", inner, "sh", *program], capture_output=True, env=environment, timeout=120
        )
        status, text = done.returncode, done.stderr
        if "ASCII" in name and not (done.stdout + text).isascii():
            return "not in ASCII"
    told = ("results full", "all full", "terminal gone")
    right = {0, 1} if name in told else {0}
    if any("é" in str(part) for part in command[1:2]) and command[0] == "run":
        right = {2}
    if command[:2] == ("plot", "λ"):
        right = {2}
    if command[0] == "report":  # of a folder without runs
        right = {1}
    if "|" in (redirection or ""):
        right = {0}
    if status not in right:
        return f"exit status {status}: {text!r}"
    for sign in (b"Traceback", b"Exception ignored", b"UnicodeEncodeError", b"UnicodeDecodeError"):
        if sign in text:
            return repr(text)
    if len(find_runs(place)) != n_runs:
        return f"{len(find_runs(place))} runs, expected {n_runs}: {text!r}"
    return ""
