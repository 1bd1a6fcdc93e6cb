"""What the examples of a problem count: C_i, of their own cost and the weight of their class.

.. code-block:: text

    P(w) = λ/2 ‖w‖² + 1/n Σ_i C_i max_y { m_i Δ(y_i,y) + ⟨w, ϕ(x_i,y) − ϕ(x_i,y_i)⟩ }

================  ==================================================================================
``class_weight``  C_i, times the example's own cost
================  ==================================================================================
``none``          1
``balanced``      n / (number of classes · number of examples of the class of i): all classes count
                  the same
``{label: C}``    C of the label of i; 1 of labels that are not named
================  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ssvm_bench.config.typed import Table
from ssvm_bench.config.validation import check_choice, check_positive
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.errors import ConfigError
from ssvm_bench.oracles.base import OracleConfig

NONE, BALANCED = "none", "balanced"


@dataclass(frozen=True)
class CostsConfig(OracleConfig):
    """Options of an oracle for examples of one label each, which may cost differently.

    Attributes
    ----------
    class_weight : str or mapping
        See the module's docstring.
    """

    structures: ClassVar[tuple[str, ...]] = ("independent",)
    has_expectations: ClassVar[bool] = True
    takes_costs: ClassVar[bool] = True
    takes_margins: ClassVar[bool] = True
    NEUTRAL: ClassVar[dict[str, Any]] = {**OracleConfig.NEUTRAL, "class_weight": NONE}

    class_weight: str | Table = field(default=NONE, kw_only=True)

    def __post_init__(self) -> None:
        """Check the weights."""
        super().__post_init__()
        if isinstance(self.class_weight, str):
            check_choice("oracle.class_weight", self.class_weight, (NONE, BALANCED))
            return
        for label, weight in self.class_weight.items():
            check_positive(f"oracle.class_weight.{label}", weight)

    @property
    def needs_all_examples(self) -> bool:
        """See `OracleConfig`."""
        return self.class_weight == BALANCED

    def example_costs(self, dataset: Dataset) -> np.ndarray | None:
        """Return C_i of all examples; None if all are 1.

        Raises
        ------
        ConfigError
            If a label that has a weight does not exist.
        """
        if self.class_weight == NONE:
            return dataset.costs
        of_example = self._weights(dataset)[dataset.y]
        return of_example if dataset.costs is None else of_example * dataset.costs

    def largest_cost(self, dataset: Dataset) -> float:
        """Return the largest C_i."""
        self.check_structure(dataset)
        if len(self.names(dataset)) != dataset.n_labels:  # which `build` refuses
            return super().largest_cost(dataset)
        costs = self.example_costs(dataset)
        return 1.0 if costs is None else float(costs.max())

    def names(self, dataset: Dataset) -> Sequence[int]:
        """Return what the labels 0, …, K − 1 are called."""
        return range(dataset.n_labels)

    def _weights(self, dataset: Dataset) -> np.ndarray:
        """Return the weight of every label."""
        names = self.names(dataset)
        if self.class_weight == BALANCED:
            counts = np.bincount(dataset.y, minlength=len(names))
            return dataset.n / (np.count_nonzero(counts) * np.maximum(counts, 1.0))
        assert isinstance(self.class_weight, Table)
        known = [str(name) for name in names]
        for label in self.class_weight:
            if label not in known:
                raise ConfigError(
                    f"oracle.class_weight has a weight for {label}, and the labels of "
                    f"{dataset.name} are {', '.join(known)}."
                )
        return np.array([self.class_weight.get(name, 1.0) for name in known])
