"""Run folders given to `predict` and `score` that were changed, with and without their checksums.

What was changed after the run is refused, or reads the same. With checksums made anew, or none as
earlier versions had, the answer is one message, or labels; never a crash, and no code is run.
"""

import contextlib
import gzip
import io
import json
import pickle
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ssvm_bench.cli.commands import main
from ssvm_bench.results.trace import CHECKSUMS_KEY, NAMES, SUMMARY, TRACE, WEIGHTS
from ssvm_bench.runs import prediction  # noqa: F401 — loaded once, for all calls
from tests.faults import case
from tests.faults.case import Case
from tests.traces import sealed, with_metadata

SENTENCES = "the DT B\ncat NN I\nsat VBD O\n\non IN O\nthe DT B\nmat NN I\n. . O\n\n"
ROWS = "1 1:1 3:2.5\n-1 2:1\n1 1:0.5\n-1 2:2 3:1\n"
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2.5, 7, 2**31, 2**63, 10**30, 1e300, float("nan"), float("inf")),
    *("", "x", "npz", "chain", "graph", "latent", "%x[0,9]", "%x[0,0]", "\ud800", "a\nb", "\0"),
    *([], {}, [[]], [1], ["a"], ["a", "a"], {"a": 1}, "9" * 5000, ["%x[9999,0]"], ["B", "I", "O"]),
)


SHAPES = ("(1000000000000,)", "(1 << 70,)", "(-1,)", f"(1000,), 'x': {'(' * 900}{')' * 900}")


class Touch:
    """What a pickle would do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Change runs for ever."""
    models = list(_models(folder))
    log, pwned, place = folder / "log", folder / "pwned", folder / "place" / "seed=0"
    calls = [(command, *model) for model in models for command in ("predict", "score")]
    right = {each: _said(log, *each) for each in calls}
    assert all(done.returncode == 0 for done, _ in right.values()), right
    while True:
        command, run, data = each = rng.choice(calls)
        case.copied(run, place)
        kind, change, strict = rng.choice(KINDS)
        what = change(place, rng, pwned)
        done, out = _said(log, command, place, data)
        failure = case.no_one_message(done)
        if not failure and strict and done.returncode == 0 and out != right[each][1]:
            failure = "other labels, and nothing is said"
        if pwned.exists():
            pwned.unlink()
            failure = "it has run code"
        yield Case(f"{command}: {kind}", f"{run.name}: {what}", failure)


