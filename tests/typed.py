"""What a type checker knows of the public interface: `make check` lets mypy read this program.

A mistake of a user's has a ``type: ignore`` here, and mypy complains of one that ignores nothing.
"""

from collections.abc import Callable
from typing import assert_type

import numpy as np
import pandas as pd

import ssvm_bench
from ssvm_bench import Dataset, Run, Runs, StructuredSVM, chunk_scores, load_runs
from ssvm_bench.base.clock import Clock
from ssvm_bench.estimator.metrics import flat_accuracy_score, sequence_accuracy_score
from ssvm_bench.oracles.base import Oracle, Problem
from ssvm_bench.solvers.base import Iterate, Solver

Array = np.ndarray
Arrays = list[np.ndarray]


def multiclass(X: np.ndarray, y: np.ndarray) -> float:
    model = StructuredSVM(lam="5/n", kernel="rbf", gamma=0.5, random_state=3).fit(X, y)
    assert_type(model, StructuredSVM[Array])
    assert_type(model.predict(X), Array)
    assert_type(model.decision_function(X), Array)
    assert_type(model.predict_marginals(X, temperature=0.5), Array)
    assert_type(model.support_, Array)
    return model.score(X, y)


def sequences(X: list[list[dict[str, float]]], y: list[list[str]]) -> pd.DataFrame:
    tagger = StructuredSVM("chain", max_seconds=2.0, class_weight={"O": 0.5}, n_jobs=-1).fit(X, y)
    assert_type(tagger.predict(X), Arrays)
    assert_type(tagger.transitions_, Array)
    assert_type(tagger.weights_, Array)
    assert_type(tagger.history_, pd.DataFrame)
    assert_type(tagger.n_iter_, int)
    assert_type(tagger.stop_reason_, str)
    assert_type(tagger.top_features(5), pd.DataFrame)
    chunk_scores(y, [labels.tolist() for labels in tagger.predict(X)])
    return tagger.history_


def pictures(X: list[tuple[np.ndarray, np.ndarray]], y: list[np.ndarray], name: str) -> Arrays:
    StructuredSVM(name).predict(X).any_labelings_of_an_oracle_of_ones_own()
    return StructuredSVM("graph", potts="learned").fit(X, y, sample_weight=[1.0, 2.0]).predict(X)


class Mine(Solver):
    def __init__(self, problem: Problem, clock: Clock, seed: int) -> None:
        super().__init__(problem, clock)

    def iterate(self) -> None: ...

    def reported(self) -> Iterate:
        return Iterate(np.zeros(self.problem.d), 0.0)


def own(make: Callable[[Dataset], Oracle], dataset: Dataset) -> Oracle:
    StructuredSVM("mine", oracle=make, config_dirs=["plug-ins"], options={"solver.T": 10})
    StructuredSVM("chain", solver=Mine)
    return make(dataset)


def scores(X: list[np.ndarray], y: list[list[str]]) -> float:
    predicted = StructuredSVM("chain").fit(X, y).predict(X)
    assert_type(sequence_accuracy_score(y, predicted), float)
    return flat_accuracy_score(y, predicted, sample_weight=np.ones(len(X)))


def runs() -> list[float]:
    made = ssvm_bench.run("solver=bcfw", "dataset=usps", lam=0.1, progress=True)
    assert_type(made, Run)
    assert_type(made["primal"], Array)
    assert_type(made.trace, pd.DataFrame)
    assert_type(ssvm_bench.sweep("seed=range(3)"), Runs)
    found = load_runs("results", solver="bcfw")
    assert_type(found, Runs)
    assert_type(found[:2].where(seed=0).frame, pd.DataFrame)
    return [run.lam for run in found]


def mistakes(X: np.ndarray, y: np.ndarray) -> None:
    StructuredSVM(lamb=3)  # type: ignore[call-overload]
    StructuredSVM("chain", "bcfw")  # type: ignore[call-overload]
    StructuredSVM("chain", lam=[3])  # type: ignore[call-overload]
    StructuredSVM(oracle=3)  # type: ignore[call-overload]
    StructuredSVM().fit(X)  # type: ignore[call-arg]
    StructuredSVM().predict(X).append(1)  # type: ignore[attr-defined]
    StructuredSVM("chain").predict(X).mean()  # type: ignore[attr-defined]
    load_runs(solvr="bcfw")  # type: ignore[call-arg]
    ssvm_bench.load_run()  # type: ignore[attr-defined]
    print(load_runs()[0].trase)  # type: ignore[attr-defined]
