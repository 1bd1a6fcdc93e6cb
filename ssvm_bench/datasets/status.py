"""Where datasets stand: what a look at the first bytes of their files tells, or at all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ssvm_bench.base.files import opened
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.raw_files import AlteredError, RawFile
from ssvm_bench.datasets.reading import ContentError

HEAD = 512  # bytes of a file by which its format is recognised


@dataclass(frozen=True)
class DatasetStatus:
    """Where a dataset's raw file stands.

    Attributes
    ----------
    name : str
        The dataset.
    state : str
        ``"ready"``, ``"missing"`` or ``"broken"`` (which only a look at its start tells here;
        the content is checked when it is loaded).
    path : Path
        Where the raw data is; the first file that is broken, or missing, where it should be put.
    size : int
        Bytes of all files; 0 if one is missing.
    hint : str
        What to do; empty if there is nothing to do.
    content : str
        Whether what is in the files is genuine; empty if nobody asked.
    kept : Path or None
        Where what has been prepared of the real data (if it is missing: of the stand-in) is kept.
        Whether it was made from the very raw file that is there is seen when it is loaded.
    """

    name: str
    state: str
    path: Path
    size: int
    hint: str
    content: str = ""
    kept: Path | None = None


def status(name: str, verify: bool = False) -> DatasetStatus:
    """Return where a dataset stands, without network and, unless ``verify``, without parsing."""
    raw = sources.raw_file(name)
    path = raw.find()
    if path is None:
        first = raw.first_missing(raw.places()[0])
        hint = f"`ssvm-bench data fetch {name}` downloads it. Or put {raw.missing_names()} there."
        kept = sources.kept_in(raw, "synthetic") if raw.prepared else None
        return DatasetStatus(name, "missing", first, 0, hint, kept=kept)
    size = 0
    for part in raw.parts(path):
        try:
            with opened(part) as file:
                head = file.read(HEAD)
            size += part.stat().st_size
        except (ContentError, OSError) as error:
            hint = f"{error}. {raw.repair()}"
            return DatasetStatus(name, "broken", part, 0, hint)
        if not raw.recognises(head):
            hint = f"Not {raw.format}. {raw.repair()}"
            return DatasetStatus(name, "broken", part, part.stat().st_size, hint)
    kept, hint = sources.kept_in(raw, "real") if raw.prepared else None, ""
    if raw.prepared and kept is None:
        hint = f"Not prepared yet: `ssvm-bench data prepare {name}` does it, or the first run."
    return DatasetStatus(
        name, "ready", path, size, hint, _content(raw, path) if verify else "", kept
    )


def _content(raw: RawFile, path: Path) -> str:
    """Return what a whole look at raw data tells."""
    if not raw.sha256:
        return "unknown, because the genuine file could not be had to tell it by"
    try:
        raw.compare(raw.read(path).sha256)
    except AlteredError as error:
        return f"altered: {error}"
    except (ContentError, OSError) as error:
        return f"broken: {error}"
    return "genuine, by its sha256"
