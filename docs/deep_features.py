"""Features of superpixels from a network, for dataset.features=FILE.npz.

    pip install torch torchvision
    python docs/deep_features.py davis_car_shadow car.npz
    ssvm-bench run solver=dcadmm solver.start=inductive dataset=davis_car_shadow dataset.features=car.npz
    python docs/deep_features.py weizmann horses.npz --pictures 0 5 17
    ssvm-bench run solver=dcadmm solver.start=inductive dataset=scribbles dataset.features=horses.npz

The network is a ResNet of torchvision, or with ``--network FILE`` the one that trained_network.py
has trained. The feature of a superpixel is the mean over its pixels of the maps of the stages of
the network, each brought to the size of the picture and to the unit norm at every pixel.
"""  # noqa: E501

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse

from ssvm_bench.datasets.sources import raw_file

STAGES = ("layer1", "layer2", "layer3")
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

Maps = Callable[[np.ndarray], list[np.ndarray]]
"""From a picture, uint8 of shape (h, w, 3), to maps of any size, (h', w', c)."""


def resnet() -> Maps:
    """Return what makes maps with the ResNet of torchvision."""
    import torch
    import torchvision

    network = torchvision.models.resnet50(weights="DEFAULT").eval()
    found: dict[str, torch.Tensor] = {}
    for stage in STAGES:
        getattr(network, stage).register_forward_hook(
            lambda _, __, out, stage=stage: found.__setitem__(stage, out)
        )

    def maps(rgb: np.ndarray) -> list[np.ndarray]:
        tensor = torch.from_numpy(rgb).float().permute(2, 0, 1) / 255
        with torch.no_grad():
            network(torchvision.transforms.functional.normalize(tensor, MEAN, DEVIATION)[None])
        return [found[stage][0].permute(1, 2, 0).numpy() for stage in STAGES]

    return maps


def between(n: int, k: int) -> np.ndarray:
    """Return what takes k points to n ones on the same line, linearly: shape (n, k)."""
    at = (np.arange(n) + 0.5) * k / n - 0.5
    return np.array([np.interp(at, np.arange(k), one) for one in np.eye(k)], np.float32).T


def pooled(maps: list[np.ndarray], segments: np.ndarray) -> np.ndarray:
    """Return the features of the superpixels of a picture.

    Parameters
    ----------
    maps : list of ndarrays of float32, shape (h', w', c)
        The maps of the network.
    segments : ndarray of int, shape (h, w)
        The superpixel of every pixel, 0 … m − 1.

    Returns
    -------
    ndarray of float32, shape (m, Σ c)
    """
    h, w = segments.shape
    size = np.bincount(segments.ravel())
    features = []
    for map in maps:
        rows, columns = between(h, len(map)), between(w, map.shape[1])
        sums = np.zeros((size.size, map.shape[2]), np.float32)
        for row, of in zip(rows, segments, strict=True):  # the whole map would fill the memory
            pixels = columns @ np.tensordot(row, map, 1)
            pixels /= np.maximum(np.linalg.norm(pixels, axis=1, keepdims=True), 1e-12)
            here, column = np.unique(of, return_inverse=True)
            member = scipy.sparse.csr_array((np.ones(w, np.float32), (column, np.arange(w))))
            sums[here] += member @ pixels
        features.append(sums / size[:, None])
    return np.hstack(features).astype(np.float32)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", help="weizmann, stanford, davis_bmx_trees, davis_car_shadow")
    parser.add_argument("file", help="the .npz file to write")
    parser.add_argument("--network", type=Path, help="the weights that trained_network.py wrote")
    parser.add_argument("--pictures", type=int, nargs="+", help="which; by default all")
    parser.add_argument("--source", default="real", choices=("real", "synthetic"))
    chosen = parser.parse_args()

    if chosen.network is None:
        maps = resnet()
    else:
        import trained_network

        maps = trained_network.reader(chosen.network)
    raw = raw_file(chosen.dataset)
    pictures = raw.pictures(chosen.source)
    numbers = chosen.pictures or range(len(pictures))
    found: dict[str, list[np.ndarray]] = {"picture": [], "superpixel": [], "features": []}
    for i, segments in zip(numbers, raw.segments(chosen.source, numbers), strict=True):
        features = pooled(maps(pictures[i].rgb), segments)
        found["picture"].append(np.full(len(features), i))
        found["superpixel"].append(np.arange(len(features)))
        found["features"].append(features)
        print(f"picture {i}: {len(features)} superpixels")
    np.savez(chosen.file, **{name: np.concatenate(pieces) for name, pieces in found.items()})


if __name__ == "__main__":
    main()
