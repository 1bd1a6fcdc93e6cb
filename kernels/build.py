"""Build the wheel ``ssvm-bench-kernels``: what a newcomer runs, compiled already.

``make kernels`` calls this script. With an empty cache, and for the baseline of this machine's kind
of processor, it executes what `programs` lists. It packs the cache, with a manifest
(:mod:`ssvm_bench.base.precompiled`), into a wheel for this version of Python and this platform.

Data are synthetic: their arrays have the types of real ones, and kernels depend on nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

BASELINES = {
    "x86_64": (
        "x86-64-v3",  # since 2013 (Intel) and 2015 (AMD)
        "+avx,+avx2,+bmi,+bmi2,+cmov,+crc32,+cx16,+cx8,+f16c,+fma,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,"
        "+sahf,+sse,+sse2,+sse3,+sse4.1,+sse4.2,+ssse3,+xsave",
    ),
    "aarch64": ("generic", ""),  # ARMv8-A, all of which have vectors
    "arm64": ("generic", ""),
}
"""Machine → numba's CPU_NAME and CPU_FEATURES; a processor must have the features with a plus."""

SOLVERS = ("bcfw", "mpbcfw", "mpbcfw_fast")
DATASETS = ("usps", "adult", "ocr", "conll2000", "weizmann", "stanford")
RUN = (
    *("dataset.source=synthetic", "dataset.n_samples=20", "checkpoint.every=0", "quiet=true"),
    *("clock=work", "oracle.cost_call=0.1"),  # calls are dear: there are steps of second order
)


def programs() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is compiled: in words, and what calls it."""
    import numpy as np
    from scipy.sparse import csr_array
    from sklearn.datasets import load_iris

    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150).reshape(30, 5)
    words, letters = list(x[order]), list(y[order])
    named = [
        [{"width": part[0], f"word={k}": 1.0} for k, part in enumerate(word)] for word in words
    ]
    graphs = [(word, np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])) for word in words]
    for what, structure, X, labels in (
        ("dense features", "multiclass", x, y),
        ("sparse features", "multiclass", csr_array(np.eye(150)), y),
        ("dense features", "chain", words, letters),
        ("named features", "chain", named, letters),
        ("dense features", "graph", graphs, letters),
        ("two labels", "graph", graphs, [each > 0 for each in letters]),
    ):
        yield f"fit, predict, score: {structure}, {what}", partial(fit, structure, X, labels)
    for dataset, solver in product(DATASETS, SOLVERS):
        yield f"run, resume, predict: {solver} on {dataset}", partial(run, solver, dataset)


def fit(structure: str, X: Any, y: Any) -> None:
    """Train an estimator with its defaults, and use it."""
    from ssvm_bench import StructuredSVM

    model = StructuredSVM(structure).fit(X, y)
    model.predict(X)
    model.score(X, y)


def run(solver: str, dataset: str) -> None:
    """Execute a run, extend it from its checkpoint, and use its weights."""
    from click.testing import CliRunner

    import ssvm_bench
    from ssvm_bench.cli.commands import main

    words = f"solver={solver}", f"dataset={dataset}", *RUN
    for iterations in (2, 4):
        made = ssvm_bench.run(*words, f"budget.max_iterations={iterations}")
    for command in ("predict", "score"):
        done = CliRunner().invoke(main, [command, str(made.folder)])
        if done.exit_code:
            raise RuntimeError(f"{command} after {' '.join(words)}: {done.output}")


def fill(folder: Path) -> None:
    """Execute all programs, and print what each has added to a cache."""
    for what, program in programs():
        start, before = time.process_time(), len(names(folder))
        program()
        added = len(names(folder)) - before
        print(f"{time.process_time() - start:6.1f} s, {added:2d} files: {what}", flush=True)


def names(folder: Path) -> list[str]:
    """Return the names of the kernels in a cache, without the files of locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def pack(folder: Path, package: Path, target: tuple[str, str]) -> None:
    """Write a package: the kernels of a cache that were compiled for a target, and the manifest."""
    from ssvm_bench.base.precompiled import MANIFEST, requirements

    shutil.rmtree(package, ignore_errors=True)
    place = package / folder.name
    place.mkdir(parents=True)
    listed = {}
    for name in names(folder):
        content = (folder / name).read_bytes()
        (place / name).write_bytes(content)
        listed[name] = len(content), hashlib.sha256(content).hexdigest()
    required = requirements(folder.name.removeprefix("kernels-"))
    about = {"requires": required, "target": target, "files": listed}
    (package / MANIFEST).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    (package / "__init__.py").write_text(
        '"""Compiled kernels of ssvm-bench; nothing to import."""\n'
    )


def compile_and_pack(package: Path) -> None:
    """Fill an empty cache, and pack it."""
    from ssvm_bench.base import jit
    from ssvm_bench.base.precompiled import Precompiled

    if jit.CACHE_FOLDER is None:
        sys.exit("Kernels are not kept here, by the numba that is installed: install an older one.")
    from ssvm_bench.base import compiler

    compiler.PRECOMPILED = Precompiled()  # also where an older package is installed
    fill(jit.CACHE_FOLDER)
    pack(jit.CACHE_FOLDER, package, BASELINES[platform.machine()])


def main() -> None:
    """Compile for the baseline, in a process of its own, and build the wheel into ``dist``."""
    if sys.argv[1:]:
        compile_and_pack(Path(sys.argv[1]))
        return
    if platform.machine() not in BASELINES:
        sys.exit(
            f"No baseline is known for {platform.machine()}: BASELINES in {__file__} needs one."
        )
    others = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    cpu, features = BASELINES[platform.machine()]
    with tempfile.TemporaryDirectory() as scratch:
        environment = {
            **others,
            "NUMBA_CPU_NAME": cpu,
            "NUMBA_CPU_FEATURES": features,
            "NUMBA_CACHE_DIR": f"{scratch}/cache",
            "XDG_CACHE_HOME": f"{scratch}/user",
        }
        command = [sys.executable, __file__, str(HERE / "ssvm_bench_kernels")]
        subprocess.run(command, env=environment, cwd=scratch, check=True)
    dist = str(HERE.parent / "dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", dist]
    subprocess.run(command, cwd=HERE, check=True)


if __name__ == "__main__":
    main()
