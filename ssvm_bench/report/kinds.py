"""All kinds of figures, the core's and those of papers, and the reader of experiment files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssvm_bench.claims import fidelity
from ssvm_bench.claims import table as claims
from ssvm_bench.config import experiment, registry
from ssvm_bench.config.experiment import Experiment
from ssvm_bench.datasets import sources
from ssvm_bench.figures import agreement, comparison, convergence, scaling, targets
from ssvm_bench.figures.kind import Kind


def kinds() -> dict[str, Kind]:
    """Return name → kind, in the order of their sections on the page of the report."""
    papers = registry.papers()
    found = [
        *convergence.KINDS,
        *(claims.kind(papers), fidelity.kind(papers)),
        *(targets.KIND, comparison.KIND, agreement.KIND, scaling.KIND),
        *(kind for paper in papers.values() for kind in paper.kinds),
    ]
    return {kind.name: kind for kind in found}


def load(name: str, config_dirs: Sequence[Path] = ()) -> Experiment:
    """Read an experiment file, given its name or its path.

    Raises
    ------
    ConfigError
        If there is none, it is wrong, or it asks for a figure that there is not.
    """
    registry.use(config_dirs)  # papers may be there
    choices = {kind.name: kind.choices for kind in kinds().values()}
    return experiment.load(
        name, config_dirs, choices, lambda data: sources.status(data).state == "ready"
    )
