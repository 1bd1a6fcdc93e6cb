"""The command line as a user meets it: what is printed where, and the exit status."""

import errno
import io
import math
import re
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import program
import pytest
from program import call, python, run_here
from raw_data import packed
from rich.console import Console

from ssvm_bench import __version__
from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import horseseg, reading, weizmann
from ssvm_bench.results import words
from ssvm_bench.runs import terminal

HEAVY = {
    *("cv2", "h5py", "hydra", "joblib", "matplotlib", "maxflow", "numba", "pandas", "pyarrow"),
    *("scipy", "skimage", "sklearn"),
}


def error_of(*arguments, status):
    return program.error_of(call(*arguments), status)


def fail(error):
    raise error


LINE = fail.__code__.co_firstlineno + 1

ROW = {"iteration": 5, "oracle_calls": 34385, "time": 1.5, "working_set_mean": 7.25}
ROW |= {"primal": 0.5, "dual": 0.0125, "gap": 0.4875}


def outcome(status="finished", stop_reason="max_iterations", summary=None):
    """Return what the runner gives back, as far as the command line looks at it."""
    about = {"status": status, "stop_reason": stop_reason, "summary": summary or {}}
    return SimpleNamespace(folder=Path("results/runs/ocr/mpbcfw/0123456789ab/seed=0"), **about)


@pytest.fixture
def runs(monkeypatch):
    """Replace the runner; the runs asked for are collected, ``runs.react`` decides their end."""

    class Runs(list):
        react = staticmethod(lambda config: outcome())

    made = Runs()

    def run(config, display):
        made.append(config)
        ended = made.react(config)
        display.start(config, "real", 6877, 4004, 1 / 6877)
        display.row(ROW)
        if ended.status == "finished":
            ended.summary = {**ROW, "stop_reason": ended.stop_reason, "source": "real"}
            display.finish(ended.summary, ended.folder)
        return ended

    module = SimpleNamespace(run=run)
    monkeypatch.setitem(sys.modules, "ssvm_bench.runs.runner", module)
    monkeypatch.setattr("ssvm_bench.runs.runner", module, raising=False)
    return made


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["--version"], ["data", "status"]])
def test_quick_answers_import_nothing_heavy(arguments):
    heavy = HEAVY | {"yaml", "importlib.metadata"} if arguments == ["--help"] else HEAVY
    code = (
        "import sys\nfrom ssvm_bench.cli.commands import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    status = end.code\n"
        f"print(sorted({heavy!r} & set(sys.modules)), status)\n"
    )
    done = python("-c", code, *arguments)
    assert done.stdout.splitlines()[-1] == "[] 0", done.stderr


@pytest.mark.parametrize("command", ["run", "experiment", "plot", "list", "data"])
def test_every_command_has_help(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert command in result.stdout
    assert command in call("--help").stdout
    assert call().stdout == call("--help").stdout
    assert __version__ in call("--version").stdout


@pytest.mark.parametrize("group", [(), ("data",), ("config",)])
def test_each_command_has_one_line_of_help_on_80_columns(group, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = call(*group, "--help").stdout
    rows = text.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert rows
    for row in rows:
        name, summary = re.fullmatch(r"  (\w+) +(\S.*)", row).groups()
        assert re.search(r"\w\.$", summary), row  # neither cut nor continued
        assert summary in call(*group, name, "--help").stdout
    assert max(map(len, text.splitlines())) <= 80


def test_list_shows_names_and_descriptions():
    everything = call("list").stdout
    for kind, name in (("datasets", "usps"), ("oracles", "viterbi"), ("solvers", "mpbcfw_avg")):
        assert f"{kind}:" in everything
        (line,) = [row for row in call("list", kind).stdout.splitlines() if row.startswith(name)]
        assert line != name
        assert line.removeprefix(name).strip() in everything
    assert "quickstart" in call("list", "experiments").stdout


def test_list_shows_the_users_files(tmp_path):
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "mine.yaml").write_text("# my own\n")
    words, options = ("list", "solvers"), ("--config-dir", tmp_path)
    assert "my own" in call(*words, *options).stdout
    assert "my own" in call(*options, *words).stdout


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("rn", "Did you mean run?"),
        ("list solver", "Did you mean solvers?"),
        ("data fetsh", "Did you mean fetch?"),
        ("data preprae weizmann", "Did you mean prepare?"),
        ("data status orc", "Did you mean ocr?"),
        ("data prepare weizman", "Did you mean weizmann?"),
        ("data show standford 0", "Did you mean stanford?"),
        ("experiment quikstart", "Did you mean quickstart?"),
        ("experiment quickstart sover=fw", "Did you mean solver?"),
        ("plot", "'ssvm-bench plot --help'"),
        ("run --sedd", "Try 'ssvm-bench run --help'"),
        ("--bogus", "--bogus"),
        ("run --solver=bcfw", "Options of a run have no dashes"),
        ("plot quickstart --format gif", "png"),
        ("run seed=range(3)", "Add -m"),
        ("run --config-dir nowhere", "there is no such folder"),
    ],
)
def test_a_mistake_in_the_call_is_one_message(runs, words, part):
    assert part in error_of(*words.split(), status=2)
    assert not runs


