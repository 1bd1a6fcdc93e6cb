"""A dataset seen by a human: what has been prepared, and pictures with their segmentations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.cli import structure_views
from ssvm_bench.config import registry
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images.picture_file import PictureFile
from ssvm_bench.datasets.raw_files import RawFile
from ssvm_bench.figures import drawing, segmentation
from ssvm_bench.results.files import write
from ssvm_bench.results.reading import is_finished, read_metadata
from ssvm_bench.runs import prediction


def prepared(name: str, source: str, allow_checksum_mismatch: bool = False) -> Iterator[str]:
    """Load a dataset, preparing it where that is still to do; yield lines that describe it.

    Parameters
    ----------
    name : str
        The dataset.
    source : str
        ``"auto"``, ``"real"`` or ``"synthetic"``.
    allow_checksum_mismatch : bool
        Use raw files that are not the genuine ones.
    """
    dataset = _load(name, source, allow_checksum_mismatch)
    raw = sources.raw_file(name)
    is_graph, lengths = dataset.edges is not None, np.diff(dataset.offsets)
    examples, parts = ("images", "superpixels") if is_graph else ("examples", "parts")
    kept = sources.kept_in(raw, dataset.source) or "not kept, because no folder can be written to"
    parsed = "" if raw.prepared else " (parsed; there is nothing else to prepare)"
    yield f"{name} ({dataset.source} data): {kept}{parsed}"
    yield (
        f"  {dataset.n} {examples} of {lengths.min()} to {lengths.max()} {parts}, "
        f"{lengths.mean():.1f} on average"
    )
    if dataset.edges is not None:
        edges = len(dataset.edges)
        yield f"  {edges} pairs of neighbours, {edges / dataset.n:.1f} an image on average"
    nonzero = np.count_nonzero(dataset.x) if isinstance(dataset.x, np.ndarray) else dataset.x.nnz
    rate = nonzero / dataset.y.size
    yield f"  {dataset.n_features} features, of which {rate:.1f} are not zero on average"
    yield _described(dataset, raw)


def _described(dataset: Dataset, raw: RawFile) -> str:
    """Return the line on a dataset's labels, or on its targets."""
    y = dataset.y
    if dataset.structure == "regression":
        return f"  targets: {y.min():g} to {y.max():g}, {y.mean():.3f} on average"
    shares = np.bincount(y, minlength=dataset.n_labels) / y.size
    labels = raw.labels if isinstance(raw, PictureFile) else dataset.label_names
    shown = zip(labels, shares, strict=True)
    return "  labels: " + ", ".join(f"{label} {share:.1%}" for label, share in shown)


def show(
    name: str,
    numbers: Sequence[int],
    runs: Sequence[Path],
    output: Path | None,
    source: str,
    allow_checksum_mismatch: bool = False,
) -> Path:
    """Draw some pictures of a dataset, and what runs predict for them; return the file.

    Parameters
    ----------
    name : str
        A dataset of pictures.
    numbers : sequence of int
        Which pictures.
    runs : sequence of Path
        Folders of finished runs on the same data.
    output : Path, optional
        The PNG file to write.
    source : str
        ``"auto"``, ``"real"`` or ``"synthetic"``; with runs, auto stands for that of the first.
    allow_checksum_mismatch : bool
        Use raw files that are not the genuine ones.

    Raises
    ------
    ConfigError
        The dataset has no pictures, or not so many; or a run is of other data.
    RunFailedError
        The data, or a run, cannot be read.
    """
    module = sources.module_of(name)
    if not _has_pictures(module):
        shown = [
            k for k in registry.kinds("dataset") if _has_pictures(registry.module("dataset", k))
        ]
        raise ConfigError(f"{name} has no pictures to show. Those with some: {', '.join(shown)}.")
    for run in runs:
        if not is_finished(run):
            raise ConfigError(
                f"{run} is not the folder of a finished run, as …/runs/{name}/SOLVER/HASH/seed=0."
            )
    if source == "auto" and runs:
        source = read_metadata(runs[0])["dataset"]["source"].partition(" ")[0]
    path = output or Path(f"{name}-{'-'.join(map(str, numbers))}.png")
    if hasattr(module, "whole"):  # structures of other kinds than superpixels
        figure = structure_views.draw(module, name, numbers, runs, source)
        return write(path, drawing.rendered(figure, "png", dpi=110))
    if hasattr(module, "scene"):  # its superpixels are points
        config = sources.usual(name, source, allow_checksum_mismatch)
        (rows, come), labels = module.rows(config, numbers, runs), module.LABELS
    else:
        rows, labels, come = _rows(module.RAW, name, numbers, runs, source, allow_checksum_mismatch)
    figure = segmentation.draw_rows(rows, labels, come)
    return write(path, drawing.rendered(figure, "png", dpi=110))


def _rows(
    raw: PictureFile,
    name: str,
    numbers: Sequence[int],
    runs: Sequence[Path],
    source: str,
    allow_checksum_mismatch: bool,
) -> tuple[list[segmentation.Row], tuple[str, ...], str]:
    """Return what is drawn of labeled pictures, the names of labels, and the source."""
    dataset = _load(name, source, allow_checksum_mismatch)
    for i in numbers:
        if not 0 <= i < dataset.n:
            raise ConfigError(
                f"There is no image {i}: {name} ({dataset.source} data) has 0 to {dataset.n - 1}."
            )
    pictures, maps = raw.pictures(dataset.source), raw.segments(dataset.source, numbers)
    chosen = dataset.take(np.array(numbers))
    predictions = [_predictions(run, dataset, chosen) for run in runs]
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
    return rows, raw.labels, dataset.source


def _load(name: str, source: str, allow_checksum_mismatch: bool) -> Dataset:
    return sources.module_of(name).load(sources.usual(name, source, allow_checksum_mismatch))


def _has_pictures(module: Any) -> bool:
    has_own = hasattr(module, "scene") or hasattr(module, "whole")
    return has_own or isinstance(getattr(module, "RAW", None), PictureFile)


def _predictions(run: Path, dataset: Dataset, chosen: Dataset) -> tuple[str, list[np.ndarray]]:
    """Return a run's title, and its prediction for every chosen example."""
    metadata = read_metadata(run)
    of, n_samples = metadata["dataset"], metadata["config"]["dataset"].get("n_samples")
    if (of["name"], of["source"]) != (dataset.name, dataset.source):
        raise ConfigError(
            f"{run} is a run on {of['name']} ({of['source']} data), not on {dataset.name} "
            f"({dataset.source} data). Show runs on one dataset and source; see --source."
        )
    trained = dataset if n_samples is None else sources.subset(dataset, n_samples)
    if of["fingerprint"] != trained.fingerprint:
        raise RunFailedError(
            f"{run} learned from other features than those of {dataset.name} now: they have been "
            "prepared anew by another version. Make that run again with force=true."
        )
    model = prediction.load(run)
    oracle = prediction.oracle_for(model, chosen)
    return model.title, [oracle.predict(model.w, i) for i in range(chosen.n)]
