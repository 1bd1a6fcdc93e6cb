"""Number plates: images of text, to be cut into their characters (Uřičář and Franc 2012, 4.3).

An example is an image of 33 rows and as many columns as its text needs. A part is a column. Its
features are the 33 grey values, standardised by the mean and standard deviation of the image. Its
label is a pair of a character and a column in it. The built-in data have 123 such pairs, so
33 · 123 = 4059 weights, as many as in the report. The report's images are not public. The built-in
ones are simulated: 6788 for training, and 846 each for validation and test. A simulated plate is a
line of characters of fixed widths: a border, one of a few layouts of digits, letters, a dash or a
seal, with gaps of whole columns between them, and a border. The fonts come with matplotlib; each
has its own metrics, so the width of a glyph varies within the columns of its character. The camera
is simulated by perspective (slant, tilt, and a height that changes along the plate), blur by the
lens and by motion, light from a side, shadows, dirt and noise. All random choices use words of a
``PCG64``. FreeType draws the glyphs; its releases may differ in a few pixels. Two options make
the plates harder to read: more noise, and glyphs that are narrower than their character's columns,
at a random place in these.

A user's folder contains images of one height and two tables
(:mod:`ssvm_bench.datasets.picture_table`):

=====================  =============================================================================
``segmentations.csv``  ``image,split,segments``: characters with the column where each begins, from
                       0, as ``A@0 1@9 B@17``
``widths.csv``         ``character,width``: the width of every character, in columns
=====================  =============================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.random import approx_normal, uniform
from ssvm_bench.config.validation import NotNegative, Positive
from ssvm_bench.datasets import picture_table
from ssvm_bench.datasets.base import SEGMENTS, Dataset
from ssvm_bench.datasets.reading import Arrays, ContentError, ensure
from ssvm_bench.datasets.structures import Alphabet

HEIGHT = 33
"""Rows of a plate, the features of a column: 33 × 123 = 4059 weights, as in the report."""

GAP, DASH, SEAL, BORDER = "␣", "-", "•", "|"
DIGITS, LETTERS = "0123456789", "ABCK"
ALPHABET = Alphabet(
    (*DIGITS, *LETTERS, GAP, DASH, SEAL, BORDER),
    (8, 5, 8, 8, 8, 8, 8, 8, 8, 8, 9, 8, 8, 8, 1, 4, 6, 2),
)

LAYOUTS = ("dLd•dddd", "LLddd-LL", "ddd-dddd", "LdLdddd")
FONTS = ("DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono-Bold", "DejaVuSerif-Bold", "cmss10")

_FINE = 3
"""Pixels of a drawn glyph per pixel of the plate, along each axis."""

_TALL = 21
"""Height of characters, in pixels of the plate."""

TABLE, WIDTHS = "segmentations.csv", "widths.csv"
_BYTES = 32
"""Bytes of memory that a pixel takes while its features are computed."""

_MOST_FREE = 0.5

N_TRAINING, N_HELD_OUT = 6788, 1692
VERSION = 1


@dataclass(frozen=True)
class Config(picture_table.TableConfig):
    """Options of the plates; those of simulated ones do not concern your own.

    Attributes
    ----------
    noise : float
        Noise of the simulated camera, in units of the default's.
    free_width : float
        Share of a simulated character's columns that its glyph leaves free, from 0 to 0.5.
    """

    TABLES: ClassVar[tuple[str, ...]] = (TABLE, WIDTHS)

    noise: Positive = 1.0
    free_width: NotNegative = 0.0

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.free_width > _MOST_FREE:
            raise ConfigError(
                f"dataset.free_width must be at most {_MOST_FREE}, got {self.free_width}."
            )
        if self.path is not None and self.variant:
            raise ConfigError(
                "dataset.noise and dataset.free_width are of simulated plates: leave them out, or "
                "leave dataset.path out."
            )

    @property
    def variant(self) -> str:
        """See `TableConfig`."""
        changed = self.noise != 1.0 or self.free_width != 0.0
        return f"noise {self.noise:g} free {self.free_width:g}" if changed else ""


def load(config: Config) -> Dataset:
    """Return the plates: x float32 (columns, rows), each plate a sequence of columns.

    Raises
    ------
    ConfigError
        There are fewer than ``n_samples``.
    RunFailedError
        The folder's content cannot be used.
    """
    return picture_table.split(config, with_images(config)[0])


def with_images(config: Config) -> tuple[Dataset, list[np.ndarray]]:
    """Return all plates, held-out ones included, and their images: uint8 (rows, columns) each."""
    make = partial(simulated, N_TRAINING, N_HELD_OUT, config.noise, config.free_width)
    found = picture_table.arrays(config, VERSION, make, _read)
    alphabet = Alphabet(tuple(found["names"].tolist()), tuple(found["widths"].tolist()))
    x, offsets = _features(found["pixels"], found["offsets"]), found["offsets"]
    about: Any = {"source": config.source, "fold": found["fold"], "admissible": alphabet}
    dataset = Dataset(config.name, x, found["y"], offsets, alphabet.n_labels, SEGMENTS, **about)
    return dataset, np.split(found["pixels"].T, offsets[1:-1], axis=1)


def _features(pixels: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return grey values, standardised by the mean and standard deviation of each image."""
    counts = np.diff(offsets) * pixels.shape[1]
    exact = pixels.astype(np.int64)  # integers: the same sums on every machine
    total = np.add.reduceat(exact.sum(axis=1), offsets[:-1])
    squares = np.add.reduceat((exact**2).sum(axis=1), offsets[:-1])
    mean = total / counts
    deviation = np.sqrt(np.maximum(squares / counts - mean**2, 1.0))
    image = np.repeat(np.arange(counts.size), np.diff(offsets))
    return ((pixels - mean[image, None]) / deviation[image, None]).astype(np.float32)


