"""Completion of command lines, in the shells themselves where they are installed."""

import json
import os
import pty
import re
import select
import shutil
import sys
import time
from pathlib import Path

import program
import pytest
from click.testing import CliRunner

from ssvm_bench.cli import completion
from ssvm_bench.cli.commands import main
from ssvm_bench.config import catalog, registry, schema, validation

PROGRAM = Path(sys.executable).with_name("ssvm-bench")
RANKING = Path(__file__).parents[2] / "examples" / "ranking" / "ranking"


def environment(**variables):
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "TERM": "dumb", "HISTFILE": "", **variables}


def asked(shell, line):
    """Return what a shell is told of a line that ends at the cursor."""
    words = line.split(" ")
    cursor = words[-1] if shell == "fish" else str(len(words) - 1)
    variables = {"_SSVM_BENCH_COMPLETE": f"{shell}_complete", "COMP_WORDS": line}
    environment = {"COMP_CWORD": cursor, **variables}
    done = CliRunner().invoke(main, prog_name="ssvm-bench", env=environment)
    assert (done.exit_code, done.stderr) == (0, "")
    if shell == "zsh":
        return done.stdout.splitlines()[1::3]
    return [each.partition(",")[2].partition("\t")[0] for each in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_names_of_all_kinds(shell):
    assert asked(shell, "ssvm-bench exp") == ["experiment"]
    assert asked(shell, "ssvm-bench data fetch us") == ["usps"]
    assert asked(shell, "ssvm-bench experiment quick") == ["quickstart"]
    assert asked(shell, "ssvm-bench check oracle vi") == ["viterbi"]
    assert "--jobs" in asked(shell, "ssvm-bench experiment quickstart --")
    assert "solver=mpbcfw_fast" in asked(shell, "ssvm-bench run solver=mp")
    assert asked(shell, "ssvm-bench run -m solver=fw,mpbcfw_f") == ["solver=fw,mpbcfw_fast"]
    assert asked(shell, "ssvm-bench run sol") == ["solver=", "solver."]
    assert "solver.T=" in asked(shell, "ssvm-bench run dataset=usps solver.")
    assert "solver.accept=" in asked(shell, "ssvm-bench run solver=bmrm solver.")
    assert "oracle.potts=" in asked(shell, "ssvm-bench run dataset=weizmann oracle.")
    assert asked(shell, "ssvm-bench run budget.max_s") == ["budget.max_seconds="]
    assert asked(shell, "ssvm-bench run force=") == ["force=true", "force=false"]
    assert asked(shell, "ssvm-bench run clock=w") == ["clock=wall", "clock=work"]
    assert asked(shell, "ssvm-bench run solver.step=l") == ["solver.step=line_search"]


@pytest.mark.parametrize(
    "line",
    [
        *("nope ", "run nope.", "run nope=", "run solver=nope solver.", "run budget.nope.x="),
        *("run --config-dir /nowhere solver=", "run 'solver", 'run "solver=', "check nope x"),
        *("run solver=[", "run =", "run .", "run ,", "run solver=\\", "run \x1b", "run -m -m "),
    ],
)
def test_what_cannot_go_on_is_no_error(line):
    asked("bash", f"ssvm-bench {line}")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "nosuch"])
@pytest.mark.parametrize("words", [{}, {"COMP_WORDS": "", "COMP_CWORD": ""}, {"COMP_WORDS": "'"}])
def test_a_call_that_no_shell_makes_is_quiet(monkeypatch, shell, words):
    for name in ("COMP_WORDS", "COMP_CWORD"):
        monkeypatch.delenv(name, raising=False)
    variables = {"_SSVM_BENCH_COMPLETE": f"{shell}_complete", **words}
    done = CliRunner().invoke(main, prog_name="ssvm-bench", env=variables)
    assert done.exit_code in (0, 1)
    assert done.stderr == ""


