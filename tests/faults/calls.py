"""Calls, experiment files, config folders and plug-ins that nobody means.

Whatever is asked for, the answer comes soon, is short and without a traceback. Each call is made in
a fork of this process, which has imported everything: thousands a minute. No run is really made.
"""

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.cli import dataset_views
from ssvm_bench.cli.commands import main
from ssvm_bench.config import compose, registry
from ssvm_bench.datasets import sources
from ssvm_bench.report import experiment_files  # noqa: F401  so that a fork need not import it
from ssvm_bench.runs import runner
from tests.faults.case import CHARACTERS, LINES, Case, forked

SECONDS, MEGABYTES = 5, 300
"""Bounds of a bad call: processor time, and memory beyond what the imports take."""

SECRET = "hunter2-of-the-environment"
PLACE, DONE = "SSVM_BENCH_DATA", "done"
"""The variable with the folder of a call; the file in it that says that a run would be made."""

COMMANDS = ("run", "run -m", "experiment", "plot", "report", "publish", "list", "data", "data show")
OPTIONS = (
    *("seed", "lam", "path", "clock", "results_dir", "force", "quiet", "budget.max_iterations"),
    *("budget.max_seconds", "budget.gap_tol", "eval.every", "eval.growth", "dataset.source"),
    *("dataset.n_samples", "dataset.folds", "solver.N", "solver.M", "solver.T", "solver.step"),
    *("solver.average", "solver", "dataset", "oracle", "budget"),
)
ODD_KEYS = (
    *("sed", "solver.TT", "solvr.T", "budget", "solver.", ".T", "", " ", "a b", "dataset.name"),
    *("hydra.run.dir", "hydra.searchpath", "solver@foo", "_target_", "solver._target_", "defaults"),
    *("${oc.env:SSVM_BENCH_SECRET}", "x" * 3000, "é", "\x1b[31m", "a.b.c.d.e.f.g", "--seed", "0"),
)
VALUES = (
    *("1", "0", "-1", "3", "1.5", "1e-3", "null", "true", "text", "bcfw", "mpbcfw", "ocr", "usps"),
    *("2n/(k+2n)", "10/n", "[10/n,1/n]", "[]", "{}", "{a:1}", "", " ", "real", "synthetic", "work"),
    *("9" * 30, "9" * 4500, "-" + "9" * 400, "1e400", "nan", "inf", "1_000_000_000_000", "0x1F"),
    *("range(3)", "range(0,100000000)", "range(0,1,1e-9)", "range(0,10,0)", "range(5,0,-1)"),
    *("range(1e400)", "range(nan,1)", "range(0,99000)", "range(-3,3)", "range(3,1)", "range()"),
    *("shuffle(range(0,10**9))", "shuffle(range(0,1000000000))", "sort(3,1,2)", "sort(range(9))"),
    *("choice(1,2,3)", "choice(range(9),2)", "glob(*)", "glob([a*,b*],exclude=x)", "interval(0,1)"),
    *("int(3.5)", "str(range(3))", "float(x)", "json_str({a:1})", "bool(maybe)", "tag(a,b)"),
    *("tag(a,range(3))", "extend_list(1)", "???", "${seed}", "${oc.env:SSVM_BENCH_SECRET}"),
    *("$\\{oc.env:SSVM_BENCH_SECRET\\}", "'${oc.env:SSVM_BENCH_SECRET}'", "${oc.env:NONE,x}"),
    *("[${oc.env:SSVM_BENCH_SECRET}]", "{a:${oc.env:SSVM_BENCH_SECRET}}", "${${x}:y}", "${", "}"),
    *("${oc.decode:${oc.env:SSVM_BENCH_SECRET}}", "${oc.${seed}:HOME}", "${hydra:runtime.cwd}"),
    *("[" * 3000, "{a:" * 900, "(" * 30, "f(" * 500, "[1," * 60, "'", '"', "\\", "\\\\'", "a'b"),
    *("~", "~nobody-here/x", "/dev/null", "/dev/null/x", "/proc/x", "..", "/", "a" * 300, "$x$"),
    *("x" * 3900, "x" * 100_000, "1," * 1900, "1," * 40_000, "a=b", "a:b", "a,b", ",", "=", "@"),
    *("\x1b[2J", "a\nb", "\r", "\x07", "\u202etxt", "\udcff", "\U0001f600", "e\u0301" * 50, "\t"),
)
TITLES = (
    *("a title", "costs $5", "$x", "$$", "$\\frac{1}$", "\\$", "$a$ and $\\b", "x" * 500, "{}%s"),
    *(5, None, True, [1, 2], {"a": 1}, "a\nb", "\x1b[31m", "\u202e", "\U0001f600", "", " "),
)
RAW_YAML = (
    *("", "[", "{", "- 1", "a: b: c", "\t", "a: 1\na: 2", "? [1]\n: 2", "!!python/object:os.x {}"),
    *("%YAML 9.9\n---\n", "--- 1\n--- 2\n", "a: !!binary x", "2020-99-99", "a: 2020-99-99", "~"),
    *("x: &a [1]\ny: *a", "a: &a [*a]", "<<: {a: 1}", "1: 2", "null: 3", "a: 0x" + "f" * 9000),
    *("[" * 20_000, "{a: " * 9000, "- " * 9000, "? " * 9000, "a: " + "9" * 5000, "#" * 60_000),
    *("- a: 1\n" * 6000, "'" + "x\n\n" * 9000, "a: |\n" + " x\n" * 9000, "[" + "1," * 20_000 + "]"),
    "\n".join(f"a{k}: &a{k} [" + f"*a{k - 1}," * 9 * (k > 0) + "]" for k in range(30)),
)
RAW_BYTES = (b"\xff\xfe\x00", b"a: \xff", b"\x00" * 9, b"a: \xed\xa0\x80", b"\xef\xbb\xbfa: 1")
_CONFIG = (
    "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Config:\n    kind: str\n"
)
PLUG_INS = (
    *("raise RuntimeError('import')", "raise SystemExit(0)", "raise KeyboardInterrupt", "x =", ""),
    *("Config = 3", "import nope", "def __getattr__(name): raise ValueError(name)"),
    "class Config:\n    def __init__(self, **_): raise ValueError('\\x1b' * 9999)",
    f"{_CONFIG}    name: str\n    def __post_init__(self): raise KeyError('constructor')",
    *(f"{_CONFIG}    name: {kind}" for kind in ("'No'", "str")),
)
ROUND = 100
"""Calls between two looks at the time."""


