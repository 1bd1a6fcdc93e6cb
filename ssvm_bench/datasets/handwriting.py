"""Synthetic handwriting, digits and words: a skeleton font, distorted and drawn with a pen.

For every sample of a glyph, the control points of its skeleton are perturbed, slanted and fitted
into the cell. It is drawn by the distance of each pixel's centre to the nearest stroke. Only IEEE
arithmetic (+ − × / √) on words of a ``PCG64`` is used, so all machines draw the same pixels.
"""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

import numpy as np

from ssvm_bench.base.random import approx_normal, permutation, uniform

Form = list[tuple[bool, np.ndarray]]
"""Strokes: whether each is a curve, and its control points, shape (p, 2)."""

CHUNK = 256  # samples drawn at a time: the temporaries stay in the processor's cache


class Style(NamedTuple):
    """How each of m samples is written; arrays of shape (m,), lengths in pixels.

    Attributes
    ----------
    slant : ndarray
        Shift to the right per unit of height.
    aspect : ndarray
        Height over width, relative to the skeleton's.
    size : ndarray
        Share of the cell that is filled, in (0, 1].
    shift : ndarray, shape (m, 2)
        Displacement (x, y) from the middle of the cell.
    wobble : ndarray
        Standard deviation of a control point, in units of the font.
    """

    slant: np.ndarray
    aspect: np.ndarray
    size: np.ndarray
    shift: np.ndarray
    wobble: np.ndarray


