"""What a newcomer waits for: CPU seconds of whole processes, from their start to their end.

Each fits or uses an estimator with its defaults on scikit-learn's irises, with an empty folder of
compiled code, and with the folder that such a process has left. With the wheel
``ssvm-bench-kernels`` installed, the first have rows of their own. LinearSVC, in a process of its
own, imports scikit-learn alone.

    python -m benchmarks.first_minute WHAT FOLDER
"""

from __future__ import annotations

import pickle  # noqa: S403  (of its own models)
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.processes import REPEATS, launched
from benchmarks.report import (
    FIRST_CHAIN,
    FIRST_FIT,
    FIRST_PREDICTION,
    Measurement,
    from_samples,
)
from ssvm_bench.config.compose import compose_runs

MODEL = "model.pickle"
WHEEL = "ssvm_bench_kernels"


def measure_first_minute(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure once: on OCR, whose first run `processes` measures."""
    if compose_runs(call)[0].dataset.name != "ocr":
        return
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        compiled, empty = str(Path(folder, "cache")), str(Path(other, "cache"))

        def spent(what: str, cache: str) -> float:
            command = [sys.executable, "-m", "benchmarks.first_minute", what, folder]
            return launched(command, {"NUMBA_CACHE_DIR": cache}).cpu

        installed = bool(find_spec(WHEEL))

        def row(quantity: str, *samples: float) -> Measurement:
            name = f"{quantity}, with {WHEEL}" if installed else quantity
            return from_samples("program", "", name, samples, unit="s", note="CPU")

        yield row(FIRST_FIT.format("an empty"), spent("fit", compiled))
        yield row(FIRST_CHAIN, spent("chain", compiled))
        yield row(FIRST_PREDICTION, spent("predict", empty))
        if installed:
            return
        pairs = [(spent("fit", compiled), spent("linear", compiled)) for _ in range(REPEATS)]
        warm = [fit for fit, _ in pairs]
        yield row(FIRST_FIT.format("a full"), *warm)
        beside = FIRST_FIT.format("a full") + " / LinearSVC"
        yield from_samples("program", "", beside, [fit / linear for fit, linear in pairs])


def main(what: str, folder: str) -> None:
    """Do one thing as a newcomer's program does it."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    model = Path(folder, MODEL)
    if what == "linear":
        from sklearn.svm import LinearSVC

        LinearSVC().fit(X, y)
        return
    if what == "predict":
        pickle.loads(model.read_bytes()).predict(X)  # noqa: S301
        return
    from ssvm_bench import StructuredSVM

    if what == "chain":
        chains = np.add.outer(range(25), (0, 50, 100, 25, 75))  # all three kinds in each
        StructuredSVM("chain").fit(list(X[chains]), list(y[chains]))
        return
    model.write_bytes(pickle.dumps(StructuredSVM().fit(X, y)))


if __name__ == "__main__":
    main(*sys.argv[1:])
