"""What runs of transduction found: labels, which are in no trace, and the points that they are of.

This is what figures load beside traces (`Kind.loads`), where the runs themselves are at hand.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import registry, validation
from ssvm_bench.papers.transduction.datasets.points import Points
from ssvm_bench.papers.transduction.datasets.scenes import Scene
from ssvm_bench.results.reading import is_finished, read_labels
from ssvm_bench.results.trace import Trace


class Found(NamedTuple):
    """Labels that a run found, the points that they are of, their dataset's module and options."""

    data: Points
    module: Any
    config: Any
    y: np.ndarray

    def scene(self, number: int) -> Scene:
        """Return a picture, or a frame, that the points are of."""
        found: Scene = self.module.scene(replace(self.config, source=self.data.source), number)
        return found


def load(run: Trace) -> Found | None:
    """Return what a run found, if it is at hand and the program still has the same points."""
    # with nothing to draw, the pictures need not be there, either
    if run.is_truncated or not is_finished(run.folder):
        return None
    module, made, data = _loaded(json.dumps(run.metadata["config"]["dataset"]))
    if data.fingerprint != run.metadata["dataset"]["fingerprint"]:
        return None
    try:
        return Found(data, module, made, read_labels(run.folder, data.n, data.n_labels)[0])
    except RunFailedError:
        return None


@lru_cache(maxsize=1)  # the runs on one dataset come one after the other
def _loaded(options: str) -> tuple[Any, Any, Points]:
    """Return a dataset's module, its options and the dataset, given the options as JSON."""
    config = json.loads(options)
    module = registry.module("dataset", config["kind"])
    made: Any = validation.convert(module.Config, config, "dataset")
    return module, made, module.load(made)
