"""Output that cannot be written: it is dropped, and nothing else is lost."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from program import USPS, environment, started

from ssvm_bench.results.trace import find_runs

ASCII = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
QUICK = (*USPS, "solver=fw", "budget.max_iterations=3")
PROGRAM = (sys.executable, "-m", "ssvm_bench")


def shell(redirection, *arguments, **changes):
    """Run the program with a redirection of the shell; output in UTF-8 unless it changes that."""
    words = ["sh", "-c", f'"$@" {redirection}', "sh", *PROGRAM, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, env=environment(**changes), timeout=300)


@pytest.mark.parametrize("redirection", ["2>/dev/full", "2>&-", "2>&- <&-", "2</dev/null"])
def test_status_that_cannot_be_written_is_dropped(tmp_path, redirection):
    done = shell(redirection, "run", *QUICK, f"results_dir={tmp_path}")
    assert (done.returncode, len(find_runs(tmp_path))) == (0, 1), done.stderr
    assert b"Traceback" not in done.stderr
    assert b"files: " in done.stdout


@pytest.mark.parametrize(
    "command",
    [["list"], ["list", "--json"], ["--version"], ["run", *QUICK], ["run", *QUICK, "--json"]],
)
def test_results_are_lost_where_stdout_is_closed(tmp_path, command):
    words = [f"results_dir={tmp_path}"] * (command[0] == "run")
    done = shell(">&-", *command, *words)
    last = done.stderr.decode().splitlines()[-1]
    assert last.startswith("ssvm-bench: error: Cannot write to standard output: it is closed")
    assert (done.returncode, len(find_runs(tmp_path))) == (1, command[0] == "run")
    assert shell(">&- 2>&- <&-", *command, *words).returncode == 1


@pytest.mark.parametrize("command", [["list"], ["--help"], ["--version"], ["run", *QUICK]])
def test_results_that_cannot_be_written_are_told(tmp_path, command):
    log, words = tmp_path / "log", [f"results_dir={tmp_path}"] * (command[0] == "run")
    with started(*command, *words, log=log, stdout="/dev/full") as process:
        assert process.wait() == 1
    last = log.read_text().splitlines()[-1]
    assert last.startswith("ssvm-bench: error: Cannot write to standard output: No space left")
    assert "Traceback" not in log.read_text()
    assert len(find_runs(tmp_path)) == (command[0] == "run")


def test_a_disk_of_logs_that_fills_costs_the_rest_of_the_log(tmp_path):
    limit = "ulimit -f 1; trap '' XFSZ; "  # no file of more than 512 bytes
    log = tmp_path / "log"
    words = ["sh", "-c", f'{limit} "$@" >{log}', "sh", *PROGRAM, "list"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment())
    said = "Cannot write to standard output: File too large. Files are written as ever."
    assert (done.returncode, done.stderr) == (1, f"ssvm-bench: error: {said}\n")
    assert 0 < log.stat().st_size <= 1024


@pytest.mark.parametrize("opened", [pty.openpty, os.pipe])
def test_a_terminal_that_is_gone_costs_nothing(tmp_path, opened):
    ours, theirs = opened()
    words = [*PROGRAM, "run", *QUICK, f"results_dir={tmp_path}", "budget.max_iterations=300"]
    streams = {"stdin": theirs, "stdout": subprocess.PIPE, "stderr": theirs}
    process = subprocess.Popen(words, env=environment(), **streams)
    os.close(theirs)
    os.read(ours, 1)
    os.close(ours)
    out, _ = process.communicate(timeout=300)
    assert (process.returncode, b"max_iterations" in out) == (0, True)
    assert len(find_runs(tmp_path)) == 1


def test_characters_that_the_terminal_lacks_are_escaped(tmp_path):
    results = tmp_path / "Prüfung-λ"
    done = shell("", "run", *QUICK, f"results_dir={results}", **ASCII)
    assert (done.returncode, len(find_runs(results))) == (0, 1), done.stderr
    last = done.stdout.decode("ascii").splitlines()[-1]
    assert re.match(r"files: .*Pr\\udcc3\\udcbcfung", last)
    wrong = shell("", "run", "solver=é", **ASCII)
    assert wrong.returncode == 2
    assert wrong.stderr.decode("ascii").startswith("ssvm-bench: error: solver=\\udcc3\\udca9")
    assert b"\\u03bb" in shell("", "run", "--help", **ASCII).stdout


def test_names_that_the_terminal_lacks_are_names(tmp_path):
    file = tmp_path / "é.yaml"
    file.write_text("grid: {seed: 0, dataset: usps, solver: fw}\nfigures: {targets: [time]}\n")
    done = shell("", "experiment", file, "--status", f"results_dir={tmp_path}", **ASCII)
    assert done.returncode == 0, done.stderr
    assert b"1 missing, of 1 runs" in done.stdout
    file.rename(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.yaml")))
    done = shell("", "experiment", next(tmp_path.glob("*.yaml")), "--status", **ASCII)
    assert done.returncode == 2
    assert b"begins with a letter" in done.stderr


def test_bytes_that_are_no_text_are_escaped(tmp_path):
    results = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    done = shell("", "run", *QUICK, f"results_dir={results}")
    assert (done.returncode, len(find_runs(results))) == (0, 1), done.stderr
    assert b"\\udcff" in done.stdout.splitlines()[-1]
