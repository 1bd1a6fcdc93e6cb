"""What runs of transduction found in pictures: masks, and their overlap with the true ones.

===========  ====================================================================================
masks        pictures, or frames that the paper shows, with the masks that each method found
frames       IoU of each frame of a sequence, for each method
overlap      a table: mean IoU of each method, over pictures or frames
===========  ====================================================================================

Masks are in no trace: they are drawn where the runs themselves are at hand. The paper prints no
numbers of these experiments, only pictures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import GENUINE, registry, typed
from ssvm_bench.config.experiment import Choices
from ssvm_bench.figures import style
from ssvm_bench.figures.document import Cells, Table, table_of
from ssvm_bench.figures.kind import PHOTOGRAPHS, FigureData, Kind, Output
from ssvm_bench.papers.cases import Case
from ssvm_bench.papers.transduction.claims import DRAWS, PROPOSED
from ssvm_bench.papers.transduction.datasets.points import Points
from ssvm_bench.papers.transduction.datasets.scenes import Scene
from ssvm_bench.papers.transduction.errors import COSTS, of_draws
from ssvm_bench.papers.transduction.measures import overlap as iou_of
from ssvm_bench.papers.transduction.oracles.transduction import overlap_of
from ssvm_bench.results.reading import is_finished, read_labels
from ssvm_bench.results.trace import Trace
from ssvm_bench.results.words import percent

FRAMES = {"davis_bmx_trees": (5, 15, 60, 68, 79), "davis_car_shadow": (3, 39)}
"""Sequence → the frames that the paper shows; its frame 84 is none of DAVIS 2016, which has 80."""

MOST_PICTURES = 4
"""Rows of a figure of pictures."""

ORDER = ("kernel_kmeans", "inductive", PROPOSED)
"""Methods, in the order in which they are drawn; what the paper proposes is the last."""


class Found(NamedTuple):
    """Labels that a run found, and the points that they are of."""

    data: Points
    module: ModuleType
    config: Any
    y: np.ndarray


def _of_pictures(traces: Sequence[Trace]) -> list[Case]:
    return of_draws([run for run in traces if "iou" in run.frame])


def _methods(case: Case) -> list[str]:
    """Return the curves of a case, in the order in which they are drawn."""
    names = {label: label.split(" ")[0] for label in case.runs}
    return sorted(names, key=lambda label: (ORDER.index(names[label]), _numbers(label), label))


def _numbers(label: str) -> list[float]:
    """Return the numbers in a label, to sort by."""
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", label)]


def _found(run: Trace) -> Found | None:
    """Return what a run found, if it is at hand and the points are still these."""
    # with nothing to draw, the pictures need not be there, either
    if run.is_cut or not is_finished(run.folder):
        return None
    module, made, data = _loaded(json.dumps(run.metadata["config"]["dataset"]))
    if data.fingerprint != run.metadata["dataset"]["fingerprint"]:
        return None
    try:
        return Found(data, module, made, read_labels(run.folder, data.n, data.n_labels)[0])
    except RunFailedError:
        return None


@lru_cache(maxsize=1)  # the runs on one dataset come one after the other
def _loaded(options: str) -> tuple[ModuleType, Any, Points]:
    """Return a dataset's module, its options and the dataset, given the options as JSON."""
    config = json.loads(options)
    module = registry.module("dataset", config["kind"])
    made: Any = typed.convert(module.Config, config, "dataset")
    return module, made, module.load(made)


# ---- masks ------------------------------------------------------------------------------------


def _draw_masks(data: FigureData) -> Iterator[Output]:
    """Yield the masks of each case whose runs are at hand."""
    from ssvm_bench.papers.transduction import masks

    for case in _of_pictures(data.traces):
        methods, rows, numbers = _methods(case), [], []
        for number, runs in _shown(case, methods):
            of = [_found(run) for run in runs]
            if any(found is None for found in of):
                continue
            found = [each for each in of if each is not None]
            first = found[0]
            scene = first.module.scene(replace(first.config, source=first.data.source), number)
            masks_of = [("truth", scene.picture.truth == 1)]
            for label, each in zip(methods, found, strict=True):
                share = _iou(scene, each.y)
                title = f"{style.solver_label(label)}: IoU {percent(share)}"
                masks_of.append((title, each.y[scene.points][scene.segments] == 1))
                numbers.append((number, label, share))
            rows.append(masks.Row(scene.title, scene.picture.rgb, scene.scribbles, masks_of))
        if rows:
            table = pd.DataFrame(numbers, columns=["picture", "solver", "iou"])
            name = f"masks_{_name(case)}"
            notes = [style.source_name(case.source)] * (case.source not in GENUINE)
            figure = masks.draw(rows, data.title, notes)
            yield Output(name, table, figure=figure, formats=PHOTOGRAPHS)


def _shown(case: Case, methods: Sequence[str]) -> Iterator[tuple[int, list[Trace]]]:
    """Yield the pictures that are drawn, and the run of each method on it."""
    common = sorted(set.intersection(*(set(case.runs[label]) for label in methods)))
    if case.dataset in DRAWS:  # runs of a picture each
        for picture in common[:MOST_PICTURES]:
            yield picture, [case.runs[label][picture] for label in methods]
        return
    for seed in common[:1]:
        runs = [case.runs[label][seed] for label in methods]
        n_frames = _n_frames(runs[0])
        for frame in FRAMES.get(case.dataset, ()):
            if frame < n_frames:
                yield frame, runs


