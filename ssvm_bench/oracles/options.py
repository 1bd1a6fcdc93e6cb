r"""The options of oracles: costs of calls, datasets that fit, weights and losses of labels.

The cost C_i of an example of one label is its own cost times the weight of its class:

.. code-block:: text

    P(w) = λ/2 ‖w‖² + 1/n Σ_i C_i max_y { m_i Δ(y_i,y) + ⟨w, ϕ(x_i,y) − ϕ(x_i,y_i)⟩ }

The parts of a structure have no terms of their own to be multiplied. There, the weight s_l of the
true label of a part multiplies the part's share of the loss that is trained with:

.. code-block:: text

    Δ(y_i, y) = 1/L Σ_l s_l Δ(y_i^l, y_l)

================  ==================================================================================
``class_weight``  the weight of a class
================  ==================================================================================
``none``          1
``balanced``      number of parts / (number of classes · number of parts of that class): all classes
                  count the same
``{label: C}``    C for the label of that name, or else of that number, as 1.0 is 1; 1 for labels
                  that are not named
================  ==================================================================================

========================  ==========================================================================
``loss``                  Δ(a, b) of a true label a and any label b
========================  ==========================================================================
``zero_one``              [a ≠ b]: 0/1 loss of examples of one label, normalised Hamming loss of
                          structures
``absolute``              \|a − b\|, by the labels' numbers: for ordered labels
``[[0,1],[5,0]]``, FILE   a matrix of K rows, for the true labels, and K columns, the labels in the
                          order of `Dataset.label_names`. In a file: one row a line, numbers
                          separated by blanks or commas, comments after ``#``
========================  ==========================================================================

Losses are finite, at least 0, and 0 for the true label: otherwise the plane of the ground truth
would not be 0, and H_i(w) could be negative. Ramanan, *Dual coordinate solvers for large-scale
structural SVMs*, section 1.2, has such losses. The losses that a run reports at its end use this Δ,
and ignore costs, margins and weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.base.memory import check_room
from ssvm_bench.config import registry
from ssvm_bench.config.validation import (
    NamedNumbers,
    NotNegative,
    Options,
    check_choice,
    check_positive,
)
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.objective import STRUCTURAL_SVM

_OF_ABSOLUTE, _OF_TEXT = 24.0, 16.0
"""Bytes that a pair of labels, or a character of a file, takes while a loss matrix is made."""

NONE, BALANCED = "none", "balanced"
LOSSES = ZERO_ONE, ABSOLUTE = ("zero_one", "absolute")

Rows = tuple[tuple[float, ...], ...]
"""A matrix as a value of an option."""


_OF_A_PLUG_IN = (
    ' If an oracle of yours can read the parts and labels of such examples, add "{}" to the '
    "`structures` of its Config."
)


@dataclass(frozen=True)
class OracleConfig(Options):
    """Options of every oracle.

    Attributes
    ----------
    name, kind : str
        Name of the YAML file, and of the module.
    cost_call, cost_plane : float
        Seconds that one exact call and one evaluation of a cached plane count for under
        ``clock=work``.
    cost_visit : float
        Seconds that every visit of a term, exact or approximate, counts for in addition.
    delay : float
        Seconds that a solver's exact call sleeps, for a costly oracle; under ``clock=work`` it
        counts for so much more.
    structures : tuple of str
        Structures of the datasets that the oracle accepts; empty: any.
    has_expectations : bool or None
        Whether `labeling.expect` is implemented for it; None: only the built oracle knows.
    has_latent : bool
        Whether its terms have latent values, which `Oracle.update_latent` chooses anew.
    family : str
        Family of the problem; each solver is for one family.
    weight : str
        The option with the weight of the regulariser: ``lam``, or an option of the oracle.
    has_kernel : bool
        Whether w is known by kernel values only (:mod:`ssvm_bench.oracles.kernels`).
    takes_costs, takes_margins : bool
        Whether the oracle uses the costs and the margins of a dataset's examples.
    """

    section: ClassVar[str] = "oracle"
    structures: ClassVar[tuple[str, ...]] = ()
    has_latent: ClassVar[bool] = False
    has_expectations: ClassVar[bool | None] = None
    family: ClassVar[str] = STRUCTURAL_SVM
    weight: ClassVar[str] = "lam"
    takes_costs: ClassVar[bool] = False
    takes_margins: ClassVar[bool] = False

    name: str
    kind: str
    cost_call: NotNegative = field(default=1e-5, kw_only=True)
    cost_plane: NotNegative = field(default=1e-7, kw_only=True)
    cost_visit: NotNegative = field(default=0.0, kw_only=True)
    delay: NotNegative = field(default=0.0, kw_only=True)

    @property
    def has_kernel(self) -> bool:
        """See the class."""
        return False

    @property
    def extra(self) -> str:
        """The extra of ``pyproject.toml`` that it takes; empty: none."""
        return ""

    @property
    def needs_nonnegative(self) -> bool:
        """Whether some weights must be ≥ 0 whenever it is called (`Oracle.nonnegative`)."""
        return False

    @property
    def needs_all_examples(self) -> bool:
        """Whether the weight of an example depends on the others, so that none can be left out."""
        return False

    @property
    def costs(self) -> tuple[float, ...]:
        """Seconds for a `Clock`: of a call, a plane, a visit and, if any, a kernel value."""
        return self.cost_call + self.delay, self.cost_plane, self.cost_visit

    def check_structure(self, dataset: Dataset) -> None:
        """Raise ``ConfigError`` unless the oracle fits the dataset.

        It fits if it handles the structure of the labels, and uses the costs and the margins of the
        examples, where they have any.
        """
        if self.structures and dataset.structure not in self.structures:
            of_users = "" if registry.is_own("oracle", self.kind) else _OF_A_PLUG_IN
            raise ConfigError(
                f"oracle={self.name} does not fit dataset={dataset.name}: it handles "
                f"{' and '.join(self.structures)} labels, and those of {dataset.name} are "
                f"{dataset.structure}. Leave the oracle option out to get the dataset's own."
                + of_users.format(dataset.structure)
            )
        for what, taken in (("costs", self.takes_costs), ("margins", self.takes_margins)):
            if getattr(dataset, what) is not None and not taken:
                raise ConfigError(
                    f"oracle={self.name} does not fit dataset={dataset.name}: its examples have "
                    f"{what}, which this oracle would pass over. Choose another one."
                )

    def largest_cost(self, dataset: Dataset) -> float:
        """Return the largest C_i by which the features and losses of an example are multiplied."""
        return 1.0 if dataset.costs is None else float(dataset.costs.max())

    @property
    def own_weight(self) -> float | None:
        """Weight of the regulariser if it is an option of the oracle in place of λ; else None."""
        return None

    def check_regulariser(self, stated: bool) -> None:
        """Raise ``ConfigError`` if λ or a prior is stated, and the problem has neither."""
        if stated and self.own_weight is not None:
            raise ConfigError(
                f"lam, path and prior mean nothing with oracle={self.name}, a problem of "
                f"{self.family}: the weight of its regulariser is {self.weight}. Leave them out."
            )


@dataclass(frozen=True)
class ClassesConfig(OracleConfig):
    """Options of an oracle over labels, which may have different weights and losses.

    Attributes
    ----------
    class_weight : str or mapping
        What an example counts, or of structures a wrong label of a part: ``none``, ``balanced``, or
        weights by label, ``{-1:1,1:3}``.
    loss : str or matrix
        What it costs to take one label for another: ``zero_one``, ``absolute``, or a K × K matrix
        (row: true label), ``[[0,1],[5,0]]`` or a file of text.
    """

    class_weight: str | NamedNumbers = field(default=NONE, kw_only=True)
    loss: Annotated[str | Rows, "a name, a file, or a matrix in brackets"] = field(
        default=ZERO_ONE, kw_only=True
    )

    def __post_init__(self) -> None:
        """Check the losses, and the weights."""
        super().__post_init__()
        if not isinstance(self.loss, str):
            _check_matrix("oracle.loss", self.loss, (f"row {k + 1}" for k in range(len(self.loss))))
        if isinstance(self.class_weight, str):
            check_choice("oracle.class_weight", self.class_weight, (NONE, BALANCED))
            return
        for label, weight in self.class_weight.items():
            check_positive(f"oracle.class_weight.{label}", weight)

    @property
    def needs_all_examples(self) -> bool:
        """See `OracleConfig`."""
        return self.class_weight == BALANCED

    def read_files(self) -> Self:
        """Return the config with the loss matrix in place of its file, which is read here."""
        if not isinstance(self.loss, str) or self.loss in LOSSES:
            return self
        return replace(self, loss=_read_matrix(Path(self.loss)))

    def loss_matrix(self, dataset: Dataset) -> np.ndarray | None:
        """Return Δ of true labels (rows) and labels, float64 of shape (K, K); None: ``zero_one``.

        Raises
        ------
        ConfigError
            If the matrix is for another number of labels.
        """
        K, config = dataset.n_labels, self.read_files()
        if config.loss == ZERO_ONE:
            return None
        if config.loss == ABSOLUTE:
            check_room(
                _OF_ABSOLUTE * K * K,
                f"The losses of all pairs of {K} labels",
                "Leave oracle.loss out, or use fewer labels.",
            )
            return np.abs(np.subtract.outer(np.arange(K), np.arange(K))).astype(np.float64)
        if len(config.loss) != K:
            raise ConfigError(
                f"oracle.loss is a matrix for {len(config.loss)} labels, and {dataset.name} has "
                f"{K}, in this order: {shown(', '.join(self.names(dataset)), 300)}."
            )
        return np.array(config.loss)

    def part_weights(self, dataset: Dataset) -> np.ndarray | None:
        """Return the weight of the true label of every part; None if all are 1.

        Raises
        ------
        ConfigError
            If a label that has a weight does not exist.
        """
        if self.class_weight == NONE:
            return None
        names, weights = self.names(dataset), self.class_weight
        if not isinstance(weights, NamedNumbers):  # BALANCED
            counts = np.bincount(dataset.y, minlength=len(names))
            shares = dataset.y.size / (np.count_nonzero(counts) * np.maximum(counts, 1.0))
            return shares[dataset.y]
        known = {name: k for k, name in enumerate(names)}
        numbers = {_number(name): k for name, k in known.items()}
        numbers.pop(None, None)
        of_labels = np.ones(len(names))
        for label, weight in weights.items():
            k = known.get(label, numbers.get(_number(label)))
            if k is None:
                raise ConfigError(
                    f"oracle.class_weight has a weight for {shown(label)}, and the labels of "
                    f"{dataset.name} are {shown(', '.join(names), 300)}."
                )
            of_labels[k] = weight
        return of_labels[dataset.y]

    def largest_cost(self, dataset: Dataset) -> float:
        """Return the largest factor by which features or losses of an example are multiplied."""
        weights, largest = self.part_weights(dataset), super().largest_cost(dataset)
        largest = largest if weights is None else max(largest, float(weights.max()))
        return largest * self.largest_loss(dataset)

    def largest_loss(self, dataset: Dataset) -> float:
        """Return the largest loss of a part, or 1 if that is larger."""
        matrix = self.loss_matrix(dataset)
        return 1.0 if matrix is None else max(1.0, float(matrix.max()))

    def names(self, dataset: Dataset) -> Sequence[str]:
        """Return the names of the labels 0, …, K − 1."""
        return dataset.label_names


@dataclass(frozen=True)
class CostsConfig(ClassesConfig):
    """Options of an oracle for examples of one label each, which may have different costs."""

    structures: ClassVar[tuple[str, ...]] = ("independent",)
    has_expectations: ClassVar[bool] = True
    takes_costs: ClassVar[bool] = True
    takes_margins: ClassVar[bool] = True

    def check_structure(self, dataset: Dataset) -> None:
        """Raise ``ConfigError`` unless every example has one label."""
        super().check_structure(dataset)
        if dataset.y.size != dataset.n:
            raise ConfigError(
                f"oracle={self.name} is for examples of one part, and those of {dataset.name} have "
                "several parts. Let each part be an example, or the structure be chain or graph."
            )

    def example_costs(self, dataset: Dataset) -> np.ndarray | None:
        """Return C_i of all examples; None if all are 1. Raises as `part_weights` does."""
        of_class = self.part_weights(dataset)
        if of_class is None or dataset.costs is None:
            return dataset.costs if of_class is None else of_class
        return of_class * dataset.costs

    def largest_cost(self, dataset: Dataset) -> float:
        """Return the largest factor by which features or losses of an example are multiplied."""
        self.check_structure(dataset)
        if len(self.names(dataset)) != dataset.n_labels:  # which `build` refuses
            return super().largest_cost(dataset)
        costs = self.example_costs(dataset)
        return (1.0 if costs is None else float(costs.max())) * self.largest_loss(dataset)


def _number(label: str) -> float | None:
    """Return the number that a label is; None if it is none."""
    with suppress(ValueError):
        return float(label)
    return None


def _read_matrix(path: Path) -> Rows:
    """Read the loss matrix from a file.

    Raises
    ------
    ConfigError
        If the file cannot be read, or holds no loss matrix.
    """
    option = f"oracle.loss={shown(path)}"
    try:
        place = files.expanded(path)
        check_room(_OF_TEXT * place.stat().st_size, option, "Use fewer labels.")
        text = files.read(place).decode()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or shown(error, 200)
        raise ConfigError(
            f"{option} is neither {' nor '.join(LOSSES)}, and a file of this name cannot be read: "
            f"{reason}."
        ) from error
    rows, places = [], []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        try:
            rows += [tuple(map(float, words))] if words else []
        except ValueError as error:
            raise ConfigError(
                f"{option}, line {number}: {shown(line)} is no row of numbers."
            ) from error
        places += [f"line {number}"] if words else []
    _check_matrix(option, tuple(rows), places)
    return tuple(rows)


def _check_matrix(option: str, rows: Rows, places: Iterable[str]) -> None:
    """Raise ``ConfigError`` unless the rows form a loss matrix; ``places`` are their names."""
    K = len(rows)
    if K == 0:
        raise ConfigError(f"{option} is empty: a loss matrix has a row for each label.")
    for k, (row, place) in enumerate(zip(rows, places, strict=True)):
        if len(row) != K:
            raise ConfigError(
                f"{option}, {place}: the numbers are {len(row)}, and the rows {K}. A loss matrix "
                "has a row and a column for each label."
            )
        for c, loss in enumerate(row):
            if not 0 <= loss < np.inf:
                raise ConfigError(
                    f"{option}, {place}, column {c + 1}: a loss must be a number ≥ 0, got {loss:g}."
                )
        if row[k] != 0:
            raise ConfigError(
                f"{option}, {place}, column {k + 1}: the loss of the true label must be 0, got "
                f"{row[k]:g}."
            )
