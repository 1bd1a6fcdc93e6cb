"""Abalone (Nash et al. 1994): the age of a sea snail, measured by the rings of its shell.

The file has one line per snail: sex (M, F, or I for an infant), three lengths, four weights, and
the target, the number of rings, 1 to 29. As in LIBSVM's version, each of the seven measures is
scaled to [−1, 1] by its minimum and maximum over all lines; the target is not scaled. LIBSVM
encodes sex as one number; here it is three features, one of which is 1. Their sum is 1, so they act
as a bias already; ``bias`` adds another one. Nothing is held out.

References
----------
W. Nash, T. Sellers, S. Talbot, A. Cawthorn, W. Ford: The population biology of abalone in Tasmania.
Sea Fisheries Division, Technical Report 48, 1994.
"""

from __future__ import annotations

import numpy as np

from ssvm_bench.base.random import approx_normal, uniform
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import BiasConfig, Dataset, with_bias
from ssvm_bench.datasets.reading import GZIP, check_lines, read_table, unpack
from ssvm_bench.datasets.sources import ParsedFile, home

Config = BiasConfig

SEXES = ("M", "F", "I")
N_MEASURES = 7
N_COLUMNS = 1 + N_MEASURES + 1
N_SAMPLES = 4177


def load(config: Config) -> Dataset:
    """Return the snails: x float64 (4177, 10), y their rings; see `sources.load`."""
    return sources.load(config, RAW, "regression", 0, lambda snails: with_bias(snails, config.bias))


def parse(raw: bytes) -> dict[str, np.ndarray]:
    """Return the arrays ``x, y`` of a file in this format, of any length.

    Raises
    ------
    ContentError
        Names the first line that is malformed, has a measure below 0, or no whole number of rings.
    """
    table = read_table(unpack(raw).replace(b",", b" "), N_COLUMNS, text_columns=(0,))
    sex = table[0].astype(str)
    check_lines(sex.isin(SEXES), lambda k: f"sex {sex[k]!r}, expected M, F or I")
    measures = table.loc[:, 1:N_MEASURES].to_numpy(np.float64)
    check_lines((measures >= 0).all(axis=1), lambda k: "a measure below 0")
    rings = table[N_COLUMNS - 1].to_numpy(np.float64)
    whole = (rings >= 1) & (rings == np.round(rings))
    check_lines(whole, lambda k: f"{rings[k]:g} rings, expected a whole number from 1 on")
    return arrays(sex.to_numpy("U1")[:, None] == np.array(SEXES), measures, rings)


def arrays(is_sex: np.ndarray, measures: np.ndarray, rings: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays to keep, given the sex of the snails in one-hot encoding."""
    low, high = measures.min(axis=0), measures.max(axis=0)
    scaled = 2.0 * (measures - low) / np.where(high > low, high - low, 1.0) - 1.0
    return {"x": np.ascontiguousarray(np.hstack((is_sex, scaled))), "y": rings}


def simulate() -> dict[str, np.ndarray]:
    """Return `N_SAMPLES` synthetic snails: lengths level off with age, weights are their cubes.

    Words of a ``PCG64`` are combined by + − × / √ and comparisons only, so all machines agree.
    """
    bits, m = np.random.PCG64(1729), N_SAMPLES
    normal = approx_normal((m,), bits)
    rings = np.clip(np.round(9.7 + 3.0 * normal + 0.25 * normal * normal), 1, 29)
    length = np.clip(0.72 * rings / (rings + 3) + 0.06 * approx_normal((m,), bits), 0.07, 0.82)
    # length, diameter, height; whole, shucked, viscera and shell weight
    ratios = np.array([1, 0.79, 0.26, 5.6, 2.4, 1.2, 1.6]) * (1 + 0.1 * approx_normal((m, 7), bits))
    weight = (length * length * length)[:, None]
    measures = np.hstack((np.tile(length[:, None], 3), np.tile(weight, 4))) * ratios
    sex = np.where(length < 0.51, 2, uniform((m,), bits) * 1.85).astype(np.int64)
    return arrays(np.eye(3, dtype=bool)[sex], np.round(measures, 4), rings)


RAW = ParsedFile(
    **home("abalone"),
    n=N_SAMPLES,
    parse=parse,
    heads=(GZIP, *(f"{sex},".encode() for sex in SEXES)),
    synthetic=simulate,
    version=3,
)
