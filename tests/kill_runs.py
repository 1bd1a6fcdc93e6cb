"""``kill -9`` at random moments of an experiment, a few hundred times; what is lost, in numbers.

    python tests/kill_runs.py --kills 200

The experiment is begun again after each kill, until all of its runs have finished, and then anew.
Its solver is MP-BCFW with a pause in each iteration, which writes down when which iteration was
begun; a run writes several checkpoints. Each process is a fork of this one, which has everything
loaded, so that most kills come where there is something to lose. Asked after each kill:

- every run that had finished is there, with the bytes that it had;
- a run that had not goes on from its last checkpoint, so that no more is lost than what was
  computed since: ``checkpoint.every`` seconds, or more where to write takes over 1 % of the time;
- a finished trace is, in all that is counted (``clock=work``), that of an undisturbed run.
"""

import argparse
import hashlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from click.testing import CliRunner

from ssvm_bench.base import interrupts
from ssvm_bench.cli.commands import main as command_line
from ssvm_bench.results.reading import find_runs, read_trace, read_weights
from ssvm_bench.results.trace import COLUMNS

COUNTED = [name for name in COLUMNS if name not in ("cpu_time", "eval_time")]
EVERY = 1.0  # seconds from one checkpoint to the next
PAUSE = 0.02  # of an iteration
ITERATIONS = 200
RUNS = 4
LATE = 0.5  # more seconds than a checkpoint is late for an iteration
SOLVER = f"""
import os, time
from ssvm_bench.solvers.block import mpbcfw

CODE_VERSION = 1
Config = mpbcfw.Config


def build(config, problem, clock, seed):
    solver = mpbcfw.build(config, problem, clock, seed)
    solver.__class__ = Paused
    solver.seed = seed
    return solver


class Paused(mpbcfw.MultiPlane):
    def iterate(self):
        if self.problem.n > 2:  # not while kernels are compiled
            with open(os.environ["SSVM_BENCH_LOG"], "a") as file:
                file.write(f"{{self.seed}} {{self.iteration}} {{time.time()}}\\n")
            time.sleep({PAUSE})
        super().iterate()
"""
OPTIONS = """# MP-BCFW with a pause
N: 1000
M: 1000
T: 10
step: line_search
sampling: permutation
average: false
start: truth
approx_order: same
latent_rounds: 1
"""
GRID = f"""
grid:
  seed: range({RUNS})
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 30
  solver: paused
  clock: work
  checkpoint.every: {EVERY}
  budget.max_iterations: {ITERATIONS}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1, help="runs at once (default: 1)")
    parser.add_argument("--seconds", type=float, default=2.5, help="latest kill after the start")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ssvm-bench-kills-") as name:
        campaign = Campaign(Path(name), asked)
        while campaign.counts["kills"] < asked.kills:
            campaign.go_on()
        campaign.finish()
        return campaign.report()


class Campaign:
    """Kills, and what was seen after them."""

    def __init__(self, folder, asked):
        self.folder, self.asked, self.rng = folder, asked, random.Random(asked.seed)
        (folder / "solver").mkdir()
        (folder / "solver" / "paused.py").write_text(SOLVER)
        (folder / "solver" / "paused.yaml").write_text(OPTIONS)
        (folder / "grid.yaml").write_text(GRID)
        self.log = folder / "log"
        self.counts, self.losses, self.wrong = Counter(), [], []
        self.round, self.before = 0, {}
        os.environ.update(SSVM_BENCH_LOG=str(self.log), SSVM_BENCH_OFFLINE="1")
        self.undisturbed = self.made("undisturbed")

    def command(self, name):
        options = [f"--config-dir={self.folder}", f"results_dir={self.folder / name}"]
        return ["experiment", str(self.folder / "grid.yaml"), *options, f"--jobs={self.asked.jobs}"]

    def made(self, name):
        """Make the experiment to its end, in this process; return what is counted of its runs."""
        if CliRunner().invoke(command_line, self.command(name)).exit_code != 0:
            raise RuntimeError("the experiment does not work undisturbed")
        return {folder.name: counted(folder) for folder in find_runs(self.folder / name)}

    def start(self, name):
        """Begin the experiment in a process that has loaded everything; return its number."""
        self.log.write_text("")
        process = os.fork()
        if process == 0:
            os.setsid()
            interrupts.end_at_signals()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nowhere, descriptor)
            try:
                command_line(self.command(name))
            except SystemExit as end:
                os._exit(int(end.code or 0))
            finally:
                os._exit(1)
        return process

    def go_on(self):
        """Start the experiment, kill it, look; if it has ended, begin another one."""
        name = f"round-{self.round}"
        known = self.finished(name)
        process = self.start(name)
        end = time.time() + self.rng.uniform(0.0, self.asked.seconds)
        if self.rng.random() < 0.8:  # most of them where there is something to lose
            while is_alive(process) and not self.log.read_text():
                time.sleep(0.01)
            end = time.time() + self.rng.uniform(0.0, self.asked.seconds)
        while is_alive(process) and time.time() < end:
            time.sleep(0.005)
        killed = None
        if is_alive(process):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            killed = time.time()
            self.counts["kills"] += 1
            self.wait_for_workers()
        self.look(name, known, killed)
        if killed is None:
            self.end_round(name)

    def wait_for_workers(self):
        """Wait for those of --jobs 2, which end after their iterations with a checkpoint."""
        size = -1
        while self.asked.jobs > 1 and size != self.log.stat().st_size:
            size = self.log.stat().st_size
            time.sleep(0.3)

    def finished(self, name):
        return {folder: content(folder) for folder in find_runs(self.folder / name)}

    def look(self, name, known, killed):
        """Ask what the docstring says, of the process that has just ended."""
        now = self.finished(name)
        for folder, before in known.items():
            self.counts["finished runs looked at"] += 1
            if now.get(folder) != before:
                self.wrong.append(f"{folder} was lost or changed")
        first, last = {}, {}
        for line in self.log.read_text().splitlines():
            if len(found := line.split()) == 3:
                seed, k, when = found
                first.setdefault(seed, int(k))
                last.setdefault(seed, []).append((int(k), float(when)))
        for seed, k in first.items():
            if seed in self.before:
                self.judge_loss(name, seed, k)
        kept = {
            path.parent.name.partition(".")[0].removeprefix("seed="): path.stat().st_mtime
            for path in (self.folder / name).glob("runs/*/*/*/seed=*.partial/checkpoint")
        }
        self.before |= {
            seed: (entries, killed, kept.get(seed, 0.0)) for seed, entries in last.items()
        }
        for folder in now:
            self.before.pop(folder.name.removeprefix("seed="), None)

    def judge_loss(self, name, seed, k):
        """Compare where a run goes on with the last checkpoint that it had when it was killed."""
        entries, killed, kept = self.before.pop(seed)
        done = [iteration for iteration, when in entries if when <= kept]
        wanted = done[-1] + 1 if done else entries[0][0]
        redone = [when for iteration, when in entries if iteration >= k]
        self.counts["runs that went on"] += 1
        self.losses.append(killed - redone[0] if redone else 0.0)
        if k < wanted:
            self.wrong.append(f"{name}, seed {seed} went on from {k}, its checkpoint had {wanted}")

    def end_round(self, name):
        """Compare the traces of an experiment that has ended with those of the undisturbed one."""
        found = {folder.name: counted(folder) for folder in find_runs(self.folder / name)}
        for run, expected in self.undisturbed.items():
            self.counts["traces compared"] += 1
            if found.get(run) != expected:
                self.wrong.append(f"{name}/{run} is another trace")
        self.round, self.before = self.round + 1, {}

    def finish(self):
        """Let the last experiment end."""
        name = f"round-{self.round}"
        if (self.folder / name).exists():
            known = self.finished(name)
            process = self.start(name)
            while is_alive(process):
                time.sleep(0.05)
            self.look(name, known, None)
            self.end_round(name)

    def report(self):
        for what, count in self.counts.items():
            print(f"{what}: {count}")
        losses = sorted(self.losses) or [0.0]
        late = sum(loss > EVERY + LATE for loss in losses)
        print(
            f"lost by a kill, of a run with a checkpoint every {EVERY:g} s: median "
            f"{losses[len(losses) // 2]:.2f} s, at most {losses[-1]:.2f} s, "
            f"over {EVERY + LATE:g} s {late} times"
        )
        print(f"what did not hold: {len(self.wrong)}")
        print("\n".join(self.wrong))
        return int(bool(self.wrong))


def is_alive(process):
    """Tell whether a process of ours goes on."""
    try:
        return os.waitpid(process, os.WNOHANG) == (0, 0)
    except ChildProcessError:  # it was seen before
        return False


def counted(folder):
    """Return what is counted of a run, and its weights, as bytes."""
    frame = read_trace(folder).frame[COUNTED]
    return frame.to_csv(float_format="%.17g").encode() + read_weights(folder)[0].tobytes()


def content(folder):
    """Return a digest of a run's files."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
