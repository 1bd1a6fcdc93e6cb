"""The estimator: its parameters, and training."""

from __future__ import annotations

import copy
import functools
import os
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, overload

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError, described, nearest, shown
from ssvm_bench.config import compose, overrides, registry
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.config.validation import NamedNumbers, check_choice, convert, lam_number
from ssvm_bench.datasets import arrays, reading
from ssvm_bench.datasets import given as examples
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.vocabulary import check_classes
from ssvm_bench.estimator.model import (
    GRAPH,
    MULTICLASS,
    STRUCTURES,
    Answer,
    Predictor,
    jobs_of,
    vectorizer,
)
from ssvm_bench.oracles import kernel_features, weighted
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.oracles.graph import LEARNED
from ssvm_bench.oracles.kernel_options import KernelConfig
from ssvm_bench.oracles.kernels import KERNELS, LINEAR
from ssvm_bench.results.table import relative_gap
from ssvm_bench.runs import checkpoints, runner, terminal
from ssvm_bench.runs.components import oracle_of
from ssvm_bench.solvers.base import Solver

_LIMITS = ("max_iterations", "max_seconds")


class Parameters(TypedDict, total=False):
    """The types of the parameters of `StructuredSVM` after the first one, as its fields have them.

    Type checkers need them apart: what the first parameter is decides what predictions are.
    """

    solver: str | Callable[[Any, Clock, int], Solver]
    lam: float | str | None
    gap_tol: float
    max_iterations: int | None
    max_seconds: float | None
    bias: float
    potts: float | str
    kernel: str
    gamma: float | None
    degree: int
    class_weight: str | Mapping[Any, float] | None
    loss: str | Path | ArrayLike | None
    oracle: str | Callable[[Dataset], Oracle] | None
    options: Mapping[str, Any] | None
    config_dirs: Sequence[str | Path]
    warm_start: bool
    n_jobs: int | None
    random_state: int | np.random.RandomState | None
    verbose: bool


