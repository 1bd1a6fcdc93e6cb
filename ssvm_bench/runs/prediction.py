"""Predictions of a finished run, for the examples that it held out or those of another file.

A run folder contains the weights and, where the data have names, the names of labels and features
(:class:`~ssvm_bench.datasets.vocabulary.Vocabulary`). Another file is read by these names. All
examples are predicted in one compiled pass.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.threads import Team, usual
from ssvm_bench.config import registry
from ssvm_bench.datasets import file as own_file
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.reading import called
from ssvm_bench.datasets.vocabulary import Vocabulary
from ssvm_bench.oracles.kernel_features import support
from ssvm_bench.oracles.kernels import LINEAR, POLY, RBF
from ssvm_bench.results import checks, run_folder, scores
from ssvm_bench.results.table import NOT_A_CURVE, differences, flatten, grouped
from ssvm_bench.results.trace import NAMES, TRACE, WEIGHTS, Written, cannot_read, is_finished, read
from ssvm_bench.runs.compiling import in_turn, kernels_for
from ssvm_bench.runs.components import load_dataset, oracle_of
from ssvm_bench.runs.recorder import loss_of_labels

T = TypeVar("T")

logger = logging.getLogger(__name__)

_OPTIONS: checks.Shape = {
    "solver": {"name": checks.TEXT},
    **{key: {"name": checks.TEXT, "kind": checks.TEXT} for key in ("dataset", "oracle")},
}
"""What a run's options must contain, besides being valid options of its components."""

HELD_OUT = ("test", "validation")
"""Splits of a run's own data to predict: the first one that exists, else the training set."""


class TrainedModel(NamedTuple):
    """What a run has learned.

    Attributes
    ----------
    folder : Path
    config : mapping
        Sections of the run's options.
    fingerprint : str
        Of the dataset that it was trained on.
    vocabulary : Vocabulary, optional
    w : ndarray of float64, shape (d,)
        The weights; with a kernel, over the basis.
    basis : ndarray of numbers or csr_array, shape (parts, f), optional
        Features of the parts that a kernel's w is a sum over; None: those of the run's data.
    iteration : int
        The iteration after which the run had these weights.
    """

    folder: Path
    config: dict[str, Any]
    fingerprint: str
    vocabulary: Vocabulary | None
    w: np.ndarray
    basis: Any | None
    iteration: int

    @property
    def title(self) -> str:
        """Title of the run in a figure."""
        return f"{self.config['solver']['name']}, iteration {self.iteration}"


class Examples(NamedTuple):
    """Examples to predict.

    Attributes
    ----------
    dataset : Dataset or None
        Those that have parts; None if there is none.
    labelled : bool
        Whether the examples have true labels.
    structure : str
        As in a `Dataset`.
    offsets : ndarray of int64, shape (n + 1,)
        Example i, with or without parts, has the parts ``offsets[i]:offsets[i + 1]``.
    of : str
        Description of the examples, in words.
    data : hashable
        Equal for the same examples of runs, whatever features these see; of another file, None.
    """

    dataset: Dataset | None
    labelled: bool
    structure: str
    offsets: np.ndarray
    of: str
    data: Hashable = None

    @classmethod
    def of_run(cls, model: TrainedModel, dataset: Dataset, of: str) -> Examples:
        """Return examples of a run's own data."""
        truth = hashlib.sha256(dataset.offsets.tobytes() + dataset.y.tobytes()).digest()
        data = model.config["dataset"].get("fingerprint"), truth
        return cls(dataset, True, dataset.structure, dataset.offsets, of, data)

    @property
    def compared_with(self) -> tuple[str, Hashable]:
        """What predicted labels are compared with: in words, and which data these are."""
        return f"{self.of} ({self.offsets.size - 1})", self.data


def find(path: Path) -> Path:
    """Return the folder of a finished run: this one, or the only one below it.

    Raises
    ------
    ConfigError
        There is none, or there are several.
    """
    first, *others = find_all(path)
    if not others:
        return first
    raise ConfigError(
        f"There are {1 + len(others)} finished runs in {path}. Name one of them: {first}, "
        f"{others[0]}{', …' * (len(others) > 1)}. `ssvm-bench score` compares them."
    )


def find_all(path: Path) -> list[Path]:
    """Return the folders of finished runs: this one, or all below it.

    Raises
    ------
    ConfigError
        There is none.
    """
    run_folder.recover(path.parent)
    if is_finished(path):
        return [path]
    run_folder.recover(path, "**/")
    below = [found.parent for found in sorted(path.rglob(TRACE)) if is_finished(found.parent)]
    if not below:
        raise ConfigError(
            f"There is no finished run in {path}. Name the folder that `ssvm-bench run` printed, "
            "as results/runs/DATASET/SOLVER/HASH/seed=0."
        )
    return below


