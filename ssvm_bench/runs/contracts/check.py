"""``ssvm-bench check``: a component by its name, on instances that fit it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import LANDMARKS, SEGMENTS, Dataset
from ssvm_bench.oracles import multiclass, viterbi
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.runs.components import load_dataset
from ssvm_bench.runs.contracts import instances, of_datasets, of_oracles, of_solvers
from ssvm_bench.runs.contracts.findings import Findings

STRUCTURES = (*("independent", "regression", "chain", "graph", "latent", SEGMENTS, LANDMARKS),)
_EXAMPLES = 8


@dataclass(frozen=True)
class Checked:
    """What was found on one instance."""

    of: str
    findings: Findings


def check(
    group: str, name: str, words: Sequence[str], config_dirs: Sequence[Path] = ()
) -> Iterator[Checked]:
    """Check a component; yield what was found, instance by instance.

    Parameters
    ----------
    group : str
        ``"oracle"``, ``"solver"`` or ``"dataset"``.
    name : str
    words : sequence of str
        Further options, as overrides. With one of the dataset, its first examples are the instance.
    config_dirs : sequence of Path
        Further folders of config files.

    Raises
    ------
    ConfigError
        There is no such component, or no instance for it.
    """
    (config,) = compose_runs([f"{group}={name}", *words], config_dirs=config_dirs)
    if group == "dataset":
        yield _dataset(config)
        return
    given = any(word.lstrip("+").startswith("dataset=") for word in words)
    build = _solver_of if group == "solver" else _oracle_of
    yield from build(config, _first(config) if given else None)


def _first(config: RunConfig) -> Dataset:
    """Return the first examples of a run's dataset."""
    dataset = load_dataset(config.dataset)
    assert isinstance(dataset, Dataset)  # as a whole
    return dataset.take(np.arange(min(_EXAMPLES, dataset.n)))


def _dataset(config: RunConfig) -> Checked:
    findings, kind = Findings(), config.dataset.kind
    with registry.blamed("dataset", kind):
        load = partial(registry.module("dataset", kind).load, config.dataset)
    build = partial(registry.module("oracle", config.oracle.kind).build, config.oracle)
    of_datasets.check(load, build, findings)
    return Checked(f"dataset {config.dataset.name}", findings)


def _oracle_of(config: RunConfig, given: Dataset | None) -> Iterator[Checked]:
    """Check an oracle on a dataset, or on small ones of all structures that it accepts."""
    module = registry.module("oracle", config.oracle.kind)
    refused = ""
    count = 0
    for data in [given] if given is not None else _small(config.oracle):
        with registry.blamed("oracle", config.oracle.kind):
            try:
                oracle = module.build(config.oracle, data)
            except ConfigError as error:  # an instance of another kind
                refused = str(error)
                continue
        count += 1
        findings = Findings()
        of_oracles.check(oracle, findings)
        yield Checked(f"oracle {config.oracle.name} on {_described(data)}", findings)
    if not count:
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
            yield instances.small(structure, n_labels)


def _solver_of(config: RunConfig, given: Dataset | None) -> Iterator[Checked]:
    """Check a solver on the oracle of a dataset, or on small problems of ours."""
    solver = config.solver
    module = registry.module("solver", solver.kind)
    if getattr(solver, "needs_path", False):
        raise ConfigError(f"solver={solver.name} begins at the end of another run: check that one.")

    def build(problem: Any, clock: Any, seed: int) -> Any:
        return module.build(solver, problem, clock, seed)

    problems: list[tuple[str, Oracle]] = []
    if given is not None:
        made = registry.module("oracle", config.oracle.kind).build(config.oracle, given)
        problems.append((_described(given), made))
    else:
        for of, structure in ((multiclass, "independent"), (viterbi, "chain")):
            if structure in (getattr(solver, "structures", ()) or (structure,)):
                data = instances.small(structure)
                oracle = of.build(of.Config(name=structure, kind=structure), data)
                problems.append((_described(data), oracle))
    if not problems:
        raise ConfigError(
            f"solver={solver.name} is for {' and '.join(solver.structures)} labels. Name a dataset "
            "of those, as dataset=NAME."
        )
    for described, oracle in problems:
        findings = Findings()
        of_solvers.check(build, solver, oracle, findings)
        yield Checked(f"solver {solver.name} on {described}", findings)


def _described(data: Dataset) -> str:
    labels = f", {data.n_labels} labels" if data.n_labels else ""
    return f"{data.name} ({data.n} examples, {data.y.size} parts{labels})"
