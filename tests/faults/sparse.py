"""Matrices and labels of a plug-in whose arrays are not as they should be.

Their structure says places outside of a matrix, or their entries are no numbers, too large, masked,
or of mixed kinds. Its dataset takes what is there, or raises one error. The campaign `estimator`
gives the same matrices to the estimator.
"""

import contextlib
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import multiclass
from tests.faults.case import Case, Done, forked
from tests.faults.own_files import BYTES, DTYPES, NUMBERS, STRUCTURED, same, summed

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
ARRAYS = ("data", "indices", "indptr", "row", "col", "coords", "offsets", "rows")


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Yield faults without end."""
    for x in (np.eye(12, 3), sparse.csr_array(np.eye(12, 3)), np.eye(12, 3) / 3):
        _dataset(x)
    while True:
        seed = rng.randrange(1 << 30)
        done = forked(lambda seed=seed: plug_in(random.Random(seed)), folder / "err", BYTES)
        yield Case("odd arrays of a plug-in", f"random.Random({seed})", failure(done))


def matrix(rng: random.Random) -> Any:
    """Return a matrix of twelve rows and three columns, of some format, with something changed."""
    return spoilt(some(rng), rng)


def some(rng: random.Random) -> np.ndarray:
    """Return the entries of a matrix that is right."""
    return np.random.default_rng(rng.randrange(1 << 30)).integers(0, 5, (12, 3))


def spoilt(entries: Any, rng: random.Random) -> Any:
    """Return a matrix as a sparse one of some format and type, with something changed."""
    kind = rng.choice(FORMATS)
    container = getattr(sparse, f"{kind}_{rng.choice(('array', 'matrix'))}")
    made = container(entries.astype(rng.choice(("f8", "f4", "i1", "u1", "i8"))))
    names = [name for name in ARRAYS if hasattr(made, name)]
    for _ in range(rng.choice((1, 1, 2))):
        if kind == "dok":
            place = rng.choice(((99, 0), (0, -1), (2**40, 1), (1,), ("a", 0)))
            made._dict[place] = rng.choice(NUMBERS)
            continue
        if rng.random() < 0.1:
            made._shape = rng.choice(((12, 2), (5, 3), (12, 2**31), (-1, 3), (12,), (12, 2**40)))
            continue
        name = rng.choice(names)
        with contextlib.suppress(Exception):  # scipy may not let it
            setattr(made, name, _changed(getattr(made, name), rng))
    if kind in ("csr", "csc") and rng.random() < 0.2:
        made.has_canonical_format = made.has_sorted_indices = True
    return made


def _changed(found: Any, rng: random.Random) -> Any:
    """Return one of a matrix's arrays with something changed."""
    if isinstance(found, tuple):
        k = rng.randrange(len(found))
        return (*found[:k], _changed(found[k], rng), *found[k + 1 :])
    array = np.atleast_1d(found).copy()
    if array.dtype == object:
        row = rng.randrange(len(array))
        array[row] = rng.choice(([99], [-1, 0], [], [2**40], ["a"], None, [0] * 50, [1.5], 3))
        return array
    what = rng.randrange(6)
    if what == 0 and array.size:
        entries = array.astype(object)
        entries.flat[rng.randrange(array.size)] = rng.choice((*NUMBERS, 12, 1000, -5))
        return _as_one_of(entries, rng.sample((array.dtype, "i8", "u8", "f8", "i4"), 5))
    if what == 1:
        return _as_one_of(array, [rng.choice((*DTYPES, STRUCTURED))])
    if what == 2:
        return rng.choice((array[:-1], array[::-1], array[:0], array[None], array.ravel()[:1], 3))
    if what == 3:
        return np.concatenate((array.ravel(), array.ravel()))
    if what == 4 and array.ndim == 1 and array.dtype.kind in "iuf":  # as the offsets of no example
        return np.where(np.arange(array.size) % 2, array.max(initial=0), 0).astype(array.dtype)
    rng.shuffle(flat := array.ravel().tolist())
    return np.array(flat, array.dtype).reshape(array.shape)


def dense(rng: random.Random) -> Any:
    """Return a dense matrix of odd numbers."""
    x = some(rng).astype(object)
    number = rng.choice((*NUMBERS, "a", "1.5", None, 1j, np.datetime64(1, "s"), [1], b"1"))
    if rng.random() < 0.8:
        x[rng.randrange(12), rng.randrange(3)] = number
    made = _as_one_of(x, rng.sample((*DTYPES, "i8", "f8", "u8", "f8"), 8))
    if made.dtype.kind not in "iuf":
        return rng.choice((made, made.tolist()))
    other = (np.asfortranarray(made), made[::-1], made.tolist(), np.ma.masked_equal(made, 1))
    return rng.choice((made, made, *other))


def _as_one_of(array: np.ndarray, dtypes: Iterable) -> np.ndarray:
    """Return an array as the first type that takes its entries; as it is if there is none."""
    for dtype in dtypes:
        with np.errstate(all="ignore"), contextlib.suppress(ValueError, TypeError, OverflowError):
            return array.astype(dtype)
    return array


def labels(rng: random.Random) -> Any:
    """Return twelve labels, most often odd ones."""
    y = [k % 3 for k in range(12)]
    if rng.random() < 0.5:
        return y
    odd = rng.choice((*NUMBERS, "a", b"a", None, 1j, np.datetime64(1, "s"), "", "a\nb", [0], True))
    some = [*y]
    some[rng.randrange(12)] = odd
    made = rng.choice((some, [str(each) for each in some]))
    if rng.random() < 0.5:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return np.array(made).astype(rng.choice(DTYPES))
    return made


def _dataset(x: Any, y: Any = None, **changes: Any) -> Dataset:
    """Build a dataset of a plug-in, its oracle, and ask that."""
    fields = {"x": x, "y": np.arange(12) % 3 if y is None else y, "offsets": np.arange(13)}
    made = Dataset(name="mine", n_labels=3, structure="independent", **{**fields, **changes})
    made.take(np.arange(3))
    made.fingerprint  # noqa: B018
    (run,) = compose_runs(["dataset=usps"])
    oracle = multiclass.build(run.oracle, made)
    oracle.risk(np.ones(oracle.d))
    return made


def plug_in(rng: random.Random) -> int:
    """Make a dataset of odd arrays, as a plug-in may."""
    x = matrix(rng) if rng.random() < 0.5 else dense(rng)
    changes: dict[str, Any] = {}
    if rng.random() < 0.5:
        with np.errstate(all="ignore"):
            changes["offsets"] = _changed(np.arange(13), rng)
    if rng.random() < 0.3:
        changes["costs"] = _changed(np.ones(12), rng)
    y = rng.choice((None, None, labels(rng)))
    try:
        made = _dataset(x, y, **changes)
    except RunFailedError:
        return 0
    there = made.x if isinstance(made.x, np.ndarray) else made.x.toarray()
    wanted = x if isinstance(x, np.ndarray) else summed(vars(x), x.shape)
    if not same(there, wanted):
        return _said("SILENT: other features")
    if made.offsets.tolist() != np.asarray(changes.get("offsets", np.arange(13))).tolist():
        return _said("SILENT: other offsets")
    return 0


def _said(text: str) -> int:
    print(text, file=sys.stderr)
    return 99


def failure(done: Done) -> str:
    """Return what did not hold; empty if all did."""
    if done.returncode == 0 and done.seconds < 20 and done.megabytes < 1500:
        return ""
    cost = f"{done.seconds:.1f} s, {done.megabytes} MB"
    return f"status {done.returncode}, {cost}: {done.stderr[-900:]}"