def _read(folder: Path) -> Arrays:
    """Return the plates of a folder; raise `ContentError` if its files contradict each other."""
    alphabet = _alphabet(picture_table.lines(folder, WIDTHS, ("character", "width")))
    table = picture_table.lines(folder, TABLE, (*picture_table.HEAD, "segments"))
    fold = picture_table.folds(table)
    index = {name: k for k, name in enumerate(alphabet.names)}
    columns: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for line, seen in zip(table, picture_table.images(folder, table, _BYTES), strict=True):
        if columns and seen.shape[0] != columns[0].shape[1]:
            raise ContentError(
                f"{line['image']} is {seen.shape[0]} pixels high, and {table[0]['image']} "
                f"{columns[0].shape[1]}"
            )
        columns.append(seen.T)
        segments, W = line["segments"], seen.shape[1]
        labels.append(_labels(line["image"], segments, alphabet, index, W))
    return {
        "pixels": np.concatenate(columns),
        "y": np.concatenate(labels),
        "offsets": np.cumsum([0, *map(len, labels)]),
        "fold": fold,
        "names": np.array(alphabet.names),
        "widths": np.array(alphabet.widths),
    }


def _alphabet(table: picture_table.Lines) -> Alphabet:
    widths: dict[str, int] = {}
    for line in table:
        name, width = line["character"], line["width"]
        number = picture_table.whole(width)
        if not number:
            raise ContentError(
                f"the width of character {shown(name)!r} is {shown(width)!r}, not 1 or more"
            )
        good = len(name.split()) == 1 and "@" not in name and name not in widths
        ensure(good, f"a character of {WIDTHS} is {shown(name)!r}: empty, there twice, or with @")
        widths[name] = number
    of_labels = 64.0 * sum(widths.values())
    check_room(of_labels, f"The columns of all characters of {WIDTHS}", "Correct the widths.")
    return Alphabet(tuple(widths), tuple(widths.values()))


def _labels(image: str, text: str, alphabet: Alphabet, index: dict[str, int], W: int) -> np.ndarray:
    """Return the labels of the columns of an image, whose segments must fill it."""
    characters, end, image = [], 0, shown(image)
    for segment in text.split():
        name, _, column = segment.rpartition("@")
        begin, said = picture_table.whole(column), shown(segment)
        if begin is None:
            raise ContentError(f"the segments of {image} have {said!r}, not CHARACTER@COLUMN")
        if name not in index:
            raise ContentError(
                f"{image} has the character {shown(name)!r}, without a width in {WIDTHS}"
            )
        if begin != end:
            what = "leave a gap before" if begin > end else "overlap at"
            raise ContentError(
                f"the segments of {image} {what} {said}: the one before ends at column {end - 1}"
            )
        characters.append(index[name])
        end += alphabet.widths[characters[-1]]
    filled = characters and end == W
    ensure(filled, f"the segments of {image} end at column {end - 1}, and it has {W} columns")
    return alphabet.columns(characters)


