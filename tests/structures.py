"""Tiny examples of segments, landmarks and latent windows, and their oracles."""

import itertools
from dataclasses import replace

import numpy as np
from helpers import COST_CALL, COST_PLANE, dataset

from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.structures import Alphabet, Boxes, pattern_maps
from ssvm_bench.oracles import landmarks, latent, segments

ALPHABET = Alphabet(("a", "b", "c"), (2, 1, 3))
BOXES = Boxes(
    names=("root", "left", "right"),
    parents=(-1, 0, 1),
    corners=((1, 1), (2, 0), (0, 3)),
    sizes=((2, 3), (3, 2), (2, 2)),
    image=(6, 7),
    upper=(0, 1),
    lower=(2,),
)


def texts(alphabet, W):
    """Return all labelings of W columns, in lexicographic order."""
    found = []
    for L in range(1, W + 1):
        for text in itertools.product(range(len(alphabet.widths)), repeat=L):
            if sum(alphabet.widths[a] for a in text) == W:
                found.append(alphabet.columns(text))
    return sorted(found, key=list)


def segmented(widths=(4, 1, 6, 5), f=2, seed=0, **more):
    rng = np.random.default_rng(seed)
    labels = [texts(ALPHABET, W)[rng.integers(len(texts(ALPHABET, W)))] for W in widths]
    y = np.concatenate(labels).astype(np.uint8)
    x = rng.normal(size=(ALPHABET.n_labels, f))[y] + rng.normal(size=(y.size, f))
    x = x.astype(np.float32)  # as plates are: kernels are compiled for one type
    labels = {"n_labels": ALPHABET.n_labels, "structure": "segments", "admissible": ALPHABET}
    fields = {"x": x, "y": y, "offsets": np.cumsum([0, *widths]), **labels}
    return Dataset(**{"name": "tiny", "source": "synthetic", **fields, **more})


def marked(n=4, seed=0, **more):
    rng = np.random.default_rng(seed)
    at = np.array(BOXES.corners) + rng.integers(0, np.array(BOXES.sizes), (n, 3, 2))
    images = rng.integers(0, 256, (n, 6, 7)).astype(np.uint8)
    y = (at @ np.array([7, 1])).ravel().astype(np.uint8)
    labels = {"n_labels": 42, "structure": "landmarks", "admissible": BOXES}
    fields = {"x": pattern_maps(images), "y": y, "offsets": 3 * np.arange(n + 1), **labels}
    return Dataset(**{"name": "tiny", "source": "synthetic", **fields, **more})


def segments_of(data):
    return segments.build(segments.Config("segments", "segments"), data)


def landmarks_of(data):
    return landmarks.build(landmarks.Config("landmarks", "landmarks"), data)


def pictures(n, windows, seed=0, noise=0.1, **more):
    """Return canvases of noise, of which the first third have a cross at some place."""
    rng = np.random.default_rng(seed)
    (H, W), (h, w) = windows.canvas, windows.size
    cross = np.zeros((h, w))
    cross[h // 2], cross[:, w // 2] = 1.0, 1.0
    x = noise * rng.random((n, H, W))
    y = (np.arange(n) < n // 3).astype(np.uint8)
    places = rng.integers(0, windows.positions, n)
    for i in range(n):
        top, left = windows.corners(places[i])
        x[i, top : top + h, left : left + w] += cross if y[i] else cross.max(axis=0) - cross
    made = dataset(x.reshape(n, -1), y, 2)
    return replace(made, structure="latent", windows=windows, places=places, **more)


def latent_oracle(data, **options):
    costs = {"name": "latent", "kind": "latent", "cost_call": COST_CALL, "cost_plane": COST_PLANE}
    return latent.build(latent.Config(**costs, **{"bias": 0.5, "start": "centre", **options}), data)
