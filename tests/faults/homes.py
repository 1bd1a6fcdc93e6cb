"""Homes and caches that are missing, full or spoilt: a run gives the same numbers, elsewhere.

Kernels that are kept have their files spoilt, or their place is none. A run must succeed, with the
numbers of an undisturbed one, without a word but the one line that says where caches are now; and
write nothing into the installed package.
"""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import ssvm_bench
from ssvm_bench.results import reading
from tests.faults.case import Case, as_folder, as_pipe, copied, cut, flipped

RUN = (
    *("run", "solver=fw", "dataset=usps", "dataset.source=synthetic", "dataset.n_samples=20"),
    *("clock=work", "budget.max_iterations=3", "quiet=true", "force=true"),
)
SECONDS = 300
PACKAGE = Path(ssvm_bench.__file__).parent
COLUMNS = ["iteration", "time", "primal", "dual"]
CACHES = ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "MPLCONFIGDIR", "SSVM_BENCH_TEMPORARY")


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Yield faults without end."""
    warm, temporary, results = (folder / name for name in ("warm", "tmp", "results"))
    temporary.mkdir()
    environment = {key: value for key, value in os.environ.items() if key not in CACHES}
    environment |= {"TMPDIR": str(temporary), "SSVM_BENCH_OFFLINE": "1"}
    before = set(PACKAGE.rglob("*"))

    def failure(changes: dict[str, str], lines: int) -> str:
        shutil.rmtree(results, ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "-m", "ssvm_bench", *RUN, f"results_dir={results}"],
            env={**environment, **changes},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        said = f"status {done.returncode}: {done.stderr!r}"
        if done.returncode or len(done.stderr.splitlines()) > lines:
            return said
        if new := {path for path in set(PACKAGE.rglob("*")) - before if path.suffix != ".pyc"}:
            return f"in the package: {sorted(new)}"
        if left := sorted(temporary.iterdir()):
            return f"left behind: {left}"
        (run,) = reading.find_runs(results)
        return "" if reading.read_run(run).frame[COLUMNS].equals(numbers) else "other numbers"

    numbers = None
    usual = {"HOME": str(folder), "NUMBA_CACHE_DIR": str(warm)}
    problem = failure(usual, 0)
    assert problem == "other numbers", problem
    numbers = reading.read_run(reading.find_runs(results)[0]).frame[COLUMNS]
    while True:
        if rng.random() < 0.7:
            cache = copied(warm, folder / "cache")
            what, spoil = rng.choice(list(KINDS.items()))
            kernels = [path for path in cache.glob("kernels-*/*") if path.name[0] != "."]
            chosen = rng.sample(kernels, rng.choice((1, 2, len(kernels))))
            for path in chosen:
                spoil(path, rng)
            changes = {**usual, "NUMBA_CACHE_DIR": str(cache)}
            yield Case(f"kernels: {what}", f"{len(chosen)}: {chosen[0].name}", failure(changes, 0))
        else:
            with ExitStack() as stack:
                what, place = rng.choice(list(PLACES.items()))
                changes = place(folder, stack)
                problem = failure(changes, 1)
            yield Case(f"home: {what}", str(changes), problem)


# ---- what is done to a kernel's file ----------------------------------------------------------


def swapped(path: Path, rng: random.Random) -> None:
    """Put another kernel's file in its place."""
    path.write_bytes(rng.choice(sorted(path.parent.iterdir())).read_bytes())


KINDS: dict[str, Callable[[Path, random.Random], None]] = {
    "bits flipped": lambda path, rng: flipped(path, rng, rng.choice((1, 8, 64))),
    "cut short": cut,
    "of another": swapped,
    "gone": lambda path, rng: path.unlink(),
    "a pipe": as_pipe,
    "a folder": as_folder,
}


# ---- places that are none ---------------------------------------------------------------------


def is_file(folder: Path, stack: ExitStack) -> dict[str, str]:
    """Return a home that is a file."""
    (folder / "file").write_text("")
    return {"HOME": str(folder / "file")}


def full(folder: Path, stack: ExitStack) -> dict[str, str]:
    """Return a home on a disk that is full; one that cannot be written, without the right to."""
    home = folder / "full"
    home.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(home)]
    if subprocess.run(mount, capture_output=True).returncode:
        home.chmod(0o500)
        return {"HOME": str(home)} if os.geteuid() else {"HOME": "/proc/nothing"}
    stack.callback(subprocess.run, ["umount", str(home)], check=True)
    with suppress(OSError), (home / "filler").open("wb", buffering=0) as filler:
        while filler.write(bytes(4096)):
            pass
    return {"HOME": str(home)}


PLACES: dict[str, Callable[[Path, ExitStack], dict[str, str]]] = {
    "none": lambda folder, stack: {},
    "a file": is_file,
    "nowhere": lambda folder, stack: {"HOME": "/proc/nothing"},
    "full": full,
    "kernels nowhere": lambda folder, stack: {"HOME": str(folder), "NUMBA_CACHE_DIR": "/dev/null"},
}
