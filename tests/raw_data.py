"""Raw files of datasets, made up for tests."""

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace

import numpy as np
from PIL import Image

from ssvm_bench.datasets import landmarks as faces
from ssvm_bench.datasets import plates

SENTENCES = [
    [("the", "DT", "B-NP"), ("cat", "NN", "I-NP"), ("sat", "VBD", "B-VP")],
    [("on", "IN", "B-PP"), ("the", "DT", "B-NP"), ("mat", "NN", "I-NP"), (".", ".", "O")],
    [("sat", "VBD", "O")],
]
TEXT = "\n\n".join("\n".join(" ".join(row) for row in each) for each in SENTENCES) + "\n"


def packed(path, members, mode="w:gz"):
    """Write an archive of files (name → content) in the given order; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def put_files(folder, monkeypatch, module, contents, n):
    """Put the files of a dataset into a data folder, as if they were the genuine ones.

    There are n examples to train on. Return the folder of the files.
    """
    place, known = folder / module.RAW.dataset, {}
    place.mkdir(exist_ok=True)
    for name, raw in zip(module.RAW.sha256, contents, strict=True):
        (place / name).write_bytes(gzip.compress(raw))
        known[name] = hashlib.sha256(raw).hexdigest()
    monkeypatch.setenv("SSVM_BENCH_DATA", str(folder))
    monkeypatch.setattr(module, "RAW", replace(module.RAW, n=n, sha256=known))
    return place


def written(tmp_path, content, name="data"):
    """Write a file, and return its path."""
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def plate_folder(folder, segments=("a@0 b@2", "c@0", "b@0 b@1 b@2"), widths="a,2\nb,1\nc,3\n"):
    """Make a folder of images of licence plates; return its config."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    for k in range(len(segments)):
        Image.fromarray(rng.integers(0, 256, (4, 3), np.uint8)).save(folder / f"{k}.png")
    splits = zip(("train", "train", "test"), segments, strict=True)
    rows = [f"{k}.png,{split},{text}" for k, (split, text) in enumerate(splits)]
    (folder / "segmentations.csv").write_text("image,split,segments\n" + "\n".join(rows) + "\n")
    (folder / "widths.csv").write_text(f"character,width\n{widths}")
    return plates.Config("plates", "plates", path=folder)


def face_folder(folder, m=6, move=0, size=(40, 40)):
    """Make a folder of faces with landmarks; the last image may differ. Return its config."""
    folder.mkdir()
    pixels, positions = faces.draw(m, np.random.PCG64(2))
    rows = [",".join(("image", "split", *faces.COLUMNS))]
    for k in range(m):
        image, last = Image.fromarray(pixels[k]), k == m - 1
        (image.resize(size) if last else image).save(folder / f"{k}.png")
        at = (f"{column},{row}" for row, column in positions[k] + move * last)
        rows.append(",".join((f"{k}.png", "test" if last else "train", *at)))
    (folder / "landmarks.csv").write_text("\n".join(rows) + "\n")
    return faces.Config("landmarks", "landmarks", path=folder, margin=12)
