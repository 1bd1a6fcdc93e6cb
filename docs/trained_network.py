"""Train a small network on the masks of Weizmann and Stanford, for features of superpixels.

    pip install '.[images,network]'
    python docs/trained_network.py network.npz  # a quarter of an hour of a core
    python docs/deep_features.py davis_car_shadow car.npz --network network.npz

It is a U-Net: four levels, of 1/2 to 1/16 of the picture's size, and back up, with residual blocks
and channels normed in groups. Two heads give each pixel of the finest level a label: horse or
ground, and one of Stanford's eight classes. The loss is their cross-entropy over crops that are
scaled, mirrored and coloured at random. Every 20th picture is held out, among them all that
`dcadmm_scribbles` has; no video is seen. The same seed gives the same weights on one machine.

References
----------
O. Ronneberger, P. Fischer, T. Brox: U-Net. MICCAI 2015. K. He et al.: Identity mappings in deep
residual networks. ECCV 2016. Y. Wu, K. He: Group normalization. ECCV 2018.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ssvm_bench.datasets.images.pictures import Picture
from ssvm_bench.datasets.sources import raw_file

HEADS = {"weizmann": 2, "stanford": 8}
"""Labels of each dataset; what is beyond them is unknown."""

HELD_OUT = 20
WIDTHS = (16, 48, 96, 192)
DILATIONS = (1, 2, 4)  # of the blocks of the coarsest level
GROUP = 8  # channels that are normed together
COARSEST = 2 ** len(WIDTHS)
SIDE, BATCH = 128, 8  # of a crop, in pixels; crops of each dataset in a step
SHORT = 240  # pixels of the short side of a picture whose maps are read
SHOWN = (320, 240)  # width and height of a picture that is held out
RATE, DECAY = 2e-3, 5e-2
REPORT = 250  # steps

Weights = dict[str, list[jax.Array]]


def initial(seed: int) -> Weights:
    """Return random weights (He et al., 2015), of which every block begins as the identity."""
    keys = iter(jax.random.split(jax.random.key(seed), 99))

    def kernel(size: int, inputs: int, outputs: int) -> jax.Array:
        scale = (2 / (size**2 * inputs)) ** 0.5
        return scale * jax.random.normal(next(keys), (size, size, inputs, outputs))

    blocks = (*WIDTHS[:-1], *(WIDTHS[-1] for _ in DILATIONS), *WIDTHS[-2::-1])
    return {
        "down": [kernel(3, *pair) for pair in zip((3, *WIDTHS), WIDTHS, strict=False)],
        "up": [kernel(1, *pair) for pair in zip(WIDTHS[1:], WIDTHS, strict=False)],
        "first": [kernel(3, width, width) for width in blocks],
        "second": [jnp.zeros((3, 3, width, width)) for width in blocks],
        "shift": [jnp.zeros(width) for width in blocks],
        "heads": [kernel(1, WIDTHS[0], labels) / 4 for labels in HEADS.values()],
    }


def convolved(x: jax.Array, kernel: jax.Array, stride: int = 1, dilation: int = 1) -> jax.Array:
    """Return a convolution of maps (n, h, w, c), of the same size or 1/stride of it."""
    return jax.lax.conv_general_dilated(
        *(x, kernel, (stride, stride), "SAME"),
        rhs_dilation=(dilation, dilation),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def normed(x: jax.Array) -> jax.Array:
    """Return maps with mean 0 and variance 1 over each picture and group of channels."""
    groups = x.reshape(*x.shape[:3], -1, GROUP)
    mean = groups.mean((1, 2, 4), keepdims=True)
    variance = groups.var((1, 2, 4), keepdims=True)
    return ((groups - mean) / jnp.sqrt(variance + 1e-5)).reshape(x.shape)


def maps(weights: Weights, rgb: jax.Array) -> list[jax.Array]:
    """Return the maps of the coarsest to the finest level.

    Parameters
    ----------
    weights
        See `initial`.
    rgb : array of uint8, shape (n, h, w, 3)
        Pictures, h and w multiples of 16.
    """
    blocks = iter(zip(weights["first"], weights["second"], weights["shift"], strict=True))

    def block(x: jax.Array, dilation: int = 1) -> jax.Array:
        first, second, shift = next(blocks)
        inner = convolved(jax.nn.relu(normed(x)), first, dilation=dilation)
        return x + convolved(jax.nn.relu(normed(inner) + shift), second, dilation=dilation)

    x = rgb / 127.5 - 1
    down = []
    for level, kernel in enumerate(weights["down"]):
        x = convolved(x, kernel, stride=2)
        for dilation in DILATIONS if level == len(WIDTHS) - 1 else (1,):
            x = block(x, dilation)
        down.append(x)
    up = [down.pop()]
    for kernel in weights["up"][::-1]:
        skipped = down.pop()
        coarse = convolved(normed(up[-1]), kernel)
        up.append(block(skipped + jax.image.resize(coarse, skipped.shape, "bilinear")))
    return [jax.nn.relu(normed(x)) for x in up]


def loss(weights: Weights, rgb: jax.Array, truth: jax.Array) -> jax.Array:
    """Return the mean cross-entropy of the known cells, the mean over datasets.

    Parameters
    ----------
    weights
        See `initial`.
    rgb : array of uint8, shape (2, n, h, w, 3)
        Crops of each dataset.
    truth : array of uint8, shape (2, n, h/2, w/2)
        Their labels.
    """
    finest = maps(weights, rgb.reshape(-1, *rgb.shape[2:]))[-1]
    losses = []
    for x, y, head in zip(jnp.split(finest, len(HEADS)), truth, weights["heads"], strict=True):
        known = y < head.shape[-1]
        scores = convolved(x, head)
        each = optax.softmax_cross_entropy_with_integer_labels(scores, jnp.where(known, y, 0))
        losses.append((each * known).sum() / known.sum())
    return jnp.stack(losses).mean()


def crop(picture: Picture, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a piece of a picture, SIDE × SIDE, and the labels of its cells of 2 × 2 pixels."""
    sizes = picture.truth.shape
    part = rng.uniform(0.4, 1) * min(sizes) * rng.uniform(0.8, 1.25, 2)
    h, w = np.minimum(part, sizes).astype(int)
    top, left = rng.integers(sizes[0] - h + 1), rng.integers(sizes[1] - w + 1)
    rgb, truth = (of[top : top + h, left : left + w] for of in picture)
    if rng.random() < 0.5:
        rgb, truth = rgb[:, ::-1], truth[:, ::-1]
    method = cv2.INTER_AREA if h > SIDE else cv2.INTER_LINEAR
    rgb = cv2.resize(np.ascontiguousarray(rgb), (SIDE, SIDE), interpolation=method)
    half = (SIDE // 2, SIDE // 2)
    truth = cv2.resize(np.ascontiguousarray(truth), half, interpolation=cv2.INTER_NEAREST)
    grey = rgb.mean(axis=2, keepdims=True)
    colours = grey + rng.uniform(0.3, 1.3) * (rgb - grey)
    contrast, light = rng.uniform(0.6, 1.4, 3 if rng.random() < 0.5 else 1), rng.uniform(-40, 40)
    return np.clip((colours - 128) * contrast + 128 + light, 0, 255).astype(np.uint8), truth


def overlaps(weights: Weights, head: int, pictures: list[Picture]) -> np.ndarray:
    """Return the intersection over union of each label of a head, in pixels of all pictures."""
    labels = weights["heads"][head].shape[-1]
    met = np.zeros((labels, labels), int)  # true label, found label
    for rgb, truth in pictures:
        finest = mapped(weights, cv2.resize(rgb, SHOWN, interpolation=cv2.INTER_AREA)[None])[-1]
        scores = np.asarray(convolved(finest, weights["heads"][head])[0])
        found = cv2.resize(scores, truth.shape[::-1]).argmax(axis=2)
        known = truth < labels
        np.add.at(met, (truth[known], found[known]), 1)
    return np.diag(met) / (met.sum(axis=0) + met.sum(axis=1) - np.diag(met))


mapped = jax.jit(maps)


def train(steps: int, seed: int, keep: Callable[[Weights], None]) -> None:
    """Take so many steps of AdamW, whose rate rises, and falls to 0 as a cosine."""
    rng = np.random.default_rng(seed)
    weights = initial(seed)
    keep(weights)  # of no step, to compare with
    rate = optax.warmup_cosine_decay_schedule(0, RATE, steps // 20, max(steps, 1))
    method = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=DECAY))

    @jax.jit
    def step(weights, state, rgb, truth):
        value, gradient = jax.value_and_grad(loss)(weights, rgb, truth)
        change, state = method.update(gradient, state, weights)
        return optax.apply_updates(weights, change), state, value

    sets = [list(raw_file(name).pictures("real")) for name in HEADS]
    taught = [[each for i, each in enumerate(found) if i % HELD_OUT] for found in sets]
    state, values, began = method.init(weights), [], time.process_time()
    for done in range(1, steps + 1):
        chosen = [[found[i] for i in rng.integers(len(found), size=BATCH)] for found in taught]
        crops = [[crop(picture, rng) for picture in found] for found in chosen]
        rgb, truth = (np.array([[each[k] for each in found] for found in crops]) for k in (0, 1))
        weights, state, value = step(weights, state, rgb, truth)
        values.append(float(value))
        if done % REPORT == 0 or done == steps:
            keep(weights)
            spent = time.process_time() - began
            print(f"step {done}: loss {np.mean(values[-REPORT:]):.3f}, {spent:.0f} s of a core")
            for head, (name, found) in enumerate(zip(HEADS, sets, strict=True)):
                shares = 100 * overlaps(weights, head, found[::HELD_OUT])
                print(f"  IoU of {name}, held out: {np.round(shares, 1)} %", flush=True)


def reader(path: Path) -> Callable[[np.ndarray], list[np.ndarray]]:
    """Return what makes the maps of a picture with the weights of a file, coarsest first.

    The picture is brought to the size of those that were trained on: SHORT pixels at its short
    side, and multiples of the coarsest cell.
    """
    structure = jax.tree.structure(initial(0))
    with np.load(path) as kept:
        weights = jax.tree.unflatten(structure, list(kept.values()))

    def read(rgb: np.ndarray) -> list[np.ndarray]:
        scale = SHORT / min(rgb.shape[:2])
        size = [round(n * scale / COARSEST) * COARSEST for n in rgb.shape[1::-1]]
        fitted = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA)
        return [np.asarray(found[0]) for found in mapped(weights, fitted[None])]

    return read


def main() -> None:
    """Write the weights, and print loss and overlaps on the way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="the .npz file to write")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()

    def keep(weights: Weights) -> None:
        np.savez(chosen.file, *jax.tree.leaves(weights))

    train(chosen.steps, chosen.seed, keep)


if __name__ == "__main__":
    main()