# ---- simulated plates ---------------------------------------------------------------------------


def draw(m: int, seed: int, noise: float = 1.0, free_width: float = 0.0) -> Arrays:
    """Return m plates: ``pixels`` uint8 (columns, 33), ``y`` uint8 (columns,) and ``offsets``.

    The parameters are options of `Config`.
    """
    bits = np.random.PCG64(seed)
    glyphs = [_glyphs(name, free_width) for name in FONTS]
    pixels, labels = [], []
    for _ in range(m):
        text = _text(bits)
        font = glyphs[int(uniform((1,), bits)[0] * len(glyphs))]
        ink = _printed(text, font, bits, anywhere=free_width > 0.0)
        pixels.append(_seen(ink, bits, noise).T)
        labels.append(ALPHABET.columns(text).astype(np.uint8))
    return {
        "pixels": np.concatenate(pixels),
        "y": np.concatenate(labels),
        "offsets": np.cumsum([0, *map(len, labels)]),
    }


def _text(bits: np.random.PCG64) -> list[int]:
    """Return a random text, as indices into the alphabet."""
    draws = iter(uniform((64,), bits).tolist())
    text = [BORDER, *GAP * (1 + int(next(draws) * 3))]
    for kind in LAYOUTS[int(next(draws) * len(LAYOUTS))]:
        among = {"d": DIGITS, "L": LETTERS}.get(kind, kind)
        text += [among[int(next(draws) * len(among))], *GAP * int(next(draws) * 3)]
    text += [*GAP * (1 + int(next(draws) * 3)), BORDER]
    return [ALPHABET.names.index(name) for name in text]


