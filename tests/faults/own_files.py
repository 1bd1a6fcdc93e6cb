"""Files of users whose arrays, names, bytes or text are not as they should be.

A file of every structure is changed at one or two places, and then run, predicted or scored. What
is taken must be what is in the file, to the last digit; what is refused must be told.
"""

import functools
import gzip
import itertools
import random
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ssvm_bench.cli.commands import main
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import file as own
from ssvm_bench.datasets.own_files import npz
from tests.faults.case import Case, Done, cut, flipped, forked, no_one_message

Arrays = dict[str, Any]

BYTES = 4 << 30
"""Address space that a case may take beside what this process has."""

STRUCTURES = ("independent", "regression", "chain", "graph")
OPTIONS = ("solver=bcfw", "budget.max_iterations=1", "clock=work", "quiet=true")
DTYPES = (
    *("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i8", ">i4", ">u2", ">f8", "f2", "f4"),
    *("f8", "g", "F", "D", "G", "U3", "S3", "M8[s]", "m8[s]", "V8", "O"),
)
NUMBERS = (
    *(0, 1, -1, 2, 3, 255, 256, 2**31 - 1, 2**31, 2**32 + 2, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(2**64 - 1, 0.5, 1e-320, 1e300, 1e99, -1e99, float("nan"), float("inf"), -float("inf")),
)
TEXTS = (
    *("", " ", "\t", "a\nb", "a\r", "\0", "a\0b", "\ud800", "\u2028", "\x85", "\x1b[31m", "a", "b"),
    *("é", "名", "x" * 5000, "a b", "-", "B-NP", "I-NP", "O"),
)
STRUCTURED = np.dtype([("a", "i4"), ("b", "f8")])


def arrays_of(rng: random.Random, structure: str, sparse: bool) -> Arrays:
    """Return arrays of twelve parts that can be used."""
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    x = numbers.integers(0, 4, (12, 3)) * (1.0 if rng.random() < 0.5 else 0.25)
    found: Arrays = {"x": x, "structure": np.array(structure)}
    if sparse:
        del found["x"]
        matrix = csr_array(x)
        found |= {k: np.array(getattr(matrix, k)) for k in ("data", "indices", "indptr", "shape")}
    y = np.arange(12) % 3
    found["y"] = numbers.normal(size=12) if structure == "regression" else y
    if structure in ("chain", "graph"):
        found["offsets"] = np.array([0, 3, 4, 9, 12])
    if structure == "graph":
        found["edges"] = np.array([[0, 1], [1, 2], [0, 3], [0, 1]])
        found["edge_offsets"] = np.array([0, 2, 2, 3, 4])
    if structure != "regression" and rng.random() < 0.5:
        if rng.random() < 0.5:
            found["labels"] = np.array(["a", "b", "c"])
        else:
            found["y"] = np.array(["B-a", "I-a", "O"])[y]
    if rng.random() < 0.4:
        found["features"] = np.array(["f", "g", "h"])
    if rng.random() < 0.3:
        found["costs"] = np.ones(len(found.get("offsets", range(13))) - 1)
    if rng.random() < 0.3:
        whole = ("labels", "features", "structure")
        found |= {f"test.{k}": v for k, v in found.items() if k not in whole}
    return found


def text_of(rng: random.Random) -> bytes:
    """Return a file of columns, or of LIBSVM's format."""
    if rng.random() < 0.5:
        return "".join(f"{k % 3} 1:{k}{' 3:0.5' * (k % 2)}\n" for k in range(12)).encode()
    rows = [f"w{k % 4} {'AB'[k % 2]} {'xyz'[k % 3]}" + "\n" * (1 + (k % 5 == 0)) for k in range(12)]
    return "\n".join(rows).encode()


def other_type(found: Arrays, name: str, rng: random.Random) -> None:
    """Give an array another type, whatever becomes of its entries."""
    dtype = rng.choice((*DTYPES, STRUCTURED))
    with np.errstate(all="ignore"):
        try:
            found[name] = np.asarray(found[name]).astype(dtype)
        except (ValueError, TypeError):
            found[name] = np.zeros(np.shape(found[name]), dtype)


def other_entry(found: Arrays, name: str, rng: random.Random) -> None:
    """Change one entry, or all, for a number that fits few types."""
    array = np.array(found[name])
    if array.dtype.kind in "US":
        return other_text(found, name, rng)
    number = rng.choice(NUMBERS)
    entries = np.array(array, object)
    if entries.size:
        entries.flat[rng.randrange(entries.size) if rng.random() < 0.8 else slice(None)] = number
    for dtype in rng.sample(("i8", "u8", "f8", "g", "D", array.dtype.str), 6):
        try:
            found[name] = entries.astype(dtype)
            return None
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def other_text(found: Arrays, name: str, rng: random.Random) -> None:
    """Make an array one of odd texts."""
    array = np.array(found[name])
    texts = np.array([str(each) for each in array.flat], object).reshape(array.shape)
    if texts.size:
        texts.flat[rng.randrange(texts.size)] = rng.choice(TEXTS)
    if rng.random() < 0.2:
        found[name] = np.char.encode(texts.astype(str), "utf-8", "surrogatepass")
    else:
        found[name] = texts.astype(str)


def other_shape(found: Arrays, name: str, rng: random.Random) -> None:
    """Give an array another shape."""
    array = np.array(found[name])
    flat = array.ravel()
    found[name] = rng.choice(
        (
            *(array[None], array[..., None], array.T, np.asfortranarray(array)),
            *(flat[:-1], flat[:0], flat[::-1], np.atleast_1d(array)[:0]),
            np.concatenate((flat, flat[:1])),
            np.zeros((len(flat), 0), array.dtype),
            flat[0] if flat.size else array,
        )
    )


def without(found: Arrays, name: str, rng: random.Random) -> None:
    """Leave an array out."""
    del found[name]


def another(found: Arrays, name: str, rng: random.Random) -> None:
    """Put an array in the place of another one."""
    found[name] = found[rng.choice(list(found))]


def renamed(found: Arrays, name: str, rng: random.Random) -> None:
    """Call an array by another name."""
    names = (*npz._KNOWN, *map("test.{}".format, npz._KNOWN), "X", "Y", "", "é", "test.")
    found[rng.choice(names)] = found.pop(name)


def large(found: Arrays, name: str, rng: random.Random) -> None:
    """Say sizes that no memory has."""
    number = rng.choice((10**9, 10**12, 2**31 - 1, 2**40))
    name, array = rng.choice(
        (
            ("shape", np.array([12, number])),
            ("y", np.arange(np.size(found.get("y", range(12)))) * (number // 64)),
            ("x", np.zeros((rng.choice((0, 12)), 0))),
        )
    )
    found[name] = array


MUTATIONS: dict[str, Callable[[Arrays, str, random.Random], None]] = {
    "another type": other_type,
    "another entry": other_entry,
    "odd texts": other_text,
    "another shape": other_shape,
    "an array is missing": without,
    "an array twice": another,
    "another name": renamed,
    "large sizes": large,
}


def header(path: Path, rng: random.Random) -> None:
    """Change what an array of an npz says of itself."""
    with zipfile.ZipFile(path) as stored:
        members = {name: stored.read(name) for name in stored.namelist()}
    name = rng.choice(list(members))
    content = members[name]
    size = rng.choice((10**9, 2**63, -1, 2**31, 12))
    shape = rng.choice((f"({size},)", f"({size}, 3)", "()", f"(0, {size})", f"({size}, 0)", "12"))
    dtype = rng.choice(("<f8", "<U0", "|V0", "|S0", "<i8", "|O", "<M8[ns]", "<U999999999", "<f3"))
    order = rng.choice((True, False, 0))
    said = f"{{'descr': '{dtype}', 'fortran_order': {order}, 'shape': {shape}, }}"
    said = rng.choice((said, said, said, said[:-9], "(" * 5000, "{}", "None", "\xff", said * 3))
    line = said.encode("latin-1") + b"\n"
    members[name] = b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + content[128:]
    with zipfile.ZipFile(path, "w", rng.choice((0, 8, 12, 14))) as stored:
        for name, content in members.items():
            stored.writestr(name, content)


def zip_fields(path: Path, rng: random.Random) -> None:
    """Change a field of the zip's directory."""
    content = bytearray(path.read_bytes())
    places = [found.start() for found in re.finditer(rb"PK(\x03\x04|\x01\x02|\x05\x06)", content)]
    for _ in range(rng.choice((1, 1, 2))):
        k = rng.choice(places) + rng.randrange(4, 46)
        if k < len(content):
            content[k] = rng.choice((0, 1, 32, 99, 255, content[k] ^ (1 << rng.randrange(8))))
    path.write_bytes(content)


def spliced(path: Path, rng: random.Random) -> None:
    """Put odd text into a file."""
    content = path.read_bytes()
    odd = rng.choice(
        (
            *(text.encode("utf-8", "surrogatepass") for text in TEXTS),
            *(str(number).encode() for number in NUMBERS),
            *(b":", b"#", b"1:1", b" 2147483647:1", b" 4294967299:1", b"\r", b"\xff", b"qid:3"),
            *(b"9" * 400, b"\n" * 1000),
        )
    )
    place = rng.randrange(len(content))
    path.write_bytes(content[:place] + odd + content[place + rng.choice((0, 1, 5)) :])


def packed(path: Path, rng: random.Random) -> None:
    """Pack a file, twice, or with a byte changed."""
    content = gzip.compress(path.read_bytes())
    path.write_bytes(gzip.compress(content) if rng.random() < 0.3 else content)
    if rng.random() < 0.7:
        rng.choice((flipped, cut))(path, rng)


def bomb(path: Path, rng: random.Random) -> None:
    """Write much in little; examples, on which a run trains, less of them."""
    unit, most = rng.choice(
        ((b"\n", 24), (b"\0", 24), (b"1 1:1\n", 21), (b"a b\n", 20), (b"a b\n\n", 20))
    )
    path.write_bytes(gzip.compress(unit * (1 << rng.choice((18, most))), 1))


Spoil = Callable[[Path, random.Random], None]
BYTES_OF: dict[str, Spoil] = {
    "a bit flipped": flipped,
    "cut short": cut,
    "text put in": spliced,
    "packed": packed,
    "a bomb": bomb,
}
OF_NPZ = {**BYTES_OF, "the header of an array": header, "the zip's directory": zip_fields}


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Yield faults without end."""
    runs = {}
    for structure in STRUCTURES:
        for sparse in (False, True):
            path = folder / f"{structure}{sparse}.npz"
            np.savez(path, **arrays_of(random.Random(3), structure, sparse))
            runs[structure, sparse] = _trained(path)
    for name in ("columns", "rows"):
        path = folder / name
        texts = (text_of(rng) for _ in itertools.count())
        path.write_bytes(next(text for text in texts if (b":" in text) == (name == "rows")))
        runs[name, False] = _trained(path)
    for number in itertools.count(1):
        structure, sparse = rng.choice(STRUCTURES), rng.random() < 0.4
        path, wanted = folder / f"case{number}", None
        if rng.random() < 0.65:
            path, run = path.with_suffix(".npz"), runs[structure, sparse]
            wanted = arrays_of(rng, structure, sparse)
            for _ in range(rng.choice((1, 1, 2))):
                if wanted:
                    kind = rng.choice(list(MUTATIONS))
                    MUTATIONS[kind](wanted, rng.choice(list(wanted)), rng)
            if not wanted:
                continue
            np.savez(path, **wanted)
            kind = f"npz: {kind}"
        elif rng.random() < 0.4:
            path, run = path.with_suffix(".npz"), runs[structure, sparse]
            np.savez(path, **arrays_of(rng, structure, sparse))
            kind = rng.choice(list(OF_NPZ))
            OF_NPZ[kind](path, rng)
            kind = f"bytes of npz: {kind}"
        else:
            content = text_of(rng)
            path.write_bytes(content)
            kind = rng.choice(list(BYTES_OF))
            run = runs["rows" if b":" in content else "columns", False]
            BYTES_OF[kind](path, rng)
            kind = f"bytes of text: {kind}"
        command = rng.choice(("run", "run", "predict", "score"))
        words = _run(path, folder / "x")
        if command == "run" and kind.startswith("bytes of text") and rng.random() < 0.2:
            given = (rng.choice(TEXTS) + "%x[0,0]", "B01:%x[0,0]", "U:%x[99,0]")
            words.append(f"dataset.templates={rng.choice(given)!r}")
        if command != "run":
            words = [command, f"{run}", "--data", f"{path}", "--out", f"{folder}/out"]
        done = forked(functools.partial(_tried, words, path, wanted), folder / "stderr", BYTES)
        yield Case(f"{command}, {kind}", f"{words}", failure(done))
        if number % 200 == 0:
            shutil.rmtree(folder / "x", ignore_errors=True)
        if not failure(done):
            path.unlink(missing_ok=True)


def _run(path: Path, results: Path) -> list[str]:
    """Return the words of a run on a file."""
    return ["run", "dataset=file", f"dataset.path={path}", *OPTIONS, f"results_dir={results}"]


def _trained(path: Path) -> Path:
    """Return the folder of a run on a file that is right; this process keeps what it has loaded."""
    results = path.with_name(f"{path.name}-runs")
    try:
        main(_run(path, results))
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{path}") from end
    (found,) = (results / "runs").glob("*/*/*/seed=*")
    return found


def _tried(words: list[str], path: Path, wanted: Arrays | None) -> int:
    """Call the program; return its exit status, 99 if it has taken what is not in the file."""
    try:
        main(words)
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    if status == 0 and wanted is not None and words[0] == "run":
        (config,) = compose_runs(["dataset=file", f"dataset.path={path}"])
        if other := difference(own.load(config.dataset), wanted):
            print(f"SILENT: {other}", file=sys.stderr)
            return 99
    return status


def difference(dataset: Any, wanted: Arrays) -> str:
    """Tell what of a dataset is not as in the arrays that it was read from."""
    for split, examples in {"": dataset, **dataset.held_out}.items():
        found = {k.rpartition(".")[2]: wanted[k] for k in wanted if k.rpartition(".")[0] == split}
        found = {k: wanted[k] for k in ("labels", "features") if k in wanted} | found
        x = examples.x if isinstance(examples.x, np.ndarray) else examples.x.toarray()
        if "x" not in found:
            found["x"] = summed(found, tuple(found["shape"].tolist()))
        for name in ("x", "offsets", "edges", "edge_offsets", "costs", "margins"):
            if name in found and not same(
                x if name == "x" else getattr(examples, name), found[name]
            ):
                return f"{split}.{name}"
        if dataset.structure == "regression":
            if not same(examples.y, found["y"]):
                return f"{split}.y"
            continue
        y = texts_of(found["y"])
        if "labels" in found and found["y"].dtype.kind not in "US":
            y = [str(texts_of(found["labels"])[int(label)]) for label in y]
        y = [label if isinstance(label, str) else str(int(label)) for label in y]
        there = [dataset.label_names[k] for k in examples.y]
        if examples.unseen is not None:
            codes = zip(examples.unseen.codes, there, strict=True)
            there = [examples.unseen.names[c] if c >= 0 else label for c, label in codes]
        if there != y:
            return f"{split}.y {there[:5]} {y[:5]}"
        if len({*dataset.label_names}) != len(dataset.label_names):
            return "labels"
    return ""


def texts_of(array: np.ndarray) -> list:
    """Return the entries of an array, those of bytes as texts."""
    return [each.decode() if isinstance(each, bytes) else each for each in array.tolist()]


def summed(matrix: Arrays, shape: tuple) -> np.ndarray:
    """Return the numbers of a CSR matrix, by its arrays' names, added up as Python's."""
    found = np.zeros(shape, object)
    for row in range(shape[0]):
        for k in range(int(matrix["indptr"][row]), int(matrix["indptr"][row + 1])):
            found[row, int(matrix["indices"][k])] += matrix["data"][k].item()
    return found


def same(here: Any, there: Any) -> bool:
    """Compare numbers exactly, whatever their types."""
    here, there = np.asarray(here), np.asarray(there)
    if here.shape != there.shape or there.dtype.kind not in "biufO":
        return False
    if there.dtype.char == "g":
        return bool(np.array_equal(here.astype("g"), there))
    return here.tolist() == there.tolist()


def failure(done: Done) -> str:
    """Return what did not hold; empty if all did."""
    if done.seconds > 20 or done.megabytes > 1500:
        return f"{done.seconds:.1f} s, {done.megabytes} MB: {done.stderr[-600:]!r}"
    return no_one_message(done)
