"""The options of an oracle that can have a kernel, and the oracle with one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config.validation import Count, NotNegative, Positive, one_of
from ssvm_bench.oracles.kernels import KERNELS, LINEAR, MB, KernelFunction, KernelPoints
from ssvm_bench.oracles.options import OracleConfig

if TYPE_CHECKING:
    from ssvm_bench.datasets.base import Dataset
    from ssvm_bench.oracles.kernel_features import KernelFeatures, KernelOracle


@dataclass(frozen=True)
class KernelConfig(OracleConfig):
    """Options of an oracle that can have a kernel.

    Attributes
    ----------
    kernel : str
        ``linear``, ``rbf``: exp(−γ‖x − x′‖²), or ``poly``: (1 + γ⟨x, x′⟩)^degree.
    gamma : float or None
        γ of ``rbf`` and ``poly``, which need it.
    degree : int
        Of ``poly``.
    kernel_memory : float
        MB of kernel values that a solver keeps, row by row; the row that was last used longest ago
        goes first.
    cost_kernel : float
        Seconds that one kernel value counts for under ``clock=work``, whatever the features.
    """

    kernel: Annotated[str, one_of(KERNELS)] = field(default=LINEAR, kw_only=True)
    gamma: Positive | None = field(default=None, kw_only=True)
    degree: Count = field(default=3, kw_only=True)
    kernel_memory: Positive = field(default=1000.0, kw_only=True)
    cost_kernel: NotNegative = field(default=1e-8, kw_only=True)

    def __post_init__(self) -> None:
        """Check that the kernel has its parameters."""
        super().__post_init__()
        if self.kernel != LINEAR and self.gamma is None:
            raise ConfigError(
                f"oracle.kernel={self.kernel} needs oracle.gamma, a number above 0. A usual one is "
                "1/(number of features · their variance)."
            )

    @property
    def has_kernel(self) -> bool:
        """See `OracleConfig`."""
        return self.kernel != LINEAR

    @property
    def costs(self) -> tuple[float, ...]:
        """See `OracleConfig`."""
        return *super().costs, self.cost_kernel

    def made(self) -> KernelFunction:
        """Return the kernel."""
        assert self.gamma is not None
        bytes_kept = round(self.kernel_memory * MB)
        return KernelFunction(self.kernel, float(self.gamma), self.degree, bytes_kept)

    def kernel_oracle(
        self,
        dataset: Dataset,
        compiled: Callable[[KernelFeatures], Any],
        losses: np.ndarray | None,
        **factors: np.ndarray | None,
    ) -> KernelOracle:
        """Return the oracle of a dataset with this kernel.

        Parameters
        ----------
        dataset : Dataset
        compiled : callable
            Returns the compiled oracle of some features.
        losses : ndarray of float64, shape (K, K), optional
            Δ.
        **factors : ndarray or None
            Costs or weights, as in `kernel_features.build`.
        """
        from ssvm_bench.oracles import kernel_features  # no run without a kernel loads it

        kernel, points = self.made(), KernelPoints.of(dataset.x)
        features = kernel_features.build(kernel, points, dataset, losses=losses, **factors)
        return kernel_features.KernelOracle(compiled(features), kernel, points, losses)