def font() -> dict[str, list[Form]]:
    """Return the forms of every character of the bundled font."""
    forms: dict[str, list[Form]] = {}
    for line in resources.files(__package__).joinpath("glyphs.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            form = []
            for stroke in line[1:].split("|"):
                points = [point.split(",") for point in stroke.replace("~", "").split()]
                form.append(("~" in stroke, np.array(points, np.float64)))
            forms.setdefault(line[0], []).append(form)
    return forms


def distances(
    characters: str,
    y: np.ndarray,
    habit: np.ndarray,
    style: Style,
    cell: tuple[int, int],
    bits: np.random.PCG64,
) -> np.ndarray:
    """Return the distance of every pixel to the nearest stroke, for m samples.

    Parameters
    ----------
    characters : str
        The character of each label.
    y : ndarray of int, shape (m,)
        The label of each sample.
    habit : ndarray, shape (m,)
        Numbers in [0, 1) that choose among the forms of the character.
    style : Style
        How each sample is written.
    cell : (height, width)
        Size of the cell in pixels.
    bits : PCG64
        Random words for the wobble.

    Returns
    -------
    ndarray of float32, shape (m, height * width)
        Distances in pixels, row-major.
    """
    forms = font()
    out = np.empty((y.size, cell[0] * cell[1]), dtype=np.float32)
    for label, character in enumerate(characters):
        form_of = (habit * len(forms[character])).astype(np.int64)
        for k, form in enumerate(forms[character]):
            members = np.flatnonzero((y == label) & (form_of == k))
            for lo in range(0, members.size, CHUNK):
                part = members[lo : lo + CHUNK]
                out[part] = _distance_to_segments(*_segments(form, part, style, cell, bits), cell)
    return out


def _segments(
    form: Form, part: np.ndarray, style: Style, cell: tuple[int, int], bits: np.random.PCG64
) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of all line segments, float32 of shape (segments, 2, samples)."""
    paths = []
    for curved, skeleton in form:
        noise = approx_normal((*skeleton.shape, part.size), bits)
        points = skeleton[:, :, None] + style.wobble[part] * noise
        if curved:
            points = _cut_corners(_cut_corners(points))
        points[:, 0] -= style.slant[part] * points[:, 1]
        paths.append(points)
    everything = np.concatenate(paths)
    low, high = everything.min(axis=0), everything.max(axis=0)
    extent, stretch = np.maximum(high - low, 1e-3), style.aspect[part]
    room = np.array([cell[1] - 1.0, cell[0] - 1.0])
    scale = np.minimum(room[0] / extent[0], room[1] / (extent[1] * stretch)) * style.size[part]
    factor = np.stack([scale, scale * stretch])
    middle = (room / 2)[:, None] + style.shift[part].T
    paths = [((path - (low + high) / 2) * factor + middle).astype(np.float32) for path in paths]
    starts, ends = [path[:-1] for path in paths], [path[1:] for path in paths]
    return np.concatenate(starts), np.concatenate(ends)


def _cut_corners(points: np.ndarray) -> np.ndarray:
    """Apply one step of Chaikin's corner cutting along axis 0; the end points stay."""
    a, b = points[:-1], points[1:]
    cut = np.empty((2 * a.shape[0], *points.shape[1:]))
    cut[0::2] = 0.75 * a + 0.25 * b
    cut[1::2] = 0.25 * a + 0.75 * b
    cut[0], cut[-1] = points[0], points[-1]
    return cut


def _distance_to_segments(
    starts: np.ndarray, ends: np.ndarray, cell: tuple[int, int]
) -> np.ndarray:
    """Return the distance of every pixel's centre to the nearest segment, shape (samples, hw)."""
    height, width = cell
    px = np.tile(np.arange(width, dtype=np.float32), height)
    py = np.repeat(np.arange(height, dtype=np.float32), width)
    nearest = np.full((starts.shape[2], px.size), np.inf, dtype=np.float32)
    for (ax, ay), (bx, by) in zip(starts[..., None], ends[..., None], strict=True):
        ex, ey = bx - ax, by - ay
        squared_length = np.maximum(ex * ex + ey * ey, np.float32(1e-6))
        dx, dy = px - ax, py - ay
        along = np.clip(dx * (ex / squared_length) + dy * (ey / squared_length), 0, 1)
        dx, dy = dx - along * ex, dy - along * ey
        np.minimum(nearest, dx * dx + dy * dy, out=nearest)
    return np.sqrt(nearest)


def digits(
    counts: np.ndarray, cell: tuple[int, int], bits: np.random.PCG64
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels (m,) of ``counts`` digits of each class, in random order, and their ink.

    Ink is in [0, 1], shape (m, height * width).
    """
    m = int(counts.sum())
    y = np.repeat(np.arange(counts.size), counts)[permutation(m, bits)]
    style = Style(
        slant=0.1 + 0.2 * approx_normal((m,), bits),
        aspect=np.clip(1.0 + 0.2 * approx_normal((m,), bits), 0.5, 1.6),
        size=np.clip(0.98 + 0.04 * approx_normal((m,), bits), 0.8, 1.05),
        shift=0.25 * approx_normal((m, 2), bits),
        wobble=0.8 + 0.6 * np.square(uniform((m,), bits)),  # some write badly
    )
    habit = uniform((m,), bits)
    distance = distances("0123456789", y, habit, style, cell, bits)
    radius = np.clip(1.15 + 0.35 * approx_normal((m, 1), bits), 0.5, 2.2)
    return y, np.clip(0.5 + (radius - distance) / 1.3, 0, 1)


# The followers of each letter in English words, the most frequent first. Only the ranks matter.
FOLLOWERS = {
    "a": "ntlrscbdmgpivkuywzf", "b": "leroaiusbyjt", "c": "oethakircuylsq", "d": "eisaoduryglvn",
    "e": "rsndaltcmepxvifwgyoqk", "f": "oierfautlys", "g": "erhainolgusy", "h": "eaiotryunlm",
    "i": "noscteladmgvrfkbpzxq", "j": "uoaei", "k": "esiynalo", "l": "eiylaodtusvkpfm",
    "m": "eapiobmusyn", "n": "gtdeciasonkluvyjfxbmz", "o": "nrumflwsptocdvkgbxyieaq",
    "p": "elroatipuhsy", "q": "u", "r": "eiaotsyndmrckulgvpbfjx", "s": "tseihcuopamlkyqwz",
    "t": "ihieoarutylswczm", "u": "rnsltmcpgbdieakzxf", "v": "eiaoyu", "w": "aeionhrslkz",
    "x": "ptacieou", "y": "spoemilctnax", "z": "eaiozyl",
}  # fmt: skip
START = "eoanirutlhmcpsbgdkvwxqfyjz"


def words(
    lengths: np.ndarray, cell: tuple[int, int], bits: np.random.PCG64
) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and ink of the letters (m,) of words; ink is 0 or 1, (m, height * width).

    The letters of a word form a first-order Markov chain. A word has one writer, whose slant,
    proportions and pen vary a little from letter to letter.
    """
    alphabet, n, m = "".join(FOLLOWERS), lengths.size, int(lengths.sum())
    y = _letters(alphabet, lengths, bits)
    word = np.repeat(np.arange(n), lengths)

    def varied(middle: float, writer: float, letter: float) -> np.ndarray:
        of_writer = writer * approx_normal((n,), bits)[word]
        return middle + of_writer + letter * approx_normal((m,), bits)

    style = Style(
        slant=varied(0.05, 0.13, 0.08),
        aspect=np.clip(varied(1.1, 0.25, 0.15), 0.45, 1.8),
        size=np.clip(varied(1.0, 0.06, 0.06), 0.7, 1.05),
        shift=np.stack([varied(0, 0.2, 0.25), varied(0, 0.5, 0.4)], axis=1),
        wobble=np.clip(varied(0.45, 0.15, 0.0), 0.1, None),
    )
    habit = uniform((n, len(alphabet)), bits)[word, y]  # a writer's form of each letter
    distance = distances(alphabet, y, habit, style, cell, bits)
    radius = np.clip(varied(0.6, 0.1, 0.05), 0.45, 1.1)[:, None]
    ink = distance < radius.astype(np.float32)
    ink ^= uniform(ink.shape, bits) < 0.01
    return y, ink


def _letters(alphabet: str, lengths: np.ndarray, bits: np.random.PCG64) -> np.ndarray:
    """Return the letters (int64) of all words, simulated position by position."""
    # Zipf's law over the ranks, plus a constant, so that no transition is impossible
    weights = np.full((len(alphabet) + 1, len(alphabet)), 0.004)
    for row, followers in enumerate([*FOLLOWERS.values(), START]):
        for rank, letter in enumerate(followers):
            weights[row, alphabet.index(letter)] += 1 / (rank + 1.5)
    steps = np.cumsum(weights, axis=1)
    steps /= steps[:, -1:]
    first = np.cumsum(lengths) - lengths
    y = np.empty(lengths.sum(), dtype=np.int64)
    previous = np.full(lengths.size, len(alphabet))
    for t in range(int(lengths.max())):
        alive = lengths > t
        draw = uniform((lengths.size,), bits)[alive, None]
        previous[alive] = (steps[previous[alive]] <= draw).sum(axis=1)
        y[first[alive] + t] = previous[alive]
    return y
