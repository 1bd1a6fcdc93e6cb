"""Checkpoints: a run that was ended goes on, and its trace is that of one that was not."""

import io
import itertools
import math
import signal
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import program
import pytest
from helpers import run_of
from program import USPS, config_of, run_folders, wait_until
from regression import reference

from ssvm_bench.base import state
from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.base.messages import shown_by
from ssvm_bench.config.schema import Checkpoint
from ssvm_bench.oracles import prior as priors
from ssvm_bench.oracles.prior import with_prior
from ssvm_bench.results import checkpoint_file
from ssvm_bench.results.run_folder import partial_folder
from ssvm_bench.results.trace import read_trace
from ssvm_bench.runs import checkpoints, components, runner
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.terminal import Display
from ssvm_bench.solvers.base import Solver

pytestmark = pytest.mark.processors

LEFT_AT = (0, 2, 10)  # φ is recomputed after 10 iterations, and 10 make the start of Prox-BMRM
MEASURED = ["eval_time", "cpu_time"]

SYNTHETIC = "dataset.source=synthetic"
POINTS = ("dataset=moons", "dataset.cliques=6", "dataset.clique_size=8")
RBF = ("oracle.kernel=rbf", "oracle.gamma=0.01")
GRAPHS = ("dataset=stanford", SYNTHETIC, "dataset.n_samples=6")
N_PICTURES = 6
OTHER_PROBLEMS = {
    "memory of the oracle": (*GRAPHS, "solver=mpbcfw", "oracle.warm_start=true"),
    "chains": (*reference.PROBLEMS["ocr"], "solver=mpbcfw_fast"),
    "centre": (*reference.PROBLEMS["ocr"], "solver=mpbcfw_in_out"),
    "second order": (*reference.PROBLEMS["ocr"], "solver=mpbcfw_newton"),
    "after the exact pass": (*USPS, "solver=mpbcfw_avg", "eval.after_exact_pass=true"),
    "spaced evaluations": (*USPS, "solver=bcfw", "eval.every=4"),
    "fresh orders": (*USPS, "solver=mpbcfw", "solver.approx_order=fresh"),
    "prior": (*USPS, "solver=bcfw", "prior.mean=0.1"),
    "kernel": (*USPS, "solver=mpbcfw_avg", *RBF),
    "kernel with room for few rows": (*USPS, "solver=mpbcfw", *RBF, "oracle.kernel_memory=0.004"),
    "kernel of chains": (*reference.PROBLEMS["ocr"], "solver=mpbcfw_fast", *RBF),
    "regression": ("dataset=abalone", SYNTHETIC, "dataset.n_samples=40", "solver=dcd"),
    "rounds": (
        *("dataset=latent", SYNTHETIC, "dataset.canvas=31", "lam=0.02"),
        *("dataset.n_samples=36", "dataset.positives=12", "solver=mpbcfw"),
        *("solver.latent_rounds=3", "budget.max_iterations=6"),
    ),
    "points": (*POINTS, "solver=dcadmm"),
    "points by turns": (*POINTS, "solver=coordinate_descent", "budget.max_iterations=5"),
    "features of points": (*POINTS, "solver=dcadmm", "oracle.kernel=random_features"),
    "relaxed points": (*POINTS, "solver=sdp"),
    "clusters": (*POINTS, "solver=kernel_kmeans"),
}


def problem_of(config):
    """Build the problem of a run anew, as another process would."""
    rows = components.chunk_rows(config)
    dataset = components.load_dataset(config.dataset, rows)
    components.oracle_of_thread.cache_clear()
    terms = components.build_oracle(config.oracle, config.dataset, rows)
    return with_prior(terms, config.lam_of(dataset.n), priors.build(config.prior, terms.d))


WHOSE = checkpoint_file.identity("run", "data")


def new_recorder(config, problem):
    return Recorder(problem, Display(), latent_rounds=getattr(config.solver, "latent_rounds", 1))