@dataclass(eq=False, repr=False)
class StructuredSVM(Predictor[Answer]):
    """A structural SVM.

    Parameters
    ----------
    structure : str
        ``"multiclass"``, ``"chain"`` or ``"graph"`` (attractive Potts); or another name, which
        your own oracle understands.
    solver : str or callable
        As on the command line; or a callable that makes a solver from a problem, a clock and a
        seed, such as a class derived from `ssvm_bench.solvers.base.Solver`.
    lam : float, str or None
        λ > 0, or ``"K/n"``; None: 0.03.
    gap_tol : float
        Relative duality gap at which training ends.
    max_iterations : int or None
    max_seconds : float or None
        Limits of training, which also ends when the first of them is reached. With
        ``max_seconds``, the clock is ``wall``. These are the solver's seconds: evaluations come in
        addition (``options={"eval.every": 10}`` makes a tenth of them).
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
        Threads that call the oracle, if its calls are compiled, as those of the structures are;
        else processes, each with the examples; −1: one for each core. With more than one, the
        oracle is called for 16 terms at one w, or for τ terms with
        ``options={"parallel.batch": τ}``. This pays if such a batch takes a millisecond or more,
        and with processes if a call does. With ``options={"parallel.address": "tcp://…"}``, so
        many workers of a dask scheduler. Predictions and the evaluations of a fit use as many
        threads; None: one for each core, or ``OMP_NUM_THREADS``.
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
        The trace: a row for each evaluated iteration (``ssvm-bench help files`` shows the columns).
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

    structure: str = MULTICLASS
    _: KW_ONLY
    solver: str | Callable[[Any, Clock, int], Solver] = "mpbcfw_fast"
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
    loss: str | Path | ArrayLike | None = None
    oracle: str | Callable[[Dataset], Oracle] | None = None
    options: Mapping[str, Any] | None = None
    config_dirs: Sequence[str | Path] = ()
    warm_start: bool = False
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = 0
    verbose: bool = False

    if TYPE_CHECKING:  # mypy takes the bases for untyped, and then any parameter for one of them

        @overload
        def __init__(
            self: StructuredSVM[np.ndarray],
            structure: Literal["multiclass"] = ...,
            **parameters: Unpack[Parameters],
        ) -> None: ...
        @overload
        def __init__(
            self: StructuredSVM[list[np.ndarray]],
            structure: Literal["chain", "graph"],
            **parameters: Unpack[Parameters],
        ) -> None: ...
        @overload
        def __init__(
            self: StructuredSVM[Any], structure: str, **parameters: Unpack[Parameters]
        ) -> None: ...
        def __init__(self, structure: str = MULTICLASS, **parameters: Any) -> None: ...

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        folders = check_parameters(self)
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
        del parts, labels  # training needs the memory
        total = None
        if sample_weight is not None:
            dataset, total = examples.weighted(dataset, weights)
        config = run_config(self, self._folders, dataset, total)
        problem = _problem(config, dataset) if self.warm_start else ""
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
        w, rows = trained.recorder.w, trained.recorder.rows
        if config.oracle.has_kernel:
            sizes = dataset.n_labels, dataset.y.size
            self.support_, w = kernel_features.support(np.asarray(w), *sizes)
            self.support_vectors_ = dataset.x[self.support_]
        self._take(w)
        if self.vectorizer_ is not None:
            self.vectorizer_ = vectorizer(self.vectorizer_.feature_names_)
        self.history_ = pd.DataFrame(rows)
        self.n_iter_ = int(self.history_["iteration"].iloc[-1])
        primal, gap = self.history_[["primal", "gap"]].iloc[-1]
        relative = relative_gap(primal, gap)
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


# ---- Parameters as the options of a run -------------------------------------------------------

DEFAULT_LAM = 0.03
"""λ if none is given: ``docs/default_lambda.py`` compares it with others."""

BATCH = 16
"""Oracle calls at one w with several threads or processes: not to depend on their number."""

_NUMBER = Real, "a number of usual size"
_TRUTH = (bool, np.bool_, Integral), "true or false"
_KINDS: dict[str, tuple[Any, str]] = {
    "structure": (str, "a name"),
    "solver": ((str, Callable), "a name or a callable"),
    "bias": _NUMBER,
    "potts": (Real, "a number of usual size, or 'learned'"),
    "kernel": (str, "a name"),
    "gamma": ((Real, NoneType), "a number above 0 or None"),
    "degree": (Integral, "an integer"),
    "class_weight": ((str, Mapping, NoneType), "'balanced', a dict or None"),
    "oracle": ((str, Callable, NoneType), "a name, a callable or None"),
    "options": ((Mapping, NoneType), "a dict or None"),
    "n_jobs": ((Integral, NoneType), "a number of threads, −1 for one a core, or None"),
    "warm_start": _TRUTH,
    "verbose": _TRUTH,
}
"""Parameter → its type, and the type in words, where the options of a run do not say it."""

_OF_ORACLES = "class_weight", "loss", "potts", "kernel", "gamma", "degree"

_ELSEWHERE = {
    **{name: f"the parameter {name}" for name in ("solver", "lam", "oracle")},
    **{f"oracle.{name}": f"the parameter {name}" for name in _OF_ORACLES},
    "seed": "the parameter random_state",
    "quiet": "the parameter verbose",
    **dict.fromkeys(("parallel.workers", "parallel.threads"), "the parameter n_jobs"),
    "budget": "the parameters gap_tol, max_iterations and max_seconds",
    "dataset": "X and y",
    **dict.fromkeys(("results_dir", "force", "checkpoint"), "for files: a fit writes none"),
}
"""Options of a run that a fit does not accept → what replaces them."""

_OF_COMPONENTS = "solver", "oracle", "parallel"

_MOST_SEEDS = 2**31 - 1
_composing = threading.Lock()  # Hydra's state is global to the process


def check_parameters(model: Any) -> tuple[Path, ...]:
    """Check the parameters that are not options of a run; return the folders of plug-ins.

    Raises
    ------
    ConfigError
        If a parameter is of a wrong type.
    """
    for name, (kind, words) in _KINDS.items():
        if name == "potts" and isinstance(model.potts, str) and model.potts == LEARNED:
            continue
        _check(name, getattr(model, name), kind, words)
    if model.oracle is None and model.structure not in STRUCTURES:
        raise ConfigError(
            f"structure={shown(repr(model.structure))} is unknown. "
            f"{nearest(model.structure, STRUCTURES)} Any other needs an oracle."
        )
    folders = convert(tuple[Path, ...], model.config_dirs, "config_dirs")
    return tuple(Path(os.path.realpath(folder)) for folder in folders)


def run_config(
    model: Any, folders: tuple[Path, ...], dataset: Dataset, total: float | None
) -> RunConfig:
    """Return the options of the run by which an estimator is fitted.

    Parameters
    ----------
    model : StructuredSVM
    folders : tuple of Path
        The folders that `check_parameters` has returned.
    dataset : Dataset
    total : float or None
        S, the sum of the weights of all examples, if weights are given: it replaces n in ``"K/n"``.

    Raises
    ------
    ConfigError
        A mistake in a parameter.
    """
    assert dataset.vocabulary is not None
    own = model.oracle
    if own is None:  # the oracle for two labels has one weight vector, and no kernels
        of_classes = model.structure == MULTICLASS and model.kernel != LINEAR
        own = "multiclass" if of_classes else dataset.vocabulary.oracle
    words, of_callables = _words(model, own)
    with _composing:
        (config,) = _composer(folders).runs(words)
    oracle = config.oracle
    if callable(model.solver):
        config = replace(config, solver=_given("solver", model.solver, of_callables["solver"]))
    if callable(own):
        oracle = _given("oracle", own, of_callables["oracle"])
    elif model.structure == GRAPH and hasattr(oracle, "potts"):
        learned = isinstance(model.potts, str)
        oracle = replace(oracle, potts=LEARNED if learned else float(model.potts))
    if model.kernel != LINEAR:
        oracle = _with_kernel(model, oracle)
    if model.class_weight is not None:
        if not hasattr(oracle, "class_weight"):
            raise ConfigError(f"oracle={oracle.name} has no class_weight. Leave it None.")
        oracle = replace(oracle, class_weight=_class_weight(model, dataset))
    if model.loss is not None:
        if not hasattr(oracle, "loss_matrix"):
            raise ConfigError(f"oracle={oracle.name} has no loss matrix. Leave loss None.")
        oracle = replace(oracle, loss=_loss(model.loss)).read_files()
    if dataset.costs is not None and not oracle.takes_costs:
        if oracle.has_kernel:
            raise ConfigError("sample_weight and a kernel go together for multiclass alone.")
        oracle = weighted.of(oracle)
    if model.warm_start and not config.solver.follows_paths:
        raise ConfigError(f"solver={config.solver.name} has no warm_start. Leave it False.")
    if total is not None:
        path = tuple(lam_number(lam, total) for lam in config.path)
        config = replace(config, lam=lam_number(config.lam, total), path=path)
    workers, elsewhere = config.parallel.workers, config.parallel.address is not None
    if workers > 1 and not (callable(own) or elsewhere) and _takes_threads(oracle, dataset):
        threads = replace(config.parallel, threads=workers, workers=1)
        config = replace(config, parallel=threads)
    mine = examples.Config(name=dataset.name, kind="given", dataset=dataset)
    return replace(config, dataset=mine, oracle=oracle)


def _given(section: str, make: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """Return the options of a component that a callable makes."""
    return registry.config(section, {**options, "name": "given", "kind": "given", "make": make})


def _takes_threads(oracle: Any, dataset: Dataset) -> bool:
    """Return whether several threads may call an oracle of the examples at a time."""
    return bool(getattr(oracle_of(oracle, dataset), "takes_threads", False))


def _words(model: Any, oracle: Any) -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Return the overrides of a run, and the options of its solver and oracle that callables make.

    Where a callable makes it, the overrides leave it open.
    """
    seed, workers = model.random_state, jobs_of(model) or 1
    if not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(_MOST_SEEDS)
    elsewhere = workers > 1 or (model.options or {}).get("parallel.address") is not None
    if elsewhere and callable(oracle):
        _check_sendable(oracle)
    makers = {"solver": model.solver, "oracle": oracle}
    options = {
        **{section: name for section, name in makers.items() if not callable(name)},
        "lam": DEFAULT_LAM if model.lam is None else model.lam,
        "budget.gap_tol": model.gap_tol,
        "budget.max_iterations": model.max_iterations,
        "budget.max_seconds": model.max_seconds,
        "seed": seed,
        "clock": "work" if model.max_seconds is None else "wall",
        **({"parallel.workers": workers, "parallel.batch": BATCH} if elsewhere else {}),
        **({"parallel.threads": 1} if model.n_jobs is not None and workers == 1 else {}),
    }
    words, further = overrides.words(options), overrides.words(model.options or {})
    of_callables: dict[str, dict[str, Any]] = {section: {} for section in makers}
    with _composing:
        settings = overrides.read(further)
    for word, setting in zip(further, settings, strict=True):
        section, _, option = setting.key.partition(".")
        of_component = option and section in _OF_COMPONENTS
        there = _ELSEWHERE.get(setting.key if of_component else section)
        if there is not None:
            raise ConfigError(f"options: {shown(setting.key)} is {there}.")
        if callable(makers.get(section)):
            of_callables[section][option] = setting.value
        else:
            words.append(word)
    return words, of_callables


