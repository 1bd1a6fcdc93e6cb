"""Pictures whose superpixels are points: their neighbours, and how `data show` shows them.

.. code-block:: text

    p_kc    pixels of superpixel k with the true label c; its label is the most frequent one
    c_kl    b_kl / b̄ · exp(−‖m_k − m_l‖² / (2 m̄²)) for neighbours k ∼ l

b_kl is the length of their border, m_k the mean colour, b̄ the mean of b and m̄² that of ‖m_k − m_l‖²
over all neighbours: to separate superpixels is cheap where the border is short or the colours
differ (Boykov and Jolly, ICCV 2001).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import validation
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.images.pictures import Picture
from ssvm_bench.datasets.images.superpixels import borders

if TYPE_CHECKING:
    from ssvm_bench.figures import pictures

_DIGITS = 6  # the last bits of an exponential depend on the machine


def contrast(rgb: np.ndarray, segments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return neighbours k < l, int64 (E, 2), and their weights, float64 (E,).

    Parameters
    ----------
    rgb : ndarray of uint8, shape (h, w, 3)
    segments : ndarray of uint16, shape (h, w)
        Superpixel of every pixel.
    """
    pairs, lengths = borders(segments)
    if not len(pairs):
        return np.zeros((0, 2), np.int64), np.zeros(0)
    of = segments.ravel()
    sums = [np.bincount(of, weights=rgb[:, :, colour].ravel()) for colour in range(3)]
    means = np.stack(sums, axis=1) / np.bincount(of)[:, None]
    apart = np.square(means[pairs[:, 0]] - means[pairs[:, 1]]).sum(axis=1)
    weights = lengths / lengths.mean() * np.exp(-0.5 * apart / max(float(apart.mean()), 1e-12))
    return pairs.astype(np.int64), np.round(weights, _DIGITS)


class Scene(NamedTuple):
    """One picture.

    Attributes
    ----------
    title : str
    picture : Picture
        Its truth are labels of the points.
    segments : ndarray of int, shape (h, w)
        Superpixel of every pixel.
    scribbles : ndarray of uint8, shape (h, w), or None
        The labels of pixels that are scribbled (`.scribbles`).
    dataset : Dataset
        Of points.
    points : ndarray of int64, shape (L,)
        Those that are superpixels 0 … L − 1 of the picture.
    """

    title: str
    picture: Picture
    segments: np.ndarray
    scribbles: np.ndarray | None
    dataset: Dataset
    points: np.ndarray


def rows(
    scene_of: Callable[[Any, int], Scene],
    config: Any,
    numbers: Sequence[int],
    runs: Sequence[Path],
) -> tuple[list[pictures.Row], str]:
    """Return what ``ssvm-bench data show`` draws of pictures, and their source.

    Parameters
    ----------
    scene_of : callable
        Options of the dataset and number → picture.
    config : Config
        The dataset's options; if there are runs, the first one's are taken in their place, but for
        ``source`` and ``trust``.
    numbers, runs
        Which pictures, and the folders of runs on them.

    Raises
    ------
    ConfigError
        There is no such picture.
    RunFailedError
        A run is of other points, or cannot be read.
    """
    from ssvm_bench.figures import pictures
    from ssvm_bench.results.reading import read_metadata

    if runs:
        options = read_metadata(runs[0])["config"]["dataset"]
        made: Any = validation.convert(type(config), options, "dataset")
        config = replace(made, source=config.source, trust=config.trust)
    scenes = [scene_of(config, number) for number in numbers]
    found = [
        pictures.Row(
            f"{config.name} {number}: {scene.title}",
            *scene.picture,
            scene.segments,
            scene.dataset.y[scene.points],
            [_found(run, scene) for run in runs],
            scene.scribbles,
        )
        for number, scene in zip(numbers, scenes, strict=True)
    ]
    return found, scenes[0].dataset.source


def _found(run: Path, scene: Scene) -> tuple[str, np.ndarray]:
    """Return a run's title, and its labels for the superpixels of a scene."""
    from ssvm_bench.results.reading import read_labels, read_metadata

    metadata = read_metadata(run)
    if metadata["dataset"]["fingerprint"] != scene.dataset.fingerprint:
        raise RunFailedError(
            f"{run} is a run on other points than those of {scene.title}: another picture, other "
            "scribbles or frames, or prepared by another version."
        )
    y, iteration = read_labels(run, scene.dataset.n, scene.dataset.n_labels)
    return f"{metadata['config']['solver']['name']}, iteration {iteration}", y[scene.points]
