"""Train and use one program of ``examples/world``, in a process of its own.

    python -m benchmarks.world_fit DATA JOB OUT

DATA is an archive of `benchmarks.world.write`. JOB is a JSON file: ``script`` and ``form``, the
options of the script's ``train`` that are ``fixed``, and the ``values`` of its ``option``, with
which it is called in turn, until at most the share ``target`` of the test labels is wrong, or the
training so far took ``limit`` CPU seconds. Each is repeated ``repeats`` times, if it takes less
than the limit. OUT gets a line of JSON for each value: ``first`` and the median ``again``, in CPU
seconds, and the share of labels that are ``wrong``.

X and y are in memory in the form that the program takes before its time begins:

==========  ========================================================================================
``rows``    a matrix with a row for each part, and an array of its labels
``dense``   the same, never sparse
``lists``   for each example such a matrix, for graphs with its edges, and an array of its labels
``arrays``  the same, never sparse
``names``   for each example and part the list of its features' names, and the list of the labels
==========  ========================================================================================
"""

from __future__ import annotations

import json
import resource
import runpy
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np


def read(data: Path, which: str, form: str) -> tuple[Any, Any]:
    """Return X and y of the training or the test examples, in a form."""
    with np.load(data) as archive:
        prefix = f"{which}_"
        found = {name.removeprefix(prefix): archive[name] for name in archive if prefix in name}
    x, y = found["x"] if "x" in found else _sparse(found), found["y"]
    if form in ("dense", "arrays") and not isinstance(x, np.ndarray):
        x = x.toarray()
    if form in ("rows", "dense"):
        return x, y
    parts = [slice(*bounds) for bounds in pairwise(found["offsets"].tolist())]
    if form == "names":
        return _named(x, parts), [[str(label) for label in y[part].tolist()] for part in parts]
    X = [x[part] for part in parts]
    if "edges" in found:
        ends = pairwise(found["edge_offsets"].tolist())
        X = [(x, found["edges"][a:b]) for x, (a, b) in zip(X, ends, strict=True)]
    return X, [y[part] for part in parts]


def _sparse(found: dict[str, np.ndarray]) -> Any:
    from scipy.sparse import csr_array

    arrays = found["data"], found["indices"], found["indptr"]
    return csr_array(arrays, shape=tuple(found["shape"]))


def _named(x: Any, parts: list[slice]) -> list[list[list[str]]]:
    """Return the names of the features that are not 0, equal ones as one object."""
    names = np.array([f"f{j}" for j in range(x.shape[1])], object)
    if isinstance(x, np.ndarray):
        of_rows = [names[row != 0].tolist() for row in x]
    else:
        of_rows = [names[x.indices[a:b]].tolist() for a, b in pairwise(x.indptr.tolist())]
    return [of_rows[part] for part in parts]


def together(y: Any) -> np.ndarray:
    """Return all labels in one array."""
    return np.concatenate([np.asarray(labels) for labels in y]) if isinstance(y, list) else y


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds of a call, and its result."""
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def main(data: str, job: str, out: str) -> None:
    """Do a job."""
    what = json.loads(Path(job).read_text())
    limit = what["limit"]
    # a single training may take longer: the system ends it
    most = (2 + what["repeats"]) * int(limit) + 30
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    program: Callable[..., Callable[[Any], Any]] = runpy.run_path(what["script"])["train"]
    X, y = read(Path(data), "train", what["form"])
    questions, truth = read(Path(data), "test", what["form"])
    total = 0.0
    for value in what["values"]:
        train = partial(program, X, y, **what["fixed"], **{what["option"]: value})
        first, predict = seconds(train)
        again = [seconds(train)[0] for _ in range(what["repeats"]) if first < limit]
        wrong = float(np.mean(together(predict(questions)) != together(truth)))
        line = {"first": first, "again": median(again or [first]), "wrong": wrong}
        with Path(out).open("a") as file:
            file.write(json.dumps({"value": value, **line}) + "\n")
        total += first
        if wrong <= what["target"] or total >= limit:
            break


if __name__ == "__main__":
    main(*sys.argv[1:])
