"""An experiment runner that measures how fast structural-SVM training algorithms converge.

The objective, its dual and every name used below:

.. code-block:: text

    primal   P(w) = λ/2 ‖w‖² + Σ_i H_i(w)
    hinge    H_i(w) = max_y ⟨φ^{iy}, [w 1]⟩
    plane    φ^{iy} = 1/n [ϕ(x_i,y) − ϕ(x_i,y_i),  Δ(y_i,y) + Θ_i(y) − Θ_i(y_i)] ∈ R^{d+1}
    dual     F(φ) = −‖φ⋆‖²/(2λ) + φ∘     with φ = Σ_i φ^i and w = −φ⋆/λ
    gap      P(w) − F(φ) ≥ 0             whenever the max-oracle is exact

Data flow in one direction only: config → dataset → problem (terms, oracle, λ) → solver → trace →
figures.

From Python, ``ssvm_bench.run`` executes a run, ``sweep`` executes many, and ``load_runs`` reads
finished ones (:mod:`ssvm_bench.api`). ``StructuredSVM`` trains on arrays as estimators of
scikit-learn do (:mod:`ssvm_bench.estimator`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ssvm_bench.api import Run, Runs, load_runs, run, sweep
    from ssvm_bench.datasets.base import Dataset
    from ssvm_bench.estimator import StructuredSVM
    from ssvm_bench.results.scores import chunk_scores

__all__ = [
    "Dataset",
    "Run",
    "Runs",
    "StructuredSVM",
    "__version__",
    "chunk_scores",
    "load_runs",
    "run",
    "sweep",
]
__version__ = "1.1.0.dev0"

NO_WINDOWS = (
    "ssvm-bench runs on Linux and macOS. On Windows, it runs in WSL, the Linux that comes with it: "
    "https://learn.microsoft.com/windows/wsl."
)
"""What its locks, signals and limits of memory need, Windows lacks."""

_PLACES = {
    "Dataset": "datasets.base",
    "StructuredSVM": "estimator",
    "chunk_scores": "results.scores",
}
"""The modules of the names that `api` does not have."""


def __dir__() -> list[str]:
    """Return the public names, also those that are not imported yet."""
    return [*__all__]


if not TYPE_CHECKING:  # type checkers would take every name for one that it returns

    def __getattr__(name: str) -> Any:
        """Import a public name on its first use, so that the command line starts fast."""
        from importlib import import_module

        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if sys.platform == "win32":
            raise ImportError(NO_WINDOWS)
        return getattr(import_module(f"ssvm_bench.{_PLACES.get(name, 'api')}"), name)
