"""What a newcomer waits for: CPU seconds of whole processes, from their start to their end.

Each fits or uses an estimator with its defaults on scikit-learn's irises, with an empty folder of
compiled code, and with the folder that such a process has left; one is a tiny run. With the wheel
``ssvm-bench-kernels`` installed, the first have rows of their own; one that does not fit would be
ignored, and is refused. LinearSVC, in a process of its own, imports scikit-learn alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks import newcomer
from benchmarks.processes import REPEATS, launched
from benchmarks.report import (
    FIRST_CHAIN,
    FIRST_FIT,
    FIRST_PREDICTION,
    FIRST_RUN,
    Measurement,
    from_samples,
)
from ssvm_bench.base import compiler
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config.compose import compose_runs

WHEEL = "ssvm_bench_kernels"

HERE = Path(__file__).parents[1]

CHECKOUT = "SSVM_BENCH_CHECKOUT"
"""Variable that names another checkout whose package the processes use."""


def measure_first_minute(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure once: on OCR, whose first run `processes` measures.

    Raises
    ------
    RunFailedError
        The wheel is installed, and this checkout does not use it.
    """
    if compose_runs(call)[0].dataset.name != "ocr":
        return
    installed, checkout = bool(find_spec(WHEEL)), os.environ.get(CHECKOUT, str(HERE))
    if installed and checkout == str(HERE) and compiler.PRECOMPILED.folder is None:
        raise RunFailedError(
            f"{WHEEL} is installed and does not fit, as the warning says: its rows would be those "
            "without it. `make kernels` builds it anew; or uninstall it."
        )
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        compiled, *empty = str(Path(folder, "cache")), str(Path(other, "1")), str(Path(other, "2"))

        def spent(what: str, cache: str) -> float:
            command = [sys.executable, newcomer.__file__, what, folder]
            places = checkout, os.environ.get("PYTHONPATH", "")
            path = os.pathsep.join(filter(None, places))
            environment = {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": path}
            return launched(command, environment).cpu

        def row(quantity: str, *samples: float) -> Measurement:
            name = f"{quantity}, with {WHEEL}" if installed else quantity
            return from_samples("program", "", name, samples, unit="s", note="CPU")

        yield row(FIRST_FIT.format("an empty"), spent("fit", compiled))
        yield row(FIRST_CHAIN, spent("chain", compiled))
        yield row(FIRST_PREDICTION, spent("predict", empty[0]))
        yield row(FIRST_RUN, spent("run", empty[1]))
        if installed:
            return
        pairs = [(spent("fit", compiled), spent("linear", compiled)) for _ in range(REPEATS)]
        warm = [fit for fit, _ in pairs]
        yield row(FIRST_FIT.format("a full"), *warm)
        beside = FIRST_FIT.format("a full") + " / LinearSVC"
        yield from_samples("program", "", beside, [fit / linear for fit, linear in pairs])
