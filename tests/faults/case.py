"""What a campaign says of one fault, how faults are made and counted; spoilt files, and calls."""

import importlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ssvm_bench.cli.commands import main

LINES, CHARACTERS = 8, 2000
"""Most that a call says on stderr."""


class Case(NamedTuple):
    """One fault, and what the program made of it.

    Attributes
    ----------
    kind : str
        What was done, in a few words; cases are counted by it.
    what : str
        The fault itself, so that it can be made again: the command, the file, the bytes.
    failure : str
        What did not hold; empty if all did.
    """

    kind: str
    what: str
    failure: str = ""


def flipped(path: Path, rng: random.Random, bits: int = 1) -> None:
    """Flip some bits of a file."""
    content = bytearray(path.read_bytes())
    for _ in range(bits):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def cut(path: Path, rng: random.Random) -> None:
    """Cut a file short."""
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content))])


def as_pipe(path: Path, rng: random.Random) -> None:
    """Replace a file or folder by a pipe that nobody writes to."""
    removed(path)
    os.mkfifo(path)


def as_folder(path: Path, rng: random.Random) -> None:
    """Replace a file by a folder."""
    removed(path)
    path.mkdir()


def removed(path: Path) -> None:
    """Remove a file or a folder."""
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def overwritten(path: Path, rng: random.Random) -> None:
    """Replace a part of a file."""
    content = path.read_bytes()
    place = rng.randrange(len(content))
    path.write_bytes(content[:place] + rng.randbytes(rng.randrange(1, 99)) + content[place + 9 :])


def as_link(path: Path, rng: random.Random) -> None:
    """Replace a file or folder by a link to itself, to nothing, or to what never ends."""
    removed(path)
    path.symlink_to(rng.choice((str(path), "/nowhere", "/dev/zero", "/dev/full")))


SPOILS = (flipped, flipped, cut, overwritten, as_pipe, as_folder, as_link)
"""What can be done to a file, the first of it more often."""


def copied(folder: Path, place: Path) -> Path:
    """Return a copy of a folder, in the place of the last one."""
    shutil.rmtree(place, ignore_errors=True)
    return shutil.copytree(folder, place)


def campaign(name: str, seconds: float, seed: int) -> tuple[Counter[str], Counter[str]]:
    """Make the faults of one campaign; return how many of each kind there were, and failed."""
    module = importlib.import_module(f"tests.faults.{name}")
    made: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="ssvm-bench-faults-") as folder:
        for case in module.cases(random.Random(seed), Path(folder)):
            made[case.kind] += 1
            if case.failure:
                failed[case.kind] += 1
                print(f"FAILED {name}: {case.kind}: {case.what}: {case.failure}", flush=True)
            if time.monotonic() > deadline:
                break
    return made, failed


class Done(NamedTuple):
    """What became of a call: its exit status, below 0 a signal's; CPU seconds and memory."""

    returncode: int
    stderr: str
    seconds: float
    megabytes: int


def forked(
    work: Callable[[], int | None], log: Path, most: int | None = None, seconds: float = 300
) -> Done:
    """Do some work in a copy of this process, which may take ``most`` bytes more; -9: no end."""
    begin = time.monotonic()
    if not (process := os.fork()):
        with log.open("wb") as stderr, Path(os.devnull).open("wb") as stdout:
            os.dup2(stderr.fileno(), 2)
            os.dup2(stdout.fileno(), 1)
        if most is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most += pages * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        status = 70
        try:
            status = work() or 0
        except SystemExit as end:
            status = int(end.code or 0)
        except BaseException:
            traceback.print_exc(limit=-6)
        finally:
            sys.stderr.flush()
            os._exit(status)
    while time.monotonic() < begin + seconds:
        ended, status, used = os.wait4(process, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            break
        time.sleep(0.005)
    else:
        os.kill(process, signal.SIGKILL)
        _, _, used = os.wait4(process, 0)
        code = -signal.SIGKILL
    text = log.read_text(errors="replace")
    return Done(code, text, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10)


def call(log: Path, *arguments: object, seconds: float = 120, **how: object) -> Done:
    """Call the program in a copy of this process, which has loaded it already; see `forked`.

    Further keywords in capitals are environment variables.
    """
    variables = {key: str(how.pop(key)) for key in [*how] if key.isupper()}

    def work() -> None:
        os.environ |= variables
        main([str(argument) for argument in arguments])

    return forked(work, log, seconds=seconds, **how)


def no_one_message(done: Done, statuses: tuple[int, ...] = (0, 1, 2)) -> str:
    """Return what is wrong with exit status and messages: one of an error, and short, is right."""
    errors = done.stderr.count("error:")
    if "Traceback" in done.stderr or "--debug" in done.stderr:
        what = "a traceback"
    elif done.returncode not in statuses or errors != (done.returncode != 0):
        what = f"{errors} errors"
    elif len(done.stderr.splitlines()) > LINES or len(done.stderr) > CHARACTERS:
        what = "too much is said"
    else:
        return ""
    return f"{what}, status {done.returncode} ({done.seconds:.1f} s): {done.stderr[-800:]!r}"