def undisturbed_and_left(config):
    """Return the recorder of a run, and the folders that it would have left at some iterations."""
    problem, left, times = problem_of(config), [], itertools.count()

    def look(solver, recorder, progress, reason):
        if recorder.rows and next(times) in LEFT_AT:
            left.append(config.results_dir / f"left-{len(left)}")
            left[-1].mkdir(parents=True)
            with solver.clock.paused(), (left[-1] / checkpoint_file.NAME).open("wb") as file:
                state = checkpoints.state_of(solver, recorder, progress)
                checkpoint_file.write(file, WHOSE, state)

    recorder = new_recorder(config, problem)
    solver = components.build_solver(config, problem, Clock("work", *config.oracle.costs))
    runner.loop(config, solver, recorder, write_checkpoint=look)
    return recorder, left


def begun(config):
    """Return what goes on from a state."""
    problem = problem_of(config)
    recorder = new_recorder(config, problem)
    return lambda state: checkpoints.restored(state, run_of(config, problem), recorder)


def gone_on(config, folder):
    """Return the recorder of a run that goes on from a checkpoint."""
    solver, recorder, progress = begun(config)(checkpoint_file.read(folder, WHOSE))
    solver.clock.start()
    progress.resumed = [{"iteration": progress.iteration}]
    runner.loop(config, solver, recorder, progress=progress)
    return recorder


def check_that_it_goes_on(config):
    whole, left = undisturbed_and_left(config)
    assert len(left) >= 2  # some end before all moments have come
    for folder in left:
        recorder = gone_on(config, folder)
        rows = [pd.DataFrame(one.rows).drop(columns=MEASURED) for one in (recorder, whole)]
        pd.testing.assert_frame_equal(*rows, check_exact=True)
        found, wanted = (one.problem.arrays(one.w) for one in (recorder, whole))
        for name in wanted:
            np.testing.assert_array_equal(found[name], wanted[name])
        assert recorder.losses == pytest.approx(whole.losses, rel=0, abs=0, nan_ok=True)


@pytest.mark.parametrize("name", reference.SOLVERS)
def test_a_solver_goes_on_as_if_nothing_had_happened(tmp_path, name):
    options = ("clock=work", "budget.max_iterations=14", f"solver={name}")
    check_that_it_goes_on(config_of(tmp_path, *options))


@pytest.mark.parametrize("what", OTHER_PROBLEMS)
def test_so_does_a_run_of_another_kind(tmp_path, what, request):
    if GRAPHS[0] in OTHER_PROBLEMS[what]:
        request.getfixturevalue("few_pictures")
    options = ("clock=work", "budget.max_iterations=14", *OTHER_PROBLEMS[what])
    check_that_it_goes_on(config_of(tmp_path, *options, data=()))


class Inner(NamedTuple):
    rows: np.ndarray
    count: int


class Known(state.Stateful):
    STATE = ("w", "inner", "bits", "pair", "share", "name")

    def __init__(self):
        self.w, self.inner = np.zeros(3), Inner(np.zeros((2, 2), np.int64), 0)
        self.bits, self.pair = np.random.PCG64(1), (0.5, Clock("work"))
        self.share, self.name, self.other = math.nan, "", "never stored"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: s.pop("w"), "has other names"),
        (lambda s: s.update(more=1), "has other names"),
        (lambda s: s.update(w=[0.0] * 3), "w is no array of float64"),
        (lambda s: s.update(w=np.zeros(3, np.float32)), "w is no array of float64"),
        (lambda s: s.update(w=np.zeros(4)), r"w has the shape \(4,\), not \(3,\)"),
        (lambda s: s.update(w=np.full(3, np.nan)), "w has NaN"),
        (lambda s: s.update(w=np.full(3, np.inf)), "w has an infinite number"),
        (lambda s: s["inner"].update(rows=-np.ones((2, 2), np.int64)), "inner/rows has an imposs"),
        (lambda s: s["inner"].update(count=True), "inner/count is no int"),
        (lambda s: s["inner"].update(count=-1), "inner/count is an impossible number"),
        (lambda s: s.update(inner=3), "inner is no mapping"),
        (lambda s: s.update(bits=1 << 128), "bits is not the state of a bit generator"),
        (lambda s: s["pair"].update({"0": math.inf}), "pair/0 is not finite"),
        (lambda s: s["pair"]["1"].update(_wall={}), "pair/1/_wall has other names"),
        (lambda s: s.update(name=1), "name is no str"),
    ],
)
def test_a_state_of_another_kind_is_refused(change, why):
    changed = Known().state()
    change(changed)
    with pytest.raises(state.StateError, match=f"^{why}"):
        Known().restore(changed)


