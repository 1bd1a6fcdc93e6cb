"""A dataset seen by a human: what has been prepared, and pictures with their segmentations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ssvm_bench import registry
from ssvm_bench.config import typed
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images.source import PictureFile
from ssvm_bench.errors import ConfigError, RunFailedError
from ssvm_bench.figures import draw, segmentation
from ssvm_bench.trace import read_metadata, read_weights


def prepared(name: str, source: str) -> Iterator[str]:
    """Load a dataset, preparing it where that is still to do; yield lines that describe it.

    Parameters
    ----------
    name : str
        The dataset.
    source : str
        ``"auto"``, ``"real"`` or ``"synthetic"``.
    """
    dataset = _load(name, source)
    raw = sources.raw_file(name)
    lengths = np.diff(dataset.offsets)
    shares = np.bincount(dataset.y, minlength=dataset.n_labels) / dataset.y.size
    labels = raw.labels if isinstance(raw, PictureFile) else tuple(map(str, range(shares.size)))
    yield f"{name} ({dataset.source} data): {sources.kept_in(raw, dataset.source)}"
    yield (
        f"  {dataset.n} examples of {lengths.min()} to {lengths.max()} parts, "
        f"{lengths.mean():.1f} on average"
    )
    if dataset.edges is not None:
        yield f"  {len(dataset.edges) / dataset.n:.1f} pairs of neighbours an example"
    nonzero = np.count_nonzero(dataset.x) if isinstance(dataset.x, np.ndarray) else dataset.x.nnz
    yield f"  {dataset.n_features} features, of which {nonzero / dataset.y.size:.1f} are not zero"
    shown = zip(labels, shares, strict=True)
    yield "  labels: " + ", ".join(f"{label} {share:.1%}" for label, share in shown)


def show(
    name: str, numbers: Sequence[int], runs: Sequence[Path], output: Path | None, source: str
) -> Path:
    """Draw some pictures of a dataset, and what runs predict for them; return the file.

    Parameters
    ----------
    name : str
        A dataset of pictures.
    numbers : sequence of int
        Which pictures.
    runs : sequence of Path
        Folders of runs on the same data.
    output : Path, optional
        The PNG file to write.
    source : str
        ``"auto"``, ``"real"`` or ``"synthetic"``.

    Raises
    ------
    ConfigError
        The dataset has no pictures, or not so many; or a run is of other data.
    RunFailedError
        The data, or a run, cannot be read.
    """
    raw = sources.raw_file(name)
    if not isinstance(raw, PictureFile):
        raise ConfigError(f"Dataset {name!r} has no pictures to show.")
    dataset = _load(name, source)
    for i in numbers:
        if not 0 <= i < dataset.n:
            raise ConfigError(
                f"There is no image {i}: {name} ({dataset.source} data) has 0 to {dataset.n - 1}."
            )
    pictures, maps = raw.pictures(dataset.source), raw.segments(dataset.source, numbers)
    chosen = dataset.take(np.array(numbers))
    predictions = [_predictions(run, chosen) for run in runs]
    rows = [
        segmentation.Row(
            f"{name} {i}: {pictures.names[i]}",
            *pictures[i],
            segments,
            chosen.y[chosen.offsets[k] : chosen.offsets[k + 1]],
            [(title, labelings[k]) for title, labelings in predictions],
        )
        for k, (i, segments) in enumerate(zip(numbers, maps, strict=True))
    ]
    figure = segmentation.draw_rows(rows, raw.labels, dataset.source)
    path = output or Path(f"{name}-{'-'.join(map(str, numbers))}.png")
    return draw.write(path, draw.rendered(figure, "png"))


def _load(name: str, source: str) -> Dataset:
    module = registry.module("dataset", name)
    return module.load(module.Config(name=name, kind=name, source=source))


def _predictions(run: Path, chosen: Dataset) -> tuple[str, list[np.ndarray]]:
    """Return a run's title, and its prediction for every example."""
    metadata = read_metadata(run)
    of = metadata["dataset"]
    if (of["name"], of["source"]) != (chosen.name, chosen.source):
        raise ConfigError(
            f"{run} is a run on {of['name']} ({of['source']} data), not on {chosen.name} "
            f"({chosen.source} data)."
        )
    values = metadata["config"]["oracle"]
    module = registry.module("oracle", values["kind"])
    oracle = module.build(typed.convert(module.Config, values, "oracle"), chosen)
    w, iteration = read_weights(run)
    if w.shape != (oracle.d,):
        raise RunFailedError(f"The run {run} has {w.size} weights, expected {oracle.d}.")
    title = f"{metadata['config']['solver']['name']}, iteration {iteration}"
    return title, [oracle.predict(w, i) for i in range(chosen.n)]
