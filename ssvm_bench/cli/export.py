"""``ssvm-bench data export``: writes the examples of a dataset to a file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config import compose, overrides, registry
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.own_files import npz
from ssvm_bench.datasets.streams.export import SUFFIX, Export, write
from ssvm_bench.datasets.streams.jitter import Jitter
from ssvm_bench.results.provenance import provenance
from ssvm_bench.results.run_folder import cannot_write
from ssvm_bench.runs.components import load_dataset

ARRAYS = ".npz"


def export(
    name: str,
    path: Path,
    words: Sequence[str],
    jitter: str | None,
    config_dirs: Sequence[Path] = (),
    **options: Any,
) -> Iterator[str]:
    """Write a dataset to a file; yield lines that describe its content.

    Parameters
    ----------
    name : str
        The dataset.
    path : Path
        The file.
    words : sequence of str
        Its options, as overrides.
    jitter : str, optional
        How to deform images, in the form of `Jitter.read`.
    config_dirs : sequence of Path
        Further folders of config files.
    **options
        Fields of `Export`.

    Raises
    ------
    ConfigError
        A mistake in the call; or images are to be deformed, and there are none.
    RunFailedError
        The dataset cannot be loaded, or the file cannot be written.
    """
    how = Export(jitter=None if jitter is None else Jitter.read(jitter), **options)
    for setting in overrides.read(words):
        if not setting.key.startswith("dataset."):
            raise ConfigError(
                f"{setting.text}: what is exported depends on options of the dataset alone, as "
                "dataset.n_samples=1000."
            )
    if path.suffix not in (SUFFIX, ARRAYS) or path.is_dir():
        raise ConfigError(f"{path} must be a file whose name ends in {SUFFIX} or {ARRAYS}.")
    if path.suffix == ARRAYS and how != Export():
        raise ConfigError(
            f"{path}: repeats, orders and deformations are for streams, in a {SUFFIX} file."
        )
    (config,) = compose.compose_runs([f"dataset={name}", *words], config_dirs=config_dirs)
    images = getattr(registry.module("dataset", config.dataset.kind), "IMAGES", None)
    dataset = load_dataset(config.dataset)
    assert isinstance(dataset, Dataset)  # not a stream
    if dataset.admissible is not None:
        raise ConfigError(
            f"{name} has {dataset.structure}, whose labelings are constrained, as no file of "
            "examples says. A folder of images with a table is read as it is: see dataset.path."
        )
    if path.suffix == ARRAYS:
        yield _arrays(dataset, path)
        return
    one_each = dataset.y.size == dataset.n
    are_images = images is not None and one_each and np.prod(images.cell) == dataset.n_features
    if how.jitter is not None and not are_images:
        modules = {kind: registry.module("dataset", kind) for kind in registry.kinds("dataset")}
        known = [kind for kind, module in modules.items() if hasattr(module, "IMAGES")]
        raise ConfigError(
            f"--jitter deforms images, and the examples of {name} are none. Leave it out, or "
            f"export one of: {', '.join(known)}."
        )
    with registry.blamed("oracle", config.oracle.kind):
        build = registry.module("oracle", config.oracle.kind).build
        d = int(build(config.oracle, dataset.head(2)).d)
    begin = time.perf_counter()
    chosen = config.with_source(dataset.source).resolved()["dataset"]
    left_out = getattr(config.dataset, "NOT_HASHED", ())
    made = {
        "options": {key: value for key, value in chosen.items() if key not in left_out},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **provenance(),
    }
    header = write(dataset, path, how, images, oracle=config.oracle.name, d=d, made=made)
    seconds = time.perf_counter() - begin
    counts = [f"{header.train.n} to train on"]
    counts += [f"{split.n} {name}" for name, split in [*header.splits.items()][1:]]
    groups = sum(split.row_groups for split in header.splits.values())
    yield f"{path}: {name} ({dataset.source} data), {path.stat().st_size / 1e6:.1f} MB"
    yield f"  examples: {', '.join(counts)}; row groups: {groups}"
    rate = header.train.n / seconds
    yield f"  fingerprint {header.fingerprint}; {seconds:.1f} s, {rate:.0f} examples a second"


def _arrays(dataset: Dataset, path: Path) -> str:
    """Write a dataset to an npz; return a line that describes its content."""
    if dataset.structure not in npz.STRUCTURES:
        raise ConfigError(f"{dataset.name} is {dataset.structure}, which no {ARRAYS} has.")
    try:
        npz.write(dataset, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    counts = [f"{dataset.n} to train on"]
    counts += [f"{examples.n} {split}" for split, examples in dataset.held_out.items()]
    size = path.stat().st_size / 1e6
    return f"{path}: {dataset.name} ({dataset.source} data), {size:.1f} MB: {', '.join(counts)}"
