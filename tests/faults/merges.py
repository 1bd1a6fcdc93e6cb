"""Merged folders with damaged parts, links, strangers' files and runs in the place of others.

Whatever is in a part, the runs of the other one are merged; what comes of it is as it was written
or is left, only files of runs are copied, and nothing outside of the folders is read or changed.
"""

import contextlib
import os
import random
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from ssvm_bench.cli.commands import main
from ssvm_bench.results import merging, reading  # noqa: F401 — loaded once, for all calls
from tests.faults.case import (
    Case,
    as_folder,
    as_link,
    as_pipe,
    call,
    copied,
    cut,
    flipped,
    no_one_message,
    overwritten,
    removed,
)
from tests.faults.extensions import RUN
from tests.faults.kills import litter

SECRET = "what is not to be copied"
NAMES = ("zzz", "..zzz", "checkpoint", "traceback.txt", "names.json.gz", "weights.npz", "a\nb")


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Spoil a part, and merge, for ever."""
    secret, whole = folder / "secret", folder / "whole"
    secret.write_text(SECRET)
    for name, seeds in (("one", (0, 1)), ("two", (2,))):
        for seed in seeds:
            where = f"results_dir={whole / name}"
            with contextlib.suppress(SystemExit):
                main(["run", *RUN, "budget.max_iterations=3", where, f"seed={seed}"])
    right = {name: _content(run) for name, run in _runs(whole)}
    assert len(right) == 3
    while True:
        place = copied(whole, folder / "place")
        kind, spoil = rng.choice(list(KINDS.items()))
        what = spoil(place / "one", rng, secret)
        into, log = place / "into", folder / "log"
        done = call(log, "merge", place / "one", place / "two", "--into", into)
        failure = no_one_message(done) or litter(into)
        if not failure and done.returncode == 0:
            failure = _wrong(into, right)
        if secret.read_text() != SECRET:
            failure = "what is elsewhere has changed"
        yield Case(kind, what, failure)


def _runs(results: Path) -> Iterator[tuple[str, Path]]:
    for run in sorted(results.glob("**/seed=*")):
        yield run.name, run


def _content(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.iterdir()}


def _wrong(into: Path, right: dict[str, dict[str, bytes]]) -> str:
    """Return what is wrong with merged runs."""
    found = {run.name: run for run in reading.find_runs(into)}
    if "seed=2" not in found:
        return "the run of the other part is missing"
    for path in into.rglob("*"):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            return f"{path} was made"
        if path.is_file() and SECRET.encode() in path.read_bytes():
            return f"{path} was copied from elsewhere"
    for name, run in found.items():
        content = _content(run)
        if not content.keys() <= right[name].keys():
            return f"{name} has {sorted(content)}"
        if problem := reading.damage(run):
            return problem
        if reading.read_weights(run)[0].tobytes() not in right[name]["weights.npz"]:
            return f"{name} has other weights"
    return ""


# ---- what is done to a part ---------------------------------------------------------------------


def damaged(part: Path, rng: random.Random, secret: Path) -> str:
    """Spoil files."""
    said = ""
    for _ in range(rng.choice((1, 1, 1, 5))):
        path = rng.choice(
            [path for path in part.rglob("*.*") if path.is_file() and path.stat().st_size]
        )
        spoil: Callable = rng.choice((flipped, cut, overwritten, as_pipe, as_folder, as_link))
        spoil(path, rng)
        said += f"{path.relative_to(part)} {spoil.__name__}; "
    return said


def linked(part: Path, rng: random.Random, secret: Path) -> str:
    """Put a link, to a file or a folder elsewhere, in the place of something, or beside it."""
    path = rng.choice([part / "runs", *(part / "runs").rglob("*")])
    target = rng.choice((secret, secret.parent, Path("/etc/passwd"), path.with_name("moved")))
    if target.name == "moved":
        path.rename(target)
    elif rng.random() < 0.5 and path.is_dir():
        path = path / rng.choice(("seed=5", "x", *NAMES))
    if os.path.lexists(path):
        removed(path)
    path.symlink_to(target)
    return f"{path.relative_to(part)} -> {target}"


def strange(part: Path, rng: random.Random, secret: Path) -> str:
    """Put something into a run's folder that no run has, or of another kind."""
    run = rng.choice([run for _, run in _runs(part)])
    path = run / rng.choice(NAMES)
    with contextlib.suppress(FileNotFoundError):
        removed(path)
    kind = rng.choice(("file", "folder", "pipe", "socket", "other run's"))
    if kind == "folder":
        (path / "deep").mkdir(parents=True)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(run):
            made.bind(path.name)
    else:
        path.write_bytes(rng.choice((b"", b"x" * 1000)))
    return f"{kind} {path.relative_to(part)!a}"


def misplaced(part: Path, rng: random.Random, secret: Path) -> str:
    """Rename a folder on the way to a run."""
    (_, run), *_ = _runs(part)
    path = rng.choice((run, run, *run.parents[:3]))
    name = rng.choice(("seed=1.partial", "seed=7", "seed=x", "seed=0.partial.partial", "x", "..x"))
    target = path.with_name(name)
    path.rename(target)
    return f"{path.relative_to(part)} is {name}"


def doubled(part: Path, rng: random.Random, secret: Path) -> str:
    """Copy a run to the place of another one."""
    (_, run), (_, other) = _runs(part)
    target = rng.choice((other, run.with_name("seed=9"), run.with_name("seed=0.partial")))
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(run, target)
    return f"{run.name} is {target.name}, too"


KINDS: dict[str, Callable[[Path, random.Random, Path], str]] = {
    "damaged parts": damaged,
    "links": linked,
    "strange files": strange,
    "misplaced runs": misplaced,
    "a run twice": doubled,
}