def _n_frames(run: Trace) -> int:
    found = _found(run)
    return 0 if found is None or found.data.frame is None else int(found.data.frame[-1]) + 1


def _iou(scene: Scene, y: np.ndarray) -> float:
    """Return the IoU of the mask of one picture."""
    mask, truth = y[scene.points][scene.segments] == 1, scene.picture.truth == 1
    union = np.count_nonzero(mask | truth)
    return np.count_nonzero(mask & truth) / union if union else 1.0


def _name(case: Case) -> str:
    """Return what tells a case in the name of a file."""
    config: Any = next(case.traces()).metadata["config"]["dataset"]
    return "_".join(filter(None, (case.dataset, config.get("pictures"))))


# ---- frames -----------------------------------------------------------------------------------


def _draw_frames(data: FigureData) -> Iterator[Output]:
    """Yield the IoU of the frames of each sequence whose runs are at hand."""
    from ssvm_bench.figures import drawing

    for case in _of_pictures(data.traces):
        if case.dataset in DRAWS:
            continue
        rows = []
        for label in _methods(case):
            found = _found(next(iter(case.runs[label].values())))
            if found is None:
                break
            told = np.where(found.data.labeled, found.data.y.astype(np.int64), -1)
            assert found.data.pixels is not None
            made = overlap_of(found.data.pixels, found.data.frame, told)
            shares = zip(made.counted, made.iou(found.y), strict=True)
            rows += [(label, int(frame), share) for frame, share in shares]
        else:
            table = pd.DataFrame(rows, columns=["solver", "frame", "iou"])
            wide = table.rename(columns={"frame": "x", "iou": "median"})
            lines = style.dashes(wide["solver"])
            curves = wide.assign(min=wide["median"], max=wide["median"], quantity="IoU", repeats=1)
            legend = drawing.legend_of(lines)
            layout = drawing.page(data.title, [], (1, 1), legend)
            with layout as (figure, panels):
                panel = panels[0, 0]
                drawing.draw_panel(panel, curves, lines)
                panel.set(xlabel="frame", ylabel="IoU", ylim=(0, 1))
                panel.set_title(style.dataset_name(case.dataset), loc="left", fontweight="bold")
            yield Output(f"frames_{_name(case)}", table, figure=figure)


# ---- the table --------------------------------------------------------------------------------

READING = (
    "Intersection over union of the figure, in pixels, at the end of each run: of single pictures "
    "the mean ± standard deviation over them, and the least; of a sequence the mean over its "
    "frames but the first. The objective is that of the labels and the classifier at the end, a "
    "mean; seconds and iterations are medians. The features are those of the project: visual "
    "words of gradients and colours. The paper has those of a deep network, and prints pictures, "
    "no numbers."
)


def overlaps(traces: Sequence[Trace]) -> pd.DataFrame:
    """Return the IoU of each method on each set of pictures."""
    rows = []
    for case in _of_pictures(traces):
        for label in _methods(case):
            runs = list(case.runs[label].values())
            found = np.array([iou_of(run) for run in runs])
            ends = pd.concat([run.frame.iloc[[-1]] for run in runs])
            rows.append(
                {
                    "data": _name(case),
                    "source": case.source,
                    "solver": label,
                    "runs": len(runs),
                    "iou": found.mean(),
                    "deviation": found.std(),
                    "min": found.min(),
                    "wrong": 1.0 - ends["accuracy"].mean(),
                    "objective": ends["primal"].mean(),
                    "iterations": ends["iteration"].median(),
                    "seconds": ends["time"].median(),
                }
            )
    return pd.DataFrame(rows)


def _spread(row: Mapping[Any, Any]) -> str:
    alone = percent(row["iou"])
    return f"{alone} ± {percent(row['deviation'])}" if row["runs"] > 1 else alone


CELLS: Cells = {
    "data": lambda row: row["data"].replace("_", " "),
    "method": lambda row: style.solver_label(row["solver"]),
    "runs": lambda row: f"{row['runs']}",
    "IoU": _spread,
    "least": lambda row: percent(row["min"]),
    "wrong superpixels": lambda row: percent(row["wrong"]),
    "objective": lambda row: f"{row['objective']:.4g}",
    **COSTS,
}


def tables(table: pd.DataFrame) -> Iterator[Table]:
    """Yield the table of overlaps."""
    yield table_of("Overlap with the true masks", CELLS, table.to_dict("records"), 2)


# ---- the kind of figure -----------------------------------------------------------------------

MASKS, OF_FRAMES, OVERLAP = "masks", "frames", "overlap"


def _outputs(data: FigureData, names: Sequence[str]) -> Iterator[Output]:
    if MASKS in names:
        yield from _draw_masks(data)
    if OF_FRAMES in names:
        yield from _draw_frames(data)
    if OVERLAP in names:
        table = overlaps(data.traces)
        shown = tables(table) if len(table) else ()
        yield Output("overlap", table, "Overlap with the true masks", [READING, *shown])


KIND = Kind(
    "pictures",
    Choices((MASKS, OF_FRAMES, OVERLAP), "figure", "figures"),
    _outputs,
)
