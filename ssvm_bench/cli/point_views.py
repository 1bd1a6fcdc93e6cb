"""Pictures whose superpixels are points, and the labels that runs of transduction found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import typed
from ssvm_bench.datasets.images.scene import Scene
from ssvm_bench.figures import segmentation
from ssvm_bench.results.reading import read_labels, read_metadata


def rows(
    module: ModuleType,
    name: str,
    numbers: Sequence[int],
    runs: Sequence[Path],
    source: str,
    trust: bool,
) -> Iterator[tuple[segmentation.Row, str]]:
    """Yield what is drawn of pictures, and where they come from.

    Options of the dataset are those of the first run, if there are runs, else the usual ones. The
    parameters are those of :func:`ssvm_bench.cli.dataset_views.show`, and ``module`` loads the
    dataset.

    Raises
    ------
    ConfigError
        There is no such picture.
    RunFailedError
        A run is of other points, or cannot be read.
    """
    config = module.Config(name=name, kind=name)
    if runs:
        config = typed.convert(
            module.Config, read_metadata(runs[0])["config"]["dataset"], "dataset"
        )
    for number in numbers:
        scene: Scene = module.scene(replace(config, source=source, trust=trust), number)
        row = segmentation.Row(
            f"{name} {number}: {scene.title}",
            *scene.picture,
            scene.segments,
            scene.dataset.y[scene.points],
            [_found(run, scene) for run in runs],
            scene.scribbles,
        )
        yield row, scene.dataset.source


def _found(run: Path, scene: Scene) -> segmentation.Labels:
    """Return a run's title, and its labels for the superpixels of a scene."""
    metadata = read_metadata(run)
    if metadata["dataset"]["fingerprint"] != scene.dataset.fingerprint:
        raise RunFailedError(
            f"{run} is a run on other points than those of {scene.title}: another picture, other "
            "scribbles or frames, or prepared by another version."
        )
    y, iteration = read_labels(run, scene.dataset.n, scene.dataset.n_labels)
    return f"{metadata['config']['solver']['name']}, iteration {iteration}", y[scene.points]
