"""Folders of pictures with a table, damaged or hostile, in little memory.

A folder of plates or of faces is changed at one to three places, and then run. What cannot be used
is told in one message; no content starts a program, and none takes more memory than there is.
"""

import functools
import os
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from ssvm_bench.cli.commands import main
from ssvm_bench.datasets import landmarks
from tests.faults.case import SPOILS, Case, copied, forked, no_one_message

BYTES = 2 << 30
"""Address space that a case may take beside what this process has."""

KINDS = ("plates", "landmarks")
OPTIONS = ("solver=bcfw", "budget.max_iterations=1", "clock=work", "quiet=true")

PROGRAMS = ("gs", "gswin32c", "djpeg", "cwebp", "dwebp", "convert", "inkscape", "rsvg-convert")
"""Programs that a reader of pictures might start; here, each leaves a mark."""

FOREIGN = (
    b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 30 40\n%%EndComments\nshowpage\n%%EOF\n",
    b"%PDF-1.4\n1 0 obj\n<<>>\nendobj\n",
    b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
    b"#define x_width 30\n#define x_height 40\nstatic char x_bits[] = {0};\n",
    b"\xd7\xcd\xc6\x9a" + bytes(40),
    *(b"II*\0" + bytes(40), b"RIFF\x24\0\0\0WEBPVP8 ", b"SIMPLE  =                    T", b""),
)

FIELDS = (
    *("", " ", "0", "-1", "1e9", "nan", "inf", "9" * 5000, "9" * 400, "²", "x" * 200_000, "a,b"),
    *('"', '"\n"', "\0", "\r", "../0.png", "/etc/passwd", "0.png/", ".", "é", "\udcff", "a@0"),
    *("train", "test", "0.png", "=1+1", "<b>", "\x1b[31m", "@", "@@1", "a@" + "9" * 5000),
)


def plates_in(folder: Path) -> Path:
    """Make a folder of plates."""
    folder.mkdir()
    rng, rows = np.random.default_rng(0), ["image,split,segments"]
    for k, text in enumerate(("a@0 b@2", "c@0", "b@0 b@1 b@2", "c@0")):
        Image.fromarray(rng.integers(0, 256, (4, 3), np.uint8)).save(folder / f"{k}.png")
        rows.append(f"{k}.png,{('train', 'train', 'test', 'validation')[k]},{text}")
    (folder / "segmentations.csv").write_text("\n".join(rows) + "\n")
    (folder / "widths.csv").write_text("character,width\na,2\nb,1\nc,3\n")
    return folder


def faces_in(folder: Path) -> Path:
    """Make a folder of faces."""
    folder.mkdir()
    pixels, positions = landmarks.draw(5, np.random.PCG64(2))
    rows = [",".join(("image", "split", *landmarks.COLUMNS))]
    for k in range(5):
        Image.fromarray(pixels[k]).save(folder / f"{k}.png")
        at = (f"{column},{row}" for row, column in positions[k])
        rows.append(",".join((f"{k}.png", "train", *at)))
    (folder / "landmarks.csv").write_text("\n".join(rows) + "\n")
    return folder


def picture(folder: Path, rng: random.Random) -> Path:
    """Return the path of a picture."""
    return rng.choice(sorted(folder.glob("*.png")))


def spoilt(folder: Path, rng: random.Random) -> None:
    """Spoil a file, whatever it is."""
    rng.choice(SPOILS)(rng.choice(sorted(folder.iterdir())), rng)


def foreign(folder: Path, rng: random.Random) -> None:
    """Put another format into a picture."""
    picture(folder, rng).write_bytes(rng.choice(FOREIGN))


def other_size(folder: Path, rng: random.Random) -> None:
    """Replace a picture by one of another size, mode or format."""
    sizes = (1, 2, 3, 4, 5, 40, 41, 700, 3000, 9000)
    size = rng.choice(sizes), rng.choice(sizes)
    mode = rng.choice(("1", "L", "RGB", "RGBA", "P", "I;16", "CMYK"))
    if size[0] * size[1] > 1e6:
        mode = "1"
    kind = rng.choice(("png", "jpeg", "bmp", "gif", "ppm", "tiff", "webp"))
    path = picture(folder, rng)
    try:
        Image.new(mode, size).save(path, kind)
    except (OSError, ValueError, KeyError):  # not every format has every mode
        Image.new("L", size).save(path, "png")


def claimed(folder: Path, rng: random.Random) -> None:
    """Let the header of a picture claim another size."""
    path = picture(folder, rng)
    sizes = (0, 1, 2, 2047, 2049, 65535, 2**31 - 1, 2**32 - 1)
    head = struct.pack(">II5B", rng.choice(sizes), rng.choice(sizes), 8, 0, 0, 0, 0)
    chunk = b"IHDR" + head
    content = path.read_bytes()
    path.write_bytes(content[:12] + chunk + struct.pack(">I", zlib.crc32(chunk)) + content[33:])


