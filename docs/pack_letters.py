"""Pack the OCR letters for the package: ``python docs/pack_letters.py letter.data.gz``.

It writes ``ssvm_bench/datasets/on_board/letters.gz``, and prints what `[ocr]` in ``sources.toml``
says of it. :func:`ssvm_bench.datasets.ocr.restore` unpacks it. Letters of one kind stand together,
since they resemble each other: the file is a tenth smaller than in the order of the words.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

from ssvm_bench.datasets import ocr


def packed(words: dict[str, np.ndarray]) -> bytes:
    """Return what `ocr.restore` turns into these arrays, as a gzip file without a date."""
    letters = [ocr.ALPHABET[label] for label in words["y"]]
    lines = (
        f"{fold} {''.join(letters[begin:end])}"
        for fold, (begin, end) in zip(words["fold"], pairwise(words["offsets"]), strict=True)
    )
    by_label = np.argsort(words["y"], kind="stable")
    bits = np.packbits(words["x"][by_label], axis=1)
    return gzip.compress("\n".join(lines).encode() + b"\n\n" + bits.tobytes(), mtime=0)


def main(letters: Path) -> None:
    """Pack a file of letters, if it is genuine."""
    ocr.RAW.check(letters)
    content = packed(ocr.parse(letters.read_bytes()))
    assert ocr.RAW.on_board is not None
    ocr.RAW.on_board.write_bytes(content)
    print(f'packed_sha256 = "{hashlib.sha256(content).hexdigest()}"')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