def load(folder: Path) -> TrainedModel:
    """Return what a run has learned.

    Raises
    ------
    RunFailedError
        Its files are not what was written, or are of another version.
    """
    found = read(folder)
    config, fingerprint = found.metadata["config"], found.metadata["dataset"]["fingerprint"]
    try:
        checks.check(config, _OPTIONS, "config")
    except ValueError as error:
        raise cannot_read(folder, f"{TRACE}: {error}") from error
    vocabulary, (w, iteration) = found.vocabulary, found.weights
    by_features = config["oracle"].get("kernel", LINEAR) not in (RBF, POLY)
    if vocabulary is not None and by_features and vocabulary.n_features > w.size:
        why = f"{vocabulary.n_features} features, and there are {w.size} weights"
        raise cannot_read(folder, f"{NAMES}: {why}")
    basis = None
    if not by_features and vocabulary is not None:
        w, basis = _over_support(found, w, vocabulary)
    return TrainedModel(folder, config, fingerprint, vocabulary, w, basis, iteration)


def _over_support(
    found: Written, w: np.ndarray, vocabulary: Vocabulary
) -> tuple[np.ndarray, Any | None]:
    """Return a kernel's w over its support, and the support's features; w, None if not stored."""
    basis = found.support(vocabulary.n_features + (vocabulary.bias != 0))
    if basis is None:
        return w, None
    K = len(vocabulary.labels)
    B, rest = divmod(w.size - (K * K if vocabulary.structure == "chain" else 0), max(K, 1))
    kept, own = support(w, K, B if rest == 0 and B > 0 else 0)
    if kept.size != basis.shape[0]:
        why = f"its support has {basis.shape[0]} rows, and {kept.size} parts have coefficients"
        raise cannot_read(found.folder, f"{WEIGHTS}: {why}")
    return own, basis


def examples(model: TrainedModel, data: Path | None, format_: str | None = None) -> Examples:
    """Return the examples of a file, or those of the run's own data that `HELD_OUT` names.

    Parameters
    ----------
    model : TrainedModel
    data : Path, optional
        As in `datasets.file.examples`.
    format_ : str, optional
        The file's format; by default that of the file that the run was trained on.

    Raises
    ------
    ConfigError
        Runs of this kind cannot predict the examples of a file; or there is no such file.
    RunFailedError
        The data cannot be loaded; or their form or structure differs from the run's.
    """
    name = model.config["dataset"]["name"]
    if data is not None:
        vocabulary = model.vocabulary or Vocabulary.of(_own(model))
        found = own_file.examples(data, vocabulary, name, format_)
        for note in found.notes:
            logger.warning("%s", note)
        of = called(data)
        return Examples(*found[:2], vocabulary.structure, found.offsets, of)
    if format_ is not None:
        raise ConfigError("--format is that of a file. Name it: --data FILE.")
    dataset = _own(model)
    for split in HELD_OUT:
        if split in dataset.held_out:
            words = f"the {split} examples of {name}"
            return Examples.of_run(model, dataset.held_out[split], words)
    return Examples.of_run(model, dataset, f"the examples of {name} that were trained on")


def _own(model: TrainedModel) -> Dataset:
    """Return the dataset of a run."""
    dataset = load_dataset(registry.config("dataset", model.config["dataset"]))
    assert isinstance(dataset, Dataset)  # not a stream
    if dataset.fingerprint != model.fingerprint:
        raise RunFailedError(
            f"{model.folder} was trained on other data: their fingerprint was {model.fingerprint}, "
            f"that of {dataset.name} is {dataset.fingerprint} now."
        )
    return dataset


def predict(model: TrainedModel, dataset: Dataset | None) -> np.ndarray:
    """Return the label of every part; of a regression, numbers; of no examples, nothing.

    Raises
    ------
    ConfigError
        The run does not predict labels of parts.
    RunFailedError
        The run has another number of weights than these examples need.
    """
    if dataset is None:
        return np.zeros(0, np.int64)
    if dataset.structure == "latent":
        raise ConfigError(f"{model.folder} finds objects in canvases, and predicts no labels.")
    oracle = oracle_for(model, dataset)
    if dataset.structure == "regression":
        return np.asarray(dataset.x @ model.w)
    predicted = np.asarray(compiled(lambda: oracle.predictions(model.w), dataset))
    if predicted.shape != dataset.y.shape:
        name = model.config["oracle"]["name"]
        raise ConfigError(f"oracle={name} predicts no labels of parts: ask it from Python.")
    return predicted


def oracle_for(model: TrainedModel, dataset: Dataset) -> Any:
    """Return the oracle of a run for other examples.

    Raises
    ------
    RunFailedError
        The run has another number of weights than these examples need.
    """
    config = registry.config("oracle", model.config["oracle"])
    oracle = predictor(config, dataset)
    if config.has_kernel:
        oracle = oracle.over(_own(model).x if model.basis is None else model.basis)
    if oracle.d != model.w.size:
        raise RunFailedError(
            f"The run {model.folder} has {model.w.size} weights, and these examples need "
            f"{oracle.d}."
        )
    return oracle