def _with_kernel(model: Any, oracle: Any) -> Any:
    """Return the options of an oracle with the kernel of the parameters."""
    check_choice("kernel", model.kernel, KERNELS)
    if not isinstance(oracle, KernelConfig):
        raise ConfigError(f"oracle={oracle.name} has no kernel. Leave kernel='linear'.")
    gamma = None if model.gamma is None else float(model.gamma)
    return replace(oracle, kernel=model.kernel, gamma=gamma, degree=int(model.degree))


def _class_weight(model: Any, dataset: Dataset) -> Any:
    """Return the weights of classes in the form that an oracle accepts."""
    weights = model.class_weight
    if isinstance(weights, Mapping):
        # labels are equal as keys of a dict are: 1 is 1.0 and True, and not '1'
        names = dict(zip(model.classes_.tolist(), dataset.label_names, strict=True))
        for label, weight in weights.items():
            _check(f"class_weight of {shown(repr(label))}", weight, *_NUMBER)
            if label not in names:
                raise ConfigError(
                    f"class_weight has a weight for {shown(repr(label))}, and the labels of y are "
                    f"{shown(', '.join(map(repr, names)), 300)}."
                )
        return NamedNumbers((names[label], float(weight)) for label, weight in weights.items())
    if weights == "balanced" and dataset.costs is not None:
        # an example of weight 2 counts as two
        of_parts = np.repeat(dataset.costs, np.diff(dataset.offsets))
        mass = np.bincount(dataset.y, of_parts)
        shares = mass.sum() / (mass.size * mass)
        return NamedNumbers(zip(dataset.label_names, shares.tolist(), strict=True))
    return weights