MISSING = [
    *("run dataset=file dataset.path={}", "run dataset=stream dataset.path={}"),
    *("run dataset=plates dataset.path={}", "run dataset=neighbours dataset.path={}"),
    *("run dataset=file dataset.path={here} dataset.test={}", "run prior.mean={}.npy"),
    *("run dataset=file dataset.path={here} dataset.templates={}", "run prior.variance={}.npy"),
    *("run dataset=usps oracle.loss={}.npy", "run --config-dir {}", "experiment {}.yaml"),
    *("predict {}", "score {}", "merge {} --into {here}.into", "compare {} mine"),
    *("verify results_dir={}", "report results_dir={}", "report --all results_dir={}"),
    *("plot quickstart results_dir={}", "compare bcfw mpbcfw results_dir={}"),
    "publish public results_dir={}",
    "data show weizmann 0 --source synthetic --run {}",
]


@pytest.mark.parametrize("words", MISSING)
def test_a_file_or_folder_that_the_call_names_and_nobody_has_is_a_mistake_in_the_call(
    words, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    missing, here = tmp_path / "missing", tmp_path / "here"
    here.write_text("a X\nb Y\n\na X\n")
    assert "missing" in error_of(*words.format(missing, here=here).split(), status=2)
    assert [*tmp_path.iterdir()] == [here]


def test_a_folder_that_no_call_names_need_not_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "There is nothing to verify in results" in error_of("verify", status=1)
    assert "There are no runs in results" in error_of("report", status=1)


def test_quiet_prints_the_result_in_a_line_and_nothing_else(runs):
    result = call("run", "quiet=true", "dataset=usps", "dataset.source=real")
    assert (result.exit_code, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    assert line.startswith("mpbcfw on usps (real), seed 0: iteration 5, exact calls 34,385, time ")
    assert ", primal 0.5, dual 0.0125, gap 4.9e-01, relative gap 0.97, planes " in line
    assert line.endswith("max_iterations: results/runs/ocr/mpbcfw/0123456789ab/seed=0")
    lines = call("run", "-m", "solver.T=5,10,20", "quiet=true").stdout.splitlines()
    assert [line.partition(" on ")[0] for line in lines] == [f"mpbcfw T={T}" for T in (5, 10, 20)]
    assert call("run", "quiet=true", "--json").stdout.count("\n") > 3
    assert len(runs) == 5


def test_the_table_of_a_sweep_says_what_tells_its_runs_apart(runs):
    result = call("run", "-m", "solver=mpbcfw", "solver.T=5,10", "lam=0.1,null")
    heading, _, *rows = result.stdout.splitlines()
    assert "options" in heading
    for row, text in zip(rows, ("T=5 lam=0.1", "T=5 lam=1/n", "T=10 lam=0.1"), strict=False):
        assert sorted(text.split()) == sorted(row.split("|")[1].split())


def test_a_run_that_ends_before_the_gap_it_asks_for_says_what_to_raise(runs):
    short = {"stop_reason": "max_iterations", **ROW}
    there = {**short, "gap": 0.0001}  # at its last iteration
    runs.react = lambda config: outcome("skipped", summary=there if config.seed else short)
    asked = "budget.gap_tol=0.01"
    lines = call("run", asked).stdout.splitlines()
    assert lines[-3].endswith("max_iterations, before budget.gap_tol=0.01 (finished before)")
    assert lines[-1] == (
        "budget.max_iterations was spent before budget.gap_tol was reached: raise it, or set "
        "budget.max_iterations=null"
    )
    (line,) = call("run", asked, "quiet=true").stdout.splitlines()
    assert "max_iterations, before budget.gap_tol=0.01 (finished before): results/" in line
    several = call("run", "-m", asked, "seed=0,1").stdout.splitlines()
    assert "was spent of 1 of 2 runs before" in several[-1]
    for of in (("run",), ("run", asked, "seed=1")):
        assert "before budget.gap_tol" not in call(*of).stdout


def test_a_limit_and_the_gap_that_are_reached_in_one_row_are_both_said(runs):
    there = {"stop_reason": "max_seconds", **ROW, "gap": 0.0049}
    runs.react = lambda config: outcome("skipped", summary=there)
    assert "max_seconds, at budget.gap_tol=0.01" in call("run", "budget.gap_tol=0.01").stdout
    assert "max_seconds, before budget.gap_tol=0.001" in call("run", "budget.gap_tol=0.001").stdout
    assert "gap_tol" not in call("run").stdout


def test_the_closing_table_has_the_real_time_and_names_evaluations_that_took_most():
    (config,) = compose_runs(["dataset=usps", "eval.every=2"])
    (counted,) = compose_runs(["dataset=usps", "clock=work"])

    def said(config, status="finished", **more):
        summary = {**ROW, "time": 5.0, "eval_time": 7.0, "wall_time": 13.0, **more}
        return [*terminal.evaluation_lines([(config, status, summary)])]

    (line,) = said(config)
    assert line.startswith("evaluations took 7 s, longer than the solver (5 s)")
    assert line.endswith("eval.every=20 makes fewer")
    assert said(config, eval_time=4.9) == said(config, "skipped") == []
    assert said(config, "interrupted", time=0.1) == []  # during the first evaluation
    assert said(config, time=0.5, eval_time=1.0) == []  # too short to matter
    assert said(config, wall_time=None) == []  # the beginning of a longer run
    assert "the solver (6 s)" in said(counted, time=0.1)[0]
    assert said(counted, time=0.1, wall_time=15.0) == []
    both = [(config, "finished", {**ROW, "eval_time": of, "wall_time": 9.0}) for of in (7.0, 8.0)]
    (line,) = terminal.evaluation_lines(both)
    assert "of 2 of 2 runs took up to 8 s" in line
    assert ", real time 9 s, primal " in next(terminal.result_lines(both[:1], [Path("of")]))


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (RunFailedError("no disk"), 1),
        (ValueError("odd"), 1),
        (MemoryError(), 1),
        (ConfigError("no marginals"), 2),
    ],
)
def test_a_failed_run_does_not_stop_a_sweep(runs, failure, status):
    runs.react = lambda config: fail(failure) if config.seed == 1 else outcome()
    result = call("run", "-m", "seed=range(3)")
    assert result.exit_code == status
    assert len(runs) == 3
    assert str(failure) in result.stderr
    assert "1 of 3 runs did not finish" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in call("run", "-m", "seed=range(3)", "--debug").stderr


