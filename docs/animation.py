"""Make an animated GIF of a sequence with the masks that runs found, one beside the other.

    python docs/animation.py OUT.gif RUN [RUN …]

A RUN is the folder of a finished run on ``davis_bmx_trees`` or ``davis_car_shadow``, as
``results/runs/davis_car_shadow/dcadmm/…/seed=0``. Frames are made smaller: 320 pixels wide.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from ssvm_bench.config import registry
from ssvm_bench.papers.transduction.figures import covered
from ssvm_bench.results.trace import read_labels, read_metadata

WIDTH, DURATION, COLOURS = 320, 100, 64
"""Pixels, milliseconds of a frame, and colours: what keeps the file small."""


def main(out: Path, *runs: Path) -> None:
    """Write the animation."""
    config = read_metadata(runs[0])["config"]["dataset"]
    module = registry.module("dataset", config["kind"])
    data = module.load(registry.config("dataset", config))
    found = [read_labels(run, data.n, data.n_labels)[0] for run in runs]
    pictures, raw = module.RAW.pictures(data.source), module.RAW
    frames = []
    for number in range(int(data.frame[-1]) + 1):
        points = np.flatnonzero(data.frame == number)
        (segments,) = raw.segments(data.source, [number])
        rgb = pictures[number].rgb
        shown = [covered(rgb, y[points][segments] == 1) for y in found]
        frame = Image.fromarray((255 * np.concatenate(shown, axis=1)).astype(np.uint8))
        height = round(frame.height * WIDTH * len(runs) / frame.width)
        frame = frame.resize((WIDTH * len(runs), height))
        frames.append(frame.quantize(COLOURS))
    frames[0].save(out, save_all=True, append_images=frames[1:], duration=DURATION, loop=0)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