def _models(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Make runs on files of all forms; yield the folder of each, and a file to predict."""
    numbers = np.random.default_rng(0)
    x, names = numbers.normal(size=(12, 4)), np.array(["a", "b", "c", "d"])
    files = {
        "columns.txt": (SENTENCES * 3).encode(),
        "rows.svm": (ROWS * 3).encode(),
        "named.npz": _npz(x=x, y=np.arange(12) % 3, features=names),
        "chains.npz": _npz(x=x, y=np.arange(12) % 2, offsets=np.arange(0, 13, 3)),
        "numbers.npz": _npz(x=x, y=x[:, 0], structure=np.array("regression")),
    }
    for name, content in files.items():
        path, made = folder / name, folder / f"of-{name}"
        path.write_bytes(content)
        words = ["run", "dataset=file", f"dataset.path={path}", f"results_dir={made}", "quiet=true"]
        with contextlib.suppress(SystemExit):
            main([*words, "solver=bmrm", "budget.max_iterations=3", "lam=0.1"])
        (run,) = made.glob("runs/*/*/*/seed=0")
        yield run.rename(folder / f"run-{name}"), path


def _npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _said(log: Path, command: str, run: Path, data: Path) -> tuple[case.Done, str]:
    """Return what became of a call, and what it has written."""
    out = log.with_name("out")
    out.unlink(missing_ok=True)
    done = case.call(log, command, run, "--data", data, "--out", out)
    return done, out.read_text() if out.exists() else ""


def by_bytes(run: Path, rng: random.Random, pwned: Path) -> str:
    """Spoil a file."""
    path = rng.choice(sorted(run.iterdir()))
    spoil = rng.choice(case.SPOILS)
    spoil(path, rng)
    return f"{path.name} {spoil.__name__}"


def by_hand(run: Path, rng: random.Random, pwned: Path) -> str:
    """Change what a file says, as somebody would who does not know of checksums."""
    changes = _changes(run, rng, pwned)
    for name, content in changes.items():
        (run / name).write_bytes(content)
    return str(changes)[:300]


def with_checksums(run: Path, rng: random.Random, pwned: Path) -> str:
    """Change what a file says, and its checksum."""
    changes = _changes(run, rng, pwned)
    sealed(run, changes)
    return str(changes)[:300]


def without_checksums(run: Path, rng: random.Random, pwned: Path) -> str:
    """Change what a file says of a run that has no checksums."""
    table = pq.read_table(pa.BufferReader((run / TRACE).read_bytes()))
    about = {key: text for key, text in table.schema.metadata.items() if key != CHECKSUMS_KEY}
    pq.write_table(table.replace_schema_metadata(about), run / TRACE)
    return by_hand(run, rng, pwned)


def of_metadata(run: Path, rng: random.Random, pwned: Path) -> str:
    """Change a value of the metadata, and the checksum."""
    said = ""

    def change(found: dict) -> dict:
        nonlocal said
        said = _edited(found, rng)
        return found

    with_metadata(run, change)
    return said


def _edited(found: Any, rng: random.Random) -> str:
    """Change, remove or add one value of a document; return which."""
    way = []
    while True:
        keys = list(found) if isinstance(found, dict) else range(len(found))
        key = rng.choice([*keys])
        way.append(str(key))
        if not isinstance(found[key], (dict, list)) or not found[key] or rng.random() < 0.4:
            break
        found = found[key]
    value = rng.choice(ODD)
    if rng.random() < 0.2 and isinstance(found, dict):
        del found[key]
        return f"{'.'.join(way)} removed"
    found["more" if rng.random() < 0.1 and isinstance(found, dict) else key] = value
    return f"{'.'.join(way)} = {str(value)[:40]!a}"


def _changes(run: Path, rng: random.Random, pwned: Path) -> dict[str, bytes]:
    """Return other content for a file."""
    name = rng.choice([name for name in (NAMES, NAMES, WEIGHTS, SUMMARY) if (run / name).exists()])
    content = (run / name).read_bytes()
    if rng.random() < 0.1:
        return {name: rng.choice((b"", b"x", b"[]", b"null", b"[" * 99_999, rng.randbytes(99)))}
    if name == WEIGHTS:
        return {name: rng.choice(_weights(np.load(io.BytesIO(content))["w"], pwned))()}
    document = json.loads(gzip.decompress(content) if name == NAMES else content)
    for _ in range(rng.choice((1, 1, 2))):
        _edited(document, rng)
    if rng.random() < 0.1:  # it is as if nobody had looked at it
        document = rng.choice(ODD)
    text = json.dumps(document).encode()
    return {name: gzip.compress(text) if name == NAMES and rng.random() < 0.9 else text}


def _weights(w: np.ndarray, pwned: Path) -> list[Callable[[], bytes]]:
    """Return what makes other weights."""
    odd = (w[::-1], w * 2, w[:-1], w[:0], np.append(w, 1.0), w[None], w.astype(np.float32))
    kinds = (w.astype(complex), w.astype(str), w > 0, w * np.nan, w * np.inf, w * 1e300, w.T)
    return [
        *(lambda each=each: _npz(w=each) for each in (*odd, *kinds)),
        lambda: _npz(v=w),
        lambda: _npz(w=np.array([Touch(pwned)], object)),
        lambda: pickle.dumps(Touch(pwned)),
        *(lambda shape=shape: _claiming(shape) for shape in SHAPES),
        *(lambda size=size: _zipped(bytes(size)) for size in (1 << 26, 0)),
    ]


def _claiming(shape: str) -> bytes:
    """Return an array that says of itself that it has a shape."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return _zipped(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(99))


def _zipped(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", content)
    return file.getvalue()


KINDS: list[tuple[str, Callable[[Path, random.Random, Path], str], bool]] = [
    ("a file spoilt", by_bytes, True),
    ("a value changed", by_hand, True),
    ("a value changed, with its checksum", with_checksums, False),
    ("a value changed, no checksums", without_checksums, False),
    ("metadata changed, with their checksum", of_metadata, False),
]
"""What is called so, what does it, and whether the labels must be the same."""
