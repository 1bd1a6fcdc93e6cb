"""All kinds of figures, and the reader of experiment files that knows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssvm_bench.config import experiment
from ssvm_bench.config.experiment import Experiment
from ssvm_bench.figures import agreement, scaling, selection, suboptimality, targets
from ssvm_bench.papers import claims_table, fidelity
from ssvm_bench.papers.bcfw_poster import rates
from ssvm_bench.papers.bmrm import relative, risks, speedup
from ssvm_bench.papers.dual_coordinate import drawn as dual_coordinate
from ssvm_bench.papers.transduction import accuracies, errors, pictured
from ssvm_bench.papers.transduction import drawn as transduction

_MODULES = (
    *(suboptimality, selection, claims_table, fidelity, targets, agreement, scaling),
    *(rates, relative, risks, speedup, dual_coordinate, errors),
    *(accuracies, pictured, transduction),
)

KINDS = {module.KIND.name: module.KIND for module in _MODULES}
"""Name → kind, in the order of their sections on the page of the report."""


def load(name: str, config_dirs: Sequence[Path] = ()) -> Experiment:
    """Read an experiment file, given its name or its path.

    Raises
    ------
    ConfigError
        If there is none, it is wrong, or it asks for a figure that there is not.
    """
    kinds = {kind.name: kind.choices for kind in KINDS.values()}
    return experiment.load(name, config_dirs, kinds, _is_at_hand)


def _is_at_hand(name: str) -> bool:
    from ssvm_bench.datasets.sources import status

    return status(name).state == "ready"
