"""Links to folders and files of a user, anywhere in the folders that the program writes to.

Random commands are called. What is behind the links stays as it is, byte for byte, and each call
ends with one of its exit statuses and without a traceback.
"""

import random
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from ssvm_bench.base.files import LINKED, MARK
from tests.faults.case import Case, call, copied, removed
from tests.faults.kills import DATA, EXPERIMENT

NAMES = (
    *(
        f".call-{'0' * 32}.json",
        f".call-{'0' * 32}.log",
        "own",
        "reference",
        "report.html",
        "COMMITTED",
        "comparisons",
    ),
    *(".seed=0.lock", "seed=7", "seed=7.partial", f".seed=0{MARK}1", ".seed=0.old-1", "notes"),
    *(
        f"runs/.running-{socket.gethostname()}-0.lock",
        f"figures/{MARK}1",
        "figures/grid/1/x.png",
        "report/own.html",
    ),
)
"""Names that need not be there yet, in the results folder or beside a run."""


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Yield cases without end."""
    grid = folder / "grid.yaml"
    grid.write_text(EXPERIMENT)
    made, log = folder / "made", folder / "log"
    call(log, "experiment", grid, f"results_dir={made}")
    while True:
        results, outside = copied(made, folder / "results"), folder / "outside"
        shutil.rmtree(outside, ignore_errors=True)
        for place in ("work/deep", "seed=0", "0" * 12, f".a{MARK}1"):
            (outside / place).mkdir(parents=True)
            for name in ("trace.parquet", "token", "notes.txt", f".b{MARK}2"):
                (outside / place / name).write_text("mine")
        links = []
        for _ in range(rng.choice((1, 1, 2, 5))):
            links += _linked(rng, results, outside)
        before = _content(outside)
        for _ in range(rng.choice((1, 3))):
            command = rng.choice(_commands(grid, made, results))
            done = call(log, *command)
            failure = ""
            if done.returncode not in (0, 1, 2) or re.search("Traceback|--debug", done.stderr):
                failure = f"status {done.returncode}: {done.stderr[-800:]!r}"
            if _content(outside) != before:
                failure = f"changed: {sorted(_content(outside).items() ^ before.items())[:5]}"
            yield Case(f"links: {command[0]}", f"{command} with {links}", failure)
            if failure:
                break


def _commands(grid: Path, made: Path, results: Path) -> tuple[tuple, ...]:
    into = f"results_dir={results}"
    run = ("run", "dataset=usps", "solver=bcfw", *DATA, into)
    return (
        ("experiment", grid, into),
        ("experiment", grid, into, "--status"),
        (*run, "budget.max_iterations=5"),
        (*run, "budget.max_iterations=60", "force=true"),
        ("plot", grid, into),
        ("report", into),
        ("report", "--experiment", grid, into),
        ("compare", "bcfw", "mpbcfw", into),
        ("verify", into),
        ("publish", results.with_name("public"), into),
        ("merge", made, "--into", results),
        ("merge", results, "--into", results.with_name("merged")),
    )


def _linked(rng: random.Random, results: Path, outside: Path) -> list[str]:
    """Put a link somewhere; return what it is, or nothing where there was no place for one."""
    inside = sorted(path for path in results.rglob("*") if not path.is_symlink())
    if rng.random() < 0.4 and inside:
        folder = rng.choice([results, *(path for path in inside if path.is_dir())])
        path = folder / rng.choice(NAMES)
    else:
        path = rng.choice(inside or [results / "runs"])
    way = path.relative_to(results).parts
    if (way[0] in LINKED and len(way) == 1) or path.is_symlink():
        return []  # these are followed
    to = rng.choice((outside, *outside.rglob("*"), outside / "nowhere"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            removed(path)
        path.symlink_to(to)
    except OSError:
        return []
    return [f"{path.relative_to(results)} -> {to.relative_to(outside.parent)}"]


def _content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"folder"
        for path in folder.rglob("*")
    }
