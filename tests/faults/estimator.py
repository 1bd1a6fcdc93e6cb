"""Fits, predictions and parameters of the estimator that nobody means.

What is wrong ends in an error that says so, and leaves the estimator as it was; what is taken is
taken as it is. Each case is made in a fork of this process, which has compiled everything.
"""

import copy
import datetime
import os
import pickle
import resource
import traceback
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from ssvm_bench import StructuredSVM
from ssvm_bench.base.errors import SsvmBenchError, shown
from tests.faults.case import Case, forked
from tests.faults.sparse import spoilt

SECONDS, MEGABYTES = 30, 500
"""Bounds of a case: processor time, and memory beyond what it began with."""

PLAIN = {"max_iterations": 3, "solver": "bcfw"}

SCALARS = (
    *(0, 1, -1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**70), 10**400, 0.5, -0.0, 1e-320, 1e300),
    *(float("nan"), float("inf"), 1j, True, None),
    *("", " ", "a", "a\0", "a\nb", "\ud800", "x" * 9000),
    *(b"", b"a", Decimal(1), Decimal("nan"), Fraction(1, 3), np.float32(0.1), np.uint64(2**64 - 1)),
    *(np.longdouble(1) / 3, np.complex64(1), np.datetime64("2020"), np.timedelta64(1)),
    *(datetime.date(2020, 1, 1), object(), len, int, Ellipsis, NotImplemented, range(3), slice(3)),
    *((), [], {}, set(), frozenset({"a"}), {"a"}, {"a": 1}, {"a": "b"}, {3: 1}, {"a": None}, [[]]),
    *(["a"], ["a", 1], [0, 1], [[0, 1], [1]], [None], [1e400], ("a", "b"), {"a": {"b": 1}}, "nan"),
    *(np.str_("a"), np.void(3), np.array(1), np.array([]), np.zeros((0, 3)), np.zeros((3, 0))),
    *(np.zeros((2, 2, 2)), bytearray(3), memoryview(b"abc"), pd.NA, pd.NaT),
    *(np.ma.masked, np.ma.array([1, 2], mask=[0, 1])),
    *(pd.Series([1, 2]), pd.DataFrame({"a": [1, 2]}), sparse.csr_array(np.eye(3)), sparse.eye(2)),
)
TYPES = (
    *("?", "u1", "i1", "u8", "i8", "f2", "f4", "f8", "g", "F", "D", "O", "U3", "S3", "M8[D]"),
    *("m8[s]", ">f8", ">i4", "V8", [("a", "f8")]),
)
CONTAINERS = (
    *(list, tuple, iter, set, dict.fromkeys, pd.Series, pd.DataFrame, str, repr, id, enumerate),
)
PARAMETERS = {
    "structure": ("multiclass", "chain", "graph", "independent", "regression", "latent", "crf"),
    "solver": ("bcfw", "nope", "mpbcfw_fast", lambda *made: made, StructuredSVM),
    "lam": ("1/n", "10/n", "0/n", "n", "1e-3", 1e-3, 5),
    "oracle": (
        *("viterbi", "multiclass", "latent", lambda made: made, lambda made: None, StructuredSVM),
    ),
    "class_weight": ("balanced", {"a": 2}, {0: 1e300}, {"zz": 1}, {1: "x"}, {0: 1, "0": 2}),
    "loss": ("absolute", "nope", "", np.eye(3), [[0, 1], [1]], np.ones((2, 2)) - np.eye(2), [1]),
    "options": (
        *({"clock": "cpu"}, {"dataset": "ocr"}, {"results_dir": "x"}, {"solver.T": 3}, {"seed": 1}),
        *({"clock": object()}, {"a=b": 3}, {"+lam": 1}, {"~lam": 1}, {"lam,": 1}, {"": 1}),
        *({"path": [1, 0.5]}, {"prior.mean": "x.npy"}, {"oracle.cost_call": -1}, {None: 1}),
        *({"parallel.workers": 2}, {"checkpoint.keep": True}, {"oracle.potts": 1}, {"\ud800": 1}),
        {"eval.every": 0},
    ),
    "config_dirs": (["nope"], ["/"], ["\0"], [3], "here"),
    "random_state": (np.random.default_rng(0), np.random.RandomState(0), 2**31),
    **dict.fromkeys(("gap_tol", "max_iterations", "max_seconds"), (0, 1)),
    **dict.fromkeys(("bias", "potts", "verbose"), (0, 1)),
}


