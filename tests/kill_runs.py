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
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from program import call, environment, install_solver, path_with, started, wait_until

from ssvm_bench.results.trace import find_runs
from tests.faults.kills import traces

EVERY = 1.0  # seconds from one checkpoint to the next
PAUSE = 0.02  # of an iteration
LATE = 0.5  # more seconds than a checkpoint is late for an iteration
SOLVER = f"""
import os, time
from pathlib import Path
from ssvm_bench.solvers.block import mpbcfw

CODE_VERSION = 1
Config = mpbcfw.Config


def build(config, problem, clock, seed):
    solver = mpbcfw.build(config, problem, clock, seed)
    solver.__class__, solver.seed = Paused, seed
    return solver


class Paused(mpbcfw.MultiPlane):
    def iterate(self):
        if self.problem.n > 2:  # not while kernels are compiled
            Path(os.environ["SSVM_BENCH_MARKS"], f"{{self.seed}}-{{self.iteration}}").touch()
            time.sleep({PAUSE})
        super().iterate()
"""
GRID = f"""
grid:
  seed: range(4)
  dataset: usps
  dataset.source: synthetic
  dataset.n_samples: 30
  solver: paused
  clock: work
  checkpoint.every: {EVERY}
  budget.max_iterations: 200
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
        while campaign.counts["kills"] < asked.kills or campaign.results.exists():
            campaign.go_on()
        return campaign.report()


class Campaign:
    """Kills, and what was seen after them.

    ``left`` has the runs that were not finished when their process ended: by seed, when which
    iteration was begun, when the process was killed, and when the last checkpoint was written.
    """

    def __init__(self, folder, asked):
        self.folder, self.asked, self.rng = folder, asked, random.Random(asked.seed)
        self.marks = folder / "marks"
        self.marks.mkdir()
        _, self.config_dir = install_solver(folder, "paused", SOLVER)
        (folder / "grid.yaml").write_text(GRID)
        os.environ |= environment(SSVM_BENCH_MARKS=self.marks, SSVM_BENCH_OFFLINE=1)
        os.environ["PYTHONPATH"] = path_with(folder)
        sys.path.insert(0, str(folder))
        self.counts, self.losses, self.wrong, self.left = Counter(), [], [], {}
        self.results = folder / "undisturbed"
        made = call(*self.command())
        assert made.exit_code == 0, made.output
        self.undisturbed = traces(self.results)
        self.results = folder / "round-0"

    def command(self):
        options = self.config_dir, f"--jobs={self.asked.jobs}", f"results_dir={self.results}"
        return "experiment", self.folder / "grid.yaml", *options

    def go_on(self):
        """Start the experiment, kill it, look; if it has ended, look at all, and begin anew."""
        known = self.finished()
        for mark in self.marks.iterdir():
            mark.unlink()
        with started(*self.command(), log=self.folder / "log", stdout=os.devnull) as process:
            if self.counts["kills"] < self.asked.kills:
                if self.rng.random() < 0.8:  # most of them where there is something to lose
                    wait_until(lambda: process.poll() is not None or any(self.marks.iterdir()))
                end = time.time() + self.rng.uniform(0.0, self.asked.seconds)
                wait_until(lambda: process.poll() is not None or time.time() > end)
            else:
                process.wait()
            has_ended, killed = process.poll() is not None, time.time()
        if not has_ended:
            self.counts["kills"] += 1
            self.wait_for_workers()
        self.look(known, killed)
        if has_ended:
            self.counts["traces compared"] += len(self.undisturbed)
            if traces(self.results) != self.undisturbed:
                self.wrong.append(f"{self.results.name} has other traces")
            self.left = {}
            self.results = self.folder / f"round-{self.counts['kills']}"

    def wait_for_workers(self):
        """Wait for those of --jobs 2, which end after their iterations with a checkpoint."""
        count = -1
        while self.asked.jobs > 1 and count != len(found := list(self.marks.iterdir())):
            count = len(found)
            time.sleep(0.3)

    def finished(self):
        """Return the files of the finished runs."""
        return {
            folder: {path.name: path.read_bytes() for path in folder.iterdir()}
            for folder in find_runs(self.results)
        }

    def look(self, known, killed):
        """Ask what the docstring says, of the process that has just ended."""
        now, begun = self.finished(), {}
        self.counts["finished runs looked at"] += len(known)
        self.wrong += [f"{of} was lost or changed" for of in known if now.get(of) != known[of]]
        for mark in self.marks.iterdir():
            seed, k = mark.name.split("-")
            begun.setdefault(seed, {})[int(k)] = mark.stat().st_mtime
        for seed in begun.keys() & self.left.keys():
            self.judge_loss(seed, min(begun[seed]))
        kept = {
            path.parent.name.removeprefix("seed=").removesuffix(".partial"): path.stat().st_mtime
            for path in self.results.glob("runs/*/*/*/seed=*.partial/checkpoint")
        }
        self.left |= {seed: (when, killed, kept.get(seed, 0.0)) for seed, when in begun.items()}
        for folder in now:
            self.left.pop(folder.name.removeprefix("seed="), None)

    def judge_loss(self, seed, k):
        """Compare where a run goes on with the last checkpoint that it had when it was killed."""
        begun, killed, kept = self.left.pop(seed)
        wanted = max((i + 1 for i, when in begun.items() if when <= kept), default=min(begun))
        self.counts["runs that went on"] += 1
        self.losses.append(killed - min((begun[i] for i in begun if i >= k), default=killed))
        if k < wanted:
            self.wrong.append(f"seed {seed} went on from {k}, its checkpoint had {wanted}")

    def report(self):
        for what, count in self.counts.items():
            print(f"{what}: {count}")
        losses = sorted(self.losses) or [0.0]
        late = sum(loss > EVERY + LATE for loss in losses)
        print(f"lost by a kill, of a run with a checkpoint every {EVERY:g} s:")
        print(f"median {losses[len(losses) // 2]:.2f} s, at most {losses[-1]:.2f} s,")
        print(f"over {EVERY + LATE:g} s {late} times")
        print(f"what did not hold: {len(self.wrong)}", *self.wrong, sep="\n")
        return int(bool(self.wrong))


if __name__ == "__main__":
    sys.exit(main())
