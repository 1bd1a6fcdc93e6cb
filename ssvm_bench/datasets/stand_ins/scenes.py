"""Stand-ins for photographs: animals on textured ground, and layered outdoor scenes.

They are drawn from a seed by `drawing.Canvas` and then treated like photographs. Colours and
textures of the labels overlap, within a picture and between pictures, so that the labels can be
learned, but not perfectly.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from ssvm_bench.datasets.images.pictures import Picture, Pictures
from ssvm_bench.datasets.stand_ins.drawing import Canvas, Colour

HEIGHT, WIDTH = 120, 160
AREA = 0.8  # of an animal, about, whose body has length 1

SKY, TREE, ROAD, GRASS, WATER, BUILDING, MOUNTAIN, OBJECT, UNKNOWN = range(9)

COATS: tuple[Colour, ...] = (
    (112, 66, 38), (86, 52, 34), (140, 86, 50), (44, 36, 34), (58, 46, 40),
    (222, 216, 206), (158, 150, 144), (176, 128, 84),
)  # fmt: skip
MEADOW, SAND, EARTH, SNOW, WALL, WOOD = (
    (98, 122, 58), (178, 150, 112), (118, 84, 58), (214, 216, 222), (150, 130, 112), (56, 64, 44),
)  # fmt: skip
BLUE, OVERCAST = (128, 168, 218), (204, 206, 208)


def figures(n: int, seed: int = 1) -> Pictures:
    """Return pictures of one animal each: label 1, on ground of label 0.

    Parameters
    ----------
    n : int
        Number of pictures; the first ones do not depend on it.
    seed : int
        Another seed, other pictures.

    Returns
    -------
    Pictures
        Of 160 × 120 pixels.
    """
    names = tuple(f"figure{i:04d}" for i in range(n))
    return Pictures(names, [(seed, i) for i in range(n)], draw_figure)


def layers(n: int, seed: int = 2) -> Pictures:
    """Return layered scenes with the nine labels of the Stanford background data.

    Those are 0 sky, 1 tree, 2 road, 3 grass, 4 water, 5 building, 6 mountain, 7 foreground object,
    8 unknown, about as frequent as there. Parameters and result are those of `figures`.
    """
    names = tuple(f"scene{i:04d}" for i in range(n))
    return Pictures(names, [(seed, i) for i in range(n)], draw_scene)


def draw_figure(which: tuple[int, int]) -> Picture:
    """Draw picture i of a seed: one animal."""
    canvas = Canvas(HEIGHT, WIDTH, np.random.PCG64(list(which)))
    _ground(canvas)
    for _ in range(int(canvas.number(0, 6))):
        _clutter(canvas)
    share = canvas.number(0.03, 0.24) + canvas.number(0.03, 0.24)
    unit = sqrt(share * HEIGHT * WIDTH / AREA)
    _animal(canvas, canvas.number(0.42, 0.58) * WIDTH, canvas.number(0.42, 0.5) * HEIGHT, unit, 1)
    return canvas.developed()


def _ground(canvas: Canvas) -> None:
    """Paint a back and a front of various sorts, with a wavy border between."""
    horizon = canvas.number(0.1, 0.75) * HEIGHT
    sky, woods, wall = (canvas.number(0, 1) for _ in range(3))
    everywhere = np.ones(canvas.truth.shape, dtype=bool)
    if sky < 0.5:
        canvas.paint(everywhere, 0, _sky(canvas))
    elif woods < 0.6:
        canvas.paint(
            everywhere, 0, canvas.surface(canvas.tint(WOOD, 0.4), (0.3, 4, 3), (0.2, 30, 3))
        )
    else:
        canvas.paint(everywhere, 0, _bricks(canvas, canvas.tint(WALL, 0.4)))
    if sky < 0.5 and woods < 0.5:  # trees in the distance
        row = canvas.below(horizon - 0.15 * HEIGHT, 5, 20)
        canvas.paint(row, 0, canvas.surface(canvas.tint(WOOD, 0.3), (0.2, 5, 5), (0.2, 2, 2)))
    front = canvas.tint(canvas.choice((MEADOW, MEADOW, SAND, EARTH, SNOW)), 0.4)
    ground = canvas.surface(front, (0.08, 20, 40), (0.1, 4, 3), (0.08, 2, 2))
    canvas.paint(canvas.below(horizon, 3, 50), 0, ground)
    if wall < 0.25:  # a fence
        rail = canvas.tint((170, 160, 150), 0.4)
        for k in range(3):
            top = horizon - 12 + 8 * k
            canvas.paint(canvas.box(0, top, WIDTH, top + 2.5), 0, canvas.surface(rail, (0.1, 2, 9)))


def _clutter(canvas: Canvas) -> None:
    """Paint a bush, a stone or a heap of earth that might be a part of an animal."""
    colour = canvas.tint(canvas.choice((*COATS, MEADOW, WOOD)), 0.3)
    rough = canvas.number(0.05, 0.25)
    size = canvas.number(5, 22)
    x, y = canvas.number(0, WIDTH), canvas.number(0.25, 1) * HEIGHT
    where = canvas.blob(x, y, size * canvas.number(0.8, 2), size, 0.3)
    canvas.paint(where, 0, canvas.surface(colour, (rough, 3, 3), (0.12, size, size)))


def _animal(canvas: Canvas, x: float, y: float, unit: float, label: int) -> None:
    """Paint a four-legged animal: (x, y) is its middle, ``unit`` the length of its body."""
    side = canvas.choice((-1, 1))
    number = canvas.number

    def at(right: float, up: float) -> tuple[float, float]:
        return x + side * right * unit, y - up * unit

    hip, shoulder = at(-0.40, number(-0.04, 0.05)), at(0.36, number(-0.03, 0.06))
    body, chest = number(0.19, 0.23), number(0.20, 0.25)
    lift = number(-0.1, 0.42)
    nape = 0.36 + number(0.22, 0.36), lift
    mouth = nape[0] + number(0.16, 0.26), nape[1] - number(0.05, 0.26)
    reach = number(0.5, 0.72)  # length of the legs
    back, limbs = canvas.capsule(hip, shoulder, body * unit, chest * unit), []
    limbs.append(canvas.capsule(at(0.42, 0.06), at(*nape), 0.15 * unit, 0.08 * unit))
    limbs.append(canvas.capsule(at(*nape), at(*mouth), 0.085 * unit, 0.05 * unit))
    ear = nape[0] - 0.02, nape[1] + 0.14
    limbs.append(canvas.capsule(at(*nape), at(*ear), 0.05 * unit, 0.012 * unit))
    tail = -0.62 - number(0.0, 0.25), number(-0.35, 0.1)
    limbs.append(
        canvas.capsule(at(-0.55, 0.08), at(*tail), 0.035 * unit, number(0.02, 0.07) * unit)
    )
    dark = np.zeros_like(back)
    for start, top in ((-0.46, -0.06), (-0.36, -0.08), (0.30, -0.10), (0.42, -0.08)):
        knee = start + number(-0.14, 0.14), top - 0.5 * reach
        foot = knee[0] + number(-0.12, 0.10), top - reach
        limbs.append(canvas.capsule(at(start, top), at(*knee), 0.12 * unit, 0.055 * unit))
        dark |= canvas.capsule(at(*knee), at(*foot), 0.055 * unit, 0.035 * unit)
    where = back | dark
    for limb in limbs:
        where |= limb
    coat = canvas.tint(canvas.choice(COATS), 0.3)
    rough = number(0.04, 0.14)
    skin = canvas.surface(coat, (0.12, 0.2 * unit, 0.25 * unit), (rough, 3, 3))
    if canvas.chance(0.25):  # piebald
        patches = canvas.noise(0.25 * unit, 0.3 * unit) > 0.3
        skin[patches] = canvas.surface((226, 220, 210), (0.05, 3, 3))[patches]
    # light from above: the back shines, the belly is in the shade
    skin *= np.clip(1.0 - 0.9 * (canvas.y - y) / unit, 0.5, 1.3)[:, :, None]
    skin[dark] *= number(0.5, 1.1)
    canvas.paint(where, label, skin)


def draw_scene(which: tuple[int, int]) -> Picture:
    """Draw picture i of a seed: sky, what stands in the distance, ground and what stands on it."""
    canvas = Canvas(HEIGHT, WIDTH, np.random.PCG64(list(which)))
    number, chance = canvas.number, canvas.chance
    horizon = number(0.42, 0.66) * HEIGHT
    canvas.paint(np.ones(canvas.truth.shape, dtype=bool), SKY, _sky(canvas))
    town, mountains = chance(0.64), chance(0.12)
    if mountains:
        _mountain(canvas, horizon)
    if not mountains and (chance(0.5) or not town):
        _wood(canvas, horizon)
    if town:
        _houses(canvas, horizon)
    on_land = _land(canvas, horizon, town)
    for _ in range(int(number(0, 3))):
        _tree(canvas, horizon)
    for near in sorted(number(0, 1) for _ in range(int(number(1, 4)))):
        paint_object = canvas.choice((_car, _person, _beast)) if on_land else _beast
        paint_object(canvas, horizon, near)
    if chance(0.2):
        x, y = number(0, WIDTH), number(0.4, 1) * HEIGHT
        where = canvas.blob(x, y, number(8, 22), number(6, 16), 0.2)
        rubbish = canvas.surface(canvas.tint((120, 110, 100), 0.5), (0.2, 3, 3))
        canvas.paint(where, UNKNOWN, rubbish)
    return canvas.developed()


def _sky(canvas: Canvas) -> np.ndarray:
    """Return a sky, paler towards the horizon, clear, cloudy or overcast."""
    blue = np.array(canvas.tint(BLUE, 0.2))
    pale = np.array(canvas.tint(OVERCAST, 0.15))
    depth = np.clip(canvas.y / (0.7 * HEIGHT), 0, 1)
    cloud = np.clip(
        canvas.number(-1, 1.2) + 0.5 * canvas.noise(14, 40) + 0.2 * canvas.noise(6, 12), 0, 1
    )
    white = np.maximum(cloud, 0.8 * depth)[:, :, None]
    return blue + white * (pale - blue)


def _bricks(canvas: Canvas, colour: Colour) -> np.ndarray:
    """Return a wall of boards or stones with dark joints."""
    surface = canvas.surface(colour, (0.1, 3, 8), (0.08, 25, 25))
    size = canvas.number(7, 14)
    across = canvas.x if canvas.chance(0.5) else canvas.y
    surface[across % size < 1.5] *= 0.65
    return surface


def _mountain(canvas: Canvas, horizon: float) -> None:
    stone = canvas.tint(canvas.choice(((112, 124, 140), (110, 104, 90), (92, 108, 88))), 0.25)
    where = canvas.below(horizon - canvas.number(18, 40), 8, 45)
    canvas.paint(where, MOUNTAIN, canvas.surface(stone, (0.12, 8, 12), (0.08, 3, 4)))


def _leaves(canvas: Canvas) -> np.ndarray:
    green = canvas.choice(((66, 86, 42), (52, 70, 40), (92, 112, 56), (112, 92, 54)))
    rough = canvas.number(0.1, 0.3)
    return canvas.surface(canvas.tint(green, 0.35), (0.2, 7, 7), (rough, 2.5, 2.5))


def _wood(canvas: Canvas, horizon: float) -> None:
    where = canvas.below(horizon - canvas.number(8, 46), 5, 18)
    canvas.paint(where, TREE, _leaves(canvas))


def _tree(canvas: Canvas, horizon: float) -> None:
    x, height = canvas.number(0, WIDTH), canvas.number(30, 75)
    foot = horizon + canvas.number(0, 12)
    trunk = canvas.capsule((x, foot), (x, foot - height / 2), 0.04 * height, 0.03 * height)
    canvas.paint(trunk, TREE, canvas.surface(canvas.tint((84, 68, 52), 0.3), (0.2, 8, 2)))
    crown = canvas.blob(
        x, foot - 0.62 * height, canvas.number(0.25, 0.45) * height, 0.42 * height, 0.5
    )
    canvas.paint(crown, TREE, _leaves(canvas))


def _houses(canvas: Canvas, horizon: float) -> None:
    x = -canvas.number(0, 30)
    gap = canvas.choice((0.0, 0.0, 25.0))
    while x < WIDTH:
        width, height = canvas.number(25, 75), canvas.number(28, 95)
        stone = canvas.choice(((176, 160, 138), (150, 92, 74), (148, 148, 150), (206, 200, 188)))
        wall = canvas.surface(canvas.tint(stone, 0.25), (0.06, 20, 20), (0.06, 3, 3))
        storey, bay = canvas.number(8, 15), canvas.number(7, 14)
        top = horizon - height
        glass = ((canvas.x - x) % bay > 0.45 * bay) & ((canvas.y - top) % storey > 0.45 * storey)
        wall[glass] *= canvas.choice((canvas.number(0.4, 0.8), 1.0))
        where = canvas.box(x, top, x + width, horizon + 3)
        if canvas.chance(0.4):  # a roof
            slope = np.abs(canvas.x - x - width / 2) / (width / 2)
            roof = (canvas.y > top - 0.25 * width * (1 - slope)) & (canvas.y <= top) & (slope < 1)
            wall[roof] = canvas.surface(canvas.tint((120, 74, 60), 0.4), (0.12, 2, 6))[roof]
            where |= roof
        canvas.paint(where, BUILDING, wall)
        x += width + canvas.number(0, 1) * gap


def _land(canvas: Canvas, horizon: float, town: bool) -> bool:
    """Paint road, grass or water up to the horizon, and often another of them in front.

    Returns whether there is no water.
    """
    in_town = (ROAD, ROAD, ROAD, ROAD, ROAD, ROAD, GRASS, WATER)
    outside = (ROAD, ROAD, GRASS, GRASS, WATER)
    kinds = [canvas.choice(in_town if town else outside) for _ in range(2)]
    where = canvas.below(horizon, 1.5, 40)
    for kind in kinds:
        canvas.paint(where, kind, _LAND[kind](canvas))
        start = horizon + canvas.number(0.1, 0.9) * (HEIGHT - horizon)
        slope = canvas.number(-0.4, 0.4) * (canvas.x - WIDTH / 2)
        where = where & canvas.below(start, 3, 40) & (canvas.y > start + slope)
    return WATER not in kinds


def _road(canvas: Canvas) -> np.ndarray:
    grey = canvas.choice(((128, 126, 124), (104, 102, 104), (158, 144, 120), (188, 188, 192)))
    rough = canvas.number(0.02, 0.12)
    return canvas.surface(canvas.tint(grey, 0.3), (0.1, 8, 40), (rough, 2, 3))


def _grass(canvas: Canvas) -> np.ndarray:
    green = canvas.choice(((104, 128, 60), (122, 132, 74), (80, 102, 48), (146, 136, 92)))
    rough = canvas.number(0.05, 0.2)
    return canvas.surface(canvas.tint(green, 0.3), (0.12, 8, 30), (rough, 3, 2))


def _water(canvas: Canvas) -> np.ndarray:
    blue = canvas.choice(((96, 128, 164), (150, 158, 162), (84, 104, 96)))
    rough = canvas.number(0.03, 0.16)
    return canvas.surface(canvas.tint(blue, 0.3), (rough, 2, 14), (0.1, 6, 40))


_LAND = {ROAD: _road, GRASS: _grass, WATER: _water}

PAINTS: tuple[Colour, ...] = (
    (176, 44, 40), (48, 70, 130), (36, 36, 40), (214, 212, 208), (130, 132, 136), (190, 160, 60),
)  # fmt: skip


def _car(canvas: Canvas, horizon: float, near: float) -> None:
    length, foot = 26 + 70 * near, horizon + 6 + near * 0.75 * (HEIGHT - horizon)
    x, high = canvas.number(0, WIDTH), 0.16 * length
    paint = canvas.surface(canvas.tint(canvas.choice(PAINTS), 0.25), (0.1, 4, 20), (0.03, 2, 2))
    left, right = (x - 0.42 * length, foot - high), (x + 0.42 * length, foot - high)
    roof = (x - 0.18 * length, foot - 2.3 * high), (x + 0.16 * length, foot - 2.3 * high)
    canvas.paint(canvas.capsule(*roof, 0.8 * high, 0.8 * high), OBJECT, paint)
    glass = canvas.surface((60, 70, 80), (0.2, 4, 8))
    canvas.paint(canvas.capsule(*roof, 0.5 * high, 0.5 * high), OBJECT, glass)
    canvas.paint(canvas.capsule(left, right, 0.85 * high, 0.85 * high), OBJECT, paint)
    for end in (-0.28, 0.28):
        wheel = canvas.blob(x + end * length, foot, 0.55 * high, 0.55 * high, 0)
        canvas.paint(wheel, OBJECT, canvas.surface((40, 38, 38), (0.2, 3, 3)))


def _person(canvas: Canvas, horizon: float, near: float) -> None:
    tall, foot = 28 + 75 * near, horizon + 10 + near * 0.8 * (HEIGHT - horizon)
    x = canvas.number(0.05, 0.95) * WIDTH
    legs, shirt = (
        canvas.surface(canvas.tint(canvas.choice(PAINTS), 0.3), (0.12, 5, 4)) for _ in range(2)
    )
    for step in (-0.08, 0.08):
        leg = canvas.capsule(
            (x, foot - 0.5 * tall), (x + step * tall, foot), 0.07 * tall, 0.045 * tall
        )
        canvas.paint(leg, OBJECT, legs)
    chest = canvas.capsule((x, foot - 0.75 * tall), (x, foot - 0.5 * tall), 0.13 * tall, 0.1 * tall)
    canvas.paint(chest, OBJECT, shirt)
    face = canvas.surface(canvas.tint((186, 140, 112), 0.35), (0.05, 3, 3))
    canvas.paint(canvas.blob(x, foot - 0.94 * tall, 0.06 * tall, 0.08 * tall, 0), OBJECT, face)


def _beast(canvas: Canvas, horizon: float, near: float) -> None:
    y = horizon + near * 0.35 * (HEIGHT - horizon)
    _animal(canvas, canvas.number(0.1, 0.9) * WIDTH, y, 20 + 50 * near, OBJECT)