def cases(rng, folder):
    """Yield cases of all kinds."""
    os.chdir(folder)
    warnings.simplefilter("ignore")
    models = [(StructuredSVM(kind, **PLAIN).fit(X, y), X, y) for kind, X, y in _problems()]
    for each in _problems():  # the default solver is compiled here, which takes longer than a case
        StructuredSVM(each[0]).fit(*each[1:])
    while True:
        yield _case(rng, folder, *rng.choice(models))


def _problems():
    """Yield structure, X and y of all kinds, small."""
    random = np.random.default_rng(0)
    labels = np.array(["a", "b", "c"])
    for K in (2, 3):
        y = random.integers(K, size=24)
        x = np.eye(K, 4)[y] + random.normal(size=(24, 4)) / 4
        rows, pairs = np.split(x, 8), [[(0, 1), (2, 1)]] * 8
        named, codes = [{"f": str(k)} for k in y], np.split(y, 8)
        for features in (x, (x * 9).astype(np.uint8), sparse.csr_array(x), named):
            yield "multiclass", features, labels[y]
        yield "multiclass", x, [*map(int, y)]
        for features in (rows, [*map(sparse.csr_array, rows)]):
            yield "chain", features, [[*k] for k in codes]
        yield "chain", [[["f"], []]] * 8, [[*k[:2]] for k in codes]
        yield "graph", [*zip(rows, pairs, strict=True)], [labels[k].tolist() for k in codes]


def _case(rng, folder, model, X, y):
    """Make one case."""
    kind = rng.choice(("fit", "fit", "parameters", "parameters", "predict", "score", "reset"))
    odd, changes = (X, y), {}
    if kind in ("fit", "score"):
        odd = (_odd(rng, X), y) if rng.random() < 0.5 else (X, _odd(rng, y))
        if rng.random() < 0.1:
            odd = _odd(rng, X), _odd(rng, y)
    elif kind == "predict":
        odd = _odd(rng, X), None
    else:
        for name in rng.sample(sorted(PARAMETERS), rng.choice((1, 1, 2))):
            changes[name] = rng.choice((*PARAMETERS[name], rng.choice(SCALARS)))
    with np.printoptions(threshold=40):
        what = " ".join(map(_shown, (kind, model.structure, X, changes, *odd)))
    return Case(kind, what, _forked(lambda: _failure(kind, model, X, odd, changes), folder))


def _shown(odd):
    try:
        return shown(" ".join(repr(odd).split()), 300)
    except Exception as error:
        return f"{type(odd)} {error}"


def _odd(rng, good):
    """Return examples or labels of which something is changed."""
    how = rng.random()
    if how < 0.1:
        scalar = rng.choice(SCALARS)
        return scalar if isinstance(scalar, memoryview) else copy.deepcopy(scalar)
    if sparse.issparse(good):
        return spoilt(good, rng)
    if isinstance(good, np.ndarray):
        return _odd_array(rng, good)
    if isinstance(good, list | tuple | dict) and how < 0.75 and len(good):
        changed = copy.copy(good) if isinstance(good, dict) else list(good)
        place = rng.choice([*changed]) if isinstance(good, dict) else rng.randrange(len(changed))
        if rng.random() < 0.2:
            del changed[place]
        else:
            changed[place] = _odd(rng, changed[place])
        return tuple(changed) if isinstance(good, tuple) else changed
    if how < 0.9:
        try:
            return rng.choice(CONTAINERS)(good)
        except Exception:
            return [good]
    return rng.choice(SCALARS)