def _glyphs(font: str, free_width: float) -> dict[str, np.ndarray]:
    """Return the ink of each printed character in a font: 0 … 1, (fine rows, fine columns)."""
    import matplotlib as mpl
    from PIL import Image, ImageDraw, ImageFont

    path = Path(mpl.get_data_path()) / "fonts" / "ttf" / f"{font}.ttf"
    found = {}
    for name, width in zip(ALPHABET.names, ALPHABET.widths, strict=True):
        if name in (GAP, SEAL, BORDER):
            continue
        size = 3 * _TALL * _FINE
        pen = ImageFont.truetype(str(path), _TALL * _FINE * 4 // 3)
        sheet = Image.new("L", (size, size))
        ImageDraw.Draw(sheet).text((size // 3, size // 2), name, fill=255, font=pen, anchor="lm")
        box = sheet.getbbox()
        assert box is not None
        ink = sheet.crop(box)
        tall = ink.height if name == DASH else _TALL * _FINE
        room = round((1.0 - free_width) * (width * _FINE - 2))  # a fine pixel on either side
        across = min(room, round(ink.width * tall / ink.height))
        found[name] = np.asarray(ink.resize((across, tall), Image.Resampling.BILINEAR)) / 255.0
    return found


def _printed(
    text: list[int], font: dict[str, np.ndarray], bits: np.random.PCG64, anywhere: bool
) -> np.ndarray:
    """Return the ink of a plate, 0 … 1, in fine pixels: (33 · fine, W · fine).

    Glyphs are near the middle of their character's columns, or anywhere in them.
    """
    widths = np.array(ALPHABET.widths)[text]
    ink = np.zeros((HEIGHT * _FINE, int(widths.sum()) * _FINE))
    middle = ink.shape[0] // 2
    moves = np.rint(approx_normal((len(text), 2), bits) * 0.5).astype(int)
    places = uniform((len(text),), bits) if anywhere else np.zeros(len(text))
    left = 0
    for a, (down, right), place in zip(text, moves.tolist(), places.tolist(), strict=True):
        name, room = ALPHABET.names[a], ALPHABET.widths[a] * _FINE
        if name in font:
            glyph = font[name]
            tall, across = glyph.shape
            free = room - across
            near = int(np.clip(free // 2 + right, 0, free))
            x = left + (int(place * (free + 1)) if anywhere else near)
            y = middle - tall // 2 + down
            ink[y : y + tall, x : x + across] = glyph
        elif name == SEAL:
            rows, columns = np.ogrid[: ink.shape[0], :room]
            radius = 0.45 * room
            inside = (rows - middle - down) ** 2 + (columns - (room - 1) / 2) ** 2 < radius**2
            ink[:, left : left + room] = 0.8 * inside
        elif name == BORDER:
            ink[3 * _FINE : -3 * _FINE, left + 1 : left + room - 1] = 1.0
        left += room
    ink[2 * _FINE : 3 * _FINE] = ink[-3 * _FINE : -2 * _FINE] = 1.0
    return ink


def _seen(ink: np.ndarray, bits: np.random.PCG64, noise_scale: float) -> np.ndarray:
    """Return the image of a plate in a simulated camera: uint8 (33, W)."""
    from scipy.ndimage import gaussian_filter, map_coordinates, uniform_filter1d

    W = ink.shape[1] // _FINE
    slant, tilt, shrink, up, lens, motion, side, gain, level, noise = approx_normal(
        (10,), bits
    ).tolist()
    blurred = gaussian_filter(ink, _FINE * (0.75 + 0.25 * min(abs(lens), 2.0)))
    blurred = uniform_filter1d(blurred, 1 + int(0.7 * _FINE * abs(motion)), axis=1)
    rows, columns = np.mgrid[:HEIGHT, :W].astype(np.float64)
    along = columns - (W - 1) / 2
    tall = 1.0 + 0.03 * slant + 0.0015 * shrink * along
    y = (rows - (HEIGHT - 1) / 2 - 0.8 * up - 0.012 * tilt * along) / tall + (HEIGHT - 1) / 2
    x = columns + 0.035 * slant * (y - (HEIGHT - 1) / 2)
    fine = [(y + 0.5) * _FINE - 0.5, (x + 0.5) * _FINE - 0.5]
    seen = map_coordinates(blurred, fine, order=1, mode="nearest")
    light = (150 + 30 * level) * (1.0 + 0.006 * side * along)
    image = light * (1.0 - np.clip(0.6 + 0.12 * gain, 0.35, 0.9) * seen)
    # something above the plate casts a shadow on one side of a line
    where, slope, depth = uniform((3,), bits).tolist()
    edge = 2.4 * W * (where - 0.5) + W / 2 + 2.0 * (slope - 0.5) * (rows - HEIGHT / 2)
    image *= 1.0 - 0.4 * depth * np.clip((columns - edge) / 3.0 + 0.5, 0.0, 1.0)
    dirt = np.zeros((HEIGHT, W))
    for _ in range(int(uniform((1,), bits)[0] * 5)):
        y, x, a, b, depth = uniform((5,), bits).tolist()
        far = ((rows - HEIGHT * y) / (1.5 + 6 * a)) ** 2 + ((columns - W * x) / (1.5 + 6 * b)) ** 2
        dirt = np.maximum(dirt, 0.7 * depth * np.clip(1.5 - far, 0.0, 1.0))
    image *= 1.0 - dirt
    image += noise_scale * (3 + 3 * abs(noise)) * approx_normal((HEIGHT, W), bits)
    return np.rint(np.clip(image, 0, 255)).astype(np.uint8)


def simulated(
    n_training: int, n_held_out: int, noise: float = 1.0, free_width: float = 0.0
) -> Arrays:
    """Return training plates and held-out plates; every second held-out one is for the test.

    ``names`` and ``widths`` are those of the characters.
    """
    fold = np.concatenate((np.zeros(n_training, np.int64), np.arange(n_held_out) % 2 + 1))
    names, widths = map(np.array, ALPHABET)
    drawn = draw(n_training + n_held_out, 1789, noise, free_width)
    return {**drawn, "fold": fold, "names": names, "widths": widths}