def bomb(folder: Path, rng: random.Random) -> None:
    """Put more into a picture than is shown: a packed text, or many bytes behind."""
    path = picture(folder, rng)
    content = path.read_bytes()
    if rng.random() < 0.5:
        with path.open("ab") as file:
            file.truncate(rng.choice((1 << 20, 1 << 28, 1 << 33)))  # takes no place on the disk
        return
    text = b"zTXt" + b"a\0\0" + zlib.compress(bytes(1 << 26))
    length, check = struct.pack(">I", len(text) - 4), struct.pack(">I", zlib.crc32(text))
    path.write_bytes(content[:33] + length + text + check + content[33:])


def table(folder: Path, rng: random.Random) -> Path:
    """Return the path of a table."""
    return rng.choice(sorted(folder.glob("*.csv")))


def field(folder: Path, rng: random.Random) -> None:
    """Change a field of a table."""
    path = table(folder, rng)
    lines = path.read_bytes().decode(errors="surrogateescape").split("\n")
    k = rng.randrange(len(lines))
    fields = lines[k].split(",")
    fields[rng.randrange(len(fields))] = rng.choice(FIELDS)
    lines[k] = ",".join(fields)
    path.write_bytes("\n".join(lines).encode(errors="surrogateescape"))


def lines(folder: Path, rng: random.Random) -> None:
    """Repeat, drop or end the lines of a table in another way."""
    path = table(folder, rng)
    content = path.read_bytes()
    change: Callable[[], bytes] = rng.choice(
        (
            lambda: content.replace(b"\n", b"\r"),
            lambda: content.replace(b"\n", b"\r\n"),
            lambda: content.replace(b"\n", b"\n\n"),
            lambda: content + content.partition(b"\n")[2] * rng.choice((1, 100, 20_000)),
            lambda: b"\n".join(content.split(b"\n")[:2]),
            lambda: b"\n" * (1 << 24),
            lambda: b"," * (1 << 24),
            lambda: content.replace(b",", b";"),
            lambda: content.replace(b",", b'","'),
            lambda: content.decode(errors="replace").encode("utf-16"),
            lambda: b"\xef\xbb\xbf" + content,
        )
    )
    path.write_bytes(change())


def beside(folder: Path, rng: random.Random) -> None:
    """Put something beside the pictures."""
    name = rng.choice(("film", "a#b", "\udcff", "x" * 200, ".hidden", "notes.txt"))
    with (folder / name).open("wb") as file:
        file.truncate(rng.choice((0, 1, 1 << 25, 6 << 30)))


def wide(folder: Path, rng: random.Random) -> None:
    """Give a character another width, or faces a landmark elsewhere."""
    path = table(folder, rng)
    number = rng.choice(("0", "2", "65535", "65536", "999999999", "1" * 10, "1e300")).encode()
    path.write_bytes(path.read_bytes().replace(b",2\n", b"," + number + b"\n"))


CHANGES = (spoilt, foreign, other_size, claimed, bomb, field, field, lines, beside, wide)


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Change a folder of pictures, and run it."""
    whole = {"plates": plates_in(folder / "plates"), "landmarks": faces_in(folder / "landmarks")}
    programs, mark = folder / "programs", folder / "mark"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text(f"#!/bin/sh\necho $0 >> {mark}\n")
        (programs / name).chmod(0o755)
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    for kind in KINDS:  # this process then has loaded and compiled what the others need
        _loaded(["run", f"results_dir={folder / 'first'}", *_words(kind, whole[kind])])
    while True:
        kind = rng.choice(KINDS)
        place = copied(whole[kind], folder / "changed")
        changes = rng.choices(CHANGES, k=rng.randint(1, 3))
        done_to = []
        for change in changes:
            try:
                change(place, rng)
            except (OSError, IndexError, ValueError):  # an earlier change has left nothing to do
                continue
            done_to.append(change.__name__)
        arguments = ["run", f"results_dir={folder / 'results'}", *_words(kind, place)]
        done = forked(functools.partial(main, arguments), folder / "log", BYTES, 100)
        failure = no_one_message(done)
        if mark.exists():
            failure = f"{failure} started {mark.read_text().split()}".strip()
            mark.unlink()
        yield Case(f"{kind}: {changes[0].__name__}", f"{done_to} {arguments}", failure)


def _words(kind: str, folder: Path) -> tuple[str, ...]:
    return (f"dataset={kind}", f"dataset.path={folder}", *OPTIONS)


def _loaded(arguments: list[str]) -> None:
    """Make a run of pictures that are right."""
    try:
        main(arguments)
    except SystemExit as end:
        if end.code:
            raise
