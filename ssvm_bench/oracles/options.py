"""The options that every oracle has: what a call counts for, and which data it fits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config.validation import NotNegative, Options
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.objective import STRUCTURAL_SVM


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
        Seconds that every visit of a term, exact or approximate, counts for besides.
    delay : float
        Seconds that a solver's exact call sleeps, for a costly oracle; under ``clock=work`` it
        counts for so much more.
    structures : tuple of str
        Structures of the datasets that the oracle accepts; none named: any.
    has_expectations : bool or None
        Whether `labeling.expect` is implemented for it; None: only the oracle itself can tell.
    has_latent : bool
        Whether its terms have latent values, which `Oracle.improved` chooses anew.
    family : str
        Of the problem that is made of it; solvers are for one family.
    weight : str
        The option that says the weight of the regulariser: ``lam``, or one of its own.
    takes_costs, takes_margins : bool
        Whether it heeds the costs of a dataset's examples, and their margins.
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
    def needs_all_examples(self) -> bool:
        """Whether what an example counts depends on the others, so that none can be left out."""
        return False

    @property
    def costs(self) -> tuple[float, float, float]:
        """What a `Clock` takes: seconds of a call, of a plane, of a visit."""
        return self.cost_call + self.delay, self.cost_plane, self.cost_visit

    def check_structure(self, dataset: Dataset) -> None:
        """Raise ``ConfigError`` unless the dataset is of a kind that the oracle knows.

        That is: its labels depend on each other in a known way, and its examples have neither costs
        nor margins that would be passed over.
        """
        if self.structures and dataset.structure not in self.structures:
            raise ConfigError(
                f"oracle={self.name} does not fit dataset={dataset.name}: it handles "
                f"{' and '.join(self.structures)} labels, and those of {dataset.name} are "
                f"{dataset.structure}. Leave the oracle option out to get the dataset's own."
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
        """Weight of the regulariser where that is an option of the oracle's in the place of λ."""
        return None

    def check_regulariser(self, stated: bool) -> None:
        """Raise ``ConfigError`` if λ or a prior is stated, and means nothing."""
        if stated and self.own_weight is not None:
            raise ConfigError(
                f"lam, path and prior mean nothing with oracle={self.name}, a problem of "
                f"{self.family}: the weight of its regulariser is {self.weight}. Leave them out."
            )
