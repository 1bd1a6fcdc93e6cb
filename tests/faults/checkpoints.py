"""Checkpoints that hold another state, of every solver, from which a run is asked to resume.

Whatever a state says, it is refused, and the run begins anew, or the run resumes: never a crash of
a kernel that reads past its arrays, never an exception as it is, and no code is run.
"""

import json
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench.config import catalog
from ssvm_bench.runs import runner  # noqa: F401 — loaded once, for all calls
from tests.faults.case import Case, call, copied, cut, flipped, no_one_message, overwritten
from tests.faults.kills import traces
from tests.faults.predictions import ODD, Touch
from tests.traces import spoilt

PROBLEMS = {
    "usps": ("dataset=usps", "dataset.source=synthetic", "dataset.n_samples=30"),
    "ocr": ("dataset=ocr", "dataset.source=synthetic", "dataset.n_samples=12"),
    "moons": ("dataset=moons", "dataset.cliques=6", "dataset.clique_size=8"),
}
RUN = ("clock=work", "quiet=true", "checkpoint.keep=true", "eval.every=1")


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Spoil a state, and ask for more iterations, for ever."""
    log, marker, place = folder / "log", folder / "pwned", folder / "place"
    runs = [(solver, data) for solver in sorted(catalog.entries("solver")) for data in PROBLEMS]
    longer: dict[Path, Any] = {}
    while True:
        solver, data = rng.choice(runs)
        words = ("run", f"solver={solver}", *PROBLEMS[data], *RUN)
        short, whole = (folder / f"{solver}-{data}-{k}" for k in (4, 8))
        if not short.exists():
            for made, iterations in ((short, 4), (whole, 8)):
                call(log, *words, f"results_dir={made}", f"budget.max_iterations={iterations}")
            if not list(short.glob("runs/**/checkpoint")):
                runs.remove((solver, data))  # a solver of other problems
                continue
            longer[short] = traces(whole)
        (state,) = copied(short, place).glob("runs/**/checkpoint")
        kind, spoil = rng.choice(list(KINDS.items()))
        what = spoil(state, rng, marker)
        done = call(log, *words, f"results_dir={place}", "budget.max_iterations=8")
        failure = no_one_message(done, (0, 1))
        if not failure and "left aside" in done.stderr and traces(place) != longer[short]:
            failure = "a run that began anew is another one"
        if marker.exists():
            marker.unlink()
            failure = "it has run code"
        yield Case(kind, f"{solver} on {data}: {what}", failure)


# ---- what is done to a checkpoint ---------------------------------------------------------------


def by_bytes(path: Path, rng: random.Random, marker: Path) -> str:
    """Spoil the file, but not its checksums."""
    spoil = rng.choice((flipped, cut, overwritten))
    spoil(path, rng)
    return spoil.__name__


def planted(path: Path, rng: random.Random, marker: Path) -> str:
    """Put a pickle in its place, or among its arrays."""
    if rng.random() < 0.3:
        path.write_bytes(pickle.dumps(Touch(marker)))
        return "a pickle"
    about, arrays = _read(path)
    name = rng.choice([*arrays, "more"])
    _write(path, about, {**arrays, name: np.array([Touch(marker)], object)})
    return f"{name} holds a pickle"


def arrays(path: Path, rng: random.Random, marker: Path) -> str:
    """Change values, shapes or types of arrays."""
    about, found = _read(path)
    changed = [name for name in found if found[name].size]
    names = rng.sample(changed, min(len(changed), rng.randrange(1, 3)))
    for name in names:
        found[name] = spoilt(found[name], np.random.default_rng(rng.randrange(1 << 32)))
    _write(path, about, found)
    return ", ".join(names)


def values(path: Path, rng: random.Random, marker: Path) -> str:
    """Change or remove one plain value, mapping or name of an array."""
    about, found = _read(path)
    item = about["state"]
    while True:
        key = rng.choice(list(item))
        if not isinstance(item[key], dict) or not item[key] or rng.random() < 0.1:
            break
        item = item[key]
    before = item.pop(key)
    if rng.random() < 0.9:
        item[key] = rng.choice(ODD)
    _write(path, about, found)
    return f"{key}: {before!r} → {item.get(key)!r}"[:300]


KINDS = {
    "other bytes": by_bytes,
    "a pickle": planted,
    "other arrays": arrays,
    "other values": values,
}


def _read(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    with np.load(path) as found:
        members = dict(found)
    return json.loads(members.pop("about").tobytes()), members


def _write(path: Path, about: Any, members: dict[str, np.ndarray]) -> None:
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, about=text, **members)
