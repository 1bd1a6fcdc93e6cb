"""What `StructuredSVM.fit` takes beyond the training that a run of the command line does.

Both train on the same examples to the same gap, in the same iterations if all labels occur, since
their clock counts calls. The estimator gets the examples as a Python program has them, a matrix, or
one for each; it checks, joins and numbers them, and composes the options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.passes import loaded, seconds
from benchmarks.report import ESTIMATOR, Measurement, from_samples
from ssvm_bench import StructuredSVM
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.runs import runner
from ssvm_bench.runs.terminal import Display

GAP = 0.01
"""Relative gap at which both end."""

ROUNDS = 5
STRUCTURES = {"independent": ("multiclass", "1/n"), "chain": ("chain", "200/n")}
"""Of datasets, how the estimator calls them, and λ: that of `rivals`, about that of `chunking`."""


def run_of(call: Sequence[str]) -> tuple[RunConfig, Dataset] | None:
    """Return the run that `StructuredSVM` is compared with; None if the structure is another."""
    (config,) = compose_runs(call)
    if config.oracle.name not in ("multiclass", "viterbi"):
        return None
    dataset = loaded(config.dataset)
    _, lam = STRUCTURES[dataset.structure]
    budget = (f"budget.gap_tol={GAP}", "budget.max_iterations=null")
    (config,) = compose_runs((*call, f"lam={lam}", "solver=mpbcfw_fast", *budget, "clock=work"))
    return config, dataset


def measure_estimator(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure on the dataset that the overrides ``call`` choose, if its structure is known."""
    if (run := run_of(call)) is None:
        return
    config, dataset = run
    structure, lam = STRUCTURES[dataset.structure]
    X, y = given(dataset)
    model = StructuredSVM(
        structure,
        lam=lam,
        gap_tol=GAP,
        max_iterations=None,
        bias=0.0,
    )
    beyond, taken = [], []
    for round_ in range(ROUNDS + 1):
        alone = seconds(lambda: runner.train(config, dataset, Display()))
        fit = seconds(lambda: model.fit(X, y))
        if round_ > 0:  # the first one compiles
            beyond.append(100.0 * (fit / alone - 1.0))
            taken.append(fit)
    note = f"{model.n_iter_} iterations, lam={lam}"
    yield from_samples(
        *(dataset.name, dataset.source, ESTIMATOR, beyond),
        seconds=float(np.median(taken)),
        unit="%",
        note=note,
    )


def given(dataset: Dataset) -> tuple[Any, Any]:
    """Return X and y of a dataset."""
    if dataset.structure == "independent":
        return dataset.x, dataset.y
    parts = [slice(*bounds) for bounds in pairwise(dataset.offsets.tolist())]
    return [dataset.x[part] for part in parts], [dataset.y[part] for part in parts]
