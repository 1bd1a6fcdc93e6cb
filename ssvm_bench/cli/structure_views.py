"""Images whose labels are segments or landmarks, and what runs predict: before training, and after.

Images are counted with those that are held out, in the order of the data. Options of the dataset
are those of the first run, if there are runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import validation
from ssvm_bench.datasets.base import LANDMARKS, SEGMENTS, Dataset
from ssvm_bench.figures import structures
from ssvm_bench.figures.structures import Learned
from ssvm_bench.results.reading import read_metadata
from ssvm_bench.runs import prediction

_DRAWN = {SEGMENTS: structures.segments, LANDMARKS: structures.landmarks}


def draw(
    module: ModuleType, name: str, numbers: Sequence[int], runs: Sequence[Path], source: str
) -> Figure:
    """Return the figure; see :func:`ssvm_bench.cli.dataset_views.show`.

    Raises
    ------
    ConfigError
        There is no such image; or a run is of other data.
    RunFailedError
        The data, or a run, cannot be read.
    """
    if runs:
        config = _config(module, name, runs[0])
    else:
        config = module.Config(name=name, kind=name, source=source)
    dataset, images = module.with_images(config)
    for i in numbers:
        if not 0 <= i < dataset.n:
            raise ConfigError(
                f"There is no image {i}: {name} ({dataset.source} data) has 0 to {dataset.n - 1}."
            )
    chosen = dataset.take(np.array(numbers))
    training = module.load(config) if runs else dataset
    learned = [_learned(module, name, run, training, chosen) for run in runs]
    titles = [f"{name} {i}" for i in numbers]
    return _DRAWN[dataset.structure](
        titles, [images[i] for i in numbers], chosen, learned, dataset.source
    )


def _config(module: ModuleType, name: str, run: Path) -> Any:
    metadata = read_metadata(run)
    if metadata["dataset"]["name"] != name:
        raise ConfigError(f"{run} is a run on {metadata['dataset']['name']}, not on {name}.")
    return validation.convert(module.Config, metadata["config"]["dataset"], "dataset")


def _learned(
    module: ModuleType, name: str, run: Path, training: Dataset, chosen: Dataset
) -> Learned:
    """Return the title and weights of a run, and its labels of the chosen images."""
    config, model = _config(module, name, run), prediction.load(run)
    if model.fingerprint not in (training.fingerprint, module.load(config).fingerprint):
        raise RunFailedError(f"{run} learned from other images than those of {name} now.")
    oracle = prediction.oracle_for(model, chosen)
    before, after = (oracle.predictions(w) for w in (np.zeros(oracle.d), model.w))
    return Learned(model.title, model.w, before, after)