def test_a_plug_in_is_completed_and_not_imported(tmp_path):
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "mine.yaml").write_text("# my solver\nway: here\n")
    (tmp_path / "solver" / "mine.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "solver" / "mine_too.yaml").write_text("# another of ours\nkind: mpbcfw\nT: 3\n")
    begin = f"ssvm-bench run --config-dir {tmp_path} solver=mine solver."
    assert asked("bash", begin.replace(" solver.", "")) == ["solver=mine", "solver=mine_too"]
    assert asked("bash", begin) == ["solver.latent_rounds=", "solver.way="]
    begin = begin.replace("mine", "mine_too")
    assert asked("bash", f"{begin}st") == ["solver.start=", "solver.step="]
    assert asked("bash", f"{begin}step=l") == ["solver.step=line_search"]
    begin = f"ssvm-bench run --config-dir {RANKING} oracle=rank"
    assert asked("bash", begin) == ["oracle=ranking"]


def test_options_are_those_that_a_run_accepts():
    table = json.loads(completion.TABLE.read_bytes())
    for group in catalog.COMPONENTS:
        files = catalog.entries(group)
        assert [*table["names"][group]] == [*files]
        for name in files:
            kind = catalog.read(group, name, files).options["kind"]
            accepted = set(registry.options(group, kind)) - {"name", "kind"}
            found = completion._of_component(group, {group: name}, table, [])
            assert set(found) == accepted
            assert set(table["shared"][group]) <= accepted
    for section in ("budget", "eval", "checkpoint", "parallel", "prior"):
        accepted = validation.hints(validation.hints(schema.RunConfig)[section])
        assert [*table["run"][section]] == [*accepted]


def test_every_word_that_is_offered_is_accepted():
    table = json.loads(completion.TABLE.read_bytes())
    for group, kinds in table["kinds"].items():
        for kind, options in kinds.items():
            hints = validation.hints(registry.module(group, kind).Config)
            for option, words in options.items():
                for word in words:
                    value = {"true": True, "false": False, "null": None}.get(word, word)
                    validation.convert(hints[option], value, option)


def test_an_answer_loads_nothing_that_is_slow():
    code = (
        "import sys\nfrom ssvm_bench.__main__ import main\n"
        "try:\n    main()\nfinally:\n"
        "    print({'numpy', 'hydra', 'numba', 'pandas', 'yaml'} & {*sys.modules}, file=sys.stderr)"
    )
    line = "ssvm-bench run dataset=usps solver=mpbcfw_fast solver.start="
    done = program.python("-c", code, _SSVM_BENCH_COMPLETE="bash_complete", COMP_WORDS=line)
    assert (done.returncode, done.stderr) == (0, "set()\n")
    assert "plain,solver.start=truth" in done.stdout.splitlines()


def typed(command, keys):
    """Type keys to a program in a terminal, each when the text beside the last one is shown."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(command[0], command, environment(PS1="> "))
    deadline = time.monotonic() + 60
    try:
        for key, answer in keys:
            os.write(terminal, key.encode())
            shown = ""
            while answer not in re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown):
                assert time.monotonic() < deadline, (answer, shown)
                if select.select([terminal], [], [], 0.5)[0]:
                    shown += os.read(terminal, 4096).decode(errors="replace")
    finally:
        os.close(terminal)
        os.kill(process, 9)
        os.waitpid(process, 0)


SHELLS = {
    "bash": (["bash", "--norc", "-i"], 'eval "$(_SSVM_BENCH_COMPLETE=bash_source ssvm-bench)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        "autoload -Uz compinit; compinit -u -D; "
        'eval "$(_SSVM_BENCH_COMPLETE=zsh_source ssvm-bench)"',
    ),
    "fish": (["fish", "--no-config"], "_SSVM_BENCH_COMPLETE=fish_source ssvm-bench | source"),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_what_is_typed(shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command, setup = SHELLS[shell]
    keys = (
        (f"{setup}; echo rea''dy\n", "ready"),
        ("ssvm-bench run solver.step=2\t", "solver.step=2n/"),  # it has parentheses
        ("budget.max_s\t", "budget.max_seconds="),
        ("3 solver=mpbcfw_f\t", "solver=mpbcfw_fast"),
    )
    typed(command, keys)
