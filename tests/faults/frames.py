"""Data frames whose columns are not those of training, or not in the same order.

Each model is trained on frames of two columns, and on the same numbers as arrays. Columns in any
order have the answers of arrays in the order of training; of frames without names, the answers are
by position, with a warning; all other columns are refused, in words.
"""

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from ssvm_bench import StructuredSVM
from tests.faults.case import Case
from tests.faults.estimator import _raw

NAMES = ["u", "v", "w"]
ODD_NAMES = (
    "u",
    "U",
    "u ",
    "",
    "x0",
    "é",
    "u\0",
    0,
    1,
    1.0,
    None,
    True,
    ("u",),
    "nan",
    float("nan"),
)
FEW = {"solver": "bcfw", "max_iterations": 3, "gap_tol": 0.0}
EDGES = [(0, 1), (1, 2)]


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Yield cases without end."""
    numbers = np.random.default_rng(0)
    y = [numbers.integers(2, size=3) for _ in range(12)]
    x = [np.eye(2, 3)[labels] + numbers.normal(size=(3, 3)) for labels in y]
    warnings.simplefilter("ignore")
    models = []
    for structure in ("chain", "graph", "multiclass"):
        X, labels = (np.vstack(x), np.concatenate(y)) if structure == "multiclass" else (x, y)
        rows = X if structure == "multiclass" else _examples(X, structure)
        frames = (
            _framed(X) if structure == "multiclass" else _examples([*map(_framed, x)], structure)
        )
        arrays = StructuredSVM(structure, **FEW).fit(rows, labels)
        named = StructuredSVM(structure, **FEW).fit(frames, labels)
        models.append((structure, arrays, named, X))
    while True:
        structure, arrays, named, X = rng.choice(models)
        what, failure = _case(rng, structure, arrays, named, X)
        yield Case("frames", f"{structure}: {what}", failure)


def _framed(x: np.ndarray, names: Any = NAMES) -> pd.DataFrame:
    return pd.DataFrame(x, columns=pd.Index(names, dtype=object))


def _examples(X: list[Any], structure: str) -> list[Any]:
    return [(x, EDGES[: x.shape[0]]) for x in X] if structure == "graph" else X


def _case(rng: random.Random, structure: str, arrays: Any, named: Any, X: Any) -> tuple[str, str]:
    """Ask a model about a frame of odd columns; return which, and what did not hold."""
    single = structure == "multiclass"
    x = X if single else rng.choice(X)
    if rng.random() < 0.1:
        x = x[:0]
    order = rng.sample(range(3), 3)
    frame, names = _framed(x).iloc[:, order], [NAMES[k] for k in order]
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        frame, names = _changed(rng, frame, names)
    values = frame.to_numpy(copy=True)
    form = rng.choice((*(lambda f: f,) * 4, pa.Table.from_pandas, pd.DataFrame.to_numpy, _sparse))
    what = f"{names} {getattr(form, '__name__', form)} {values.shape}"
    try:
        given = form(frame)
    except Exception:  # such a frame has no such form
        return what, ""
    has_names = hasattr(given, "columns") and all(type(each) is str for each in names)
    model = rng.choice((named, arrays))
    ours = given if single else _examples([given], structure)
    try:
        found = [np.asarray(each).tolist() for each in model.predict(ours)]
    except Exception as error:
        same = model is named and not single and has_names and sorted(names) == NAMES
        return what, _raw(error) or ("refused" if same else "")
    if model is named and has_names and sorted(names) != NAMES and values.size:
        return what, f"taken for {NAMES}"
    if model is named and has_names and sorted(names) == NAMES:
        values = values[:, [names.index(each) for each in NAMES]]
    plain = values if single else _examples([values], structure)
    if values.size == 0:
        return what, "" if sum(map(np.size, found)) == 0 else f"{found} for nothing"
    expected = [np.asarray(each).tolist() for each in arrays.predict(plain)]
    return what, "" if found == expected else f"{found} for {expected}"


def _sparse(frame: pd.DataFrame) -> Any:
    return sparse.csr_array(frame.to_numpy())


def _changed(rng: random.Random, frame: pd.DataFrame, names: list[Any]) -> tuple[pd.DataFrame, Any]:
    """Return a frame with another column or name."""
    k, how, names = rng.randrange(max(len(names), 1)), rng.randrange(5), list(names)
    if how == 0 and names:
        frame = frame.iloc[:, [j for j in range(len(names)) if j != k]]
        del names[k]
    elif how == 1 and names:
        frame = frame.iloc[:, [*range(len(names)), k]]
        names.append(rng.choice((*NAMES, *ODD_NAMES)))
    elif how == 2 and names:
        names[k] = rng.choice((*NAMES, *ODD_NAMES))
    elif how == 3:
        names = [*range(len(names))]
    else:
        names = [name.upper() if isinstance(name, str) else name for name in names]
    frame = frame.copy()
    frame.columns = pd.Index(names, dtype=object)
    return frame, names
