"""Deformed images: against scipy's interpolation, and what must not depend on how they are made."""

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.random import unit, words_at
from ssvm_bench.datasets.base import Images
from ssvm_bench.datasets.export import Jitter, deformed

IMAGES = Images((9, 7), background=-1.0)  # an odd number of pixels, and no multiple of four
N = 5
ALL = Jitter(shift=2, rotation=30, elastic=0.8, sigma=1.5)


def pictures(n=N, dtype=np.float64):
    """Return random images of numbers in −1 … 1, or of integers in −100 … 100."""
    numbers = np.random.default_rng(0).uniform(-1, 1, (n, 63))
    return numbers if dtype == np.float64 else np.rint(100 * numbers).astype(dtype)


def made(images, jitter, t=None, seed=0):
    t = np.arange(len(images)) if t is None else np.asarray(t)
    return deformed(images, IMAGES, IMAGES.background, jitter, t, seed)


def test_words_lie_where_they_would_have_been_drawn():
    stream = np.random.PCG64(3).random_raw(60)
    places = np.array([40, 0, 7, 7])
    found = words_at(places, 5, np.random.PCG64(3))
    assert np.array_equal(found, [stream[place : place + 5] for place in places])


def by_scipy(image, t, jitter, seed=0):
    """Return an image deformed by the formulas of the module's docstring."""
    (height, width), half = IMAGES.cell, 32
    words = words_at(np.array([t * (4 + half)]), 4 + half, np.random.PCG64([seed, 1]))[0]
    down, right, turn = 2 * unit(words[:3]) - 1
    angle = np.deg2rad(jitter.rotation * turn)
    noise = (words[4:].view(np.uint16)[: 2 * 63].astype(float) - 32767.5) / 32768 * np.sqrt(3)

    def smoothing(size):
        rows = np.exp(-((np.subtract.outer(*[np.arange(size)] * 2) / jitter.sigma) ** 2) / 2)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    field = jitter.elastic * np.stack(
        [smoothing(height) @ n @ smoothing(width).T for n in noise.reshape(2, height, width)]
    )
    r, c = np.indices((height, width)) - np.array([4, 3]).reshape(2, 1, 1)
    at = np.stack([np.cos(angle) * r - np.sin(angle) * c, np.sin(angle) * r + np.cos(angle) * c])
    at += np.array([4 - jitter.shift * down, 3 - jitter.shift * right]).reshape(2, 1, 1) + field
    image = image.reshape(height, width)
    return map_coordinates(image, at, order=1, mode="grid-constant", cval=-1.0).ravel()


@pytest.mark.parametrize(
    "jitter",
    [Jitter(shift=2), Jitter(rotation=60), Jitter(elastic=1.2), Jitter(elastic=1, sigma=0.7), ALL],
)
def test_images_are_interpolated_where_the_formulas_say(jitter):
    images = pictures()
    expected = [by_scipy(image, t, jitter) for t, image in enumerate(images)]
    # the elastic field is summed in single precision
    assert np.allclose(made(images, jitter), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.int16])
def test_strength_0_changes_nothing(dtype):
    images = pictures(dtype=dtype)
    found = made(images, Jitter())
    assert found.dtype == images.dtype
    assert np.array_equal(found, images)
    assert not np.array_equal(made(images, ALL), images)


def test_integers_are_rounded_and_stay_in_their_range():
    images = pictures(dtype=np.int16)
    found, exact = (
        deformed(of, IMAGES, -100.0, ALL, np.arange(N), 0) for of in (images, images.astype(float))
    )
    assert found.dtype == np.int16
    assert np.array_equal(found, np.floor(exact + 0.5))
    assert -100 <= found.min() <= found.max() <= images.max()


def test_a_deformation_depends_on_its_number_and_the_seed_alone():
    images, order = pictures(), np.array([3, 0, 4])
    together = made(images, ALL)
    assert np.array_equal(made(images[order], ALL, order), together[order])
    assert not np.array_equal(made(images, ALL, seed=1), together)
    same = np.repeat(images[:1], 40, axis=0)
    assert len(np.unique(made(same, ALL), axis=0)) == 40
    assert np.array_equal(made(same[:1], ALL, [39]), made(same, ALL)[39:])


def test_strengths_are_in_pixels():
    """On a ramp, an interpolated value tells where it comes from."""
    side, m = 28, 300
    ramp = np.tile(np.arange(side, dtype=float), (m, side, 1)).reshape(m, -1)
    big, inner = Images((side, side), 0.0), (slice(None), slice(9, 19), slice(9, 19))

    def moved(jitter):
        found = deformed(ramp, big, 0.0, jitter, np.arange(m), 0)
        return (found - ramp).reshape(m, side, side)[inner]

    elastic = moved(Jitter(elastic=1.4))
    assert abs(elastic.std() - 1.4) < 0.1  # of 300 fields, each of a few independent bumps
    assert abs(elastic.mean()) < 0.1
    beside = np.corrcoef(elastic[:, 4, 4], elastic[:, 5, 4])[0, 1]
    # of two Gaussians one pixel apart, exp(−1/4σ²)
    assert abs(beside - np.exp(-1 / 64)) < 0.02
    shift = moved(Jitter(shift=3))
    assert np.ptp(shift, axis=(1, 2)).max() < 1e-12
    assert 2.9 < np.abs(shift).max() <= 3


def test_what_strengths_can_be():
    assert Jitter.read("shift=1, rotation=10,elastic=1.4") == Jitter(1.0, 10.0, 1.4)
    assert Jitter.read("sigma=2") == Jitter(sigma=2.0)
    for text, message in (
        *(("shft=1", r"Did you mean shift\?"), ("", "--jitter has no ''")),
        ("shift", "write the strength as a number, as in shift=1"),
        ("shift=much", "write the strength as a number"),
        *(("shift=-1", "--jitter.shift must be ≥ 0"), ("elastic=nan", "--jitter.elastic")),
        ("sigma=0", "--jitter.sigma must be a positive number"),
    ):
        with pytest.raises(ConfigError, match=message):
            Jitter.read(text)