def cases(rng, folder):
    """Yield calls of all kinds, each in an empty folder; of those that fail, the simplest."""
    _no_work()
    compose.compose_runs([])  # imports what is imported late
    while True:
        yield from _round(rng.getrandbits(32), folder)


def _round(seed, folder):
    """Return the least call that fails, as far as Hypothesis can shrink it, and those that hold."""
    made = []

    @hypothesis.seed(seed)
    @settings(max_examples=ROUND, deadline=None, database=None, suppress_health_check=HealthCheck)
    @given(st.randoms(use_true_random=False))
    def holds(rng):
        made.append(_case(rng, folder))
        assert not made[-1].failure

    failed = []
    try:
        holds()
    except (AssertionError, Flaky):
        failed = [case for case in made if case.failure][-1:]
    return failed + [case for case in made if not case.failure]


def _case(rng, folder):
    """Make one call."""
    makers = (_overrides, _overrides, _experiment, _experiment, _config_dir, _special, _plug_in)
    maker = rng.choice((*makers, _command))
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        arguments = [str(a).replace("\0", "") for a in maker(rng, place)]
        odd_place = rng.random() < 0.05
        failure = _failure(arguments, place, rng.choice(("gone", "long")) if odd_place else "")
        what = repr(arguments if len(repr(arguments)) < 600 else [a[:200] for a in arguments])
        if failure:
            what += "".join(f" {f.name}={f.read_bytes()[:300]!r}" for f in _files(place))
        return Case(maker.__name__.strip("_").replace("_", " "), what, failure)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _overrides(rng, place):
    """Return a run, or a sweep, with odd overrides."""
    command = rng.choice(("run", "run -m", "run -m", "experiment quickstart", "plot quickstart"))
    if rng.random() < 0.1:
        return ["report", f"results_dir={_value(rng)}"]
    status = ["--status"] * (command.startswith("exp") and rng.random() < 0.5)
    return [*command.split(), *(_override(rng) for _ in range(rng.randint(1, 4))), *status]