def test_an_interrupt_stops_a_sweep(runs):
    runs.react = lambda config: outcome("interrupted", "interrupted")
    result = call("run", "-m", "seed=range(3)")
    assert (result.exit_code, len(runs)) == (1, 1)
    assert "interrupted" in result.stderr
    assert "3 of 3 runs did not finish" in result.stderr
    assert "mpbcfw on ocr, seed 0: interrupted. The trace so far" in error_of("run", status=1)


def test_a_skipped_run_is_done(runs):
    summary = {"stop_reason": "gap_tol", **ROW}
    runs.react = lambda config: outcome("skipped", summary=summary)
    result = call("run")
    assert (result.exit_code, "gap_tol (finished before)" in result.stdout) == (0, True)


@pytest.mark.parametrize(
    ("failure", "status", "part"),
    [
        (RunFailedError("nothing left"), 1, "nothing left"),
        (ConfigError("does not fit"), 2, "does not fit"),
        (MemoryError(), 1, "Out of memory"),
        (OSError(errno.ENOSPC, "x", "/a/b"), 1, "No space left for /a/b"),
        (PermissionError(errno.EACCES, "Permission denied", "/a"), 1, "/a: Permission denied"),
        (ZeroDivisionError("by\nzero"), 1, f"by zero ({__file__}, line {LINE}). Run again"),
        (KeyboardInterrupt(), 1, "The command failed: KeyboardInterrupt ("),
        (SystemExit(0), 1, "The command failed: SystemExit: 0 ("),
        (EOFError(), 1, "The command failed: EOFError ("),
    ],
)
def test_every_failure_is_one_message(runs, failure, status, part):
    runs.react = lambda config: fail(failure)
    assert part in error_of("run", status=status)


