"""The formats of users' files, and how a file's format is recognised: by evidence for it.

===========  =======================================================================================
``npz``      the first bytes are those of a zip archive
``svmlight`` all lines looked at are rows of the format, and one has an ``index:value``
``columns``  all lines have the same number of columns, and nothing speaks for another table
             (:func:`ssvm_bench.datasets.own_files.columns.objection`)
===========  =======================================================================================

The end of a file's name, or an option that only one format has, states the format: the file is then
read as that, or refused. Columns alone need evidence nevertheless, because almost every text can be
read as columns.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ssvm_bench.base.errors import shown
from ssvm_bench.config import FORMATS
from ssvm_bench.datasets.own_files import columns, npz, svmlight
from ssvm_bench.datasets.reading import ContentError, ensure
from ssvm_bench.datasets.vocabulary import BOUNDARIES, check_classes

MODULES: dict[str, Any] = dict(zip(FORMATS, (columns, svmlight, npz), strict=True))
"""Format → the module that reads it."""

_LINES, _BYTES = 1000, 1 << 18
"""Lines that are looked at: so many, or of so many bytes together."""

_USUAL = {"templates": None, "boundary": BOUNDARIES[0], "min_count": 1}
_ZIP = b"PK\x03\x04", b"PK\x05\x06"
_BOM = b"\xef\xbb\xbf"
_OTHERS = {
    b"\x93NUMPY": "a single array: numpy.savez writes several, with names",
    b"PAR1\x15": "a Parquet file: dataset=stream reads those that `ssvm-bench data export` writes",
    b"\x89HDF": "an HDF5 file: write its arrays by numpy.savez",
    b"MATLAB 5.0 MAT-file": "a MATLAB file: write its arrays by numpy.savez",
    **{b"\x80" + bytes([k]): "a pickle, which could run any program" for k in range(2, 6)},
    b"\x1f\x8b": "packed twice by gzip: unpack it once",
    **dict.fromkeys(
        (b"BZh91AY", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"), "packed: use gzip, or unpack it"
    ),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "text in UTF-16: store it in UTF-8"),
}
"""First bytes of files → what they are."""


def text(raw: bytes) -> bytes:
    """Return the bytes of a text without a byte order mark, with lines that end in a newline."""
    if raw.startswith(_ZIP):
        return raw
    raw = raw.removeprefix(_BOM)
    return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in raw else raw


def recognised(path: Path, raw: bytes, stated: str | None = None) -> str:
    """Return the format of a file.

    Parameters
    ----------
    path : Path
    raw : bytes
        Its unpacked content, as `text` returns it.
    stated : str, optional
        The format that options state.

    Raises
    ------
    ContentError
        No format fits. The message names what is nearest, and the first line that speaks against.
    """
    if raw.startswith(_ZIP):
        return npz.FORMAT
    for first, what in _OTHERS.items():
        ensure(not raw.startswith(first), f"it is {what}")
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    named = [name for name, each in MODULES.items() if suffixes[-1:] and suffixes[-1] in each.NAMES]
    stated = stated or next(iter(named), None)
    if stated not in (None, columns.FORMAT):
        return stated
    lines = _head(raw)
    if not any(map(bytes.strip, lines)):
        raise ContentError(
            f"{f'its first {len(lines)} lines are' if raw.strip() else 'the file is'} empty"
        )
    ensure(not any(b"\0" in line for line in lines), "it is no text, and no .npz")
    objections = {
        svmlight.FORMAT: svmlight.objection(lines),
        columns.FORMAT: columns.objection(lines, stated == columns.FORMAT),
    }
    for name, found in objections.items():
        if found is None and stated in (None, name):
            return name
    raise ContentError(_unknown(lines, {k: found for k, found in objections.items() if found}))


def _head(raw: bytes) -> list[bytes]:
    """Return the first lines, whole ones."""
    lines, size = list[bytes](), 0
    for line in io.BytesIO(raw):
        lines.append(line)
        size += len(line)
        if len(lines) == _LINES or size > _BYTES:
            break
    return lines


def begins_as_svmlight(raw: bytes) -> bool:
    """Whether the first line of a file is a row of svmlight, or half of its lines resemble one."""
    lines = _head(raw)
    found = svmlight.objection(lines)
    return found is None or found[0] > _first(lines) or svmlight.resembles(lines)


def _first(lines: Sequence[bytes]) -> int:
    """Return the number of the first line that is not blank, from 1."""
    return next(k for k, line in enumerate(lines, 1) if line.strip())


def _unknown(lines: Sequence[bytes], objections: dict[str, tuple[int, str]]) -> str:
    """Return what speaks against each format that comes near, the nearest one first.

    A format comes near if some lines fit, or resemble its, or if no other one comes nearer.
    """
    first, furthest = _first(lines), max(k for k, _ in objections.values())
    alike = [name for name in (svmlight.FORMAT,) if svmlight.resembles(lines)]
    near = [
        name
        for name in sorted(objections, key=lambda name: (name not in alike, -objections[name][0]))
        if name in alike or objections[name][0] > first or furthest == first
    ]
    said = []
    for name in near:
        k, why = objections[name]
        line = lines[k - 1].strip()[:200].decode(errors="replace")
        said.append(f"{name} (line {k}, {shown(repr(line), 50)}: {why})")
    forced = [name for name in near if _reads(name, lines)]
    advice = f". dataset.format={' or '.join(forced)} would read it as such" if forced else ""
    return f"no format is recognised: not {', and not '.join(said)}{advice}"


def _reads(name: str, lines: Sequence[bytes]) -> bool:
    """Whether a format that is forced upon lines finds labels and features to learn from."""
    module = MODULES[name]
    usual = {"zero_based": svmlight.AUTO} if name == svmlight.FORMAT else _USUAL
    with suppress(ContentError):
        vocabulary, _ = module.learned(module.parse(b"".join(lines)), **usual)
        check_classes(vocabulary.labels)
        return True
    return False
