"""Features of superpixels from a network of torchvision, for dataset.features=FILE.npz.

    pip install torch torchvision
    python docs/deep_features.py davis_car_shadow car.npz
    ssvm-bench run solver=dcadmm solver.start=inductive dataset=davis_car_shadow dataset.features=car.npz
    python docs/deep_features.py weizmann horses.npz --pictures 0 5 17
    ssvm-bench run solver=dcadmm solver.start=inductive dataset=scribbles dataset.features=horses.npz

The feature of a superpixel is the mean over its pixels of the maps of the stages of the network,
each brought to the size of the picture and to the unit norm at every pixel.
"""  # noqa: E501

import argparse

import numpy as np
import torch
import torchvision
from torch.nn.functional import interpolate, normalize

from ssvm_bench.datasets.sources import raw_file

STAGES = ("layer1", "layer2", "layer3")
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", help="weizmann, stanford, davis_bmx_trees, davis_car_shadow")
    parser.add_argument("file", help="the .npz file to write")
    parser.add_argument("--pictures", type=int, nargs="+", help="which; by default all")
    parser.add_argument("--source", default="real", choices=("real", "synthetic"))
    chosen = parser.parse_args()

    network = torchvision.models.resnet50(weights="DEFAULT").eval()
    maps: dict[str, torch.Tensor] = {}
    for stage in STAGES:
        getattr(network, stage).register_forward_hook(
            lambda _, __, out, stage=stage: maps.__setitem__(stage, out)
        )
    raw = raw_file(chosen.dataset)
    pictures = raw.pictures(chosen.source)
    numbers = chosen.pictures or range(len(pictures))
    found: dict[str, list[np.ndarray]] = {"picture": [], "superpixel": [], "features": []}
    for i, segments in zip(numbers, raw.segments(chosen.source, numbers), strict=True):
        rgb = torch.from_numpy(pictures[i].rgb).float().permute(2, 0, 1) / 255
        rgb = torchvision.transforms.functional.normalize(rgb, MEAN, DEVIATION)
        with torch.no_grad():
            network(rgb[None])
        of = torch.from_numpy(segments.astype(np.int64)).ravel()
        count = torch.bincount(of).clamp(min=1)
        means = []
        for stage in STAGES:
            grown = interpolate(maps[stage], size=segments.shape, mode="bilinear")
            pixels = normalize(grown[0].flatten(1), dim=0).T
            sums = torch.zeros(len(count), pixels.shape[1]).index_add_(0, of, pixels)
            means.append(sums / count[:, None])
        found["picture"].append(np.full(len(count), i))
        found["superpixel"].append(np.arange(len(count)))
        found["features"].append(torch.hstack(means).numpy())
        print(f"picture {i}: {len(count)} superpixels")
    np.savez(chosen.file, **{name: np.concatenate(pieces) for name, pieces in found.items()})


if __name__ == "__main__":
    main()
