"""Features of superpixels from the maps of a network, and the network that docs/ trains."""

import runpy
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
RNG = np.random.default_rng(0)


def test_a_feature_is_the_mean_over_the_pixels_of_a_superpixel_of_maps_of_unit_norm():
    pooled = runpy.run_path(str(DOCS / "deep_features.py"))["pooled"]
    segments = RNG.integers(0, 5, (6, 8))
    maps = [RNG.normal(size=(6, 8, 3)).astype(np.float32) for _ in range(2)]
    found = pooled(maps, segments)
    assert found.dtype == np.float32
    of_pixels = [map / np.linalg.norm(map, axis=2, keepdims=True) for map in maps]
    for k in range(5):
        means = [map[segments == k].mean(axis=0) for map in of_pixels]
        np.testing.assert_allclose(found[k], np.concatenate(means), atol=1e-6)


def test_maps_are_brought_to_the_size_of_the_picture_as_opencv_does_it():
    cv2 = pytest.importorskip("cv2")
    pooled = runpy.run_path(str(DOCS / "deep_features.py"))["pooled"]
    map = RNG.normal(size=(3, 4, 5)).astype(np.float32)
    grown = cv2.resize(map, (8, 6), interpolation=cv2.INTER_LINEAR).reshape(48, 5)
    expected = grown / np.linalg.norm(grown, axis=1, keepdims=True)
    np.testing.assert_allclose(pooled([map], np.arange(48).reshape(6, 8)), expected, atol=1e-5)


def test_the_loss_of_the_network_passes_over_what_is_unknown():
    pytest.importorskip("cv2")
    pytest.importorskip("optax")
    jax = pytest.importorskip("jax")
    network = runpy.run_path(str(DOCS / "trained_network.py"))
    weights = network["initial"](0)
    rgb = RNG.integers(0, 256, (2, 1, 32, 32, 3)).astype(np.uint8)
    truth = np.stack([RNG.integers(0, labels, (1, 16, 16)) for labels in (2, 8)]).astype(np.uint8)
    loss = jax.jit(network["loss"])
    # the head's scores of a label that is told everywhere, by the definition of the loss
    finest = network["maps"](weights, rgb.reshape(2, 32, 32, 3))[-1]
    assert [map.shape[1] for map in network["maps"](weights, rgb[0])] == [2, 4, 8, 16]
    each = []
    truth[1, 0, :4] = 8
    for k, head in enumerate(weights["heads"]):
        scores = np.asarray(finest[k] @ head[0, 0])
        known = truth[k, 0] < head.shape[-1]
        of_truth = np.take_along_axis(scores, np.where(known, truth[k, 0], 0)[..., None], 2)[..., 0]
        each.append((np.log(np.exp(scores).sum(axis=2)) - of_truth)[known].mean())
    np.testing.assert_allclose(loss(weights, rgb, truth), np.mean(each), rtol=1e-4)