@pytest.mark.parametrize("arguments", [["--debug", "run"], ["run", "--debug"]])
def test_debug_shows_the_traceback(runs, arguments):
    result = call(*arguments, "x=1")
    assert (result.exit_code, "Traceback" in result.stderr) == (2, True)
    assert "ssvm-bench: error: There is no option x" in result.stderr

    runs.react = lambda config: fail(RunFailedError("nothing left"))
    result = call(*arguments)
    assert (result.exit_code, "Traceback (most recent call" in result.stderr) == (1, True)
    assert result.stderr.splitlines()[-1] == "ssvm-bench: error: nothing left"


def test_the_module_is_the_program_and_a_closed_pipe_is_quiet():
    setup = "import os, sys; r, w = os.pipe(); os.dup2(w, 1); os.close(r); sys.argv[1:] = ['list']"
    done = python("-c", f"{setup}; from ssvm_bench.__main__ import main; main()")
    assert (done.stderr, done.returncode) == ("", 0)  # as for `ssvm-bench list | head -1`
    done = python("-m", "ssvm_bench", "nonsense")
    assert done.returncode == 2
    assert done.stderr.startswith("ssvm-bench: error: There is no command 'nonsense'.")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a data folder that is empty, like the cache folder; stand-ins have few pictures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(reading, "user_folder", lambda: tmp_path / "user")
    monkeypatch.setenv("SSVM_BENCH_DATA", str(tmp_path / "data"))
    program.small_pictures(monkeypatch, 3)
    yield tmp_path / "data"
    program.forget_data()


def put_photographs(monkeypatch, n=2):
    """Put an archive of n plain photographs where that of the Weizmann horses should be."""
    monkeypatch.setattr(weizmann, "RAW", replace(weizmann.RAW, sha256={}, n=n))
    content = cv2.imencode(".jpg", np.full((60, 80), 200, np.uint8))[1].tobytes()
    names = (f"{kind}/horse{k:03d}.jpg" for k in range(n) for kind in ("rgb", "figure_ground"))
    return packed(weizmann.RAW.places()[0], dict.fromkeys(names, content), "w")


def test_data_tells_where_every_dataset_stands(machine):
    result = call("data")
    assert result.exit_code == 0
    assert result.stdout == call("data", "status").stdout
    rows = [line.split() for line in result.stdout.splitlines() if not line.startswith(" ")]
    ssl = [f"ssl_{name}" for name in ("bci", "digit1", "g241c", "g241n", "usps")]
    davis = ["davis_bmx_trees", "davis_car_shadow"]
    rest = ["horseseg", "mnist", "ocr", "optdigits", *ssl, "stanford", "usps", "weizmann"]
    assert [name for name, *_ in rows] == ["abalone", "adult", "conll2000", *davis, *rest]
    on_board = [row for row in rows if row[-2:] == ["on", "board)"]]
    assert [row[:2] for row in on_board] == [["ocr", "ready"], ["optdigits", "ready"]]
    for name, _, path, *_ in on_board:
        assert call("data", "fetch", name).stdout == f"{name}: {path} (on board)\n"
        assert call("data", "card", name).stdout.count(f"{path} (ready, on board)\n") == 1
    for name, state, path in (row for row in rows if row not in on_board):
        folder = name.partition("_")[0] if name in (*ssl, *davis) else name
        assert (state, Path(path).parent) == ("missing", machine / folder)
        assert f"data fetch {name}" in result.stdout
    # as docs/components.md says
    assert "`ssvm-bench data fetch usps` downloads it" in result.stdout
    (told,) = re.findall(r"`ssvm-bench data fetch horseseg` (.*)", result.stdout)
    assert re.fullmatch(r"tries https://\S+, which was not available when this was .*", told)
    assert call("data", "status", "ocr").stdout.startswith("ocr ")