def _loss(loss: Any) -> Any:
    """Return a loss in the form that an oracle accepts: a name, the path of a file, or a matrix."""
    if isinstance(loss, str | Path):
        return str(loss)
    try:
        found = loss if isinstance(loss, np.ndarray) else np.asarray(loss)
        matrix = arrays.array(found, "loss", arrays.REAL, (None, None))
    except (reading.ContentError, TypeError, ValueError) as error:
        raise ConfigError(
            f"loss must be a name, a path, or a matrix of numbers, got {shown(repr(loss))}."
        ) from error
    return tuple(map(tuple, matrix.astype(np.float64).tolist()))


def _check_sendable(oracle: Any) -> None:
    """Raise ``ConfigError`` if the callable that makes an oracle cannot be sent to workers."""
    from ssvm_bench.oracles.workers import dumped

    try:
        dumped(oracle)
    except Exception as error:  # an object of the user may raise anything
        raise ConfigError(
            f"n_jobs: other processes cannot make the oracle ({described(error)}). Put its class "
            "into a module, or leave n_jobs None."
        ) from error


def _check(name: str, value: Any, kind: Any, words: str) -> None:
    """Raise ``ConfigError`` unless a value is of this kind."""
    is_one = isinstance(value, kind) and not isinstance(value, np.timedelta64)  # it is an Integral
    if not is_one or (kind is Real and not abs(value) < float(arrays.LARGEST)):
        raise ConfigError(f"{name} must be {words}, got {shown(repr(value))}.")


@functools.lru_cache(maxsize=8)
def _composer(config_dirs: tuple[Path, ...]) -> compose.Composer:
    """Return the composer of options; it reads each file once."""
    return compose.Composer(config_dirs)