def compiled(ask: Callable[[], T], dataset: Dataset, threads: int | None = None) -> T:
    """Return what a question about examples gives; say so if its kernels are compiled for it.

    The oracle is called by so many threads; None: as many as `threads.usual` says.
    """
    with Team(usual() if threads is None else threads) as team, team.working():
        return in_turn(ask, kernels_for(dataset.structure, " of predictions"))


def predictor(config: Any, dataset: Dataset) -> Any:
    """Return the oracle that predicts: weights of examples and classes matter in training only."""
    if getattr(config, "class_weight", "none") != "none":
        config = replace(config, class_weight="none")
    return oracle_of(config, dataset.derived(costs=None, margins=None), predicts=True)


def lines(examples: Examples, predicted: np.ndarray) -> Iterator[str]:
    """Yield one line per part, in order; an empty line follows each example of a structure."""
    dataset = examples.dataset
    if examples.structure == "regression":
        yield from (f"{value:.9g}" for value in predicted.tolist())
        return
    names = [] if dataset is None else np.array(dataset.label_names, object)[predicted].tolist()
    if examples.structure == "independent":
        yield from names
        return
    for begin, end in zip(examples.offsets[:-1], examples.offsets[1:], strict=True):
        yield from names[begin:end]
        yield ""


def mean_loss(model: TrainedModel, dataset: Dataset, predicted: np.ndarray) -> float | None:
    """Return the mean loss of predicted labels; None if the loss is the share of wrong labels."""
    config = registry.config("oracle", model.config["oracle"])
    matrix = config.loss_matrix(dataset) if hasattr(config, "loss_matrix") else None
    return None if matrix is None else loss_of_labels(matrix, dataset, predicted)


class Scored(NamedTuple):
    """A run, what its labels were compared with (`Examples.compared_with`), and the scores."""

    model: TrainedModel
    compared_with: tuple[str, Hashable]
    numbers: Mapping[str, Any]


def compared(scored: Sequence[Scored]) -> Iterator[str]:
    """Yield, for all examples that runs were scored on, a line on each of these runs and the best.

    The best run has the highest F1 of chunks, else the highest accuracy; of regressions, the lowest
    mean absolute error. Runs are only ranked on the same examples.
    """
    options = [flatten(run.model.config) for run in scored]
    groups = [(of["dataset.name"], of["solver.name"]) for of in options]
    told = differences(options, groups, _NOT_TOLD)
    rows: list[tuple[Scored, str, dict[str, float]]] = []
    for run, (data, solver), differing in zip(scored, groups, told, strict=True):
        numbers = run.numbers
        found = {
            "F1 of chunks": numbers.get("chunks", {}).get("all", {}).get("f1"),
            "accuracy": numbers.get("accuracy"),
            "mean absolute error": numbers.get("mean_absolute_error"),
            "mean loss": numbers.get("mean_loss"),
        }
        of = {what: value for what, value in found.items() if value is not None}
        rows.append((run, f"{data} {solver} {differing}".strip(), of))
    width = max((len(name) for _, name, _ in rows), default=0)
    rows.sort(key=lambda row: _as_numbers(row[1]))
    for (on, *_), runs in grouped(rows, lambda row: row[0].compared_with).items():
        yield f"{on}:"
        for _, name, of in runs:
            values = (f"{what} {value:.5g}" for what, value in of.items())
            yield "  ".join([f"{name:<{width}}", *values])
        if len(runs) > 1:
            what = next(iter(runs[0][2]))
            sign = 1 if what in LOWEST else -1
            best, name, of = min(runs, key=lambda row: sign * row[2][what])
            yield f"best on {on}: {name}, {what} {of[what]:.5g}: {best.model.folder}"


def _as_numbers(name: str) -> list[tuple[bool, float | str]]:
    """Return the key by which names are sorted, with numbers in their order."""
    pieces = re.split(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", name)
    return [(bool(k % 2), float(piece) if k % 2 else piece) for k, piece in enumerate(pieces)]


_NOT_TOLD = (NOT_A_CURVE | {"dataset.fingerprint"}) - {"lam", "seed"}
"""Options that the lines on runs leave out."""

LOWEST = ("mean absolute error",)
"""Scores of which the lowest is the best."""


def score(dataset: Dataset, predicted: np.ndarray, chunks: bool | None = None) -> scores.Scores:
    """Return the scores of predicted labels; ``chunks`` is as in `scores.compare`."""
    names, truth = list(dataset.label_names), dataset.y.astype(np.int64)
    K = len(names)
    if dataset.unseen is not None:
        names += dataset.unseen.names
        truth = np.where(dataset.unseen.mask, K + dataset.unseen.codes, truth)
    return scores.compare(names, K, truth, predicted, dataset.offsets, chunks)
