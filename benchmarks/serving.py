"""A fitted model in a program: one prediction, a batch, loading, and a fit, beside others.

Chains of named features are compared with CRFsuite, whose tagger gets the same names, and examples
of single labels with scikit-learn's LinearSVC. Both calls of a row answer the same questions in
turn, in one process. CRFsuite's model is that of its averaged perceptron: the time to tag does not
depend on how good the weights are.

A program has names of features as texts. For the peak memory of a fit, a process of its own reads
the sentences from a file; equal names are one object in it, as of the names that a program keeps:

    python -m benchmarks.serving TRAINING LAMBDA
"""

from __future__ import annotations

import pickle  # noqa: S403  (of its own models)
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.chunking import written
from benchmarks.estimator import GAP, STRUCTURES, given, run_of
from benchmarks.passes import seconds
from benchmarks.processes import launched
from benchmarks.report import (
    BATCH,
    FIT,
    FIT_MEMORY,
    FIT_NAMED,
    LOADED,
    ONE,
    SIZE,
    Measurement,
    from_samples,
)
from ssvm_bench import StructuredSVM
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.runs import runner
from ssvm_bench.runs.terminal import Display

ROUNDS = 5
QUESTIONS = 200
"""Examples that are predicted one by one."""

ITERATIONS = 10
"""Of CRFsuite's averaged perceptron."""

Ask = Callable[[Any], object]


def measure_serving(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure on the dataset that the overrides ``call`` choose, if its structure is known."""
    if (run := run_of(call)) is None:
        return
    config, dataset = run
    structure, lam = STRUCTURES[dataset.structure]
    subject = dataset.name, dataset.source
    named = dataset.vocabulary is not None and bool(dataset.vocabulary.features)
    X, y = with_names(dataset) if named else given(dataset)
    test = dataset.held_out.get("test", dataset)
    questions = (with_names(test) if named else given(test))[0]
    model = StructuredSVM(structure, lam=lam, gap_tol=GAP, max_iterations=None, bias=0.0)
    fits: list[float] = []
    if named:
        model.fit(X, y)  # what compiles is not timed
        rounds = [(seconds(lambda: model.fit(X, y)), _train(config, dataset)) for _ in range(3)]
        fits = [fit for fit, _ in rounds]
        ratios = [fit / alone for fit, alone in rounds]
        yield from_samples(*subject, FIT_NAMED, ratios, seconds=float(np.median(fits)))
        with tempfile.TemporaryDirectory() as folder:
            file = written(dataset, Path(folder, "training.txt"))
            words = [sys.executable, "-m", "benchmarks.serving", str(file), lam]
            peak = launched(words).peak / 1e6
        yield Measurement(*subject, FIT_MEMORY, *3 * (peak,), unit="MB")
    else:
        model.fit(X, y)
    stored = pickle.dumps(model)
    size = len(stored) / 1e6
    yield Measurement(*subject, SIZE, *3 * (size,), unit="MB", note=f"{size:.3g} MB")
    loads = [seconds(lambda: pickle.loads(stored)) for _ in range(ROUNDS)]  # noqa: S301
    yield from_samples(*subject, LOADED, loads, unit="s", note="CPU")
    name, ask, theirs = _rival(dataset, X, y, named)
    yield from _predictions(subject, model.predict, questions, name, ask)
    if theirs is not None and fits:
        ratios = [fit / theirs for fit in fits]
        note = f"{name} {theirs:.3g} s, {ITERATIONS} iterations"
        of = FIT.format(name)
        yield from_samples(*subject, of, ratios, seconds=float(np.median(fits)), note=note)


def _train(config: Any, dataset: Dataset) -> float:
    """Return the CPU seconds of a run's training."""
    return seconds(lambda: runner.train(config, dataset, Display()))


def _predictions(
    subject: tuple[str, str], predict: Ask, questions: Any, name: str, ask: Ask | None
) -> Iterator[Measurement]:
    """Measure one prediction and a batch, and beside another program's if there is one."""
    n = len(questions) if isinstance(questions, list) else questions.shape[0]
    singles = [questions[i : i + 1] for i in range(min(n, QUESTIONS))]
    for quantity, beside, several in (
        (ONE, f"{ONE} / {{}}", singles),
        (BATCH, f"{BATCH} / {{}}", [questions]),
    ):
        each = len(several) if several is singles else n
        ours: list[float] = []
        ratios: list[float] = []
        for round_ in range(ROUNDS + 1):
            spent = seconds(lambda: [predict(one) for one in several]) / each  # noqa: B023
            others = spent if ask is None else seconds(lambda: [*map(ask, several)]) / each  # noqa: B023
            if round_ > 0:
                ours.append(1e3 * spent)
                ratios.append(spent / others)
        yield from_samples(*subject, quantity, ours, unit="ms", note=f"CPU, of {each}")
        if ask is not None:
            middle = float(np.median(ours)) / 1e3
            yield from_samples(*subject, beside.format(name), ratios, seconds=middle)


def _rival(dataset: Dataset, X: Any, y: Any, named: bool) -> tuple[str, Ask | None, float | None]:
    """Return another program's name, its prediction, and the CPU seconds of its fit."""
    if dataset.structure == "independent":
        from sklearn.svm import LinearSVC

        svm = LinearSVC(fit_intercept=False)
        spent = seconds(lambda: svm.fit(X, y))
        return "LinearSVC", svm.predict, spent
    if not named or find_spec("pycrfsuite") is None:
        return "", None, None
    import pycrfsuite

    trainer = pycrfsuite.Trainer("ap", verbose=False)
    trainer.set_params({"max_iterations": ITERATIONS})
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "model"))

        def fit() -> None:
            for names, labels in zip(X, y, strict=True):
                trainer.append(names, labels)
            trainer.train(file)

        spent = seconds(fit)
        tagger = pycrfsuite.Tagger()
        tagger.open(file)  # read whole; open_inmemory reads from bytes that nothing keeps
    return "CRFsuite", lambda several: [tagger.tag(names) for names in several], spent


def with_names(dataset: Dataset) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Return X and y of chains, with the names of features and labels."""
    assert dataset.vocabulary is not None
    x: Any = dataset.x
    names = np.array(dataset.vocabulary.features, object)[x.indices].tolist()
    labels = np.array(dataset.label_names, object)[dataset.y].tolist()
    ends, offsets = x.indptr.tolist(), dataset.offsets.tolist()
    of_parts = [names[begin:end] for begin, end in pairwise(ends)]
    examples = [slice(*bounds) for bounds in pairwise(offsets)]
    return [of_parts[each] for each in examples], [labels[each] for each in examples]


def main(training: str, lam: str) -> None:
    """Fit a model to the sentences of a file."""
    from benchmarks.crfsuite import sentences

    X, y = [], []
    for names, labels in sentences(Path(training)):
        X.append([[*map(sys.intern, each)] for each in names])
        y.append([*map(sys.intern, labels)])
    model = StructuredSVM("chain", lam=lam, gap_tol=GAP, max_iterations=None, bias=0.0)
    model.fit(X, y)


if __name__ == "__main__":
    main(*sys.argv[1:])
