"""Views of a dataset: what has been prepared, its pictures, and predictions of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import registry, validation
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images.preparation import PictureFile
from ssvm_bench.figures import drawing, pictures
from ssvm_bench.results import words
from ssvm_bench.results.folder import write_file
from ssvm_bench.results.trace import read_labels, read_metadata
from ssvm_bench.runs import prediction


def prepared(name: str, source: str, allow_checksum_mismatch: bool = False) -> Iterator[str]:
    """Load a dataset, preparing it if necessary; yield lines that describe it.

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
    yield f"{name} ({words.source(dataset.source)} data): {kept}{parsed}"
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
    y = dataset.y
    if dataset.structure == "regression":
        yield f"  targets: {y.min():g} to {y.max():g}, {y.mean():.3f} on average"
        return
    labels = raw.labels if isinstance(raw, PictureFile) else dataset.label_names
    shares = np.bincount(y, minlength=dataset.n_labels) / y.size
    shown = (f"{label} {share:.1%}" for label, share in zip(labels, shares, strict=True))
    yield f"  labels: {', '.join(shown)}"


def show(
    name: str,
    numbers: Sequence[int],
    runs: Sequence[Path],
    output: Path | None,
    source: str,
    allow_checksum_mismatch: bool = False,
) -> Path:
    """Draw some pictures of a dataset, and predictions of runs for them; return the file.

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
        ``"auto"``, ``"real"`` or ``"synthetic"``; with runs, auto means that of the first.
    allow_checksum_mismatch : bool
        Use raw files that are not the genuine ones.

    Raises
    ------
    ConfigError
        The dataset has no pictures, or fewer than that; or a run is on other data.
    RunFailedError
        The data, or a run, cannot be read.
    """
    module = sources.module_of(name)
    if not _has_pictures(module):
        modules = {kind: registry.module("dataset", kind) for kind in registry.kinds("dataset")}
        shown = ", ".join(kind for kind, of in modules.items() if _has_pictures(of))
        raise ConfigError(f"{name} has no pictures to show. Those with some: {shown}.")
    runs = [prediction.find(run) for run in runs]
    if source == "auto" and runs:
        source = read_metadata(runs[0])["dataset"]["source"].partition(" ")[0]
    if hasattr(module, "with_images"):
        figure = _draw_structures(module, name, numbers, runs, source)
    elif hasattr(module, "scene"):  # its superpixels are points
        config = sources.usual(name, source, allow_checksum_mismatch)
        if runs:  # the first run's options, except where the files are
            options = read_metadata(runs[0])["config"]["dataset"]
            made: Any = validation.convert(type(config), options, "dataset")
            config = replace(made, source=config.source, trust=config.trust)
        scenes: list[Any] = [module.scene(config, number) for number in numbers]
        rows = [
            pictures.LabeledPicture(
                f"{config.name} {number}: {scene.title}",
                scene.picture.rgb,
                scene.picture.truth,
                scene.segments,
                scene.dataset.y[scene.points],
                [_of_scene(run, scene) for run in runs],
                scene.scribbles,
            )
            for number, scene in zip(numbers, scenes, strict=True)
        ]
        figure = pictures.draw_rows(rows, module.LABELS, scenes[0].dataset.source)
    else:
        dataset = _load(name, source, allow_checksum_mismatch)
        rows = _rows(module.RAW, dataset, numbers, runs)
        figure = pictures.draw_rows(rows, module.RAW.labels, dataset.source)
    path = output or Path(f"{name}-{'-'.join(map(str, numbers))}.png")
    return write_file(path, drawing.rendered(figure, "png", dpi=110))


def _has_pictures(module: Any) -> bool:
    has_own = hasattr(module, "scene") or hasattr(module, "with_images")
    return has_own or isinstance(getattr(module, "RAW", None), PictureFile)


def _load(name: str, source: str, allow_checksum_mismatch: bool) -> Dataset:
    return sources.module_of(name).load(sources.usual(name, source, allow_checksum_mismatch))


def _take(dataset: Dataset, numbers: Sequence[int]) -> Dataset:
    """Return the examples of some images."""
    for i in numbers:
        if not 0 <= i < dataset.n:
            raise ConfigError(
                f"There is no image {i}: {dataset.name} ({dataset.source} data) has 0 to "
                f"{dataset.n - 1}."
            )
    return dataset.take(np.array(numbers))


# ---- superpixels ------------------------------------------------------------------------------


def _rows(
    raw: PictureFile, dataset: Dataset, numbers: Sequence[int], runs: Sequence[Path]
) -> list[pictures.LabeledPicture]:
    """Return the rows to draw for labeled pictures."""
    chosen = _take(dataset, numbers)
    files, maps = raw.pictures(dataset.source), raw.segments(dataset.source, numbers)
    predictions = [_predictions(run, dataset, chosen) for run in runs]
    return [
        pictures.LabeledPicture(
            f"{dataset.name} {i}: {files.names[i]}",
            *files[i],
            segments,
            chosen.y[chosen.offsets[k] : chosen.offsets[k + 1]],
            [(title, labelings[k]) for title, labelings in predictions],
        )
        for k, (i, segments) in enumerate(zip(numbers, maps, strict=True))
    ]


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


def _of_scene(run: Path, scene: Any) -> tuple[str, np.ndarray]:
    """Return a run's title, and its labels for the superpixels of a picture."""
    metadata = read_metadata(run)
    if metadata["dataset"]["fingerprint"] != scene.dataset.fingerprint:
        raise RunFailedError(
            f"{run} is a run on other points than those of {scene.title}: another picture, other "
            "scribbles or frames, or prepared by another version."
        )
    y, iteration = read_labels(run, scene.dataset.n, scene.dataset.n_labels)
    return f"{metadata['config']['solver']['name']}, iteration {iteration}", y[scene.points]


# ---- segments and landmarks -------------------------------------------------------------------


def _draw_structures(
    module: Any, name: str, numbers: Sequence[int], runs: Sequence[Path], source: str
) -> Figure:
    """Draw images whose labels are segments or landmarks, before training and after it.

    Indices of images include held-out ones, in the order of the data. Options of the dataset are
    those of the first run, if there are runs.
    """
    config = _config(module, name, runs[0]) if runs else sources.usual(name, source)
    dataset, images = module.with_images(config)
    chosen = _take(dataset, numbers)
    training = module.load(config) if runs else dataset
    learned = []
    for run in runs:
        its, model = _config(module, name, run), prediction.load(run)
        if model.fingerprint not in (training.fingerprint, module.load(its).fingerprint):
            raise RunFailedError(f"{run} learned from other images than those of {name} now.")
        oracle = prediction.oracle_for(model, chosen)
        before, after = (oracle.predictions(w) for w in (np.zeros(oracle.d), model.w))
        learned.append(pictures.Learned(model.title, model.w, before, after))
    titles, shown = [f"{name} {i}" for i in numbers], [images[i] for i in numbers]
    return pictures.draw_structures(titles, shown, chosen, learned, dataset.source)


def _config(module: Any, name: str, run: Path) -> Any:
    metadata = read_metadata(run)
    if metadata["dataset"]["name"] != name:
        raise ConfigError(f"{run} is a run on {metadata['dataset']['name']}, not on {name}.")
    return validation.convert(module.Config, metadata["config"]["dataset"], "dataset")