def test_mistakes_in_data_show(machine, tmp_path):
    synthetic = ("--source", "synthetic")
    for number in (3, -1):
        message = error_of("data", "show", "weizmann", *synthetic, "--", number, status=2)
        assert f"no image {number}: weizmann (synthetic data) has 0 to 2" in message
    assert "ocr has no pictures" in error_of("data", "show", "ocr", "0", *synthetic, status=2)
    assert "data show --help" in error_of("data", "show", "weizmann", status=2)
    assert "'x'" in error_of("data", "show", "weizmann", "x", status=2)
    assert "synthetic" in error_of("data", "show", "weizmann", "0", "--source", "sun", status=2)
    (tmp_path / "file").write_text("no folder")
    for place in ("file/below.png", "file/much/below.png"):
        message = error_of("data", "show", "weizmann", 0, *synthetic, "--output", place, status=1)
        assert place in message
    assert (tmp_path / "file").read_text() == "no folder"
    assert list(tmp_path.glob("*.png")) == []
    message = error_of("data", "show", "weizmann", "0", "--source", "real", status=1)
    assert "weizmann_horse_db.tar.gz" in message
    assert str(machine) in message


def test_runs_that_data_show_cannot_use(machine, monkeypatch):
    def error_with(run, *options, status):
        return error_of("data", "show", "weizmann", 0, "--run", run, *options, status=status)

    data = ("dataset=weizmann", "dataset.source=synthetic", "dataset.n_samples=2")
    run = run_here("results", "solver=fw", "budget.max_iterations=2", data=data).folder
    put_photographs(monkeypatch)
    message = error_with(run, "--source", "real", status=2)
    assert "on weizmann (synthetic data), not on weizmann (real data)" in message
    (run / "weights.npz").write_bytes(b"PK")
    assert f"Cannot read the run {run}: weights.npz: " in error_with(run, status=1)


def test_the_real_horseseg_has_no_pictures(machine, monkeypatch):
    h5py = pytest.importorskip("h5py")
    monkeypatch.setattr(horseseg, "N_IMAGES", 1)
    file = horseseg.RAW.places()[0]
    file.parent.mkdir(parents=True)
    arrays = (1, 0, np.zeros((0, 2)), np.ones((1, 649)), [1])
    with h5py.File(file, "w") as stored:
        for kind, value in zip(horseseg.KINDS, arrays, strict=True):
            stored[f"{kind}_000000"] = value
    assert "horse 100.0%" in call("data", "prepare", "horseseg").stdout
    assert "no differences" in call("data", "check", "horseseg").stdout
    message = error_of("data", "show", "horseseg", "0", status=1)
    assert re.search("no photographs.*--source synthetic", message)


def shown(display_class, *rows, overrides=(), width=200, **console):
    stream = io.StringIO()
    ticks = iter(range(1000))
    display = display_class(Console(file=stream, width=width, **console), lambda: next(ticks))
    (config,) = compose_runs(overrides)
    with closing(display):
        display.start(config, "synthetic", 10, 20, 0.1)
        for row in rows:
            display.row({**ROW, **row})
    return stream.getvalue()