def _command(rng, place):
    """Return any words of the command line."""
    words = [*rng.choice(COMMANDS).split()] if rng.random() < 0.8 else []
    known = ("-h", "--status", "--jobs", "--format", "--config-dir", "--run", "--output", "-m")
    for _ in range(rng.randint(0, 4)):
        words.append(rng.choice((rng.choice(known), _value(rng), _override(rng), "quickstart")))
    return words


def _experiment(rng, place):
    """Return a command on an experiment file."""
    file = place / rng.choice(("mine.yaml", "mine.yaml", "my own.yaml", "$x.yaml", "-.yaml"))
    _write(rng, file, {key: _part(rng, key) for key in _keys(rng)})
    command = rng.choice((["experiment"], ["plot"], ["experiment", "--status"]))
    return [*command, file, *([_override(rng)] if rng.random() < 0.3 else [])]


def _keys(rng):
    some = [key for key in ("title", "each", "instead", "like", "gaps") if rng.random() < 0.3]
    odd = [rng.choice(ODD_KEYS)] if rng.random() < 0.1 else []
    return ["grid", "figures", *some, *odd]


def _part(rng, key):
    """Return what an experiment file may say, well formed or not."""
    if rng.random() < 0.15:
        return _tree(rng)
    grid = {_key(rng): rng.choice((_value(rng), [_value(rng)], 1)) for _ in range(3)}
    return {
        "title": rng.choice(TITLES),
        "grid": rng.choice((grid, {"seed": "range(2)", "solver": ["bcfw"]}, [grid] * 3)),
        "each": {rng.choice(("ocr", "usps", "x")): {_key(rng): _value(rng)}},
        "instead": {rng.choice(("ocr", "x")): rng.choice(("usps", 3, None, "y"))},
        "like": rng.choice(("quickstart", "main", "mine", 3, "../x", None)),
        "gaps": rng.choice(([0.1], [1e400, -1], [0], "x", [0.1] * 30, [10**400], list(range(99)))),
        "figures": rng.choice(({"suboptimality": ["time"]}, {"targets": ["time"]}, {"x": 1}, {})),
    }.get(key, 1)


def _config_dir(rng, place):
    """Return a call that chooses a user's file."""
    group = rng.choice(("solver", "dataset", "oracle", "budget"))
    (place / group).mkdir()
    content = {"name": "mine", "kind": rng.choice(("block", "ocr", "viterbi", "nope", 3))}
    default = rng.choice(("mpbcfw", "mine", "../x", {"/hydra/x": "y"}, 3, "${oc.env:HOME}", "ocr"))
    if rng.random() < 0.5:
        content["defaults"] = rng.choice(([default], [default, "_self_"], default, [default] * 3))
    for _ in range(rng.randint(0, 3)):
        content[_key(rng).rpartition(".")[2]] = rng.choice((_value(rng), _tree(rng)))
    _write(rng, place / group / "mine.yaml", content)
    command = rng.choice((["run"], ["run"], ["list"], ["experiment", "quickstart", "--status"]))
    return [*command, *([f"{group}=mine"] if command[0] != "list" else []), "--config-dir", place]


def _special(rng, place):
    """Return a call with a file that is no regular one, or cannot be read."""
    group = place / "solver"
    group.mkdir()
    file = rng.choice((place, group)) / "mine.yaml"
    make = {
        "fifo": lambda: os.mkfifo(file),
        "folder": file.mkdir,
        "large": lambda: file.write_bytes(b"#" * 10_000_000),
        "bytes": lambda: file.write_bytes(rng.choice(RAW_BYTES)),
        "link": lambda: file.symlink_to(rng.choice((file, "/dev/zero", "nowhere"))),
    }
    make[rng.choice((*make, "link", "link"))]()
    calls = (["experiment", file], ["plot", file], ["run", "solver=mine", "--config-dir", place])
    return rng.choice((*calls, ["list", "--config-dir", place], ["run", "--config-dir", file]))


