"""Raw files of datasets, made up for tests."""

import gzip
import hashlib
import io
import tarfile
from dataclasses import replace


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