def test_plain_lines_are_aligned():
    text = shown(terminal.PlainLines, {}, {"iteration": 50, "dual": None, "gap": float("nan")})
    heading, columns, first, second = text.splitlines()
    assert "synthetic data" in heading
    assert len(columns) == len(first) == len(second)
    expected = "iteration exact calls time primal dual gap planes ETA"
    assert " ".join(columns.split()) == expected
    assert "\x1b" not in text
    text = shown(terminal.PlainLines, {"primal": 1.2345678e-5, "oracle_calls": 999_999_999})
    assert max(map(len, text.splitlines()[1:])) <= 80


def test_the_live_line_shows_the_last_row():
    text = shown(terminal.LiveLine, *({"iteration": k} for k in range(9)), force_terminal=True)
    assert text.count("iteration") == 1
    assert re.search(r"\s8 +34,385 +1\.5 s", text)
    assert text.endswith(("\n", "\x1b[?25h"))  # the cursor is back


def test_nothing_wraps_on_a_terminal_of_80_columns():
    options = ("solver=mpbcfw_fast", "dataset=conll2000", "prior.variance=0.25")
    asked = {"overrides": options, "width": 80}
    text = shown(terminal.LiveLine, {}, **asked, force_terminal=True)
    lines = re.sub(r"\x1b\[[\d?;]*[A-Za-z]", "", text.replace("\r", "\n")).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "mpbcfw_fast on conll2000 (synthetic data), seed 0:"
    assert lines[1].startswith("n = 10, d = 20, lam = 1/n = 0.1, prior N(0, 0.25), clock")
    # a file has one line, however long
    assert shown(terminal.PlainLines, {}, **asked).splitlines()[0] == " ".join(lines[:2])


def test_eta_follows_the_budget():
    def eta(row, *overrides):
        return shown(terminal.PlainLines, row, overrides=overrides).split()[-1]

    # The clock of these tests ticks once a look: 0 made, 1 started, 2 at the row.
    assert eta({"iteration": 0, "time": 0.0}) == "?"
    assert eta({"iteration": 0, "time": 1e-4}, "budget.max_seconds=10") == "?"
    assert eta({"iteration": 10}) == "0:04"
    assert eta({"iteration": 25}) == "0:01"
    assert eta({"iteration": 10, "time": 2.5}, "budget.max_seconds=10") == "0:03"
    assert eta({}, "budget.max_iterations=null", "budget.gap_tol=0.1") == "?"


def test_eta_follows_the_gap():
    """It counted iterations alone: 18:06 in the last row of a run that its gap had ended."""

    def etas(gaps, *overrides):
        now = [0.0]
        lines = terminal.PlainLines(Console(file=io.StringIO()), clock=lambda: now[0])
        (config,) = compose_runs(["solver=bcfw", "budget.gap_tol=0.01", *overrides])
        lines.start(config, "synthetic", 10, 20, 0.1)
        found = []
        for k, gap in enumerate(gaps):
            now[0] = 10.0 * k
            dual = None if gap is None else 2.0 * (1 - gap)
            row = {"iteration": k, "time": now[0], "primal": 2.0, "dual": dual}
            found.append(lines.eta({**row, "gap": math.nan if gap is None else 2.0 * gap}))
        return found

    falling = [1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125]
    without = etas(falling, "budget.max_iterations=null")
    assert without == ["?", "?", "0:46", "0:36", "0:26", "0:16", "0:06", "0:00"]
    assert etas(falling, "budget.max_iterations=1000")[2:] == without[2:]
    assert etas(falling, "budget.max_iterations=5")[3] == "0:20"  # the limit is first
    rising = [1.0, 0.5, 0.5, 0.6, 0.5]
    assert etas(rising, "budget.max_iterations=1000") == ["?"] * 5  # who knows
    assert etas([None] * 3, "budget.max_iterations=4") == ["?", "0:30", "0:20"]  # it has no gap


def test_durations():
    for seconds, text in (
        *((0.0, "0 s"), (0.00004, "4.0e-05 s"), (0.25, "0.25 s"), (59.94, "59.9 s"), (60, "1:00")),
        *((3599.9, "1:00:00"), (None, "-"), (float("nan"), "-")),
    ):
        assert words.duration(seconds) == text
