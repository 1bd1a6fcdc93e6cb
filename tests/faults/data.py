"""Raw files and caches that are damaged, exchanged, endless, or far too large."""

import gzip
import itertools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ssvm_bench.datasets import sources
from tests.faults.case import Case, Done, as_folder, as_pipe, call, cut, flipped, no_one_message

SECONDS, BYTES = 60, 8 << 30
"""Of one command: far more than a small run takes, far less than what does not end."""


def digits(n: int, seed: int) -> bytes:
    """Return a small file in the format of the USPS digits."""
    bits = np.random.default_rng(seed)
    rows = (
        f"{bits.integers(10)}.0000 " + " ".join(f"{v:.4f}" for v in bits.uniform(-1, 1, 256))
        for _ in range(n)
    )
    return "\n".join(rows).encode() + b"\n"


def _damage(rng: random.Random, path: Path) -> str:
    """Damage a file in some way; return how."""
    content = path.read_bytes()
    kinds: dict[str, Callable[[], object]] = {
        "bytes flipped": lambda: flipped(path, rng, rng.choice((1, 1, 3, 30))),
        "cut": lambda: cut(path, rng),
        "more behind": lambda: path.write_bytes(content + rng.randbytes(rng.randrange(1, 999))),
        "noise": lambda: path.write_bytes(rng.randbytes(rng.randrange(5000))),
        "bomb": lambda: path.write_bytes(gzip.compress(bytes(1 << 28), 1)),
        "hole": lambda: path.open("wb").truncate(1 << 40),
        "pipe": lambda: as_pipe(path, rng),
        "device": lambda: (path.unlink(), path.symlink_to("/dev/zero")),
        "folder": lambda: as_folder(path, rng),
        "loop": lambda: (path.unlink(), path.symlink_to(path.name)),
    }
    kind = rng.choice(list(kinds))
    kinds[kind]()
    return kind


def _run(home: Path, *options: str) -> Done:
    """Make a run in a home of its own, of bounded memory."""
    words = ("run", "dataset=usps", "solver=bcfw", "quiet=true", "budget.max_iterations=1")
    return call(
        home / "log",
        *(*words, "clock=work", f"results_dir={home / 'results'}", *options),
        seconds=SECONDS,
        most=BYTES,
        XDG_CACHE_HOME=home / "cache",
        SSVM_BENCH_DATA=home / "data",
        SSVM_BENCH_OFFLINE=1,
    )


def _weights(home: Path) -> dict[bytes, str]:
    """Return w of the runs in a home, and the source of each."""
    return {
        np.load(path)["w"].tobytes(): json.loads((path.parent / "summary.json").read_text())[
            "source"
        ]
        for path in (home / "results").rglob("weights.npz")
    }


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Damage a raw file or its cache, and run."""
    raw = sources.raw_file("usps")
    trusted = ("dataset.trust=true",)
    content = digits(30, 0)
    for number in itertools.count():
        home = folder / f"{number}"
        file = home / "data" / raw.dataset / raw.file
        file.parent.mkdir(parents=True)
        file.write_bytes(rng.choice((content, gzip.compress(content))))
        trust = trusted if rng.random() < 0.7 else ()
        right: dict[bytes, str] = {}
        if rng.random() < 0.5:
            damaged = f"raw file: {_damage(rng, file)}"
        else:
            done = _run(home, *trusted)
            kept = home / "cache" / "ssvm-bench" / raw.dataset / f"{raw.file}.ssvm-bench.npz"
            if done.returncode or not kept.is_file():
                yield Case("cache", f"{home}", f"no first run: {done.stderr[:200]}")
                continue
            right, trust = _weights(home), trusted
            if rng.random() < 0.3:
                members = dict(np.load(kept))
                members["y"] = rng.randrange(2) * 200 + 0 * members["y"]
                np.savez(kept, **members)
                damaged = "cache: other labels"
            else:
                damaged = f"cache: {_damage(rng, kept)}"
        done = _run(home, *trust, "force=true")
        yield Case(damaged, f"{home}", _failure(home, right, done, bool(trust)))


def _failure(home: Path, right: dict[bytes, str], done: Done, trust: bool) -> str:
    """Return what did not hold; empty if all did."""
    if problem := no_one_message(done, (0, 1)):
        return problem
    if right and (done.returncode or _weights(home) != right):
        return f"a damaged cache changed the run: {done.stderr[:300]}"
    found = set(_weights(home).values())
    if "real" in found or (done.returncode == 0 and not trust):
        return f"altered data were taken for {found}"
    return ""
