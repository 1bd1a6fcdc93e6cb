"""``ssvm-bench check``: checks a component, given by name, on instances that fit it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.random import approx_normal, uniform
from ssvm_bench.config import LOADED_FROM, registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import LANDMARKS, SEGMENTS, Dataset
from ssvm_bench.datasets.structures import Alphabet, Boxes, Windows, pattern_maps
from ssvm_bench.oracles import multiclass, viterbi
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.runs.components import load_dataset, oracle_of
from ssvm_bench.runs.contracts import Findings, expect, of_oracles, of_solvers

STRUCTURES = "independent", "regression", "chain", "graph", "latent", SEGMENTS, LANDMARKS
_EXAMPLES = 8


def check(
    group: str, name: str, words: Sequence[str], config_dirs: Sequence[Path] = ()
) -> Iterator[Findings]:
    """Check a component; yield the findings of each instance.

    Parameters
    ----------
    group : str
        ``"oracle"``, ``"solver"`` or ``"dataset"``.
    name : str
    words : sequence of str
        Further options, as overrides. If one names a dataset, its first examples are the instance.
    config_dirs : sequence of Path
        Further folders of config files.

    Raises
    ------
    ConfigError
        There is no such component, or no instance for it.
    """
    (config,) = compose_runs([f"{group}={name}", *words], config_dirs=config_dirs)
    build = partial(oracle_of, config.oracle)
    if group == "dataset":
        with registry.blamed("dataset", config.dataset.kind):
            load = partial(registry.module("dataset", config.dataset.kind).load, config.dataset)
        findings = Findings(f"dataset {config.dataset.name}")
        check_dataset(load, build, findings)
        yield findings
        return
    given = None
    if any(word.lstrip("+").startswith("dataset=") for word in words):
        dataset = load_dataset(config.dataset)
        assert isinstance(dataset, Dataset)  # not a stream
        given = dataset.head(_EXAMPLES)
    yield from (_solver_of if group == "solver" else _oracle_of)(config, build, given)


def _oracle_of(
    config: RunConfig, build: Callable[[Dataset], Oracle], given: Dataset | None
) -> Iterator[Findings]:
    """Check an oracle on a given dataset, or on small ones of all structures that it accepts."""
    refused, findings = "", None
    for data in [given] if given is not None else _small(config.oracle):
        with registry.blamed("oracle", config.oracle.kind):
            try:
                oracle = build(data)
            except ConfigError as error:  # it does not accept this instance
                refused = str(error)
                continue
        findings = Findings(f"oracle {config.oracle.name} on {_described(data)}")
        of_oracles.check(oracle, findings)
        yield findings
    if findings is None:
        raise ConfigError(
            f"There is no small instance for oracle={config.oracle.name}: {refused} Name a dataset "
            "that it is for, as dataset=NAME."
        )


def _small(config: Any) -> Iterator[Dataset]:
    """Yield small instances of the structures that an oracle accepts."""
    for structure in getattr(config, "structures", ()) or STRUCTURES:
        if structure not in STRUCTURES:
            raise ConfigError(
                f"oracle={config.name} is for {structure} labels, of which there is no small "
                "instance. Name a dataset of yours, as dataset=NAME."
            )
        for n_labels in (2, 3) if structure in ("independent", "chain", "graph") else (2,):
            yield small(structure, n_labels)


def _solver_of(
    config: RunConfig, build: Callable[[Dataset], Oracle], given: Dataset | None
) -> Iterator[Findings]:
    """Check a solver on the oracle of a given dataset, or on small built-in problems."""
    solver = config.solver
    module = registry.module("solver", solver.kind)
    if getattr(solver, "needs_path", False):
        raise ConfigError(f"solver={solver.name} begins at the end of another run: check that one.")

    problems = [(given, build)] if given is not None else []
    for of, structure in ((multiclass, "independent"), (viterbi, "chain")):
        if given is None and structure in (getattr(solver, "structures", ()) or (structure,)):
            ours = partial(of.build, of.Config(name=structure, kind=structure))
            problems.append((small(structure), ours))
    if not problems:
        raise ConfigError(
            f"solver={solver.name} is for {' and '.join(solver.structures)} labels. Name a dataset "
            "of those, as dataset=NAME."
        )
    for data, oracle_of_data in problems:
        findings = Findings(f"solver {solver.name} on {_described(data)}")
        of_solvers.check(partial(module.build, solver), solver, oracle_of_data(data), findings)
        yield findings


def _described(data: Dataset) -> str:
    labels = f", {data.n_labels} labels" if data.n_labels else ""
    return f"{data.name} ({data.n} examples, {data.y.size} parts{labels})"


# ---- datasets --------------------------------------------------------------------------------


def check_dataset(
    load: Callable[[], Any], build: Callable[[Dataset], Oracle], findings: Findings
) -> None:
    """Check what a loader returns.

    Parameters
    ----------
    load : callable
        Loads the dataset.
    build : callable
        Builds the oracle of the dataset.
    findings : Findings
    """
    dataset: Any = None
    with findings.claim("load returns a Dataset, in which everything is in range"):
        dataset = load()
        expect(isinstance(dataset, Dataset), f"it returns a {type(dataset).__name__}")
    if not isinstance(dataset, Dataset):
        return
    with findings.claim("loaded again, it has the same examples"):
        again = load()
        expect(
            again.fingerprint == dataset.fingerprint,
            f"their fingerprint was {dataset.fingerprint}, then {again.fingerprint}",
        )
        for name, examples in dataset.held_out.items():
            same = again.held_out[name].fingerprint == examples.fingerprint
            expect(same, f"those held out for {name} are others")
    with findings.claim("its source is one that tables and figures know"):
        known = ", ".join(LOADED_FROM)
        expect(dataset.source in LOADED_FROM, f"{dataset.source!r} is none of {known}")
    with findings.claim("its oracle can be built, of all examples and of some"):
        sizes = {build(dataset.head(3)).d, build(dataset.head(2)).d}
        expect(len(sizes) == 1, f"it has {min(sizes)} or {max(sizes)} weights")
    if dataset.n_labels:
        missing = np.flatnonzero(np.bincount(dataset.y, minlength=dataset.n_labels) == 0)
        if missing.size:
            names = ", ".join(dataset.label_names[k] for k in missing[:5])
            findings.note(f"{missing.size} labels have no example", names)
    used = np.zeros(dataset.n_features, bool)
    if isinstance(dataset.x, np.ndarray):
        used |= (dataset.x != 0).any(axis=0)
    else:
        used[dataset.x.indices] = True
    if not used.all():
        findings.note("some features are 0 in all examples", f"{np.count_nonzero(~used)} of them")


# ---- small instances --------------------------------------------------------------------------


N_FEATURES = 3
_SIZES = (3, 1, 4, 2, 3)  # numbers of parts of structured examples


def small(structure: str, n_labels: int = 3) -> Dataset:
    """Return a few examples of a structure; their features are informative of the labels."""
    bits = np.random.PCG64(7)
    if structure == LANDMARKS:
        return _landmarks(bits)
    if structure == SEGMENTS:
        return _segments(bits)
    sizes = np.array(_SIZES if structure in ("chain", "graph") else (1,) * 8)
    parts = int(sizes.sum())
    y = np.arange(parts) % n_labels
    x = 2.0 * approx_normal((n_labels, N_FEATURES), bits)[y] + 0.3 * approx_normal(
        (parts, N_FEATURES), bits
    )
    offsets, more = np.cumsum([0, *sizes]), dict[str, Any]()
    if structure == "graph":
        pairs = [[*combinations(range(size), 2)] for size in sizes]
        kept = [[pair for k, pair in enumerate(each) if k % 3 < 2] for each in pairs]
        more["edges"] = np.array([pair for each in kept for pair in each], np.int32)
        more["edge_offsets"] = np.cumsum([0, *map(len, kept)])
    if structure == "regression":
        return _instance(structure, x, approx_normal((parts,), bits), offsets, 0)
    if structure == "latent":
        x, n_labels = uniform((parts, 16), bits), 2
        more |= {"windows": Windows((4, 4), (3, 3), 1), "places": np.arange(parts) % 4}
    return _instance(structure, x, (y % n_labels).astype(np.uint8), offsets, n_labels, **more)


def _segments(bits: np.random.PCG64) -> Dataset:
    """Return texts over two characters, which are one and two columns wide."""
    alphabet = Alphabet(("i", "o"), (1, 2))
    texts = [(1,) * (size // 2) + (0,) * (size % 2) for size in _SIZES]
    y = np.concatenate([alphabet.columns(text) for text in texts]).astype(np.uint8)
    x = 2.0 * approx_normal((alphabet.n_labels, N_FEATURES), bits)[y]
    x += 0.3 * approx_normal((y.size, N_FEATURES), bits)
    offsets = np.cumsum([0, *_SIZES])
    return _instance(SEGMENTS, x, y, offsets, alphabet.n_labels, admissible=alphabet)


def _landmarks(bits: np.random.PCG64) -> Dataset:
    """Return images of noise, with three landmarks in boxes of 2 × 3 positions."""
    n, image = 4, (7, 8)
    corners = ((0, 0), (2, 4), (4, 1))
    boxes = Boxes(("a", "b", "c"), (-1, 0, 0), corners, ((2, 3),) * 3, image, (0, 1), (2,))
    at = np.array(corners) + (uniform((n, 3, 2), bits) * (2, 3)).astype(np.int64)
    y = (at @ np.array([image[1], 1])).ravel().astype(np.uint8)
    maps = pattern_maps((256 * uniform((n, *image), bits)).astype(np.uint8))
    return _instance(LANDMARKS, maps, y, 3 * np.arange(n + 1), 56, admissible=boxes)


def _instance(structure: str, x: Any, y: Any, offsets: Any, n_labels: int, **more: Any) -> Dataset:
    name = f"small {structure}"
    return Dataset(name, x, y, offsets, n_labels, structure, source="synthetic", **more)
