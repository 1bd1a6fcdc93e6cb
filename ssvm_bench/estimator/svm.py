"""The estimator: its parameters, and training."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets import given as examples
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.vocabulary import check_classes
from ssvm_bench.estimator import options as parameters
from ssvm_bench.estimator.model import Model
from ssvm_bench.oracles import kernel_features, weighted
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.runs import checkpoints, runner, terminal

_LIMITS = ("max_iterations", "max_seconds")


@dataclass(eq=False, repr=False)
class StructuredSVM(Model):
    """A structural SVM.

    Parameters
    ----------
    structure : str
        ``"multiclass"``, ``"chain"`` or ``"graph"`` (attractive Potts); or another name, which
        your own oracle understands.
    solver : str
        As on the command line.
    lam : float, str or None
        λ > 0, or ``"K/n"``; None: 0.03.
    gap_tol : float
        Relative duality gap at which training ends.
    max_iterations : int or None
    max_seconds : float or None
        Limits of training, which also ends when the first of them is reached. With
        ``max_seconds``, the clock is ``wall``.
    bias : float
        Value of a constant feature, which is the last one; 0: none.
    potts : float or "learned"
        For graphs, unless ``oracle`` is a callable: the cost of different labels of neighbours,
        times the sum of their edge's features if it has any. ``"learned"``: the last of
        ``weights_``, one or as many as edges have features, kept ≥ 0. The loss is divided by the
        number of parts of an example, and a number is not: 1 is large where parts are many.
    kernel : str
        For ``"multiclass"`` and ``"chain"``: ``"linear"``, ``"rbf"``: exp(−γ‖x − x′‖²), or
        ``"poly"``: (1 + γ⟨x, x′⟩)^degree; the transitions of chains stay linear.
    gamma : float or None
        γ > 0, required by ``"rbf"`` and ``"poly"``.
    degree : int
        Degree of ``"poly"``.
    class_weight : None, "balanced" or dict
        Weights of the classes: by label, 1 for labels that are not named. Labels are compared as
        in scikit-learn: 1 is 1.0 and True, and not ``"1"``.
    loss : None, str, path or array of shape (K, K)
        Cost of predicting one label for another: ``"zero_one"``, the same as None;
        ``"absolute"``, the difference of their positions in ``classes_``; or a matrix, or a file
        of one, with a row for each true label and a column for each predicted label, in the order
        of ``classes_``. For chains and graphs, the loss is the mean over the parts.
    oracle : str, callable or None
        Another oracle: its name, or a callable that makes one from a `Dataset`, such as a class
        derived from `ssvm_bench.oracles.base.Oracle`. None: the oracle of the structure.
    options : mapping, optional
        Further options of the command line: ``{"solver.T": 10, "clock": "wall"}``.
    config_dirs : list of path
        Folders with components in files, as with ``--config-dir``.
    warm_start : bool
        Continue from the end of the last fit, if examples, their weights, solver and oracle are
        the same: from its dual variables φ^i and its working sets, scaled to the best dual value at
        the new λ (bundle methods: from w alone). Budgets, ``gap_tol`` and λ may differ. Otherwise,
        training begins anew, with a warning. The state is kept, and pickled, with the estimator.
    n_jobs : int or None
        Processes that call the oracle, each with the examples; −1: one for each core. With more
        than one, the oracle is called for 16 terms at one w, or for τ terms with
        ``options={"parallel.batch": τ}``. This pays if a call takes a millisecond or more. With
        ``options={"parallel.address": "tcp://…"}``, so many workers of a dask scheduler.
    random_state : int, RandomState or None
        The seed. An integer fixes the model, unless ``max_seconds`` or a ``clock`` is given.
    verbose : bool
        Show the progress of training on stderr. Warnings, and that kernels are compiled, are shown
        anyway.

    Attributes
    ----------
    classes_ : ndarray, shape (K,)
        The labels.
    weights_ : ndarray of float64, shape (d,)
        w; with a kernel, its coefficients at the support, label by label, and transitions.
    support_, support_vectors_ : ndarray of int64, shape (m,), and matrix, shape (m, f)
        With a kernel: which parts are in the support, and their features with the constant one.
    n_iter_ : int
        Iterations of the solver.
    history_ : DataFrame
        The trace: a row for each evaluated iteration (docs/files.md has the columns).
    stop_reason_ : str
        Why training ended.
    coef_, intercept_ : ndarray, shape (K, f) and (K,)
        Weights of the labels, and the contribution of the constant feature, for the oracles of the
        structures; for a multiclass problem with two labels (1, f) and (1,), as in scikit-learn.
    transitions_ : ndarray, shape (K, K)
        For chains: at [a, b], the weight of label b after label a.
    vectorizer_ : DictVectorizer or None
        Maps names of features to columns, if features have names.
    n_features_in_ : int
        Number of features of a part, the constant one not counted.
    feature_names_in_ : ndarray of str, shape (f,)
        Names of the columns, if X has data frames.
    n_edge_features_in_ : int
        For graphs, the number of features of an edge; 0 without any.
    """

    structure: str = parameters.MULTICLASS
    _: KW_ONLY
    solver: str = "mpbcfw_fast"
    lam: float | str | None = None
    gap_tol: float = 0.01
    max_iterations: int | None = 1000
    max_seconds: float | None = None
    bias: float = 1.0
    potts: float | str = "learned"
    kernel: str = "linear"
    gamma: float | None = None
    degree: int = 3
    class_weight: str | Mapping[Any, float] | None = None
    loss: Any = None
    oracle: str | Callable[[Dataset], Oracle] | None = None
    options: Mapping[str, Any] | None = None
    config_dirs: Sequence[str | Path] = ()
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: bool = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StructuredSVM:
        """Train on examples and their labels.

        Parameters
        ----------
        X, y : examples and labels
            As :mod:`ssvm_bench.datasets.given` defines them.
        sample_weight : number or array of shape (n,), optional
            s_i ≥ 0, by which the term of example i is multiplied:

            .. code-block:: text

                P(w) = λ/2 ‖w‖² + 1/S Σ_i s_i max_y { … },    S = Σ_i s_i

            S also replaces n in ``lam="K/n"``. So an integer weight has the effect of that many
            copies of the example, and examples of weight 0 are left out, with their labels.

        Raises
        ------
        ValueError, TypeError
            X and y do not have the form of examples and labels.
        ConfigError
            There is a mistake in the parameters.
        RunFailedError
            Training fails.
        """
        folders = parameters.check(self)
        fitted = copy.copy(self)
        fitted._folders = folders
        for name in [name for name in vars(self) if name.endswith("_") or name == "_left"]:
            delattr(fitted, name)
        fitted._fit(X, y, sample_weight, getattr(self, "_left", None))
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, left: dict[str, Any] | None) -> None:
        parts, labels = self._parts(X, y, fits=True)
        weights = examples.weights_of(sample_weight, parts.sizes.size)
        self.classes_ = np.unique(labels[np.repeat(weights > 0, parts.sizes)])
        check_classes([*map(str, self.classes_.tolist())])
        dataset = self._dataset(parts, examples.codes_of(labels, self.classes_))
        total = None
        if sample_weight is not None:
            dataset, total = examples.weighted(dataset, weights)
        config = parameters.run_config(self, self._folders, dataset, total)
        problem = _problem(config, dataset)
        before = None
        if self.warm_start and left is not None:
            if left["problem"] == problem:
                before = left["lam"], left["solver"]
            else:
                warnings.warn(
                    "warm_start: examples, solver or oracle are not those of the last fit. "
                    "Training begins anew.",
                    stacklevel=3,
                )
        with terminal.make_display_in_python(bool(self.verbose)) as display:
            trained = runner.train(config, dataset, display, before)
        if self.warm_start:
            lam = config.lam_of(dataset.n)
            solver = checkpoints.of_solver(trained.solver)
            self._left = {"problem": problem, "lam": lam, "solver": solver}
        self.stop_reason_ = trained.reason
        self._trained = {"structure": self.structure, "bias": self.bias}
        oracle = weighted.inner_of(config.oracle)
        self._oracle = {each.name: getattr(oracle, each.name) for each in fields(oracle)}
        self.weights_, rows = np.asarray(trained.recorder.w), trained.recorder.rows
        if config.oracle.has_kernel:
            sizes = dataset.n_labels, dataset.y.size
            self.support_, self.weights_ = kernel_features.support(self.weights_, *sizes)
            self.support_vectors_ = dataset.x[self.support_]
        self.history_ = pd.DataFrame(rows)
        self.n_iter_ = int(self.history_["iteration"].iloc[-1])
        primal, gap = self.history_[["primal", "gap"]].iloc[-1]
        relative = gap / max(abs(primal), 1e-12)
        asks = self.gap_tol > 0 or self.stop_reason_ in _LIMITS
        if asks and relative > self.gap_tol:
            warnings.warn(
                f"Training ended by {self.stop_reason_} at a relative gap of {relative:.2g}; "
                f"gap_tol is {self.gap_tol:g}.",
                ConvergenceWarning,
                stacklevel=3,
            )


def _problem(config: RunConfig, dataset: Dataset) -> str:
    """Return a text that identifies a training problem, except for λ, and its solver."""
    parts = (vars(config.oracle), vars(config.solver), config.prior, config.parallel.batch)
    return repr((dataset.fingerprint, *parts))