FW = ("solver=fw", "clock=work", "budget.max_iterations=8")
ALWAYS = "checkpoint.every=0"


def broken_off(config, monkeypatch, iteration):
    """Let a run fail before an iteration, of the last stage of its path."""
    original = runner.loop

    def failing(stage, solver, recorder, warm_started, progress, look):
        def until(solver, recorder, progress, reason):
            look(solver, recorder, progress, reason)
            if progress.iteration == iteration and stage.path == config.path:
                raise ZeroDivisionError

        return original(stage, solver, recorder, warm_started, progress, until)

    with monkeypatch.context() as patch:
        patch.setattr(runner, "loop", failing)
        with pytest.raises(RunFailedError, match="ZeroDivisionError"):
            runner.run(config, Display())


def gone_on_and_whole(config, other):
    """Finish a run that was broken off; return what became of it, and what was said.

    Its trace is that of another run of the same options.
    """
    said = []
    with shown_by(said.append):
        outcome = runner.run(config, Display())
    frames = [read_trace(one.folder).frame for one in (outcome, runner.run(other, Display()))]
    frames = [frame.drop(columns=MEASURED) for frame in frames]
    pd.testing.assert_frame_equal(*frames, check_exact=True)
    return outcome, [text for text in said if text.startswith("Resuming after iteration")]


def test_the_same_command_goes_on(tmp_path, monkeypatch):
    config = config_of(tmp_path / "a", *FW, ALWAYS)
    broken_off(config, monkeypatch, 5)
    assert run_folders(tmp_path / "a") == ["seed=0.partial"]
    outcome, (told,) = gone_on_and_whole(config, config_of(tmp_path / "b", *FW))
    assert told.startswith("Resuming after iteration 5")
    (resumed,) = read_trace(outcome.folder).metadata["resumed"]
    assert resumed["iteration"] == 5
    assert 0 < outcome.summary["checkpoint_time"] < outcome.summary["wall_time"]
    assert run_folders(tmp_path / "a", hidden=True) == ["seed=0"]
    assert not (outcome.folder / checkpoint_file.NAME).exists()


def test_a_path_goes_on_with_the_stage_that_was_left(tmp_path, monkeypatch):
    options = ("solver=mpbcfw", "clock=work", "path=[1.0]", "budget.max_iterations=4", ALWAYS)
    config = config_of(tmp_path / "a", *options)
    runner.run(config.path_steps()[0], Display())
    broken_off(config, monkeypatch, 3)
    _, said = gone_on_and_whole(config, config_of(tmp_path / "b", *options))
    assert len(said) == 1


def of_another_program(content):
    with np.load(io.BytesIO(content)) as found:
        arrays = dict(found)
    about = arrays["about"].tobytes()
    begin = about.index(b'"program": "') + len('"program": "')
    arrays["about"][begin : begin + 4] = ord("0")
    file = io.BytesIO()
    np.savez(file, **arrays)
    content[:] = file.getvalue()


def of_the_first_format(content):
    content[:] = b'{"format": "1"}\n' + content


def flipped(content):
    content[content.index(b"NUMPY") + 200] ^= 1


def cut(content):
    del content[100:]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (flipped, "it is damaged"),
        (of_the_first_format, "it was written by another version of the program"),
        (cut, "it is damaged"),
        (bytearray.clear, "it is damaged"),
        (of_another_program, "it was written by another version of the program"),
    ],
)
def test_a_checkpoint_of_no_use_is_left_aside(tmp_path, monkeypatch, change, why):
    config, said = config_of(tmp_path, *FW, ALWAYS), []
    broken_off(config, monkeypatch, 3)
    file = partial_folder(config.folder) / checkpoint_file.NAME
    content = bytearray(file.read_bytes())
    change(content)
    file.write_bytes(content)
    with shown_by(said.append):
        outcome = runner.run(config, Display())
    (told,) = said
    assert told.startswith(f"The checkpoint in {file.parent} is left aside: ")
    assert why in told
    trace = read_trace(outcome.folder)
    assert ("resumed" in trace.metadata, len(trace)) == (False, 9)


