"""The sets of the SSL benchmark: points of two classes, and twelve splits into labeled and others.

A set has three MATLAB files: ``data`` with X (n × f) and y ∈ {−1, +1}, and a file of splits each
for 10 and for 100 labels. The rows of ``idxLabs`` in a split file are the labeled points, counted
from 1. Label 0 is −1. ``ssl.yaml`` is the table of the sets; each set is its own kind.

The authors hid what the features mean; they drew two of the sets from Gaussians. The files of the
home page are packed together; they are downloaded from a copy.

**Order.** The points of g241c are sorted by class. A method that breaks ties by the index profits
from this (from α = 0, all points are ties in the first label step). So a fixed permutation, which
is the same for every set, split and seed, reorders the points; ``order=file`` keeps the file's.

References
----------
O. Chapelle, B. Schölkopf, A. Zien (eds.): Semi-Supervised Learning. MIT Press, 2006, chapter 21;
http://olivier.chapelle.cc/ssl-book/benchmarks.html
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import yaml

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.random import approx_normal, permutation
from ssvm_bench.config.validation import at_least, check_choice, one_of
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset, SourceConfig
from ssvm_bench.datasets.reading import Arrays, ensure, parsing
from ssvm_bench.datasets.sources import ParsedFile
from ssvm_bench.papers.transduction.datasets.points import POINTS, Points

N_SPLITS = 12
LABELED = (10, 100)
SHUFFLED, FILE = ORDERS = "shuffled", "file"
MATLAB = b"MATLAB 5.0 MAT-file"
"""The first bytes of the files."""

_ORDER_SEED = 0


def _check_labeled(option: str, value: int) -> None:
    check_choice(option, str(value), map(str, LABELED))


@dataclass(frozen=True)
class SplitConfig(SourceConfig):
    """Options of a set.

    Attributes
    ----------
    labeled : int
        Number of observed labels, 10 or 100.
    split : int
        Which of the twelve choices of the labeled points, 0 to 11.
    order : str
        The points' order: ``shuffled``, by a fixed permutation, or that of the ``file``.
    """

    labeled: Annotated[int, _check_labeled] = 10
    split: Annotated[int, at_least(0)] = 0
    order: Annotated[str, one_of(ORDERS)] = SHUFFLED

    def __post_init__(self) -> None:
        """Check the ranges."""
        super().__post_init__()
        if self.split >= N_SPLITS:
            raise ConfigError(f"dataset.split must be 0 to {N_SPLITS - 1}, got {self.split}.")


def load(raw: ParsedFile, config: SplitConfig) -> Dataset:
    """Return the points of the set in a raw file, some of them labeled; see `sources.load`."""

    def make(x: np.ndarray, y: np.ndarray, **fields: Any) -> Points:
        rows = {labels: fields.pop(f"labeled_{labels}") for labels in LABELED}
        order = np.arange(y.size)
        if config.order == SHUFFLED:
            order = permutation(y.size, np.random.PCG64(_ORDER_SEED))
        labeled = np.zeros(y.size, bool)
        labeled[rows[config.labeled][config.split]] = True
        x = np.ascontiguousarray(x[order])
        return Points(x=x, y=y[order], labeled=labeled[order], **fields)

    return sources.load(config, raw, POINTS, 2, make=make)


def parse(raw: bytes) -> np.ndarray:
    """Return X with y as its last column, or the rows of labeled points.

    Raises
    ------
    ContentError
        It is not a MATLAB file of either kind.
    """
    from scipy.io import loadmat

    with parsing("not a MATLAB file of X and y, or of idxLabs"):
        found: Any = loadmat(io.BytesIO(raw), variable_names=("X", "y", "idxLabs"))
        if "idxLabs" in found:
            return np.asarray(found["idxLabs"]).astype(np.int64)
        return np.hstack((np.asarray(found["X"], float), np.asarray(found["y"], float)))


def _combined(data: np.ndarray, splits: tuple[np.ndarray, ...], n: int, f: int) -> Arrays:
    """Return the arrays to keep: x, y and the labeled points, counted from 0."""
    right = data.ndim == 2 and data.shape[1] == f + 1 and np.isin(data[:, -1], (-1, 1)).all()
    ensure(right, f"X and y are not {f} features and a label −1 or 1 for each point")
    for labels, rows in zip(LABELED, splits, strict=True):
        right = rows.shape == (N_SPLITS, labels) and rows.min() >= 1 and rows.max() <= len(data)
        ensure(right, f"the splits are not {N_SPLITS} × {labels} points from 1 to {len(data)}")
    kept = {f"labeled_{labels}": rows - 1 for labels, rows in zip(LABELED, splits, strict=True)}
    return {"x": data[:, :-1], "y": (data[:, -1] > 0).astype(np.uint8), **kept}


def synthetic(
    number: int, classes: Sequence[int], apart: float, noise: float, n: int, f: int
) -> Arrays:
    """Return arrays like those of the real files: Gaussian clusters.

    Parameters
    ----------
    number : int
        Number of the set in the benchmark.
    classes : sequence of int
        The class of each cluster.
    apart, noise : float
        The approximate distance of the centres, and the standard deviation around them.
    n, f : int
        Number of points and of features.
    """
    bits = np.random.PCG64(1700 + number)
    clusters = len(classes)
    cluster = permutation(n, bits) % clusters
    centres = approx_normal((clusters, f), bits)
    centres *= apart / np.sqrt(2.0 * np.square(centres).sum(axis=1, keepdims=True))
    x = centres[cluster] + noise * approx_normal((n, f), bits)
    y = np.array(classes, np.uint8)[cluster]
    kept = {}
    for labels in LABELED:
        rows: list[np.ndarray] = []
        while len(rows) < N_SPLITS:
            chosen = permutation(n, bits)[:labels]
            if np.unique(y[chosen]).size == 2:
                rows.append(chosen)
        kept[f"labeled_{labels}"] = np.array(rows)
    return {"x": np.round(x, 4), "y": y, **kept}


def _set(
    name: str,
    number: int,
    sha256: Sequence[str],
    n: int = 1500,
    n_features: int = 241,
    **clusters: Any,
) -> SimpleNamespace:
    """Return a namespace that the registry uses as the module of a set, given ``ssl.yaml``'s entry.

    ``clusters`` are the parameters of the synthetic data's clusters.
    """
    ends = ("data", *(f"splits,labeled={labels}" for labels in LABELED))
    files = (f"SSL,set={number},{end}.mat" for end in ends)
    raw = ParsedFile(
        dataset=f"ssl_{name}",
        folder="ssl",
        licence="none stated at its home",
        url=(
            "https://raw.githubusercontent.com/edche/star_svm/"
            "c96d22fd79e28287ed8b400b00d6251214cdf3e9/data/"
        ),
        n=n,
        sha256=dict(zip(files, sha256, strict=True)),
        parse=parse,
        heads=(MATLAB,),
        combine=lambda data, *splits: _combined(data, splits, n, n_features),
        synthetic=partial(synthetic, number, n=n, f=n_features, **clusters),
        version=1,
    )
    return SimpleNamespace(RAW=raw, Config=SplitConfig, load=partial(load, raw))


_SETS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
KINDS = {f"ssl_{name}": _set(name, **about) for name, about in _SETS.items()}
"""Kind → set, in the order of the benchmark."""
