"""The parameters of an estimator as the options of a run."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from ssvm_bench.base.errors import ConfigError, described, shown
from ssvm_bench.config import compose, overrides, registry
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.config.validation import Table, check_choice, convert, lam_number
from ssvm_bench.datasets import arrays, reading
from ssvm_bench.datasets import given as examples
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles import weighted
from ssvm_bench.oracles.graph import LEARNED
from ssvm_bench.oracles.kernels import KERNELS, LINEAR, KernelConfig

STRUCTURES = MULTICLASS, CHAIN, GRAPH = "multiclass", "chain", "graph"

DEFAULT_LAM = 0.03
"""λ if none is given: ``docs/default_lambda.py`` compares it with others."""

BATCH = 16
"""Oracle calls at one w with several workers: the model does not depend on their number."""

_NUMBER = Real, "a number of usual size"
_TRUTH = (bool, np.bool_, Integral), "true or false"
_KINDS: dict[str, tuple[Any, str]] = {
    "structure": (str, "a name"),
    "solver": (str, "a name, as of DIR/solver/NAME.py with config_dirs=[DIR]"),
    "bias": _NUMBER,
    "potts": (Real, "a number of usual size, or 'learned'"),
    "kernel": (str, "a name"),
    "gamma": ((Real, NoneType), "a number above 0 or None"),
    "degree": (Integral, "an integer"),
    "class_weight": ((str, Mapping, NoneType), "'balanced', a dict or None"),
    "oracle": ((str, Callable, NoneType), "a name, a callable or None"),
    "options": ((Mapping, NoneType), "a dict or None"),
    "n_jobs": ((Integral, NoneType), "a number of processes, −1 for one a core, or None"),
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
    "parallel.workers": "the parameter n_jobs",
    "budget": "the parameters gap_tol, max_iterations and max_seconds",
    "dataset": "X and y",
    **dict.fromkeys(("results_dir", "force", "checkpoint"), "for files: a fit writes none"),
}
"""Options of a run that a fit does not accept → what replaces them."""

_OF_COMPONENTS = "solver", "oracle", "parallel"

_MOST_SEEDS = 2**31 - 1
_composing = threading.Lock()  # Hydra's state is global to the process


def check(model: Any) -> tuple[Path, ...]:
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
        known = f"{', '.join(STRUCTURES)} (or give an oracle)"
        raise ConfigError(f"structure={shown(repr(model.structure))} is unknown: {known}")
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
        The folders that `check` has returned.
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
    words, of_callable = _words(model, own)
    with _composing:
        (config,) = _composer(folders).runs(words)
    oracle = config.oracle
    if callable(own):
        about = {"name": "given", "kind": "given", "make": own}
        oracle = registry.config("oracle", {**of_callable, **about})
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
    mine = examples.Config(name=dataset.name, kind="given", dataset=dataset)
    return replace(config, dataset=mine, oracle=oracle)


def _words(model: Any, oracle: Any) -> tuple[list[str], dict[str, Any]]:
    """Return the overrides of a run, and the options of an oracle made by a callable."""
    seed, workers = model.random_state, 1
    if not isinstance(seed, Integral):
        seed = check_random_state(seed).randint(_MOST_SEEDS)
    if model.n_jobs is not None:
        if model.n_jobs == 0:
            raise ConfigError("n_jobs must be a number of processes or −1, got 0.")
        workers = effective_n_jobs(model.n_jobs)
    elsewhere = workers > 1 or (model.options or {}).get("parallel.address") is not None
    if elsewhere and callable(oracle):
        _check_sendable(oracle)
    options = {
        "solver": model.solver,
        "lam": DEFAULT_LAM if model.lam is None else model.lam,
        "budget.gap_tol": model.gap_tol,
        "budget.max_iterations": model.max_iterations,
        "budget.max_seconds": model.max_seconds,
        "seed": seed,
        "clock": "work" if model.max_seconds is None else "wall",
        **({"parallel.workers": workers, "parallel.batch": BATCH} if elsewhere else {}),
        **({} if callable(oracle) else {"oracle": oracle}),
    }
    words, further = overrides.words(options), overrides.words(model.options or {})
    of_callable = {}
    with _composing:
        settings = overrides.read(further)
    for word, setting in zip(further, settings, strict=True):
        section, _, option = setting.key.partition(".")
        of_component = option and section in _OF_COMPONENTS
        there = _ELSEWHERE.get(setting.key if of_component else section)
        if there is not None:
            raise ConfigError(f"options: {shown(setting.key)} is {there}.")
        if callable(oracle) and section == "oracle":
            of_callable[option] = setting.value
        else:
            words.append(word)
    return words, of_callable


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
        return Table((names[label], float(weight)) for label, weight in weights.items())
    if weights == "balanced" and dataset.costs is not None:
        # an example of weight 2 counts as two
        of_parts = np.repeat(dataset.costs, np.diff(dataset.offsets))
        mass = np.bincount(dataset.y, of_parts)
        shares = mass.sum() / (mass.size * mass)
        return Table(zip(dataset.label_names, shares.tolist(), strict=True))
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