def _odd_array(rng, x):
    """Return something like an array; often, of another type, shape or container."""
    ways = (
        lambda: x.astype(rng.choice(TYPES)),
        lambda: _replaced(rng, x),
        lambda: rng.choice((x.T, x[:, None], x[None], x.ravel(), x[:-1], x[::-1])),
        lambda: rng.choice((x[:0], x[..., :0], x[..., :1], np.hstack((x, x)))),
        lambda: sparse.csr_array(x) if x.dtype.kind in "fu" and x.ndim == 2 else x[:1],
        lambda: rng.choice((np.ma.array(x), np.asmatrix(x), x.tolist(), [*x], x.data)),
        lambda: rng.choice((np.asfortranarray(x), pd.DataFrame(x), _strided(x))),
    )
    try:
        return rng.choice(ways)()
    except (TypeError, ValueError, OverflowError, AttributeError):
        return x[None]


def _replaced(rng, array):
    """Return an array of which one entry is another, perhaps an array of objects."""
    changed = array.astype(object) if rng.random() < 0.3 else array.copy()
    changed[rng.randrange(len(array))] = rng.choice(SCALARS)
    return changed


def _strided(array):
    """Return an equal array that is not contiguous."""
    return np.repeat(array, 2, axis=-1)[..., ::2]


def _failure(kind, model, X, odd, changes):
    """Return what did not hold; in a fork."""
    before, told = _state(model, changes), _bytes(model.predict(X))
    error = None
    try:
        model.set_params(**changes)
        if kind == "predict":
            model.predict(odd[0])
        elif kind == "score":
            found = model.score(*odd)
            if not (isinstance(found, float) and 0 <= found <= 1):
                return f"a score of {found!r}"
        elif kind == "reset":
            changed = _bytes(model.predict(X)) != told
            return "set_params changed what is predicted" if changed else ""
        else:
            model.fit(*odd)
    except Exception as raised:
        error = raised
        if reason := _raw(raised):
            return reason
    if error is not None or kind in ("predict", "score"):
        same = _state(model, changes) == before and _bytes(model.predict(X)) == told
        return "" if same else "it is not as before"
    if not np.isfinite(model.weights_).all():
        return "weights that are not finite"
    given, found = list(_flat(odd[1])), model.classes_.tolist()
    names = {str(label) for label in given}
    # by value, too: 0 and −0.0 are one label
    same = all(x in given for x in found) and all(x in found for x in given)
    if names and not same and {str(label) for label in found} != names:
        return f"labels {sorted(names)[:9]} became {model.classes_[:9]}"
    return ""


def _flat(y):
    """Yield the labels of a list of lists, or of numbers; of anything else, none."""
    if isinstance(y, np.ndarray):
        y = y.tolist()
    for each in y if isinstance(y, list | tuple) else ():
        if isinstance(each, list | tuple | range | bytearray | memoryview | np.ndarray | pd.Series):
            yield from _flat(list(each))
        else:
            yield each.item() if isinstance(each, np.generic) else each


def _raw(error):
    """Return why an error does not say what is wrong; empty if it does."""
    if isinstance(error, SsvmBenchError):
        return "" if "--debug" not in str(error) else f"advice to debug: {error}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    deliberate = (last.line or "").startswith("raise") or "/sklearn/" in last.filename
    if isinstance(error, ValueError | TypeError) and deliberate:
        return ""
    return f"raw {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"


def _state(model, changes):
    """Return what a model has, but for the parameters that are changed."""
    kept = {name: value for name, value in vars(model).items() if name not in changes}
    return {k: (pickle.dumps if k.endswith("_") else repr)(value) for k, value in kept.items()}


def _bytes(predicted):
    return repr([np.asarray(each).tolist() for each in predicted])


def _forked(check, folder):
    """Do a check in a fork; return what did not hold, or how the fork ended."""
    before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    told = folder / "failure"

    def work():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        told.write_text(check(), errors="backslashreplace")

    done = forked(work, folder / "stderr", seconds=4 * SECONDS)
    if done.returncode:
        return f"ended with {done.returncode}: {done.stderr[-400:]}"
    much = done.megabytes > before + MEGABYTES
    return told.read_text() or (f"{done.megabytes} MB" if much else "")