def _plug_in(rng, place):
    """Return a call that chooses a solver, dataset or oracle of another package."""
    group = rng.choice(("solver", "dataset", "oracle"))
    (place / "odd_plug_in.py").write_text(rng.choice(PLUG_INS))
    about = place / "odd_plug_in-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: odd-plug-in\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[ssvm_bench.{group}s]\nodd = odd_plug_in\n")
    (place / group).mkdir()
    (place / group / "odd.yaml").write_text("name: odd\nkind: odd\n")
    return ["run", f"{group}=odd", "--config-dir", place]


def _write(rng, file, content):
    if rng.random() < 0.15:
        file.write_bytes(rng.choice((*RAW_BYTES, *(text.encode() for text in RAW_YAML))))
    else:  # JSON is YAML, and can escape everything
        file.write_text(json.dumps(content))


def _tree(rng, depth=0):
    """Return any nested value."""
    if depth > 3 or rng.random() < 0.4:
        return rng.choice((_value(rng), rng.randint(-5, 10**20), None, True, 1.5, "\0", [], {}))
    if rng.random() < 0.5:
        return [_tree(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    return {_key(rng): _tree(rng, depth + 1) for _ in range(rng.randint(0, 4))}


def _key(rng):
    return rng.choice(OPTIONS if rng.random() < 0.85 else ODD_KEYS)


def _value(rng):
    """Return a value, or several of them run together."""
    if rng.random() < 0.8:
        return rng.choice(VALUES)
    return rng.choice(("", ",", " ", ":", "\\")).join(rng.choices(VALUES, k=rng.randint(2, 4)))


def _override(rng):
    prefix = rng.choice(("", "+", "++", "~", "--")) if rng.random() < 0.2 else ""
    equals = rng.choice(("", " = ")) if rng.random() < 0.1 else "="
    return f"{prefix}{_key(rng)}{equals}{_value(rng)}"


def _no_work():
    """Replace what takes long, in this process and its forks: runs, and loading data."""

    def nothing(*_, **__):
        Path(os.environ[PLACE], DONE).touch()
        raise RunFailedError("Nothing is run here.")

    runner.run = nothing
    dataset_views.prepared = dataset_views._load = sources.fetch = nothing
    registry.kinds("dataset")


def _failure(arguments, place, where):
    """Make a call in a fork; return what did not hold."""
    before, log = _resident(), place.parent / "stderr"
    ended = forked(lambda: _call(arguments, place, where), log, seconds=12 * SECONDS)
    stderr, code, done = ended.stderr, ended.returncode, (place / DONE).exists()
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    megabytes, failed = ended.megabytes - before, code != 0 and not done
    bounds = {
        f"exit status {code}": code not in (0, 1, 2),
        "a traceback": "Traceback" in stderr,
        f"advice to debug: {stderr[-300:]!r}": "--debug for the" in stderr,
        "a secret": SECRET in stderr,
        "control characters": not all(line.isprintable() for line in stderr.splitlines()),
        "no run": code == 0 and not done and arguments[:1] == ["run"] and "-h" not in arguments,
        "no message": failed and "error: " not in stderr,
        f"{len(stderr)} characters": failed and len(stderr) > CHARACTERS,
        f"{stderr.count(chr(10))} lines": failed and stderr.count("\n") > LINES,
        f"{ended.seconds:.1f} s": failed and ended.seconds > SECONDS,
        f"{megabytes:.0f} MB": failed and megabytes > MEGABYTES,
    }
    return "; ".join(name for name, broken in bounds.items() if broken)


def _call(arguments, place, where):
    """Make a call, in a fork, with folders of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CPU, (6 * SECONDS, 6 * SECONDS))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ |= {"SSVM_BENCH_SECRET": SECRET, PLACE: str(place), "HOME": str(place)}
    sys.path.insert(0, str(place))
    here = place / ("x" * 250 if where == "long" else "here")
    here.mkdir()
    os.chdir(here)
    if where == "gone":
        here.rmdir()
    main(arguments)


def _files(place):
    return [f for f in sorted(place.rglob("*")) if f.is_file() and f.stat().st_size][:3]


def _resident():
    """Return the megabytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