def test_force_begins_anew(tmp_path, monkeypatch):
    config, said = config_of(tmp_path, *FW, ALWAYS, "force=true"), []
    broken_off(config, monkeypatch, 3)
    with shown_by(said.append):
        outcome = runner.run(config, Display())
    assert "resumed" not in read_trace(outcome.folder).metadata
    assert said == []


def test_checkpoints_can_be_left_out(tmp_path, monkeypatch):
    config = config_of(tmp_path, *FW, "checkpoint.every=null")
    broken_off(config, monkeypatch, 3)
    assert not (partial_folder(config.folder) / checkpoint_file.NAME).exists()


class Nothing(Solver):
    """Has a state if it says so."""

    def __init__(self, clock, says=()):
        super().__init__(Known(), clock)
        self.STATE = says

    def iterate(self):
        pass

    def reported(self):
        pass


def test_checkpoints_take_a_hundredth_of_the_time():
    """Each takes as long as an iteration; then all of them take a hundredth, at most."""
    now, spent = [0.0], []

    def write(dump):
        spent.append(now[0])
        now[0] += 2.0

    made = checkpoints.Checkpoints(Checkpoint(every=10.0), {}, write, lambda: now[0])
    recorder, progress = SimpleNamespace(state=dict, rows=[{}]), checkpoints.Progress()
    solver = Nothing(Clock("work"))
    with shown_by(pytest.fail):
        while now[0] < 2000.0:
            made.write_if_due(solver, recorder, progress, None)
            now[0] += 2.0
    assert progress.checkpoint_time == 2.0 * len(spent)
    assert spent[0] == 10.0
    assert (np.diff(spent) >= 200.0).all()


def test_a_solver_without_a_state_is_told_once():
    said = []
    made = checkpoints.Checkpoints(Checkpoint(every=0.0), {}, lambda dump: dump(io.BytesIO()))
    recorder = SimpleNamespace(state=dict, rows=[{}])
    with shown_by(said.append):
        for _ in range(2):
            solver = Nothing(Clock("work"), says=None)
            made.write_if_due(solver, recorder, checkpoints.Progress(), None)
    (told,) = said
    assert told.startswith("This run cannot be resumed after it ends: ")
    assert "Nothing does not say its STATE" in told


def last_told(log):
    """Return the iteration in the last line of a status; −1 if there is none."""
    words = [line.split() for line in log.read_text().splitlines()]
    return max((int(line[0]) for line in words if line and line[0].isdigit()), default=-1)


SLOW = """
import time
from ssvm_bench.solvers import fw
from ssvm_bench.solvers.fw import Config
CODE_VERSION = 1
class Slow(fw.FrankWolfe):
    def iterate(self):
        super().iterate()
        time.sleep(0.02)
def build(config, problem, clock, seed):
    return Slow(config, problem, clock)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_loses_no_more_than_an_interval(tmp_path, number):
    """Of a solver of another package, whose own classes are found again."""
    options = program.install_solver(tmp_path, "slow", SLOW)
    results = f"results_dir={tmp_path / 'results'}"
    words = ("run", *options, *USPS, "clock=work", "budget.max_iterations=40", ALWAYS, results)
    log, path = tmp_path / "log", program.path_with(tmp_path)
    with program.started(*words, log=log, PYTHONPATH=path) as process:
        wait_until(lambda: last_told(log) >= 3, process)
        program.end(process, number)
    left = last_told(log)
    assert left < 40
    done = program.completed(log, *words, PYTHONPATH=path)
    assert (done.returncode, "Resuming after iteration" in done.stderr) == (0, True)
    (folder,) = tmp_path.glob("results/runs/*/*/*/seed=0")
    trace = read_trace(folder)
    assert trace.metadata["resumed"][0]["iteration"] in (left, left + 1)
    assert list(trace.frame["iteration"]) == list(range(41))
